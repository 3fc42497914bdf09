//! Operands of instructions lie exactly where their record says (rules 14 and 17). A declared layout that differs from
//! the instruction's own address rule would compute the right product in order and the wrong one on the machine.

use super::executors::Executor;
use super::registers::Registers;
use crate::diag::Diagnosis;
use crate::index::{Cond, Facts, Index, Interval, Ranges, prove};
use crate::instr::{self, Behaviour, Completion, OperandSpec, Place, Record, WindowSpec};
use crate::ir::{Buffer, Instruction, Launch, Operand, Space, Span, Window};
use crate::layout::{Layout, indices};
use crate::sym::Sym;

/// Faults of the operands of one instruction.
pub(super) fn faults(
    i: &Instruction,
    registers: &Registers<'_>,
    executor: &Executor<'_>,
    launch: &Launch<'_>,
    facts: &Facts,
) -> Vec<Diagnosis> {
    let Some(record) = instr::by_name(&i.name) else { return Vec::new() };
    let mut faults = Vec::new();
    for (operand, spec) in i.operands.iter().zip(record.operands) {
        let (Operand::Window(window), Some(wanted)) = (operand, &spec.window) else { continue };
        let buffer = &registers.buffers[&window.buffer];
        let fault = memory(wanted, buffer).or_else(|| match wanted.place {
            Place::Fragment(name) => fragment(name, None, window, buffer),
            Place::FragmentColumns(name, columns) => fragment(name, Some(columns), window, buffer),
            Place::Lanes => lanes(window, buffer),
            Place::Element => None,
            Place::Rows(bytes) => pieces(bytes, window, buffer, facts),
            Place::Run => pieces(PIECE, window, buffer, facts).or_else(|| run(window, buffer)),
            Place::Swizzle128 => swizzle(window, buffer, facts),
            Place::Box => rows_of_a_box(window, buffer),
            Place::Aligned(bytes) => aligned(bytes, window, buffer, facts),
            Place::TensorMap => tensor_map(window, buffer, facts),
        });
        let fault = fault.or_else(|| match buffer.space {
            Space::Reg => registers.window(window, executor, facts),
            _ => outside(window, buffer, facts, wanted.place == Place::TensorMap),
        });
        faults.extend(fault.map(|f| operand_fault(f, record, spec)));
    }
    if record.behaviour == Behaviour::ChainedSum || record.completion == Completion::Chained {
        faults.extend(chained(i, record, launch, facts));
    }
    faults
}

fn operand_fault(mut fault: Diagnosis, record: &Record, spec: &OperandSpec) -> Diagnosis {
    fault.what = format!("operand {} of {}: {}", spec.name, record.name, fault.what);
    fault
}

fn memory(wanted: &WindowSpec, buffer: &Buffer) -> Option<Diagnosis> {
    let text = |space: Option<Space>| match space {
        None | Some(Space::Param(_)) => "device memory",
        Some(Space::Global) => "scratch in device memory",
        Some(Space::Shared) => "shared memory",
        Some(Space::Reg) => "registers",
    };
    let fits = wanted.space.map_or_else(|| buffer.is_global(), |space| space == buffer.space);
    (!fits).then(|| {
        Diagnosis::new(format!("`{}` is in {}", buffer.sym, text(Some(buffer.space))))
            .because(format!("the instruction works on {}", text(wanted.space)))
            .instead("stage it there first")
    })
}

