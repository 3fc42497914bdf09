//! One kernel: its body first, then what the body turned out to use: parameters, names, shared arrays.

use std::collections::{HashMap, HashSet};

use super::ahead::loaded_ahead;
use super::body::{Body, Unit};
use super::names::Names;
use super::residency::blocks_per_sm;
use super::source::{Argument, Kernel, Scratch};
use super::spelling::{Prelude, barrier, mbarrier, tensor_map};
use super::text::{Lines, Strength, WIDTH};
use super::threads::Executing;
use super::{Neighbours, Writer};
use crate::diag::Diagnosis;
use crate::index::{Index, Interval};
use crate::instr;
use crate::ir::{Axis, For, ParamKind, Role, Space, Stmt, alignment, walk};
use crate::ir::{BlockLoop, Launch};
use crate::sym::Sym;

/// Static shared memory of a block; more has to be asked for at launch.
const STATIC_SHARED_BYTES: i64 = 48 * 1024;
/// The largest number of blocks along y or z.
const LARGEST_GRID_Y: i64 = 65535;
/// Ordinals count iterations of one block; no block lives as long as this.
const LARGEST_ORDINAL: i64 = 1 << 30;

/// Writes one launch. Returns the kernel and its text.
pub(super) fn kernel(
    writer: &mut Writer<'_>,
    launch: &Launch<'_>,
    name: String,
    neighbours: Neighbours,
) -> Result<(Kernel, String), Diagnosis> {
    let unit = writer.unit;
    let mut body = Body::new(unit, launch, std::mem::take(&mut writer.prelude));
    if neighbours.waits() {
        body.written_before.clone_from(&writer.written);
        if unit.program.begins_early.is_some() {
            // By another call, for all that is known.
            body.written_before.extend(unit.program.tensors().map(|tensor| tensor.sym.clone()));
        }
    }
    let grid = body.grid(launch);
    let ticket = launch.blocks.iter().any(|b| b.ordered);
    let (names, statements) = body.launch(launch)?;
    let declarations = body.captured(1, |s| {
        s.neighbours(neighbours);
        s.top(launch, &grid, ticket, names)
    })?;
    let mut arguments = body.arguments();
    if ticket {
        arguments.push(Argument::Scratch(unit.scratch.len() + writer.tickets.len()));
        writer.tickets.push(Scratch {
            name: format!("ticket of {name}"),
            element_bytes: 4,
            extents: vec![1.into()],
            zeroed: true,
        });
    }
    arguments.extend(body.maps.iter().map(|(_, map)| Argument::TensorMap(map.clone())));
    let shared_bytes = instr::shared_bytes(launch);
    let kernel = Kernel {
        name,
        arguments,
        grid: grid.axes.clone(),
        threads: launch.threads,
        dynamic_shared_bytes: if shared_bytes > STATIC_SHARED_BYTES { shared_bytes } else { 0 },
        shared_bytes,
        int_products: body.int_products.clone(),
        waits: neighbours.waits(),
    };
    let mut lines = Lines::at_depth(0);
    body.heading(&mut lines, launch, &grid, &kernel, ticket);
    if !declarations.is_empty() {
        lines.append(declarations);
        lines.push("");
    }
    lines.append(statements);
    lines.push("}");
    writer.prelude = body.prelude;
    writer.written.extend(body.written);
    Ok((kernel, lines.into_text()))
}

/// The blocks of a launch along the hardware's axes.
struct Grid {
    axes: [Vec<Index>; 3],
    /// The program's block loops, fastest first, if all of them are numbered along x.
    linear: Option<Vec<BlockLoop>>,
}

