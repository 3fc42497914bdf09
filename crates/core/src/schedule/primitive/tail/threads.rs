//! What is left over of a sum beside matrix instructions, by threads.
//!
//! ```
//! # use warpwright_core::{ir::parse, schedule::Schedule};
//! let before = parse::program("program p(a: in f64[16, 17], b: in f64[17, 8], c: out f64[16, 8]) {
//!   for g in block.x(1), w in threads(1@32) {
//!     alloc s: f64[16, 8] reg
//!     for i in 0..16, j in 0..8 { s[i, j] = 0 }
//!     for i in 0..16, j in 0..8, k in 0..17 { s[i, j] += a[i, k] * b[k, j] }
//!     for i in 0..16, j in 0..8 { c[i, j] = s[i, j] }
//!   }
//! }").unwrap();
//! let after = Schedule::run(before, "
//!   cache_read(a, s, reg) -> x
//!   cache_read(b, s, reg) -> y
//!   split(s.k, 4) -> ks, k
//!   reorder(s.ks, s.i, s.j, s.k)
//!   compute_at(x, s.ks)
//!   compute_at(y, s.ks)
//!   tensorize(s.i, mma_m16n8k4_f64)
//!   tail(s.ks, threads)
//! ").unwrap();
//! let text = after.program().to_string();
//! assert!(text.contains("for ks in 0..4 {"), "{text}");
//! assert!(text.contains("
//!       for (i, j) in own s[:, :] {
//!         s[i, j] += a[i, 16] * b[16, j]
//!       }
//! "), "{text}");
//! ```
//!
//! A matrix instruction adds up a fixed number of terms. Where a sum is one or two terms longer than a multiple of that, the last
//! instruction multiplies zeros for most of its time. Instead threads add these terms, each to the elements of the accumulator
//! that it owns, and read the factors from where the fragments would have been loaded.

use crate::index::{Facts as Known, Index};
use crate::instr::{self, Behaviour, OperandAccess, Record};
use crate::ir::{
    Access, Assign, AssignOp, BinaryOp, Body, For, Instruction, Operand, Own, Range, Reduction, Span, Stmt,
    Value, Window, facts, walk,
};
use crate::schedule::rewrite::{Place, head};
use crate::sym::Sym;

use super::decided;

/// How an element of a fragment is made.
struct Made {
    /// Its index, each a variable of its own or a number.
    index: Vec<Index>,
    value: Value,
    /// The loops around, and how often each runs.
    loops: Vec<(Sym, i64)>,
}

impl Made {
    /// What the variables of one of its indices are where that has another value; `None` if it does not tell.
    fn variables(&self, index: &Index, wanted: &Index) -> Option<Vec<(Sym, Index)>> {
        if let Some(var) = index.as_var() {
            return Some(vec![(var.clone(), wanted.clone())]);
        }
        // Loops that number tiles together, each by one digit.
        let mut digits = self.loops.iter().filter(|(var, _)| index.mentions(var)).collect::<Vec<_>>();
        digits.sort_by_key(|(var, _)| index.coefficient(var));
        let (mut number, mut step) = (Index::default(), 1);
        let mut found = Vec::new();
        for (at, (var, count)) in digits.iter().enumerate() {
            number = &number + &Index::var(var).scaled(step);
            let above = wanted.div(step);
            found.push((var.clone(), if at + 1 < digits.len() { above.rem(*count) } else { above }));
            step *= count;
        }
        (number == *index).then_some(found)
    }
}

/// What a partial iteration does: how fragments are made, and the nests of instructions that multiply them.
#[derive(Default)]
struct Parts {
    fragments: Vec<Sym>,
    made: Vec<(Sym, Made)>,
    /// Loops around an instruction.
    products: Vec<(Vec<For>, Instruction)>,
}

/// The statements by which threads do what the single iteration of a loop does.
pub(super) fn by_threads(last: &For, place: &Place) -> Result<Vec<Stmt>, String> {
    let mut parts = Parts::default();
    parts.visit(&[Stmt::For(last.clone())], &mut Vec::new())?;
    if parts.products.is_empty() {
        return Err("no matrix instruction is in it".into());
    }
    let mut known = facts::of_program(place.program);
    place.outer().iter().for_each(|o| facts::enter_loop(&mut known, o));
    parts.products.iter().map(|(loops, instruction)| parts.sum(loops, instruction, &known)).collect()
}

