//! The summary of `slices`: time slices of CPU-bound tasks, and what ended them, for each variant.
//!
//! The mean slice is exact: CPU time divided by involuntary switches, both as counted by the kernel.
//! Quantiles, and what ended slices, are known only if switches were traced.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use recording::{End, SlicesSeries, SlicesSpec, SlicesTask, SlicesTurn, Step, TaskTime};
use serde::Serialize;
use stats::{Distribution, Slices};
use units::{Hz, Nanos, PerSecond, Ppm};

use crate::slices::classic::ClassicLine;
use crate::slices::placements::PlacementsSummary;
use crate::slices::traced::{EndedStretch, Slice};
use crate::slices::turns::{mean_slice, sum, turns, wall};
use crate::wakers::WakersSummary;

pub(crate) mod bins;
pub(crate) mod classic;
pub(crate) mod picture;
pub(crate) mod placements;
pub(crate) mod tasks;
pub(crate) mod traced;
pub(crate) mod turns;
pub(crate) mod window;

const WAKERS: u32 = 6;

/// The slices that ended for one reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SliceEnds {
    /// The reason.
    pub end: End,
    /// The next task; null for ticks.
    pub by: Option<String>,
    /// The number of slices.
    pub slices: u64,
    /// Their share of all slices.
    pub part_ppm: Option<Ppm>,
}

/// The results of one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepSlices {
    /// The duration of the measurement.
    pub wall_ns: Nanos,
    /// CPU time of all tasks: unlike wall time, it does not grow with other load.
    pub cpu_ns: Nanos,
    /// That as a share of the CPUs' time.
    pub busy_ppm: Option<Ppm>,
    /// CPU time of the spinners.
    pub spinners_cpu_ns: Nanos,
    /// Involuntary switches of the spinners.
    pub switches: u64,
    /// That per second.
    pub switches_hz: Option<PerSecond>,
    /// The lengths of the spinners' slices; only the mean is known without tracing.
    pub slice_ns: Distribution<Slices>,
    /// The mean slice of each round.
    pub turns_slice_ns: Vec<Option<Nanos>>,
    /// The largest deviation of a round; null for fewer than two.
    pub turns_deviation: Option<RoundDeviation>,
    /// Iterations of all spinners' loops: their work.
    pub passes: u64,
    /// That per second of wall time.
    pub passes_hz: Option<PerSecond>,
    /// Wake-ups of all sleepers.
    pub wakeups: u64,
    /// Wake-ups of each sleeper per second; null without sleepers.
    pub wakeups_hz: Option<PerSecond>,
    /// Slices of the spinners with a traced end; null without tracing.
    pub traced_slices: Option<u64>,
    /// The reasons why they ended, the most frequent first.
    pub ends: Vec<SliceEnds>,
    /// Where tasks that woke up were placed; null except for simulations that store it.
    pub placements: Option<Box<PlacementsSummary>>,
}

/// The largest deviation of a single round from all rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RoundDeviation {
    /// Of the mean slice.
    pub slice_ns: Option<Nanos>,
    /// Of the involuntary switches per second.
    pub switches_hz: Option<PerSecond>,
    /// Of the iterations per second.
    pub passes_hz: Option<PerSecond>,
}

impl RoundDeviation {
    /// From the times of the spinners, and the wall time, of each round.
    fn of(turns: &[(TaskTime, Nanos)]) -> Option<Self> {
        let spun = sum(turns.iter().map(|(spun, _)| spun));
        let wall: Nanos = turns.iter().map(|(_, wall)| *wall).sum();
        let mean = mean_slice(&spun);
        let slices = turns.iter().filter_map(|(turn, _)| {
            Some(Nanos::from_nanos(mean_slice(turn)?.get().abs_diff(mean?.get())))
        });
        let rate = |part: fn(&TaskTime) -> u64| {
            let all = PerSecond::of(part(&spun), wall)?.get();
            let rates = turns.iter().filter_map(|(turn, wall)| {
                Some((PerSecond::of(part(turn), *wall)?.get() - all).abs())
            });
            rates.max_by(f64::total_cmp).map(PerSecond::new)
        };
        (turns.len() > 1).then(|| Self {
            slice_ns: slices.max(),
            switches_hz: rate(|turn| turn.involuntary),
            passes_hz: rate(|turn| turn.passes),
        })
    }
}

/// A variant, compared with the unmodified settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepSummary {
    /// The settings: `WAKEUP_PREEMPTION=off`.
    pub step: String,
    /// The results.
    #[serde(flatten)]
    pub results: StepSlices,
    /// The mean slice divided by that of the unmodified settings.
    pub slice_ratio: Option<f64>,
    /// Whether the mean slices of all rounds are above, or all below, those of the unmodified settings;
    /// null for fewer than two rounds.
    pub differs: Option<bool>,
}

