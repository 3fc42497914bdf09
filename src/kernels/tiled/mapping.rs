//! How the threads of a block share out its tile.

use crate::kernels::family::Choice;
use crate::kernels::staging::{self, ACROSS, By, Copied, Moved, ceil, copied_at_once};
use crate::problem::Problem;

/// The name of the parameter that says how the tile of A lies in shared memory.
pub(super) const A_TILE: &str = "a_tile";
/// As it lies in memory: rows of terms, of which a thread reads several at once.
pub(super) const ROWS: &str = "rows";
/// Turned: the rows of a term side by side, of which a thread reads several at once.
pub(super) const TURNED: &str = "turned";

/// The name of the parameter that says that the tile of B has a row for each column of B, as B^T lies in memory.
pub(super) const B_TILE: &str = "b_tile";
/// Its value.
pub(super) const COLUMNS: &str = "columns";

/// The name of the parameter that says who copies tiles and waits for them together.
pub(super) const TEAM: &str = "team";
/// Each warp for itself: its sets' terms of both operands.
pub(super) const BY_WARPS: &str = "warp";

/// The name of the parameter that says whether pieces of rows change places in shared memory, or rows are longer.
pub(super) const SWIZZLED: &str = "swizzled";

/// Elements of a row of B, or of the tile of A, that a thread reads at once: 16 bytes of f32.
pub(super) const PIECE: i64 = 4;

/// Threads of a warp.
pub(super) const WARP: i64 = 32;

/// Rows of C of a matrix instruction.
pub(super) const HIGH: i64 = 16;
/// Columns of B that `ldmatrix` brings at once.
const OF_A_LOAD: i64 = 16;

/// Neighbouring terms of a row of A that a lane reads at once for as many instructions, where matrix units multiply.
const TERMS_AT_ONCE: i64 = 2;

/// Whether matrix units multiply.
pub(super) fn by_matrix_units(choice: &Choice) -> bool {
    choice.word("unit") == "mma"
}

/// The value of `numbers` where elements have 16 bits: matrix instructions take them as they are.
pub(super) const WHOLE: &str = "whole";

/// What the elements of A and B are for those who copy and multiply them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elements {
    /// f32.
    Words,
    /// bf16 or f16: two of them in a register, brought to it by `ldmatrix`.
    Halves,
}

impl Elements {
    pub(super) fn of(choice: &Choice) -> Elements {
        if by_matrix_units(choice) && choice.word("numbers") == WHOLE {
            Elements::Halves
        } else {
            Elements::Words
        }
    }

    pub(super) fn bytes(self) -> i64 {
        match self {
            Elements::Words => 4,
            Elements::Halves => 2,
        }
    }

    /// Elements of 16 bytes.
    pub(super) fn piece(self) -> i64 {
        16 / self.bytes()
    }

    /// Terms of a matrix instruction.
    pub(super) fn step(self) -> i64 {
        32 / self.bytes()
    }

    /// Columns of which a warp has a multiple where matrix units multiply.
    pub(super) fn across(self) -> i64 {
        match self {
            Elements::Words => ACROSS,
            Elements::Halves => OF_A_LOAD,
        }
    }
}

/// How the warps of a set share out the tile of a block, where matrix units multiply.
#[derive(Clone, Copy, Debug)]
pub(super) struct Warps {
    /// Rows and columns of a warp.
    pub(super) rows: i64,
    pub(super) columns: i64,
    /// What they multiply.
    pub(super) elements: Elements,
}

impl Warps {
    pub(super) fn of(choice: &Choice) -> Warps {
        let one = |name: &str| choice.int(name).max(1);
        Warps {
            rows: one("rows") / one("wm"),
            columns: one("columns") / one("wn"),
            elements: Elements::of(choice),
        }
    }

    /// Instructions below one another and beside each other.
    pub(super) fn instructions(&self) -> [i64; 2] {
        [self.rows / HIGH, self.columns / ACROSS]
    }

