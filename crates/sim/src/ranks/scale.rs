//! The simulation: runs for all numbers of ranks, seeds and omitted sources, and their recording.
//!
//! Runs are independent of each other, and so on several threads: their order changes no number. All sets of
//! sources have the same random numbers, so that their differences are those of the sources. The recording
//! has the facts and the time of the first input: it depends on inputs, parameters and seed only.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use recording::{
    Body, Code, Coscheduled, Doubt, Moments, Pattern, Recording, ScaleCount, ScaleRuns,
    ScaleSeries, ScaleSource, ScaleSpec, StepDelay,
};
use stats::StepDelays;
use units::{Nanos, Span};

use super::doubts;
use super::error::Error;
use super::parts::Parts;
use super::random;
use super::recorded::Recorded;
use super::run::Program;

/// The largest number of ranks.
pub const RANKS_MAX: u64 = 1 << 24;
/// The most messages of a run, which takes minutes.
const MESSAGES_MAX: u64 = 1 << 37;
/// The messages of a run whose number of steps is chosen, and its smallest and largest number of steps.
const MESSAGES: u64 = 1 << 23;
const STEPS: (u64, u64) = (10, 1_000);
/// The longest run without noise: a year.
const LONGEST: Nanos = Nanos::from_secs(366 * 86_400);

/// How a simulation is watched, and ended.
#[derive(Debug, Clone, Copy)]
pub struct Watch<'a> {
    /// The number of threads.
    pub threads: usize,
    /// Ends it early: runs that have not ended are left out.
    pub stop: &'a AtomicBool,
    /// The number of runs that have ended; that of all is the sum of [`runs`].
    pub ended: &'a AtomicUsize,
}

/// The number of runs of a simulation.
pub fn runs(recorded: &Recorded, spec: &ScaleSpec) -> usize {
    let sets = recorded.sources(spec.sources as usize).len() + 1;
    spec.ranks.len() * (1 + sets * spec.seeds as usize)
}

/// Checks parameters.
///
/// # Errors
/// A parameter is impossible, or a run would take too long.
pub fn check(spec: &ScaleSpec) -> Result<(), Error> {
    let refuse = |text: String| Err(Error::Spec(text));
    if spec.ranks.is_empty() || spec.ranks.contains(&0) {
        return refuse("the number of ranks must be at least 1".to_owned());
    }
    if let Some(ranks) = spec.ranks.iter().find(|ranks| **ranks > RANKS_MAX) {
        return refuse(format!("{ranks} ranks are too many: the most are {RANKS_MAX}"));
    }
    let is_zero =
        [spec.ranks_per_node, spec.message_bytes, spec.seeds.into()].contains(&0);
    if is_zero || spec.compute_ns.is_zero() || spec.steps == Some(0) {
        return refuse(
            "steps, their length, messages, seeds and ranks on a node must be more than 0".to_owned(),
        );
    }
    for ranks in &spec.ranks {
        let program = program(spec, *ranks);
        let messages = program.messages(*ranks).saturating_mul(program.steps);
        if messages > MESSAGES_MAX {
            let each = program.messages(*ranks);
            return refuse(format!(
                "{ranks} ranks exchange {each} messages in each step: choose fewer ranks or steps, or \
                 another algorithm"
            ));
        }
        if program.shortest() > LONGEST {
            return refuse(
                "the run would be longer than a year: choose fewer or shorter steps"
                    .to_owned(),
            );
        }
    }
    Ok(())
}

/// Simulates, and makes a recording of it.
///
/// # Errors
/// As [`check`]; or there is no input, or the noise in two parts takes too long.
pub fn simulate(
    recorded: &Recorded,
    spec: ScaleSpec,
    watch: Watch<'_>,
) -> Result<Recording, Error> {
    check(&spec)?;
    let Some((facts, taken)) = recorded.first.clone() else {
        return Err(Error::Spec("at least one recording is needed".to_owned()));
    };
    let spec = ScaleSpec { inputs: recorded.inputs.clone(), ..spec };
    if let Coscheduled::Sources(_) = &spec.coscheduled {
        let base = |ranks: &u64| (*ranks, program(&spec, *ranks).shortest());
        let runs: Vec<(u64, Nanos)> = spec.ranks.iter().map(base).collect();
        Parts::new(recorded, &spec.coscheduled, None).check(&runs)?;
    }
    let sources = recorded.sources(spec.sources as usize);
    let counts = counts(recorded, &spec, &sources, watch);
    let series =
        ScaleSeries { sources, delays: delays(recorded, spec.compute_ns), counts };
    let mut doubts = doubts::of(recorded, &spec, &series);
    if watch.stop.load(Ordering::Relaxed) {
        let text = "ended early: runs that had not ended are left out";
        doubts.push(Doubt::new(Code::Interrupted, text));
    }
    let body = Body::Scale { spec, series };
    if !body.has_values() {
        let text = "no run with noise has ended";
        doubts.push(Doubt::new(Code::NothingMeasured, text));
    }
    Ok(Recording {
        taken,
        tool: Recording::TOOL.to_owned(),
        facts,
        body,
        doubts,
        moments: Moments::default(),
        hardware: None,
        repeat: None,
    })
}

