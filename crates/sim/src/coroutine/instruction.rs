//! What instructions do physically: they take their inputs, and later give their outputs. Addresses follow the rule
//! of the instruction, not the layout of the buffer.

use warpwright_core::instr::{Behaviour, Lane, Place};
use warpwright_core::layout::{Fragment, indices};

use super::Fault;
use super::agent::Job;
use super::element::Element;
use super::machine::Machine;
use super::memory::{Home, Location, Owners, inside, owners};

impl<'a> Machine<'a> {
    /// Reads what an instruction reads, now.
    pub fn take_inputs(&self, job: &Job<'a>) -> Result<Vec<Element>, Fault> {
        match job.record.behaviour {
            Behaviour::CopyAsync { bytes, .. } => self.take_piece(job, bytes),
            Behaviour::BulkCopy => self.take_piece(job, 16),
            Behaviour::BulkWrite => self.take_run(job),
            Behaviour::BulkLoad => self.take_box(job),
            Behaviour::BulkStore => {
                indices(&job.views[1].extents).map(|at| self.read_swizzled(job, 1, &at)).collect()
            }
            Behaviour::WarpgroupMultiply { k } => self.warpgroup_product(job, k),
            Behaviour::LoadMatrix { transposed, turned } => self.take_tiles(job, transposed, turned),
            // Real numbers are their own conjugates.
            Behaviour::Multiply { m, n, k, .. } => self.warp_product(job, m, n, k),
            Behaviour::Shuffle(lane) => self.take_lanes(job, lane),
            Behaviour::ChainedSum | Behaviour::Prefetch(..) => Ok(Vec::new()),
        }
    }

    /// Writes what an instruction writes, now.
    pub fn give_outputs(&mut self, job: &Job<'a>, values: &[Element]) -> Result<(), Fault> {
        let target = &job.views[0];
        match job.record.behaviour {
            Behaviour::CopyAsync { bytes, .. } => {
                let first = self.shared_byte(job, 0, &[0])?;
                if !first.is_multiple_of(bytes as usize) {
                    return Err(refused(job, format!("the destination is not aligned to {bytes} bytes")));
                }
                for (e, value) in values.iter().enumerate() {
                    let byte = first + e * self.width(job, 0);
                    self.write(self.shared(job, byte), *value, Some(job.thread))?;
                }
            }
            Behaviour::BulkCopy => {
                let first = self.shared_byte(job, 0, &[0])?;
                if !first.is_multiple_of(16) {
                    return Err(refused(job, "the destination is not aligned to 16 bytes"));
                }
                for (e, value) in values.iter().enumerate() {
                    self.write(self.shared(job, first + e * self.width(job, 0)), *value, None)?;
                }
            }
            Behaviour::BulkWrite => {
                for (e, value) in values.iter().enumerate() {
                    let to = self.locate(job.thread, target.buffer, &target.at(&[e as i64]))?;
                    if let (0, Location::Device { element, .. }) = (e, to)
                        && !(element * self.width(job, 0)).is_multiple_of(16)
                    {
                        return Err(refused(job, "the destination is not aligned to 16 bytes"));
                    }
                    self.write(to, *value, None)?;
                }
            }
            Behaviour::BulkLoad => {
                for (at, value) in indices(&target.extents).zip(values) {
                    let byte = if job.record.is_swizzled() {
                        self.swizzled_byte(job, 0, &at)?
                    } else {
                        self.byte_of_box(job, 0, &at)?
                    };
                    self.write(self.shared(job, byte), *value, None)?;
                }
            }
            Behaviour::BulkStore => {
                for (at, value) in indices(&target.extents).zip(values) {
                    let at = target.at(&at);
                    if inside(&self.array(target.buffer).extents, &at) {
                        self.write(self.locate(job.thread, target.buffer, &at)?, *value, None)?;
                    }
                }
            }
            Behaviour::Shuffle(_) => {
                for (lane, value) in values.iter().enumerate() {
                    let at = self.lane(job, 0, lane as i64)?;
                    self.write(at, *value, Some(job.thread))?;
                }
            }
            Behaviour::LoadMatrix { .. } => {
                let first = self.first_register(job, 0)?;
                for (i, value) in values.iter().enumerate() {
                    let at = self.register(job, 0, i as i64 / 8, first + i as i64 % 8)?;
                    self.write(at, *value, Some(job.thread))?;
                }
            }
            Behaviour::Multiply { .. } | Behaviour::WarpgroupMultiply { .. } => {
                self.accumulate(job, values)?;
            }
            Behaviour::ChainedSum | Behaviour::Prefetch(..) => {}
        }
        Ok(())
    }

