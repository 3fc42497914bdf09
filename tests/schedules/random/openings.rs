//! Openings: the first steps of known kinds of kernels, with random parameters, some left out and others put between,
//! so that states are reached which single random steps do not reach.

use super::draw::{Draw, Product, pick};
use super::names::Names;

/// Steps that suit a tiled product, some only in certain layouts or before others.
const OF_TILES: &[&str] = &[
    "unroll(acc.ki, acc.i, acc.j, ra.r, ra.c, rb.r, rb.c)",
    "precompute(acc.ki, 1) -> before",
    "precompute(acc.ko, 2) -> before",
    "double_buffer(acc.ko)",
    "double_buffer(acc.ki)",
    "pipeline(acc.ko, 2, via=shared)",
    "pipeline(acc.ko, 3, via=shared)",
    "pipeline(acc.ko, 2, via=registers)",
    "pipeline(acc.ki, 2, via=registers)",
    "pipeline(acc.ko, 3, via=cp_async)",
    "pipeline(acc.ko, 2, via=shared, across=acc.kb)",
    "pipeline(acc.ko, 4, via=shared, across=acc.kb)",
    "pipeline(acc.ko, 3, via=cp_async, across=acc.kb)",
    "tail(acc.ko, peel)",
    "tail(acc.ki, guard)",
    "tail(acc.ki, fill)",
    "vectorize(As.u)",
    "vectorize(Bs.u)",
    "vectorize(ra.c)",
    "vectorize(rb.c)",
    "vectorize(C.j)",
    "tensorize(As.u, cp_async16PIECE)",
    "tensorize(Bs.u, cp_async16PIECE)",
    "storage_align(As, r, 1)",
    "storage_align(Bs, r, 4)",
    "storage_order(As, c, r)",
    "storage_order(Bs, c%2, r, c/2)",
    "swizzle(Bs, 1, 1, 1)",
    "swizzle(As, 1, 2, 1)",
    "fuse(As.r, As.c) -> f",
    "fuse(acc.i, acc.j) -> f",
    "fetch_ends(C.i, 1)",
    "fetch_ends(C.i, 4)",
    "fetch_ends(C.i, 4, by=parts)",
    "fetch_ends(C.i, 4, by=copies)",
    "begin_early()",
    "begin_early(asks=64, by=lines, lets=none)",
    "fetch_granularity(32)",
    "decompose_reduction(acc.i)",
    "decompose_reduction(acc.ko)",
    "split_reduce(acc.ko, 2) -> half, h",
];

/// Steps that suit tiles of warps.
const OF_WARPS: &[&str] = &[
    "storage_align(As, r, 8)",
    "storage_align(Bs, r, 4)",
    "swizzle(As)",
    "swizzle(Bs)",
    "vectorize(As.e, Bs.e)",
    "tensorize(As.e, cp_async16PIECE)",
    "tensorize(Bs.e, cp_async16PIECE)",
    "tensorize(a.LONG_A, LOAD_A)",
    "tensorize(b.LONG_B, LOAD_B)",
    "pipeline(acc.ko, 2, via=cp_async)",
    "pipeline(acc.ko, 3, via=cp_async)",
    "pipeline(acc.ko, 2, via=registers)",
    "pipeline(acc.ks, 2, via=registers)",
    "pipeline(acc.ko, 2, via=cp_async, across=acc.kb)",
    "pipeline(acc.ko, 3, via=cp_async, across=acc.kb)",
    "double_buffer(acc.ko)",
    "unroll(acc.ks, acc.mi, acc.ni, As.u, Bs.u)",
    "precompute(acc.ks, 1) -> before",
    "tail(acc.ko, peel)",
    "tail(acc.ks, threads)",
];

