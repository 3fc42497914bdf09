//! Physical storage: where each element of a buffer really is.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use warpwright_core::ir::{Access, Buffer, Io, Space};
use warpwright_core::layout::{Fragment, indices, row_major_strides};

use super::element::Element;
use super::machine::Machine;
use super::{Fault, names::Names};

/// Indices of buffers with so many dimensions at most stand on the stack.
const FEW_DIMS: usize = 8;

/// A buffer and how its elements are found.
pub(super) struct Array<'a> {
    pub buffer: &'a Buffer,
    pub extents: Vec<i64>,
    pub home: Home,
}

/// The memory that holds a buffer.
pub(super) enum Home {
    /// Device memory: which allocation, and its strides.
    Device { allocation: usize, strides: Vec<i64> },
    /// Bytes of the block: the element at flat logical index `i` starts at `offset + bytes * table[i]`.
    Shared { offset: i64, bytes: i64, strides: Vec<i64>, table: Vec<i64> },
    /// Registers of threads.
    Registers(Registers),
}

/// Which thread and register hold each element.
pub(super) struct Registers {
    /// Registers of each thread.
    pub size: usize,
    /// Threads between neighbours of each leading dimension; 0 if it is not distributed.
    pub pitches: Vec<i64>,
    /// Registers between neighbours of each leading dimension; 0 if it is distributed.
    pub strides: Vec<i64>,
    /// For the last two dimensions: columns, and who holds each element.
    pub fragment: Option<(i64, Owners)>,
}

/// The place of one element.
#[derive(Clone, Copy, Debug)]
pub(super) enum Location {
    Device { allocation: usize, element: usize },
    Shared { block: usize, byte: usize },
    Register { thread: usize, buffer: usize, number: usize },
}

/// A register, and whether ordinary code has written it since the last `wgmma.fence`.
#[derive(Clone, Copy)]
pub(super) struct Register {
    pub value: Element,
    pub unfenced: bool,
}

impl Register {
    pub const EMPTY: Register = Register { value: Element::POISON, unfenced: false };
}

/// The (thread, register) of each element of a tile, in C order.
pub(super) type Owners = Arc<Vec<(i64, i64)>>;

