//! Drawing a specification, sizes, and steps.

use std::panic::{AssertUnwindSafe, catch_unwind};

use warpwright_core::ir::{Program, Stmt, parse, walk};
use warpwright_core::schedule::Schedule;
use warpwright_sim::coroutine::Random;

use crate::check::with_aligned_rows;

/// What is computed: loops under various buffers, of all kinds of types and numbers of dimensions.
const SPECIFICATIONS: &[&str] = &[
    "program gemm(M: size, N: size, K: size, alpha: f32, beta: f32, beta0: flag,
        A: in f32[M, K; lda], B: in f32[K, N; ldb], C: inout f32[M, N; ldc]) {
      alloc acc: f32[M, N] global
      for i in 0..M, j in 0..N { acc[i, j] = 0  for k in 0..K { acc[i, j] += A[i, k] * B[k, j] } }
      for i in 0..M, j in 0..N {
        if beta0 { C[i, j] = alpha * acc[i, j] } else { C[i, j] = alpha * acc[i, j] + beta * C[i, j] }
      }
    }",
    "program transposed(M: size, N: size, K: size, alpha: f64, beta: f64, beta0: flag,
        A: in f64[K, M; lda], B: in f64[N, K; ldb], C: inout f64[M, N; ldc]) {
      alloc acc: f64[M, N] global
      for i in 0..M, j in 0..N { acc[i, j] = 0  for k in 0..K { acc[i, j] += A[k, i] * B[j, k] } }
      for i in 0..M, j in 0..N {
        if beta0 { C[i, j] = alpha * acc[i, j] } else { C[i, j] = alpha * acc[i, j] + beta * C[i, j] }
      }
    }",
    "program direct(M: size, N: size, K: size, A: in i32[M, K; lda], B: in i32[K, N; ldb], C: out i32[M, N; ldc]) {
      for i in 0..M, j in 0..N { C[i, j] = 0  for k in 0..K { C[i, j] += A[i, k] * B[k, j] } }
    }",
    "program half(M: size, N: size, K: size, A: in bf16[M, K; lda], B: in bf16[K, N; ldb], C: out bf16[M, N; ldc]) {
      alloc acc: f32[M, N] global
      for i in 0..M, j in 0..N { acc[i, j] = 0  for k in 0..K { acc[i, j] += f32(A[i, k]) * f32(B[k, j]) } }
      for i in 0..M, j in 0..N { C[i, j] = bf16(acc[i, j]) }
    }",
    "program complex(M: size, N: size, K: size, alpha: c64,
        A: in c64[K, M; lda], B: in c64[K, N; ldb], C: out c64[M, N; ldc]) {
      alloc acc: c64[M, N] global
      for i in 0..M, j in 0..N { acc[i, j] = 0  for k in 0..K { acc[i, j] += conj(A[k, i]) * B[k, j] } }
      for i in 0..M, j in 0..N { C[i, j] = alpha * acc[i, j] }
    }",
    "program matrix_vector(M: size, K: size, A: in f32[M, K; lda], x: in f32[K], y: out f32[M]) {
      for i in 0..M { y[i] = 0  for k in 0..K { y[i] += A[i, k] * x[k] } }
    }",
    "program chain(M: size, N: size, A: in f32[M, N; lda], B: in f32[N, M; ldb], C: out f32[M, N; ldc]) {
      alloc t: f32[M, N] global
      alloc u: f32[M, N] global
      for i in 0..M, j in 0..N { t[i, j] = A[i, j] + B[j, i] }
      for i in 0..M, j in 0..N { u[i, j] = t[i, j] * t[i, j] }
      for i in 0..M, j in 0..N { C[i, j] = u[i, j] - t[i, j] }
    }",
];

