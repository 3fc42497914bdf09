//! Drawing a specification, sizes, and steps.

use std::panic::{AssertUnwindSafe, catch_unwind};

use warpwright_core::instr;
use warpwright_core::ir::{Program, Stmt};
use warpwright_core::schedule::Schedule;
use warpwright_sim::coroutine::Random;

use super::names::Names;
use super::specifications;
use crate::check::with_aligned_rows;

/// Each doubles the program; with two more, a case takes minutes.
const MOST_SPECIALIZATIONS: usize = 6;

/// A specification, sizes to try it at, and steps.
pub struct Case {
    pub seed: u64,
    pub specification: Program,
    /// Sizes and, often, row strides.
    pub sizes: Vec<(&'static str, i64)>,
    pub steps: Vec<String>,
}

/// What the steps of a case begin with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    Free,
    Tiled,
    Warps,
    Wide,
    Parts,
    Epilogue,
}

impl Opening {
    fn draw(random: &mut Random, product: bool) -> Opening {
        use Opening::{Epilogue, Free, Parts, Tiled, Warps, Wide};
        let of_products = [Free, Tiled, Tiled, Tiled, Warps, Wide, Parts, Parts, Epilogue];
        pick(random, if product { &of_products } else { &[Free, Wide, Parts, Parts, Epilogue, Epilogue] })
    }
}

impl Case {
    /// A case without steps; of the sizes, those that the specification has.
    pub fn of(name: &str, sizes: &[(&'static str, i64)]) -> Case {
        let specification = specifications::by_name(name);
        let strided: Vec<_> = specification.tensors().filter_map(|b| b.row_stride.clone()).collect();
        let known = |name: &str| {
            specification.param(name).is_some() || strided.iter().any(|stride| stride.name() == name)
        };
        let sizes = sizes.iter().filter(|(name, _)| known(name)).copied().collect();
        Case { seed: 1, specification, sizes, steps: Vec::new() }
    }

    /// The case of a seed. Each step is told before it is tried.
    pub fn draw(seed: u64, told: &mut dyn FnMut(&str)) -> Case {
        let mut random = Random::new(seed);
        let specification = specifications::draw(&mut random);
        let product = Product::of(&specification);
        let opening = Opening::draw(&mut random, product.is_some());
        let mut lengths = vec![0, 1, 2, 3, 4, 5, 7, 8, 9, 16];
        if opening == Opening::Warps {
            lengths.extend([12, 17, 20, 24]);
        }
        let mut sizes: Vec<(&str, i64)> = ["M", "N", "K"]
            .into_iter()
            .filter(|name| specification.param(name).is_some())
            .map(|name| (name, pick(&mut random, &lengths)))
            .collect();
        if random.once_in(2) || opening == Opening::Warps && random.once_in(2) {
            for (name, value) in with_aligned_rows(&specification, &sizes.clone()).split_off(sizes.len()) {
                sizes.extend(["lda", "ldb", "ldc"].into_iter().filter(|n| *n == name).map(|n| (n, value)));
            }
        }
        let mut draw =
            Draw { random, schedule: Schedule::new(specification.clone()), steps: Vec::new(), told };
        draw.open(opening, product.as_ref());
        for _ in 0..4 + draw.random.below(12) {
            draw.any();
        }
        let steps = draw.steps;
        Case { seed, specification, sizes, steps }
    }
}

/// A product of A and B, as the openings want to know it.
pub struct Product {
    /// The element type of the operands.
    pub dtype: &'static str,
    /// Whether A is stored with its columns as rows, and whether B is.
    pub turned: [bool; 2],
    /// Whether sums are formed in C itself.
    direct: bool,
}

impl Product {
    /// `None` of what is no product, or more than one stage after it.
    fn of(program: &Program) -> Option<Product> {
        let first = |name: &str| {
            let tensor = program.tensors().find(|t| t.sym.name() == name)?;
            Some((tensor.dtype.name(), tensor.dims[0].extent.to_string()))
        };
        let ((dtype, rows_a), (_, rows_b)) = (first("A")?, first("B")?);
        let buffers = program.body.iter().filter(|s| matches!(s, Stmt::Alloc(_))).count();
        let summed = program.param("K").is_some() && buffers <= 1;
        summed.then(|| Product { dtype, turned: [rows_a == "K", rows_b == "N"], direct: buffers == 0 })
    }

    /// The buffer of the sums, which is made if there is none.
    pub fn sum(&self, draw: &mut Draw) -> &'static str {
        if !self.direct {
            return "acc";
        }
        draw.step("cache_write(C, reg) -> part".into());
        "part"
    }

    /// How the names of asynchronous copies of its elements end.
    pub fn ending(&self) -> &'static str {
        match self.dtype {
            "f16" => "_f16",
            "f32" => "_f32",
            "f64" => "_f64",
            _ => "",
        }
    }
}

