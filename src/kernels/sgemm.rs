//! The ladder `sgemm`: the rungs of the well-known worklog on SGEMM, with its numbers and tile parameters, and then
//! our own. Every rung starts from the same specification and differs from the one before by one idea.

use super::{Recipe, Variant};
use warpwright_core::diag::Diagnosis;
use warpwright_core::dtype::DType;

/// The rungs in order.
pub const RUNGS: &[Recipe] = &[
    Recipe {
        name: "sgemm_naive",
        family: "sgemm",
        rung: 1,
        title: "naive",
        change: "One thread computes one element of C; neighbouring threads stand below one another, in rows.",
        why: "Every multiply-add loads both of its operands, and since the lanes of a warp read A in 32 different rows, one such load asks for 32 sectors and uses 4 of the 32 bytes of each.",
        schedule: naive,
    },
    Recipe {
        name: "sgemm_coalesced",
        family: "sgemm",
        rung: 2,
        title: "coalesced",
        change: "Neighbouring threads stand side by side, in columns, so that a warp reads and writes whole sectors.",
        why: "In a step of the sum a warp then asks for one element of A and 32 neighbours of B, 5 sectors instead of 33, so that far less of what memory sends is thrown away.",
        schedule: coalesced,
    },
    Recipe {
        name: "sgemm_shared_memory",
        family: "sgemm",
        rung: 3,
        title: "shared memory blocking",
        change: "A block copies 32 x 32 tiles of A and B to shared memory and reads every element 32 times from there.",
        why: "Memory is asked for a twentieth of the sectors; but every multiply-add still takes both of its operands from shared memory, which now sets the pace.",
        schedule: shared_memory,
    },
    Recipe {
        name: "sgemm_block_tiling_1d",
        family: "sgemm",
        rung: 4,
        title: "1D block tiling",
        change: "A thread computes 8 elements of a column, so that one element of B serves them all.",
        why: "For 8 multiply-adds it loads 9 elements instead of 16, and a block of 64 x 64 uses what it stages 64 times instead of 32.",
        schedule: |_| Ok(Tile { rows: 64, columns: 64, depth: 8, tm: 8, tn: 1 }.steps()),
    },
    Recipe {
        name: "sgemm_block_tiling_2d",
        family: "sgemm",
        rung: 5,
        title: "2D block tiling",
        change: "A thread computes 8 x 8 elements from 8 + 8 operands that it holds in registers.",
        why: "16 loads from shared memory feed 64 multiply-adds where 9 fed 8, since an operand that lies in a register is used again without another access.",
        schedule: |_| Ok(TILE_8.steps()),
    },
    Recipe {
        name: "sgemm_vectorized",
        family: "sgemm",
        rung: 6,
        title: "vectorized",
        change: "Tiles are stored with K as rows, and every copy moves 16 bytes where sizes and strides allow it.",
        why: "What a thread needs in one step of the sum lies side by side then, and one instruction brings four elements of it; the wavefronts remain, since as many bytes move.",
        schedule: |v| TILE_8.vectorized(v, Storage::Plain),
    },
    Recipe {
        name: "sgemm_linear_tile",
        family: "sgemm",
        rung: 7,
        title: "bank conflicts by linearizing",
        change: "Columns of the tile of B that different threads read are stored side by side.",
        why: "The 8 columns of a thread lie 16 elements apart and those of its neighbours between them, so that lanes no longer meet in a bank; the price is that they are loaded one by one again.",
        schedule: |v| TILE_8.vectorized(v, Storage::Linear),
    },
    Recipe {
        name: "sgemm_extra_column",
        family: "sgemm",
        rung: 8,
        title: "bank conflicts by extra columns",
        change: "Instead, rows of the tile of B are padded so that they begin in other banks.",
        why: "It gains nothing here, and shows why one counts: the lanes that meet in a bank read the same row, and padding moves whole rows.",
        schedule: |v| TILE_8.vectorized(v, Storage::Padded),
    },
    Recipe {
        name: "sgemm_tuned_tile",
        family: "sgemm",
        rung: 9,
        title: "tuned tile",
        change: "The tile is 16 terms deep, as a search over tiles found best.",
        why: "There are half as many barriers for the same work, and more multiply-adds between two of them; the larger tile costs no resident block, since registers are the limit.",
        schedule: |v| TILE_16.vectorized(v, Storage::Plain),
    },
    Recipe {
        name: "sgemm_warp_tiling",
        family: "sgemm",
        rung: 10,
        title: "warp tiling",
        change: "A warp computes a compact tile of the block, so that its threads share the operands they read.",
        why: "Lanes that read the same word are served at once, and in a compact tile more of them do; twice as many elements in a thread also use each operand more often, though their registers leave room for half the warps.",
        schedule: |v| WARP_TILE.steps(v),
    },
    Recipe {
        name: "sgemm_double_buffering",
        family: "sgemm",
        rung: 11,
        title: "double buffering",
        change: "The next tiles are fetched into a second buffer while this one is used, one barrier a step.",
        why: "Two buffers need one barrier a step where one buffer needs two; but what is fetched is stored at once, so that every thread waits for its loads before it multiplies, and most of the gain is lost.",
        schedule: |v| WIDE_WARP_TILE.steps(v),
    },
    Recipe {
        name: "sgemm_compact_warps",
        family: "sgemm",
        rung: 12,
        title: "compact warps",
        change: "Back at one buffer: a warp computes 32 x 64 elements, a thread 8 x 8 of them as four 4 x 4 tiles, so that its reads meet no bank conflict.",
        why: "Pieces of 16 bytes that neighbouring lanes read lie next to one another, and half the elements in a thread leave registers for twice the warps, which fill each other's waits.",
        schedule: |v| COMPACT.steps(v),
    },
    Recipe {
        name: "sgemm_padded_tile",
        family: "sgemm",
        rung: 13,
        title: "padded tile",
        change: "Rows of the turned tile of A are padded, so that storing it meets fewer bank conflicts.",
        why: "Four elements of a row of A go to four rows of the turned tile, where lanes meet in few banks if all rows begin in the same one.",
        schedule: |v| PADDED.steps(v),
    },
    Recipe {
        name: "sgemm_register_staging",
        family: "sgemm",
        rung: 14,
        title: "register staging",
        change: "The next tiles are loaded into registers before the multiply-adds of this one, and stored to a second buffer after them.",
        why: "Loads are under way while a thread multiplies, so that it does not wait for them; but with the registers that hold what they bring, 132 in all by NVRTC 13.0, one block is resident instead of two, which takes back what was gained.",
        schedule: |v| STAGED.steps(v),
    },
    Recipe {
        name: "sgemm_wide_thread_tile",
        family: "sgemm",
        rung: 15,
        title: "wide thread tile",
        change: "A block computes 128 x 256 elements, a warp 64 x 64 and a thread 16 x 8, so that six reads of 16 bytes feed 128 multiply-adds.",
        why: "Each operand is used more often, so that wavefronts fall by a third and sectors by a quarter; the registers cost nothing more, since one block was all that fitted before.",
        schedule: |v| WIDE.steps(v),
    },
    Recipe {
        name: "sgemm_async_copies",
        family: "sgemm",
        rung: 16,
        title: "asynchronous copies",
        change: "A tile that is stored as it is read, B's here, is copied to shared memory without passing through registers.",
        why: "Such a copy needs no register for what it moves and no instruction to store it, and nobody waits for it before its tile is used.",
        schedule: |v| ASYNC.steps(v),
    },
    Recipe {
        name: "sgemm_turned_lanes",
        family: "sgemm",
        rung: 17,
        title: "turned lanes",
        change: "Neighbouring lanes stand below one another, so that eight of them read four pieces of A and two of B instead of one and eight.",
        why: "It was measured to be 1 to 2 % faster on an H200; the counts do not explain that, since by them it takes more wavefronts.",
        schedule: |v| TURNED.steps(v),
    },
    Recipe {
        name: "sgemm_small_tile",
        family: "sgemm",
        rung: 18,
        title: "small tile",
        change: "The same with a tile of 64 x 128 and 8 x 8 elements a thread, for products whose large tiles would leave multiprocessors idle.",
        why: "More and smaller blocks keep all multiprocessors busy where a product is small, and leave less idle in the last wave; what is staged is used less often, which costs large products a little.",
        schedule: |v| SMALL.steps(v),
    },
];