/// A specification, sizes to try it at, and steps.
pub struct Case {
    pub seed: u64,
    pub specification: Program,
    /// Sizes and, half of the time, row strides.
    pub sizes: Vec<(&'static str, i64)>,
    pub steps: Vec<String>,
}

impl Case {
    /// A case without steps; of the sizes, those that the specification has.
    pub fn of(name: &str, sizes: &[(&'static str, i64)]) -> Case {
        let specification = SPECIFICATIONS.iter().map(|text| parse::program(text).expect("reads"));
        let specification = specification.into_iter().find(|p| p.name == name).expect("is there");
        let sizes = sizes.iter().filter(|(name, _)| specification.param(name).is_some()).copied().collect();
        Case { seed: 1, specification, sizes, steps: Vec::new() }
    }

    /// The case of a seed. Each step is told before it is tried.
    pub fn draw(seed: u64, told: &mut dyn FnMut(&str)) -> Case {
        let mut random = Random::new(seed);
        let kind = random.below(SPECIFICATIONS.len());
        let specification = parse::program(SPECIFICATIONS[kind]).expect("reads");
        let mut sizes: Vec<(&str, i64)> = ["M", "N", "K"]
            .into_iter()
            .filter(|name| specification.param(name).is_some())
            .map(|name| (name, pick(&mut random, &[0, 1, 2, 3, 4, 5, 7, 8, 9, 16])))
            .collect();
        if random.once_in(2) {
            for (name, value) in with_aligned_rows(&specification, &sizes.clone()).split_off(sizes.len()) {
                sizes.extend(["lda", "ldb", "ldc"].into_iter().filter(|n| *n == name).map(|n| (n, value)));
            }
        }
        let mut draw =
            Draw { random, schedule: Schedule::new(specification.clone()), steps: Vec::new(), told };
        if kind < 5 && !draw.random.once_in(3) {
            draw.tiled(kind);
        }
        for _ in 0..4 + draw.random.below(12) {
            draw.any();
        }
        let steps = draw.steps;
        Case { seed, specification, sizes, steps }
    }
}

/// Steps that suit a tiled product, some only in certain layouts or before others.
const REFINEMENTS: &[&str] = &[
    "unroll(acc.ki, acc.i, acc.j, ra.r, ra.c, rb.r, rb.c)",
    "double_buffer(acc.ko)",
    "pipeline(acc.ko, 2, via=shared)",
    "pipeline(acc.ko, 3, via=shared)",
    "pipeline(acc.ko, 2, via=registers)",
    "pipeline(acc.ki, 2, via=registers)",
    "tail(acc.ko, peel)",
    "tail(acc.ki, guard)",
    "vectorize(As.u)",
    "vectorize(Bs.u)",
    "vectorize(ra.c)",
    "vectorize(rb.c)",
    "vectorize(C.j)",
    "storage_align(As, r, 1)",
    "storage_align(Bs, r, 4)",
    "storage_order(As, c, r)",
    "storage_order(Bs, c%2, r, c/2)",
    "swizzle(Bs, 1, 1, 1)",
    "swizzle(As, 1, 2, 1)",
    "fuse(As.r, As.c) -> f",
    "tail(acc.ki, fill)",
    "split_reduce(acc.ko, 2) -> half, h",
];

fn pick<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[random.below(list.len())]
}

/// A schedule that grows.
struct Draw<'a> {
    random: Random,
    schedule: Schedule,
    steps: Vec<String>,
    told: &'a mut dyn FnMut(&str),
}

impl Draw<'_> {
    /// Tries a step. Whatever happens is looked at when the case is run.
    fn step(&mut self, step: String) {
        (self.told)(&step);
        let _ = catch_unwind(AssertUnwindSafe(|| self.schedule.steps(&step).map(|_| ())));
        self.steps.push(step);
    }

    /// The steps of a tiled product with random parameters, some left out and others put between: states that single
    /// random steps do not reach.
    fn tiled(&mut self, kind: usize) {
        let factors: Vec<i64> = (0..7).map(|_| pick(&mut self.random, &[1, 2, 2, 3, 4, 4])).collect();
        let [ti, tj, ii, jj, kk, fa, fb] = factors[..] else { unreachable!("there are seven") };
        let acc = if kind == 2 { "part" } else { "acc" };
        let mut text = String::new();
        if kind == 2 {
            text += "cache_write(C, reg) -> part\n";
        }
        let conditions = ["M%4, N%4, K%4", "lda%4, ldb%4, ldc%4", "N%4, K%4, lda%4, ldb%4, ldc%4", "M%3"];
        if self.random.once_in(2) {
            text += &format!("specialize({})\n", pick(&mut self.random, &conditions));
        }
        let virtual_threads = self.random.once_in(4);
        let (v, bind_v) = if virtual_threads { ("C.v, ", "bind(C.v, vthread)\n") } else { ("", "") };
        text += &format!("split(C.i, {}) -> by, i\n", ti * ii * if virtual_threads { 2 } else { 1 });
        if virtual_threads {
            text += &format!("split(C.i, {}) -> v, i\n", ti * ii);
        }
        text += &format!(
            "split(C.j, {bn}) -> bx, j
            split(C.i, {ii}) -> ty, i
            split(C.j, {jj}) -> tx, j
            reorder(C.by, C.bx, {v}C.ty, C.tx, C.i, C.j)
            bind(C.by, block.y)
            bind(C.bx, block.x)
            {bind_v}bind(C.ty, C.tx, threads)
            set_scope({acc}, reg)
            compute_at({acc}, C.tx)
            split({acc}.k, {kk}) -> ko, ki
            reorder({acc}.ko, {acc}.ki, {acc}.i, {acc}.j)
            cache_read(A, {acc}, shared) -> As
            compute_at(As, {acc}.ko)
            split(As.r, {fa}) -> u, r
            reorder(As.r, As.c, As.u)
            bind(As.r, As.c, threads)
            cache_read(B, {acc}, shared) -> Bs
            compute_at(Bs, {acc}.ko)
            split(Bs.c, {fb}) -> c, u
            bind(Bs.r, Bs.c, threads)
            cache_read(As, {acc}, reg) -> ra
            compute_at(ra, {acc}.ki)
            cache_read(Bs, {acc}, reg) -> rb
            compute_at(rb, {acc}.ki)\n",
            bn = tj * jj,
        );
        for _ in 0..self.random.below(6) {
            text += &pick(&mut self.random, REFINEMENTS).replace("acc.", &format!("{acc}."));
            text.push('\n');
        }
        for step in text.lines() {
            if !self.random.once_in(25) {
                self.step(step.trim().to_string());
            }
            if self.random.once_in(8) {
                self.any();
            }
        }
    }

