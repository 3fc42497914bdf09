//! `storage_order`: which axis of a shared buffer is contiguous. Indices stay as they are.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(y: out f32[8, 128]) {
//!   for b in block.x(1) {
//!     alloc s: f32[128, 8] shared
//!     for i in 0..128, j in 0..8 { s[i, j] = 1 }
//!     for i in 0..128, j in 0..8 { y[j, i] = s[i, j] }
//!   }
//! }").unwrap();
//! let transposed = Schedule::run(before, "storage_order(s, c, r)").unwrap();
//! assert!(transposed.program().to_string().contains("alloc s: f32[128, 8] shared layout (r, c) => 128*c + r"));
//! ```
//!
//! Axes are named from the slowest to the fastest: `e` in one dimension, `r` and `c` for the last two; those not named
//! stay in front. An axis may be taken apart: `storage_order(s, r, c%8, c/8)` keeps every eighth column together.
//! Apply it after `compute_at`, when the extents are known.
//!
//! Registers have no addresses, but an instruction takes rows and columns of them as they are declared: of a buffer in
//! registers, `storage_order(a, c, r)` exchanges the last two dimensions, and the indices with them. Parts number an axis anew:
//! `storage_order(a, r, c%4, c/4)` of 32 columns makes every fourth one neighbours, so that a fragment of eight columns holds
//! columns 0, 4, ..., 28, the next one 1, 5, ..., 29, and a lane that has one column of each fragment has four that were neighbours.

use crate::diag::Diagnosis;
use crate::index::Index;
use crate::ir::{Access, Buffer, Operand, Program, Space, Stmt, walk};
use crate::schedule::rewrite::{Place, Storage, map_elements, rewrite, with_layout};
use crate::schedule::step::{Argument, Call};
use crate::sym::Sym;

use super::Primitive;
use super::vectorize::check_vectors;

pub(super) const USAGE: &str =
    "storage_order(buffer, slowest, ..., fastest), of axes r, c, or parts of them c/8, c%8";

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct StorageOrder {
    /// The buffer.
    pub buffer: String,
    /// Axes, or parts of axes, from slowest to fastest.
    pub order: Vec<Part>,
}

/// An axis or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The axis.
    Whole(String),
    /// `axis/by`
    Over(String, i64),
    /// `axis%by`
    Rest(String, i64),
}

impl Part {
    pub(super) fn read(text: &str) -> Option<Part> {
        let number = |n: &str| n.parse::<i64>().ok().filter(|n| *n > 0);
        if let Some((axis, by)) = text.split_once('/') {
            return Some(Part::Over(axis.into(), number(by)?));
        }
        if let Some((axis, by)) = text.split_once('%') {
            return Some(Part::Rest(axis.into(), number(by)?));
        }
        Some(Part::Whole(text.into()))
    }

    pub(super) fn text(&self) -> String {
        match self {
            Part::Whole(axis) => axis.clone(),
            Part::Over(axis, by) => format!("{axis}/{by}"),
            Part::Rest(axis, by) => format!("{axis}%{by}"),
        }
    }

    /// The axis that it is a part of.
    fn axis(&self) -> &str {
        let (Part::Whole(name) | Part::Over(name, _) | Part::Rest(name, _)) = self;
        name
    }

    /// The value of the part and the number of values it has.
    fn of(&self, storage: &Storage) -> Result<(Index, i64), Diagnosis> {
        let at = storage.axis(self.axis())?;
        Ok(self.at(&Index::var(&storage.axes[at]), storage.extents[at]))
    }

    /// The same of an index into an axis of so many elements.
    fn at(&self, index: &Index, extent: i64) -> (Index, i64) {
        match self {
            Part::Whole(_) => (index.clone(), extent),
            Part::Over(_, by) => (index.div(*by), (extent + by - 1) / by),
            Part::Rest(_, by) => (index.rem(*by), *by),
        }
    }
}

impl StorageOrder {
    pub(super) fn read(call: &Call) -> Result<StorageOrder, Diagnosis> {
        let part = |a: &Argument| if let Argument::Word(w) = a { Part::read(w) } else { None };
        let order: Option<Vec<Part>> = call.args.iter().skip(1).map(part).collect();
        match order {
            Some(order) if !order.is_empty() => Ok(StorageOrder { buffer: call.word_at(0)?.into(), order }),
            _ => Err(call.wrong("axes are wanted")),
        }
    }