    /// The total of the earlier blocks; false if the block before has not published its own.
    pub fn chained_sum(&mut self, job: &Job<'a>) -> Result<bool, Fault> {
        let [_, _, chain] = &job.views[..] else { return Err(refused(job, "three operands are needed")) };
        let own = self.locate(job.thread, chain.buffer, &chain.start)?;
        let mut before = Element::ZERO;
        if chain.start[0] > 0 {
            before = self.read(self.locate(job.thread, chain.buffer, &[chain.start[0] - 1])?, false)?;
            if before.is_poison() {
                return Ok(false);
            }
        }
        let total = self.read(self.lane(job, 1, 0)?, false)?;
        self.write(own, before.plus(total), Some(job.thread))?;
        for lane in 0..32 {
            let at = self.lane(job, 0, lane)?;
            self.write(at, before, Some(job.thread))?;
        }
        Ok(true)
    }

    fn take_piece(&self, job: &Job<'a>, bytes: i64) -> Result<Vec<Element>, Fault> {
        let source = &job.views[1];
        let count = job.views[0].extents[0];
        if !(0..=count).contains(&job.integer) {
            return Err(refused(job, format!("{} of {count} elements are valid", job.integer)));
        }
        let one = |e: i64| {
            if e >= job.integer {
                return Ok(Element::ZERO);
            }
            let at = self.locate(job.thread, source.buffer, &source.at(&[e]))?;
            if let (0, Location::Device { element, .. }) = (e, at)
                && !(element * self.width(job, 1)).is_multiple_of(bytes as usize)
            {
                return Err(refused(job, format!("the source is not aligned to {bytes} bytes")));
            }
            self.read(at, false)
        };
        (0..count).map(one).collect()
    }

    /// What is written of a run. Elements that stand as their parts cannot be put together here.
    fn take_run(&self, job: &Job<'a>) -> Result<Vec<Element>, Fault> {
        let (count, first) = (job.views[0].extents[0], self.shared_byte(job, 1, &[0])?);
        if !(0..=count).contains(&job.integer) {
            return Err(refused(job, format!("{} of {count} elements are valid", job.integer)));
        }
        if !first.is_multiple_of(16) {
            return Err(refused(job, "the source is not aligned to 16 bytes"));
        }
        if job.views[1].extents[0] != count {
            return Ok(vec![Element::POISON; job.integer as usize]);
        }
        let one = |e: usize| self.read(self.shared(job, first + e * self.width(job, 1)), true);
        (0..job.integer as usize).map(one).collect()
    }

    fn take_box(&self, job: &Job<'a>) -> Result<Vec<Element>, Fault> {
        let source = &job.views[1];
        let one = |at: Vec<i64>| {
            let at = source.at(&at);
            if !inside(&self.array(source.buffer).extents, &at) {
                return Ok(Element::ZERO);
            }
            self.read(self.locate(job.thread, source.buffer, &at)?, true)
        };
        indices(&source.extents).map(one).collect()
    }

    /// What each lane receives in its 8 registers: two elements of a row (or column) of each of four 8 x 8 tiles.
    fn take_tiles(&self, job: &Job<'a>, transposed: bool, turned: bool) -> Result<Vec<Element>, Fault> {
        let mut values = Vec::new();
        for (lane, register) in (0..32).flat_map(|l| (0..8).map(move |r| (l, r))) {
            let (tile, along, across) = (register / 2, 2 * (lane % 4) + register % 2, lane / 4);
            let (row, column) = if transposed { (along, across) } else { (across, along) };
            let (down, right) = if turned { (tile / 2, tile % 2) } else { (tile % 2, tile / 2) };
            let start = self.shared_byte(job, 1, &[8 * down + row, 8 * right])?;
            if !start.is_multiple_of(16) {
                return Err(refused(job, "a row is not aligned to 16 bytes"));
            }
            let byte = start + column as usize * self.width(job, 1);
            values.push(self.read(self.shared(job, byte), false)?);
        }
        Ok(values)
    }

