//! The charts of the other kinds: jitter over the tests, wake-ups of threads, CPUs, guests.

use recording::{JitterSeries, JitterSpec};
use stats::{Bin, Unit, binned};
use summary::{
    GuestSummary, GuestsSummary, TopCpuSummary, TopSummary, WakersSummary, WatchSummary,
    WatchedThreadSummary, jitters,
};
use units::{LengthUnit, PerSecond, Ppm};

use crate::document::chart::{Axis, Chart, Mark, Panel, Series, Shape, Tone};
use crate::document::text::{Text, text};
use crate::number;

/// The most bins of a long series.
const BINS: usize = 120;
/// The most bars.
const BARS: usize = 40;
/// The same of what used CPUs: most of them use almost nothing.
const SOURCES: usize = 12;

/// The jitter of each test, or of bins of tests; `None` without tests.
pub(crate) fn jitter(spec: &JitterSpec, series: &JitterSeries) -> Option<Chart> {
    let values: Vec<f64> =
        jitters(spec, series).into_iter().map(|value| value as f64).collect();
    let unit = match spec.unit {
        LengthUnit::Ns => Unit::Ns,
        LengthUnit::Ticks => Unit::Count,
    };
    let panel =
        Panel::new(Axis::linear("test", Unit::Count), Axis::linear("jitter", unit));
    let panel = over_time(panel, &binned(&values, BINS), unit, |at| {
        text!("test {}", number::count(u64::try_from(at + 1).unwrap_or(u64::MAX)))
    });
    let title = "Jitter over the tests: the slowest loop minus the fastest";
    (!values.is_empty()).then(|| Chart::new("jitter", title).panel(panel))
}

/// The panel with a line of means in the range of all values.
pub(super) fn over_time(
    panel: Panel,
    bins: &[Bin],
    unit: Unit,
    name: impl Fn(usize) -> Text,
) -> Panel {
    let label = |bin: &Bin| match bin.end - bin.begin {
        1 => name(bin.begin),
        _ => text!("{} to {}", name(bin.begin), name(bin.end - 1)),
    };
    let x = |bin: &Bin| [bin.begin as f64, bin.end as f64];
    let mean = bins.iter().map(|bin| {
        let mean = number::in_unit(bin.mean, unit);
        Mark::over(x(bin), [bin.mean; 2]).says(label(bin), mean)
    });
    let range = bins.iter().map(|bin| {
        let [min, max] = [bin.min, bin.max].map(|value| number::in_unit(value, unit));
        Mark::over(x(bin), [bin.min, bin.max])
            .says(label(bin), text!("{} to {}", min, max))
    });
    let is_binned = bins.iter().any(|bin| bin.end - bin.begin > 1);
    let range = Series::new(Shape::Area, Tone::Series(5), "smallest to largest", range);
    let mean_name = if is_binned { "mean" } else { "" };
    let mean = Series::new(Shape::Line, Tone::Series(0), mean_name, mean);
    if is_binned { panel.series(range).series(mean) } else { panel.series(mean) }
}

/// The threads that wake up most often; `None` without one.
pub(crate) fn wakers(summary: &WakersSummary) -> Option<Chart> {
    let threads = || summary.threads.iter().take(BARS);
    let names = threads()
        .map(|thread| text!("{} {}", thread.tid.to_string(), Text::name(&thread.name)));
    let all = threads().map(|thread| thread.wakeups_hz.map(rate));
    let preempted = threads()
        .map(|thread| thread.preempted_hz.filter(|rate| rate.get() > 0.0).map(rate));
    let panel = Panel::new(Axis::linear("per second", Unit::Hz), Axis::bands(names))
        .bars(Mark::bar, Tone::Series(0), "wake-ups", all)
        .with_words()
        .bars(Mark::part, Tone::Strong, "preemptions of a task", preempted);
    let title = "Threads that wake up most often";
    (!summary.threads.is_empty()).then(|| Chart::new("wake-ups", title).panel(panel))
}

fn rate(rate: PerSecond) -> (f64, Text) {
    (rate.get(), number::rate(rate))
}