    /// A step that may be legal, or not.
    fn any(&mut self) {
        let names = Names::of(self.schedule.program());
        if names.loops.is_empty() {
            return;
        }
        let number = self.steps.len();
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
        let step = match random.below(30) {
            0..=3 => {
                let tail = pick(random, &["", "", ", tail=guard", ", tail=fill"]);
                format!("split({some_loop}, {factor}{tail}) -> o{number}, i{number}")
            }
            4 => format!("split({some_loop}, nparts={factor}) -> o{number}, i{number}"),
            5 => format!("fuse({}) -> f{number}", names.some_loops(random, 2)),
            6..=8 => format!("reorder({})", names.some_loops(random, 4)),
            9 => {
                format!("bind({some_loop}, {})", pick(random, &["block.x", "block.y", "block.z", "vthread"]))
            }
            10 | 11 => format!("bind({}, threads)", names.some_loops(random, 3)),
            12 => format!("unroll({})", names.some_loops(random, 3)),
            13 | 14 => format!("vectorize({some_loop})"),
            15 | 16 => format!("cache_read({buffer}, {}, {space}) -> b{number}", names.any_buffer(random)),
            17 => format!("cache_write({buffer}, {space}) -> b{number}"),
            18 | 19 => format!("compute_at({buffer}, {some_loop})"),
            20 => format!("reverse_compute_at({buffer}, {some_loop})"),
            21 => format!("set_scope({buffer}, {space})"),
            22 | 23 => {
                let via = pick(random, &["shared", "registers"]);
                format!("pipeline({some_loop}, {}, via={via})", 1 + random.below(4))
            }
            24 => format!("double_buffer({some_loop})"),
            25 => format!("tail({some_loop}, {})", pick(random, &["peel", "guard", "fill"])),
            26 => {
                let order = pick(random, &["", ", order=cyclic"]);
                format!("split_reduce({some_loop}, {factor}{combine}{order}) -> b{number}, s{number}")
            }
            27 => format!("rfactor({some_loop}{combine}) -> b{number}"),
            28 => match random.below(3) {
                0 => format!("decompose_reduction({some_loop})"),
                1 => format!("specialize({}%{factor})", pick(random, &["M", "N", "K", "lda", "ldb"])),
                _ => format!(
                    "tile({}, {factor}, 2) -> o{number}, p{number}, i{number}, j{number}",
                    names.some_loops(random, 2)
                ),
            },
            _ => match random.below(3) {
                0 => format!("storage_align({buffer}, {axis}, {})", random.below(5)),
                1 => format!(
                    "storage_order({buffer}, {})",
                    pick(random, &["c, r", "r, c", "r, c%2, c/2", "c%4, r, c/4"])
                ),
                _ => format!("swizzle({buffer})"),
            },
        };
        self.step(step);
    }
}

/// The loops and buffers of a program by name.
struct Names {
    /// The label and the name of each loop.
    loops: Vec<(String, String)>,
    buffers: Vec<String>,
}

impl Names {
    fn of(program: &Program) -> Names {
        let buffers = program.tensors().map(|b| b.sym.name().to_string()).collect();
        let mut names = Names { loops: Vec::new(), buffers };
        walk::for_each(&program.body, &mut |stmt| match stmt {
            Stmt::For(l) => walk::for_each(&l.body, &mut |inner| {
                if let Stmt::Assign(a) = inner {
                    let name = (a.target.buffer.name().to_string(), l.var.name().to_string());
                    if !names.loops.contains(&name) {
                        names.loops.push(name);
                    }
                }
            }),
            Stmt::Alloc(b) if !names.buffers.iter().any(|n| n == b.sym.name()) => {
                names.buffers.push(b.sym.name().to_string());
            }
            _ => {}
        });
        names
    }

    fn any_loop(&self, random: &mut Random) -> String {
        let (label, name) = &self.loops[random.below(self.loops.len())];
        format!("{label}.{name}")
    }

    /// Several loops of one label, mostly from the outside inwards.
    fn some_loops(&self, random: &mut Random, most: usize) -> String {
        let label = &self.loops[random.below(self.loops.len())].0;
        let mut of_label: Vec<String> =
            self.loops.iter().filter(|(l, _)| l == label).map(|(l, n)| format!("{l}.{n}")).collect();
        if random.once_in(3) {
            random.shuffle(&mut of_label);
        }
        let first = random.below(of_label.len());
        let last = (first + 1 + random.below(most)).min(of_label.len());
        of_label[first..last].join(", ")
    }

    fn any_buffer(&self, random: &mut Random) -> String {
        self.buffers[random.below(self.buffers.len())].clone()
    }
}