    fn take_lanes(&self, job: &Job<'a>, lane: Lane) -> Result<Vec<Element>, Fault> {
        (0..32).map(|l| self.read(self.lane(job, 1, lane.source(l, job.integer))?, false)).collect()
    }

    fn warp_product(&self, job: &Job<'a>, m: i64, n: i64, k: i64) -> Result<Vec<Element>, Fault> {
        let tile = |operand: usize, rows: i64, columns: i64| -> Result<Vec<Element>, Fault> {
            let places = self.fragment(job, operand)?;
            let element = |at: Vec<i64>| self.read(self.tile_element(job, operand, &places, &at)?, false);
            indices(&[rows, columns]).map(element).collect()
        };
        let (a, b) = (tile(1, m, k)?, tile(2, k, n)?);
        let (n, k) = (n as usize, k as usize);
        let b: Vec<Element> = (0..n * k).map(|jx| b[jx % k * n + jx / k]).collect();
        Ok(product(&a, &b, k))
    }

    fn warpgroup_product(&self, job: &Job<'a>, k: i64) -> Result<Vec<Element>, Fault> {
        let tile = |operand: usize, rows: i64| -> Result<Vec<Element>, Fault> {
            indices(&[rows, k]).map(|at| self.read_swizzled(job, operand, &at)).collect()
        };
        Ok(product(&tile(1, 64)?, &tile(2, job.views[2].extents[0])?, k as usize))
    }

    /// Adds a product to the accumulators. wgmma does not see what ordinary code wrote after the last fence.
    fn accumulate(&mut self, job: &Job<'a>, product: &[Element]) -> Result<(), Fault> {
        let places = self.fragment(job, 0)?;
        let warpgroup = matches!(job.record.behaviour, Behaviour::WarpgroupMultiply { .. });
        for (at, value) in indices(&job.views[0].extents).zip(product) {
            let at = self.tile_element(job, 0, &places, &at)?;
            let Location::Register { thread, buffer, number } = at else { continue };
            let hidden = warpgroup && self.threads[thread].registers[buffer][number].unfenced;
            let before = if hidden { Element::POISON } else { self.read(at, false)? };
            self.write(at, before.plus(*value), (!warpgroup).then_some(thread))?;
        }
        Ok(())
    }

    /// The fragment that the instruction demands of an operand: its columns, and who holds each element.
    fn fragment(&self, job: &Job<'a>, operand: usize) -> Result<(i64, Owners), Fault> {
        let place = job.record.operands[operand].window.as_ref().map(|w| w.place);
        let Some(Place::Fragment(name) | Place::FragmentColumns(name, _)) = place else {
            return Err(refused(job, "an operand is no fragment"));
        };
        let fragment = Fragment::by_name(name).ok_or_else(|| refused(job, "its fragment is not known"))?;
        let columns = fragment.columns.or(self.array(job.views[operand].buffer).extents.last().copied());
        let columns = columns.unwrap_or(8);
        Ok((columns, owners(fragment, fragment.rows, columns)?))
    }

    /// The register that holds an element of an operand by the rule of the instruction.
    fn tile_element(
        &self,
        job: &Job<'a>,
        operand: usize,
        (columns, owners): &(i64, Owners),
        at: &[i64],
    ) -> Result<Location, Fault> {
        let view = &job.views[operand];
        let [.., row, column] = view.start[..] else { return Err(refused(job, "an operand is no tile")) };
        let Some((thread, register)) = owners.get(((row + at[0]) * columns + column + at[1]) as usize) else {
            return Err(refused(job, "an operand leaves its fragment"));
        };
        self.register(job, operand, *thread, self.first_register(job, operand)? + register)
    }