/// The tile of rungs 5 to 8.
const TILE_8: Tile = Tile { rows: 128, columns: 128, depth: 8, tm: 8, tn: 8 };
/// The tile of rung 9.
const TILE_16: Tile = Tile { depth: 16, ..TILE_8 };

/// 32 x 32 threads a block, threadIdx.x along the rows of C.
fn naive(_: Variant) -> Result<String, Diagnosis> {
    Ok("specialize(M%32, N%32)
split(C.i, 32) -> bx, tx
split(C.j, 32) -> by, ty
reorder(C.bx, C.by, C.ty, C.tx)
bind(C.bx, block.x)
bind(C.by, block.y)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
"
    .to_string())
}

/// 32 x 32 threads a block, threadIdx.x along the columns of C.
fn coalesced(_: Variant) -> Result<String, Diagnosis> {
    Ok("specialize(M%32, N%32)
split(C.i, 32) -> by, ty
split(C.j, 32) -> bx, tx
reorder(C.by, C.bx, C.ty, C.tx)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
"
    .to_string())
}

/// 32 x 32 threads a block, one element each, both operands staged 32 terms at a time.
fn shared_memory(_: Variant) -> Result<String, Diagnosis> {
    let tile = "specialize(M%32, N%32, K%32)
split(C.i, 32) -> by, ty
split(C.j, 32) -> bx, tx
reorder(C.by, C.bx, C.ty, C.tx)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, 32) -> ko, ki
reorder(acc.ko, acc.ki, acc.i, acc.j)
";
    Ok(format!("{tile}{}{}unroll(acc.ki, acc.i, acc.j)\n", stage("A", "As", 1024), stage("B", "Bs", 1024)))
}