/// The window is a whole tile of the fragment, or a group of its columns.
fn fragment(name: &str, columns: Option<i64>, window: &Window, buffer: &Buffer) -> Option<Diagnosis> {
    let has = buffer.fragment.map_or("no fragment".to_string(), |f| format!("fragment {}", f.name));
    if buffer.fragment.is_none_or(|f| f.name != name) {
        return Some(
            Diagnosis::new(format!("`{}` has {has}", buffer.sym))
                .because(format!("the instruction reads and writes registers by fragment {name}"))
                .instead(format!("declare it `frag {name}`")),
        );
    }
    let n = window.dims.len();
    let whole = |at: usize| match &window.dims[at] {
        Span::All => true,
        Span::Slice(start, len) => {
            *start == Index::default() && buffer.dims[at].extent.as_constant() == Some(*len)
        }
        Span::At(_) => false,
    };
    let fits = whole(n - 2)
        && match (columns, &window.dims[n - 1]) {
            (Some(wanted), Span::Slice(start, len)) => {
                *len == wanted && start.rem(wanted) == Index::default()
            }
            _ => whole(n - 1),
        }
        && window.dims[..n - 2].iter().all(|d| matches!(d, Span::At(_)));
    (!fits).then(|| {
        Diagnosis::new(format!("the window cuts through the tile of `{}`", buffer.sym))
            .because(format!("fragment {name} spreads whole tiles"))
            .instead("give the last two dimensions as `:, :`, and one index for each dimension before")
    })
}

/// The window is one dimension of pitch 1: element `l` lives in lane `l`.
fn lanes(window: &Window, buffer: &Buffer) -> Option<Diagnosis> {
    let kept = window.dims.iter().zip(&buffer.dims).filter(|(span, _)| !matches!(span, Span::At(_)));
    let kept: Vec<_> = kept.collect();
    let fits = buffer.fragment.is_none() && matches!(&kept[..], [(_, dim)] if dim.pitch == Some(1));
    (!fits).then(|| {
        Diagnosis::new(format!("the elements of the window of `{}` do not live one in each lane", buffer.sym))
            .instead("keep exactly the dimension 32@1")
    })
}

/// Pieces of `bytes` along the last dimension are contiguous and aligned in shared memory.
fn pieces(bytes: i64, window: &Window, buffer: &Buffer, facts: &Facts) -> Option<Diagnosis> {
    let elements = bytes / buffer.dtype.bytes();
    let start = window.start();
    let last = start.last()?;
    if !facts.is_multiple(last, elements) {
        return Some(misaligned(buffer, last, elements, bytes));
    }
    (!keeps_pieces(buffer, elements)).then(|| {
        Diagnosis::new(format!("rows of {elements} elements of `{}` are not contiguous, or not aligned", buffer.sym))
            .because(format!("the instruction moves {bytes} bytes at a time"))
            .instead(format!("use a layout that moves whole pieces of {elements} elements: ...*xor(c/{elements}, ...) + c%{elements}"))
    })
}

/// Bytes of the pieces of which bulk copies consist.
const PIECE: i64 = 16;

/// The window is all of the last dimension, and that is contiguous.
fn run(window: &Window, buffer: &Buffer) -> Option<Diagnosis> {
    let last = buffer.dims.last()?;
    let whole = match window.dims.last()? {
        Span::All => true,
        Span::Slice(start, n) => start.as_constant() == Some(0) && last.extent.as_constant() == Some(*n),
        Span::At(_) => false,
    };
    let others = window.dims[..window.dims.len() - 1].iter().all(|d| matches!(d, Span::At(_)));
    let contiguous = buffer.layout.as_ref().is_none_or(|l| {
        let Some(axis) = l.axes.last() else { return false };
        let rest = &l.offset - &Index::var(axis);
        !rest.mentions(axis)
    });
    (!whole || !others || !contiguous).then(|| {
        Diagnosis::new(format!("the window of `{}` is no contiguous run of its last dimension", buffer.sym))
            .because("the instruction moves it as one piece of memory")
            .instead("give all of the last dimension and one index for each before it, without a layout that parts it")
    })
}

/// Bytes at multiples of which a box begins in shared memory.
const BOX: i64 = 128;

