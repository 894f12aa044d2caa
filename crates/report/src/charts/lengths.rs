//! Lengths by size on logarithmic scales, with quantiles, and the share of those that are longer; of
//! many CPUs a map.

use itertools::Itertools;
use recording::{CpuNoise, LengthKind, NoiseSeries, Recording};
use stats::{LengthBar, LengthBars, Unit, length_counts};
use summary::{LengthInterval, LengthLog};

use crate::charts::values::{bin, heat_of_count, length, nanos, open_bin, rules};
use crate::document::chart::{Axis, Chart, Mark, Panel, Shape, Tone};
use crate::document::text::{Text, text};
use crate::number;

/// The most CPUs with a panel each.
const PANELS: usize = 4;

/// The lengths of a recording: by CPU or tag, and together.
pub(crate) struct Lengths {
    kind: LengthKind,
    groups: Vec<(Text, LengthBars)>,
    all: LengthBars,
}

impl Lengths {
    /// Those of a recording; `None` if it has none.
    pub(crate) fn of(recording: &Recording) -> Option<Self> {
        match recording.body.noise() {
            Some(series) => Some(Self::of_gaps(series)),
            None => LengthLog::of(recording).ok().map(|log| Self::of_log(&log)),
        }
    }

    /// Those of a log.
    fn of_log(log: &LengthLog) -> Self {
        let lengths = |of: &[&LengthInterval]| {
            LengthBars::of(of.iter().flat_map(|one| one.lengths.iter().copied()))
        };
        let key = |one: &&LengthInterval| (one.cpu, one.tag.clone());
        let groups = log.intervals.iter().into_group_map_by(key).into_iter();
        let groups = groups.sorted_by_key(|(key, _)| key.clone());
        Self {
            kind: log.kind,
            groups: groups
                .map(|((cpu, tag), all)| (name(cpu, tag), lengths(&all)))
                .collect(),
            all: all_of(log),
        }
    }

    /// Those of gaps, of which there can be millions.
    fn of_gaps(series: &NoiseSeries) -> Self {
        let gaps =
            |cpu: &CpuNoise| length_counts(cpu.gaps.iter().map(|gap| (gap.length, 1)));
        let counts: Vec<_> = series.cpus.iter().map(gaps).collect();
        let names = series.cpus.iter().map(|cpu| name(Some(cpu.cpu), None));
        let bars = counts.iter().map(|counts| LengthBars::of(counts.iter().copied()));
        Self {
            kind: LengthKind::Gap,
            groups: names.zip(bars).collect(),
            all: LengthBars::of(counts.concat()),
        }
    }
}

/// All lengths of a recording in one panel; `None` without lengths.
pub(crate) fn overview(recording: &Recording) -> Option<Chart> {
    let (kind, all) = match recording.body.noise() {
        Some(series) => (LengthKind::Gap, all_gaps(series)),
        None => LengthLog::of(recording).ok().map(|log| (log.kind, all_of(&log)))?,
    };
    let (title, what, axis) = words(kind);
    let x = Axis::log(axis, Unit::Ns);
    let panel = || counts(&"All CPUs".into(), what, &all, x);
    (all.count > 0).then(|| Chart::new("lengths", title).panel(panel()))
}

/// All gaps together.
fn all_gaps(series: &NoiseSeries) -> LengthBars {
    let all = series.cpus.iter().flat_map(|cpu| &cpu.gaps);
    LengthBars::of(all.map(|gap| (gap.length, 1)))
}

/// All lengths of a log together.
fn all_of(log: &LengthLog) -> LengthBars {
    LengthBars::of(log.intervals.iter().flat_map(|one| one.lengths.iter().copied()))
}

/// The title of the chart, what has the lengths, and the axis.
fn words(kind: LengthKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        LengthKind::Gap => ("Gaps by length", "gaps", "length of a gap"),
        LengthKind::WakeupLatency => ("Wake-ups by latency", "wake-ups", "latency"),
        LengthKind::TimerInterruptLatency => {
            ("Timer interrupts by latency", "interrupts", "latency")
        }
        LengthKind::UserLatency => {
            ("Returns to user mode by latency", "returns", "latency")
        }
        LengthKind::Value => ("Values by size", "values", "value"),
    }
}

