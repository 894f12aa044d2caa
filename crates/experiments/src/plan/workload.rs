//! From a workload row to a measurement on a guest with that many CPUs.

use recording::{
    BackgroundLoad, CallsSpec, LatencySpec, NohzSpec, NoiseSpec, Phases, Policy,
    SlicesSpec, Source as Watch, Spec, TicksSpec, Timer, Trigger,
};
use toml::Spanned;
use units::{Cpu, CpuSet, Nanos};

use crate::error::Error;
use crate::plan::program::{self, ProgramFiles};
use crate::table::entry::Length;
use crate::table::number::{CpuChoice, Number};
use crate::table::source::Source;
use crate::table::{
    BackgroundRow, CallsRow, LatencyRow, NohzRow, NoiseRow, SlicesRow, TicksRow,
    WorkloadRow,
};

/// The measurement of a workload row, and its description.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) background: Vec<BackgroundLoad>,
    pub(crate) spec: Spec,
    pub(crate) files: Option<ProgramFiles>,
    pub(crate) watch: Option<Watch>,
    pub(crate) words: String,
}

/// A guest's CPUs, the text in which one is chosen, and the phases of the measurement.
#[derive(Debug, Clone, Copy)]
struct Choice<'a> {
    source: &'a Source,
    cpus: u32,
    phases: Option<Phases>,
}

impl Choice<'_> {
    /// The CPU that was chosen.
    fn cpu(&self, choice: &Spanned<CpuChoice>) -> Result<Cpu, Error> {
        match *choice.get_ref() {
            CpuChoice::Last => Ok(Cpu::new(self.cpus - 1)),
            CpuChoice::At(number) if number < self.cpus => Ok(Cpu::new(number)),
            CpuChoice::At(number) => {
                let there = match self.cpus {
                    1 => "only CPU 0".to_owned(),
                    cpus => format!("CPUs 0 to {}", cpus - 1),
                };
                let why =
                    format!("no CPU {number}: the guest has {there}; cpus gives it more");
                Err(self.source.refuse(choice.span(), why))
            }
        }
    }
}

/// The measurement of a workload row on a guest with that many CPUs.
pub(crate) fn work(
    source: &Source,
    row: &Spanned<WorkloadRow>,
    cpus: u32,
    phases: Option<Phases>,
) -> Result<Work, Error> {
    let choice = Choice { source, cpus, phases };
    let place = row.span();
    let row = row.get_ref();
    let plain = |task: Result<(Spec, String), Error>| {
        task.map(|(spec, words)| (spec, None, words))
    };
    let asked = [
        row.noise.as_ref().map(|noise| plain(noise_task(choice, noise))),
        row.ticks.as_ref().map(|ticks| plain(ticks_task(choice, ticks))),
        row.calls.as_ref().map(|calls| plain(calls_task(choice, calls))),
        row.nohz.as_ref().map(|nohz| plain(nohz_task(choice, nohz))),
        row.slices.as_ref().map(|slices| plain(slices_task(choice, slices))),
        row.latency.as_ref().map(|latency| plain(latency_task(choice, latency))),
        row.program.as_ref().map(|row| {
            let task = program::program(source, row);
            task.map(|(spec, files, words)| (spec, Some(files), words))
        }),
    ];
    let mut asked = asked.into_iter().flatten();
    let (Some(first), None) = (asked.next(), asked.next()) else {
        let why = "a workload is exactly one of noise, ticks, calls, nohz, slices, latency \
                   and program";
        return Err(source.refuse(place, why));
    };
    let (spec, files, mut words) = first?;
    refuse_beside(source, row)?;
    let watch = row.trace.as_ref().map(|trace| trace.get_ref().0);
    let background = row.background.iter().map(|row| background_load(choice, row));
    let background = background.collect::<Result<Vec<BackgroundLoad>, Error>>()?;
    for BackgroundLoad { cpu, spinners } in &background {
        words += &format!(", beside {spinners} spinning on CPU {cpu}");
    }
    Ok(Work { background, spec, files, watch, words })
}

/// Refuses a trace, or a background load, that does not go with the measurement.
fn refuse_beside(source: &Source, row: &WorkloadRow) -> Result<(), Error> {
    let untraced = row.nohz.is_some() || row.slices.is_some() || row.program.is_some();
    if let (Some(trace), true) = (&row.trace, untraced) {
        let why = "only noise, ticks, calls and latency can be traced";
        return Err(source.refuse(trace.span(), why));
    }
    match row.background.first().filter(|_| row.program.is_some()) {
        Some(load) => {
            let why = "a program has no background load: run what competes with it as a service";
            Err(source.refuse(load.cpu.span(), why))
        }
        None => Ok(()),
    }
}

fn noise_task(choice: Choice<'_>, row: &NoiseRow) -> Result<(Spec, String), Error> {
    let cpu = choice.cpu(&row.cpu)?;
    let mut words = format!("noise for {} on CPU {cpu}", row.duration);
    let fifo = row.fifo.and_then(|fifo| u8::try_from(fifo.get()).ok());
    if let Some(fifo) = fifo {
        words += &format!(", SCHED_FIFO {fifo}");
    }
    if let Some(threshold) = &row.threshold {
        if threshold.get_ref().nanos() >= row.duration.nanos() {
            let why = "the threshold must be shorter than the duration";
            return Err(choice.source.refuse(threshold.span(), why));
        }
        words += &format!(", gaps from {threshold}");
    }
    let task = Spec::Noise(NoiseSpec {
        cpus: CpuSet::from_iter([cpu]),
        duration_ns: row.duration.nanos(),
        threshold_ns: row.threshold.as_ref().map(|length| length.get_ref().nanos()),
        fifo,
        trigger: Trigger::default(),
        phases: choice.phases,
        at_scale: None,
    });
    Ok((task, words))
}

