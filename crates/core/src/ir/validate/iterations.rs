//! Whether the iterations of a loop are independent: the question behind reordering, binding and splitting loops.

use std::collections::{HashMap, HashSet};

use crate::index::{Facts, Index, Touch, disjoint_iterations, strides_apart};
use crate::instr::{self, OperandAccess};
use crate::ir::{
    Access, Assign, AssignOp, Buffer, For, Operand, Range, Reduction, Span, Stmt, Value, Window, facts, walk,
};
use crate::sym::Sym;

/// How an element is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    Write,
    Reduce { by: Reduction, atomic: bool },
}

/// What the iterations are to become.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Another order, one after the other: reductions commute.
    Another,
    /// All at once: only atomic reductions commute.
    None,
}

impl Use {
    fn of(a: &Assign) -> Use {
        match a.op {
            AssignOp::Store => Use::Write,
            AssignOp::Reduce(by) => Use::Reduce { by, atomic: a.atomic },
        }
    }

    /// Whether two uses of one element may not change places.
    fn conflicts(self, other: Use, order: Order) -> bool {
        match (self, other) {
            (Use::Read, Use::Read) => false,
            (Use::Reduce { by, atomic }, Use::Reduce { by: b, atomic: other }) => {
                by != b || (order == Order::None && !(atomic && other))
            }
            _ => true,
        }
    }
}

/// One place in the loop where the buffer is touched.
struct Place {
    facts: Facts,
    index: Vec<Index>,
    kind: Use,
}

/// Whether no two different iterations of `l` touch the same element of `buffer` in an order that matters: at least
/// one writes it, and not both reduce into it with one operation. `Some(true)`: never; `Some(false)`: each pair of
/// iterations does; `None`: cannot be told, so they may.
///
/// `facts` is what is known outside the loop, `buffers` those of the program.
pub fn independent(l: &For, buffer: &Sym, facts: &Facts, buffers: &HashMap<Sym, Buffer>) -> Option<bool> {
    answer(l, buffer, facts, buffers, Order::Another)
}

/// As [`independent`] for iterations that run at the same time, as blocks do: reductions commute only if atomic.
pub fn blocks_apart(l: &For, buffer: &Sym, facts: &Facts, buffers: &HashMap<Sym, Buffer>) -> Option<bool> {
    answer(l, buffer, facts, buffers, Order::None)
}

/// Whether every pair of accesses is kept apart by the stride of the loop, without asking for guards: `known` has the
/// ranges and definitions of all symbols in the loop.
pub(super) fn blocks_strided(l: &For, buffer: &Sym, known: &Facts) -> bool {
    let inside: HashSet<Sym> = walk::binders(&l.body).into_iter().chain(l.counting.clone()).collect();
    let mut elements: Vec<(Vec<Index>, Use)> = Vec::new();
    let mut windows = false;
    let add = |access: &Access, kind: Use, elements: &mut Vec<(Vec<Index>, Use)>| {
        if access.buffer == *buffer {
            let element = (access.index.iter().map(|i| known.expanded(i)).collect(), kind);
            if !elements.contains(&element) {
                elements.push(element);
            }
        }
    };
    walk::for_each(&l.body, &mut |stmt| match stmt {
        Stmt::Assign(a) => {
            add(&a.target, Use::of(a), &mut elements);
            a.value.for_each_access(&mut |load| add(load, Use::Read, &mut elements));
        }
        Stmt::Instruction(i) => {
            windows |= i.operands.iter().any(|o| matches!(o, Operand::Window(w) if w.buffer == *buffer));
        }
        _ => {}
    });
    let common = |s: &Sym| *s != l.var && !inside.contains(s);
    let apart = |a: &[Index], b: &[Index]| {
        a.iter().zip(b).any(|(x, y)| strides_apart(&l.var, &common, x, y, known.ranges()))
    };
    let pairs = elements.iter().enumerate().flat_map(|(at, a)| elements[at..].iter().map(move |b| (a, b)));
    let mut pairs = pairs.filter(|(a, b)| a.1.conflicts(b.1, Order::None));
    !windows && pairs.all(|(a, b)| apart(&a.0, &b.0))
}

