//! Places in shared memory that no loop moves, computed once before the loop.
//!
//! ```text
//! for (int k = 0; k < n; ++k) { for u { use(s[s_at(k%3, 4*u + t/8, c)]); } }
//! =>
//! int s_place[4];
//! for u { s_place[u] = 4*(c/4 ^ (4*u + t/8)%8) + c%4; }
//! for (int k = 0; k < n; ++k) { for u { use(s[s_place[u] + 1024*(k%3) + 128*u]); } }
//! ```
//!
//! Where pieces of rows change places, an offset is no sum of what threads, unrolled loops and the loop around
//! contribute, and the compiler was seen to compute it anew in every iteration (NVRTC 13.0): of 570 instructions that a warp
//! issued for a tile of 256 terms of a layer with 16 rows, 170 did only that. What depends on the thread, and on constants of
//! unrolled loops, is therefore computed before the loop; the slot of the ring and what unrolled loops add remain.

use std::collections::HashSet;

use super::body::Body;
use super::element::added;
use super::text::Text;
use crate::diag::Diagnosis;
use crate::index::{Atom, Index, Interval};
use crate::ir::{For, walk};
use crate::layout::Layout;
use crate::sym::Sym;

/// The most places of an access: they are kept in registers.
const MOST_PLACES: i64 = 32;

/// Part of an offset in a shared buffer, or of several, one for each iteration of unrolled loops.
#[derive(Clone, Debug)]
pub(super) struct Place {
    buffer: Sym,
    name: String,
    offset: Index,
    /// The variables of unrolled loops that it depends on, and how often they run.
    over: Vec<(Sym, i64)>,
}

impl Body<'_> {
    /// The variables that have no value before a loop.
    pub(super) fn bound_within(l: &For) -> HashSet<Sym> {
        let mut bound: HashSet<Sym> = walk::binders(&l.body).into_iter().collect();
        bound.insert(l.var.clone());
        bound
    }

    /// An element whose place before the loop around is known up to what is added there.
    pub(super) fn element_by_place(
        &mut self,
        buffer: &Sym,
        name: &str,
        layout: &Layout,
        index: &[Index],
    ) -> Option<String> {
        let bound = self.bound_in_loop.as_ref()?;
        let offset = self.ranges.simplify(&layout.apply(&self.in_thread(index)));
        let counts = |s: &Sym| bound.contains(s) && self.unrolled_loops.contains(s);
        let mentioned = |atom: &Atom| {
            let mut vars = Vec::new();
            Index::atom(atom.clone()).for_each_var(&mut |s| vars.push(s.clone()));
            vars
        };
        // What is the same in every iteration but for what unrolled loops add as it is.
        let (place, rest) = offset.parted(|atom| {
            let vars = mentioned(atom);
            let plain = !vars.is_empty() && vars.iter().all(counts);
            !plain && vars.iter().all(|s| counts(s) || !bound.contains(s))
        });
        let changes = |atom: &Atom| matches!(atom, Atom::Xor(..));
        if !place.terms().iter().any(|(atom, _)| changes(atom))
            || rest.terms().iter().any(|(atom, _)| changes(atom))
        {
            return None;
        }
        // The rest of it has no constant: that is added to what loops add.
        let (counted, moved) = rest.parted(|atom| mentioned(atom).iter().all(counts));
        let counted = counted.offset(moved.constant_term());
        let moved = moved.offset(-moved.constant_term());
        let mut over = Vec::new();
        for var in self.unrolled_loops.iter().filter(|var| counts(var) && place.mentions(var)) {
            let Interval { lo: Some(0), hi: Some(last) } = self.ranges.get(var) else { return None };
            over.push((var.clone(), last + 1));
        }
        if over.iter().map(|(_, times)| times).product::<i64>() > MOST_PLACES {
            return None;
        }
        let place = self.place(buffer, place, over);
        let mut from = Text::primary(place);
        if !moved.terms().is_empty() {
            from = added(from.text, self.index(&moved));
        }
        let element = format!("{name}[{}]", from.text);
        if counted == Index::default() {
            return Some(element);
        }
        Some(format!("(&{element})[{}]", self.index(&counted).text))
    }

    /// The text of a place, which is declared with the loop around.
    fn place(&mut self, buffer: &Sym, offset: Index, over: Vec<(Sym, i64)>) -> String {
        let known = self.places.iter().find(|p| p.buffer == *buffer && p.offset == offset && p.over == over);
        let name = match known {
            Some(place) => place.name.clone(),
            None => {
                // Loops that stand side by side have names of their own.
                let of_buffer = self.places_of.entry(buffer.clone()).or_default();
                *of_buffer += 1;
                let number = if *of_buffer > 1 { of_buffer.to_string() } else { String::new() };
                let name = format!("{}_place{number}", self.names.of(buffer));
                self.places.push(Place {
                    buffer: buffer.clone(),
                    name: name.clone(),
                    offset,
                    over: over.clone(),
                });
                name
            }
        };
        let of_loops: String = over.iter().map(|(var, _)| format!("[{}]", self.variable(var).text)).collect();
        format!("{name}{of_loops}")
    }

    /// Writes the places that the loop used, before it.
    pub(super) fn declare_places(&mut self) -> Result<(), Diagnosis> {
        for Place { name, offset, over, .. } in std::mem::take(&mut self.places) {
            if over.is_empty() {
                let offset = self.index(&offset).text;
                self.line(format!("const int {name} = {offset};"));
                continue;
            }
            let extents: String = over.iter().map(|(_, times)| format!("[{times}]")).collect();
            self.line(format!("int {name}{extents};"));
            self.fill_places(name, &offset, &over)?;
        }
        Ok(())
    }

    fn fill_places(&mut self, element: String, offset: &Index, over: &[(Sym, i64)]) -> Result<(), Diagnosis> {
        let Some(((var, times), inner)) = over.split_first() else {
            let offset = self.index(offset).text;
            self.line(format!("{element} = {offset};"));
            return Ok(());
        };
        let mut head = String::new();
        let body = self.nested(|s| {
            let counter = s.names.declare(var);
            head = format!("for (int {counter} = 0; {counter} < {times}; ++{counter})");
            s.with_range(var, Interval::new(0, times - 1), |s| {
                s.fill_places(format!("{element}[{counter}]"), offset, inner)
            })
        })?;
        self.line("#pragma unroll");
        self.lines.block(&head, body);
        Ok(())
    }
}