/// Copies a tile of an operand to shared memory: all threads of the block, in the order of the stored elements.
fn stage(operand: &str, tile: &str, threads: i64) -> String {
    format!(
        "cache_read({operand}, acc, shared) -> {tile}
compute_at({tile}, acc.ko)
fuse({tile}.r, {tile}.c) -> f
split({tile}.f, {threads}) -> u, t
reorder({tile}.t, {tile}.u)
bind({tile}.t, threads)
unroll({tile}.u)
"
    )
}

/// A block tile of `rows` x `columns` elements, `depth` terms at a time, of which a thread computes `tm` x `tn`.
struct Tile {
    rows: i64,
    columns: i64,
    depth: i64,
    tm: i64,
    tn: i64,
}

impl Tile {
    fn threads(&self) -> i64 {
        self.rows * self.columns / (self.tm * self.tn)
    }

    fn steps(&self) -> String {
        let Tile { rows, columns, depth, tm, tn } = self;
        let mut steps = format!(
            "specialize(M%{rows}, N%{columns}, K%{depth})
split(C.i, {rows}) -> by, i
split(C.i, {tm}) -> ty, i
split(C.j, {columns}) -> bx, j
split(C.j, {tn}) -> tx, j
reorder(C.by, C.bx, C.ty, C.tx, C.i, C.j)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, {depth}) -> ko, ki
reorder(acc.ko, acc.ki, acc.i, acc.j)
"
        );
        for (operand, tile) in [("A", "As"), ("B", "Bs")] {
            steps += &stage(operand, tile, self.threads());
        }
        for (tile, fragment) in [("As", "ra"), ("Bs", "rb")] {
            steps += &format!("cache_read({tile}, acc, reg) -> {fragment}\ncompute_at({fragment}, acc.ki)\n");
        }
        steps + "unroll(acc.ki, acc.i, acc.j, ra.r, ra.c, rb.r, rb.c, C.i, C.j)\n"
    }

    /// The same tile with wide copies.
    fn vectorized(&self, variant: Variant, storage: Storage) -> Result<String, Diagnosis> {
        let Tile { rows, columns, depth, tm, tn } = self;
        let [wide_a, wide_b, wide_c] = widths(variant);
        let lane = wide_c.min(*tn);
        let steps = format!(
            "specialize(M%{rows}, N%{columns}, K%{depth}, lda%{wide_a}, ldb%{wide_b}, ldc%{wide_c})
split(C.i, {rows}) -> by, i
split(C.i, {tm}) -> ty, i
split(C.j, {columns}) -> bx, j
split(C.j, {tn}) -> tx, j
split(C.j, {lane}) -> j, v
reorder(C.by, C.bx, C.ty, C.tx, C.i, C.j, C.v)
bind(C.by, block.y)
bind(C.bx, block.x)
bind(C.ty, C.tx, threads)
set_scope(acc, reg)
compute_at(acc, C.tx)
split(acc.k, {depth}) -> ko, ki
reorder(acc.ko, acc.ki, acc.i, acc.j)
"
        );
        Ok(steps + &operands(variant, self.threads(), [*tm, *tn], [Storage::Plain, storage], Overlap::None))
    }
}

