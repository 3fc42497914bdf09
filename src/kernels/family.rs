//! Families of kernels with parameters: what is tuned.
//!
//! A [`Family`] is an expression, a schedule written in the public language with holes in it, and what may fill the
//! holes: [`Parameter`]s, each with the values worth trying on a problem, and [`Constraint`]s between them. A
//! [`Choice`] fills every hole. The extents that a family calls short are constants of its kernels, the others are
//! arguments, as in every kernel.

use std::collections::BTreeSet;

use warpwright_core::diag::Diagnosis;
use warpwright_core::schedule::Schedule;
use warpwright_core::target::Target;

pub use super::choice::{Choice, Value, Word, parse_parameter};
use super::classes::Classes;
use super::gemm::{self, Fixed, Numbers, Strides};
use super::{Kernel, Variant, staging};
use crate::problem::{Multiplications, Precision, Problem};
use crate::reference::bound;

/// What a kernel may do only where somebody asks for it or permits it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Permissions {
    /// Add up the terms of a sum in any order, by atomic additions, so that its bits differ from run to run.
    pub any_order: bool,
    /// Make complex products of three real ones, whose error is bounded by more ([`crate::reference::bound`]).
    pub three_multiplications: bool,
    /// Make f32 products on matrix units of three products of tf32 parts where their error is bounded by more: in short sums.
    pub split: bool,
    /// Have the CUDA context set for them, which holds for whatever else runs in it. No result depends on it.
    pub context: bool,
}

impl Permissions {
    /// None of it: the bits are the same every time, and the bound is that of the definition of the product.
    pub const NONE: Permissions =
        Permissions { any_order: false, three_multiplications: false, split: false, context: false };
    /// What changes no number, where the CUDA context is one's own.
    pub const OWN_CONTEXT: Permissions = Permissions { context: true, ..Permissions::NONE };
    /// All of it.
    pub const ALL: Permissions =
        Permissions { any_order: true, three_multiplications: true, split: true, context: true };

    /// Whether everything that is needed is permitted.
    pub fn cover(self, needed: Permissions) -> bool {
        (self.any_order || !needed.any_order)
            && (self.three_multiplications || !needed.three_multiplications)
            && (self.split || !needed.split)
            && (self.context || !needed.context)
    }

    /// What either permits.
    #[must_use]
    pub fn or(self, other: Permissions) -> Permissions {
        Permissions {
            any_order: self.any_order || other.any_order,
            three_multiplications: self.three_multiplications || other.three_multiplications,
            split: self.split || other.split,
            context: self.context || other.context,
        }
    }
}

/// A hole in the schedule of a family.
#[derive(Debug)]
pub struct Parameter {
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// The values worth trying on a problem, the most usual first; none where the parameter has no meaning beside
    /// those that are chosen already.
    pub values: fn(&Choice, &Problem, &Target) -> Vec<Value>,
}

/// What has to hold between parameters.
#[derive(Debug)]
pub struct Constraint {
    /// What has to hold, as the end of a sentence that begins with "because".
    pub about: &'static str,
    /// The parameters it speaks of: it is tried as soon as these have values.
    pub on: &'static [&'static str],
    /// Whether it holds.
    pub holds: fn(&Choice, &Problem, &Target) -> bool,
}

