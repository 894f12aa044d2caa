//! Settings that are changed at run time: batches of them take turns with the current settings, in balanced order, and
//! one metric of each is compared.

use std::time::Instant;

use ::advise::{
    Barrier, Batch, MeasuredDifference, Method, ProofOutcome, ProofPlan, Proven, rounds,
};
use ::facts::Facts;
use recording::{Doubt, StepSetting};
use summary::{RunSet, compare_metric};
use units::{CpuSet, Nanos};

use crate::args::Output;
use crate::forwarding::Forwarding;
use crate::outcome::Failure;
use crate::proving::{Clock, SMALLEST, measurement, millis, plan};
use crate::repeating::measurement::Measurement;
use crate::repeating::{Repeated, Variant, repeat_with};

/// What a run takes besides its measurement, until one was measured: the start and end of a process that reads the
/// facts of the machine.
const AROUND: Nanos = Nanos::from_millis(500);

/// A setting that can be changed here.
pub(super) struct Candidate {
    /// Its place in the list.
    pub(super) place: usize,
    /// The name of its rule.
    pub(super) rule: &'static str,
    pub(super) method: Method,
    pub(super) variant: Variant,
}

/// A setting that was changed and restored once.
///
/// # Errors
/// This machine does not have it, or it cannot be changed.
pub(super) fn variant(setting: StepSetting, facts: &Facts) -> Result<Variant, Failure> {
    let variant = Variant::of(&[setting], facts)?;
    variant.change_and_restore(facts)?;
    Ok(variant)
}

/// A program that is measured.
#[derive(Clone, Copy)]
pub(super) struct MeasuredProgram<'a> {
    pub(super) measurement: &'a Measurement,
    /// How long a run takes.
    pub(super) time: Nanos,
    pub(super) ignores_failures: bool,
    pub(super) shows_output: bool,
}

/// The runs of settings.
pub(super) struct Trials<'a> {
    /// The program that is measured; `None`: what fits each setting.
    pub(super) program: Option<MeasuredProgram<'a>>,
    pub(super) cpus: &'a CpuSet,
    pub(super) clock: Clock,
    /// The part of the budget that is for others.
    pub(super) reserved: Nanos,
    pub(super) output: Output,
    /// Reasons not to trust the runs.
    pub(super) doubts: Vec<Doubt>,
}

impl Trials<'_> {
    /// Tries the settings, the first of the list first; returns what was shown of each by its place.
    pub(super) fn run(
        &mut self,
        candidates: &[Candidate],
        forwarding: &mut Forwarding,
    ) -> Vec<(usize, ProofOutcome)> {
        let duration = ProofPlan::duration(self.clock.budget);
        let mut cost = self.program.map_or(duration + AROUND, |program| program.time);
        let methods: Vec<Method> = candidates.iter().map(|one| one.method).collect();
        let plan = ProofPlan::of(&methods, self.clock.rest(self.reserved), cost);
        let mut runs: u32 = plan.batches.iter().map(Batch::runs).sum();
        let not = |at: usize, why| (candidates[at].place, ProofOutcome::NotProven(why));
        let mut outcomes: Vec<_> =
            plan.left_out.iter().map(|at| not(*at, Barrier::Budget)).collect();
        for batch in &plan.batches {
            let rest = self.clock.rest(self.reserved);
            let barrier =
                |why: Barrier| batch.settings.iter().map(move |at| not(*at, why.clone()));
            if forwarding.is_interrupted() {
                outcomes.extend(barrier(Barrier::Interrupted));
                continue;
            }
            let Some(rounds) = rounds(rest, runs, cost) else {
                outcomes.extend(barrier(Barrier::Budget));
                continue;
            };
            runs -= batch.runs();
            let settings: Vec<&Candidate> =
                batch.settings.iter().map(|at| &candidates[*at]).collect();
            let began = Instant::now();
            let proven = self.batch(&settings, duration, rounds, forwarding);
            outcomes.extend(proven);
            let elapsed = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let done = u64::from(rounds) * u64::from(batch.runs());
            cost = Nanos::from_nanos(elapsed / done.max(1));
        }
        outcomes
    }

    /// The rounds of a batch.
    fn batch(
        &mut self,
        settings: &[&Candidate],
        duration: Nanos,
        rounds: u32,
        forwarding: &mut Forwarding,
    ) -> Vec<(usize, ProofOutcome)> {
        let Some(method) = settings.first().map(|one| one.method) else {
            return Vec::new();
        };
        let variants = settings.iter().map(|one| one.variant.clone());
        let variants = [Variant::current()].into_iter().chain(variants).collect();
        let measurement = match self.program {
            Some(program) => program.measurement.clone(),
            None => self.measurement(method, duration),
        };
        let text = measurement.text();
        let mut plan = plan(measurement, variants, rounds, self.output);
        plan.schedule.ignores_failures =
            self.program.is_some_and(|program| program.ignores_failures);
        plan.schedule.shows_output =
            self.program.is_some_and(|program| program.shows_output);
        let not = |why: &Barrier| {
            let not =
                |one: &&Candidate| (one.place, ProofOutcome::NotProven(why.clone()));
            settings.iter().map(not).collect()
        };
        let Repeated { sets, doubts, .. } = match repeat_with(&plan, &mut [], forwarding)
        {
            Ok(repeated) => repeated,
            Err(_) if forwarding.is_interrupted() => return not(&Barrier::Interrupted),
            Err(why) => return not(&Barrier::Refused(why.to_string())),
        };
        self.add_doubts(doubts, &sets);
        let Some((base, others)) = sets.split_first() else { return Vec::new() };
        let compared = compare_metric(base, others, method.metric(), SMALLEST);
        let outcome = |(one, compared): (&&Candidate, Option<summary::Compared>)| {
            let found = compared.and_then(|compared| {
                let measured = MeasuredDifference::of_runs(&compared)?;
                let conclusion = measured.effect(&compared);
                Some(Proven {
                    rule: one.rule,
                    method,
                    measurement: text.clone(),
                    kernel: None,
                    measured,
                    conclusion,
                })
            });
            let missing = ProofOutcome::NotProven(Barrier::Interrupted);
            (one.place, found.map_or(missing, ProofOutcome::Proven))
        };
        settings.iter().zip(compared).map(outcome).collect()
    }

    /// The command line of a run. Single events are not traced: attaching to them takes as long as a run.
    fn measurement(&self, method: Method, duration: Nanos) -> Measurement {
        let (cpus, time) = (self.cpus.to_string(), millis(duration));
        let on = |words: &[&str]| measurement(words);
        match method {
            Method::Noise | Method::Program => {
                on(&["noise", "-c", &cpus, "-d", &time, "--source", "proc"])
            }
            Method::Latency => on(&["latency", "-c", &cpus, "-d", &time, "--no-trace"]),
            Method::Ticks => on(&["ticks", "-c", &cpus, "-i", &time, "-n", "1"]),
        }
    }

    /// Adds what makes the runs unreliable, once.
    fn add_doubts(&mut self, doubts: Vec<Doubt>, sets: &[RunSet]) {
        let of_runs = sets.iter().flat_map(|set| &set.doubts).map(|one| &one.doubt);
        let of_runs = of_runs.filter(|doubt| doubt.is_grave()).cloned();
        for doubt in doubts.into_iter().chain(of_runs) {
            if !self.doubts.contains(&doubt) {
                self.doubts.push(doubt);
            }
        }
    }
}
