//! `advise -- COMMAND`: the program is repeated, then what could help against what makes its run times differ is tried
//! with it, in runs that alternate with the current settings.

use std::ffi::OsString;
use std::time::Instant;

use ::advise::{Advice, AdviceItem, Barrier, Machine, Method};
use recording::Doubt;
use summary::{MainMetric, RunSet};
use units::{CpuSet, Nanos};

use crate::outcome::{Failure, Outcome};
use crate::proving::settings::{MeasuredProgram, Trials};
use crate::proving::{Prover, Sorted, Way, measured_cpus, plan, way};
use crate::repeating::measurement::Measurement;
use crate::repeating::{Repeated, Variant, repeat_with};

/// Fewer runs do not show what explains their differences, and more of them hardly show more.
const RUNS_MIN: u32 = 6;
const RUNS_MAX: u32 = 30;
/// The part of the budget that they may take.
const PART: u64 = 4;
/// It isolates CPUs, of which a program makes use only if it runs there.
const PARTITION: &str = "partition";

/// A program that was repeated.
pub(crate) struct Repetition {
    measurement: Measurement,
    set: RunSet,
    /// How long a run takes, with its start and its end.
    time: Nanos,
    has_cpus: bool,
}

impl Repetition {
    /// Its main metric, and why that differs from run to run.
    pub(crate) fn main_metric(&self) -> Option<MainMetric> {
        self.set.main_metric()
    }

    /// The command line of a run.
    pub(crate) fn text(&self) -> String {
        self.measurement.text()
    }
}

/// The runs of a program, on these CPUs if some are given.
fn measurement(program: &[OsString], cpus: Option<&CpuSet>) -> Measurement {
    let on = cpus.map(|cpus| [OsString::from("-c"), cpus.to_string().into()]);
    let words = [OsString::from("run")].into_iter().chain(on.into_iter().flatten());
    let words = words.chain([OsString::from("--")]).chain(program.iter().cloned());
    Measurement { words: words.collect(), name: 1, is_run: true }
}

impl Prover {
    /// Repeats a program with the current settings.
    ///
    /// # Errors
    /// It fails, or cannot be started.
    pub(crate) fn repeat(
        &mut self,
        program: &[OsString],
        cpus: Option<&CpuSet>,
        doubts: &mut Vec<Doubt>,
    ) -> Result<Repetition, Failure> {
        let measurement = measurement(program, cpus);
        // How many fit into the time is known from the first ones.
        let (first, time) = self.rounds(&measurement, 2, doubts)?;
        let fitting = self.clock.budget.get() / PART / time.get().max(1);
        let runs = u32::try_from(fitting).unwrap_or(RUNS_MAX).clamp(RUNS_MIN, RUNS_MAX);
        let (set, time) = match self.forwarding.is_interrupted() {
            true => (first, time),
            false => self.rounds(&measurement, runs, doubts)?,
        };
        Ok(Repetition { measurement, set, time, has_cpus: cpus.is_some() })
    }

    /// So many runs with the current settings, and how long one took, with its start and its end.
    fn rounds(
        &mut self,
        measurement: &Measurement,
        runs: u32,
        doubts: &mut Vec<Doubt>,
    ) -> Result<(RunSet, Nanos), Failure> {
        let began = Instant::now();
        let variants = vec![Variant::current()];
        let mut plan = plan(measurement.clone(), variants, runs, self.output);
        plan.schedule.ignores_failures = self.ignores_failures;
        plan.schedule.shows_output = self.shows_output;
        let Repeated { mut sets, doubts: found, .. } =
            repeat_with(&plan, &mut [], &mut self.forwarding)?;
        doubts.extend(found);
        let elapsed = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let time = Nanos::from_nanos(elapsed / u64::from(runs.max(1)));
        Ok((sets.pop().unwrap_or_default(), time))
    }

    /// Tries the settings of advice with a program.
    ///
    /// # Errors
    /// The facts of this machine lack what is needed.
    pub(crate) fn prove_with(
        mut self,
        repetition: &Repetition,
        advice: Advice,
        machine: &Machine<'_>,
        doubts: &mut Vec<Doubt>,
    ) -> Result<(Advice, Outcome), Failure> {
        let cpus = measured_cpus(machine)?;
        if self.forwarding.is_interrupted() {
            return Ok(self.unproven(advice, doubts));
        }
        let mut sorted = Sorted::of(&advice, machine, |item| {
            (Method::Program, way_with(repetition, item))
        });
        let trials = Trials {
            program: Some(MeasuredProgram {
                measurement: &repetition.measurement,
                time: repetition.time,
                ignores_failures: self.ignores_failures,
                shows_output: self.shows_output,
            }),
            ..self.trials(&cpus)
        };
        sorted.try_settings(trials, &mut self.forwarding, doubts);
        Ok(self.finish(advice, sorted.outcomes, doubts))
    }
}

/// How an item is tried with a program.
fn way_with(repetition: &Repetition, item: &AdviceItem) -> Way {
    match way(item) {
        Way::Setting(setting) if setting.name == PARTITION && !repetition.has_cpus => {
            let why = "the program has no CPUs of its own; hint: -c";
            Way::Not(Barrier::Refused(why.to_owned()))
        }
        Way::Guest(_) => {
            Way::Not(Barrier::NoGuest("the program runs on this machine".to_owned()))
        }
        other @ (Way::Setting(_) | Way::Not(_)) => other,
    }
}
