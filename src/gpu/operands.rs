//! The matrices of a product in the memory of a GPU, in as many copies as timing wants.

use std::rc::Rc;

use warpwright_cuda::{Buffer, Device, DevicePointer, Result, Stream, cublas, measure};

use crate::inputs::Operands;
use crate::matrix::Matrix;
use crate::problem::{Offsets, Problem};

/// One or more copies of A, B and C. Timed launches rotate among them, so that none finds its operands in the
/// second-level cache because the launch before has left them there.
#[derive(Clone)]
pub struct OperandSets {
    sets: Vec<Set>,
    /// Whether others use the buffers too, so that what lies around the matrices says nothing.
    shared: bool,
}

#[derive(Clone)]
struct Set {
    a: Placed,
    b: Placed,
    c: Placed,
}

/// A matrix in a buffer, which may hold more.
#[derive(Clone)]
struct Placed {
    buffer: Rc<Buffer>,
    /// The byte at which it starts.
    start: usize,
    /// Its bytes, padding of rows included.
    bytes: usize,
}

/// Every byte before and behind a matrix, and of a C that is yet to be computed. As f32, f64 or bf16 it is a NaN; as an
/// integer far out of the range of random products.
const POISON: u8 = 0xff;
/// Bytes behind a matrix: tensor maps want an address, also of a matrix that has no element.
const BEHIND: usize = 256;

impl Placed {
    fn upload(device: &Device, elements_before: i64, matrix: &Matrix) -> Result<Placed> {
        let start = (elements_before * matrix.dtype().bytes()) as usize;
        let buffer = device.upload_between(&vec![POISON; start], matrix.bytes(), &[POISON; BEHIND])?;
        Ok(Placed { buffer: Rc::new(buffer), start, bytes: matrix.bytes().len() })
    }

    fn pointer(&self) -> DevicePointer {
        DevicePointer(self.buffer.pointer().0 + self.start as u64)
    }

