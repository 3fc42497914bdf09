//! What a launch looks like from outside: its grid, its threads, its roles and where its shared buffers lie.
//!
//! Everything here is derived from the statement; simulator, emitter, validator and model ask the same function, so
//! they cannot disagree on the size of a block or the address of a buffer.

use super::buffer::{Buffer, Ring, Space};
use super::statement::{Axis, For, Mode, Range, Role, Stmt};
use super::walk;
use crate::diag::Diagnosis;
use crate::index::Index;
use crate::layout::Layout;
use crate::sym::Sym;

/// A nest of block loops and what stands inside.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The block loops, outermost first.
    pub blocks: Vec<BlockLoop>,
    /// The statements at block scope.
    pub body: &'a [Stmt],
    /// Threads per block, a multiple of 32.
    pub threads: i64,
    /// The roles, if the block has any.
    pub roles: Vec<Role>,
    /// Where each shared buffer and ring lies.
    pub shared: SharedPlan,
}

/// One block loop.
#[derive(Clone, Debug)]
pub struct BlockLoop {
    /// The variable.
    pub var: Sym,
    /// The axis of the grid.
    pub axis: Axis,
    /// The number of blocks along it.
    pub extent: Index,
    /// Whether blocks are numbered in the order in which they start.
    pub ordered: bool,
    /// How many blocks the assembler is asked to keep registers for; `None` leaves it to the emitter.
    pub min_blocks: Option<i64>,
}

/// Where the shared buffers of a block lie.
#[derive(Clone, Debug, Default)]
pub struct SharedPlan {
    /// The buffers in the order of the text.
    pub buffers: Vec<SharedBuffer>,
    /// The rings of mbarriers, each slot 8 bytes.
    pub rings: Vec<(Ring, i64)>,
    /// Bytes in all.
    pub bytes: i64,
}

/// A shared buffer and its place.
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    /// The buffer.
    pub buffer: Buffer,
    /// Its first byte.
    pub offset: i64,
    /// Its size in elements, padding of its layout included.
    pub elements: i64,
}

impl SharedPlan {
    /// The place of a buffer.
    pub fn place(&self, sym: &Sym) -> Option<&SharedBuffer> {
        self.buffers.iter().find(|b| b.buffer.sym == *sym)
    }
}

/// Shared buffers start at multiples of this, which suits vector accesses; see [`alignment`].
const PLAIN_ALIGNMENT: i64 = 128;
/// Shared buffers that bulk copies or wgmma address start at multiples of this: the period of the 128-byte swizzle.
const SWIZZLE_ALIGNMENT: i64 = 1024;

