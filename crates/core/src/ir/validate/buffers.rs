//! Buffers are declared sensibly for their memory (rules 1 and 13): layouts belong to shared memory, owners to
//! registers, scratch in device memory to the host list; tensors start where elements can.

use super::place;
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::ir::{ALIGNMENT, Buffer, For, If, Mode, Program, Space, Stmt, walk};

/// All faults of declarations.
pub(super) fn check(program: &Program) -> Vec<Diagnosis> {
    let mut faults: Vec<Diagnosis> = program.tensors().filter_map(alignment).collect();
    walk::for_each(&program.body, &mut |stmt| {
        let found = match stmt {
            Stmt::Alloc(buffer) => declaration(buffer),
            Stmt::AllocRing(ring) if ring.depth < 1 || ring.count < 1 => {
                let what = format!("`{}` has depth {} and count {}", ring.sym, ring.depth, ring.count);
                vec![Diagnosis::new(what).instead("a ring has at least one slot and one arrival a phase")]
            }
            _ => Vec::new(),
        };
        faults.extend(found.into_iter().map(|f| f.at(place::of(program, stmt))));
    });
    scratch_inside_launches(program, &program.body, false, &mut faults);
    faults
}

/// A tensor starts at a multiple of its elements at least: an element is one access.
fn alignment(tensor: &Buffer) -> Option<Diagnosis> {
    let (bytes, align) = (tensor.dtype.bytes(), tensor.align);
    let sensible = (bytes..=ALIGNMENT).contains(&align) && align.count_ones() == 1;
    (!sensible).then(|| {
        Diagnosis::new(format!("`{}` is aligned to {align} bytes", tensor.sym))
            .because(format!("an element has {bytes} bytes, and no access more than {ALIGNMENT}"))
            .instead(format!("give a power of two from {bytes} to {ALIGNMENT}"))
    })
}

fn declaration(buffer: &Buffer) -> Vec<Diagnosis> {
    let name = &buffer.sym;
    let mut faults = Vec::new();
    let mut refuse = |when: bool, what: &str, instead: &str| {
        if when {
            faults.push(Diagnosis::new(format!("`{name}` {what}")).instead(instead));
        }
    };
    let registers = buffer.space == Space::Reg;
    refuse(
        buffer.layout.is_some() && buffer.space != Space::Shared,
        "has a layout and is not in shared memory",
        "only shared buffers have layouts",
    );
    refuse(
        buffer.is_distributed() && !registers,
        "is spread over threads and not in registers",
        "only registers have owners",
    );
    refuse(
        buffer.split && !matches!(buffer.dtype, DType::F32 | DType::C64),
        "stores numbers as their tf32 parts, which those of its type do not have",
        "only numbers of f32 and c64 have such parts",
    );
    refuse(
        buffer.split && buffer.is_global(),
        "stores numbers as their tf32 parts in device memory",
        "keep them in shared memory or in registers",
    );
    refuse(
        buffer.role.is_some() && !registers,
        "belongs to a role and is not in registers",
        "only registers have owners",
    );
    refuse(
        buffer.dims.iter().any(|d| d.extent.as_constant().is_some_and(|e| e < 1)),
        "has no elements",
        "each constant extent is at least 1",
    );
    refuse(
        buffer.dims.iter().any(|d| d.pitch.is_some_and(|p| p < 1)),
        "has a dimension of pitch 0 or less",
        "neighbouring elements live at least one thread apart",
    );
    refuse(
        buffer.dims.iter().any(|d| d.pitch.is_some() && d.extent.as_constant().is_none()),
        "is spread over a number of threads that is not constant",
        "give the distributed dimension a constant extent",
    );
    if let Some(fragment) = buffer.fragment {
        let tile = match &buffer.dims[..] {
            [.., rows, columns] => rows.extent.as_constant().zip(columns.extent.as_constant()),
            _ => None,
        };
        let fits = tile.is_some_and(|(rows, columns)| fragment.registers(rows, columns).is_some());
        if !fits {
            let columns = fragment.columns.map_or_else(|| "8n".into(), |c| c.to_string());
            faults.push(
                Diagnosis::new(format!("`{name}` has no tile that fragment {} could spread", fragment.name))
                    .because(format!("that is {} x {columns}", fragment.rows))
                    .instead("make the last two dimensions such a tile"),
            );
        }
        if buffer.dims.iter().rev().take(2).any(|d| d.pitch.is_some()) {
            faults
                .push(Diagnosis::new(format!("`{name}` spreads its tile both by a fragment and by a pitch")));
        }
    }
    faults
}

/// Scratch in device memory belongs to the host list: it is part of the call, not of a block.
fn scratch_inside_launches(program: &Program, stmts: &[Stmt], inside: bool, faults: &mut Vec<Diagnosis>) {
    for stmt in stmts {
        match stmt {
            Stmt::Alloc(buffer) if inside && buffer.space == Space::Global => {
                let fault =
                    Diagnosis::new(format!("`{}` is allocated in device memory by each block", buffer.sym))
                        .instead("allocate it before the launch, with a dimension for the blocks");
                faults.push(fault.at(place::of(program, stmt)));
            }
            Stmt::If(If { then, otherwise, .. }) => {
                scratch_inside_launches(program, then, inside, faults);
                scratch_inside_launches(program, otherwise, inside, faults);
            }
            _ => {
                let launch = matches!(stmt, Stmt::For(For { mode: Mode::Block { .. }, .. }));
                for body in walk::bodies(stmt) {
                    scratch_inside_launches(program, body, inside || launch, faults);
                }
            }
        }
    }
}