/// Steps that suit the parts of a reduction `acc`.
const OF_PARTS: &[&str] = &[
    "decompose_reduction(acc.i)",
    "decompose_reduction(part.i)",
    "decompose_reduction(part.s)",
    "split_reduce(part.k, 2) -> finer, t",
    "split_reduce(part.k, 3, combine=shared) -> finer, t",
    "rfactor(part.ki) -> finer",
    "rfactor(part.ki, combine=shared_atomic) -> finer",
    "cache_write(part, reg) -> own",
    "cache_write(acc, reg) -> own",
    "cache_write(finer, reg) -> own",
    "set_scope(acc, reg)",
    "set_scope(part, reg)",
    "set_scope(part, shared)",
    "reorder(part.i, part.s)",
    "reorder(part.i, part.j, part.s)",
    "bind(part.s, threads)",
    "bind(part.s, block.z)",
    "bind(part.i, part.j, threads)",
    "bind(acc.i, block.y)",
    "bind(acc.j, block.x)",
    "bind(C.s, block.z)",
    "bind(C.i, block.y)",
    "split(C.i, 2) -> by, i",
    "split(C.j, 2) -> bx, j",
    "tile(C.i, C.j, 2, 4) -> by, bx, i, j",
    "bind(C.by, block.y)",
    "bind(C.bx, block.x)",
    "bind(C.i, C.j, threads)",
    "compute_at(acc, C.bx)",
    "compute_at(acc, C.j)",
    "compute_at(part, C.bx)",
    "compute_at(part, C.j)",
    "compute_at(part, acc.i)",
    "compute_at(finer, part.s)",
    "compute_at(own, part.j)",
    "reverse_compute_at(C, acc.s)",
    "reverse_compute_at(C, acc.j)",
    "reverse_compute_at(C, acc.i)",
    "reverse_compute_at(acc, part.s)",
    "reverse_compute_at(part, finer.t)",
    "fuse(part.s, part.i) -> f",
    "unroll(acc.s)",
];

/// Steps that suit a stage `acc` whose consumers come into its loops.
const OF_EPILOGUES: &[&str] = &[
    "split(acc.i, 4) -> by, i",
    "split(acc.i, 2) -> ty, i",
    "split(acc.j, 4) -> bx, j",
    "split(acc.j, 3, tail=guard) -> bx, j",
    "split(acc.j, 2) -> tx, j",
    "tile(acc.i, acc.j, 4, 2) -> by, bx, i, j",
    "reorder(acc.by, acc.bx, acc.ty, acc.tx, acc.i, acc.j)",
    "reorder(acc.by, acc.bx, acc.i, acc.j)",
    "bind(acc.by, block.y)",
    "bind(acc.bx, block.x)",
    "bind(acc.i, block.y)",
    "bind(acc.ty, acc.tx, threads)",
    "bind(acc.j, threads)",
    "fuse(acc.by, acc.bx) -> f",
    "fuse(acc.i, acc.j) -> f",
    "set_scope(acc, reg)",
    "set_scope(acc, shared)",
    "split(acc.k, 2) -> ko, ki",
    "decompose_reduction(acc.i)",
    "decompose_reduction(acc.bx)",
    "cache_read(A, acc, shared) -> As",
    "compute_at(As, acc.ko)",
    "double_buffer(acc.ko)",
    "reverse_compute_at(NEXT, acc.by)",
    "reverse_compute_at(NEXT, acc.bx)",
    "reverse_compute_at(NEXT, acc.tx)",
    "reverse_compute_at(NEXT, acc.i)",
    "reverse_compute_at(NEXT, acc.j)",
    "reverse_compute_at(NEXT, acc.f)",
    "fuse(NEXT.i, NEXT.j) -> f",
    "vectorize(NEXT.j)",
    "bind(NEXT.i, NEXT.j, threads)",
    "unroll(NEXT.i, NEXT.j)",
];