/// The window is all of the last two dimensions, and those are one matrix whose rows follow each other from a multiple of 128 bytes.
fn rows_of_a_box(window: &Window, buffer: &Buffer) -> Option<Diagnosis> {
    let refuse = |because: &str, instead: &str| {
        Some(
            Diagnosis::new(format!("the window of `{}` is no box of rows", buffer.sym))
                .because(because)
                .instead(instead),
        )
    };
    let n = window.dims.len();
    let Some(extents) = buffer.constant_extents().filter(|_| n >= 2) else {
        return refuse(
            "a box has two constant extents",
            "give rows and columns of a buffer of constant extents",
        );
    };
    let whole = |at: usize| match &window.dims[at] {
        Span::All => true,
        Span::Slice(start, length) => start.as_constant() == Some(0) && extents[at] == *length,
        Span::At(_) => false,
    };
    let one_of_each = window.dims[..n - 2].iter().all(|d| matches!(d, Span::At(_)));
    if !whole(n - 2) || !whole(n - 1) || !one_of_each {
        return refuse(
            "it is filled as a whole",
            "give the last two dimensions as `:, :`, and one index for each before",
        );
    }
    let layout = buffer.layout.clone().unwrap_or_else(|| Layout::row_major(&extents));
    let (row, column) = (&layout.axes[n - 2], &layout.axes[n - 1]);
    let rest = &layout.offset - &(&Index::var(row).scaled(extents[n - 1]) + &Index::var(column));
    if rest.mentions(row) || rest.mentions(column) {
        return refuse(
            "its rows do not follow each other",
            "leave its layout out; columns outside the tensor are filled with zeros",
        );
    }
    if rest.rem((BOX / buffer.dtype.bytes()).max(1)) != Index::default() {
        return refuse(
            "it may not start at a multiple of 128 bytes",
            "let slots begin at multiples of 128 bytes",
        );
    }
    None
}

fn misaligned(buffer: &Buffer, start: &Index, elements: i64, bytes: i64) -> Diagnosis {
    Diagnosis::new(format!("column {start} of `{}` may not be a multiple of {elements}", buffer.sym))
        .because(format!("{bytes} bytes are moved from a multiple of {bytes} bytes"))
        .instead("split so that pieces start at multiples of their length")
}

/// Whether the layout of a shared buffer keeps each `elements` neighbours of the last dimension next to each other, at a
/// multiple of `elements`: written with `c = elements*piece + e`, the offset is a multiple of `elements`, plus `e`.
pub(super) fn keeps_pieces(buffer: &Buffer, elements: i64) -> bool {
    let Some(extents) = buffer.constant_extents() else { return false };
    if elements == 1 {
        return true;
    }
    let layout = buffer.layout.clone().unwrap_or_else(|| Layout::row_major(&extents));
    let (piece, e) = (Sym::new("piece"), Sym::new("e"));
    let mut ranges = Ranges::new();
    let axes: Vec<Sym> = layout.axes.clone();
    for (axis, extent) in axes.iter().zip(&extents) {
        ranges.set(axis, Interval::new(0, (extent - 1).max(0)));
    }
    let last = extents.last().copied().unwrap_or(1);
    ranges.set(&piece, Interval::new(0, (last - 1).max(0) / elements));
    ranges.set(&e, Interval::new(0, elements - 1));
    let mut index: Vec<Index> = axes.iter().map(Index::var).collect();
    if let Some(column) = index.last_mut() {
        *column = &Index::var(&piece).scaled(elements) + &Index::var(&e);
    }
    let rest = &ranges.simplify(&layout.apply(&index)) - &Index::var(&e);
    !rest.mentions(&e) && ranges.simplify(&rest.rem(elements)) == Index::default()
}