    fn offset(&self, storage: &Storage) -> Result<Index, Diagnosis> {
        let mut parts = Vec::new();
        for part in &self.order {
            parts.push(part.of(storage)?);
        }
        let named = |name: &str| self.order.iter().any(|p| p.axis() == name);
        let unnamed = storage.axes.iter().zip(&storage.extents).filter(|(a, _)| !named(a.name()));
        let all: Vec<(Index, i64)> = unnamed.map(|(a, e)| (Index::var(a), *e)).chain(parts).collect();
        Ok(joined(all).0)
    }
}

/// One number of several, the fastest last, and how many values it has.
fn joined(parts: Vec<(Index, i64)>) -> (Index, i64) {
    parts.into_iter().rev().fold((Index::default(), 1), |(sum, stride), (value, extent)| {
        (&sum + &value.scaled(stride), stride * extent)
    })
}

impl StorageOrder {
    /// The parts of rows and of columns, and whether columns come first: how buffers in registers are declared anew.
    fn of_registers(&self) -> Option<(bool, [Vec<&Part>; 2])> {
        let of = |axis: &str| self.order.iter().filter(|p| p.axis() == axis).collect::<Vec<_>>();
        let [rows, columns] = ["r", "c"].map(of);
        let changes = self.order.windows(2).filter(|two| two[0].axis() != two[1].axis()).count();
        let is_order = changes < 2 && rows.len() + columns.len() == self.order.len();
        // An axis that is not named stays in front.
        let turned = columns.is_empty() || !rows.is_empty() && self.order[0].axis() == "c";
        is_order.then_some((turned, [rows, columns]))
    }

    /// The program with rows and columns of buffers in registers exchanged or numbered anew.
    fn renumbered(&self, program: &Program, buffers: &[Buffer]) -> Result<Program, Diagnosis> {
        let refuse = |because: &str, instead: &str| {
            Diagnosis::new(format!("`{}` cannot be declared so", self.buffer))
                .because(because)
                .instead(instead)
        };
        if buffers.iter().any(|b| b.dims.len() < 2) {
            return Err(refuse("it has fewer than two dimensions", ""));
        }
        let (turned, parts) = self.of_registers().ok_or_else(|| {
            refuse("it is in registers", "name the axes r and c, or parts of them, those of an axis together")
        })?;
        let is_one = |sym: &Sym| buffers.iter().any(|b| b.sym == *sym);
        let mut whole = false;
        walk::for_each(&program.body, &mut |stmt| match stmt {
            Stmt::Instruction(i) => {
                whole |= i.operands.iter().any(|o| matches!(o, Operand::Window(w) if is_one(&w.buffer)));
            }
            Stmt::Own(o) => whole |= is_one(&o.window.buffer),
            _ => {}
        });
        if whole || buffers.iter().any(|b| b.fragment.is_some()) {
            return Err(refuse("an instruction takes it as it is", "order it before tensorize"));
        }
        let number = |index: &Index, parts: &[&Part], extent: i64| match parts {
            [] | [Part::Whole(_)] => index.clone(),
            parts => joined(parts.iter().map(|part| part.at(index, extent)).collect()).0,
        };
        let mut extents: Vec<(Sym, [i64; 2])> = Vec::new();
        for buffer in buffers {
            let (_, last_two) = buffer.dims.split_at(buffer.dims.len() - 2);
            let mut both = [0; 2];
            for ((dim, parts), extent) in last_two.iter().zip(&parts).zip(&mut both) {
                if let [] | [Part::Whole(_)] = parts[..] {
                    continue;
                }
                if dim.pitch.is_some() {
                    return Err(refuse(
                        "an axis is shared out among threads",
                        "number one that each of them has to itself",
                    ));
                }
                let Some(known) = dim.extent.as_constant() else {
                    return Err(refuse("its extents are not constants yet", "apply compute_at first"));
                };
                let mut numbers: Vec<_> =
                    (0..known).map(|i| number(&Index::constant(i), parts, known).as_constant()).collect();
                numbers.sort_unstable();
                if !numbers.into_iter().eq((0..known).map(Some)) {
                    return Err(refuse(
                        &format!(
                            "these parts do not number its {known} rows or columns, each by one of as many numbers"
                        ),
                        "take an axis by one divisor of its extent: c%4, c/4",
                    ));
                }
                *extent = known;
            }
            extents.push((buffer.sym.clone(), both));
        }
        let body = rewrite(&program.body, &Place::of(program), &mut |stmt, place| {
            Ok(match stmt {
                Stmt::Alloc(buffer) if is_one(&buffer.sym) => {
                    let mut buffer = buffer.clone();
                    let last = buffer.dims.len() - 1;
                    if turned {
                        buffer.dims.swap(last - 1, last);
                    }
                    Some(vec![Stmt::Alloc(buffer)])
                }
                Stmt::Assign(_) => {
                    let facts = place.facts();
                    let anew = |access: &mut Access| {
                        let Some((_, extents)) = extents.iter().find(|(sym, _)| *sym == access.buffer) else {
                            return;
                        };
                        let last = access.index.len() - 1;
                        for ((at, parts), extent) in [last - 1, last].into_iter().zip(&parts).zip(extents) {
                            access.index[at] =
                                facts.ranges().simplify(&number(&access.index[at], parts, *extent));
                        }
                        if turned {
                            access.index.swap(last - 1, last);
                        }
                    };
                    Some(map_elements(vec![stmt.clone()], &anew))
                }
                _ => None,
            })
        })?;
        Ok(program.with_body(body))
    }
}

