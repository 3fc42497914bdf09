//! Specifications, run point by point.
//!
//! A specification is a few nests of loops, one after another. The *points* of a nest are the values that its loop
//! variables take together. What different points write are different elements, and of the buffers that a nest writes a
//! point reads only its own elements; so the points of one nest can be computed in any order, on all cores, 32 at a
//! time in the lanes of a warp. Whatever a nest reads besides is complete before it begins.
//!
//! Nests have extents of their own. A complex product from real ones, for instance, adds up the products of real and
//! imaginary parts in a nest over twice the rows and columns, and a second nest reads four of these sums for each
//! element of the result. Where only some elements of the outputs are wanted, [`needed`] goes through the nests from the
//! last to the first, and finds the points on which these elements depend.

use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::arithmetic::Arithmetic;
use crate::code::{Code, Form, GlobalInfo, LaunchCode, Step, WARP};
use crate::hazard::Hazards;
use crate::machine::{Machine, Watch};
use crate::memory::{Global, place};
use crate::run::coordinates;

/// A nest of loops whose points can be computed in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nest {
    /// The lane variables of the loops, outermost first.
    pub variables: Vec<u32>,
    /// How many values each of them takes, from 0 on.
    pub extents: Vec<i64>,
    /// The element that a point writes of each buffer that the nest writes.
    pub writes: Vec<(u32, Position)>,
    /// The elements that a point reads of other buffers; `None` where they do not follow from the point alone, as in a
    /// sum.
    pub reads: Vec<(u32, Option<Position>)>,
}

/// Where an element stands in its buffer: a constant, and a multiple of each coordinate of the point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    constant: i64,
    strides: Vec<i64>,
}

impl Position {
    /// The position that a form gives, if it depends on nothing but the point.
    pub fn of(form: &Form, variables: &[u32]) -> Option<Position> {
        let depends_on_more = !form.uniform.is_empty() || form.lanes.is_some();
        if depends_on_more || form.dynamic.iter().any(|(v, _)| !variables.contains(v)) {
            return None;
        }
        let stride =
            |variable: &u32| form.dynamic.iter().filter(|(v, _)| v == variable).map(|(_, s)| *s).sum();
        Some(Position { constant: form.constant, strides: variables.iter().map(stride).collect() })
    }

    /// The position for a point.
    fn at(&self, point: &[i64]) -> i64 {
        point.iter().zip(&self.strides).fold(self.constant, |at, (i, stride)| at + i * stride)
    }

    /// The dimensions of a box along which there is more than one point, largest stride first.
    fn dimensions(&self, extents: &[i64]) -> Vec<usize> {
        let mut dims: Vec<usize> = (0..extents.len()).filter(|dim| extents[*dim] > 1).collect();
        dims.sort_by_key(|dim| std::cmp::Reverse(self.strides[*dim]));
        dims
    }

    /// Whether different points of a box are known to have different elements: where the coordinates are like the digits
    /// of a number, each stride being larger than all smaller ones can add up to.
    pub fn tells_apart(&self, extents: &[i64]) -> bool {
        let mut reach = 0i64;
        self.dimensions(extents).into_iter().rev().all(|dim| {
            let stride = self.strides[dim];
            let larger = stride > reach;
            reach = reach.saturating_add(stride.saturating_mul(extents[dim] - 1));
            larger
        })
    }

    /// The number, in C order, of the point of a box whose element this is, if there is one. The position has to tell
    /// the points of the box apart.
    fn point(&self, extents: &[i64], element: i64) -> Option<i64> {
        let mut point = vec![0; extents.len()];
        let mut rest = element - self.constant;
        for dim in self.dimensions(extents) {
            point[dim] = rest.div_euclid(self.strides[dim]);
            rest = rest.rem_euclid(self.strides[dim]);
        }
        let inside = rest == 0 && point.iter().zip(extents).all(|(i, extent)| (0..*extent).contains(i));
        inside.then(|| point.iter().zip(extents).fold(0, |number, (i, extent)| number * extent + i))
    }
}

/// Some of the numbers from 0 on: of the points of a nest, or of the elements of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Numbers {
    All,
    /// In ascending order.
    These(Vec<i64>),
}

impl Numbers {
    fn add(&mut self, more: Numbers) {
        match (&mut *self, more) {
            (Numbers::All, _) => {}
            (_, Numbers::All) => *self = Numbers::All,
            (Numbers::These(these), Numbers::These(more)) => {
                these.extend(more);
                these.sort_unstable();
                these.dedup();
            }
        }
    }
}

