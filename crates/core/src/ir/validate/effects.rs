//! What is written may be written, atomics reduce memory that threads share, and instructions are called as their
//! records say (rules 11, 15, 18 and 25).

use std::collections::HashMap;

use super::place;
use crate::diag::Diagnosis;
use crate::instr::{self, Behaviour, Completion, Extent, OperandAccess, Record, WindowSpec};
use crate::ir::{
    Assign, AssignOp, Buffer, Instruction, Operand, Own, Program, Space, Span, Stmt, Window, walk,
};
use crate::sym::Sym;
use crate::target::Capability;

/// All faults of effects.
pub(super) fn check(program: &Program) -> Vec<Diagnosis> {
    let buffers = program.buffers();
    let mut faults = Vec::new();
    walk::for_each(&program.body, &mut |stmt| {
        let found = match stmt {
            Stmt::Assign(a) => assign(a, &buffers),
            Stmt::Instruction(i) => instruction(i, &buffers),
            Stmt::Own(o) => own(o, &buffers),
            _ => Vec::new(),
        };
        faults.extend(found.into_iter().map(|f| f.at(place::of(program, stmt))));
    });
    faults
}

fn read_only(buffer: &Buffer) -> Diagnosis {
    Diagnosis::new(format!("`{}` is written", buffer.sym))
        .because("it is an `in` parameter")
        .instead("declare it `inout`, or write to another buffer")
}

fn assign(a: &Assign, buffers: &HashMap<Sym, Buffer>) -> Vec<Diagnosis> {
    let target = &buffers[&a.target.buffer];
    let mut faults = Vec::new();
    if !target.is_writable() {
        faults.push(read_only(target));
    }
    if target.split && a.op != AssignOp::Store {
        faults.push(
            Diagnosis::new(format!("`{}` is added to", target.sym))
                .because("it stores numbers as their tf32 parts, which are read and stored only")
                .instead("add up in another buffer, and store the sum"),
        );
    }
    if a.atomic && a.op == AssignOp::Store {
        faults
            .push(Diagnosis::new("a plain store is atomic").because("atomics are reductions without result"));
    }
    if a.atomic && target.space == Space::Reg {
        faults.push(
            Diagnosis::new(format!("`{}` is reduced atomically", target.sym))
                .because("a register has one owner, nobody else can touch it")
                .instead("leave `atomic` out"),
        );
    }
    faults
}

fn own(o: &Own, buffers: &HashMap<Sym, Buffer>) -> Vec<Diagnosis> {
    let buffer = &buffers[&o.window.buffer];
    if buffer.space == Space::Reg {
        return if o.run == 1 || o.has_runs(buffer) { Vec::new() } else { vec![no_runs(o, buffer)] };
    }
    let fault = Diagnosis::new(format!("the elements of `{}` have no owners", buffer.sym))
        .because("it is not in registers")
        .instead("loop over it, with a thread loop around");
    vec![fault]
}

fn no_runs(o: &Own, buffer: &Buffer) -> Diagnosis {
    let by = buffer.fragment.map_or(String::new(), |f| format!(" by fragment {}", f.name));
    Diagnosis::new(format!("no thread has the elements of `{}` in runs of {}", buffer.sym, o.run))
        .because(format!("neighbours in a row have several owners{by}, or are not whole runs"))
        .instead("visit single elements, or take a shorter run")
}

/// Whether an operand of an instruction may be stored as tf32 parts: the second factor of one that splits numbers itself.
fn takes_parts(record: &Record, operand: &str) -> bool {
    operand == "b" && record.needs.contains(&Capability::MmaTf32)
}