/// A block tile cut into warp tiles, each cut into `down` x `across` parts that a warp computes one after another with
/// `tm` x `tn` elements a thread.
#[derive(Clone, Copy)]
struct WarpTile {
    rows: i64,
    columns: i64,
    depth: i64,
    warp_rows: i64,
    warp_columns: i64,
    down: i64,
    across: i64,
    tm: i64,
    tn: i64,
    /// Whether rows of the tile of A are padded.
    padded: bool,
    /// Whether neighbouring lanes compute elements below one another instead of side by side.
    turned: bool,
    /// How copies overlap multiply-adds.
    overlap: Overlap,
}

/// How the copies of the next tiles overlap the multiply-adds of this one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    /// Not at all.
    None,
    /// They are stored to a second buffer while this one is used.
    DoubleBuffer,
    /// They pass through registers, loaded before and stored after.
    Registers,
    /// They are asynchronous copies, where a tile is stored as it is read, and pass through registers else.
    Async,
}

/// The tile of rung 10.
const WARP_TILE: WarpTile = WarpTile {
    rows: 128,
    columns: 128,
    depth: 16,
    warp_rows: 64,
    warp_columns: 64,
    down: 1,
    across: 4,
    tm: 8,
    tn: 4,
    padded: false,
    turned: false,
    overlap: Overlap::None,
};

/// The tile of rung 11.
const WIDE_WARP_TILE: WarpTile = WarpTile {
    columns: 256,
    warp_rows: 128,
    warp_columns: 32,
    down: 2,
    across: 1,
    tn: 8,
    overlap: Overlap::DoubleBuffer,
    ..WARP_TILE
};

/// The tile of rung 12.
const COMPACT: WarpTile =
    WarpTile { warp_rows: 32, warp_columns: 64, down: 2, across: 2, tm: 4, tn: 4, ..WARP_TILE };

/// The tile of rung 13.
const PADDED: WarpTile = WarpTile { padded: true, ..COMPACT };

/// The tile of rung 14.
const STAGED: WarpTile = WarpTile { overlap: Overlap::Registers, ..PADDED };

/// The tile of rung 15.
const WIDE: WarpTile = WarpTile { columns: 256, warp_rows: 64, down: 4, ..STAGED };

/// The tile of rung 16.
const ASYNC: WarpTile = WarpTile { overlap: Overlap::Async, ..WIDE };

/// The tile of rung 17.
const TURNED: WarpTile = WarpTile { turned: true, ..ASYNC };

/// The tile of rung 18.
const SMALL: WarpTile = WarpTile { rows: 64, columns: 128, warp_rows: 32, down: 2, ..TURNED };

impl WarpTile {
    /// The tile with at most 512 bytes of results a thread, which leaves half of its registers for the rest: halved
    /// along its longer side until it fits elements of this many bytes.
    fn fitting(mut self, bytes: i64) -> WarpTile {
        while self.down * self.tm * self.across * self.tn * bytes > 512 {
            let rows = self.down * self.tm > self.across * self.tn;
            let [parts, elements, warp, block] = if rows {
                [&mut self.down, &mut self.tm, &mut self.warp_rows, &mut self.rows]
            } else {
                [&mut self.across, &mut self.tn, &mut self.warp_columns, &mut self.columns]
            };
            *(if *parts > 1 { parts } else { elements }) /= 2;
            *warp /= 2;
            *block /= 2;
        }
        self
    }

    fn threads(&self) -> i64 {
        self.rows / self.warp_rows * (self.columns / self.warp_columns) * 32
    }