/// Runs a specification nest by nest: all points, or those on which the wanted elements of the outputs depend, whose
/// indices follow one another in `wanted`.
pub(crate) fn run_points<A: Arithmetic>(
    code: &Code<'_>,
    globals: &[Global<A>],
    scalars: &[A],
    wanted: Option<&[i64]>,
) -> Hazards {
    let nests: Vec<(&LaunchCode, &Nest)> = code
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Launch(launch) => Some((launch, launch.nest.as_deref()?)),
            Step::Scratch(_) => None,
        })
        .collect();
    let points = match wanted {
        Some(wanted) => needed(&code.globals, &nests, wanted),
        None => vec![Numbers::All; nests.len()],
    };
    let mut hazards = Hazards::default();
    for ((launch, nest), points) in nests.into_iter().zip(&points) {
        run_nest(code, launch, nest, globals, scalars, points, &mut hazards);
    }
    hazards
}

/// The points of each nest on which the wanted elements of the outputs depend.
fn needed(globals: &[GlobalInfo], nests: &[(&LaunchCode, &Nest)], wanted: &[i64]) -> Vec<Numbers> {
    let mut elements: Vec<Numbers> = globals
        .iter()
        .map(|info| {
            let indices = wanted.chunks_exact(info.extents.len().max(1)).filter(|_| info.output);
            let mut these = Numbers::These(Vec::new());
            these.add(Numbers::These(indices.filter_map(|i| Some(place(info, i)? as i64)).collect()));
            these
        })
        .collect();
    let mut needed = vec![Numbers::All; nests.len()];
    for (number, (_, nest)) in nests.iter().enumerate().rev() {
        let mut points = Numbers::These(Vec::new());
        for (buffer, position) in &nest.writes {
            points.add(match &elements[*buffer as usize] {
                Numbers::All => Numbers::All,
                Numbers::These(these) => {
                    let points = these.iter().filter_map(|e| position.point(&nest.extents, *e));
                    Numbers::These(points.collect())
                }
            });
        }
        let written_before = |buffer: u32| {
            nests[..number].iter().any(|(_, nest)| nest.writes.iter().any(|(written, _)| *written == buffer))
        };
        for (buffer, position) in nest.reads.iter().filter(|(buffer, _)| written_before(*buffer)) {
            let read = match (&points, position) {
                (Numbers::These(points), _) if points.is_empty() => Numbers::These(Vec::new()),
                (Numbers::These(points), Some(position)) => {
                    let read = points.iter().map(|p| position.at(&coordinates(&nest.extents, *p)));
                    Numbers::These(read.collect())
                }
                _ => Numbers::All,
            };
            elements[*buffer as usize].add(read);
        }
        needed[number] = points;
    }
    needed
}

/// The most machines that take turns on a core, so that they share what they read.
const TOGETHER: i64 = 16;

/// Runs some points of a nest on all cores.
fn run_nest<A: Arithmetic>(
    code: &Code<'_>,
    launch: &LaunchCode,
    nest: &Nest,
    globals: &[Global<A>],
    scalars: &[A],
    points: &Numbers,
    hazards: &mut Hazards,
) {
    let total = match points {
        Numbers::All => nest.extents.iter().product(),
        Numbers::These(these) => these.len() as i64,
    };
    let pieces = (8 * rayon::current_num_threads() as i64).min(total.div_euclid(32) + 1);
    let found: Vec<Hazards> = (0..pieces)
        .into_par_iter()
        .map(|piece| {
            let (start, end) = (total * piece / pieces, total * (piece + 1) / pieces);
            let warps = (end - start).div_euclid(WARP as i64) + 1;
            let new = |_| Machine::<A, WARP>::new(code, launch, globals, scalars, Watch { checks: false });
            let mut machines: Vec<_> = (0..warps.min(TOGETHER)).map(new).collect();
            let mut numbers = (start..end).map(|n| match points {
                Numbers::All => n,
                Numbers::These(these) => these[n as usize],
            });
            loop {
                let mut busy = 0;
                for machine in &mut machines {
                    let chunk = numbers.by_ref().take(WARP);
                    let chunk: Vec<i64> = chunk.flat_map(|n| coordinates(&nest.extents, n)).collect();
                    if chunk.is_empty() {
                        break;
                    }
                    machine.take_points(nest, &chunk);
                    busy += 1;
                }
                if busy == 0 {
                    break;
                }
                Machine::run_points(&mut machines[..busy]);
            }
            let mut hazards = Hazards::default();
            machines.into_iter().for_each(|machine| hazards.merge(machine.hazards));
            hazards
        })
        .collect();
    found.into_iter().for_each(|h| hazards.merge(h));
}