/// Why a window is not in the 128-byte swizzle: 64 columns of 2 bytes, piece `c/8` of row `r` kept at piece
/// `c/8 xor r%8`.
pub fn swizzle(window: &Window, buffer: &Buffer, facts: &Facts) -> Option<Diagnosis> {
    let refuse = |because: String| {
        Some(
            Diagnosis::new(format!(
                "the layout of `{}` is not the 128-byte swizzle of the instruction",
                buffer.sym
            ))
            .because(because)
            .instead("declare it layout (..., r, c) => ... + 64*r + 8*xor(c/8, r%8) + c%8"),
        )
    };
    let row_elements = 128 / buffer.dtype.bytes();
    let n = window.dims.len();
    let Some(extents) = buffer.constant_extents() else {
        return refuse("its extents are not constants".into());
    };
    if n < 2 || extents[n - 1] != row_elements {
        return refuse(format!("a row of the swizzle is {row_elements} elements"));
    }
    if window.dims[..n - 2].iter().any(|d| !matches!(d, Span::At(_))) {
        return refuse("the window has more than two dimensions".into());
    }
    if let Some(because) = not_swizzled(buffer, &extents) {
        return refuse(because);
    }
    let start = window.start();
    if !facts.is_multiple(&start[n - 2], 8) {
        return refuse(format!("row {} may not be a multiple of 8, the period of the swizzle", start[n - 2]));
    }
    let piece = 16 / buffer.dtype.bytes();
    (!facts.is_multiple(&start[n - 1], piece)).then(|| misaligned(buffer, &start[n - 1], piece, 16))
}

/// Why the last two dimensions of a buffer are not swizzled within tiles that start at multiples of 1024 bytes.
fn not_swizzled(buffer: &Buffer, extents: &[i64]) -> Option<String> {
    let Some(layout) = &buffer.layout else {
        return Some("it has none, so its rows follow each other".into());
    };
    let n = extents.len();
    let period = 1024 / buffer.dtype.bytes();
    let (row, column) = (Index::var(&layout.axes[n - 2]), Index::var(&layout.axes[n - 1]));
    let (width, piece) = (extents[n - 1], 16 / buffer.dtype.bytes());
    let swizzled =
        |a: &Index, b: &Index| &(&row.scaled(width) + &a.xor(b).scaled(piece)) + &column.rem(piece);
    let (c, r) = (column.div(piece), row.rem(8));
    for expected in [swizzled(&c, &r), swizzled(&r, &c)] {
        let rest = &layout.offset - &expected;
        let only_outer = !rest.mentions(&layout.axes[n - 2]) && !rest.mentions(&layout.axes[n - 1]);
        if only_outer && rest.rem(period) == Index::default() {
            return None;
        }
    }
    // Written differently: compare element by element.
    let expected = |index: &[i64]| {
        let (r, c) = (index[n - 2], index[n - 1]);
        r * width + piece * ((c / piece) ^ (r % 8)) + c % piece
    };
    let different = indices(extents).find(|index| {
        let mut start = index.clone();
        start[n - 2..].fill(0);
        let base = layout.at(&start);
        base % period != 0 || layout.at(index) - base != expected(index)
    });
    different.map(|index| format!("element {index:?} lies at offset {}", layout.at(&index)))
}

/// Contiguous and aligned in device memory: the column by congruence, the rows by what is known of strides.
fn aligned(bytes: i64, window: &Window, buffer: &Buffer, facts: &Facts) -> Option<Diagnosis> {
    let elements = bytes / buffer.dtype.bytes();
    let start = window.start();
    let last = start.last()?;
    if !facts.is_multiple(last, elements) {
        return Some(misaligned(buffer, last, elements, bytes));
    }
    row_misaligned(buffer, elements, facts)
}

/// Whether a buffer in device memory may start off a multiple of `elements`.
pub(super) fn start_misaligned(buffer: &Buffer, elements: i64) -> Option<Diagnosis> {
    let bytes = elements * buffer.dtype.bytes();
    (bytes > buffer.align).then(|| {
        Diagnosis::new(format!("`{}` may not start at a multiple of {bytes} bytes", buffer.sym))
            .because(format!("it is declared to start at one of {}", buffer.align))
            .instead("declare another alignment, or move fewer elements at a time")
    })
}

