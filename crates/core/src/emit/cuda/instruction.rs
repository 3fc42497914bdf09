//! Calls of instruction records. What an instruction looks like in PTX stands with the spellings.

use super::apart;
use super::body::Body;
use super::source::TensorMap;
use super::spelling::{Helper, async_copy, chained, matrix, tensor_map, wgmma};
use super::text::Strength;
use super::threads::Executing;
use crate::diag::Diagnosis;
use crate::dtype::DType;
use crate::index::Index;
use crate::instr::{self, Around, Behaviour, By, Caching, Lane, Record};
use crate::ir::{Access, Instruction, Operand, Span, Window};
use crate::sym::Sym;
use crate::target::Capability;

impl Body<'_> {
    pub(super) fn instruction(&mut self, call: &Instruction, executing: &Executing) -> Result<(), Diagnosis> {
        let Some(record) = instr::by_name(&call.name) else {
            return Err(Diagnosis::new(format!("unknown instruction `{}`", call.name)));
        };
        let windows: Vec<&Window> = call
            .operands
            .iter()
            .filter_map(|o| if let Operand::Window(w) = o { Some(w) } else { None })
            .collect();
        let scalar =
            call.operands.iter().find_map(|o| if let Operand::Scalar(i) = o { Some(i) } else { None });
        for (window, operand) in windows.iter().zip(record.operands) {
            if operand.access.writes() {
                self.written.insert(window.buffer.clone());
            }
        }
        match (record.behaviour, &windows[..], scalar) {
            (Behaviour::Multiply { .. }, [d, a, b], _) => self.multiply(record, d, a, b),
            (Behaviour::WarpgroupMultiply { .. }, [d, a, b], _) => self.warpgroup_multiply(d, a, b),
            (Behaviour::LoadMatrix { transposed, turned }, [d, a], _) => {
                self.load_matrix((transposed, turned), d, a, executing)
            }
            (Behaviour::CopyAsync { bytes, caching }, [d, a], Some(valid)) => {
                self.copy_async((bytes, caching), d, a, valid)
            }
            (Behaviour::BulkCopy, [d, a], Some(valid)) => self.bulk_copy(d, a, valid, call.signal.as_ref()),
            (Behaviour::BulkWrite, [d, a], Some(valid)) => self.bulk_write(d, a, valid),
            (Behaviour::BulkLoad, [d, a], _) => self.bulk_load(record, d, a, call.signal.as_ref()),
            (Behaviour::BulkStore, [d, a], _) => self.bulk_store(record, d, a),
            (Behaviour::Shuffle(lane), [t, v], Some(d)) => self.shuffle(lane, t, v, d),
            (Behaviour::ChainedSum, [before, total, chain], _) => self.chained_sum(before, total, chain),
            (Behaviour::Prefetch(around, by), [a], _) => self.prefetch(around, by, a),
            _ => Err(Diagnosis::new(format!("`{}` has operands that its record has not", call.name))),
        }
    }

    fn multiply(&mut self, record: &Record, d: &Window, a: &Window, b: &Window) -> Result<(), Diagnosis> {
        let dtype = self.unit.buffer(&a.buffer)?.dtype;
        if let (true, Behaviour::Multiply { m, k, conjugate, .. }) = (dtype.is_complex(), record.behaviour) {
            let (real, text) = if dtype == DType::C64 {
                matrix::complex_split(record.name, conjugate, self.unit.buffer(&b.buffer)?.split)
            } else if m == 8 && self.unit.has(Capability::MmaF64Wide) {
                matrix::complex_stacked(record.name, conjugate)
            } else {
                matrix::complex(record.name, [m, k], conjugate)
            };
            self.prelude.require(real);
            self.prelude.require_text(&text);
            if apart::is_split(record) {
                return self.multiply_apart(record, d, a, b);
            }
            let (d, a, b) = (self.fragment(d)?, self.fragment(a)?, self.fragment(b)?);
            self.line(format!("{}({d}, {a}, {b});", record.name));
            return Ok(());
        }
        let helper: &Helper = match record.name {
            "mma_m16n8k16_bf16" => &matrix::MMA_M16N8K16_BF16,
            "mma_m16n8k16_f16" => &matrix::MMA_M16N8K16_F16,
            "mma_m8n8k4_f64" => &matrix::MMA_M8N8K4_F64,
            "mma_m16n8k4_f64" => &matrix::MMA_M16N8K4_F64,
            "mma_m16n8k8_f64" => &matrix::MMA_M16N8K8_F64,
            "mma_m16n8k16_f64" => &matrix::MMA_M16N8K16_F64,
            "mma_m16n8k8_f32" if self.unit.buffer(&b.buffer)?.split => &matrix::MMA_M16N8K8_F32_BY_PARTS,
            "mma_m16n8k8_f32" => &matrix::MMA_M16N8K8_F32,
            _ => return Err(Diagnosis::new(format!("`{}` has no spelling for {dtype}", record.name))),
        };
        self.prelude.require(helper);
        if apart::is_split(record) {
            return self.multiply_apart(record, d, a, b);
        }
        let (d, a) = (self.fragment(d)?, self.fragment(a)?);
        let b = if dtype.is_half() { self.half_fragment(b)? } else { self.fragment(b)? };
        self.line(format!("{}({d}, {a}, {b});", record.name));
        Ok(())
    }

    /// The registers of eight of the sixteen columns of a fragment: two pairs of elements.
    fn half_fragment(&mut self, window: &Window) -> Result<String, Diagnosis> {
        let whole = self.fragment(window)?;
        let column = window.start().last().cloned().unwrap_or_default();
        let pair = self.index(&column.div(8).scaled(2));
        Ok(match pair.text.as_str() {
            "0" => whole,
            _ => format!("{whole} + {}", pair.at_least(Strength::Product)),
        })
    }

    fn warpgroup_multiply(&mut self, d: &Window, a: &Window, b: &Window) -> Result<(), Diagnosis> {
        let columns = self.window_extents(d)?;
        let Some(&columns) = columns.last() else {
            return Err(Diagnosis::new("the accumulator of wgmma is no window of rows and columns"));
        };
        let (needs, name, text) = wgmma::multiply(self.unit.buffer(&a.buffer)?.dtype, columns);
        needs.iter().for_each(|h| self.prelude.require(h));
        self.prelude.require_text(&text);
        let d = self.fragment(d)?;
        let (a, b) = (self.address(&Self::start(a))?, self.address(&Self::start(b))?);
        self.line(format!("{name}({d}, {a}, {b});"));
        Ok(())
    }

    /// The constant extents of the dimensions that a window keeps.
    fn window_extents(&self, window: &Window) -> Result<Vec<i64>, Diagnosis> {
        let buffer = self.unit.buffer(&window.buffer)?;
        let kept = window.dims.iter().zip(&buffer.dims).filter_map(|(span, dim)| match span {
            Span::At(_) => None,
            Span::Slice(_, length) => Some(Some(*length)),
            Span::All => Some(dim.extent.as_constant()),
        });
        kept.collect::<Option<_>>().ok_or_else(|| {
            Diagnosis::new(format!("a window of `{}` has an extent that is not constant", window.buffer))
        })
    }

    /// Each lane gives the address of one row of 16 bytes: rows 0 to 15 of the left half, then of the right half.
    fn load_matrix(
        &mut self,
        (transposed, turned): (bool, bool),
        d: &Window,
        a: &Window,
        executing: &Executing,
    ) -> Result<(), Diagnosis> {
        let lane = executing.local.rem(32);
        // Tile l / 8 of the destination stands at row 8 (l / 8 % 2) and column 8 (l / 16).
        let steps = if turned {
            [&lane.rem(8) + &lane.div(16).scaled(8), lane.div(8).rem(2).scaled(8)]
        } else {
            [lane.rem(16), lane.div(16).scaled(8)]
        };
        let mut steps = steps.into_iter();
        let index = a.start().into_iter().zip(&a.dims).map(|(start, span)| match span {
            Span::At(_) => start,
            _ => &start + &steps.next().unwrap_or_default(),
        });
        let row = Access { buffer: a.buffer.clone(), index: index.collect() };
        let (d, row) = (self.fragment(d)?, self.address(&row)?);
        let (name, helper): (_, &Helper) = if transposed {
            ("ldmatrix_x4_trans", &matrix::LDMATRIX_X4_TRANS)
        } else {
            ("ldmatrix_x4", &matrix::LDMATRIX_X4)
        };
        self.prelude.require(helper);
        self.line(format!("{name}({d}, {row});"));
        Ok(())
    }

    fn copy_async(
        &mut self,
        (bytes, caching): (i64, Caching),
        d: &Window,
        a: &Window,
        valid: &Index,
    ) -> Result<(), Diagnosis> {
        let elements = bytes / self.unit.buffer(&a.buffer)?.dtype.bytes();
        let whole = valid.as_constant() == Some(elements);
        let (name, [counted, all]) = match (bytes, caching) {
            (4, _) => ("cp_async4", [&async_copy::CP_ASYNC4, &async_copy::CP_ASYNC4_WHOLE]),
            (8, _) => ("cp_async8", [&async_copy::CP_ASYNC8, &async_copy::CP_ASYNC8_WHOLE]),
            (_, Caching::Global) => ("cp_async16", [&async_copy::CP_ASYNC16, &async_copy::CP_ASYNC16_WHOLE]),
            (_, Caching::All) => {
                ("cp_async16_ca", [&async_copy::CP_ASYNC16_CA, &async_copy::CP_ASYNC16_CA_WHOLE])
            }
        };
        self.prelude.require(if whole { all } else { counted });
        let (to, from) = (self.address(&Self::start(d))?, self.address(&Self::start(a))?);
        let valid = if whole { String::new() } else { format!(", {}", self.index(valid).text) };
        self.line(format!("{name}({to}, {from}{valid});"));
        Ok(())
    }

    fn prefetch(&mut self, around: Around, by: By, a: &Window) -> Result<(), Diagnosis> {
        let at = self.address(&Self::start(a))?;
        let (call, helper): (_, &Helper) = match by {
            By::Asking => (format!("prefetch_l2({at});"), &async_copy::PREFETCH_L2),
            By::Copying => (format!("copy_l2(&landing[threadIdx.x], {at});"), &async_copy::COPY_L2),
        };
        self.prelude.require(helper);
        let unless = match around {
            Around::Element => "",
            Around::Before => {
                self.prelude.require(&async_copy::BEGINS_SECTOR);
                "if (!begins_sector(AT)) "
            }
            Around::Behind => {
                self.prelude.require(&async_copy::BEGINS_SECTOR);
                "if (!begins_sector(AT + 1)) "
            }
        };
        self.line(format!("{}{call}", unless.replace("AT", &at)));
        Ok(())
    }

    fn bulk_copy(
        &mut self,
        d: &Window,
        a: &Window,
        valid: &Index,
        signal: Option<&(Sym, Index)>,
    ) -> Result<(), Diagnosis> {
        let Some((ring, ordinal)) = signal else { return Err(no_barrier()) };
        let elements: i64 = self.window_extents(d)?.iter().product();
        let bytes = elements * self.unit.buffer(&d.buffer)?.dtype.bytes();
        let whole = valid.as_constant() == Some(elements);
        self.prelude.require(if whole { &async_copy::BULK_COPY_WHOLE } else { &async_copy::BULK_COPY });
        let (slot, _) = self.ring_slot(ring, ordinal)?;
        let (to, from) = (self.address(&Self::start(d))?, self.address(&Self::start(a))?);
        let valid = if whole { String::new() } else { format!(", {}", self.index(valid).text) };
        self.line(format!("bulk_copy<{bytes}>({to}, {from}{valid}, {slot});"));
        Ok(())
    }

    fn bulk_write(&mut self, d: &Window, a: &Window, valid: &Index) -> Result<(), Diagnosis> {
        let elements: i64 = self.window_extents(d)?.iter().product();
        let bytes = elements * self.unit.buffer(&d.buffer)?.dtype.bytes();
        let whole = valid.as_constant() == Some(elements);
        self.prelude.require(if whole { &async_copy::BULK_WRITE_WHOLE } else { &async_copy::BULK_WRITE });
        let (to, from) = (self.address(&Self::start(d))?, self.address(&Self::start(a))?);
        let valid = if whole { String::new() } else { format!(", {}", self.index(valid).text) };
        self.line(format!("bulk_write<{bytes}>({to}, {from}{valid});"));
        Ok(())
    }

    fn bulk_load(
        &mut self,
        record: &Record,
        d: &Window,
        a: &Window,
        signal: Option<&(Sym, Index)>,
    ) -> Result<(), Diagnosis> {
        let Some((ring, ordinal)) = signal else { return Err(no_barrier()) };
        self.prelude.require(&tensor_map::LOAD);
        let (slot, _) = self.ring_slot(ring, ordinal)?;
        let map = self.tensor_map(record, a, d)?;
        let corner = self.corner(a);
        let to = self.address(&Self::start(d))?;
        self.line(format!("tma_load({to}, {map}, {corner}, {slot});"));
        Ok(())
    }

    fn bulk_store(&mut self, record: &Record, d: &Window, a: &Window) -> Result<(), Diagnosis> {
        self.prelude.require(&tensor_map::STORE);
        let map = self.tensor_map(record, d, a)?;
        let corner = self.corner(d);
        let from = self.address(&Self::start(a))?;
        self.line(format!("tma_store({map}, {corner}, {from});"));
        Ok(())
    }

    fn corner(&mut self, tensor: &Window) -> String {
        let corner: Vec<_> = tensor.start().iter().map(|i| self.index(i).text).collect();
        corner.join(", ")
    }

    /// The name of the tensor map for boxes of the shape of `shared`.
    fn tensor_map(&mut self, record: &Record, tensor: &Window, shared: &Window) -> Result<String, Diagnosis> {
        let unit = self.unit;
        let buffer = unit.buffer(&tensor.buffer)?;
        let ([rows, columns], [height, width]) = (&buffer.dims[..], &self.window_extents(shared)?[..]) else {
            return Err(Diagnosis::new(format!("`{}` is copied in boxes but is no matrix", tensor.buffer)));
        };
        let map = TensorMap {
            tensor: buffer.sym.clone(),
            dtype: buffer.dtype,
            extents: [rows.extent.clone(), columns.extent.clone()],
            row_stride: buffer.row_stride.clone(),
            box_extents: [*height, *width],
            swizzle_bytes: if record.is_swizzled() { 128 } else { 0 },
        };
        if let Some((name, _)) = self.maps.iter().find(|(_, m)| *m == map) {
            return Ok(name.clone());
        }
        let same = self.maps.iter().filter(|(_, m)| m.tensor == map.tensor).count();
        let mut name = format!("{}_map", buffer.sym);
        if same > 0 {
            name = format!("{name}_{height}x{width}");
        }
        self.maps.push((name.clone(), map));
        Ok(name)
    }

    fn shuffle(&mut self, lane: Lane, t: &Window, v: &Window, d: &Index) -> Result<(), Diagnosis> {
        let dtype = self.unit.buffer(&v.buffer)?.dtype;
        let function = match lane {
            Lane::Xor => "__shfl_xor_sync",
            Lane::Up => "__shfl_up_sync",
            Lane::Down => "__shfl_down_sync",
            Lane::Index => "__shfl_sync",
        };
        let (v, d) = (self.lane_register(v)?, self.index(d).text);
        let t = self.lane_target(t)?;
        let value = if dtype.is_complex() {
            let part = |p: &str| format!("{function}(~0u, {v}.{p}, {d})");
            format!("make_{}({}, {})", self.c_type(dtype), part("x"), part("y"))
        } else {
            format!("{function}(~0u, {v}, {d})")
        };
        self.line(format!("{t} = {value};"));
        Ok(())
    }

    fn chained_sum(&mut self, before: &Window, total: &Window, chain: &Window) -> Result<(), Diagnosis> {
        self.prelude.require(&chained::CHAINED_SUM);
        let total = self.lane_register(total)?;
        let before = self.lane_target(before)?;
        let link = self.address(&Self::start(chain))?;
        let block = chain.start().first().cloned().unwrap_or_default();
        let block = self.index(&block).text;
        self.line(format!("{before} = chained_sum({total}, {link}, {block});"));
        Ok(())
    }

    /// This lane's register of a window with one element a lane.
    fn lane_register(&mut self, window: &Window) -> Result<String, Diagnosis> {
        self.element(&Self::start(window))
    }

    /// The same as a target, with its type if this declares it.
    fn lane_target(&mut self, window: &Window) -> Result<String, Diagnosis> {
        let target = self.lane_register(window)?;
        let dtype = self.unit.buffer(&window.buffer)?.dtype;
        Ok(if self.to_declare.remove(&window.buffer) {
            format!("{} {target}", self.c_type(dtype))
        } else {
            target
        })
    }
}

fn no_barrier() -> Diagnosis {
    Diagnosis::new("a bulk copy reports to no barrier").instead("name one with `->`")
}
