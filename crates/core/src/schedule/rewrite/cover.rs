//! Whether statements certainly write every element of a buffer.

use std::collections::{HashMap, HashSet};

use crate::index::{Atom, Index, Interval, Ranges};
use crate::instr::{self, OperandAccess};
use crate::ir::{Assign, AssignOp, Buffer, For, If, Mode, Operand, Own, Range, Span, Stmt, Value, walk};
use crate::sym::Sym;

/// More points than this are not enumerated.
const MOST_POINTS: i64 = 1 << 16;

/// Whether every element of `buffer` is stored to, whatever the sizes are. `false` means that it could not be shown.
///
/// Where each dimension has its own loops, one dimension after the other is looked at; where the loops count all
/// elements one by one, as after `fuse`, that is seen from the number they count with; else all iterations are tried.
pub(in crate::schedule) fn covers(stmts: &[Stmt], buffer: &Buffer) -> bool {
    let Some(extents) = buffer.constant_extents() else { return false };
    let mut nest = Nest { buffer, extents: &extents, loops: Vec::new() };
    if nest.covers(stmts) {
        return true;
    }
    let elements = extents.iter().fold(1i64, |n, e| n.saturating_mul(*e));
    if elements > MOST_POINTS || points(stmts) > MOST_POINTS {
        return false;
    }
    let mut trial = Trial { buffer, extents: &extents, values: HashMap::new(), own: HashMap::new() };
    trial.written(stmts).len() as i64 == elements
}

/// How often leaves run, as far as loops tell.
fn points(stmts: &[Stmt]) -> i64 {
    stmts.iter().fold(0i64, |sum, stmt| {
        let inner = walk::bodies(stmt).fold(0i64, |s, b| s.saturating_add(points(b)));
        let times =
            if let Stmt::For(l) = stmt { l.range.constant_trip_count().unwrap_or(i64::MAX) } else { 1 };
        sum.saturating_add(inner.max(1).saturating_mul(times))
    })
}

/// The elements that a statement stores to, as one start and length for each dimension.
fn stored(stmt: &Stmt, buffer: &Buffer) -> Option<Vec<(Index, i64)>> {
    match stmt {
        Stmt::Assign(Assign { target, op: AssignOp::Store, .. }) if target.buffer == buffer.sym => {
            Some(target.index.iter().map(|i| (i.clone(), 1)).collect())
        }
        Stmt::Instruction(i) => {
            let record = instr::by_name(&i.name)?;
            let written =
                i.operands.iter().zip(record.operands).find_map(|(operand, spec)| match operand {
                    Operand::Window(w) if w.buffer == buffer.sym && spec.access == OperandAccess::Write => {
                        Some(w)
                    }
                    _ => None,
                })?;
            let spans = written.dims.iter().zip(&buffer.dims).map(|(span, dim)| match span {
                Span::At(i) => Some((i.clone(), 1)),
                Span::Slice(start, len) => Some((start.clone(), *len)),
                Span::All => Some((Index::default(), dim.extent.as_constant()?)),
            });
            spans.collect()
        }
        _ => None,
    }
}

/// The values that a loop over a range goes through, if they are known.
pub(in crate::schedule) fn values_of(range: &Range) -> Option<Vec<i64>> {
    match range {
        Range::Span { lo, hi, step } => {
            let (lo, hi, step) = (lo.as_constant()?, hi.as_constant()?, step.as_constant()?);
            (hi - lo <= MOST_POINTS).then(|| (lo..hi).step_by(step.max(1) as usize).collect())
        }
        Range::List(values) => Some(values.clone()),
        Range::Part { .. } => None,
    }
}

/// The question answered from the loops around one statement.
struct Nest<'a> {
    buffer: &'a Buffer,
    extents: &'a [i64],
    loops: Vec<(Sym, Vec<i64>)>,
}