impl Parts {
    fn visit(&mut self, stmts: &[Stmt], loops: &mut Vec<For>) -> Result<(), String> {
        for stmt in stmts {
            match stmt {
                Stmt::Alloc(buffer) if buffer.fragment.is_some() => self.fragments.push(buffer.sym.clone()),
                Stmt::For(l) => match &l.range {
                    Range::Span { lo, hi, .. } if is_one_after(lo, hi) => {
                        let only = |sym: &Sym| (*sym == l.var).then(|| lo.clone());
                        self.visit(&walk::substitute(&l.body, &only), loops)?;
                    }
                    _ => {
                        loops.push(head(l));
                        self.visit(&l.body, loops)?;
                        loops.pop();
                    }
                },
                Stmt::Own(own) => {
                    let (fragment, made) = self.fill(own, loops)?;
                    if self.made.iter().any(|(other, _)| *other == fragment) {
                        return Err(format!("`{fragment}` is made in several places inside it"));
                    }
                    // What a loop repeats for an element has no one value.
                    if let Some(l) = loops.iter().find(|l| !made.index.iter().any(|i| i.mentions(&l.var))) {
                        return Err(format!("`{fragment}` is made again and again by `{}`", l.var));
                    }
                    self.made.push((fragment, made));
                }
                Stmt::Instruction(i) => self.products.push((loops.clone(), i.clone())),
                _ => return Err("something else than instructions and their fragments is in it".into()),
            }
        }
        Ok(())
    }

    /// How a loop over what threads own makes the elements of a fragment.
    fn fill(&self, own: &Own, loops: &[For]) -> Result<(Sym, Made), String> {
        let counts = loops.iter().map(|l| Some((l.var.clone(), l.range.constant_trip_count()?)));
        let counts: Option<Vec<_>> = counts.collect();
        match &own.body[..] {
            [Stmt::Assign(Assign { target, op: AssignOp::Store, value, .. })]
                if own.run == 1 && self.fragments.contains(&target.buffer) =>
            {
                let loops = counts.ok_or("a fragment is made in loops of no known length")?;
                let made = Made { index: target.index.clone(), value: value.clone(), loops };
                Ok((target.buffer.clone(), made))
            }
            _ => Err("a fragment is not made element by element inside it".into()),
        }
    }

    /// The value of an element of a fragment.
    fn element(&self, fragment: &Sym, index: &[Index], known: &Known) -> Result<Value, String> {
        let made = self.made.iter().find_map(|(buffer, made)| (buffer == fragment).then_some(made));
        let made = made.ok_or_else(|| format!("`{fragment}` is not made inside it"))?;
        let mut with: Vec<(Sym, Index)> = Vec::new();
        for (at, wanted) in made.index.iter().zip(index) {
            if at != wanted {
                let variables = made.variables(at, wanted);
                with.extend(variables.ok_or_else(|| format!("`{fragment}` is not made element by element"))?);
            }
        }
        let of = |sym: &Sym| with.iter().find_map(|(var, index)| (var == sym).then(|| known.simplify(index)));
        Ok(decided(&made.value.substitute(&of), known))
    }