    /// Registers of a lane: for each element of C one, or three where it is added up in two parts before it is added to the sum, and the
    /// fragments of both operands, or their parts.
    pub(super) fn registers(&self) -> i64 {
        let [below, beside] = self.instructions();
        let (sums, fragments) = (4 * below * beside, 4 * below + 2 * beside);
        match self.elements {
            Elements::Words => 3 * sums + 2 * fragments,
            Elements::Halves => sums + fragments,
        }
    }
}

/// How the rows of a tile lie in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// One after the other.
    AsItIs,
    /// Longer by so many elements.
    Longer(i64),
    /// With pieces of 16 bytes that change places, by the number of the row or of the line of 128 bytes.
    Swizzled,
    /// With pieces of eight elements that change places, four of them by the number of the row, or of that many rows.
    SwizzledEights(i64),
}

impl Spread {
    fn longer(self) -> i64 {
        if let Spread::Longer(elements) = self { elements } else { 0 }
    }

    /// The steps for a tile with rows of so many elements.
    pub(super) fn steps(self, tile: &str, elements: i64) -> String {
        match self {
            Spread::AsItIs => String::new(),
            Spread::Longer(by) => staging::pad(tile, by),
            Spread::Swizzled => format!("swizzle({tile})\n"),
            Spread::SwizzledEights(rows) => {
                let base = ACROSS.ilog2();
                format!("swizzle({tile}, 2, {base}, {})\n", elements.ilog2() + rows.ilog2() - base)
            }
        }
    }
}

/// The tiles of a choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    /// Rows, columns and terms that a block has in shared memory at a time.
    pub(super) rows: i64,
    pub(super) columns: i64,
    pub(super) depth: i64,
    /// Rows and columns of a thread, where threads multiply.
    pub(super) tm: i64,
    pub(super) tn: i64,
    /// Whether matrix units do.
    pub(super) matrix_units: bool,
    /// What is multiplied.
    pub(super) elements: Elements,
    /// Threads of a set.
    pub(super) of_a_set: i64,
    /// Sets of threads that share out the terms.
    pub(super) sets: i64,
    /// Whether the tile of A is turned.
    pub(super) turned: bool,
    /// Whether the tile of B has a row for each column of B.
    pub(super) b_by_columns: bool,
    /// Whether each warp copies what its own sets multiply.
    pub(super) by_warps: bool,
    /// Whether pieces of rows change places in shared memory.
    pub(super) swizzled: bool,
    /// Threads of a set below one another and beside each other.
    pub(super) down: i64,
    pub(super) across: i64,
    /// Lanes of a warp, or of a set that is no whole number of warps, below one another and beside each other.
    pub(super) lanes_down: i64,
    pub(super) lanes_across: i64,
    /// Columns of a warp, where matrix units multiply.
    columns_of_a_warp: i64,
}

impl Tiles {
    pub(super) fn of(choice: &Choice) -> Tiles {
        let one = |name: &str| choice.int(name).max(1);
        let (rows, columns, tm, tn) = (one("rows"), one("columns"), one("tm"), one("tn"));
        let (down, across) = (ceil(rows, tm), ceil(columns, tn));
        let lanes = one("lanes");
        let in_warps = may_have_lanes(down, across, lanes);
        let (lanes_down, lanes_across) = if in_warps { (lanes, WARP / lanes) } else { (down, across) };
        let sets = one("sets");
        let by_warps = choice.word(TEAM) == BY_WARPS;
        let matrix_units = by_matrix_units(choice);
        // The sets of a warp take neighbouring terms, as many as they read at once.
        let depth = if by_warps && !matrix_units { PIECE * sets } else { one("depth") };
        let of_a_set = if matrix_units { WARP * one("wm") * one("wn") } else { down * across };
        Tiles {
            rows,
            columns,
            depth,
            tm,
            tn,
            matrix_units,
            elements: Elements::of(choice),
            of_a_set,
            sets,
            turned: choice.word(A_TILE) == TURNED,
            b_by_columns: choice.word(B_TILE) == COLUMNS,
            by_warps,
            swizzled: choice.flag(SWIZZLED),
            down,
            across,
            lanes_down,
            lanes_across,
            columns_of_a_warp: Warps::of(choice).columns,
        }
    }