impl Primitive for StorageOrder {
    fn call(&self) -> Call {
        self.order.iter().fold(Call::new("storage_order").word(&self.buffer), |call, p| call.word(p.text()))
    }

    fn apply(&self, program: &Program) -> Result<Program, Diagnosis> {
        let registers: Vec<Buffer> = program
            .buffers()
            .into_values()
            .filter(|b| b.sym.name() == self.buffer && b.space == Space::Reg)
            .collect();
        if !registers.is_empty() {
            return self.renumbered(program, &registers);
        }
        check_vectors(with_layout(program, &self.buffer, &|storage| self.offset(storage))?)
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    /// What a step makes of `alloc`, read by a kernel whose columns are copied four at a time.
    fn layout(alloc: &str, steps: &str) -> Result<String, String> {
        let text = format!(
            "program p(x: in f32[8, 128; ldx], y: out f32[8, 128; ldy]) assume ldx%4 == 0 {{ for b in block.x(1) {{
                alloc {alloc}
                for i in 0..8, j in 0..32, v in 0..4 {{ s[i, 4*j + v] = x[i, 4*j + v] }}
                for i in 0..8, j in 0..128 {{ y[i, j] = s[i, j] }}
            }} }}"
        );
        let schedule =
            Schedule::run(parse::program(&text).expect("reads"), steps).map_err(|e| e.to_string())?;
        assert_eq!(schedule.text(), steps);
        let text = schedule.program().to_string();
        let alloc = text.lines().find(|l| l.contains("alloc")).expect("an allocation");
        Ok(alloc.split_once("layout ").map_or("none", |(_, l)| l).to_string())
    }

    #[test]
    fn the_layouts_of_the_worklog() {
        let plain = "s: f32[8, 128] shared";
        assert_eq!(
            layout(plain, "storage_order(s, r, c%8, c/8)\n").unwrap(),
            "(r, c) => 128*r + 16*(c%8) + c/8"
        );
        assert_eq!(layout(plain, "storage_align(s, r, 5)\n").unwrap(), "(r, c) => 133*r + c");
        assert_eq!(layout(plain, "storage_order(s, c, r)\nstorage_order(s, r, c)\n").unwrap(), "none");
        assert_eq!(
            layout(plain, "storage_order(s, c, r)\nstorage_align(s, c, 4)\n").unwrap(),
            "(r, c) => 12*c + r"
        );
        assert_eq!(
            layout(plain, "storage_align(s, c/12, 4)\n").unwrap(),
            "(r, c) => 176*r + 16*(c/12) + c%12"
        );
        // Rows whose elements stand in another order are rows all the same.
        assert_eq!(
            layout(plain, "storage_order(s, r, c%8, c/8)\nstorage_align(s, r, 5)\n").unwrap(),
            "(r, c) => 133*r + 16*(c%8) + c/8"
        );
        assert!(
            layout(plain, "swizzle(s)\nstorage_align(s, r, 4)\n").unwrap_err().contains("before swizzling")
        );
        assert_eq!(layout(plain, "swizzle(s)\n").unwrap(), "(r, c) => 128*r + 4*xor(c/4, r) + c%4");
        assert_eq!(
            layout("s: f32[8, 128] shared layout (r, c) => 132*r + c", "storage_align(s, r, 4)\n").unwrap(),
            "(r, c) => 136*r + c"
        );
    }

    #[test]
    fn a_layout_must_leave_vectors_whole() {
        let plain = "s: f32[8, 128] shared";
        for good in ["swizzle(s)", "storage_align(s, r, 4)", "storage_order(s, c/4, r, c%4)"] {
            layout(plain, &format!("vectorize(s.v)\n{good}\n")).unwrap();
        }
        let refusal = layout(plain, "vectorize(s.v)\nstorage_align(s, r, 1)\n").unwrap_err();
        assert!(refusal.contains("multiple of 4"), "{refusal}");
        // The rows of x are still read at once, and stored element by element.
        layout(plain, "vectorize(s.v)\nstorage_order(s, c, r)\n").unwrap();
    }

    #[test]
    fn registers_are_turned_with_their_indices() {
        let text = "program p(x: in f32[8, 4], y: out f32[8, 4]) {
            for i in 0..8 {
              alloc a: f32[2, 4] reg
              for r in 0..2, c in 0..4 { a[r, c] = x[i, c] }
              for c in 0..4 { y[i, c] = a[0, c] + a[1, c] }
            }
        }";
        let after = Schedule::run(parse::program(text).expect("reads"), "storage_order(a, c, r)").unwrap();
        let text = after.program().to_string();
        for part in ["alloc a: f32[4, 2] reg", "a[c, r] = x[i, c]", "a[c, 0] + a[c, 1]"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn axes_of_registers_are_numbered_anew() {
        let run = |steps: &str| {
            let text = "program p(x: in f32[8, 32], y: out f32[8, 32]) {
                for i in 0..8 {
                  alloc a: f32[2, 32] reg
                  for r in 0..2, c in 0..8, v in 0..4 { a[r, 4*c + v] = x[i, 4*c + v] }
                  for c in 0..32 { y[i, c] = a[0, c] + a[1, 31 - c] }
                }
            }";
            Schedule::run(parse::program(text).expect("reads"), steps)
                .map(|s| s.program().to_string())
                .map_err(|e| e.to_string())
        };
        let text = run("storage_order(a, r, c%4, c/4)").unwrap();
        for part in ["alloc a: f32[2, 32] reg", "a[r, 8*v + c] = x[i, 4*c + v]", "a[0, 8*(c%4) + c/4]"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // Turned at the same time, as an axis that is not named stays in front.
        let turned = run("storage_order(a, c%4, c/4, r)").unwrap();
        assert!(turned.contains("alloc a: f32[32, 2] reg") && turned.contains("a[8*v + c, r]"), "{turned}");
        assert_eq!(run("storage_order(a, c%4, c/4)"), run("storage_order(a, r, c%4, c/4)"));
        assert_eq!(run("storage_order(a, r%2)"), run("storage_order(a, c, r)"));
        for (bad, because) in [
            ("storage_order(a, r, c%5, c/5)", "do not number its 32"),
            ("storage_order(a, r, c/4)", "do not number its 32"),
            ("storage_order(a, r, c%4, c/8)", "do not number its 32"),
            ("storage_order(a, c%4, r, c/4)", "those of an axis together"),
            ("storage_order(a, s, c)", "name the axes r and c"),
        ] {
            let refusal = run(bad).unwrap_err();
            assert!(refusal.contains(because), "{bad}: {refusal}");
        }
        // Elements do not change threads.
        let shared_out = "program p(y: out f32[32, 4]) { for b in block.x(1) {
            alloc a: f32[32@1, 4] reg
            for t in threads(32@1) { for c in 0..4 { a[t, c] = 1 } }
            for t in threads(32@1) { for c in 0..4 { y[t, c] = a[t, c] } }
        } }";
        let run = |steps: &str| Schedule::run(parse::program(shared_out).expect("reads"), steps);
        let refusal = run("storage_order(a, r%4, r/4, c)").unwrap_err().to_string();
        assert!(refusal.contains("shared out among threads"), "{refusal}");
        run("storage_order(a, r, c%2, c/2)").expect("every thread has its columns to itself");
    }

    #[test]
    fn what_is_no_layout_is_refused() {
        for (alloc, bad, because) in [
            ("s: f32[8, 128] shared", "storage_order(s, c, q)", "the axes are r, c"),
            ("s: f32[8, 128] shared", "storage_order(s, r, c/8)", "not injective"),
            ("s: f32[8, 128] shared", "storage_align(s, c, 1)", "neighbours along it"),
            ("s: f32[8, 128] shared", "storage_align(s, r/2, 1)", "no neighbours along it"),
            ("s: f32[8, 128] shared", "storage_align(s, c%8, 1)", "tiles of one are wanted"),
            ("s: f32[8, 128] shared layout (r, c) => 132*r + c", "swizzle(s)", "cannot be swizzled"),
            ("s: f32[8, 128] reg", "swizzle(s)", "not in shared memory"),
            ("s: f32[8, 128] shared", "swizzle(x)", "no intermediate buffer `x`"),
        ] {
            let refusal = layout(alloc, &format!("{bad}\n")).unwrap_err();
            assert!(refusal.contains(because), "{bad}: {refusal}");
        }
    }
}
