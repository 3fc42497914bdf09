//! What accesses and instructions ask of memory, and what matrix units multiply.

use std::rc::Rc;

use crate::dtype::DType;
use crate::index::Index;
use crate::instr::{Behaviour, by_name};
use crate::ir::{Access, Buffer, Instruction, Operand, Space, Span, Window};

use super::super::lanes::{Mask, Value, WARP};
use super::super::operations;
use super::super::requests::{Tally, lanes_at_a_time};
use super::super::sites::{Sample, Taken};
use super::{Reuse, Walk, add, add_of, lanes_where};
use crate::sym::Sym;

impl Walk {
    /// How many elements side by side a vector loop makes of one.
    pub(super) fn width(&self, index: &[Index]) -> i64 {
        match &self.vector {
            Some((var, width)) if index.iter().any(|i| i.mentions(var)) => *width,
            _ => 1,
        }
    }

    /// The address of an element for each lane, in bytes from the start of the buffer, or of its first plane.
    fn address(&mut self, buffer: &Buffer, index: &[Value]) -> Value {
        let offset = if let Some(layout) = &buffer.layout {
            layout.axes.iter().zip(index).for_each(|(axis, value)| self.values.set(axis, *value));
            self.values.index(&layout.offset)
        } else if let (Some(stride), [row, column]) = (&buffer.row_stride, index) {
            let stride = self.values.index(&Index::var(stride));
            row.zip(&stride, |row, stride| row * stride).zip(column, |row, column| row + column)
        } else {
            let extents = buffer.dims.iter().map(|d| self.values.index(&d.extent));
            index.iter().zip(extents).fold(Value::Same(0), |sum, (i, extent)| {
                sum.zip(&extent, |sum, extent| sum * extent).zip(i, |sum, i| sum + i)
            })
        };
        let bytes = buffer.plane_bytes();
        offset.zip(&Value::Same(bytes), |offset, bytes| offset * bytes)
    }

    pub(super) fn access(&mut self, access: &Access, writes: bool) {
        let Some(buffer) = self.buffers.get(&access.buffer).cloned() else { return };
        if buffer.space == Space::Reg {
            return;
        }
        self.at(std::ptr::from_ref(access).addr());
        let mut weight = self.weight;
        if !writes && self.reuse == Reuse::AsCompiled {
            let unused =
                self.unrolled.iter().filter(|(var, _)| !access.index.iter().any(|i| i.mentions(var)));
            weight /= unused.map(|(_, count)| count).product::<f64>();
        }
        let bytes = buffer.plane_bytes();
        let address = |walk: &mut Walk| {
            let index: Vec<Value> = access.index.iter().map(|i| walk.values.index(i)).collect();
            walk.address(&buffer, &index)
        };
        let first = address(self);
        let width = self.width(&access.index);
        let Some((var, _)) = self.vector.clone().filter(|_| width > 1) else {
            let together = if writes { 1 } else { self.neighbours(access, &buffer) };
            // The iteration at hand may be any of those that are loaded at once; all begin where the first does.
            let size = bytes * together;
            let first = first
                .zip(&Value::Same(size), |at, size| at - if together > 1 { at.rem_euclid(size) } else { 0 });
            return self.request(&buffer, writes, &first, bytes * together, weight / together as f64);
        };
        // Neighbours are one wide access, what lies apart is one after the other.
        self.values.set(&var, Value::Same(1));
        let second = address(self);
        let active = (0..WARP).find(|lane| self.mask >> lane & 1 == 1).unwrap_or(0);
        if second.of(active) - first.of(active) == bytes {
            self.request(&buffer, writes, &first, bytes * width, weight);
        } else {
            for v in 0..width {
                self.values.set(&var, Value::Same(v));
                let address = address(self);
                self.request(&buffer, writes, &address, bytes, weight);
            }
        }
        self.values.set(&var, Value::Same(0));
    }