/// Whether a buffer in device memory, or rows of it, may start off a multiple of `elements`.
pub(super) fn row_misaligned(buffer: &Buffer, elements: i64, facts: &Facts) -> Option<Diagnosis> {
    let start = start_misaligned(buffer, elements);
    if start.is_some() || buffer.dims.len() < 2 {
        return start;
    }
    let (rows, columns) = buffer.dims.split_at(buffer.dims.len() - 1);
    // One row starts where the buffer does.
    if rows.iter().all(|dim| dim.extent.as_constant() == Some(1)) {
        return None;
    }
    let columns = &columns[0].extent;
    let stride = buffer.row_stride.as_ref().map_or_else(|| columns.clone(), Index::var);
    (!facts.is_multiple(&stride, elements)).then(|| {
        Diagnosis::new(format!("rows of `{}` may not start at multiples of {elements} elements", buffer.sym))
            .because(format!("nothing is known of its row stride {stride}"))
            .instead(format!("assume {stride}%{elements} == 0, or access element by element"))
    })
}

/// A tensor map describes a tensor of two dimensions whose rows start at multiples of 16 bytes.
fn tensor_map(window: &Window, buffer: &Buffer, facts: &Facts) -> Option<Diagnosis> {
    let box_of_two = buffer.dims.len() == 2 && window.dims.iter().all(|d| matches!(d, Span::Slice(..)));
    if !box_of_two {
        return Some(
            Diagnosis::new(format!("the window of `{}` is no box of two dimensions", buffer.sym))
                .because("the tensor map describes a matrix")
                .instead("write A[row +: rows, column +: columns]"),
        );
    }
    row_misaligned(buffer, 16 / buffer.dtype.bytes(), facts)
}

/// A window that certainly lies outside its buffer. What only may lie outside is left to the simulator.
fn outside(window: &Window, buffer: &Buffer, facts: &Facts, clipped: bool) -> Option<Diagnosis> {
    if clipped {
        return None;
    }
    window.dims.iter().zip(&buffer.dims).find_map(|(span, dim)| {
        let (start, len) = match span {
            Span::At(i) => (i, 1),
            Span::Slice(start, len) => (start, *len),
            Span::All => return None,
        };
        let within = Cond::le(0.into(), start.clone()).and(Cond::le(start.offset(len), dim.extent.clone()));
        // Device memory is checked element by element when it is touched: an operand may say that some are not.
        (buffer.space == Space::Shared && prove(facts, &within) == Some(false)).then(|| {
            Diagnosis::new(format!("the window of `{}` lies outside 0..{}", buffer.sym, dim.extent))
                .because(format!("it starts at {start} and has {len} elements"))
        })
    })
}

/// Rule 26: a chained instruction sees the blocks before it, each once.
fn chained(i: &Instruction, record: &Record, launch: &Launch<'_>, facts: &Facts) -> Option<Diagnosis> {
    let [block] = &launch.blocks[..] else {
        return Some(
            Diagnosis::new(format!(
                "{} stands in a launch of {} block loops",
                record.name,
                launch.blocks.len()
            ))
            .because("its blocks have one order")
            .instead("fuse the block loops into one"),
        );
    };
    if !block.ordered {
        return Some(
            Diagnosis::new(format!("{} waits for earlier blocks", record.name))
                .because(format!(
                    "the blocks of `{}` are not numbered in the order in which they start",
                    block.var
                ))
                .instead("write block.x(...) ordered"),
        );
    }
    let links =
        i.operands.iter().zip(record.operands).filter_map(|(operand, spec)| match (operand, &spec.window) {
            (Operand::Window(w), Some(window)) if window.place == Place::Element => Some(w),
            _ => None,
        });
    for link in links {
        let own = matches!(&link.dims[..], [Span::At(i)] if facts.expanded(i).as_var() == Some(&block.var));
        if !own {
            return Some(
                Diagnosis::new(format!(
                    "the link of {} in `{}` is not this block's own",
                    record.name, link.buffer
                ))
                .instead(format!("write {}[{}]", link.buffer, block.var)),
            );
        }
    }
    None
}
