//! What there is in a program for a step to name: loops, by what can be done with them, and buffers.

use std::fmt;

use warpwright_core::ir::{AssignOp, For, Mode, Program, Stmt, walk};
use warpwright_sim::coroutine::Random;

/// A loop by the names of what is computed in it and of its variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub label: String,
    pub name: String,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.label, self.name)
    }
}

/// The loops and buffers of a program by name.
#[derive(Default)]
pub struct Names {
    pub loops: Vec<Named>,
    /// Loops of a constant number of iterations that hold one assignment.
    pub innermost: Vec<Named>,
    /// Serial loops in which something is allocated.
    pub staging: Vec<Named>,
    /// Loops in which a reduction goes on, but not its initial store.
    pub reductions: Vec<Named>,
    /// Loops in which both are.
    pub initialised: Vec<Named>,
    /// Loops of one thing, one directly inside the other, the inner one of a constant number of iterations.
    pairs: Vec<[Named; 2]>,
    buffers: Vec<String>,
    /// What is read, and what is computed from it.
    reads: Vec<(String, String)>,
    /// Of these, those whose first is computed, too.
    uses: Vec<(String, String)>,
}

impl Names {
    pub fn of(program: &Program) -> Names {
        let buffers = program.tensors().map(|b| b.sym.name().to_string()).collect();
        let mut names = Names { buffers, ..Names::default() };
        walk::for_each(&program.body, &mut |stmt| match stmt {
            Stmt::For(l) => names.add_loop(l),
            Stmt::Alloc(b) if !names.buffers.iter().any(|n| n == b.sym.name()) => {
                names.buffers.push(b.sym.name().to_string());
            }
            Stmt::Assign(a) => a.value.for_each_access(&mut |access| {
                let (stage, next) = (access.buffer.name(), a.target.buffer.name());
                let pair = (stage.to_string(), next.to_string());
                if stage != next && !names.reads.contains(&pair) {
                    names.reads.push(pair);
                }
            }),
            _ => {}
        });
        let computed = |stage: &str| names.loops.iter().any(|l| l.label == stage);
        names.uses = names.reads.iter().filter(|(stage, _)| computed(stage)).cloned().collect();
        names
    }

    fn add_loop(&mut self, l: &For) {
        let add = |list: &mut Vec<Named>, named: &Named| {
            if !list.contains(named) {
                list.push(named.clone());
            }
        };
        let (mut stored, mut reduced) = (Vec::new(), Vec::new());
        walk::for_each(&l.body, &mut |inner| {
            if let Stmt::Assign(a) = inner {
                let list = if a.op == AssignOp::Store { &mut stored } else { &mut reduced };
                list.push(a.target.buffer.name().to_string());
            }
        });
        let constant = |l: &For| l.range.constant_trip_count().is_some();
        let allocates = l.body.iter().any(|s| matches!(s, Stmt::Alloc(_)));
        for label in stored.iter().chain(&reduced) {
            let named = Named { label: label.clone(), name: l.var.name().to_string() };
            add(&mut self.loops, &named);
            match &l.body[..] {
                [Stmt::For(inner)] if constant(inner) => {
                    let inner = Named { label: label.clone(), name: inner.var.name().to_string() };
                    self.pairs.push([named.clone(), inner]);
                }
                [Stmt::Assign(_) | Stmt::If(_)] if constant(l) => add(&mut self.innermost, &named),
                _ => {}
            }
            if l.mode == Mode::Serial && allocates {
                add(&mut self.staging, &named);
            }
            if reduced.contains(label) {
                let list = if stored.contains(label) { &mut self.initialised } else { &mut self.reductions };
                add(list, &named);
            }
        }
    }

    pub fn any_loop(&self, random: &mut Random) -> String {
        self.one_of(&self.loops, random)
    }

    /// Mostly one of these; sometimes, or if there are none, any loop.
    pub fn one_of(&self, list: &[Named], random: &mut Random) -> String {
        let list = if list.is_empty() || random.once_in(8) { &self.loops[..] } else { list };
        list[random.below(list.len())].to_string()
    }

    /// Mostly a loop in which this is computed.
    pub fn loop_of(&self, label: &str, random: &mut Random) -> String {
        let list: Vec<Named> = self.loops.iter().filter(|l| l.label == label).cloned().collect();
        self.one_of(&list, random)
    }

    /// What is computed, and what is computed from it.
    pub fn any_use(&self, random: &mut Random) -> (String, String) {
        if self.uses.is_empty() {
            return (self.any_buffer(random), self.any_buffer(random));
        }
        self.uses[random.below(self.uses.len())].clone()
    }

    /// What is read, computed or not, and what is computed from it.
    pub fn any_operand(&self, random: &mut Random) -> (String, String) {
        let list = if random.once_in(2) { &self.uses } else { &self.reads };
        if list.is_empty() { self.any_use(random) } else { list[random.below(list.len())].clone() }
    }

    /// The innermost loop of something that is computed.
    pub fn last_loop(&self, random: &mut Random) -> Option<Named> {
        let label = &self.loops.get(random.below(self.loops.len().max(1)))?.label;
        self.loops.iter().rfind(|l| l.label == *label).cloned()
    }

    /// Two loops, mostly one directly inside the other.
    pub fn nested_pair(&self, random: &mut Random) -> String {
        if self.pairs.is_empty() || random.once_in(4) {
            return self.some_loops(random, 2);
        }
        let [outer, inner] = &self.pairs[random.below(self.pairs.len())];
        format!("{outer}, {inner}")
    }

    /// Several loops of one label, mostly from the outside inwards.
    pub fn some_loops(&self, random: &mut Random, most: usize) -> String {
        let label = &self.loops[random.below(self.loops.len())].label;
        let mut of_label: Vec<String> =
            self.loops.iter().filter(|l| l.label == *label).map(Named::to_string).collect();
        if random.once_in(3) {
            random.shuffle(&mut of_label);
        }
        let first = random.below(of_label.len());
        let last = (first + 1 + random.below(most)).min(of_label.len());
        of_label[first..last].join(", ")
    }

    pub fn any_buffer(&self, random: &mut Random) -> String {
        self.buffers[random.below(self.buffers.len())].clone()
    }
}