/// A task, in all rounds with unmodified settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskSummary {
    /// The name.
    pub name: String,
    /// Whether it is a spinner; a sleeper otherwise.
    pub spins: bool,
    /// CPU time.
    pub cpu_ns: Nanos,
    /// Involuntary switches.
    pub switches: u64,
    /// Voluntary switches.
    pub voluntary: u64,
    /// The mean slice; null without a switch.
    pub slice_ns_mean: Option<Nanos>,
    /// Iterations of a spinner's loop, or wake-ups of a sleeper.
    pub passes: u64,
    /// The reasons why the slices ended; empty without tracing.
    pub ends: Vec<SliceEnds>,
}

/// The results of `slices`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlicesSummary {
    /// The number of spinners.
    pub spinners: u64,
    /// The number of sleepers.
    pub sleepers: u64,
    /// The results with unmodified settings.
    #[serde(flatten)]
    pub results: StepSlices,
    /// The event source; null without tracing.
    pub source: Option<String>,
    /// Each task, with unmodified settings.
    pub tasks: Vec<TaskSummary>,
    /// The threads that woke up most often on these CPUs, in all rounds; null if not counted.
    pub wakers: Option<WakersSummary>,
    /// Wake-ups whose placement was not stored, the last ones; null without placements.
    pub placements_lost: Option<u64>,
    /// Each variant.
    pub steps: Vec<StepSummary>,
    /// Each sample with unmodified settings, in the format of the 2009 report.
    pub classic: Vec<ClassicLine>,
}

impl SlicesSummary {
    /// Summarizes a series.
    pub fn of(hz: Option<Hz>, spec: &SlicesSpec, series: &SlicesSeries) -> Self {
        let switches = series.switches.as_ref();
        let names = switches.map(|switches| {
            let places = tasks::measured(spec, series, switches);
            tasks::names(series, switches, &places)
        });
        let names = names.unwrap_or_default();
        let stretches =
            switches.map(|switches| traced::stretches(&switches.cpus, &names));
        let spinners = usize::try_from(spec.spinners).unwrap_or(usize::MAX);
        let run = Run { spec, series, spinners, stretches };
        let results = step(&run, 0);
        let steps = spec.steps.iter().enumerate().map(|(number, variant)| {
            let changed = step(&run, number + 1);
            StepSummary {
                step: step_text(variant),
                slice_ratio: ratio(changed.slice_ns.mean, results.slice_ns.mean),
                differs: differs(&changed.turns_slice_ns, &results.turns_slice_ns),
                results: changed,
            }
        });
        let wakers = series.wakers.as_ref();
        Self {
            spinners: spinners as u64,
            sleepers: run.sleepers(),
            source: switches.map(|switches| switches.source.name().to_owned()),
            wakers: wakers.map(|wakers| WakersSummary::of(WAKERS, wakers)),
            tasks: task_summaries(&run),
            placements_lost: series.placements.as_ref().map(|of| of.lost),
            steps: steps.collect(),
            classic: classic::classic(hz.map(Hz::period), spinners, series),
            results,
        }
    }
}

impl StepSlices {
    /// The iterations per second as a share of those of `other`; `None` if these are zero.
    pub fn work_of(&self, other: &Self) -> Option<Ppm> {
        let (work, all) = (self.passes_hz?.get(), other.passes_hz?.get());
        (all > 0.0).then(|| Ppm::new(work / all * 1e6))
    }
}

impl TaskSummary {
    /// The share of slices that ended for one of these reasons; `None` if none did.
    pub fn ended_ppm(&self, ends: &[End]) -> Option<Ppm> {
        let parts = self.ends.iter().filter(|own| ends.contains(&own.end));
        let parts: Vec<f64> =
            parts.filter_map(|own| own.part_ppm).map(Ppm::get).collect();
        (!parts.is_empty()).then(|| Ppm::new(parts.iter().sum()))
    }
}

struct Run<'a> {
    spec: &'a SlicesSpec,
    series: &'a SlicesSeries,
    /// The number of spinners, which are the first tasks.
    spinners: usize,
    /// The stretches of each CPU; `None` if switches were not traced.
    stretches: Option<Vec<Vec<EndedStretch<'a>>>>,
}

impl<'a> Run<'a> {
    fn sleepers(&self) -> u64 {
        self.series.tasks.len().saturating_sub(self.spinners) as u64
    }

    fn slices(&self, step: usize, of: &[SlicesTask]) -> Option<Vec<Slice<'a>>> {
        let stretches = self.stretches.as_ref()?;
        Some(traced::slices(stretches, self.series, step, of))
    }
}

/// A variant as an argument: `WAKEUP_PREEMPTION=off,base_slice_ns=3000000`.
fn step_text(step: &Step) -> String {
    let settings = step.settings.iter();
    let texts = settings.map(|setting| format!("{}={}", setting.name, setting.value));
    texts.collect::<Vec<String>>().join(",")
}