    /// How many elements of shared memory a compiler loads at once in place of one: those through which an unrolled loop runs one after the
    /// other, up to 16 bytes, where each such group begins at a multiple of its size.
    fn neighbours(&mut self, access: &Access, buffer: &Buffer) -> i64 {
        if buffer.space != Space::Shared || self.reuse == Reuse::AsWritten {
            return 1;
        }
        let bytes = buffer.plane_bytes();
        let unrolled: Vec<Sym> = self.unrolled.iter().map(|(var, _)| var.clone()).collect();
        let drawn = |walk: &Walk, var: &Sym| walk.serial.iter().rev().find(|d| d.var == *var).cloned();
        for var in unrolled.iter().rev().filter(|var| access.index.iter().any(|i| i.mentions(var))) {
            let Some(drawn) = drawn(self, var) else { continue };
            let here = self.values.index(&Index::var(var));
            let mut at = |iteration: i64| {
                self.values.set(var, drawn.at(iteration));
                let index: Vec<Value> = access.index.iter().map(|i| self.values.index(i)).collect();
                self.address(buffer, &index)
            };
            let (first, second) = (at(0), at(1));
            self.values.set(var, here);
            let active = lanes_where(|lane| second.of(lane) - first.of(lane) == bytes);
            let whole = |n: i64| lanes_where(|lane| first.of(lane) % (n * bytes) == 0);
            let fits =
                |n: &i64| n * bytes <= 16 && drawn.count % n == 0 && whole(*n) & self.mask == self.mask;
            if active & self.mask == self.mask {
                return [4, 2].into_iter().find(fits).unwrap_or(1);
            }
        }
        1
    }

    /// The access at hand, by where it stands in memory.
    fn at(&mut self, access: usize) {
        if let Some(recorder) = &mut self.recorder {
            recorder.at.1 = access;
        }
    }

    /// Notes a request of the active lanes, where that is wanted.
    fn note(
        &mut self,
        buffer: &Buffer,
        writes: bool,
        address: &Value,
        bytes: i64,
        (weight, taken): (f64, f64),
    ) {
        let Some(recorder) = &mut self.recorder else { return };
        let lanes = std::array::from_fn(|lane| (self.mask >> lane & 1 == 1).then(|| address.of(lane)));
        let active: Vec<(u8, i64)> =
            (0..).zip(lanes).filter_map(|(l, a): (u8, Option<i64>)| Some((l, a?))).collect();
        let (at_a_time, (least, wanted)) = if buffer.space == Space::Shared {
            (lanes_at_a_time(&active, bytes), Tally::least_wavefronts(&active, bytes))
        } else {
            let addresses: Vec<i64> = active.iter().map(|(_, address)| *address).collect();
            (WARP as u8, Tally::least_sectors(&addresses, bytes))
        };
        let sample = Some(Sample { bytes, lanes, at_a_time, passes: taken as u64, least });
        let taken = Taken { weight, passes: taken, least: least as f64, wanted: wanted as f64, sample };
        recorder.note(buffer, writes, taken);
    }

    /// Counts a request of the active lanes for so many bytes each, of every plane of the buffer.
    fn request(&mut self, buffer: &Buffer, writes: bool, address: &Value, bytes: i64, weight: f64) {
        let weight = weight * buffer.planes() as f64;
        let active = (0..WARP).filter(|lane| self.mask >> lane & 1 == 1);
        let (requests, passes, taken);
        if buffer.space == Space::Shared {
            let addresses: Vec<(u8, i64)> = active.map(|lane| (lane as u8, address.of(lane))).collect();
            taken = self.tally.wavefronts(&addresses, bytes) as f64;
            (requests, passes) = if writes {
                (&mut self.counts.shared_store_requests, &mut self.counts.shared_store_wavefronts)
            } else {
                (&mut self.counts.shared_load_requests, &mut self.counts.shared_load_wavefronts)
            };
        } else {
            let addresses: Vec<i64> = active.map(|lane| address.of(lane)).collect();
            taken = Tally::sectors(&addresses, bytes) as f64;
            let lines = weight * Tally::lines(&addresses, bytes) as f64;
            self.counts.global_lines += lines;
            self.counts.global_store_lines += if writes { lines } else { 0.0 };
            add_of(&mut self.counts.lines, buffer.sym.name(), lines);
            add_of(&mut self.counts.sectors, buffer.sym.name(), weight * taken);
            (requests, passes) = if writes {
                (&mut self.counts.global_store_requests, &mut self.counts.global_store_sectors)
            } else {
                (&mut self.counts.global_load_requests, &mut self.counts.global_load_sectors)
            };
        }
        *requests += weight;
        *passes += weight * taken;
        self.note(buffer, writes, address, bytes, (weight, taken));
    }

