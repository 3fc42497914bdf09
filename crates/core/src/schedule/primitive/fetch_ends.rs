//! `fetch_ends`: what lies around the ends of the rows that a loop stores is brought to the second-level cache ahead.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(n: size, x: in f32[n, 3], y: out f32[n, 3; ldy]) {
//!   for b in block.x(ceil(n, 32)) {
//!     alloc s: f32[32, 3] shared
//!     for t in threads(32@1) { for j in 0..3 { s[t, j] = 32*b + t < n ? x[32*b + t, j] : 0 } }
//!     for i in 0..32 { for j in 0..3 { if 32*b + i < n { y[32*b + i, j] = s[31 - i, j] } } }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "fetch_ends(y.i, 32)").unwrap();
//! assert!(after.program().to_string().contains("
//!     for t in threads(32@1) {
//!       if 32*b + t < n {
//!         prefetch_l2(y[32*b + t, 0 +: 1])
//!         prefetch_l2(y[32*b + t, 2 +: 1])
//!       }
//!     }
//!     for t in threads(32@1) {
//!       for j in 0..3 {
//! "), "{}", after.program());
//! ```
//!
//! Of a row that does not start and end where sectors of 32 bytes do, the first and the last are stored in part, and device memory has to be
//! asked for the rest of them. That happens when the second-level cache makes room, unless it has been asked before: so many threads do
//! that at the beginning of the body around the loop, for all of its rows, or, with `behind=label`, behind the nest there that fills the buffer of that
//! name, so that what is multiplied is asked for first. No value is read.
//!
//! With `by=parts` sectors that a row fills to their end are left out. With `by=copies` those that are not are brought by asynchronous copies of a
//! word each, which the body waits for where it waits for its others (`pipeline(..., via=cp_async)`): a prefetch that is still on its way when its
//! sector is stored to has done nothing, and as much comes with it as the cache likes, where a copy brings what the context says.
//!
//! The loop is serial, of a constant number of rows, and holds one other loop, over their columns. Where the body around is pipelined later, what is
//! asked for belongs to what is brought ahead.

use crate::diag::Diagnosis;
use crate::index::{Cond, Index};
use crate::ir::{
    Access, Assign, For, If, Instruction, Mode, Operand, Program, Range, Span, Stmt, Window, walk,
};
use crate::schedule::handle::{LoopRef, writes};
use crate::schedule::rewrite::{Changed, Place, guard_bounds, rewrite};
use crate::schedule::step::Call;
use crate::sym::Sym;

use super::Primitive;

pub(super) const USAGE: &str = "fetch_ends(label.loop, THREADS, by=sectors, behind=label), where by is sectors, parts or copies and behind may be left out";

/// What brings the sectors around the ends of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Prefetches of the sectors of the first and the last element.
    Sectors,
    /// Prefetches of those of them that are stored in part.
    Parts,
    /// Copies of a word of each of those.
    Copies,
}

impl Ends {
    const ALL: [Ends; 3] = [Ends::Sectors, Ends::Parts, Ends::Copies];

    fn word(self) -> &'static str {
        match self {
            Ends::Sectors => "sectors",
            Ends::Parts => "parts",
            Ends::Copies => "copies",
        }
    }

    /// The instructions for the first and for the last element of a row.
    fn instructions(self) -> [&'static str; 2] {
        match self {
            Ends::Sectors => ["prefetch_l2"; 2],
            Ends::Parts => ["prefetch_l2_before", "prefetch_l2_behind"],
            Ends::Copies => ["copy_l2_before", "copy_l2_behind"],
        }
    }
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct FetchEnds {
    /// The loop over rows.
    pub target: LoopRef,
    /// The threads that ask.
    pub threads: i64,
    /// What they ask for, and how.
    pub by: Ends,
    /// The buffer that is filled before they do.
    pub behind: Option<String>,
}

impl FetchEnds {
    pub(super) fn read(call: &Call) -> Result<FetchEnds, Diagnosis> {
        let threads = call.int_at(1)?;
        if !(1..=1024).contains(&threads) {
            return Err(call.wrong("it takes 1 to 1024 threads"));
        }
        let by = match call.option_of("by") {
            None => Ends::Sectors,
            Some(word) => (Ends::ALL.into_iter().find(|ends| ends.word() == word))
                .ok_or_else(|| call.wrong("`by` is sectors, parts or copies"))?,
        };
        let behind = call.option_of("behind").map(str::to_string);
        Ok(FetchEnds { target: call.loop_at(0)?, threads, by, behind })
    }

    fn refuse(&self, because: impl Into<String>) -> Diagnosis {
        Diagnosis::new(format!("the ends of the rows that `{}` stores cannot be fetched", self.target))
            .because(because)
            .instead(
                "name a serial loop over rows that holds one over columns, before they are fused or bound",
            )
    }

