//! The time model's answer for a kernel and a problem: lowered, validated and bound, nothing run and nothing compiled.

use std::collections::BTreeMap;

use serde::Serialize;
use warpwright_core::diag::Diagnosis;
use warpwright_core::ir::Program;
use warpwright_core::ir::validate::Valid;
use warpwright_core::model::time::{self, Constants, LaunchTime, Terms, Time};
use warpwright_core::sym::Sym;
use warpwright_core::target::Target;

use crate::bind::Binding;
use crate::compile::validated;
use crate::kernels::Kernel;
use crate::problem::Problem;
use crate::report::number::seconds;
use crate::report::table::{numbers, render, words};
use crate::report::{Kind, ProblemReport};
use crate::roofline::RooflineReport;

/// A kernel with the sizes of a problem, ready to be asked about.
#[derive(Debug)]
pub struct Subject {
    valid: Valid,
    binding: Binding,
    target: &'static Target,
    registers: Option<Vec<i64>>,
}

impl Subject {
    /// A kernel on a GPU. `registers` are those that a compiler gave the threads of each launch, where one was asked.
    ///
    /// # Errors
    /// A kernel that the GPU cannot run, and a problem that it does not fit.
    pub fn new(
        kernel: &Kernel,
        problem: &Problem,
        target: &'static Target,
        registers: Option<Vec<i64>>,
    ) -> Result<Subject, Diagnosis> {
        Subject::of_program(kernel.program(), problem, target, registers)
    }

    /// The same for a finished program.
    ///
    /// # Errors
    /// As [`Subject::new`].
    pub fn of_program(
        program: &Program,
        problem: &Problem,
        target: &'static Target,
        registers: Option<Vec<i64>>,
    ) -> Result<Subject, Diagnosis> {
        let valid = validated(program, target)?;
        // As on the GPU itself, one block for each multiprocessor where a kernel leaves their number open.
        let binding = Binding::new(valid.program(), problem, i64::from(target.sm_count.value))?;
        Ok(Subject { valid, binding, target, registers })
    }

    /// The same with the registers that a compiler gave the threads of each launch.
    #[must_use]
    pub fn with_registers(self, registers: Vec<i64>) -> Subject {
        Subject { registers: Some(registers), ..self }
    }

    /// What a parameter is for the problem: a size, a stride or a flag.
    pub fn value(&self, sym: &Sym) -> Option<i64> {
        self.binding.value(sym)
    }

    /// The lowered program.
    pub fn valid(&self) -> &Valid {
        &self.valid
    }

    /// What the model says.
    ///
    /// # Errors
    /// As [`time::of`].
    pub fn time(&self) -> Result<Time, Diagnosis> {
        self.time_with(&time::CONSTANTS)
    }

    /// What it would say with other constants.
    ///
    /// # Errors
    /// As [`time::of`].
    pub fn time_with(&self, constants: &Constants) -> Result<Time, Diagnosis> {
        let value = |sym: &_| self.binding.value(sym);
        time::with(self.valid.program(), &value, self.target, self.registers.as_deref(), constants)
    }
}

/// Values by the names of the model's terms.
pub type ByTerm = BTreeMap<&'static str, f64>;

/// What the model says of a kernel: the JSON of `predict` for kernels that are no choice of a family. All times are in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramPrediction {
    /// What would be computed.
    pub problem: ProblemReport,
    /// On which GPU.
    pub gpu: &'static str,
    /// By what.
    pub kernel: Named,
    /// How the numbers came about: always the model.
    pub kind: Kind,
    /// The time of one product.
    pub seconds: f64,
    /// What the time is made of, each as if it were alone. They overlap, so their sum is more than the time.
    pub terms: ByTerm,
    /// By how much the time would be shorter without each, in parts of all such gains together.
    pub shares: ByTerm,
    /// The term with the greatest share.
    pub limiter: &'static str,
    /// The launches, in order.
    pub launches: Vec<Launched>,
    /// The bounds of the problem by what is known to be reached on the GPU; null where its table has no rate for the type.
    pub roofline: Option<RooflineReport>,
    /// Whether the time is less than the roofline's: the model is wrong there, or the kernel multiplies less than the definition does.
    pub below_roofline: bool,
}

/// The kernel of a prediction.
#[derive(Clone, Debug, Serialize)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// Its family or ladder; `schedule` or `program` for one from a file.
    pub family: String,
}