    /// Whether what lies before and behind the matrix is as it was.
    fn is_alone(&self, stream: &Stream) -> Result<bool> {
        let end = self.start + self.bytes;
        for part in [0..self.start, end..self.buffer.bytes()] {
            let mut found = vec![POISON; part.len()];
            self.buffer.read(stream, part.start, &mut found)?;
            if found.iter().any(|byte| *byte != POISON) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// How many copies of so many bytes fill the second-level cache three times over: as many as there is room for, of no fewer than these.
fn copies(device: &Device, bytes: usize, fewest: usize) -> Result<usize> {
    let (free, _) = device.memory()?;
    // A tenth of the memory stays free for scratch of the kernel, for cuBLAS and for others.
    let room = (free / 10 * 9) / usize::max(bytes, 1);
    Ok(measure::rotation(bytes, device.info().l2_bytes).max(fewest).min(room).max(1))
}

impl OperandSets {
    /// One copy of the matrices of a problem in buffers that others may use at other times.
    pub fn of(problem: &Problem, buffers: [Rc<Buffer>; 3]) -> OperandSets {
        let (starts, bytes) = (problem.bytes_before(), problem.stored_bytes());
        let placed = |buffer, matrix: usize| Placed { buffer, start: starts[matrix], bytes: bytes[matrix] };
        let [a, b, c] = buffers;
        let set = Set { a: placed(a, 0), b: placed(b, 1), c: placed(c, 2) };
        OperandSets { sets: vec![set], shared: true }
    }

    /// One copy.
    pub fn single(device: &Device, problem: &Problem, operands: &Operands) -> Result<OperandSets> {
        OperandSets::upload(device, problem, operands, 1)
    }

    /// As many copies as fill the second-level cache three times over, or as many of them as there is room for.
    pub fn rotating(device: &Device, problem: &Problem, operands: &Operands) -> Result<OperandSets> {
        let bytes = [&operands.a, &operands.b, &operands.c].iter().map(|m| m.bytes().len()).sum();
        let copies = copies(device, bytes, 1)?;
        OperandSets::upload(device, problem, operands, copies)
    }

    /// As many copies of B likewise, and no fewer than these where there is room, with one A and one C: the weights of layers that come one
    /// after the other, whose input the layer before has just written.
    pub fn rotating_weights(
        device: &Device,
        problem: &Problem,
        operands: &Operands,
        fewest: usize,
    ) -> Result<OperandSets> {
        let copies = copies(device, operands.b.bytes().len(), fewest)?;
        let mut all = OperandSets::upload(device, problem, operands, 1)?;
        let first = all.sets[0].clone();
        for _ in 1..copies {
            let b = Placed::upload(device, problem.offset.b, &operands.b)?;
            all.sets.push(Set { b, ..first.clone() });
        }
        Ok(all)
    }

    fn upload(device: &Device, problem: &Problem, operands: &Operands, copies: usize) -> Result<OperandSets> {
        let Offsets { a, b, c } = problem.offset;
        // Operands that are equal are one buffer, as where somebody multiplies a matrix by itself.
        let same = a == b && operands.a == operands.b;
        let one = || {
            let a = Placed::upload(device, a, &operands.a)?;
            Ok(Set {
                b: if same { a.clone() } else { Placed::upload(device, b, &operands.b)? },
                a,
                c: Placed::upload(device, c, &operands.c)?,
            })
        };
        Ok(OperandSets { sets: (0..copies).map(|_| one()).collect::<Result<_>>()?, shared: false })
    }

    /// How many copies there are.
    pub fn len(&self) -> usize {
        self.sets.len()
    }

    /// Never: there is one copy at least.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Where the matrices of launch number `launch` are.
    pub fn at(&self, launch: usize) -> cublas::Operands {
        let set = &self.sets[launch % self.sets.len()];
        cublas::Operands { a: set.a.pointer(), b: set.b.pointer(), c: set.c.pointer() }
    }

    /// Fills C of every copy with a pattern that no right result has, so that an element that is not written shows.
    pub fn poison_c(&self, stream: &Stream) -> Result<()> {
        self.sets.iter().try_for_each(|set| set.c.buffer.fill(stream, POISON))
    }

    /// Fills A and B of every copy with zeros, bytes around them included.
    pub fn clear_operands(&self, stream: &Stream) -> Result<()> {
        self.sets.iter().flat_map(|set| [&set.a, &set.b]).try_for_each(|placed| placed.buffer.fill(stream, 0))
    }

    /// Puts the old C back into every copy.
    pub fn restore_c(&self, stream: &Stream, operands: &Operands) -> Result<()> {
        self.sets.iter().try_for_each(|set| set.c.buffer.write(stream, set.c.start, operands.c.bytes()))
    }

    /// Rows of C of one copy from `first` on, padding included, into some rows of a matrix, after what the stream holds.
    pub fn download_rows(
        &self,
        stream: &Stream,
        copy: usize,
        c: &mut Matrix,
        rows: std::ops::Range<usize>,
        first: usize,
    ) -> Result<()> {
        let row_bytes = c.stride() * c.dtype().bytes() as usize;
        let bytes = rows.start * row_bytes..rows.end * row_bytes;
        let from = &self.sets[copy].c;
        from.buffer.read(stream, from.start + first * row_bytes, &mut c.bytes_mut()[bytes])
    }

    /// C of one copy, padding included, after what the stream holds.
    pub fn download_c(&self, stream: &Stream, copy: usize) -> Result<Vec<u8>> {
        let c = &self.sets[copy].c;
        let mut bytes = vec![0; c.bytes];
        c.buffer.read(stream, c.start, &mut bytes)?;
        Ok(bytes)
    }

    /// Whether a call on one copy has left the memory before and behind C as it was.
    pub fn is_c_alone(&self, stream: &Stream, copy: usize) -> Result<bool> {
        if self.shared { Ok(true) } else { self.sets[copy].c.is_alone(stream) }
    }
}
