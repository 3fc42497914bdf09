//! The matrices of a product in the memory of a GPU, in as many copies as timing wants.

use std::rc::Rc;

use warpwright_cuda::{Buffer, Device, Result, Stream, cublas, measure};

use crate::inputs::Operands;
use crate::matrix::Matrix;

/// One or more copies of A, B and C. Timed launches rotate among them, so that none finds its operands in the
/// second-level cache because the launch before has left them there.
#[derive(Clone)]
pub struct OperandSets {
    sets: Vec<Set>,
}

#[derive(Clone)]
struct Set {
    a: Rc<Buffer>,
    b: Rc<Buffer>,
    c: Rc<Buffer>,
}

impl OperandSets {
    /// One copy, in buffers that others may use at other times.
    pub fn of([a, b, c]: [Rc<Buffer>; 3]) -> OperandSets {
        OperandSets { sets: vec![Set { a, b, c }] }
    }

    /// One copy.
    pub fn single(device: &Device, operands: &Operands) -> Result<OperandSets> {
        OperandSets::upload(device, operands, 1)
    }

    /// As many copies as fill the second-level cache three times over, or as many of them as there is room for.
    pub fn rotating(device: &Device, operands: &Operands) -> Result<OperandSets> {
        let bytes = [&operands.a, &operands.b, &operands.c].iter().map(|m| m.bytes().len()).sum();
        let (free, _) = device.memory()?;
        // A tenth of the memory stays free for scratch of the kernel, for cuBLAS and for others.
        let room = (free / 10 * 9) / usize::max(bytes, 1);
        OperandSets::upload(
            device,
            operands,
            measure::rotation(bytes, device.info().l2_bytes).min(room).max(1),
        )
    }

    fn upload(device: &Device, operands: &Operands, copies: usize) -> Result<OperandSets> {
        // Tensor maps want an address, also of a matrix that has no element.
        let input =
            |bytes: &[u8]| device.upload(if bytes.is_empty() { &[0; 16] } else { bytes }).map(Rc::new);
        // Operands that are equal are one buffer, as where somebody multiplies a matrix by itself.
        let same = operands.a == operands.b;
        let one = || {
            let a = input(operands.a.bytes())?;
            Ok(Set {
                b: if same { Rc::clone(&a) } else { input(operands.b.bytes())? },
                a,
                c: Rc::new(device.upload(operands.c.bytes())?),
            })
        };
        Ok(OperandSets { sets: (0..copies).map(|_| one()).collect::<Result<_>>()? })
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
        // As f32, f64 or bf16 a NaN; as an integer far out of the range of random products.
        self.sets.iter().try_for_each(|set| set.c.fill(stream, 0xff))
    }

    /// Puts the old C back into every copy.
    pub fn restore_c(&self, stream: &Stream, operands: &Operands) -> Result<()> {
        self.sets.iter().try_for_each(|set| set.c.write(stream, 0, operands.c.bytes()))
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
        self.sets[copy].c.read(stream, first * row_bytes, &mut c.bytes_mut()[bytes])
    }

    /// C of one copy, padding included, after what the stream holds.
    pub fn download_c(&self, stream: &Stream, copy: usize) -> Result<Vec<u8>> {
        self.sets[copy].c.download(stream)
    }
}