    /// The body in which the loop stands, behind what asks for the ends of its rows.
    fn in_body(&self, body: &[Stmt], place: &Place) -> Changed {
        let meant = body.iter().enumerate().find_map(|(at, stmt)| match stmt {
            Stmt::For(l) if self.target.means(l) => Some((at, l)),
            _ => None,
        });
        let Some((at, rows)) = meant else { return Ok(None) };
        let first = match &self.behind {
            None => body.iter().take_while(|stmt| matches!(stmt, Stmt::Alloc(_))).count(),
            Some(label) => {
                let fills = body[..at].iter().rposition(|stmt| writes(std::slice::from_ref(stmt), label));
                1 + fills.ok_or_else(|| {
                    self.refuse(format!("no nest before it, in the same body, fills `{label}`")).instead(
                        "leave `behind` out, or attach the buffer to that body with compute_at first",
                    )
                })?
            }
        };
        let mut out = body.to_vec();
        out.insert(first, self.asks(rows, place)?);
        Ok(Some(out))
    }

    /// Threads ask for both ends of each row.
    fn asks(&self, rows: &For, place: &Place) -> Result<Stmt, Diagnosis> {
        let from_zero = |l: &For| match &l.range {
            Range::Span { lo, step, .. } => {
                l.mode == Mode::Serial && lo.as_constant() == Some(0) && step.as_constant() == Some(1)
            }
            _ => false,
        };
        let [Stmt::For(columns)] = &rows.body[..] else {
            return Err(self.refuse("it holds more than one loop"));
        };
        let counts = [rows, columns].map(|l| l.range.constant_trip_count().filter(|_| from_zero(l)));
        let [Some(count), Some(width)] = counts else {
            return Err(
                self.refuse("one of the loops is not serial, or has no constant number of iterations")
            );
        };
        let stored = self.stored(columns)?;
        let buffers = place.program.buffers();
        let Some(buffer) = buffers.get(&stored.buffer).filter(|b| b.is_global()) else {
            return Err(self.refuse(format!("`{}` is not in device memory", stored.buffer)));
        };
        let (t, u) = (Sym::new("t"), Sym::new("u"));
        let rounds = (count + self.threads - 1) / self.threads;
        let row =
            if rounds > 1 { &Index::var(&u).scaled(self.threads) + &Index::var(&t) } else { Index::var(&t) };
        let mut facts = place.facts();
        let of_threads = |body: Vec<Stmt>| For {
            var: t.clone(),
            mode: Mode::Threads { pitch: 1 },
            range: Range::upto(self.threads),
            counting: None,
            body: body.into(),
        };
        facts.enter(&of_threads(Vec::new()));
        let of_rounds = |body: Vec<Stmt>| For {
            var: u.clone(),
            mode: Mode::Unroll,
            range: Range::upto(rounds),
            counting: None,
            body: body.into(),
        };
        facts.enter(&of_rounds(Vec::new()));
        let mut asks = Vec::new();
        let mut all_there = Cond::TRUE;
        if rounds * self.threads > count {
            all_there = Cond::lt(row.clone(), count.into());
            facts.assume(&all_there);
        }
        let mut ends = vec![0, width - 1];
        if self.by == Ends::Sectors {
            // Both elements are one.
            ends.dedup();
        }
        for (column, instruction) in ends.into_iter().zip(self.by.instructions()) {
            let at = |s: &Sym| match s {
                s if *s == rows.var => Some(row.clone()),
                s if *s == columns.var => Some(column.into()),
                _ => None,
            };
            let index: Vec<Index> = stored.index.iter().map(|i| i.substitute(&at)).collect();
            let inside = guard_bounds(&Access::new(&stored.buffer, index.clone()), buffer, &facts);
            asks.push((inside, ask(instruction, &stored.buffer, index)));
        }
        let same = asks.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let body = if same {
            let inside = asks[0].0.clone();
            only_if(all_there.and(inside), asks.into_iter().map(|(_, ask)| ask).collect())
        } else {
            let each = asks.into_iter().flat_map(|(inside, ask)| only_if(inside, vec![ask])).collect();
            only_if(all_there, each)
        };
        let body = if rounds > 1 { vec![Stmt::For(of_rounds(body))] } else { body };
        Ok(Stmt::For(of_threads(body)))
    }

    /// What the loops store, by one access.
    fn stored(&self, columns: &For) -> Result<Access, Diagnosis> {
        let mut found: Option<Access> = None;
        let mut several = false;
        walk::for_each(&columns.body, &mut |stmt| match stmt {
            Stmt::Assign(Assign { target, .. }) if target.buffer.name() == self.target.label => {
                several |= found.as_ref().is_some_and(|f| f != target);
                found = Some(target.clone());
            }
            Stmt::For(_) | Stmt::Tasks(_) | Stmt::Own(_) | Stmt::Instruction(_) => several = true,
            _ => {}
        });
        match found {
            Some(access) if !several => Ok(access),
            _ => Err(self.refuse("it does not store one element of each row and column")),
        }
    }
}