    fn steps(&self, variant: Variant) -> Result<String, Diagnosis> {
        let tile = self.fitting(variant.precision.storage().bytes().max(4));
        let WarpTile { rows, columns, depth, warp_rows, warp_columns, down, across, tm, tn, .. } = &tile;
        let a = if tile.padded { Storage::Padded } else { Storage::Plain };
        let [slow, lane_loop] = if tile.turned { ["C.tj", "C.ti"] } else { ["C.ti", "C.tj"] };
        let [wide_a, wide_b, wide_c] = widths(variant);
        let lane = wide_c.min(*tn);
        let mut virtual_loops = String::new();
        let mut bind = String::new();
        let mut part = |axis: char, extent: i64, count: i64| {
            if count == 1 {
                return String::new();
            }
            virtual_loops += &format!("C.v{axis}, ");
            bind += &format!("bind(C.v{axis}, vthread)\n");
            format!("split(C.{axis}, {}) -> v{axis}, {axis}\n", extent / count)
        };
        let (down, across) = (part('i', *warp_rows, *down), part('j', *warp_columns, *across));
        let steps = format!(
            "specialize(M%{rows}, N%{columns}, K%{depth}, lda%{wide_a}, ldb%{wide_b}, ldc%{wide_c})
split(C.i, {rows}) -> by, i
split(C.i, {warp_rows}) -> wi, i
{down}split(C.i, {tm}) -> ti, i
split(C.j, {columns}) -> bx, j
split(C.j, {warp_columns}) -> wj, j
{across}split(C.j, {tn}) -> tj, j
split(C.j, {lane}) -> j, v
reorder(C.by, C.bx, {virtual_loops}C.wi, C.wj, {slow}, {lane_loop}, C.i, C.j, C.v)
bind(C.by, block.y)
bind(C.bx, block.x)
{bind}bind(C.wi, C.wj, {slow}, {lane_loop}, threads)
set_scope(acc, reg)
compute_at(acc, {lane_loop})
split(acc.k, {depth}) -> ko, ki
reorder(acc.ko, acc.ki, acc.i, acc.j)
"
        );
        Ok(steps + &operands(variant, tile.threads(), [*tm, *tn], [a, Storage::Plain], tile.overlap))
    }
}

/// How the tile of B is kept in shared memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// Rows of the sum's axis, one after another.
    Plain,
    /// The same, each row a few elements longer.
    Padded,
    /// The eight columns of a thread are 16 elements apart.
    Linear,
}

/// An operand on its way from memory to the multiply-adds.
struct Operand {
    /// The matrix, its tile in shared memory and the registers of a thread.
    names: [&'static str; 3],
    /// The axes of the stored matrix, `r` or `c`: along the sum, and the other one.
    depth: &'static str,
    long: &'static str,
    /// Elements that are copied at a time: 16 bytes, or as many as the start of the matrix allows.
    copied: i64,
}

impl Operand {
    fn of(variant: Variant, is_a: bool) -> Operand {
        let op = if is_a { variant.layout.a } else { variant.layout.b };
        let (depth, long) = if op.transposes() == is_a { ("r", "c") } else { ("c", "r") };
        let [wide_a, wide_b, _] = widths(variant);
        let (names, copied) = if is_a { (["A", "As", "ra"], wide_a) } else { (["B", "Bs", "rb"], wide_b) };
        Operand { names, depth, long, copied }
    }

    /// Copies a tile to shared memory, so many elements at a time, and keeps it with the axis of the sum as rows, which
    /// are read `width` elements at a time. What is stored the other way, or kept in pieces, is turned round: loaded so
    /// many elements at a time, stored one by one.
    fn stage(&self, threads: i64, width: i64, storage: Storage) -> String {
        let Operand { names: [matrix, tile, _], depth, long, copied } = self;
        let mut steps = format!("cache_read({matrix}, acc, shared) -> {tile}\ncompute_at({tile}, acc.ko)\n");
        if storage == Storage::Linear {
            steps += &format!("storage_order({tile}, {depth}, {long}%8, {long}/8)\n");
        } else if *depth == "c" {
            steps += &format!("storage_order({tile}, {depth}, {long})\n");
        }
        if storage == Storage::Padded {
            // Four words for elements of up to four bytes; what is wider stays aligned too.
            steps += &format!("storage_align({tile}, {depth}, {})\n", width.max(4));
        }
        steps += &format!(
            "fuse({tile}.r, {tile}.c) -> f
split({tile}.f, {copied}) -> f, v
split({tile}.f, {threads}) -> u, t
reorder({tile}.t, {tile}.u, {tile}.v)
bind({tile}.t, threads)
"
        );
        steps + &format!("unroll({tile}.u)\n")
    }