fn answer(
    l: &For,
    buffer: &Sym,
    facts: &Facts,
    buffers: &HashMap<Sym, Buffer>,
    order: Order,
) -> Option<bool> {
    if let Range::List(values) = &l.range
        && (1..values.len()).any(|at| values[..at].contains(&values[at]))
    {
        // Two iterations with one value of the variable cannot be told apart by it.
        return None;
    }
    let mut inside: HashSet<Sym> = walk::binders(&l.body).into_iter().chain(l.counting.clone()).collect();
    if inside.contains(buffer) {
        return Some(true);
    }
    let mut places = Places { buffer, found: Vec::new(), lanes: Vec::new() };
    let mut facts = facts.clone();
    facts::enter_loop(&mut facts, l);
    facts::at_each_of(&l.body, &mut facts, buffers, &mut |stmt, facts| places.of(stmt, facts, buffers));
    inside.extend(places.lanes);
    let common = |s: &Sym| *s != l.var && !inside.contains(s);
    let mut verdict = Some(true);
    for (at, a) in places.found.iter().enumerate() {
        for b in places.found[at..].iter().filter(|b| a.kind.conflicts(b.kind, order)) {
            let (a, b) =
                (Touch { facts: &a.facts, index: &a.index }, Touch { facts: &b.facts, index: &b.index });
            match disjoint_iterations(&l.var, &common, a, b) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => verdict = None,
            }
        }
    }
    verdict
}

/// The places found so far.
struct Places<'a> {
    buffer: &'a Sym,
    found: Vec<Place>,
    /// Symbols made to stand for the elements of windows.
    lanes: Vec<Sym>,
}

impl Places<'_> {
    fn of(&mut self, stmt: &Stmt, facts: &Facts, buffers: &HashMap<Sym, Buffer>) {
        match stmt {
            Stmt::Assign(a) => {
                self.loads(&a.value, facts);
                if a.target.buffer == *self.buffer {
                    let kind = Use::of(a);
                    self.found.push(Place { facts: facts.clone(), index: a.target.index.clone(), kind });
                }
            }
            Stmt::Instruction(i) => {
                let record = instr::by_name(&i.name);
                for (at, operand) in i.operands.iter().enumerate() {
                    let Operand::Window(window) = operand else { continue };
                    if window.buffer != *self.buffer {
                        continue;
                    }
                    // An unknown instruction may write everything it is given.
                    let access = record.and_then(|r| r.operands.get(at)).map(|o| o.access);
                    match access {
                        Some(OperandAccess::Named) => {}
                        Some(OperandAccess::Read) => self.window(window, Use::Read, facts, buffers),
                        _ => self.window(window, Use::Write, facts, buffers),
                    }
                }
            }
            _ => {}
        }
    }

    /// The loads of a value, each under the conditions of the choices around it.
    fn loads(&mut self, value: &Value, facts: &Facts) {
        match value {
            Value::Const(_) | Value::Scalar(_) => {}
            Value::Load(a) if a.buffer == *self.buffer => {
                self.found.push(Place { facts: facts.clone(), index: a.index.clone(), kind: Use::Read });
            }
            Value::Load(_) => {}
            Value::Unary(_, a) | Value::Cast(_, a) => self.loads(a, facts),
            Value::Binary(_, a, b) => {
                self.loads(a, facts);
                self.loads(b, facts);
            }
            Value::Select(c, a, b) => {
                for (cond, arm) in [(c.clone(), a), (c.clone().negate(), b)] {
                    let mut facts = facts.clone();
                    facts.assume(&cond);
                    self.loads(arm, &facts);
                }
            }
        }
    }

    /// A window is all its elements: a new variable runs over each of its dimensions.
    fn window(&mut self, window: &Window, kind: Use, facts: &Facts, buffers: &HashMap<Sym, Buffer>) {
        let mut facts = facts.clone();
        let mut index = Vec::new();
        for (dim, span) in window.dims.iter().enumerate() {
            let (start, extent) = match span {
                Span::At(i) => {
                    index.push(i.clone());
                    continue;
                }
                Span::Slice(start, len) => (start.clone(), Index::constant(*len)),
                Span::All => (Index::default(), buffers[&window.buffer].dims[dim].extent.clone()),
            };
            let lane = Sym::new("lane");
            facts.runs_over(&lane, &0.into(), &extent, &1.into());
            index.push(&start + &Index::var(&lane));
            self.lanes.push(lane);
        }
        self.found.push(Place { facts, index, kind });
    }
}

#[cfg(test)]
mod tests {
    use super::independent;
    use crate::ir::{Program, Stmt, facts, parse};