fn instruction(i: &Instruction, buffers: &HashMap<Sym, Buffer>) -> Vec<Diagnosis> {
    let Some(record) = instr::by_name(&i.name) else {
        let known: Vec<_> = instr::all().map(|r| r.name).collect();
        let fault = Diagnosis::new(format!("there is no instruction `{}`", i.name))
            .instead(format!("use one of {}", known.join(", ")));
        return vec![fault];
    };
    if i.operands.len() != record.operands.len() {
        let names: Vec<_> = record.operands.iter().map(|o| o.name).collect();
        let what = format!("{} takes {} operands, not {}", record.name, names.len(), i.operands.len());
        return vec![Diagnosis::new(what).instead(format!("call {}({})", record.name, names.join(", ")))];
    }
    let mut faults = Vec::new();
    let mut shapes = Vec::new();
    for (operand, spec) in i.operands.iter().zip(record.operands) {
        match (operand, &spec.window) {
            (Operand::Scalar(_), None) => {}
            (Operand::Window(w), Some(window)) => {
                let buffer = &buffers[&w.buffer];
                if spec.access.writes() && !buffer.is_writable() {
                    faults.push(read_only(buffer));
                }
                faults.extend(element_type(record, spec.name, window, buffer));
                if buffer.split && !takes_parts(record, spec.name) {
                    faults.push(
                        Diagnosis::new(format!("operand {} of {} is split", spec.name, record.name))
                            .because(format!("`{}` stores numbers as their tf32 parts", buffer.sym))
                            .instead("give it a buffer of whole numbers"),
                    );
                }
                match shape(w, buffer) {
                    Some(found) => {
                        faults.extend(shape_fault(record, spec.name, window, &found));
                        shapes.push(found);
                    }
                    None => faults.push(Diagnosis::new(format!(
                        "operand {} of {} has extents that are not constant",
                        spec.name, record.name
                    ))),
                }
            }
            (_, wanted) => {
                let wanted = if wanted.is_some() { "a window" } else { "an integer" };
                faults.push(Diagnosis::new(format!("operand {} of {} is {wanted}", spec.name, record.name)));
            }
        }
    }
    faults.extend(shapes_agree(record, &shapes));
    faults.extend(untyped_operands_agree(i, record, buffers));
    faults.extend(overlap(i, record));
    faults.extend(signal(i, record));
    faults
}

fn element_type(record: &Record, name: &str, spec: &WindowSpec, buffer: &Buffer) -> Option<Diagnosis> {
    match spec.dtype {
        Some(wanted) if wanted != buffer.dtype => Some(
            Diagnosis::new(format!(
                "operand {name} of {} is `{}` of type {}",
                record.name, buffer.sym, buffer.dtype
            ))
            .because(format!("the instruction works on {wanted}")),
        ),
        None if !record.behaviour.moves().contains(&buffer.dtype.bytes()) => Some(
            Diagnosis::new(format!(
                "operand {name} of {} is `{}` of type {}",
                record.name, buffer.sym, buffer.dtype
            ))
            .because(format!("the instruction moves {} bytes a lane", listed(record.behaviour.moves()))),
        ),
        _ => None,
    }
}

fn listed(sizes: &[i64]) -> String {
    sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(" or ")
}

/// The extents of the dimensions that a window keeps, if they are constant.
pub(super) fn shape(window: &Window, buffer: &Buffer) -> Option<Vec<i64>> {
    let kept = window.dims.iter().zip(&buffer.dims).filter_map(|(span, dim)| match span {
        Span::At(_) => None,
        Span::Slice(_, len) => Some(Some(*len)),
        Span::All => Some(dim.extent.as_constant()),
    });
    kept.collect()
}

fn shape_fault(record: &Record, name: &str, spec: &WindowSpec, found: &[i64]) -> Option<Diagnosis> {
    let fits = found.len() == spec.shape.len()
        && found.iter().zip(spec.shape).all(|(n, extent)| match extent {
            Extent::Fixed(wanted) => n == wanted,
            Extent::Multiple(of, most) => *n > 0 && n % of == 0 && n <= most,
            Extent::Same(_) => true,
        });
    let text = |e: &Extent| match e {
        Extent::Fixed(n) => n.to_string(),
        Extent::Multiple(of, most) => format!("{of}n up to {most}"),
        Extent::Same(letter) => letter.to_string(),
    };
    let wanted: Vec<_> = spec.shape.iter().map(text).collect();
    (!fits).then(|| {
        Diagnosis::new(format!("operand {name} of {} has extents {found:?}", record.name))
            .because(format!("the instruction works on [{}]", wanted.join(", ")))
    })
}