/// Who holds each element of a tile. The tables are few and never change, so each is enumerated once per process.
pub(super) fn owners(fragment: &'static Fragment, rows: i64, columns: i64) -> Result<Owners, Fault> {
    type Tables = HashMap<(&'static str, i64, i64), Owners>;
    static KNOWN: LazyLock<Mutex<Tables>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(owners) = known.get(&(fragment.name, rows, columns)) {
        return Ok(owners.clone());
    }
    let places = fragment
        .owners(rows, columns)
        .ok_or_else(|| Fault::Refused(format!("{} has no tile of {rows} x {columns}", fragment.name)))?;
    let owners: Owners = Arc::new(indices(&[rows, columns]).map(|at| places[&(at[0], at[1])]).collect());
    known.insert((fragment.name, rows, columns), owners.clone());
    Ok(owners)
}

impl Registers {
    pub fn of(buffer: &Buffer, extents: &[i64]) -> Result<Registers, Fault> {
        let leading = extents.len() - if buffer.fragment.is_some() { 2 } else { 0 };
        let mut registers =
            Registers { size: 1, pitches: vec![0; leading], strides: vec![0; leading], fragment: None };
        if let Some(fragment) = buffer.fragment {
            let (rows, columns) = (extents[leading], extents[leading + 1]);
            registers.size = (rows * columns / fragment.threads) as usize;
            registers.fragment = Some((columns, owners(fragment, rows, columns)?));
        }
        for i in (0..leading).rev() {
            match buffer.dims[i].pitch {
                Some(pitch) => registers.pitches[i] = pitch,
                None => {
                    registers.strides[i] = registers.size as i64;
                    registers.size *= extents[i].max(0) as usize;
                }
            }
        }
        Ok(registers)
    }

    /// The thread, counted from the first that shares the buffer, and its register.
    pub fn place(&self, index: &[i64]) -> (i64, usize) {
        let (mut thread, mut number) = (0, 0);
        for (i, (pitch, stride)) in index.iter().zip(self.pitches.iter().zip(&self.strides)) {
            thread += i * pitch;
            number += i * stride;
        }
        if let Some((columns, owners)) = &self.fragment {
            let at = &index[self.pitches.len()..];
            let (owner, register) = owners[(at[0] * columns + at[1]) as usize];
            thread += owner;
            number += register;
        }
        (thread, number as usize)
    }
}

impl Home {
    /// A shared buffer that starts at byte `offset` of the block.
    pub fn shared(buffer: &Buffer, extents: &[i64], offset: i64, names: &Names) -> Home {
        let mut table = Vec::new();
        if let Some(layout) = &buffer.layout {
            let mut env = vec![0; names.count];
            for index in indices(extents) {
                for (axis, value) in layout.axes.iter().zip(&index) {
                    env[names.slot(axis)] = *value;
                }
                table.push(names.index(&layout.offset, &env));
            }
        }
        Home::Shared { offset, bytes: buffer.element_bytes(), strides: row_major_strides(extents), table }
    }
}

impl<'a> Machine<'a> {
    /// The array of a buffer's slot.
    pub fn array(&self, buffer: usize) -> &Array<'a> {
        self.arrays[buffer].as_ref().expect("a buffer is placed before the launch that uses it")
    }

    /// The element that thread `t` means by `access`.
    // Inlined, as is `locate`: to hand a place over through memory took a quarter of the engine's time.
    #[inline(always)]
    pub fn element(&self, t: usize, access: &Access) -> Result<Location, Fault> {
        let dims = access.index.len();
        let (mut few, mut many) = ([0; FEW_DIMS], Vec::new());
        let index = match few.get_mut(..dims) {
            Some(few) => few,
            None => {
                many.resize(dims, 0);
                &mut many[..]
            }
        };
        for (at, i) in index.iter_mut().zip(&access.index) {
            *at = self.names.index(i, &self.threads[t].env);
        }
        let buffer = self.names.slot(&access.buffer);
        let location = self.locate(t, buffer, index)?;
        match location {
            Location::Register { thread, .. } if thread != t => Err(Fault::Ownership {
                buffer: access.buffer.name().into(),
                index: index.to_vec(),
                thread: self.threads[t].id,
                owner: self.threads[thread].id,
            }),
            _ => Ok(location),
        }
    }

    /// Where an element is, for thread `t` or a collective it belongs to.
    #[inline(always)]
    pub fn locate(&self, t: usize, buffer: usize, index: &[i64]) -> Result<Location, Fault> {
        let array = self.array(buffer);
        if !inside(&array.extents, index) {
            return Err(Fault::OutOfBounds { buffer: array.buffer.sym.name().into(), index: index.to_vec() });
        }
        let flat = |strides: &[i64]| index.iter().zip(strides).map(|(i, s)| i * s).sum::<i64>();
        Ok(match &array.home {
            Home::Device { allocation, strides } => {
                Location::Device { allocation: *allocation, element: flat(strides) as usize }
            }
            Home::Shared { offset, bytes, strides, table } => {
                let flat = flat(strides);
                let element = if table.is_empty() { flat } else { table[flat as usize] };
                Location::Shared { block: self.threads[t].block, byte: (offset + bytes * element) as usize }
            }
            Home::Registers(registers) => {
                let (owner, number) = registers.place(index);
                let thread = self.thread(t, self.threads[t].base[buffer] + owner)?;
                Location::Register { thread, buffer, number }
            }
        })
    }

    /// Thread number `id` of the block that thread `t` belongs to.
    pub fn thread(&self, t: usize, id: i64) -> Result<usize, Fault> {
        let block = &self.blocks[self.threads[t].block];
        if (0..block.threads).contains(&id) {
            Ok(block.first_thread + id as usize)
        } else {
            Err(Fault::Refused(format!("there is no thread {id} in a block of {}", block.threads)))
        }
    }

    /// Reads an element; `asynchronous` reads do not see ordinary stores that no `fence.async` has followed.
    pub fn read(&self, at: Location, asynchronous: bool) -> Result<Element, Fault> {
        match at {
            Location::Device { allocation, element } => Ok(self.device[allocation][element]),
            Location::Shared { block, byte } => {
                let block = &self.blocks[block];
                let value = block.shared.get(byte).copied();
                let hidden = asynchronous && block.unfenced.get(byte) == Some(&true);
                let value = value.ok_or_else(|| Fault::Refused(format!("there is no shared byte {byte}")))?;
                Ok(if hidden { Element::POISON } else { value })
            }
            Location::Register { thread, buffer, number } => {
                Ok(self.threads[thread].registers[buffer].get(number).map_or(Element::POISON, |r| r.value))
            }
        }
    }

    /// Writes an element; `by` is the thread if ordinary code writes, as opposed to the async proxy or wgmma.
    pub fn write(&mut self, at: Location, value: Element, by: Option<usize>) -> Result<(), Fault> {
        match at {
            Location::Device { allocation, element } => {
                if let (true, Some(buffer)) = (value.is_poison(), &self.outputs[allocation]) {
                    return Err(Fault::Poison { buffer: buffer.clone(), element });
                }
                self.device[allocation][element] = value;
            }
            Location::Shared { block, byte } => {
                let cell = self.blocks[block].shared.get_mut(byte);
                *cell.ok_or_else(|| Fault::Refused(format!("there is no shared byte {byte}")))? = value;
                if self.proxies {
                    self.blocks[block].unfenced[byte] = by.is_some();
                    if let Some(by) = by {
                        self.threads[by].unfenced.push(byte);
                    }
                }
            }
            Location::Register { thread, buffer, number } => {
                let register = Register { value, unfenced: by.is_some() };
                match self.threads[thread].registers[buffer].get_mut(number) {
                    Some(cell) => *cell = register,
                    None => {
                        let name = &self.array(buffer).buffer.sym;
                        return Err(Fault::Refused(format!("`{name}` is used before it is declared")));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether an index lies in the box of the extents.
pub(super) fn inside(extents: &[i64], index: &[i64]) -> bool {
    index.len() == extents.len() && index.iter().zip(extents).all(|(i, e)| (0..*e).contains(i))
}

/// Whether poison may not be stored to a buffer.
pub(super) fn is_output(buffer: &Buffer) -> bool {
    matches!(buffer.space, Space::Param(Io::Out | Io::InOut))
}

#[cfg(test)]
mod tests {
    use warpwright_core::ir::parse;

    use crate::coroutine::{Arguments, Element, Policy, run};

    #[test]
    fn buffers_may_have_more_dimensions_than_indices_have_room_on_the_stack() {
        for dims in [8, 9, 12] {
            let extents = format!("2, {}3", "1, ".repeat(dims - 2));
            let index = |first: &str, last: &str| format!("{first}, {}{last}", "0, ".repeat(dims - 2));
            let program = parse::program(&format!(
                "program p(x: in i32[2, 3], y: out i32[2, 3]) {{
                    alloc many: i32[{extents}] global
                    for i in 0..2, j in 0..3 {{ many[{}] = x[i, j] }}
                    for i in 0..2, j in 0..3 {{ y[i, j] = many[{}] }}
                }}",
                index("i", "j"),
                index("1 - i", "j"),
            ))
            .expect("reads");
            let numbers = |values: [u64; 6]| values.map(Element::new).to_vec();
            let mut arguments = Arguments::default();
            arguments.tensors.insert("x".into(), numbers([1, 2, 3, 4, 5, 6]));
            arguments.tensors.insert("y".into(), numbers([0; 6]));
            run(&program, &mut arguments, Policy::from_seed(1)).expect("runs");
            assert_eq!(arguments.tensors["y"], numbers([4, 5, 6, 1, 2, 3]), "{dims}");
        }
    }
}