impl<'a> Body<'a> {
    fn new(unit: &'a Unit<'a>, launch: &Launch<'_>, prelude: Prelude) -> Body<'a> {
        let mut names = Names::new();
        for param in &unit.program.params {
            names.declare(&param.sym);
            if let ParamKind::Tensor(buffer) = &param.kind
                && let Some(stride) = &buffer.row_stride
            {
                names.declare(stride);
            }
        }
        for sym in &unit.scratch_buffers {
            names.declare(sym);
        }
        for block in &launch.blocks {
            names.declare(&block.var);
        }
        for shared in &launch.shared.buffers {
            names.declare(&shared.buffer.sym);
        }
        for (ring, _) in &launch.shared.rings {
            names.declare(&ring.sym);
        }
        let tid = Sym::new("tid");
        names.bind(&tid, "tid");
        let mut ranges = unit.ranges();
        ranges.set(&tid, Interval::new(0, launch.threads - 1));
        for block in &launch.blocks {
            // No grid has more blocks than this.
            let most = i64::from(i32::MAX) - 1;
            let last = ranges.of(&block.extent.offset(-1)).hi.map_or(most, |last| last.min(most));
            ranges.set(&block.var, Interval { lo: Some(0), hi: Some(last) });
        }
        let sizes = unit.program.params.iter().filter(|p| p.kind == ParamKind::Size).map(|p| p.sym.clone());
        Body {
            unit,
            prelude,
            names,
            ranges,
            long_variables: if unit.is_long() { sizes.collect() } else { HashSet::new() },
            bound: HashSet::new(),
            aliases: HashMap::new(),
            used: HashSet::new(),
            written: HashSet::new(),
            ahead: loaded_ahead(launch.body, &unit.buffers),
            written_before: HashSet::new(),
            lines: Lines::default(),
            tid,
            block_threads: launch.threads,
            role: None,
            named: Vec::new(),
            owned: Vec::new(),
            apart: Vec::new(),
            any_number: false,
            corners: Vec::new(),
            cursors: Vec::new(),
            slots: Vec::new(),
            thread_values: HashMap::new(),
            places: Vec::new(),
            places_of: HashMap::new(),
            bound_in_loop: None,
            serial_loops: Vec::new(),
            unrolled_loops: Vec::new(),
            rolled: HashSet::new(),
            barriers: Vec::new(),
            maps: Vec::new(),
            to_declare: HashSet::new(),
            moved_wide: HashSet::new(),
            replaced_loads: Vec::new(),
            int_products: Vec::new(),
            layout_functions: HashMap::new(),
        }
    }

    /// Where the block loops go: to their own axes, or all along x if one of y and z may be too long, or if blocks
    /// are numbered in the order in which they start.
    fn grid(&mut self, launch: &Launch<'_>) -> Grid {
        let too_long = |b: &BlockLoop| {
            b.axis != Axis::X && self.ranges.of(&b.extent).hi.is_none_or(|most| most > LARGEST_GRID_Y)
        };
        let ordered = launch.blocks.iter().any(|b| b.ordered);
        let mut axes = [const { Vec::new() }; 3];
        if ordered || launch.blocks.iter().any(too_long) {
            let mut linear = launch.blocks.clone();
            linear.sort_by_key(|b| b.axis);
            axes[0] = linear.iter().map(|b| b.extent.clone()).collect();
            return Grid { axes, linear: Some(linear) };
        }
        for block in &launch.blocks {
            axes[block.axis as usize].push(block.extent.clone());
        }
        Grid { axes, linear: None }
    }

    /// The names that stand at the top and the statements of the launch. A role has its own names at its head.
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(Lines, Lines), Diagnosis> {
        if !launch.roles.is_empty() {
            return Ok((Lines::at_depth(1), self.captured(1, |s| s.roles(launch))?));
        }
        let mut names = Lines::default();
        let statements = self.captured(1, |s| {
            let (declarations, statements) = s.with_names(launch)?;
            names = declarations;
            s.lines.append(statements);
            Ok(())
        })?;
        Ok((names, statements))
    }

    fn roles(&mut self, launch: &Launch<'_>) -> Result<(), Diagnosis> {
        let mut roles = launch.roles.clone();
        roles.sort_by_key(|r| r.lo);
        let mut covered = 0;
        for role in &roles {
            let body = self.nested(|s| {
                s.role = Some(role.clone());
                s.ranges.set(&s.tid.clone(), Interval::new(role.lo, role.hi - 1));
                s.set_registers(role);
                let mut result = s.with_names(launch);
                if let Ok((names, statements)) = result.as_mut() {
                    s.lines.append(std::mem::take(names));
                    s.lines.append(std::mem::take(statements));
                }
                s.ranges.set(&s.tid.clone(), Interval::new(0, launch.threads - 1));
                s.role = None;
                result.map(|_| ())
            })?;
            self.used.insert(self.tid.clone());
            let head = match (role.lo == covered, role.hi == launch.threads) {
                (true, true) => String::new(),
                (true, false) => format!("if (tid < {}) ", role.hi),
                (false, true) => format!("if (tid >= {}) ", role.lo),
                (false, false) => format!("if (tid >= {} && tid < {}) ", role.lo, role.hi),
            };
            let joint = if covered == 0 && role.lo == 0 { "" } else { "} else " };
            self.line(format!("{joint}{head}{{  // {}", role.sym));
            self.lines.append(body);
            covered = role.hi;
        }
        self.line("}");
        Ok(())
    }

    /// Registers move between warpgroups: fewer than the launch gave, or more.
    fn set_registers(&mut self, role: &Role) {
        let Some(registers) = role.registers else { return };
        let given = i64::from(self.unit.target.limits.registers_per_block) / self.block_threads / 8 * 8;
        let (name, helper) = if registers < given {
            ("setmaxnreg_dec", &barrier::SETMAXNREG_DEC)
        } else {
            ("setmaxnreg_inc", &barrier::SETMAXNREG_INC)
        };
        self.prelude.require(helper);
        self.line(format!("{name}<{registers}>();"));
    }

    /// The declarations of the thread decompositions and ordinals that the statements use, and the statements.
    fn with_names(&mut self, launch: &Launch<'_>) -> Result<(Lines, Lines), Diagnosis> {
        let everyone = Executing { base: 0, size: launch.threads, local: Index::var(&self.tid) };
        self.name_decompositions(launch.body)?;
        let mut ordinals = Vec::new();
        walk::for_each(launch.body, &mut |stmt| {
            if let Stmt::For(For { counting: Some(ordinal), .. }) = stmt {
                ordinals.push(ordinal.clone());
            }
        });
        for ordinal in &ordinals {
            self.names.declare(ordinal);
            self.ranges.set(ordinal, Interval::new(0, LARGEST_ORDINAL));
            self.used.remove(ordinal);
        }
        let statements = self.captured(0, |s| s.statements(launch.body, &everyone))?;
        let declarations = self.captured(0, |s| {
            s.declare_decompositions();
            for ordinal in ordinals.iter().filter(|o| s.used.contains(*o)).cloned().collect::<Vec<_>>() {
                let name = s.names.of(&ordinal).to_string();
                s.line(format!("int {name} = 0;"));
            }
            Ok(())
        })?;
        Ok((declarations, statements))
    }

    /// What stands before the statements: the numbers of the block and the thread, and shared memory.
    fn top(&mut self, launch: &Launch<'_>, grid: &Grid, ticket: bool, names: Lines) -> Result<(), Diagnosis> {
        if !launch.shared.rings.is_empty() || ticket {
            self.used.insert(self.tid.clone());
        }
        if self.used.contains(&self.tid) {
            self.line("const int tid = threadIdx.x;");
        }
        self.blocks(launch, grid, ticket);
        self.lines.append(names);
        self.shared_memory(launch)?;
        self.init_rings(launch);
        Ok(())
    }

    fn blocks(&mut self, launch: &Launch<'_>, grid: &Grid, ticket: bool) {
        let Some(linear) = &grid.linear else {
            for block in
                launch.blocks.iter().filter(|b| self.used.contains(&b.var)).cloned().collect::<Vec<_>>()
            {
                let name = self.names.of(&block.var).to_string();
                self.line(format!("const int {name} = blockIdx.{};", block.axis.name()));
            }
            return;
        };
        let mut number = "blockIdx.x".to_string();
        if ticket {
            self.line("// Blocks are numbered in the order in which they start, so that one may wait for those before it.");
            self.line("__shared__ int order;");
            self.line("if (tid == 0) order = atomicAdd(ticket, 1);");
            self.line("__syncthreads();");
            number = "order".to_string();
        } else if linear.len() > 1 {
            number = self.names.reserve("block");
            self.line(format!("const int {number} = blockIdx.x;"));
        }
        for (d, block) in linear.iter().enumerate() {
            if !self.used.contains(&block.var) {
                continue;
            }
            let mut place = number.clone();
            let faster: Vec<String> =
                linear[..d].iter().map(|b| self.index(&b.extent).at_least(Strength::Unary)).collect();
            match &faster[..] {
                [] => {}
                [one] => place = format!("{place}/{one}"),
                many => place = format!("{place}/({})", many.join("*")),
            }
            if d + 1 < linear.len() {
                place = format!("{place}%{}", self.index(&block.extent).at_least(Strength::Unary));
            }
            let name = self.names.of(&block.var).to_string();
            self.line(format!("const int {name} = {place};"));
        }
        self.int_products.push(linear.iter().map(|b| b.extent.clone()).collect());
    }

    fn shared_memory(&mut self, launch: &Launch<'_>) -> Result<(), Diagnosis> {
        let dynamic = instr::shared_bytes(launch) > STATIC_SHARED_BYTES;
        if dynamic {
            self.line("extern __shared__ __align__(1024) unsigned char smem[];");
        }
        for shared in &launch.shared.buffers {
            if !self.used.contains(&shared.buffer.sym) {
                continue;
            }
            let (c_type, extents) = self.shared_declaration(&shared.buffer, shared.elements)?;
            let name = self.names.of(&shared.buffer.sym).to_string();
            let one_dimension = extents.matches('[').count() == 1;
            self.line(match (dynamic, one_dimension) {
                (false, _) => {
                    let align = alignment(&shared.buffer);
                    format!("__shared__ __align__({align}) {c_type} {name}{extents};")
                }
                (true, true) => format!("{c_type}* const {name} = ({c_type}*)(smem + {});", shared.offset),
                (true, false) => {
                    format!("auto& {name} = *({c_type} (*){extents})(smem + {});", shared.offset)
                }
            });
        }
        if let Some(offset) = instr::landing(launch) {
            self.line(match dynamic {
                true => format!("unsigned* const landing = (unsigned*)(smem + {offset});"),
                false => format!("__shared__ unsigned landing[{}];", launch.threads),
            });
        }
        for (ring, offset) in &launch.shared.rings {
            let name = self.names.of(&ring.sym).to_string();
            self.line(if dynamic {
                format!("mbarrier* const {name} = (mbarrier*)(smem + {offset});")
            } else {
                format!("__shared__ mbarrier {name}[{}];", ring.depth)
            });
        }
        Ok(())
    }

    fn init_rings(&mut self, launch: &Launch<'_>) {
        if launch.shared.rings.is_empty() {
            return;
        }
        self.prelude.require(&mbarrier::INIT);
        self.line("if (tid == 0) {");
        for (ring, _) in &launch.shared.rings {
            let name = self.names.of(&ring.sym).to_string();
            let (depth, count) = (ring.depth, ring.count);
            self.line(format!("    for (int i = 0; i < {depth}; ++i) mbarrier_init(&{name}[i], {count});"));
        }
        self.line("    mbarrier_init_fence();");
        self.line("}");
        self.line("__syncthreads();");
    }

    /// The program's parameters and scratch buffers that the kernel uses.
    fn arguments(&self) -> Vec<Argument> {
        let mut arguments = Vec::new();
        for param in &self.unit.program.params {
            let used = self.used.contains(&param.sym);
            match &param.kind {
                ParamKind::Size if used && self.unit.is_long() => {
                    arguments.push(Argument::LongSize(param.sym.clone()));
                }
                ParamKind::Size | ParamKind::Launch if used => {
                    arguments.push(Argument::Size(param.sym.clone()));
                }
                ParamKind::Flag if used => arguments.push(Argument::Flag(param.sym.clone())),
                ParamKind::Scalar(dtype) if used => {
                    arguments.push(Argument::Scalar(param.sym.clone(), *dtype));
                }
                ParamKind::Tensor(buffer) => {
                    if used {
                        arguments.push(Argument::Tensor(param.sym.clone()));
                    }
                    arguments.extend(
                        buffer
                            .row_stride
                            .iter()
                            .filter(|s| self.used.contains(*s))
                            .cloned()
                            .map(Argument::Stride),
                    );
                }
                _ => {}
            }
        }
        let scratch = self.unit.scratch_buffers.iter().enumerate();
        arguments.extend(scratch.filter(|(_, s)| self.used.contains(*s)).map(|(i, _)| Argument::Scratch(i)));
        arguments
    }

    /// The comment and the signature.
    fn heading(
        &mut self,
        lines: &mut Lines,
        launch: &Launch<'_>,
        grid: &Grid,
        kernel: &Kernel,
        ticket: bool,
    ) {
        // What only the comment mentions is not part of the kernel.
        let prelude = self.prelude.clone();
        let axes: Vec<String> = grid
            .axes
            .iter()
            .map(|factors| {
                let factors: Vec<_> =
                    factors.iter().map(|f| self.index(f).at_least(Strength::Unary)).collect();
                if factors.is_empty() { "1".to_string() } else { factors.join("*") }
            })
            .collect();
        self.prelude = prelude;
        let last = axes.iter().rposition(|a| a != "1").map_or(1, |at| at + 1);
        let blocks = match axes[..last].join(" x ") {
            one if one == "1" => "1 block".to_string(),
            many => format!("{many} blocks"),
        };
        let mut comment = format!("// Grid: {} of {} threads", blocks, launch.threads);
        match (kernel.shared_bytes, kernel.dynamic_shared_bytes) {
            (0, _) => {}
            (bytes, 0) => comment.push_str(&format!("; {bytes} bytes of shared memory")),
            (bytes, _) => comment.push_str(&format!("; {bytes} bytes of dynamic shared memory")),
        }
        lines.push(format!("{comment}."));
        for (name, map) in &self.maps {
            let [height, width] = map.box_extents;
            let swizzle = match map.swizzle_bytes {
                0 => String::new(),
                bytes => format!(", in the {bytes}-byte swizzle"),
            };
            lines.push(format!(
                "// {name}: boxes of {height} x {width} of {}{swizzle}; zero outside.",
                map.tensor
            ));
        }
        if !self.maps.is_empty() {
            self.prelude.require(&tensor_map::TENSOR_MAP);
        }
        let bounds = match blocks_per_sm(self.unit.target, launch) {
            Some(blocks) => format!("{}, {blocks}", launch.threads),
            None => launch.threads.to_string(),
        };
        lines.push(format!("extern \"C\" __global__ void __launch_bounds__({bounds})"));
        let parameters: Vec<String> = kernel.arguments.iter().map(|a| self.parameter(a, ticket)).collect();
        let mut line = format!("{}(", kernel.name);
        let indent = " ".repeat(4);
        for (i, parameter) in parameters.iter().enumerate() {
            let comma = if i + 1 < parameters.len() { "," } else { ")" };
            let space = if line.ends_with('(') || line == indent { "" } else { " " };
            if line.len() + space.len() + parameter.len() + 1 > WIDTH {
                lines.push(std::mem::replace(&mut line, indent.clone()));
                line.push_str(&format!("{parameter}{comma}"));
            } else {
                line.push_str(&format!("{space}{parameter}{comma}"));
            }
        }
        if parameters.is_empty() {
            line.push(')');
        }
        lines.push(line);
        lines.push("{");
    }

    fn parameter(&mut self, argument: &Argument, ticket: bool) -> String {
        match argument {
            Argument::Size(sym) => format!("int {}", self.names.of(sym)),
            Argument::LongSize(sym) => format!("long long {}", self.names.of(sym)),
            Argument::Stride(sym) => format!("int {}", self.names.of(sym)),
            Argument::Flag(sym) => format!("bool {}", self.names.of(sym)),
            Argument::Scalar(sym, dtype) => format!("{} {}", self.c_type(*dtype), self.names.of(sym)),
            Argument::Tensor(sym) => self.pointer(sym),
            Argument::Scratch(i) => match self.unit.scratch_buffers.get(*i).cloned() {
                Some(sym) if self.unit.links.contains(&sym) => {
                    format!("unsigned long long* {}", self.names.of(&sym))
                }
                Some(sym) => self.pointer(&sym),
                None if ticket => "int* ticket".to_string(),
                None => "void* scratch".to_string(),
            },
            Argument::TensorMap(map) => {
                let name = self.maps.iter().find(|(_, m)| m == map).map_or("", |(name, _)| name);
                format!("const __grid_constant__ TensorMap {name}")
            }
        }
    }

    /// A pointer to a tensor, which nothing else in the kernel points to; that is kept from the compiler where it
    /// would move loads past barriers (see `ahead.rs`) or past the wait for the launch before.
    fn pointer(&mut self, sym: &Sym) -> String {
        let Some(dtype) = self.unit.buffers.get(sym).map(|b| b.dtype) else { return String::new() };
        let written = self.written.contains(sym);
        let constant = if written { "" } else { "const " };
        let silent = self.ahead.contains(sym)
            || self.written_before.contains(sym)
            || (written && !self.ahead.is_empty());
        let restrict = if silent { "" } else { "__restrict__ " };
        format!("{constant}{}* {restrict}{}", self.c_type(dtype), self.names.of(sym))
    }
}

/// Whether a buffer is allotted for a call.
pub(super) fn is_scratch(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Alloc(buffer) if buffer.space == Space::Global)
}