impl<'a> Launch<'a> {
    /// The launch that a statement of the host list is; `None` if it is none.
    ///
    /// # Errors
    /// A shared buffer whose extents are not constants or whose layout is not injective; more threads than any device
    /// has.
    pub fn of(stmt: &'a Stmt) -> Result<Option<Launch<'a>>, Diagnosis> {
        let mut blocks = Vec::new();
        let mut at = stmt;
        let body = loop {
            let Stmt::For(For { var, mode: Mode::Block { axis, ordered, min_blocks }, range, body, .. }) = at
            else {
                return Ok(None);
            };
            let Range::Span { hi, .. } = range else {
                return Err(Diagnosis::new(format!("the blocks of `{var}` are not counted from 0")));
            };
            blocks.push(BlockLoop {
                var: var.clone(),
                axis: *axis,
                extent: hi.clone(),
                ordered: *ordered,
                min_blocks: *min_blocks,
            });
            match &body[..] {
                [inner @ Stmt::For(For { mode: Mode::Block { .. }, .. })] => at = inner,
                _ => break body,
            }
        };
        let roles = roles(body);
        let threads = block_threads(body);
        if threads > MOST_THREADS {
            return Err(Diagnosis::new(format!("its thread loops ask for {threads} threads in a block"))
                .because("no device has a tenth of that")
                .instead("bind smaller loops to threads, the others to blocks"));
        }
        Ok(Some(Launch { blocks, body, threads, roles, shared: shared_plan(body)? }))
    }

    /// All launches of a host list, in order, at any depth of host conditions.
    ///
    /// # Errors
    /// As [`Launch::of`].
    pub fn all(stmts: &'a [Stmt]) -> Result<Vec<Launch<'a>>, Diagnosis> {
        let mut out = Vec::new();
        for stmt in stmts {
            if let Stmt::If(i) = stmt {
                out.extend(Launch::all(&i.then)?);
                out.extend(Launch::all(&i.otherwise)?);
            } else {
                out.extend(Launch::of(stmt)?);
            }
        }
        Ok(out)
    }
}

/// The threads of a block with such a body: as many as its thread loops and roles ask for, in whole warps.
pub(crate) fn block_threads(body: &[Stmt]) -> i64 {
    let of_roles = roles(body).iter().map(|r| r.hi).max().unwrap_or(0);
    (threads(body).max(of_roles).max(1)).saturating_add(31) / 32 * 32
}

/// The threads that the thread loops of a body ask for.
fn threads(body: &[Stmt]) -> i64 {
    let mut most = 0;
    walk::for_each(body, &mut |stmt| {
        if let Stmt::For(l) = stmt
            && let Some((count, pitch)) = l.threads()
        {
            most = most.max(count.saturating_mul(pitch));
        }
    });
    most
}

fn roles(body: &[Stmt]) -> Vec<Role> {
    let mut out = Vec::new();
    walk::for_each(body, &mut |stmt| {
        if let Stmt::Roles(roles) = stmt {
            out.extend(roles.iter().cloned());
        }
    });
    out
}

/// The alignment of a shared buffer in bytes: that of the swizzle if its layout exclusive-ors, else that of the widest vector
/// access, and of a line of all banks.
pub(crate) fn alignment(buffer: &Buffer) -> i64 {
    let swizzled = buffer.layout.as_ref().is_some_and(Layout::is_swizzled);
    if swizzled { SWIZZLE_ALIGNMENT } else { PLAIN_ALIGNMENT }
}

/// One after another, in the order of the text. Buffers do not overlap.
fn shared_plan(body: &[Stmt]) -> Result<SharedPlan, Diagnosis> {
    let mut plan = SharedPlan::default();
    let mut failure = None;
    walk::for_each(body, &mut |stmt| match stmt {
        Stmt::Alloc(buffer) if buffer.space == Space::Shared && failure.is_none() => {
            match shared_elements(buffer) {
                Ok(elements) => {
                    let align = alignment(buffer);
                    let offset = (plan.bytes + align - 1) / align * align;
                    plan.bytes = offset.saturating_add(elements.saturating_mul(buffer.element_bytes()));
                    plan.buffers.push(SharedBuffer { buffer: buffer.clone(), offset, elements });
                }
                Err(diagnosis) => failure = Some(diagnosis.at(format!("shared buffer `{}`", buffer.sym))),
            }
        }
        Stmt::AllocRing(ring) => plan.rings.push((ring.clone(), 0)),
        _ => {}
    });
    for (ring, offset) in &mut plan.rings {
        *offset = (plan.bytes + 7) / 8 * 8;
        plan.bytes = offset.saturating_add(ring.depth.saturating_mul(8));
    }
    failure.map_or(Ok(plan), Err)
}

/// More threads in a block than any device has; more are not enumerated.
const MOST_THREADS: i64 = 1 << 16;
/// More shared memory than any device has; larger layouts are not enumerated.
const MOST_ELEMENTS: i64 = 1 << 20;

/// The places of a shared buffer, those that its layout leaves free among them.
///
/// # Errors
/// Extents that are no constants, and more elements than any device has room for.
pub fn shared_elements(buffer: &Buffer) -> Result<i64, Diagnosis> {
    let extents = buffer.constant_extents().ok_or_else(|| {
        Diagnosis::new("its extents are not constants")
            .because("shared memory is allocated when the kernel is compiled")
    })?;
    let elements = extents.iter().try_fold(1i64, |n, e| n.checked_mul((*e).max(0)));
    match elements {
        Some(n) if n <= MOST_ELEMENTS => {
            let Some(layout) = &buffer.layout else { return Ok(n) };
            let span = layout.span(&extents)?;
            // Parts lie in planes of whole rows, one behind the other.
            let next_row = extents.iter().enumerate().map(|(d, e)| Index::from(if d == 0 { *e } else { 0 }));
            let rows = layout.apply(&next_row.collect::<Vec<_>>()).as_constant().filter(|_| buffer.split);
            Ok(rows.map_or(span, |rows| rows.max(span)))
        }
        _ => Err(Diagnosis::new("it is larger than the shared memory of any device")),
    }
}

#[cfg(test)]
mod tests {
    use super::Launch;
    use crate::ir::parse;

    #[test]
    fn a_block_is_as_large_as_its_largest_nest_and_shared_buffers_do_not_overlap() {
        let text = "program p(n: size, y: out f32[n]) { for b in block.x(ceil(n, 100)) {
            alloc s: f32[100] shared
            alloc q: f64[3] shared
            alloc full: mbar ring 4 count 1
            for t in threads(100@1) { s[t] = 0 }
        } }";
        let program = parse::program(text).expect("reads");
        let launches = Launch::all(&program.body).expect("is well formed");
        let [launch] = &launches[..] else { panic!("one launch") };
        assert_eq!(launch.threads, 128);
        let offsets: Vec<_> = launch.shared.buffers.iter().map(|b| (b.offset, b.elements)).collect();
        assert_eq!(offsets, [(0, 100), (512, 3)]);
        assert_eq!(launch.shared.rings[0].1, 536);
        assert_eq!(launch.shared.bytes, 568);
    }
}