impl Draw<'_> {
    /// Carries out lines of steps: puts another after one in `calm`, and leaves out one in three times as many.
    fn lines(&mut self, text: &str, calm: usize) {
        for step in text.lines().map(str::trim).filter(|s| !s.is_empty()) {
            if !self.random.once_in(3 * calm) {
                self.step(step.to_string());
            }
            if self.random.once_in(calm) {
                self.any();
            }
        }
    }

    /// Up to `most` of these steps in any order, with names replaced.
    fn some_of(&mut self, steps: &[&str], most: usize, names: &[(&str, &str)]) {
        for _ in 0..self.random.below(most) {
            let step = pick(&mut self.random, steps).to_string();
            self.lines(&names.iter().fold(step, |s, (name, with)| s.replace(name, with)), 8);
        }
    }

    /// Now and then, groups of two or three steps of a sum.
    fn groups(&mut self, sum: &str, step: i64) -> String {
        let steps = pick(&mut self.random, &[1, 1, 1, 2, 3]);
        let outer =
            format!("split({sum}.k, {}) -> kb, k\nreorder({sum}.kb, {sum}.i, {sum}.j)\n", steps * step);
        if steps > 1 { outer } else { String::new() }
    }

    /// A product in tiles of blocks and threads.
    pub fn tiled(&mut self, product: &Product) {
        let factors: Vec<i64> = (0..7).map(|_| pick(&mut self.random, &[1, 2, 2, 3, 4, 4])).collect();
        let [ti, tj, ii, jj, kk, fa, fb] = factors[..] else { unreachable!("there are seven") };
        let acc = product.sum(self);
        let conditions = ["M%4, N%4, K%4", "lda%4, ldb%4, ldc%4", "N%4, K%4, lda%4, ldb%4, ldc%4", "M%3"];
        if self.random.once_in(2) {
            let condition = pick(&mut self.random, &conditions);
            self.step(format!("specialize({condition})"));
        }
        let virtual_threads = self.random.once_in(4);
        let (v, bind_v) = if virtual_threads { ("C.v, ", "bind(C.v, vthread)\n") } else { ("", "") };
        let groups = self.groups(acc, kk);
        let mut text = format!("split(C.i, {}) -> by, i\n", ti * ii * if virtual_threads { 2 } else { 1 });
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
            {groups}split({acc}.k, {kk}) -> ko, ki
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
        self.lines(&text, 8);
        self.some_of(OF_TILES, 7, &[("acc", acc), ("PIECE", product.ending())]);
    }

    /// A product in tiles of warps, for matrix instructions.
    pub fn warps(&mut self, product: &Product) {
        let (step, piece, rows) = if product.dtype == "f64" { (4, 2, 8) } else { (16, 8, 16) };
        let columns = 8;
        let acc = product.sum(self);
        // Where three warps stand side by side they share four tiles: one has two of them and the others one.
        let even = self.random.once_in(3);
        let [wm, wn] = if even {
            pick(&mut self.random, &[[1, 3], [3, 1], [2, 3], [3, 2]])
        } else {
            pick(&mut self.random, &[[1, 1], [1, 1], [1, 2], [2, 1]])
        };
        let [mi, ni] = if even {
            [wm, wn].map(|warps| if warps == 3 { 2 } else { 1 })
        } else {
            pick(&mut self.random, &[[1, 1], [1, 1], [1, 2], [2, 1]])
        };
        let steps = pick(&mut self.random, &[1, 1, 2]);
        // What the warps of one row of them stage belongs to them, or to the block.
        let private = self.random.once_in(4);
        let (depth, tile_m, tile_n) =
            (step * steps, rows * mi, columns * ni * if rows == 16 { 2 } else { 1 });
        let [block_m, block_n] = [(wm, tile_m), (wn, tile_n)]
            .map(|(warps, tile)| if warps == 3 { 2 * tile } else { warps * tile });
        let of_warps = if even {
            format!(
                "split(C.i, nparts={wm}, even={}) -> wm, i
                split(C.j, nparts={wn}, even={}) -> wn, j
                reorder(C.wm, C.wn, C.i, C.j)",
                tile_m / mi,
                tile_n / ni,
            )
        } else {
            format!("tile(C.i, C.j, {tile_m}, {tile_n}) -> wm, wn, i, j")
        };
        let rotate = if even && !self.random.once_in(3) { "rotate(C.wn, C.wm)\n" } else { "" };
        let groups = self.groups(acc, depth);
        let mut text = format!(
            "specialize(lda%{piece}, ldb%{piece})
            tile(C.i, C.j, {block_m}, {block_n}) -> by, bx, i, j
            {of_warps}
            bind(C.by, block.y)
            bind(C.bx, block.x)
            bind(C.wm, C.wn, threads@32)
            {rotate}set_scope({acc}, reg)
            compute_at({acc}, C.wn)
            {groups}split({acc}.k, {depth}) -> ko, k
            split({acc}.k, {step}) -> ks, k
            reorder({acc}.ko, {acc}.ks, {acc}.i, {acc}.j, {acc}.k)\n",
        );
        for (operand, tile, fragment, turned, extent) in [
            ("A", "As", "a", product.turned[0], if private { tile_m } else { block_m }),
            ("B", "Bs", "b", product.turned[1], block_n),
        ] {
            let along_sum = turned == (operand == "B");
            let threads_of_a_row = if along_sum { depth } else { extent } / piece;
            text += &format!(
                "cache_read({operand}, {acc}, shared) -> {tile}
                compute_at({tile}, {acc}.ko{})
                split({tile}.r, {}) -> u, r
                split({tile}.c, {piece}) -> c, e
                reorder({tile}.r, {tile}.c, {tile}.u, {tile}.e)
                bind({tile}.r, {tile}.c, threads)
                cache_read({tile}, {acc}, reg) -> {fragment}
                compute_at({fragment}, {acc}.ks)\n",
                if private { ", private" } else { "" },
                (32 * if private { 1 } else { wm } * wn / threads_of_a_row).max(1),
            );
            if turned {
                text += &format!("storage_order({fragment}, c, r)\n");
            }
        }
        // Instructions may have every second column, of which lanes read and store neighbours at once.
        let alternate = rows == 8 && ni == 2 && !product.turned[1] && self.random.once_in(2);
        if alternate {
            text += &format!(
                "split(b.c, 2) -> c, v
                vectorize(b.v)
                storage_order(b, r, c%2, c/2)
                split({acc}.j, 2) -> j, v
                storage_order({acc}, r, c%2, c/2)
                split(C.j, 2) -> j, v
                vectorize(C.v)\n"
            );
        }
        let v = if alternate { format!("{acc}.v, ") } else { String::new() };
        text += &format!(
            "split({acc}.i, {rows}) -> mi, i
            split({acc}.j, {columns}) -> ni, j
            reorder({acc}.ks, {acc}.mi, {acc}.ni, {v}{acc}.i, {acc}.j, {acc}.k)\n"
        );
        let [long_a, long_b] = [product.turned[0], !product.turned[1]].map(|t| if t { "c" } else { "r" });
        let [inner_a, inner_b] = product.turned.map(|t| if t { "c" } else { "r" });
        if rows == 16 {
            text += &format!(
                "split(a.{long_a}, 16) -> ai, {long_a}
                reorder(a.ai, a.r, a.c)
                split(b.{long_b}, 16) -> bj, {long_b}
                reorder(b.bj, b.r, b.c)\n"
            );
        }
        self.lines(&text, 40);
        let load = |turned: bool, plain: &str, other: &str| {
            let name = if turned { other } else { plain };
            if product.dtype == "bf16" { name.to_string() } else { format!("{name}_{}", product.dtype) }
        };
        let load_a = load(product.turned[0], "ldmatrix_x4", "ldmatrix_x4_trans_turned");
        let load_b = load(product.turned[1], "ldmatrix_x4_trans", "ldmatrix_x4_turned");
        let names = [
            ("acc", acc),
            ("PIECE", product.ending()),
            ("LONG_A", inner_a),
            ("LONG_B", inner_b),
            ("LOAD_A", &load_a),
            ("LOAD_B", &load_b),
        ];
        self.some_of(OF_WARPS, 6, &names);
        let multiply =
            if rows == 8 { "mma_m8n8k4_f64".into() } else { format!("mma_m16n8k16_{}", product.dtype) };
        let omit = pick(&mut self.random, &["", ", omit=unread"]);
        self.lines(&format!("tensorize({acc}.i, {multiply}{omit})"), 40);
        for fragment in ["a", "b", acc] {
            if self.random.once_in(4) {
                self.lines(&format!("lane_base({fragment})"), 40);
            }
        }
        if self.random.once_in(2) {
            self.lines(&format!("unswitch({acc}.ks)"), 40);
        }
        self.some_of(OF_WARPS, 6, &names);
    }

    /// A product A B^T in tiles of warpgroups, whose instructions read shared memory.
    pub fn warpgroups(&mut self, product: &Product) {
        let groups = pick(&mut self.random, &[1, 2]);
        let columns = pick(&mut self.random, &[8, 16, 64]);
        let mut text = format!(
            "specialize(lda%8, ldb%8)
            split(C.i, {}) -> by, i
            split(C.i, 64) -> w, i
            split(C.j, {columns}) -> bx, j
            reorder(C.by, C.bx, C.w, C.i, C.j)
            bind(C.by, block.y)
            bind(C.bx, block.x)
            bind(C.w, threads@128)
            set_scope(acc, reg)
            compute_at(acc, C.w)
            split(acc.k, 64) -> ko, k
            split(acc.k, 16) -> ks, k
            reorder(acc.ko, acc.ks, acc.i, acc.j, acc.k)\n",
            64 * groups,
        );
        for (operand, tile) in [("A", "As"), ("B", "Bs")] {
            text += &format!(
                "cache_read({operand}, acc, shared) -> {tile}
                compute_at({tile}, acc.ko)
                fuse({tile}.r, {tile}.c) -> f
                split({tile}.f, {}) -> u, t
                reorder({tile}.t, {tile}.u)
                bind({tile}.t, threads)
                swizzle({tile})\n",
                128 * groups,
            );
        }
        text += &format!("tensorize(acc.i, wgmma_{}_sw128)\n", product.dtype);
        if !self.random.once_in(4) {
            let via = pick(&mut self.random, &["tma", "tma", "shared", "registers"]);
            text += &format!("pipeline(acc.ko, {}, via={via})\n", 2 + self.random.below(3));
        }
        self.lines(&(text + "unroll(acc.ks)\n"), 40);
    }

    /// Wide accesses: copies and results whose elements are taken several at a time.
    pub fn wide(&mut self) {
        let factor = pick(&mut self.random, &[2, 4, 8]);
        for name in ["M", "N", "K", "lda", "ldb", "ldc"] {
            if self.random.once_in(2) {
                self.step(format!("specialize({name}%{factor})"));
            }
        }
        for at in 0..1 + self.random.below(4) {
            let names = Names::of(self.program());
            if self.random.once_in(2) {
                let space = pick(&mut self.random, &["shared", "shared", "reg"]);
                let (stage, next) = names.any_operand(&mut self.random);
                self.step(format!("cache_read({stage}, {next}, {space}) -> w{at}"));
            }
            let names = Names::of(self.program());
            let Some(last) = names.last_loop(&mut self.random) else { return };
            let (label, factor) = (&last.label, pick(&mut self.random, &[2, 4, 8, factor]));
            let copy = pick(&mut self.random, &["", "", "_f16", "_f32", "_f64"]);
            let wide = pick(&mut self.random, &["vectorize(X)", "vectorize(X)", "tensorize(X, cp_async16Y)"]);
            let wide = wide.replace('X', &format!("{label}.v{at}")).replace('Y', copy);
            self.lines(&format!("split({last}, {factor}) -> c{at}, v{at}\n{wide}"), 20);
            self.any();
        }
    }

    /// A reduction `sum` taken apart.
    pub fn parts(&mut self, sum: &str) {
        let factor = pick(&mut self.random, &[1, 2, 3, 4]);
        let cut = self.random.once_in(2);
        if cut {
            self.step(format!("split({sum}.k, {factor}) -> ko, ki"));
        }
        let target = if cut { pick(&mut self.random, &["ko", "ki"]) } else { "k" };
        let combine =
            pick(&mut self.random, &["", "", "shared", "atomic", "atomic", "shuffle", "shared_atomic"]);
        let combined = if combine.is_empty() { String::new() } else { format!(", combine={combine}") };
        if target == "ki" || self.random.once_in(4) {
            self.step(format!("rfactor({sum}.{target}{combined}) -> part"));
        } else {
            let parts = if combine == "shuffle" { 32 } else { factor };
            let order = pick(&mut self.random, &["", "", ", order=cyclic"]);
            self.step(format!("split_reduce({sum}.{target}, {parts}{combined}{order}) -> part, s"));
        }
        let of_parts = if target == "ki" { ".ki)" } else { ".s)" };
        self.some_of(OF_PARTS, 16, &[("acc", sum), (".s)", of_parts)]);
    }

    /// A stage and its consumer, which comes into its loops.
    pub fn epilogue(&mut self, stage: &str, next: &str) {
        let names = [("acc", stage), ("NEXT", next)];
        self.some_of(OF_EPILOGUES, 20, &names);
        if self.random.once_in(2) {
            let at = pick(&mut self.random, &["by", "bx", "i", "j"]);
            self.step(format!("reverse_compute_at({next}, {stage}.{at})"));
        }
        self.some_of(OF_EPILOGUES, 8, &names);
    }

    /// Two stages of rows in shared memory of blocks, of which the first is done with when the second is begun.
    pub fn in_turn(&mut self) {
        let rows = pick(&mut self.random, &[1, 2, 4, 5]);
        let text = format!(
            "cache_write(u, reg) -> own
            split(C.i, {rows}) -> b, i
            bind(C.b, block.x)
            set_scope(t, shared)
            set_scope(u, shared)
            compute_at(u, C.b)
            compute_at(own, C.b)
            compute_at(t, C.b)\n"
        );
        self.lines(&text, 24);
        self.lines("storage_share(u, t)", 8);
    }

    /// A run of elements in shared memory of blocks, which leaves by a bulk copy.
    pub fn in_bulk(&mut self) {
        let elements = pick(&mut self.random, &[4, 6, 16, 64]);
        let shared_out = if self.random.once_in(2) {
            "split(C.b, 3) -> k, b\nreorder(C.b, C.k)\nbind(C.b, block.x)\ncompute_at(t, C.k)\n"
        } else {
            "bind(C.b, block.x)\ncompute_at(t, C.b)\n"
        };
        self.lines(&format!("split(C.e, {elements}) -> b, e\nset_scope(t, shared)\n{shared_out}"), 24);
        self.lines("bulk_store(C.e)", 4);
    }

    /// The last rows or columns of a sum in parts, by a nest of their own over the same terms.
    pub fn with_a_border(&mut self) {
        let (axis, kept) = pick(&mut self.random, &[("i", 8), ("i", 5), ("j", 4), ("j", 3)]);
        let depth = pick(&mut self.random, &[2, 4]);
        let shared_out =
            if self.random.once_in(2) { "bind(own.i, threads)\nbind(sums.j, threads)\n" } else { "" };
        let text = format!(
            "split(acc.k, {depth}) -> ko, k
            split_reduce(acc.ko, 3, order=cyclic) -> part, s
            partition(part.{axis}, {kept}) -> rest
            cache_write(part, reg) -> own
            cache_write(rest, reg) -> sums
            set_scope(own, shared)
            set_scope(sums, shared)
            compute_at(own, part.s)
            compute_at(sums, rest.s)
            bind(part.s, block.x)
            bind(rest.s, block.x)
            decompose_reduction(own.i)
            decompose_reduction(sums.i)
            reorder(own.ko, own.i, own.j, own.k)
            reorder(sums.ko, sums.i, sums.j, sums.k)
            {shared_out}compute_with(sums.ko, own.ko)
            cache_read(A, own, sums, shared) -> As
            compute_at(As, own.ko)\n"
        );
        self.lines(&text, 24);
    }

    /// Groups of dense rows in runs, of which a sum takes one row each, read to the end of a row or beyond it.
    pub fn in_runs(&mut self) {
        let (depth, runs) = pick(&mut self.random, &[(4, 2), (8, 4), (8, 2), (12, 3), (6, 3)]);
        let tile = pick(&mut self.random, &[9, 9, 10, 12, 4]);
        let run = depth / runs * 9;
        let beyond = (9 + tile - 1) / tile * tile - 9;
        let columns = match (beyond, self.random.below(4)) {
            (0, 0..=2) => String::new(),
            (beyond, 3) => format!(", columns={}", run + beyond + 3),
            (beyond, _) => format!(", columns={}", run + beyond),
        };
        let padding = pick(&mut self.random, &[0, 1, 4]);
        let space = pick(&mut self.random, &["shared", "shared", "reg"]);
        let text = format!(
            "split(acc.k, {depth}) -> ko, k
            split_reduce(acc.ko, 3, order=cyclic) -> part, s
            cache_write(part, reg) -> own
            set_scope(own, shared)
            split(part.i, {tile}) -> it, i
            reorder(part.s, part.it, part.i, part.j)
            bind(part.s, block.x)
            compute_at(own, part.it)
            split(own.k, {of_a_run}) -> t, q
            reorder(own.ko, own.q, own.t, own.i, own.j)
            cache_read(A, own, {space}, rows={run}{columns}) -> As
            compute_at(As, own.ko)
            storage_align(As, r, {padding})\n",
            of_a_run = depth / runs,
        );
        self.lines(&text, 24);
    }
}