    /// The loops around an instruction with a loop over what threads own of its result inside, which adds up the terms that
    /// are not zero.
    fn sum(&self, loops: &[For], instruction: &Instruction, known: &Known) -> Result<Stmt, String> {
        let (result, a, b, terms) = factors(instruction)?;
        // Of loops that the result does not depend on, every iteration adds terms to it.
        let at = |l: &&For| result.dims.iter().any(|dim| matches!(dim, Span::At(i) if i.mentions(&l.var)));
        let (loops, over_terms): (Vec<&For>, Vec<&For>) = loops.iter().partition(at);
        let iterations = all_iterations(&over_terms)?;
        let mut known = known.clone();
        loops.iter().for_each(|l| facts::enter_loop(&mut known, l));
        let known = &known;
        let vars = [Sym::new("i"), Sym::new("j")];
        let [i, j] = vars.each_ref().map(Index::var);
        let target = Access::new(&result.buffer, element_of(result, [i.clone(), j.clone()])?);
        let mut body = Vec::new();
        let all = iterations.iter().flat_map(|there| (0..terms).map(move |k| (there, Index::from(k))));
        for (there, k) in all {
            let here = |sym: &Sym| there.iter().find_map(|(var, value)| (var == sym).then(|| value.clone()));
            let [a, b] = [a, b].map(|window| window.substitute(&here));
            let of_a = self.element(&a.buffer, &element_of(&a, [i.clone(), k.clone()])?, known)?;
            let of_b = self.element(&b.buffer, &element_of(&b, [k, j.clone()])?, known)?;
            if of_a != Value::Const(0.0) && of_b != Value::Const(0.0) {
                body.push(Stmt::Assign(Assign {
                    target: target.clone(),
                    op: AssignOp::Reduce(Reduction::Sum),
                    atomic: false,
                    value: Value::binary(BinaryOp::Mul, of_a, of_b),
                }));
            }
        }
        if body.len() as i64 == terms * iterations.len() as i64 {
            return Err("all terms of its last iteration count".into());
        }
        let own =
            Own { vars: vars.to_vec(), run: 1, window: result.clone(), lane_base: false, body: body.into() };
        Ok(loops.iter().rev().fold(Stmt::Own(own), |inside, l| {
            Stmt::For(For { body: Body::from(vec![inside]), ..(*l).clone() })
        }))
    }
}

/// What the variables of loops are in each iteration of all of them.
fn all_iterations(loops: &[&For]) -> Result<Vec<Vec<(Sym, Index)>>, String> {
    loops.iter().try_fold(vec![Vec::new()], |before: Vec<Vec<(Sym, Index)>>, l| {
        let Range::Span { lo, step, .. } = &l.range else {
            return Err(format!("`{}` is no loop over a range", l.var));
        };
        let unknown = || format!("`{}` runs through no known range", l.var);
        let (lo, step) = lo.as_constant().zip(step.as_constant()).ok_or_else(unknown)?;
        let count = l.range.constant_trip_count().ok_or_else(unknown)?;
        let values = (0..count).map(|n| Index::from(lo + n * step));
        let with = |value: Index| {
            let of = move |there: &Vec<_>| [&there[..], &[(l.var.clone(), value.clone())]].concat();
            before.iter().map(of).collect::<Vec<_>>()
        };
        Ok(values.flat_map(with).collect())
    })
}

/// The operands of a matrix instruction, the accumulator first, and how many terms it adds up.
fn factors(instruction: &Instruction) -> Result<(&Window, &Window, &Window, i64), String> {
    let refused = || format!("`{}` is no product of fragments", instruction.name);
    let record: &Record = instr::by_name(&instruction.name).ok_or_else(refused)?;
    let updates = record.operands.first().is_some_and(|o| o.access == OperandAccess::Update);
    match (&record.behaviour, &instruction.operands[..]) {
        (
            Behaviour::Multiply { k, conjugate: false, .. },
            [Operand::Window(result), Operand::Window(a), Operand::Window(b)],
        ) if updates => Ok((result, a, b, *k)),
        _ => Err(refused()),
    }
}

/// The index of an element of a tile: its row and its column for the dimensions that are whole.
fn element_of(window: &Window, element: [Index; 2]) -> Result<Vec<Index>, String> {
    let mut element = element.into_iter();
    let index = window.dims.iter().map(|dim| match dim {
        Span::At(index) => Some(index.clone()),
        Span::All => element.next(),
        Span::Slice(..) => None,
    });
    let index: Option<Vec<Index>> = index.collect();
    index.ok_or_else(|| format!("`{}` is not cut into tiles", window.buffer))
}

fn is_one_after(lo: &Index, hi: &Index) -> bool {
    lo.as_constant().zip(hi.as_constant()).is_some_and(|(lo, hi)| hi == lo + 1)
}

#[cfg(test)]
mod tests {
    use crate::ir::parse;
    use crate::schedule::Schedule;