/// What a choice asks of a GPU on a problem, counted over its main launch: what the model of `tune::rank` needs to know.
/// Counts are estimates that rank choices; nothing is compiled for them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Footprint {
    /// Blocks.
    pub blocks: f64,
    /// Threads of a block.
    pub threads: i64,
    /// 32-bit registers of a thread.
    pub registers: i64,
    /// Bytes of shared memory of a block.
    pub shared_bytes: i64,
    /// Real multiply-adds that are issued, with those of tiles that stand over the edge.
    pub multiply_adds: f64,
    /// Whether they run on the matrix units.
    pub matrix_units: bool,
    /// Bytes that device memory reads and writes.
    pub dram_bytes: f64,
    /// Passes of up to 128 bytes through the first-level cache or shared memory.
    pub wavefronts: f64,
    /// Instructions of warps besides the multiply-adds of threads.
    pub instructions: f64,
    /// How often a block waits for device memory, one wait after the other.
    pub steps: f64,
    /// Loads that each thread makes one after the other before the first step.
    pub start: f64,
    /// Whether a wait runs beside the arithmetic of the step before.
    pub overlaps: bool,
    /// Whether copies to shared memory are on their way several steps before they are waited for.
    pub ahead: bool,
    /// How often the threads that copy together wait for each other, one time after the other.
    pub meetings: f64,
    /// How many such teams a block has, if any.
    pub teams: i64,
    /// The part of what a block computes that adds to the time, where no other block of the multiprocessor reads and writes meanwhile: of blocks that
    /// have little on their way themselves.
    pub bare: f64,
    /// Launches, this one and those that finish its work.
    pub launches: i64,
    /// How many times the mean what the fullest of the schedulers multiplies is, where that does not follow from the number of warps.
    pub uneven: Option<f64>,
    /// What one warp of a scheduler lacks to keep the pipe of its multiply-adds busy, as a part of their time, where that does not follow from
    /// the number of resident warps alone.
    pub lonely: Option<f64>,
}

/// Kernels of one kind, told apart by parameters.
#[derive(Debug)]
pub struct Family {
    /// The name on the command line, a C identifier.
    pub name: &'static str,
    /// What it computes and how, in one sentence.
    pub about: &'static str,
    /// Which extents are constants of its kernels for a problem; or why the family has none for it.
    pub fixed: fn(&Problem) -> Result<Fixed, Diagnosis>,
    /// Which of A, B and C the kernels of a choice take as one row of elements; dense ones only.
    pub flat: fn(&Problem, &Choice) -> [bool; 3],
    /// What the kernels of a choice know of the row strides of A and B.
    pub strides: fn(&Problem, &Choice) -> Strides,
    /// How many elements the kernels of a choice know to lie between a multiple of 16 bytes and the first row of C.
    pub before_c: fn(&Problem, &Choice) -> i64,
    /// How the kernels of a choice make products of complex numbers.
    pub numbers: fn(&Problem, &Choice) -> Numbers,
    /// The classes by which the kernels of a choice add up rows, if they do.
    pub classes: fn(&Problem, &Choice) -> Option<Classes>,
    /// Whether the family should be taken where nobody asks for one.
    pub suits: fn(&Problem) -> bool,
    /// Its parameters, those that decide most first.
    pub parameters: &'static [Parameter],
    /// The last of them, of which the model says nothing: they are varied together where the others promise much.
    pub unmodelled: &'static [&'static str],
    /// What has to hold between them.
    pub constraints: &'static [Constraint],
    /// Whether the kernel of a choice adds up the terms of a sum in any order, by atomic additions.
    pub any_order: fn(&Choice) -> bool,
    /// Whether the kernel of a choice wants the CUDA context set for it.
    pub context: fn(&Choice) -> bool,
    /// What is chosen for a problem where the bits have to be the same on every GPU: all that decides in which order
    /// terms are added, from nothing but the problem, and forms that every GPU has.
    pub reproducible: fn(&Problem) -> Choice,
    /// The schedule of a choice.
    pub schedule: fn(&Problem, &Choice) -> String,
    /// What a choice asks of a GPU.
    pub footprint: fn(&Problem, &Choice, &Target) -> Footprint,
}