impl Nest<'_> {
    fn covers(&mut self, stmts: &[Stmt]) -> bool {
        stmts.iter().any(|stmt| match stmt {
            Stmt::For(l) => {
                let Some(values) = values_of(&l.range).filter(|v| !v.is_empty()) else { return false };
                self.loops.push((l.var.clone(), values));
                let covers = self.covers(&l.body);
                self.loops.pop();
                covers
            }
            // Whichever arm runs, the same elements are written.
            Stmt::If(i) => alike(&outline(&i.then), &outline(&i.otherwise)) && self.covers(&i.then),
            Stmt::Own(o) if o.window.buffer == self.buffer.sym => {
                let at = self.loops.len();
                let values = o.steps(self.buffer).into_iter().map(|(var, extent, step)| {
                    let values = (0..extent.as_constant()?).step_by(step as usize).collect();
                    Some((var.clone(), values))
                });
                let Some(values) = values.collect::<Option<Vec<_>>>() else { return false };
                self.loops.extend(values);
                let covers = self.covers(&o.body);
                self.loops.truncate(at);
                covers
            }
            leaf => stored(leaf, self.buffer).is_some_and(|spans| self.count(&spans) || self.product(&spans)),
        })
    }

    /// Whether the elements, numbered in some order of the dimensions, are counted by the loops as by the digits of a
    /// number: with `x` in `0..m*n`, that is so of `s[x/n, x%n]`.
    fn count(&self, spans: &[(Index, i64)]) -> bool {
        let mut digits: Vec<(Sym, i64)> = Vec::new();
        for (var, values) in &self.loops {
            if values.iter().zip(0..).any(|(value, at)| *value != at) {
                return false;
            }
            digits.push((var.clone(), values.len() as i64));
        }
        // The elements of a span are one more digit.
        let element = spans.iter().map(|(start, len)| {
            if *len == 1 {
                return start.clone();
            }
            let within = Sym::new("within");
            digits.push((within.clone(), *len));
            start + &Index::var(&within)
        });
        let element: Vec<Index> = element.collect();
        let mut ranges = Ranges::new();
        digits.iter().for_each(|(var, n)| ranges.set(var, Interval::new(0, n - 1)));
        let inside = element.iter().zip(self.extents).all(|(i, n)| ranges.of(i).within(0, n - 1));
        inside && orders(spans.len()).iter().any(|order| self.is_number(&element, order, &digits))
    }

    /// Whether the number of the element, by dimensions from the slowest to the fastest, runs over all of them.
    fn is_number(&self, element: &[Index], order: &[usize], digits: &[(Sym, i64)]) -> bool {
        let number = order
            .iter()
            .fold(Index::default(), |number, dim| &number.scaled(self.extents[*dim]) + &element[*dim]);
        let digit = |atom: &Atom| match atom {
            Atom::Var(sym) => digits.iter().find(|(var, _)| var == sym).map(|(_, n)| *n),
            _ => None,
        };
        let weights: Option<Vec<(i64, i64)>> =
            number.terms().iter().map(|(atom, weight)| Some((*weight, digit(atom)?))).collect();
        let Some(mut weights) = weights else { return false };
        weights.sort_unstable();
        let mut counted = 1;
        for (weight, n) in weights {
            if weight != counted {
                return false;
            }
            counted *= n;
        }
        number.constant_term() == 0 && counted == self.extents.iter().product::<i64>()
    }

    fn product(&self, spans: &[(Index, i64)]) -> bool {
        let mut taken: HashSet<Sym> = HashSet::new();
        spans.iter().zip(self.extents).all(|((start, len), extent)| {
            let mut vars: Vec<&(Sym, Vec<i64>)> = Vec::new();
            let mut free = true;
            start.for_each_var(&mut |s| match self.loops.iter().find(|(v, _)| v == s) {
                Some(l) if vars.iter().any(|(v, _)| *v == l.0) => {}
                Some(l) if !taken.contains(s) => vars.push(l),
                _ => free = false,
            });
            taken.extend(vars.iter().map(|(v, _)| v.clone()));
            free && self.fills(start, *len, *extent, &vars)
        })
    }

    fn fills(&self, start: &Index, len: i64, extent: i64, vars: &[&(Sym, Vec<i64>)]) -> bool {
        let counts: Vec<i64> = vars.iter().map(|(_, values)| values.len() as i64).collect();
        if counts.iter().fold(1i64, |n, c| n.saturating_mul(*c)) > MOST_POINTS {
            return false;
        }
        let mut hit = vec![false; extent.max(0) as usize];
        for point in crate::layout::indices(&counts) {
            let value = |s: &Sym| {
                let at = vars.iter().position(|(v, _)| v == s)?;
                vars[at].1.get(point[at] as usize).copied()
            };
            let Ok(first) = start.eval(&value) else { return false };
            for at in first.max(0)..(first + len).min(extent) {
                hit[at as usize] = true;
            }
        }
        hit.into_iter().all(|h| h)
    }
}

/// The question answered by running every loop.
struct Trial<'a> {
    buffer: &'a Buffer,
    extents: &'a [i64],
    values: HashMap<Sym, i64>,
    /// The buffers that the statements allocate themselves: whose elements `own` loops go over is known of these.
    own: HashMap<Sym, Buffer>,
}