pub fn pick<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[random.below(list.len())]
}

/// A schedule that grows.
pub struct Draw<'a> {
    pub random: Random,
    schedule: Schedule,
    steps: Vec<String>,
    told: &'a mut dyn FnMut(&str),
}

impl Draw<'_> {
    /// Tries a step, if the program does not grow too large. Whatever happens is looked at when the case is run.
    pub fn step(&mut self, step: String) {
        let specializes = |step: &String| step.starts_with("specialize");
        if specializes(&step) && self.steps.iter().filter(|s| specializes(s)).count() >= MOST_SPECIALIZATIONS
        {
            return;
        }
        (self.told)(&step);
        let _ = catch_unwind(AssertUnwindSafe(|| self.schedule.steps(&step).map(|_| ())));
        self.steps.push(step);
    }

    /// What the steps have made so far.
    pub fn program(&self) -> &Program {
        self.schedule.program()
    }

    fn open(&mut self, opening: Opening, product: Option<&Product>) {
        let names = Names::of(self.program());
        match (opening, product) {
            (Opening::Free | Opening::Epilogue, _) if self.program().name == "staged" => self.in_turn(),
            (_, _) if self.program().name == "flat" => self.in_bulk(),
            (_, _) if self.program().name == "skinny" => self.with_a_border(),
            (_, _) if self.program().name == "dense" => self.in_runs(),
            (Opening::Free, _) | (Opening::Tiled | Opening::Warps, None) => {}
            (Opening::Warps, Some(p)) if matches!(p.dtype, "f16" | "bf16") && p.turned == [false, true] => {
                if self.random.once_in(2) {
                    self.warpgroups(p);
                } else {
                    self.warps(p);
                }
            }
            (Opening::Warps, Some(p)) if matches!(p.dtype, "f16" | "bf16" | "f64") => self.warps(p),
            (Opening::Tiled | Opening::Warps, Some(p)) => self.tiled(p),
            (Opening::Wide, _) => self.wide(),
            (Opening::Parts, _) => {
                if let Some(sum) = names.reductions.first() {
                    self.parts(&sum.label);
                }
            }
            (Opening::Epilogue, _) => {
                let (stage, next) = names.any_use(&mut self.random);
                self.epilogue(&stage, &next);
            }
        }
    }

    /// A step that may be legal, or not.
    pub fn any(&mut self) {
        let names = Names::of(self.program());
        if names.loops.is_empty() {
            return;
        }
        let (number, dense) = (self.steps.len(), self.program().name == "dense");
        let random = &mut self.random;
        let some_loop = names.any_loop(random);
        let buffer = names.any_buffer(random);
        let factor = pick(random, &[1, 2, 3, 4, 5, 8]);
        let space = pick(random, &["shared", "reg"]);
        let axis = pick(random, &["r", "c", "e"]);
        let combine = pick(
            random,
            &["", ", combine=shared", ", combine=atomic", ", combine=shuffle", ", combine=shared_atomic"],
        );
        let step = match random.below(52) {
            0..=3 => {
                let tail = pick(random, &["", "", ", tail=guard", ", tail=fill"]);
                format!("split({some_loop}, {factor}{tail}) -> o{number}, i{number}")
            }
            4 => format!("split({some_loop}, nparts={factor}) -> o{number}, i{number}"),
            5..=7 => format!("fuse({}) -> f{number}", names.nested_pair(random)),
            8..=10 => format!("reorder({})", names.some_loops(random, 4)),
            11 => {
                format!("bind({some_loop}, {})", pick(random, &["block.x", "block.y", "block.z", "vthread"]))
            }
            12 | 13 => {
                let pitch = if random.once_in(8) { "@32" } else { "" };
                format!("bind({}, threads{pitch})", names.some_loops(random, 3))
            }
            14 => format!("unroll({})", names.some_loops(random, 3)),
            15..=17 => format!("vectorize({})", names.one_of(&names.innermost, random)),
            18 | 19 => {
                let consumer = names.any_buffer(random);
                let rows = if dense { rows_of_a_copy(random) } else { String::new() };
                format!("cache_read({buffer}, {consumer}, {space}{rows}) -> b{number}")
            }
            20 => format!("cache_write({buffer}, {space}) -> b{number}"),
            21 | 22 => {
                let private = if random.once_in(8) { ", private" } else { "" };
                format!("compute_at({buffer}, {some_loop}{private})")
            }
            23..=26 => {
                let (stage, next) = names.any_use(random);
                format!("reverse_compute_at({next}, {})", names.loop_of(&stage, random))
            }
            27 => format!("set_scope({buffer}, {space})"),
            28 | 29 => {
                let via = pick(random, &["shared", "registers", "cp_async"]);
                format!("pipeline({some_loop}, {}, via={via})", 1 + random.below(4))
            }
            30 | 31 => format!("double_buffer({})", names.one_of(&names.staging, random)),
            32 => format!("tail({some_loop}, {})", pick(random, &["peel", "guard", "fill", "threads"])),
            33 | 34 => {
                let order = pick(random, &["", ", order=cyclic"]);
                let target = names.one_of(&names.reductions, random);
                let parts = if combine == ", combine=shuffle" { 32 } else { factor };
                format!("split_reduce({target}, {parts}{combine}{order}) -> b{number}, s{number}")
            }
            35 | 36 => format!("rfactor({}{combine}) -> b{number}", names.one_of(&names.reductions, random)),
            37 | 38 => format!("decompose_reduction({})", names.one_of(&names.initialised, random)),
            39 => format!("specialize({}%{factor})", pick(random, &["M", "N", "K", "lda", "ldb"])),
            40 => format!(
                "tile({}, {factor}, 2) -> o{number}, p{number}, i{number}, j{number}",
                names.some_loops(random, 2)
            ),
            41 => {
                let known: Vec<&str> = instr::all().map(|r| r.name).collect();
                format!("tensorize({}, {})", names.one_of(&names.innermost, random), pick(random, &known))
            }
            43 => format!("partition({some_loop}, {factor}) -> b{number}"),
            45 => format!("unswitch({some_loop})"),
            44 => format!("compute_with({some_loop}, {})", names.any_loop(random)),
            42 => format!("precompute({some_loop}, {}) -> b{number}", 1 + random.below(2)),
            48 => format!("rotate({some_loop}, {})", names.any_loop(random)),
            49 => {
                let pair = names.nested_pair(random);
                let (outer, inner) = pair.split_once(", ").unwrap_or((&some_loop, &pair));
                format!("rotate({inner}, {outer})")
            }
            50 | 51 => {
                let target =
                    if random.once_in(2) { some_loop } else { names.one_of(&names.innermost, random) };
                let piece = pick(random, &[1, 1, 2, 3, 4]);
                let tail = pick(random, &["", "", ", tail=guard", ", tail=fill"]);
                format!("split({target}, nparts={factor}, even={piece}{tail}) -> o{number}, i{number}")
            }
            _ => match random.below(6) {
                0 => format!("storage_align({buffer}, {axis}, {})", random.below(5)),
                1 => format!(
                    "storage_order({buffer}, {})",
                    pick(random, &["c, r", "r, c", "r, c%2, c/2", "c%4, r, c/4", "r%2, r/2, c"])
                ),
                2 | 4 => format!("store_split({buffer})"),
                3 => format!("storage_share({buffer}, {})", names.one_of(&names.staging, random)),
                _ => format!("swizzle({buffer})"),
            },
        };
        self.step(step);
    }
}

/// How a copy of a run of elements has rows, if it has: whole ones of A, of B, several, and others; some go on into the next.
fn rows_of_a_copy(random: &mut Random) -> String {
    let rows = pick(random, &[0, 9, 5, 18, 36, 20, 4]);
    match (rows, random.below(3)) {
        (0, _) => String::new(),
        (rows, 0) => format!(", rows={rows}, columns={}", rows + pick(random, &[0, 1, 3, 7])),
        (rows, _) => format!(", rows={rows}"),
    }
}