    /// Threads of a block.
    pub(super) fn threads(&self) -> i64 {
        self.sets * self.of_a_set
    }

    /// Threads that copy tiles together.
    pub(super) fn team(&self) -> i64 {
        if self.by_warps { WARP } else { self.threads() }
    }

    /// Neighbouring rows and columns of a thread.
    pub(super) fn pieces(&self) -> [i64; 2] {
        if self.matrix_units {
            return [1, self.at_once().map_or(2, |[_, columns]| columns)];
        }
        [if self.turned { PIECE.min(self.tm) } else { 1 }, PIECE.min(self.tn)]
    }

    /// Neighbouring terms of a row of A and columns of a row of B that a lane reads at once where matrix units multiply, if it does: one of
    /// each for every one of as many instructions. An instruction does not mind which terms and columns it is given, and a piece of a row of a
    /// swizzled tile is as near to a lane as an element: where each element took an instruction, 48 of the 391 that a warp issued for a tile
    /// of 256 terms with 16 rows and 32 columns did that, and most of those that found places.
    pub(super) fn at_once(&self) -> Option<[i64; 2]> {
        let in_lines = |elements: i64| elements.count_ones() == 1 && elements >= 4 * ACROSS;
        let instructions = self.columns_of_a_warp / ACROSS;
        let reads_pieces = self.matrix_units
            && self.elements == Elements::Words
            && !self.b_by_columns
            && self.swizzled
            && in_lines(self.terms_of_a_set())
            && in_lines(self.columns)
            && instructions > 1;
        reads_pieces.then(|| [TERMS_AT_ONCE, PIECE.min(instructions)])
    }

    /// Terms that are multiplied at once: those that a thread reads of a row of A, or of instructions whose operands are read at once.
    pub(super) fn terms(&self) -> i64 {
        match (self.matrix_units, self.turned) {
            (true, _) => self.elements.step() * self.at_once().map_or(1, |[terms, _]| terms),
            (false, true) => 1,
            (false, false) => PIECE,
        }
    }

    /// Terms of a tile that a set of threads multiplies.
    pub(super) fn terms_of_a_set(&self) -> i64 {
        self.depth / self.sets
    }

    /// Sets whose threads stand in one warp.
    pub(super) fn sets_of_a_warp(&self) -> i64 {
        (WARP / self.of_a_set).clamp(1, self.sets)
    }

    /// Terms of each row of A that those who copy together bring at a time.
    pub(super) fn copied_terms(&self) -> i64 {
        match (self.by_warps, self.matrix_units) {
            (false, _) => self.depth,
            (true, false) => PIECE * self.sets_of_a_warp(),
            (true, true) => self.terms_of_a_set(),
        }
    }

    /// Elements of each row of B, or of B^T, that those who copy together bring at a time.
    pub(super) fn row_of_b(&self) -> i64 {
        if self.b_by_columns { self.copied_terms() } else { self.columns }
    }