/// The time on CPUs and waiting of the threads that waited longest; `None` without one.
pub(crate) fn watched(summary: &WatchSummary) -> Option<Chart> {
    let threads = || summary.threads.iter().take(BARS);
    let name = |thread: &WatchedThreadSummary| match thread.sums.tid {
        Some(tid) => text!("{} {}", tid.to_string(), Text::name(&thread.sums.name)),
        None => text!("{} {}", thread.sums.count, Text::name(&thread.sums.name)),
    };
    let share = |share: Ppm| (share.get(), number::share(share));
    let names = || Axis::bands(threads().map(name));
    let bars = |title: &'static str, of: fn(&WatchedThreadSummary) -> Option<Ppm>| {
        Panel::new(Axis::linear("share of the time", Unit::Ppm), names())
            .titled(title, "")
            .bars(Mark::bar, Tone::Series(0), "", threads().map(|one| of(one).map(share)))
            .with_words()
    };
    let waiting = bars("Waiting for a CPU", |one| one.wait_ppm);
    let running = bars("On CPUs", |one| one.run_ppm);
    (!summary.threads.is_empty())
        .then(|| Chart::new("threads", "Threads").panel(waiting).panel(running))
}

/// What used each CPU, and the sources that used most; `None` without a CPU.
pub(crate) fn top(summary: &TopSummary) -> Option<Chart> {
    let cpus = || summary.cpus.iter().take(BARS);
    let label = |cpu: &TopCpuSummary| text!("CPU {}", cpu.cpu);
    let kinds = ["programs", "kernel threads", "interrupts and softirqs"];
    let series = kinds.into_iter().enumerate().map(|(at, name)| {
        let bar = |(band, cpu): (usize, &TopCpuSummary)| {
            let shares = [cpu.programs_ppm, cpu.kernel_ppm, cpu.interrupts_ppm];
            let share = shares[at].unwrap_or(Ppm::new(0.0));
            let words = number::share(share);
            Mark::bar(band, share.get()).says(label(cpu), words)
        };
        Series::new(Shape::Box, Tone::Series(at), name, cpus().enumerate().map(bar))
    });
    let used = Axis::linear("share of the CPU's time", Unit::Ppm);
    let used = Panel::new(used, Axis::bands(cpus().map(label))).stacked(series);
    let sources = || summary.sources.iter().take(SOURCES);
    let names = Axis::bands(sources().map(|source| Text::name(&source.name)));
    let share = |share: Ppm| (share.get(), number::ratio(share));
    let shares = sources().map(|source| source.ppm.map(share));
    let most = Panel::new(Axis::linear("share of one CPU", Unit::Ppm), names)
        .titled("Sources", "")
        .bars(Mark::bar, Tone::Series(0), "", shares)
        .with_words();
    let chart = Chart::new("cpus", "What used the CPUs").panel(used.titled("CPUs", ""));
    let chart = if summary.sources.is_empty() { chart } else { chart.panel(most) };
    (!summary.cpus.is_empty()).then_some(chart)
}

/// The CPU time and the wake-ups of each guest; `None` without one.
pub(crate) fn guests(summary: &GuestsSummary) -> Option<Chart> {
    let guests = || summary.guests.iter().take(BARS);
    let name = |guest: &GuestSummary| {
        let name = guest.name.as_ref().unwrap_or(&guest.process);
        text!("{} {}", guest.pid.to_string(), Text::name(name))
    };
    let unknown = || (0.0, number::known(None::<Text>));
    let share = |share: Ppm| (share.get(), number::share(share));
    let cpu = guests().map(|guest| guest.cpu_ppm.map(share).or_else(|| Some(unknown())));
    let saved = guests()
        .map(|guest| guest.saving_ppm.filter(|saving| saving.get() > 0.0).map(share));
    let wakeups = guests()
        .map(|guest| guest.wakeups_per_vcpu_hz.map(rate).or_else(|| Some(unknown())));
    let names = || Axis::bands(guests().map(name));
    let saving = "would be saved with as few wake-ups as the best";
    let time = Panel::new(Axis::linear("share of one CPU", Unit::Ppm), names())
        .titled("CPU time", "")
        .bars(Mark::bar, Tone::Series(0), "used", cpu)
        .with_words()
        .bars(Mark::part, Tone::Series(1), saving, saved);
    let wakeups = Panel::new(Axis::linear("per second and vCPU", Unit::Hz), names())
        .titled("Wake-ups", "")
        .bars(Mark::bar, Tone::Series(0), "", wakeups)
        .with_words();
    (!summary.guests.is_empty())
        .then(|| Chart::new("guests", "Guests").panel(time).panel(wakeups))
}