    /// The instruction that copies what is copied at a time asynchronously, where the tile is stored as it is read and
    /// there is one for the type.
    fn async_copy(&self, dtype: DType) -> Option<String> {
        let has_one = matches!(dtype, DType::F32 | DType::F64) && self.depth == "r";
        has_one.then(|| format!("cp_async{}_{dtype}", self.copied * dtype.bytes()))
    }

    /// The steps that make wide accesses of the copies of [`Operand::stage`], also of those that a pipeline has put ahead.
    fn widen(&self, ahead: bool) -> String {
        let tile = self.names[1];
        if !ahead {
            return wide(&format!("{tile}.v"), self.copied);
        }
        let store = if self.depth == "r" { self.copied } else { 1 };
        wide(&format!("{tile}_next.v"), self.copied) + &wide(&format!("{tile}.v"), store)
    }

    /// Copies what a thread needs of the tile for one term into registers.
    fn load(&self, width: i64, storage: Storage) -> String {
        let Operand { names: [_, tile, fragment], depth, long, .. } = self;
        let mut steps =
            format!("cache_read({tile}, acc, reg) -> {fragment}\ncompute_at({fragment}, acc.ki)\n");
        if storage != Storage::Linear {
            steps += &format!(
                "split({fragment}.{long}, {width}) -> {long}, v
reorder({fragment}.{depth}, {fragment}.{long}, {fragment}.v)
{}",
                wide(&format!("{fragment}.v"), width),
            );
        }
        steps + &format!("unroll({fragment}.r, {fragment}.c)\n")
    }
}

/// The staging of both operands in shared memory and in registers, all by wide copies, and the unrolling of the rest.
pub(super) fn operands(
    variant: Variant,
    threads: i64,
    [tm, tn]: [i64; 2],
    [store_a, store_b]: [Storage; 2],
    overlap: Overlap,
) -> String {
    let width = vector_width(variant);
    let (a, b) = (Operand::of(variant, true), Operand::of(variant, false));
    let mut steps = a.stage(threads, width, store_a) + &b.stage(threads, width, store_b);
    steps += &(a.load(width.min(tm), store_a) + &b.load(width.min(tn), store_b));
    let dtype = variant.precision.storage();
    let copy = |o: &Operand| o.async_copy(dtype).filter(|_| overlap == Overlap::Async);
    for operand in [&a, &b] {
        if let Some(instruction) = copy(operand) {
            steps += &format!("tensorize({}.v, {instruction})\n", operand.names[1]);
        }
    }
    let asynchronous = copy(&a).or(copy(&b)).is_some();
    steps += match overlap {
        Overlap::None => "",
        Overlap::DoubleBuffer => "double_buffer(acc.ko)\n",
        Overlap::Async if asynchronous => "pipeline(acc.ko, 2, via=cp_async)\n",
        Overlap::Registers | Overlap::Async => "pipeline(acc.ko, 2, via=registers)\n",
    };
    let ahead = matches!(overlap, Overlap::Registers | Overlap::Async);
    for operand in [&a, &b].into_iter().filter(|o| copy(o).is_none()) {
        steps += &operand.widen(ahead);
    }
    let [.., wide_c] = widths(variant);
    steps + &wide("C.v", wide_c.min(tn)) + "unroll(acc.ki, acc.i, acc.j, C.i, C.j)\n"
}

/// The step that makes one access of a loop of `width` elements.
fn wide(target: &str, width: i64) -> String {
    if width > 1 { format!("vectorize({target})\n") } else { format!("unroll({target})\n") }
}

/// Elements of an operand in 16 bytes.
fn vector_width(variant: Variant) -> i64 {
    16 / variant.precision.storage().bytes()
}

/// Elements of A, B and C that one access moves: those in 16 bytes, or as many as the start of the matrix allows.
pub(super) fn widths(variant: Variant) -> [i64; 3] {
    let (operand, result) = (variant.precision.storage().bytes(), variant.precision.result().bytes());
    let align = variant.align;
    [align.a / operand, align.b / operand, align.c / result]
}