/// The program of so many ranks.
pub(super) fn program(spec: &ScaleSpec, ranks: u64) -> Program {
    let program = Program {
        pattern: spec.pattern,
        algorithm: spec.algorithm.filter(|_| spec.pattern == Pattern::Allreduce),
        compute: spec.compute_ns,
        steps: 1,
        bytes: spec.message_bytes,
        network: spec.network,
    };
    let chosen = || (MESSAGES / program.messages(ranks).max(1)).clamp(STEPS.0, STEPS.1);
    Program { steps: spec.steps.unwrap_or_else(chosen), ..program }
}

/// All runs, by their number of ranks. Those without noise are first.
fn counts(
    recorded: &Recorded,
    spec: &ScaleSpec,
    sources: &[ScaleSource],
    watch: Watch<'_>,
) -> Vec<ScaleCount> {
    let base = in_parallel(spec, 1, watch, |ranks, _, stop| {
        program(spec, ranks).run(size(ranks), &[], stop)
    });
    let count = |(ranks, base): (&u64, &Vec<Option<Nanos>>)| {
        let program = program(spec, *ranks);
        Some(ScaleCount {
            ranks: *ranks,
            steps: program.steps,
            events: program.events(*ranks),
            base_ns: (*base.first()?)?,
            runs: Vec::new(),
        })
    };
    let mut counts: Vec<ScaleCount> =
        spec.ranks.iter().zip(&base).filter_map(count).collect();
    for omitted in std::iter::once(None).chain((0..sources.len()).map(Some)) {
        let without = omitted.and_then(|number| sources.get(number));
        let noise = Parts::new(recorded, &spec.coscheduled, without);
        let ended = with_noise(spec, &noise, watch);
        for (count, runs) in counts.iter_mut().zip(ended) {
            // All seeds, or none: sets are compared by seed.
            if let Some(run_ns) = runs.into_iter().collect() {
                count.runs.push(ScaleRuns { omitted, run_ns });
            }
        }
    }
    counts
}

fn with_noise(
    spec: &ScaleSpec,
    noise: &Parts,
    watch: Watch<'_>,
) -> Vec<Vec<Option<Nanos>>> {
    in_parallel(spec, spec.seeds as usize, watch, |ranks, seed, stop| {
        let seed = random::at(spec.seed, seed as u64);
        let noise = noise.assigned(spec.ranks_per_node, seed);
        program(spec, ranks).run(size(ranks), &noise, stop)
    })
}

/// The results of `run` for each number of ranks and each of so many seeds, the longest runs first.
fn in_parallel(
    spec: &ScaleSpec,
    seeds: usize,
    watch: Watch<'_>,
    run: impl Fn(u64, usize, &AtomicBool) -> Option<Nanos> + Sync,
) -> Vec<Vec<Option<Nanos>>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![vec![None; seeds]; spec.ranks.len()]);
    let work = || {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            // The numbers of ranks are in rising order.
            let Some(place) = spec.ranks.len().checked_sub(1 + job / seeds) else {
                return;
            };
            let result = run(spec.ranks[place], job % seeds, watch.stop);
            watch.ended.fetch_add(1, Ordering::Relaxed);
            let mut results =
                results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            results[place][job % seeds] = result;
        }
    };
    std::thread::scope(|scope| {
        (1..watch.threads.max(1)).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// By how much a step takes longer that begins at a random moment on a random CPU.
fn delays(recorded: &Recorded, step: Nanos) -> Vec<StepDelay> {
    let mut all = StepDelays::default();
    for (window, gaps) in recorded.windows() {
        let window = Span { start: Nanos::ZERO, length: window };
        if let Some(delays) = StepDelays::of(window, gaps, step) {
            all.add(&delays);
        }
    }
    all.parts().map(StepDelay::from).collect()
}

fn size(ranks: u64) -> usize {
    usize::try_from(ranks).unwrap_or(usize::MAX)
}