/// Puts the values of a parameter of this name in another order, beside what is chosen already.
pub type Order<'a> = &'a mut dyn FnMut(&Choice, &'static str, &mut Vec<Value>);

/// Calls back with every choice of a part of a family's space, as far as the model tells choices apart.
pub type PartOfChoices<'a> = Box<dyn Fn(&mut dyn FnMut(&Choice)) + Sync + 'a>;

impl Family {
    /// Every choice with these values in it that the constraints and the permissions allow, in order of the parameters;
    /// stops when `each` returns false.
    ///
    /// The constraints are tried as early as their parameters are known, so whole branches fall at once.
    pub fn choices(
        &self,
        problem: &Problem,
        target: &Target,
        permissions: Permissions,
        given: &Choice,
        each: &mut dyn FnMut(&Choice) -> bool,
    ) {
        let mut walk = Walk::new(self, given, problem, target, permissions);
        walk.extend(&Choice::default(), 0, each);
    }

    /// The same as far as the model tells choices apart, without the parameters it says nothing of, in parts, in the same order, each of
    /// which can be walked through by itself: the choices of every value of the first few parameters. [`Family::finished`] goes on from there.
    pub fn parts_of_choices<'a>(
        &'a self,
        problem: &'a Problem,
        target: &'a Target,
        permissions: Permissions,
        given: &'a Choice,
    ) -> Vec<PartOfChoices<'a>> {
        let known = self.parameters.len() / 2;
        let mut begun = Vec::new();
        let mut walk = Walk::new(self, given, problem, target, permissions);
        walk.until = known;
        walk.extend(&Choice::default(), 0, &mut |choice| {
            begun.push(choice.clone());
            true
        });
        let part = |begun: Choice| -> PartOfChoices<'a> {
            Box::new(move |each| {
                let mut walk = Walk::new(self, given, problem, target, permissions);
                walk.until = self.modelled();
                walk.extend(&begun, known, &mut |choice| {
                    each(choice);
                    true
                });
            })
        };
        begun.into_iter().map(part).collect()
    }

    /// Every whole choice that continues one that has all the parameters the model knows, the most usual first; stops when `each` returns
    /// false.
    pub fn finished(
        &self,
        problem: &Problem,
        target: &Target,
        permissions: Permissions,
        given: &Choice,
        begun: &Choice,
        each: &mut dyn FnMut(&Choice) -> bool,
    ) {
        Walk::new(self, given, problem, target, permissions).extend(begun, self.modelled(), each);
    }

    /// The first choice with these values in it, where the values of each parameter are tried in the order that `order` puts them in beside
    /// what is chosen already: one of a space that need not be walked through. None where constraints and permissions allow none.
    pub fn first_by(
        &self,
        problem: &Problem,
        target: &Target,
        permissions: Permissions,
        given: &Choice,
        order: Order<'_>,
    ) -> Option<Choice> {
        let mut walk = Walk::new(self, given, problem, target, permissions);
        walk.order = Some(order);
        let mut first = None;
        walk.extend(&Choice::default(), 0, &mut |choice| {
            first = Some(choice.clone());
            false
        });
        first
    }

    /// How many of the parameters the model knows: the first.
    fn modelled(&self) -> usize {
        self.parameters.len() - self.unmodelled.len()
    }

    /// Of what products the kernel of a choice makes those of a problem.
    pub fn multiplications(&self, choice: &Choice) -> Multiplications {
        match choice.word("numbers") {
            "three" => Multiplications::Three,
            _ if staging::splits(choice) => staging::chain(choice)
                .map_or(Multiplications::SPLIT, |chain| Multiplications::Split { chain }),
            _ => Multiplications::Four,
        }
    }

    /// What the kernel of a choice does, for sums of so many terms, that is chosen only where somebody asks for it or permits it:
    /// what has a larger bound of its error than the definition of the product, not the same bits every time, or a context that is set for it.
    pub fn needs(&self, precision: Precision, terms: i64, choice: &Choice) -> Permissions {
        self.needs_by(precision, terms, choice, self.multiplications(choice))
    }

    /// What every choice needs that continues this one.
    fn needs_at_least(&self, precision: Precision, terms: i64, choice: &Choice) -> Permissions {
        let may_have_chains = choice.word("numbers") == "split" && choice.get(staging::CHAIN).is_none();
        let by = if may_have_chains && self.parameters.iter().any(|p| p.name == staging::CHAIN) {
            Multiplications::Split { chain: 1 }
        } else {
            self.multiplications(choice)
        };
        self.needs_by(precision, terms, choice, by)
    }

    fn needs_by(
        &self,
        precision: Precision,
        terms: i64,
        choice: &Choice,
        by: Multiplications,
    ) -> Permissions {
        let has_larger_bound = by != Multiplications::Four && bound::is_larger(precision, terms, by);
        Permissions {
            any_order: (self.any_order)(choice),
            three_multiplications: has_larger_bound && by == Multiplications::Three,
            split: has_larger_bound && matches!(by, Multiplications::Split { .. }),
            context: (self.context)(choice),
        }
    }

    /// Whether permissions suffice for a choice.
    pub fn permits(&self, permissions: Permissions, problem: &Problem, choice: &Choice) -> bool {
        permissions.cover(self.needs(problem.precision, problem.shape.k, choice))
    }

    /// Whether every constraint holds of a choice that is complete.
    pub fn allows(&self, choice: &Choice, problem: &Problem, target: &Target) -> bool {
        let concerns = |c: &&Constraint| c.on.iter().all(|name| choice.get(name).is_some());
        self.constraints.iter().filter(concerns).all(|c| (c.holds)(choice, problem, target))
    }

    /// The first choice with these values in it: the most usual one. It does what needs a permission only where a value
    /// that is given says so.
    ///
    /// # Errors
    /// A parameter or a value that the family does not know, and constraints that no choice fulfils.
    pub fn complete(&self, given: &Choice, problem: &Problem, target: &Target) -> Result<Choice, Diagnosis> {
        self.complete_permitted(given, problem, target, Permissions::NONE)
    }

    /// The same where more is permitted.
    ///
    /// # Errors
    /// As [`complete`](Family::complete).
    pub fn complete_permitted(
        &self,
        given: &Choice,
        problem: &Problem,
        target: &Target,
        permissions: Permissions,
    ) -> Result<Choice, Diagnosis> {
        self.check_names(given)?;
        let mut walk = Walk::new(self, given, problem, target, permissions);
        let mut first = None;
        walk.extend(&Choice::default(), 0, &mut |choice| {
            first = Some(choice.clone());
            false
        });
        // What is no value beside some choices may be one beside others.
        let foreign = walk.foreign.filter(|(name, ..)| !walk.fitting.contains(name));
        if let (None, Some((name, value, values))) = (&first, foreign) {
            return Err(self.no_choice(name, value, &values, problem));
        }
        let Some(choice) = first else {
            let with = if given.is_empty() { String::new() } else { format!(" with {given}") };
            let refusal = Diagnosis::new(format!("{} cannot be made{with} for {}", self.name, problem.shape));
            // A constraint on nothing that is given would have been kept, had all that is given a meaning.
            let is_asked = |c: &Constraint| c.on.iter().any(|name| given.get(name).is_some());
            // Where one thing alone has no meaning, and what was broken is on others, it was broken on the way there.
            let alone = |(name, others): &(&str, Choice), broken: &Constraint| {
                given.iter().all(|(other, _)| other == *name || others.get(other).is_some())
                    && !broken.on.contains(name)
            };
            // The one way to go on would be one that nobody has permitted.
            if let (None, None, Some((name, value))) = (&walk.broken, &walk.idle, &walk.forbidden) {
                return Err(refusal
                    .because(format!("{name}={value} is chosen only where somebody asks for it"))
                    .instead(format!("add {name}={value}, or permit it")));
            }
            return Err(match (walk.broken, walk.idle) {
                (Some(broken), idle)
                    if idle.as_ref().is_none_or(|idle| is_asked(broken) && !alone(idle, broken)) =>
                {
                    refusal.because(broken.about).instead(format!("change {}", broken.on.join(", ")))
                }
                (_, Some((name, others))) => {
                    refusal.because(format!("{name} has no meaning with {others}")).instead("leave it out")
                }
                (_, None) => {
                    refusal.because("it has no kernel for this problem").instead("use another kernel")
                }
            });
        };
        Ok(choice)
    }

    /// Refuses names of no parameter.
    fn check_names(&self, given: &Choice) -> Result<(), Diagnosis> {
        let is_known = |name: &str| self.parameters.iter().any(|p| p.name == name);
        let Some((name, _)) = given.iter().find(|(name, _)| !is_known(name)) else { return Ok(()) };
        let known: Vec<_> = self.parameters.iter().map(|p| p.name).collect();
        Err(Diagnosis::new(format!("{} has no parameter `{name}`", self.name))
            .instead(format!("use one of {}", known.join(", "))))
    }

    /// The refusal of a value where these have a meaning.
    fn no_choice(&self, name: &str, value: &Value, values: &[Value], problem: &Problem) -> Diagnosis {
        let known: Vec<_> = values.iter().map(ToString::to_string).collect();
        let about = self.parameters.iter().find(|p| p.name == name).map_or("", |p| p.about);
        Diagnosis::new(format!("{name}={value} is no choice of {}", self.name))
            .because(format!(
                "it has no meaning for {} with these strides, factors and other parameters; `{name}` says {about}",
                problem.shape
            ))
            .instead(format!("try one of {}", known.join(", ")))
    }

    /// The kernel of a choice.
    ///
    /// # Errors
    /// Problems the family does not serve, and schedules that cannot be applied.
    pub fn build(&self, problem: &Problem, choice: &Choice) -> Result<Kernel, Diagnosis> {
        let variant = Variant::of(problem);
        let (flat, numbers) = ((self.flat)(problem, choice), (self.numbers)(problem, choice));
        let (classes, strides) = ((self.classes)(problem, choice), (self.strides)(problem, choice));
        let before_c = (self.before_c)(problem, choice);
        let fixed = Fixed { flat, strides, before_c, numbers, classes, ..(self.fixed)(problem)? };
        let precision = variant.precision.name().replace('-', "_");
        let name = format!("{}_{precision}_{}{fixed}{}", self.name, variant.layout, variant.align);
        let place = |d: Diagnosis| d.at(format!("kernel {name} with {choice}"));
        let mut specification = gemm::specification_at(variant, fixed);
        specification.name.clone_from(&name);
        let schedule = Schedule::run(specification, &(self.schedule)(problem, choice)).map_err(place)?;
        Ok(Kernel { name, family: self.name.to_string(), parameters: choice.clone(), schedule })
    }
}