fn ratio(of: Option<Nanos>, to: Option<Nanos>) -> Option<f64> {
    let (of, to) = (of?.get() as f64, to?.get() as f64);
    (to > 0.0).then_some(of / to)
}

/// Whether the ranges of two sets of rounds do not overlap.
fn differs(some: &[Option<Nanos>], others: &[Option<Nanos>]) -> Option<bool> {
    let range = |all: &[Option<Nanos>]| {
        let known: Vec<Nanos> = all.iter().flatten().copied().collect();
        (known.len() >= 2)
            .then(|| (known.iter().min().copied(), known.iter().max().copied()))
    };
    let ((least, most), (others_least, others_most)) = (range(some)?, range(others)?);
    Some(least > others_most || most < others_least)
}

fn step(run: &Run<'_>, step: usize) -> StepSlices {
    let turns = || turns(run.series, step);
    let of_spinners = |turn: &SlicesTurn| {
        let samples = turn.samples.iter();
        let spun = sum(samples.flat_map(|sample| sample.tasks.iter().take(run.spinners)));
        (spun, wall(turn))
    };
    let each: Vec<(TaskTime, Nanos)> = turns().map(of_spinners).collect();
    let spun = sum(each.iter().map(|(spun, _)| spun));
    let samples = turns().flat_map(|turn| &turn.samples);
    let slept = sum(samples.flat_map(|sample| sample.tasks.iter().skip(run.spinners)));
    let wall_ns: Nanos = turns().map(wall).sum();
    let tasks = &run.series.tasks;
    let slices = run.slices(step, tasks.get(..run.spinners).unwrap_or(tasks));
    let cpu_ns = spun.cpu_ns + slept.cpu_ns;
    StepSlices {
        wall_ns,
        cpu_ns,
        busy_ppm: Ppm::of(cpu_ns, wall_ns.saturating_mul(run.spec.cpus.len() as u64)),
        spinners_cpu_ns: spun.cpu_ns,
        switches: spun.involuntary,
        switches_hz: PerSecond::of(spun.involuntary, wall_ns),
        slice_ns: Distribution {
            mean: mean_slice(&spun),
            ..Distribution::of(slices.iter().flatten().filter_map(|slice| slice.length))
        },
        turns_slice_ns: each.iter().map(|(spun, _)| mean_slice(spun)).collect(),
        turns_deviation: RoundDeviation::of(&each),
        passes: spun.passes,
        passes_hz: PerSecond::of(spun.passes, wall_ns),
        wakeups: slept.passes,
        wakeups_hz: PerSecond::of(slept.passes, wall_ns.saturating_mul(run.sleepers())),
        traced_slices: slices.as_ref().map(|slices| slices.len() as u64),
        ends: ends(slices.as_deref().unwrap_or_default()),
        placements: PlacementsSummary::of(run.spec, run.series, step).map(Box::new),
    }
}

fn ends(slices: &[Slice<'_>]) -> Vec<SliceEnds> {
    let mut counts: BTreeMap<(End, Option<&str>), u64> = BTreeMap::new();
    for slice in slices {
        let by = slice.next.filter(|_| slice.end != End::Tick);
        *counts.entry((slice.end, by)).or_default() += 1;
    }
    let all = slices.len() as u64;
    let ends = |((end, by), slices): ((End, Option<&str>), u64)| SliceEnds {
        end,
        by: by.map(str::to_owned),
        slices,
        part_ppm: (all > 0).then(|| Ppm::new(slices as f64 / all as f64 * 1e6)),
    };
    let mut ends: Vec<SliceEnds> = counts.into_iter().map(ends).collect();
    ends.sort_by_key(|ends| Reverse(ends.slices));
    ends
}

fn task_summaries(run: &Run<'_>) -> Vec<TaskSummary> {
    let tasks = &run.series.tasks;
    // One pass over all stretches instead of one for each of up to a thousand tasks.
    let mut slices: BTreeMap<&str, Vec<Slice<'_>>> = BTreeMap::new();
    for slice in run.slices(0, tasks).unwrap_or_default() {
        slices.entry(slice.task).or_default().push(slice);
    }
    let task = |(place, task): (usize, &SlicesTask)| {
        let samples = turns(run.series, 0).flat_map(|turn| &turn.samples);
        let time = sum(samples.filter_map(|sample| sample.tasks.get(place)));
        TaskSummary {
            name: task.name.clone(),
            spins: place < run.spinners,
            cpu_ns: time.cpu_ns,
            switches: time.involuntary,
            voluntary: time.voluntary,
            slice_ns_mean: mean_slice(&time),
            passes: time.passes,
            ends: ends(slices.get(task.name.as_str()).map_or(&[], Vec::as_slice)),
        }
    };
    tasks.iter().enumerate().map(task).collect()
}

#[cfg(test)]
mod tests;