/// Extents that two operands share.
fn shapes_agree(record: &Record, shapes: &[Vec<i64>]) -> Option<Diagnosis> {
    let agree = match (record.behaviour, shapes) {
        (Behaviour::BulkLoad | Behaviour::BulkStore, [d, a]) => d == a,
        (Behaviour::BulkWrite, [d, a]) => bytes(record, 0, d) == bytes(record, 1, a),
        (Behaviour::WarpgroupMultiply { .. }, [d, _, b]) => d.get(1) == b.first(),
        _ => true,
    };
    (!agree).then(|| {
        Diagnosis::new(format!("the operands of {} have extents {shapes:?} that do not match", record.name))
            .because(format!("it means {}", record.meaning))
    })
}

/// The bytes of an operand of these extents.
fn bytes(record: &Record, operand: usize, extents: &[i64]) -> Option<i64> {
    let dtype = record.operands[operand].window.as_ref()?.dtype?;
    Some(extents.iter().product::<i64>() * dtype.bytes())
}

/// Operands whose type the record leaves open have one type.
fn untyped_operands_agree(
    i: &Instruction,
    record: &Record,
    buffers: &HashMap<Sym, Buffer>,
) -> Option<Diagnosis> {
    let open =
        i.operands.iter().zip(record.operands).filter_map(|(operand, spec)| match (operand, &spec.window) {
            (Operand::Window(w), Some(window)) if window.dtype.is_none() => Some(buffers[&w.buffer].dtype),
            _ => None,
        });
    let types: Vec<_> = open.collect();
    types.windows(2).any(|pair| pair[0] != pair[1]).then(|| {
        Diagnosis::new(format!("the operands of {} have different types", record.name))
            .because("the instruction moves data without converting it")
    })
}

/// An instruction reads all its inputs before it writes, so an output that overlaps an input would differ in order.
fn overlap(i: &Instruction, record: &Record) -> Option<Diagnosis> {
    let windows: Vec<(&Window, OperandAccess)> = i
        .operands
        .iter()
        .zip(record.operands)
        .filter_map(|(operand, spec)| match operand {
            Operand::Window(w) => Some((w, spec.access)),
            Operand::Scalar(_) => None,
        })
        .collect();
    for (at, (a, access)) in windows.iter().enumerate() {
        for (b, other) in &windows[at + 1..] {
            let one_writes = access.writes() || other.writes();
            if one_writes && a.buffer == b.buffer && !certainly_apart(a, b) {
                return Some(
                    Diagnosis::new(format!(
                        "an output of {} overlaps an input in `{}`",
                        record.name, a.buffer
                    ))
                    .because("in order and on the machine the instruction would read different values")
                    .instead("write to another buffer and copy"),
                );
            }
        }
    }
    None
}

/// Whether two windows of one buffer are apart in some dimension by constants.
fn certainly_apart(a: &Window, b: &Window) -> bool {
    let interval = |span: &Span| match span {
        Span::At(i) => Some((i.clone(), 1)),
        Span::Slice(start, len) => Some((start.clone(), *len)),
        Span::All => None,
    };
    a.dims.iter().zip(&b.dims).any(|(x, y)| match (interval(x), interval(y)) {
        (Some((x, n)), Some((y, m))) => {
            let distance = (&y - &x).as_constant();
            distance.is_some_and(|d| d >= n || d <= -m)
        }
        _ => false,
    })
}

fn signal(i: &Instruction, record: &Record) -> Option<Diagnosis> {
    match (record.completion, &i.signal) {
        (Completion::Mbarrier, None) => Some(
            Diagnosis::new(format!("nobody learns when {} is complete", record.name))
                .instead("name the phase that it reports to: `-> full[n]`"),
        ),
        (Completion::Mbarrier, Some(_)) | (_, None) => None,
        (_, Some((ring, _))) => Some(
            Diagnosis::new(format!("{} reports to `{ring}`", record.name))
                .because("only bulk loads complete an mbarrier phase"),
        ),
    }
}
