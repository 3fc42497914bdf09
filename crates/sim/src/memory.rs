//! Device memory: what all blocks share.

use std::sync::atomic::AtomicU64;

use crate::arithmetic::Arithmetic;
use crate::code::GlobalInfo;
use crate::shadow::GlobalShadow;

/// A tensor or scratch buffer.
#[derive(Debug)]
pub(crate) struct Global<A: Arithmetic> {
    pub cells: Vec<A::Cell>,
    /// Who touched what, in the launch that runs, if it writes the buffer and is checked.
    pub shadow: Option<GlobalShadow>,
}

impl<A: Arithmetic> Global<A> {
    /// All poison.
    pub fn poison(elements: usize) -> Global<A> {
        Global { cells: (0..elements).map(|_| A::POISON.cell()).collect(), shadow: None }
    }

    pub fn load(&self, e: usize) -> A {
        self.cells.get(e).map_or(A::POISON, A::load)
    }

    pub fn store(&self, e: usize, value: A) {
        if let Some(cell) = self.cells.get(e) {
            A::store(cell, value);
        }
    }
}

/// Atomics that are 0. Untouched pages of a large one cost nothing.
pub(crate) fn zeros(count: usize) -> Vec<AtomicU64> {
    let mut plain = std::mem::ManuallyDrop::new(vec![0u64; count]);
    // SAFETY: `AtomicU64` has the size, alignment and bit validity of `u64`, and the vector is not used again.
    unsafe { Vec::from_raw_parts(plain.as_mut_ptr().cast(), plain.len(), plain.capacity()) }
}

/// `C[2, 3]` for the element at a logical index.
pub(crate) fn element(name: &str, index: &[i64]) -> String {
    let index: Vec<_> = index.iter().map(i64::to_string).collect();
    format!("{name}[{}]", index.join(", "))
}

/// The place of the element at a logical index, if there is one.
pub(crate) fn place(info: &GlobalInfo, index: &[i64]) -> Option<usize> {
    let mut offset = info.start;
    for ((i, extent), stride) in index.iter().zip(&info.extents).zip(&info.strides) {
        if !(0..*extent).contains(i) {
            return None;
        }
        offset += i * stride;
    }
    usize::try_from(offset).ok()
}