fn ticks_task(choice: Choice<'_>, row: &TicksRow) -> Result<(Spec, String), Error> {
    let cpu = choice.cpu(&row.cpu)?;
    let duration = row.duration.nanos();
    let task = Spec::Ticks(TicksSpec {
        cpus: CpuSet::from_iter([cpu]),
        interval_ns: choice.phases.map_or(duration, |phases| phases.share(duration)),
        count: Some(choice.phases.map_or(1, |phases| u64::from(phases.count))),
    });
    Ok((task, format!("ticks for {} on CPU {cpu}", row.duration)))
}

fn calls_task(choice: Choice<'_>, row: &CallsRow) -> Result<(Spec, String), Error> {
    let cpu = choice.cpu(&row.cpu)?;
    let mut calls = Vec::new();
    for call in row.calls.iter() {
        if calls.contains(call.get_ref()) {
            return Err(choice.source.refuse(call.span(), "this call is named twice"));
        }
        calls.push(*call.get_ref());
    }
    let repeats = row.repeats.get();
    let kinds =
        if calls.len() == 1 { "1 call" } else { &format!("{} calls", calls.len()) };
    let words = format!("{kinds}, {repeats} times each, on CPU {cpu}");
    Ok((Spec::Calls(CallsSpec { cpu, calls, repeats, phases: choice.phases }), words))
}

fn nohz_task(choice: Choice<'_>, row: &NohzRow) -> Result<(Spec, String), Error> {
    let cpu = choice.cpu(&row.cpu)?;
    let how = if row.forced { "forced, " } else { "" };
    let mut words = format!("stop the tick of CPU {cpu}, {how}in {}", row.limit);
    let fifo = row.fifo.and_then(|fifo| u8::try_from(fifo.get()).ok());
    if let Some(fifo) = fifo {
        words += &format!(", SCHED_FIFO {fifo}");
    }
    if let Some(time) = &row.observe {
        words += &format!(", then spin for {time}");
    }
    let task = Spec::NohzTest(NohzSpec {
        cpu,
        tries: Some(choice.phases.map_or(1, |phases| u64::from(phases.count))),
        limit_ns: row.limit.nanos(),
        forced: row.forced,
        fifo,
        observe_ns: row.observe.as_ref().map_or(Nanos::ZERO, Length::nanos),
        phases: choice.phases,
    });
    Ok((task, words))
}

fn slices_task(choice: Choice<'_>, row: &SlicesRow) -> Result<(Spec, String), Error> {
    let sleep = row.sleep.as_ref().map_or(Nanos::from_millis(1), Length::nanos);
    let sample_ns = row.sample.as_ref().map(|sample| sample.get_ref().nanos());
    let duration = row.duration.nanos();
    let phase = choice.phases.map_or(duration, |phases| phases.share(duration));
    if let (Some(sample), true) = (&row.sample, sample_ns > Some(phase)) {
        let why = "a sample must not be longer than a phase: the duration by `phases`";
        return Err(choice.source.refuse(sample.span(), why));
    }
    let (spinners, sleepers) = (row.spinners.get(), row.sleepers.get());
    let getrusage_every = row.getrusage_every.map(Number::get);
    let mut words = format!("{spinners} spinning for {}", row.duration);
    if let Some(passes) = getrusage_every {
        words += &format!(", calling getrusage every {passes} iterations,");
    }
    if sleepers > 0 {
        let sleep = row.sleep.as_ref().map_or("1ms".to_owned(), Length::to_string);
        words += &format!(" beside {sleepers} that sleep {sleep} at a time");
    }
    if let Some(sample) = &row.sample {
        words += &format!(", read every {}", sample.get_ref());
    }
    let task = Spec::Slices(SlicesSpec {
        spinners,
        getrusage_every,
        sleepers,
        sleep_ns: sleep,
        burst_ns: row.burst.as_ref().map_or(Nanos::ZERO, Length::nanos),
        duration_ns: duration,
        cpus: (0..choice.cpus).map(Cpu::new).collect(),
        pinned: row.pinned,
        nice: 0,
        policy: Policy::Other,
        steps: Vec::new(),
        turns: 1,
        sample_ns,
        phases: choice.phases,
        simulated: None,
    });
    Ok((task, words))
}

fn latency_task(choice: Choice<'_>, row: &LatencyRow) -> Result<(Spec, String), Error> {
    let cpu = choice.cpu(&row.cpu)?;
    let interval = row.interval.get_ref();
    if interval.nanos() > row.duration.nanos() {
        let why = "the interval must not be longer than the duration";
        return Err(choice.source.refuse(row.interval.span(), why));
    }
    let fifo = row.fifo.and_then(|fifo| u8::try_from(fifo.get()).ok());
    let mut words =
        format!("wake-ups every {interval} for {} on CPU {cpu}", row.duration);
    if let Some(fifo) = fifo {
        words += &format!(", SCHED_FIFO {fifo}");
    }
    let task = Spec::Latency(LatencySpec {
        cpus: CpuSet::from_iter([cpu]),
        interval_ns: interval.nanos(),
        duration_ns: row.duration.nanos(),
        timer: Timer::ClockNanosleep,
        fifo,
        trigger: Trigger::default(),
    });
    Ok((task, words))
}

fn background_load(
    choice: Choice<'_>,
    row: &BackgroundRow,
) -> Result<BackgroundLoad, Error> {
    Ok(BackgroundLoad { cpu: choice.cpu(&row.cpu)?, spinners: row.spinners.get() })
}