    /// The first register of the tile that an operand is; the tile must belong to the executing threads.
    fn first_register(&self, job: &Job<'a>, operand: usize) -> Result<i64, Fault> {
        let view = &job.views[operand];
        let Home::Registers(registers) = &self.array(view.buffer).home else {
            return Err(refused(job, "an operand is not in registers"));
        };
        let mut tile = view.start.clone();
        tile[registers.pitches.len()..].fill(0);
        if !inside(&self.array(view.buffer).extents, &tile) {
            let buffer = self.array(view.buffer).buffer.sym.name().into();
            return Err(Fault::OutOfBounds { buffer, index: tile });
        }
        let (thread, register) = registers.place(&tile);
        let owner = self.threads[job.thread].base[view.buffer] + thread;
        if owner != self.threads[job.thread].id {
            return Err(Fault::Ownership {
                buffer: self.array(view.buffer).buffer.sym.name().into(),
                index: tile,
                thread: self.threads[job.thread].id,
                owner,
            });
        }
        Ok(register as i64)
    }

    /// A register of the `lane`-th executing thread.
    fn register(&self, job: &Job<'a>, operand: usize, lane: i64, number: i64) -> Result<Location, Fault> {
        let buffer = job.views[operand].buffer;
        let thread = self.thread(job.thread, self.threads[job.thread].id + lane)?;
        if number < 0 || number as usize >= self.threads[thread].registers[buffer].len() {
            return Err(refused(job, "an operand has too few registers"));
        }
        Ok(Location::Register { thread, buffer, number: number as usize })
    }

    /// The element of an operand that belongs to a lane of the warp.
    fn lane(&self, job: &Job<'a>, operand: usize, lane: i64) -> Result<Location, Fault> {
        let view = &job.views[operand];
        let at = self.locate(job.thread, view.buffer, &view.at(&[lane]))?;
        match at {
            Location::Register { thread, .. } if thread == job.thread + lane as usize => Ok(at),
            _ => Err(refused(job, "an operand does not have one element in each lane")),
        }
    }

    fn width(&self, job: &Job<'a>, operand: usize) -> usize {
        self.array(job.views[operand].buffer).buffer.dtype.bytes() as usize
    }

    fn shared(&self, job: &Job<'a>, byte: usize) -> Location {
        Location::Shared { block: self.threads[job.thread].block, byte }
    }

    /// The byte at which the layout of the buffer puts an element of an operand.
    fn shared_byte(&self, job: &Job<'a>, operand: usize, at: &[i64]) -> Result<usize, Fault> {
        let view = &job.views[operand];
        match self.locate(job.thread, view.buffer, &view.at(at))? {
            Location::Shared { byte, .. } => Ok(byte),
            _ => Err(refused(job, "an operand is not in shared memory")),
        }
    }

    /// The byte of an element in the 128-byte swizzle: the piece of 16 bytes is exclusive-ored with the row.
    fn swizzled_byte(&self, job: &Job<'a>, operand: usize, at: &[i64]) -> Result<usize, Fault> {
        let first = self.shared_byte(job, operand, &[0, 0])?;
        if first % 1024 >= 128 {
            return Err(refused(job, "an operand does not start at a row of the swizzle"));
        }
        let byte = first + 128 * at[0] as usize + at[1] as usize * self.width(job, operand);
        Ok(byte ^ (byte >> 7 & 7) << 4)
    }

    /// The byte of an element of a box whose rows follow each other.
    fn byte_of_box(&self, job: &Job<'a>, operand: usize, at: &[i64]) -> Result<usize, Fault> {
        let first = self.shared_byte(job, operand, &[0, 0])?;
        if !first.is_multiple_of(128) {
            return Err(refused(job, "the box is not aligned to 128 bytes"));
        }
        let columns = job.views[operand].extents[1];
        Ok(first + (at[0] * columns + at[1]) as usize * self.width(job, operand))
    }

    fn read_swizzled(&self, job: &Job<'a>, operand: usize, at: &[i64]) -> Result<Element, Fault> {
        let byte = self.swizzled_byte(job, operand, at)?;
        self.read(self.shared(job, byte), true)
    }
}

fn refused(job: &Job<'_>, what: impl std::fmt::Display) -> Fault {
    Fault::Refused(format!("{}: {what}", job.instruction.name))
}

/// `a b^T`, both with rows of `k`.
fn product(a: &[Element], b: &[Element], k: usize) -> Vec<Element> {
    let dot = |x: &[Element], y: &[Element]| {
        x.iter().zip(y).fold(Element::ZERO, |sum, (x, y)| sum.plus(x.times(*y)))
    };
    a.chunks(k).flat_map(|x| b.chunks(k).map(move |y| dot(x, y))).collect()
}