    /// A product of so many terms by matrix units, and by threads what is left over.
    fn run(terms: i64, unrolled: &str) -> Result<String, String> {
        let spec = format!(
            "program p(a: in f64[16, {terms}], b: in f64[{terms}, 8], c: out f64[16, 8]) {{
                for g in block.x(1), w in threads(1@32) {{
                    alloc s: f64[16, 8] reg
                    for i in 0..16, j in 0..8 {{ s[i, j] = 0 }}
                    for i in 0..16, j in 0..8, k in 0..{terms} {{ s[i, j] += a[i, k] * b[k, j] }}
                    for i in 0..16, j in 0..8 {{ c[i, j] = s[i, j] }}
                }}
            }}"
        );
        let steps = format!(
            "cache_read(a, s, reg) -> x
            cache_read(b, s, reg) -> y
            split(s.k, 4) -> ks, k
            reorder(s.ks, s.i, s.j, s.k)
            compute_at(x, s.ks)
            compute_at(y, s.ks)
            tensorize(s.i, mma_m16n8k4_f64)
            {unrolled}tail(s.ks, threads)"
        );
        let spec = parse::program(&spec).expect("reads");
        Schedule::run(spec, &steps).map(|s| s.program().to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn as_many_terms_are_added_as_are_left_over() {
        for rest in 1..=3 {
            let text = run(8 + rest, "unroll(s.ks)\n").unwrap();
            assert!(text.contains("for ks in unroll 0..2 {") && !text.contains(" ? "), "{text}");
            assert_eq!(text.matches("s[i, j] += ").count(), usize::try_from(rest).unwrap(), "{text}");
            let last = 7 + rest;
            assert!(text.contains(&format!("s[i, j] += a[i, {last}] * b[{last}, j]")), "{text}");
            // The fragments of the last instruction are gone with it.
            assert_eq!(text.matches("alloc x").count(), 1, "{text}");
        }
    }

    #[test]
    fn only_what_is_left_over_beside_an_instruction_is_for_threads() {
        assert!(run(8, "").unwrap_err().contains("nothing inside depends on it"));
        assert!(run(3, "").unwrap_err().contains("the tail of `s.ks` cannot be changed so"));
        let scalar = "program p(x: in f32[9], y: out f32[1]) {
            y[0] = 0
            for k in 0..9 { y[0] += x[k] }
        }";
        let scalar = parse::program(scalar).expect("reads");
        let refused = Schedule::run(scalar, "split(y.k, 4) -> ks, k\ntail(y.ks, threads)").unwrap_err();
        assert!(refused.to_string().contains("something else than instructions"), "{refused}");
    }

    #[test]
    fn fragments_that_are_made_in_several_places_are_left_to_instructions() {
        let program = |more: &str| {
            format!(
                "program p(a: in f64[16, 9], b: in f64[9, 8], c: out f64[16, 8]) {{
                    for g in block.x(1), w in threads(1@32) {{
                        alloc s: f64[16, 8] reg frag D16x8
                        for (i, j) in own s[:, :] {{ s[i, j] = 0 }}
                        for ks in 0..3 {{
                            alloc x: f64[16, 4] reg frag A16x4
                            alloc y: f64[4, 8] reg frag B4x8
                            for (i, k) in own x[:, :] {{ x[i, k] = 4*ks + k < 9 ? a[i, 4*ks + k] : 0 }}
                            {more}
                            for (k, j) in own y[:, :] {{ y[k, j] = 4*ks + k < 9 ? b[4*ks + k, j] : 0 }}
                            mma_m16n8k4_f64(s[:, :], x[:, :], y[:, :])
                        }}
                        for (i, j) in own s[:, :] {{ c[i, j] = s[i, j] }}
                    }}
                }}"
            )
        };
        let after = |more: &str| {
            let spec = parse::program(&program(more)).expect("reads");
            Schedule::run(spec, "tail(s.ks, threads)").map(|_| ()).map_err(|e| e.to_string())
        };
        assert_eq!(after(""), Ok(()));
        let again = after("for (i, k) in own x[:, :] { x[i, k] = 1 }").unwrap_err();
        assert!(again.contains("made in several places"), "{again}");
    }
}