    /// The address of the first element of a window.
    fn start(&mut self, window: &Window) -> Option<(Rc<Buffer>, Value)> {
        self.at(std::ptr::from_ref(window).addr());
        let buffer = self.buffers.get(&window.buffer)?.clone();
        let index: Vec<Value> = window.start().iter().map(|i| self.values.index(i)).collect();
        let address = self.address(&buffer, &index);
        Some((buffer, address))
    }

    pub(super) fn instruction(&mut self, i: &Instruction) {
        let Some(record) = by_name(&i.name) else { return };
        let windows: Vec<&Window> = i
            .operands
            .iter()
            .filter_map(|o| if let Operand::Window(w) = o { Some(w) } else { None })
            .collect();
        match record.behaviour {
            Behaviour::Multiply { m, n, k, .. } => {
                if let Some(dtype) = self.products(&windows, (m * n * k) as f64) {
                    self.counts.matrix += self.weight * operations::of_product([m, n, k], dtype);
                    if m == 8 {
                        self.counts.small_products +=
                            self.weight * (m * n * k) as f64 * operations::real(dtype);
                    }
                }
            }
            Behaviour::WarpgroupMultiply { k } => {
                let columns = windows
                    .first()
                    .and_then(|w| self.buffers.get(&w.buffer)?.dims.last()?.extent.as_constant());
                let real = (64 * columns.unwrap_or(0) * k) as f64 / 4.0;
                if let Some(dtype) = self.products(&windows, real) {
                    self.counts.matrix += self.weight;
                    self.counts.warpgroup_products += self.weight * real * operations::real(dtype);
                }
            }
            Behaviour::LoadMatrix { turned, .. } => self.load_matrix(&windows, turned),
            Behaviour::CopyAsync { bytes, .. } => self.copy(&windows, bytes, i),
            Behaviour::BulkCopy | Behaviour::BulkWrite | Behaviour::BulkLoad | Behaviour::BulkStore => {
                self.bulk(&windows, i)
            }
            Behaviour::Shuffle(_) | Behaviour::ChainedSum | Behaviour::Prefetch(..) => {}
        }
    }

    /// Counts the multiply-adds of a product, and says of what type.
    fn products(&mut self, windows: &[&Window], real: f64) -> Option<DType> {
        let dtype = windows.get(1).and_then(|w| self.buffers.get(&w.buffer)).map(|b| b.dtype)?;
        add(&mut self.counts.products, &dtype, self.weight * real * operations::real(dtype));
        Some(dtype)
    }

    /// Lane `l` gives the address of row `l % 8` of tile `l / 8`; tiles are numbered down the columns of what is loaded.
    fn load_matrix(&mut self, windows: &[&Window], turned: bool) {
        let Some(window) = windows.get(1) else { return };
        let Some(buffer) = self.buffers.get(&window.buffer).cloned() else { return };
        let mut index: Vec<Value> = window.start().iter().map(|i| self.values.index(i)).collect();
        let mut open = window.dims.iter().enumerate().filter(|(_, span)| !matches!(span, Span::At(_)));
        let (Some((row, _)), Some((column, _))) = (open.next(), open.next()) else { return };
        self.at(std::ptr::from_ref::<Window>(window).addr());
        let (tile_of_rows, tile_of_columns) = if turned { (2, 1) } else { (1, 2) };
        let lanes = |f: &dyn Fn(i64) -> i64| Value::Each(std::array::from_fn(|l| f(l as i64)));
        index[row] = index[row].zip(&lanes(&|l| l % 8 + 8 * (l / 8 / tile_of_rows % 2)), |a, b| a + b);
        index[column] = index[column].zip(&lanes(&|l| 8 * (l / 8 / tile_of_columns % 2)), |a, b| a + b);
        let address = self.address(&buffer, &index);
        self.request(&buffer, false, &address, 16, self.weight);
    }