impl Trial<'_> {
    /// The numbers of the elements that statements store to.
    fn written(&mut self, stmts: &[Stmt]) -> HashSet<i64> {
        let mut all = HashSet::new();
        for stmt in stmts {
            match stmt {
                Stmt::For(l) => {
                    for value in values_of(&l.range).unwrap_or_default() {
                        self.values.insert(l.var.clone(), value);
                        all.extend(self.written(&l.body));
                    }
                }
                Stmt::If(If { cond, then, otherwise }) => match cond.eval(&|s| self.values.get(s).copied()) {
                    Ok(true) => all.extend(self.written(then)),
                    Ok(false) => all.extend(self.written(otherwise)),
                    Err(_) => {
                        let other = self.written(otherwise);
                        all.extend(self.written(then).intersection(&other));
                    }
                },
                Stmt::Let(sym, value) => {
                    if let Ok(value) = value.eval(&|s| self.values.get(s).copied()) {
                        self.values.insert(sym.clone(), value);
                    } else {
                        self.values.remove(sym);
                    }
                }
                Stmt::Alloc(buffer) => {
                    self.own.insert(buffer.sym.clone(), buffer.clone());
                }
                Stmt::Own(own) => all.extend(self.written_of_own(own).unwrap_or_default()),
                leaf => self.elements(leaf, &mut all).unwrap_or_default(),
            }
        }
        all
    }

    /// The same for a loop over the elements of a window without a slice.
    fn written_of_own(&mut self, own: &Own) -> Option<HashSet<i64>> {
        let buffer = self.own.get(&own.window.buffer)?;
        if own.window.dims.iter().any(|span| matches!(span, Span::Slice(..))) {
            return None;
        }
        let steps: Vec<(Sym, i64, i64)> = own
            .steps(buffer)
            .into_iter()
            .map(|(var, extent, step)| Some((var.clone(), extent.as_constant()?, step)))
            .collect::<Option<_>>()?;
        let times: Vec<i64> = steps.iter().map(|(_, extent, step)| (extent + step - 1) / step).collect();
        let mut all = HashSet::new();
        for point in crate::layout::indices(&times) {
            for ((var, _, step), at) in steps.iter().zip(point) {
                self.values.insert(var.clone(), at * step);
            }
            all.extend(self.written(&own.body));
        }
        Some(all)
    }

    fn elements(&self, leaf: &Stmt, out: &mut HashSet<i64>) -> Option<()> {
        let spans = stored(leaf, self.buffer)?;
        let start = |(start, _): &(Index, i64)| start.eval(&|s| self.values.get(s).copied()).ok();
        let starts: Vec<i64> = spans.iter().map(start).collect::<Option<_>>()?;
        let lens: Vec<i64> = spans.iter().map(|(_, len)| *len).collect();
        for point in crate::layout::indices(&lens) {
            let mut element = starts.iter().zip(point).map(|(s, p)| s + p).zip(self.extents);
            let number = element.try_fold(0, |n, (i, e)| (0..*e).contains(&i).then_some(n * e + i));
            out.extend(number);
        }
        Some(())
    }
}

/// All orders of so many things.
fn orders(of: usize) -> Vec<Vec<usize>> {
    (0..of).fold(vec![Vec::new()], |shorter, item| {
        let longer = |order: &Vec<usize>| {
            let order = order.clone();
            (0..=item).map(move |at| [&order[..at], &[item], &order[at..]].concat())
        };
        shorter.iter().flat_map(longer).collect()
    })
}

/// The statements with all values forgotten: where they write, not what.
fn outline(stmts: &[Stmt]) -> Vec<Stmt> {
    walk::rewrite(stmts.to_vec(), &mut |mut stmt| {
        if let Stmt::Assign(a) = &mut stmt {
            a.value = Value::Const(0.0);
        }
        vec![stmt]
    })
}

/// Whether two lists of statements are the same but for the names of what they bind and the modes of their loops.
pub(in crate::schedule) fn alike(a: &[Stmt], b: &[Stmt]) -> bool {
    let (names, others) = (walk::binders(a), walk::binders(b));
    if names.len() != others.len() {
        return false;
    }
    let renamed =
        walk::substitute(b, &|s| others.iter().position(|o| o == s).map(|at| Index::var(&names[at])));
    plain(a.to_vec()) == plain(renamed)
}

fn plain(stmts: Vec<Stmt>) -> Vec<Stmt> {
    walk::rewrite(stmts, &mut |mut stmt| {
        if let Stmt::For(For { mode, .. }) = &mut stmt
            && matches!(mode, Mode::Vector | Mode::Unroll)
        {
            *mode = Mode::Serial;
        }
        vec![stmt]
    })
}