/// How the blocks of a launch fill a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Launched {
    /// Seconds.
    pub seconds: f64,
    /// Blocks.
    pub blocks: f64,
    /// Threads of a block.
    pub threads: i64,
    /// Registers of a thread, estimated.
    pub registers: i64,
    /// Bytes of shared memory of a block.
    pub shared_bytes: i64,
    /// Blocks that a multiprocessor holds.
    pub blocks_per_sm: u32,
    /// Rounds in which the busiest multiprocessor takes its blocks.
    pub rounds: f64,
    /// How many times the mean it has to do.
    pub imbalance: f64,
}

impl ProgramPrediction {
    /// The prediction for a kernel of this name and family.
    ///
    /// # Errors
    /// As [`Subject::new`] and [`Subject::time`].
    pub fn of(
        program: &Program,
        kernel: Named,
        problem: &Problem,
        target: &'static Target,
    ) -> Result<ProgramPrediction, Diagnosis> {
        let time = Subject::of_program(program, problem, target, None)?.time()?;
        let by_term = |values: [f64; 7]| Terms::NAMES.iter().map(|(name, _)| *name).zip(values).collect();
        let roofline = RooflineReport::reached(problem, target);
        Ok(ProgramPrediction {
            problem: ProblemReport::of(problem),
            gpu: target.name,
            kernel,
            kind: Kind::Modelled,
            seconds: time.seconds,
            terms: by_term(time.terms.values()),
            shares: by_term(time.shares.values()),
            limiter: time.limiter,
            launches: time.launches.iter().map(Launched::from).collect(),
            below_roofline: roofline.is_some_and(|r| r.seconds > time.seconds),
            roofline,
        })
    }

    /// The prediction for people.
    pub fn describe(&self) -> String {
        let roofline = match &self.roofline {
            Some(r) => {
                let part = r.seconds / self.seconds;
                format!("{} by {}, {part:.2} of the time (modelled)", seconds(r.seconds), r.limiter)
            }
            None => "not known: the GPU's table has no rate for this type".to_string(),
        };
        let rows: Vec<Vec<String>> = Terms::NAMES
            .iter()
            .map(|(name, about)| {
                let share = format!("{:.0} %", 100.0 * self.shares[name]);
                vec![(*name).to_string(), (*about).to_string(), seconds(self.terms[name]), share]
            })
            .collect();
        let columns =
            [words("term"), words("what takes it"), numbers("alone (modelled)"), numbers("share (modelled)")];
        let terms: Vec<String> = render(&columns, &rows).lines().map(|line| format!("  {line}")).collect();
        let launches: Vec<String> = self.launches.iter().map(Launched::describe).collect();
        format!(
            "{} {} on {}\n{}\n  time       {} (modelled)\n  roofline   {roofline}\n  limiter    {} (modelled)\n\n{}",
            self.kernel.name,
            self.problem,
            self.gpu,
            launches.join("\n"),
            seconds(self.seconds),
            Terms::NAMES.iter().find(|(name, _)| *name == self.limiter).map_or("nothing", |(_, about)| about),
            terms.join("\n")
        )
    }

    /// Several for people, a line each.
    pub fn table(predictions: &[ProgramPrediction]) -> String {
        let columns = [
            words("gpu"),
            words("kernel"),
            words("problem"),
            words("type"),
            numbers("time (modelled)"),
            numbers("roofline"),
            numbers("of it"),
            words("limiter"),
        ];
        let row = |p: &ProgramPrediction| {
            let ProblemReport { m, n, k, dtype, layout, .. } = &p.problem;
            let [roofline, of_it] = RooflineReport::cells(p.roofline, p.seconds, p.below_roofline);
            vec![
                p.gpu.to_string(),
                p.kernel.name.clone(),
                format!("{m}x{n}x{k}"),
                format!("{dtype} {layout}"),
                seconds(p.seconds),
                roofline,
                of_it,
                p.limiter.to_string(),
            ]
        };
        render(&columns, &predictions.iter().map(row).collect::<Vec<_>>())
    }
}

impl From<&LaunchTime> for Launched {
    fn from(launch: &LaunchTime) -> Launched {
        Launched {
            seconds: launch.seconds,
            blocks: launch.counts.blocks,
            threads: launch.counts.threads,
            registers: launch.registers,
            shared_bytes: launch.counts.shared_bytes,
            blocks_per_sm: launch.occupancy.blocks,
            rounds: launch.rounds,
            imbalance: launch.imbalance,
        }
    }
}

impl Launched {
    fn describe(&self) -> String {
        format!(
            "  launch     {} blocks of {} threads, {} registers (estimated), {} bytes of shared memory; {} on a multiprocessor, {} rounds",
            self.blocks, self.threads, self.registers, self.shared_bytes, self.blocks_per_sm, self.rounds
        )
    }
}