    /// Asks about the buffer in every loop on the way down to the innermost first statement.
    fn verdicts(text: &str, buffer: &str) -> Vec<(String, Option<bool>)> {
        let program: Program = parse::program(text).expect("reads");
        let buffers = program.buffers();
        let sym = buffers.keys().find(|s| s.name() == buffer).expect("is there").clone();
        let mut out = Vec::new();
        facts::at_each(&program, &mut |stmt, known| {
            if let Stmt::For(l) = stmt {
                out.push((l.var.name().to_string(), independent(l, &sym, known, &buffers)));
            }
        });
        out
    }

    fn named(list: &[(&str, Option<bool>)]) -> Vec<(String, Option<bool>)> {
        list.iter().map(|(n, v)| ((*n).to_string(), *v)).collect()
    }

    #[test]
    fn the_loops_of_a_product_are_independent_but_for_the_summed_one() {
        let text =
            "program p(M: size, N: size, K: size, A: in f32[M, K], B: in f32[K, N], C: out f32[M, N]) {
            for i in 0..M { for j in 0..N { C[i, j] = 0 for k in 0..K { C[i, j] += A[i, k] * B[k, j] } } } }";
        let expected = named(&[("i", Some(true)), ("j", Some(true)), ("k", Some(true))]);
        assert_eq!(verdicts(text, "C"), expected);
        assert_eq!(verdicts(text, "A"), expected);
        let initial_store_inside = text.replace("C[i, j] = 0 for k in 0..K {", "for k in 0..K { C[i, j] = 0");
        let expected = named(&[("i", Some(true)), ("j", Some(true)), ("k", Some(false))]);
        assert_eq!(verdicts(&initial_store_inside, "C"), expected);
    }

    #[test]
    fn a_guarded_tile_is_independent_and_a_stencil_is_not() {
        let tile = "program p(n: size, y: out f32[n]) {
            for io in 0..ceil(n, 4) { for ii in 0..4 { let i = 4*io + ii if i < n { y[i] = 1 } } } }";
        assert_eq!(verdicts(tile, "y"), named(&[("io", Some(true)), ("ii", Some(true))]));
        let wide = tile.replace("0..4 {", "0..5 {");
        assert_eq!(verdicts(&wide, "y"), named(&[("io", None), ("ii", Some(true))]));
        let scan = "program p(n: size, y: inout f32[n]) { for i in 1..n { y[i] += y[i - 1] } }";
        assert_eq!(verdicts(scan, "y"), named(&[("i", None)]));
        let halves = "program p(n: size, y: inout f32[2*n]) { for i in 0..n { y[2*i] += y[2*i + 1] } }";
        assert_eq!(verdicts(halves, "y"), named(&[("i", Some(true))]));
        let list = "program p(y: out f32[9]) { for i in [1, 2, 4] { y[i] = 1 } }";
        assert_eq!(verdicts(list, "y"), named(&[("i", Some(true))]));
        assert_eq!(verdicts(&list.replace("2, 4", "2, 1"), "y"), named(&[("i", None)]));
        let far = "program p(n: size, y: inout f32[n]) { for i in 0..4 { y[i] = 4 <= i ? y[i - 4] : 0 } }";
        assert_eq!(verdicts(far, "y"), named(&[("i", Some(true))]));
    }

    #[test]
    fn windows_of_instructions_count_as_all_their_elements() {
        let text = "program p(K: size, A: in bf16[8, K; lda]) { for b in block.x(1) {
            alloc s: bf16[4, 8] shared
            for t in threads(4@1) { cp_async16(s[t, 0 +: 8], A[t, 0 +: 8], 8) } } }";
        let expected = named(&[("b", Some(true)), ("t", Some(true))]);
        assert_eq!(verdicts(text, "s"), expected);
        let shifted = text.replace("s: bf16[4, 8]", "s: bf16[40]").replace("s[t, 0 +: 8]", "s[7*t +: 8]");
        assert_eq!(verdicts(&shifted, "s"), named(&[("b", Some(true)), ("t", None)]));
    }

    #[test]
    fn parts_are_independent_by_construction() {
        let text = "program p(n: size, y: out f32[n]) { for s in block.x(4) {
            for k in part(s, 4) 0..n { for t in threads(1@1) { y[k] = 1 } } } }";
        assert_eq!(verdicts(text, "y"), named(&[("s", Some(true)), ("k", Some(true)), ("t", Some(true))]));
        let whole = text.replace("part(s, 4) ", "");
        assert_eq!(verdicts(&whole, "y")[0], ("s".to_string(), Some(false)));
    }
}