/// A walk through the choices of a family.
struct Walk<'a> {
    family: &'a Family,
    /// Values that are fixed.
    given: &'a Choice,
    problem: &'a Problem,
    target: &'a Target,
    /// What may be chosen where nothing is given.
    permissions: Permissions,
    /// How many parameters it gives values to.
    until: usize,
    /// In which order values are tried, if not in that of the family.
    order: Option<Order<'a>>,
    /// The constraints of which each parameter is the last to get a value.
    due: Vec<Vec<&'static Constraint>>,
    /// The constraint that was broken last of those on nothing but what is fixed, or else on most of it.
    broken: Option<&'static Constraint>,
    /// The fixed parameter that had no meaning, beside what: where most of the others had one.
    idle: Option<(&'static str, Choice)>,
    /// The fixed parameter that had a value of another kind, and the values worth trying, in the first form that was
    /// looked at: the most usual one.
    foreign: Option<(&'static str, &'a Value, Vec<Value>)>,
    /// The parameters whose given value is one of those that the family has, beside one choice of the others at least.
    fitting: BTreeSet<&'static str>,
    /// The first value that was left out because nobody had permitted what it needs.
    forbidden: Option<(&'static str, Value)>,
}

impl<'a> Walk<'a> {
    fn new(
        family: &'a Family,
        given: &'a Choice,
        problem: &'a Problem,
        target: &'a Target,
        permissions: Permissions,
    ) -> Walk<'a> {
        let until = family.parameters.len();
        let fitting = BTreeSet::new();
        let place = |name: &&str| family.parameters.iter().position(|p| p.name == *name);
        let mut due = vec![Vec::new(); family.parameters.len()];
        for constraint in family.constraints {
            let places: Option<Vec<usize>> = constraint.on.iter().map(place).collect();
            if let Some(last) = places.and_then(|places| places.into_iter().max()) {
                due[last].push(constraint);
            }
        }
        Walk {
            family,
            given,
            problem,
            target,
            permissions,
            until,
            order: None,
            due,
            broken: None,
            idle: None,
            foreign: None,
            fitting,
            forbidden: None,
        }
    }

    /// Hands over every choice that continues this one, which has values for the first `known` parameters as far as
    /// they have a meaning. Returns whether to go on.
    fn extend(&mut self, choice: &Choice, known: usize, each: &mut dyn FnMut(&Choice) -> bool) -> bool {
        let (precision, terms) = (self.problem.precision, self.problem.shape.k);
        let Some(parameter) = self.family.parameters[..self.until].get(known) else {
            let all_known = self.until >= self.family.modelled();
            if all_known && !self.is_permitted(choice) {
                self.forbidden.get_or_insert(("numbers", "split".into()));
                return true;
            }
            return each(choice);
        };
        let mut values = (parameter.values)(choice, self.problem, self.target);
        match self.given.get(parameter.name) {
            Some(_) if values.is_empty() => {
                let meant = |c: &Choice| c.iter().filter(|(name, _)| self.given.get(name).is_some()).count();
                if self.idle.as_ref().is_none_or(|(_, known)| meant(choice) >= meant(known)) {
                    self.idle = Some((parameter.name, choice.clone()));
                }
                return true;
            }
            // Constraints take it for granted that numbers are numbers, and positive ones.
            Some(value) if !values.iter().any(|known| known.is_like(value, &values)) => {
                self.foreign.get_or_insert((parameter.name, value, values));
                return true;
            }
            Some(value) => {
                self.fitting.insert(parameter.name);
                values = vec![*value];
            }
            None if values.is_empty() => return self.extend(choice, known + 1, each),
            None => {
                if let Some(order) = &mut self.order {
                    order(choice, parameter.name, &mut values);
                }
            }
        }
        values.into_iter().all(|value| {
            let longer = choice.clone().with(parameter.name, value);
            // What is given permits what it needs itself, and no more.
            let permitted = self.permissions.or(self.family.needs_at_least(precision, terms, choice));
            let is_given = self.given.get(parameter.name).is_some();
            if !is_given && !permitted.cover(self.family.needs_at_least(precision, terms, &longer)) {
                self.forbidden.get_or_insert((parameter.name, value));
                return true;
            }
            match self.first_broken(&longer, known) {
                Some(broken) => {
                    // One on nothing but what is given is broken whatever else is chosen.
                    let asked = |c: &Constraint| {
                        let given = c.on.iter().filter(|name| self.given.get(name).is_some()).count();
                        (given == c.on.len(), given)
                    };
                    if self.broken.is_none_or(|known| asked(broken) >= asked(known)) {
                        self.broken = Some(broken);
                    }
                    true
                }
                None => self.extend(&longer, known + 1, each),
            }
        })
    }

    /// Whether what a whole choice needs is permitted, or needed by what is given of it: sums that could have been added up in pieces
    /// may not be.
    fn is_permitted(&self, choice: &Choice) -> bool {
        self.family.permits(self.permissions, self.problem, choice) || {
            let given = choice.iter().filter(|(name, _)| self.given.get(name).is_some());
            let given = given.fold(Choice::default(), |c, (name, value)| c.with(name, *value));
            let permitted =
                self.permissions.or(self.family.needs(self.problem.precision, self.problem.shape.k, &given));
            self.family.permits(permitted, self.problem, choice)
        }
    }

    /// The first constraint that does not hold among those of which the parameter at this place is the last to get a value, and of which all
    /// others have one.
    fn first_broken(&self, choice: &Choice, place: usize) -> Option<&'static Constraint> {
        self.due[place].iter().copied().find(|c| {
            c.on.iter().all(|name| choice.get(name).is_some())
                && !(c.holds)(choice, self.problem, self.target)
        })
    }
}