#[cfg(test)]
mod tests {
    use super::{Nest, covers};
    use crate::ir::{Buffer, Stmt, parse};

    fn whole(fill: &str) -> bool {
        asked(fill, covers)
    }

    /// Whether the loops around one statement tell, without running them.
    fn seen(fill: &str) -> bool {
        asked(fill, |stmts, buffer| {
            Nest { buffer, extents: &buffer.constant_extents().expect("constants"), loops: Vec::new() }
                .covers(stmts)
        })
    }

    fn asked(fill: &str, question: impl Fn(&[Stmt], &Buffer) -> bool) -> bool {
        asked_of("f32[8, 6] shared", fill, question)
    }

    fn asked_of(buffer: &str, fill: &str, question: impl Fn(&[Stmt], &Buffer) -> bool) -> bool {
        let text = format!(
            "program p(n: size, x: in f32[n, n]) {{ for b in block.x(1) {{ alloc s: {buffer} {fill} }} }}"
        );
        let program = parse::program(&text).expect("reads");
        let [Stmt::For(block)] = &program.body[..] else { panic!("one launch") };
        let Stmt::Alloc(buffer) = &block.body[0] else { panic!("an allocation") };
        question(&block.body[1..], buffer)
    }

    #[test]
    fn products_of_loops_cover_a_box() {
        assert!(whole("for r in threads(4@6), c in threads(6@1) { for u in 0..2 { s[4*u + r, c] = 0 } }"));
        assert!(!whole("for r in threads(4@6), c in threads(6@1) { for u in 0..2 { s[3*u + r, c] = 0 } }"));
        assert!(!whole("for r in 0..8, c in 0..5 { s[r, c] = 0 }"));
        assert!(!whole("for r in 0..n, c in 0..6 { s[r, c] = 0 }"));
        assert!(!whole("for r in 0..6 { s[r, r] = 0 }"));
    }

    #[test]
    fn loops_that_count_elements_one_by_one_cover_a_box() {
        let counted = |x: &str, row: &str, column: &str| {
            let element = format!("s[({x}){row}, ({x}){column}]");
            let fill = format!("for u in 0..2, t in threads(8@1), v in vector 0..3 {{ {element} = 0 }}");
            let told = seen(&fill);
            assert_eq!(told, whole(&fill), "{fill}");
            told
        };
        assert!(counted("24*u + 3*t + v", "/6", "%6"));
        assert!(counted("24*u + 3*t + v", "%8", "/8"));
        assert!(counted("6*t + 2*v + u", "/6", "%6"));
        assert!(!counted("24*u + 3*t + v + 1", "/6", "%6"));
        assert!(!counted("24*u + 3*t + 2*v", "/6", "%6"));
        assert!(!counted("24*u + 3*t + v", "/6", "%5"));
        assert!(!counted("16*u + 2*t + v", "/6", "%6"));
        // An instruction writes several elements at once.
        let copied = |column: &str| {
            seen(&format!(
                "for t in threads(24@1) {{ cp_async16_f64(s[t/3, {column} +: 2], x[t/3, {column} +: 2]) }}"
            ))
        };
        assert!(copied("2*(t%3)"));
        assert!(!copied("t%3"));
    }

    #[test]
    fn owned_elements_are_covered_run_by_run() {
        let owned = |by: &str, body: &str| {
            let fill = format!("for (i, j{by}) in own s[:, :] {{ {body} }}");
            asked_of("f64[8, 8] reg frag D8x8", &fill, covers)
        };
        assert!(owned("", "s[i, j] = 0"));
        assert!(owned(" by 2", "for v in vector 0..2 { s[i, j + v] = 0 }"));
        assert!(!owned(" by 2", "s[i, j] = 0"));
    }

    #[test]
    fn guards_are_tried_out_and_arms_must_agree() {
        assert!(whole("for t in threads(50@1) { if t < 48 { s[t/6, t%6] = 0 } }"));
        assert!(!whole("for t in threads(50@1) { if t < 47 { s[t/6, t%6] = 0 } }"));
        assert!(!whole("for r in 0..8, c in 0..6 { if r < n { s[r, c] = 0 } }"));
        let arms = |other: &str| {
            whole(&format!(
                "for r in 0..8, c in 0..3 {{ if r < n {{ for v in vector 0..2 {{ s[r, 2*c + v] = 1 }} }}
                             else {{ for v in unroll 0..2 {{ {other} = r < n ? x[r, 0] : 0 }} }} }}"
            ))
        };
        assert!(arms("s[r, 2*c + v]"));
        assert!(!arms("s[7 - r, 2*c + v]"));
    }
}