fn ask(instruction: &str, buffer: &Sym, mut index: Vec<Index>) -> Stmt {
    let last = index.pop().unwrap_or_default();
    let dims = index.into_iter().map(Span::At).chain([Span::Slice(last, 1)]).collect();
    let window = Operand::Window(Window { buffer: buffer.clone(), dims });
    Stmt::Instruction(Instruction { name: instruction.into(), operands: vec![window], signal: None })
}

fn only_if(cond: Cond, then: Vec<Stmt>) -> Vec<Stmt> {
    if cond == Cond::TRUE {
        then
    } else {
        vec![Stmt::If(If { cond, then: then.into(), otherwise: Vec::new().into() })]
    }
}

impl Primitive for FetchEnds {
    fn call(&self) -> Call {
        let call = Call::new("fetch_ends").target(&self.target).int(self.threads);
        let call = if self.by == Ends::Sectors { call } else { call.option("by", self.by.word()) };
        match &self.behind {
            None => call,
            Some(label) => call.option("behind", label),
        }
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let mut found = false;
        let body = rewrite(&program.body, &Place::of(program), &mut |stmt, place| {
            let Stmt::For(_) = stmt else { return Ok(None) };
            let done = place
                .rebuild_all(std::slice::from_ref(stmt), &mut |body, inside| self.in_body(body, inside))?;
            found |= done.is_some();
            Ok(done)
        })?;
        if !found {
            return Err(self.target.unknown(program));
        }
        Ok(program.with_body(body))
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    fn after(body: &str, steps: &str) -> Result<String, String> {
        let text = format!("program p(n: size, x: in f32[n, 5], y: out f32[n, 5; ldy]) {{ {body} }}");
        let run = Schedule::run(parse::program(&text).unwrap(), steps);
        run.map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    const STORES: &str = "for b in block.x(ceil(n, 40)) {
        for i in 0..40 { for j in 0..5 { if 40*b + i < n { y[40*b + i, j] = x[40*b + i, j] } } }
    }";

    #[test]
    fn threads_share_out_rows() {
        let text = after(STORES, "fetch_ends(y.i, 16)").unwrap();
        let asks = "    for t in threads(16@1) {
      for u in unroll 0..3 {
        if 16*u + t < 40 && 40*b + 16*u + t < n {
          prefetch_l2(y[40*b + 16*u + t, 0 +: 1])
          prefetch_l2(y[40*b + 16*u + t, 4 +: 1])
        }
      }
    }
    for i in 0..40, j in 0..5 {";
        assert!(text.contains(asks), "{text}");
    }

    #[test]
    fn sectors_that_are_filled_may_be_left_out() {
        for (by, before, behind) in [
            ("parts", "prefetch_l2_before", "prefetch_l2_behind"),
            ("copies", "copy_l2_before", "copy_l2_behind"),
        ] {
            let steps = format!("fetch_ends(y.i, 40, by={by})");
            let text = after(STORES, &steps).unwrap();
            assert!(text.contains(&format!("{before}(y[40*b + t, 0 +: 1])")), "{text}");
            assert!(text.contains(&format!("{behind}(y[40*b + t, 4 +: 1])")), "{text}");
            assert_eq!(parse::program(&text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn they_may_be_asked_for_behind_what_is_brought() {
        let body = "for b in block.x(ceil(n, 40)) {
            alloc s: f32[40, 5] shared
            for r in 0..40 { for c in 0..5 { s[r, c] = 40*b + r < n ? x[40*b + r, c] : 0 } }
            for i in 0..40 { for j in 0..5 { if 40*b + i < n { y[40*b + i, j] = s[i, j] } } }
        }";
        let text = after(body, "fetch_ends(y.i, 40, by=copies, behind=s)").unwrap();
        let [filled, asked, stored] = ["s[r, c] =", "copy_l2_before(y", "] = s["].map(|what| text.find(what));
        assert!(filled.is_some() && filled < asked && asked < stored, "{text}");
        let refused = after(body, "fetch_ends(y.i, 40, behind=x)").unwrap_err();
        assert!(refused.contains("fills `x`"), "{refused}");
    }

    #[test]
    fn what_is_no_nest_of_rows_is_refused() {
        for (steps, because) in [
            ("fuse(y.i, y.j) -> f\nfetch_ends(y.f, 32)", "it holds more than one loop"),
            ("fetch_ends(y.j, 32)", "it holds more than one loop"),
            ("bind(y.j, threads)\nfetch_ends(y.i, 32)", "not serial"),
            ("fetch_ends(y.k, 32)", "fetch_ends"),
            ("fetch_ends(y.i, 0)", "1 to 1024 threads"),
            ("fetch_ends(y.i, 32, by=rows)", "sectors, parts or copies"),
        ] {
            let refused = after(STORES, steps).unwrap_err();
            assert!(refused.contains(because), "{steps}: {refused}");
        }
    }
}