/// The chart of the lengths of a recording; `None` without lengths.
pub(crate) fn chart(of: &Lengths) -> Option<Chart> {
    let (title, what, axis) = words(of.kind);
    let groups: Vec<&(Text, LengthBars)> =
        of.groups.iter().filter(|(_, lengths)| lengths.count > 0).collect();
    let all = &of.all;
    let x = || Axis::log(axis, Unit::Ns);
    let chart = Chart::new("lengths", title);
    let panels: Vec<Panel> = match groups.len() {
        0 => return None,
        1..=PANELS => {
            groups.iter().map(|(name, of)| counts(name, what, of, x())).collect()
        }
        _ => vec![map(&groups, x()), counts(&"All CPUs".into(), what, all, x())],
    };
    Some(Chart { panels, ..chart }.panel(longer(what, all, x())))
}

fn name(cpu: Option<units::Cpu>, tag: Option<String>) -> Text {
    match (cpu, tag) {
        (Some(cpu), _) => text!("CPU {}", cpu),
        (None, Some(tag)) => Text::name(tag),
        (None, None) => "all".into(),
    }
}

/// How many lengths there are of each size, with quantiles.
fn counts(name: &Text, what: &str, of: &LengthBars, x: Axis) -> Panel {
    let bars = of.bars.iter().filter(|bar| bar.count > 0).map(|bar| {
        bin([bar.from, bar.below], bar.count as f64, number::count(bar.count))
    });
    let [p50, p99, p99_9, max] = of.quantiles;
    let rules = rules([("p50", p50), ("p99", p99), ("p99.9", p99_9), ("max", max)]);
    let count = number::count(of.count);
    Panel::new(x, Axis::log("how many", Unit::Count))
        .titled(text!("{}: {} {}", name.clone(), count, what), "")
        .draw(Shape::Box, Tone::Series(0), "", bars)
        .draw(Shape::Rule, Tone::Text, "", rules)
}

/// The share of lengths that are longer than each, down to the rarest.
fn longer(what: &str, of: &LengthBars, x: Axis) -> Panel {
    let point = |bar: &LengthBar| {
        let longer = bar.longer.filter(|longer| longer.get() > 0.0)?;
        let label = text!("longer than {}", number::duration(bar.below));
        let mark = Mark::at(nanos(bar.below), longer.get());
        Some(mark.says(label, number::share(longer)))
    };
    let points = of.bars.iter().filter_map(point);
    Panel::new(x, Axis::log(text!("share of all {} that are longer", what), Unit::Ppm))
        .titled("How many are longer", "")
        .draw(Shape::Line, Tone::Series(0), "", points)
}

/// A row of lengths for each CPU.
fn map(groups: &[&(Text, LengthBars)], x: Axis) -> Panel {
    let bars = groups.iter().flat_map(|(_, of)| &of.bars);
    let most = bars.map(|bar| bar.count).max().unwrap_or(0);
    let cells = groups.iter().enumerate().flat_map(|(band, (name, of))| {
        of.bars.iter().filter(|bar| bar.count > 0).map(move |bar| {
            let x = open_bin(bar.from, bar.below);
            Mark::over(x, [band as f64, band as f64 + 1.0])
                .tone(heat_of_count(bar.count, most))
                .says(
                    text!("{}, {}", name.clone(), length(bar.from, bar.below)),
                    number::count(bar.count),
                )
        })
    });
    let key = text!("from 1 to {} on a logarithmic scale", number::count(most));
    Panel::new(x, Axis::bands(groups.iter().map(|(name, _)| name.clone())))
        .titled("By CPU", "")
        .draw(Shape::Box, Tone::Heat(1.0), key, cells)
}
