//! What random schedules have found, each as short as it got, so that it stays right.

/// The name of a specification, sizes, and steps; each is applied and checked like those that are drawn.
pub type Found = (&'static str, &'static [(&'static str, i64)], &'static str);

pub const FOUND: &[Found] = &[
    // Both versions of a specialised program were given the buffer of one.
    ("complex", &[("M", 2), ("N", 4), ("K", 4)], "specialize(M%3)\ncache_write(acc, reg) -> t"),
    // Registers of many threads stayed spread over them in shared memory.
    (
        "transposed",
        &[("M", 7), ("N", 2), ("K", 7)],
        "split(C.i, 2) -> ty, i
split(C.j, 4) -> tx, j
reorder(C.ty, C.tx, C.i, C.j)
bind(C.ty, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, 3) -> ko, ki
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
set_scope(acc, shared)",
    ),
    // Shared memory was spread over threads when a thread loop was moved past it.
    (
        "complex",
        &[("M", 1), ("N", 5), ("K", 7)],
        "split(C.i, 6) -> by, i
split(C.i, 2) -> ty, i
split(C.j, 4) -> bx, j
split(C.j, 1) -> tx, j
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, 1) -> ko, ki
cache_read(A, acc, shared) -> As
cache_read(As, acc, reg) -> ra
compute_at(ra, acc.ki)
cache_read(ra, acc, shared) -> b
reorder(b.by, b.c, b.ty, b.ki)",
    ),
    // Scratch in device memory inside loops that are not bound was allocated inside a launch.
    ("transposed", &[("M", 3), ("N", 9), ("K", 8)], "reverse_compute_at(C, acc.j)"),
    ("chain", &[("M", 8), ("N", 4), ("K", 0)], "split(C.j, 3) -> o, i\ncompute_at(u, C.o)"),
    // What each thread has of its own became one array for all.
    (
        "gemm",
        &[("M", 9), ("N", 3), ("K", 0)],
        "compute_at(acc, C.j)\nsplit(C.j, 3) -> bx, tx\nbind(C.tx, threads)",
    ),
    (
        "transposed",
        &[("M", 5), ("N", 4), ("K", 3)],
        "split(C.j, 2) -> bx, tx\nbind(C.tx, threads)\ncache_read(C, C, shared) -> b",
    ),
    // Blocks were made to allocate device memory.
    ("chain", &[("M", 8), ("N", 4), ("K", 0)], "compute_at(u, C.j)\nbind(C.i, block.x)"),
    ("chain", &[("M", 8), ("N", 4), ("K", 0)], "bind(C.i, block.x)\ncompute_at(u, C.j)"),
    // Of two copies of a loop, each with a stage in shared memory, one lost its buffer.
    (
        "direct",
        &[("M", 3), ("N", 7), ("K", 5)],
        "cache_write(C, reg) -> part
split(C.i, 4) -> by, i
bind(C.by, block.y)
compute_at(part, C.j)
split(part.k, 4) -> ko, ki
cache_read(A, part, shared) -> As
compute_at(As, part.ko)
tail(part.ko, peel)
cache_read(B, part, shared) -> Bs
compute_at(Bs, part.ko)",
    ),
    // A stage that is kept whole along a dimension was read past its end.
    (
        "direct",
        &[("M", 16), ("N", 9), ("K", 7)],
        "cache_write(C, reg) -> part
split(C.i, 12) -> by, i
split(C.j, 12) -> bx, j
split(C.j, 3) -> tx, j
compute_at(part, C.tx)
cache_read(B, part, shared) -> Bs
compute_at(Bs, C.by)",
    ),
    // Parts of a range were numbered past the last.
    (
        "complex",
        &[("M", 3), ("N", 7), ("K", 1)],
        "split_reduce(acc.k, 8, combine=shared) -> b, s\nsplit(b.s, 5) -> o, i",
    ),
    // A copy was made before its source, or of a ring before its later slots were filled.
    (
        "complex",
        &[("M", 5), ("N", 5), ("K", 5)],
        "split(acc.k, 2) -> ko, ki
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
cache_read(B, acc, shared) -> Bs
compute_at(Bs, acc.ko)
tail(Bs.ko, peel)
cache_read(As, acc, reg) -> ra",
    ),
    (
        "half",
        &[("M", 16), ("N", 1), ("K", 16)],
        "split(acc.k, 3) -> ko, ki
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
double_buffer(As.ko)
cache_read(As, acc, reg) -> ra",
    ),
    // A result in two nests was computed elsewhere twice.
    ("direct", &[("M", 2), ("N", 7), ("K", 3)], "decompose_reduction(C.i)\ncache_write(C, reg) -> b"),
    // A shared tile outside all blocks was allocated nowhere; a consumer's buffer, too late.
    ("half", &[("M", 4), ("N", 8), ("K", 3)], "cache_write(acc, shared) -> b\nreverse_compute_at(acc, b.i)"),
    (
        "half",
        &[("M", 3), ("N", 7), ("K", 16)],
        "cache_read(B, acc, shared) -> Bs\ncache_read(Bs, acc, reg) -> rb\nreverse_compute_at(rb, Bs.c)",
    ),
    // What was rounded down already, or has but one iteration, has no tail.
    (
        "complex",
        &[("M", 5), ("N", 2), ("K", 8)],
        "split(C.j, 4) -> bx, j\ntail(C.bx, peel)\nset_scope(acc, reg)\ncompute_at(acc, C.bx)\ntail(acc.bx, peel)",
    ),
    (
        "half",
        &[("M", 8), ("N", 5), ("K", 2)],
        "split(C.i, 8) -> by, i
split(C.i, 2) -> ty, i
set_scope(acc, reg)
compute_at(acc, C.j)
cache_read(A, acc, shared) -> As
split(acc.ty, 8) -> o, p
tail(acc.o, peel)",
    ),
    // What is reduced atomically was put into registers.
    (
        "gemm",
        &[("M", 9), ("N", 0), ("K", 5)],
        "rfactor(acc.k, combine=shared_atomic) -> b\nset_scope(acc, reg)",
    ),
    // A vector loop was guarded inside.
    (
        "half",
        &[("M", 8), ("N", 4), ("K", 5)],
        "split(acc.k, 2) -> ko, ki
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
cache_read(As, acc, reg) -> ra
vectorize(ra.c)
split(ra.j, 2) -> o, i",
    ),
    // A loop was moved into a vector loop.
    (
        "half",
        &[("M", 8), ("N", 1), ("K", 4)],
        "split(acc.k, 2) -> ko, ki
cache_read(B, acc, shared) -> Bs
compute_at(Bs, acc.ko)
cache_read(Bs, acc, reg) -> rb
compute_at(rb, acc.ko)
split(rb.c, 1) -> c, v
vectorize(rb.r)
reorder(rb.r, rb.c)",
    ),
    // An axis of one element has no step to pad.
    (
        "half",
        &[("M", 3), ("N", 4), ("K", 16)],
        "split(acc.k, 2) -> ko, ki
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
storage_align(As, r, 1)
storage_align(As, r, 1)",
    ),
    // Blocks inside other loops were not found when shared memory was allocated.
    (
        "transposed",
        &[("M", 1), ("N", 4), ("K", 3)],
        "split(C.i, 6) -> by, i
bind(C.by, block.y)
reorder(C.j, C.by)
set_scope(acc, reg)
compute_at(acc, C.j)
split(acc.k, 2) -> ko, ki
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)",
    ),
    // What is stored ahead of parts came before what it needs: its buffer, and a copy that it reads.
    (
        "gemm",
        &[("M", 3), ("N", 2), ("K", 5)],
        "cache_read(acc, C, shared) -> b\nsplit_reduce(acc.k, 3, combine=atomic) -> part, s",
    ),
    (
        "gemm",
        &[("M", 3), ("N", 2), ("K", 5)],
        "cache_read(C, C, shared) -> b\nsplit_reduce(acc.k, 3, combine=atomic) -> part, s",
    ),
    // A buffer was put into a vector loop.
    (
        "half",
        &[("M", 3), ("N", 4), ("K", 2)],
        "specialize(N%4, ldc%4)
split(C.j, 2) -> bx, j
split(C.j, 1) -> tx, j
vectorize(C.tx)
compute_at(acc, C.tx)",
    ),
    // The number of parts depended on another loop of the stage.
    (
        "gemm",
        &[("M", 3), ("N", 2), ("K", 5)],
        "split_reduce(acc.k, 2, order=cyclic) -> part, s\nrfactor(part.k) -> finer",
    ),
    // Both versions of a specialised program bound the same roles.
    (
        "product_bf16_nt",
        &[("M", 4), ("N", 3), ("K", 5), ("lda", 8), ("ldb", 8)],
        "specialize(lda%8, ldb%8)
split(C.i, 64) -> by, i
split(C.i, 64) -> w, i
split(C.j, 8) -> bx, j
reorder(C.by, C.bx, C.w, C.i, C.j)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.w, threads@128)
set_scope(acc, reg)
compute_at(acc, C.w)
split(acc.k, 64) -> ko, k
split(acc.k, 16) -> ks, k
reorder(acc.ko, acc.ks, acc.i, acc.j, acc.k)
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
cache_read(B, acc, shared) -> Bs
compute_at(Bs, acc.ko)
swizzle(As)
swizzle(Bs)
tensorize(acc.i, wgmma_bf16_sw128)
pipeline(acc.ko, 2, via=tma)
specialize(M%4)",
    ),
    // A consumer was moved ahead of a copy that it reads.
    ("chain", &[("M", 3), ("N", 4)], "cache_read(t, C, shared) -> b\nreverse_compute_at(C, u.j)"),
    // A copy, and what uses a stage, were put into vector loops.
    (
        "gemm",
        &[("M", 3), ("N", 4), ("K", 2)],
        "specialize(N%4, lda%4, ldb%4, ldc%4)
split(C.j, 4) -> tx, j
vectorize(C.j)
cache_read(C, C, shared) -> b",
    ),
    (
        "biased",
        &[("M", 4), ("N", 8), ("K", 2)],
        "specialize(N%8)
split(t.j, 2) -> c, v
vectorize(t.v)
reverse_compute_at(C, t.v)",
    ),
    // The negative of a quotient was printed as the quotient of the negative.
    (
        "gemm",
        &[("M", 3), ("N", 2), ("K", 4)],
        "split(acc.k, 4) -> ko, ki
split_reduce(acc.ki, 4, order=cyclic) -> part, s
rfactor(part.ko, combine=shared) -> own
fuse(own.ko, own.s) -> f",
    ),
    // Registers of no next iteration got an empty dimension.
    (
        "half",
        &[("M", 4), ("N", 2), ("K", 5)],
        "split(acc.k, 16) -> ko, k
split(acc.k, 16) -> ks, k
cache_read(A, acc, shared) -> As
cache_read(As, acc, reg) -> a
compute_at(a, acc.ks)
split(a.r, 16) -> ai, r
pipeline(acc.ks, 2, via=registers)
reorder(a_next.ai, a_next.ks)",
    ),
    // Sums of one thread were read by others in the same thread loop, where no barrier can stand.
    (
        "product_i32_tt",
        &[("M", 2), ("N", 2), ("K", 1)],
        "split(C.j, 12) -> bx, j
split(C.j, 4) -> tx, j
set_scope(acc, reg)
compute_at(acc, C.tx)
decompose_reduction(acc.tx)
bind(C.tx, C.j, threads)",
    ),
    (
        "contraction",
        &[("M", 1), ("N", 8), ("K", 5)],
        "tile(acc.i, acc.j, 4, 2) -> by, bx, i, j
reverse_compute_at(C, acc.i)
reorder(acc.bx, acc.k, acc.j)
tile(acc.i, acc.j, 4, 2) -> by, bx, i, j
split(acc.i, 4) -> by, i
split(acc.by, 2) -> o, u
bind(acc.u, acc.i, acc.j, threads)",
    ),
    // Two quotients with equal coefficients were printed in the order in which their variables had been made.
    (
        "gemm",
        &[("M", 3), ("N", 5), ("K", 2)],
        "split(C.i, 2) -> by, ty
split(C.ty, 1) -> ty, i
split(C.j, 8) -> bx, j
split(C.j, 4) -> tx, j
reorder(C.by, C.bx, C.ty, C.tx, C.i, C.j)
fuse(C.i, C.j) -> inner
fuse(C.ty, C.tx) -> outer",
    ),
    // Parts past the last were computed where a loop needed a number of parts that hangs over.
    (
        "gemm",
        &[("M", 2), ("N", 3), ("K", 9)],
        "split_reduce(acc.k, 4, combine=shared) -> part, s
split_reduce(acc.s, 3, combine=shared, order=cyclic) -> own, o
compute_at(part, own.o)",
    ),
    (
        "gemm",
        &[("M", 2), ("N", 3), ("K", 9)],
        "split_reduce(acc.k, 4, combine=shared, order=cyclic) -> part, s
split_reduce(acc.s, 3, combine=shared, order=cyclic) -> own, o
compute_at(part, own.o)",
    ),
    (
        "largest",
        &[("M", 2), ("K", 9)],
        "split_reduce(acc.k, 2) -> part, s
cache_write(acc, reg) -> own
split(own.s, 5) -> o, i
compute_at(part, own.o)",
    ),
    // The parts of a peeled loop were as many as those of its last piece.
    (
        "gemm",
        &[("M", 4), ("N", 1), ("K", 7)],
        "split(acc.k, 3) -> ko, ki\ntail(acc.ko, peel)\nrfactor(acc.ko, combine=shared) -> part",
    ),
    // Of a peeled loop only the first piece was moved out of the threads, so each thread filled memory of the block.
    (
        "product_c128_tn",
        &[("M", 3), ("N", 17), ("K", 2), ("lda", 16), ("ldb", 32), ("ldc", 32)],
        "split(C.i, 4) -> by, i
split(C.i, 2) -> v, i
split(C.j, 12) -> bx, j
precompute(acc.k, 1) -> b4
split(C.i, 2) -> ty, i
split(C.j, 3) -> tx, j
reorder(C.by, C.bx, C.v, C.ty, C.tx, C.i, C.j)
bind(C.by, block.y)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, 4) -> ko, ki
tail(b4.ko, peel)
cache_read(B, acc, shared) -> Bs
compute_at(Bs, acc.ko)
split(b4.v, 3, tail=guard) -> o33, i33
split(b4.v, 3, tail=guard) -> o33, i33",
    ),
    // What else the loops of a stage compute was computed past its end.
    ("chain", &[("M", 1), ("N", 8)], "reverse_compute_at(u, t.j)\nsplit(C.j, 3) -> o, i\ncompute_at(t, C.i)"),
    // Copies became asynchronous beside others that were waited for already, and nobody waited for these.
    (
        "product_bf16_f32_tt",
        &[("M", 8), ("N", 4), ("K", 12), ("lda", 16), ("ldb", 24), ("ldc", 16)],
        "specialize(lda%8, ldb%8)
tile(C.i, C.j, 16, 16) -> by, bx, i, j
tile(C.i, C.j, 16, 16) -> wm, wn, i, j
bind(C.wm, C.wn, threads@32)
set_scope(acc, reg)
compute_at(acc, C.wn)
split(acc.k, 32) -> ko, k
split(acc.k, 16) -> ks, k
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
split(As.c, 8) -> c, e
bind(As.r, As.c, threads)
cache_read(B, acc, shared) -> Bs
compute_at(Bs, acc.ks)
split(Bs.c, 8) -> c, e
bind(Bs.r, Bs.c, threads)
tensorize(As.e, cp_async16)
pipeline(acc.ko, 2, via=cp_async)
tensorize(Bs.e, cp_async16)",
    ),
    // Scratch in device memory, of one thread of a block, was filled by it and read by others with no barrier between.
    (
        "product_f16_f32_nt",
        &[("M", 4), ("N", 2), ("K", 16)],
        "split(acc.i, 4) -> by, i
split(acc.i, 4) -> by, i
reverse_compute_at(C, acc.by)
bind(C.by, C.i, threads)",
    ),
    // A version lost a store whose condition was known not to hold, and kept the load whose condition, on the same threads, was not.
    (
        "contraction",
        &[("M", 8), ("N", 16), ("K", 3), ("ldc", 16)],
        "split(acc.i, 4) -> by, i
reverse_compute_at(C, acc.j)
bind(C.i, C.j, threads)
split(acc.j, 2) -> tx, j
unswitch(C.tx)",
    ),
    // Threads wrote one element of shared memory under a condition that is the same for all of them.
    (
        "product_f32_tn",
        &[("M", 20), ("N", 17), ("K", 9)],
        "split(C.i, 4) -> by, i
rfactor(acc.k, combine=shared_atomic) -> b2
split(C.j, 6) -> bx, j
split(C.i, 2) -> ty, i
split(C.j, 2) -> tx, j
bind(C.by, block.y)
bind(C.tx, threads)
compute_at(acc, C.tx)
split(C.ty, 3) -> o44, i44",
    ),
    // A version of a loop in which nothing is filled read what it would have been filled with, in a loop that never runs.
    (
        "product_c64_nt",
        &[("M", 5), ("N", 0), ("K", 4), ("lda", 16), ("ldb", 16), ("ldc", 8)],
        "split(C.i, 6) -> by, i
split(C.j, 3) -> tx, j
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, 2) -> ko, ki
cache_read(A, acc, shared) -> As
compute_at(As, acc.ko)
pipeline(acc.ko, 3, via=shared)
unswitch(As.by)",
    ),
];