    /// What is not there is written as zeros, and not read.
    fn copy(&mut self, windows: &[&Window], bytes: i64, i: &Instruction) {
        let there = i.operands.iter().find_map(|o| match o {
            Operand::Scalar(n) => Some(self.values.index(n)),
            Operand::Window(_) => None,
        });
        let read = there.map_or(Mask::MAX, |n| lanes_where(|lane| n.of(lane) > 0));
        let all = self.mask;
        for (window, writes) in windows.iter().take(2).zip([true, false]) {
            self.mask = if writes { all } else { all & read };
            if let Some((buffer, address)) = self.start(window).filter(|_| self.mask != 0) {
                self.request(&buffer, writes, &address, bytes, self.weight);
            }
        }
        self.mask = all;
    }

    /// One request of a thread for a run or a box of elements, to each memory.
    fn bulk(&mut self, windows: &[&Window], i: &Instruction) {
        let Some(shared) =
            windows.iter().find(|w| self.buffers.get(&w.buffer).is_some_and(|b| b.space == Space::Shared))
        else {
            return;
        };
        let Some(buffer) = self.buffers.get(&shared.buffer) else { return };
        let elements: i64 = shared
            .dims
            .iter()
            .zip(&buffer.dims)
            .map(|(span, dim)| match span {
                Span::At(_) => 1,
                Span::Slice(_, n) => *n,
                Span::All => self.values.index(&dim.extent).of(0),
            })
            .product();
        // What is there of it, where a third operand says so.
        let there = i.operands.iter().find_map(|o| match o {
            Operand::Scalar(n) => Some(self.values.index(n).of(0).clamp(0, elements)),
            Operand::Window(_) => None,
        });
        let to_shared = windows.first().is_some_and(|w| w.buffer == shared.buffer);
        let [whole, there] =
            [elements, there.unwrap_or(elements)].map(|n| (n * buffer.element_bytes()) as f64);
        let (sectors, wavefronts) = ((there / 32.0).ceil(), (whole / 128.0).ceil());
        let other = windows.iter().find(|w| w.buffer != shared.buffer);
        let c = &mut self.counts;
        if let Some(window) = other {
            add_of(&mut c.sectors, window.buffer.name(), self.weight * sectors);
        }
        if to_shared {
            c.global_load_requests += self.weight;
            c.global_load_sectors += self.weight * sectors;
            c.shared_store_requests += self.weight;
            c.shared_store_wavefronts += self.weight * wavefronts;
        } else {
            c.shared_load_requests += self.weight;
            c.shared_load_wavefronts += self.weight * wavefronts;
            c.global_store_requests += self.weight;
            c.global_store_sectors += self.weight * sectors;
        }
        // In bulk nothing is asked for twice or apart.
        for (window, passes, bytes) in
            other.into_iter().map(|w| (w, sectors, there)).chain([(shared, wavefronts, whole)])
        {
            let Some(buffer) = self.buffers.get(&window.buffer) else { continue };
            let writes = to_shared == (buffer.space == Space::Shared);
            let Some(recorder) = &mut self.recorder else { return };
            recorder.at.1 = std::ptr::from_ref::<Window>(window).addr();
            let taken = Taken { weight: self.weight, passes, least: passes, wanted: bytes, sample: None };
            recorder.note(buffer, writes, taken);
        }
    }
}