    /// How the tiles of A and B lie in shared memory, so that lanes of a warp read them from other banks: threads below one another read rows
    /// of A, sets of a warp read terms of both, as many as are read at once apart. An instruction's lanes read four terms (or pairs of terms)
    /// of each of eight rows of A, and eight columns (or pieces of columns) of each of four rows of B, which are neighbours or every other one.
    ///
    /// Rows are longer for that, or (`swizzled`) their pieces change places, so that rows start at multiples of 128 bytes like the lines that
    /// are copied to them: where nothing is multiplied, copies took 23.6 us instead of 25.5 (16 x 4096 x 4096, an H100, 2026-11-26). But
    /// each place in a swizzled tile takes an address of its own: with 64 rows, where instructions are the limit, kernels took 1.2 times as long.
    ///
    /// `ldmatrix` reads 16 bytes of each of eight rows of either tile.
    pub(super) fn spreads(&self) -> [Spread; 2] {
        if self.elements == Elements::Halves {
            let piece = self.elements.piece();
            let in_lines = |elements: i64| elements.count_ones() == 1 && elements > piece;
            let of = |elements: i64| match self.swizzled && in_lines(elements) {
                true => Spread::Swizzled,
                false => Spread::Longer(piece),
            };
            return [of(self.copied_terms()), of(self.row_of_b())];
        }
        let whole = |elements: i64| self.swizzled && elements.count_ones() == 1 && elements >= PIECE;
        let terms = self.copied_terms();
        let of_a = match (self.matrix_units, self.by_warps) {
            _ if self.turned => Spread::Longer(PIECE),
            // Rows as long as what the sets of a warp read at once fill the banks one after the other.
            (false, true) => Spread::AsItIs,
            (true, _) if self.at_once().is_some() => Spread::SwizzledEights(1),
            _ if whole(terms) && terms > PIECE => Spread::Swizzled,
            (true, _) => Spread::Longer(PIECE),
            (false, false) => Spread::Longer(PIECE * self.sets_of_a_warp().min(8)),
        };
        let of_b = match self.matrix_units {
            // Read as those of A are.
            true if self.b_by_columns => of_a,
            true if whole(self.columns) && self.columns >= 4 * ACROSS => {
                Spread::SwizzledEights(self.at_once().map_or(1, |[terms, _]| terms))
            }
            true => Spread::Longer(ACROSS),
            false if self.sets_of_a_warp() == 1 || self.across * PIECE >= WARP => Spread::AsItIs,
            false if whole(self.columns) && self.columns > PIECE => Spread::Swizzled,
            false => Spread::Longer(PIECE),
        };
        [of_a, of_b]
    }

    /// Elements between rows of what the sets have added up: lanes leave what an instruction has added up in eight rows at once, a piece of
    /// a row at a time two.
    pub(super) fn between_rows_of_sums(&self) -> i64 {
        match (self.matrix_units, self.at_once()) {
            (false, _) => 0,
            (true, Some([_, PIECE])) => PIECE,
            (true, _) => ACROSS,
        }
    }

    /// Bytes of the tiles of A and B in shared memory, and of what the sets have added up.
    pub(super) fn shared_bytes(&self, stages: i64) -> i64 {
        let [pad_a, pad_b] = self.spreads().map(Spread::longer);
        let sets_of_rows = self.depth / self.copied_terms();
        let rows_of_a = sets_of_rows * self.rows;
        let a = match (self.turned, self.matrix_units) {
            (true, _) => self.depth * (self.rows + pad_a),
            (false, true) => rows_of_a * (self.copied_terms() + pad_a),
            (false, false) => self.rows * (self.depth + pad_a),
        };
        let b = match self.b_by_columns {
            true => sets_of_rows * self.columns * (self.copied_terms() + pad_b),
            false => self.depth * (self.columns + pad_b),
        };
        let sums = if self.sets > 1 {
            self.sets * self.rows * (self.columns + self.between_rows_of_sums())
        } else {
            0
        };
        self.elements.bytes() * stages * (a + b) + 4 * sums
    }
}

/// Whether the threads of a set are warps with so many lanes below one another.
pub(super) fn may_have_lanes(down: i64, across: i64, lanes: i64) -> bool {
    down * across % WARP == 0 && down % lanes == 0 && across % (WARP / lanes) == 0
}

/// How the tiles of A and B are copied.
pub(super) fn copied(problem: &Problem, choice: &Choice) -> [Copied; 2] {
    let tiles = Tiles::of(choice);
    let align = problem.alignment();
    let of = |columns: i64, width: i64, align: i64| Copied {
        moved: Moved::Strided,
        dtype: problem.dtype(),
        columns,
        piece: copied_at_once(problem.dtype(), width, columns, align),
        threads: tiles.team(),
        by: By::of(choice),
        asks_once: false,
        cached: false,
    };
    let width_of_b = if tiles.b_by_columns { problem.shape.k } else { problem.shape.n };
    [of(tiles.copied_terms(), problem.shape.k, align.a), of(tiles.row_of_b(), width_of_b, align.b)]
}

/// Blocks along the rows and the columns of C.
pub(super) fn blocks(problem: &Problem, choice: &Choice) -> [i64; 2] {
    let tiles = Tiles::of(choice);
    [ceil(problem.shape.m, tiles.rows), ceil(problem.shape.n, tiles.columns)]
}
