//! OS noise: over time, by CPU, and as a risk for jobs.

use recording::NoiseSeries;
use stats::Unit;
use summary::{HitRange, NoiseByCpu, NoiseOverTime, NoiseSummary, Risk, SourceShares};
use units::{Cpu, Nanos, Ppm, Span};

use crate::charts::values::{heat, nanos};
use crate::document::chart::{
    Axis, Chart, Mark, Panel, SERIES, Series, Shape, Tone, ppm,
};
use crate::document::text::{Text, text};
use crate::number::{self, ShareUnit};

/// The number of bins of time.
const BINS: u64 = 60;
/// The most CPUs with a bar each, and with a line each.
const BARS: usize = 40;
const LINES: usize = 6;

/// The time that all CPUs lost, over time by source; `None` without gaps.
pub(crate) fn over_time(series: &NoiseSeries) -> Option<Chart> {
    let found = NoiseOverTime::of(series, BINS, SERIES - 1);
    let since = found.incomplete_since;
    let note = since.map(|since| {
        text!(
            "Gaps after {} were only counted, and are not shown.",
            number::duration(since)
        )
    });
    (!found.sources.is_empty()).then(|| Chart {
        panels: vec![lost(&found), longest(&found)],
        notes: note.into_iter().collect(),
        ..Chart::new("noise-over-time", "Noise over time")
    })
}

/// The share of their time that CPUs lost to each source.
fn lost(found: &NoiseOverTime) -> Panel {
    let shares = found.sources.iter().flat_map(|source| &source.shares);
    let unit = ShareUnit::of(shares.copied());
    let is_traced = found.sources.iter().any(|source| source.name.is_some());
    let sources = found.sources.iter().enumerate().map(|(at, source)| {
        let marks = found.bins.iter().zip(&source.shares).map(|(bin, share)| {
            let words = number::any(share.map(|share| unit.print(share)));
            Mark::over(ends(*bin), [0.0, ppm(*share)]).says(span(*bin), words)
        });
        let (tone, name) = match &source.name {
            None if !is_traced => (Tone::Series(at), "all gaps".into()),
            name => named(at, name.as_deref(), source.is_own),
        };
        Series::new(Shape::Box, tone, name, marks)
    });
    let x = Axis::linear("time since the beginning", Unit::Ns);
    Panel::new(x, Axis::linear("share of the CPUs' time", Unit::Ppm))
        .titled("Lost time", "")
        .stacked(sources)
}

fn longest(found: &NoiseOverTime) -> Panel {
    let mark = |(bin, gap): (&Span, &Option<Nanos>)| {
        let middle = ends(*bin).iter().sum::<f64>() / 2.0;
        Some(Mark::at(middle, nanos((*gap)?)).says(span(*bin), number::duration((*gap)?)))
    };
    let marks = found.bins.iter().zip(&found.longest).filter_map(mark);
    let x = Axis::linear("time since the beginning", Unit::Ns);
    Panel::new(x, Axis::log("longest gap", Unit::Ns))
        .titled("Longest gap that began in each part", "")
        .series(Series::new(Shape::Point, Tone::Text, "", marks))
}

fn ends(span: Span) -> [f64; 2] {
    [span.start, span.end()].map(nanos)
}

fn span(span: Span) -> Text {
    text!("{} to {}", number::duration(span.start), number::duration(span.end()))
}

/// The colour and the name of a source.
fn named(at: usize, name: Option<&str>, is_own: bool) -> (Tone, Text) {
    match name {
        Some(name) if is_own => (Tone::Series(at), text!("{} itself", Text::name(name))),
        Some(name) => (Tone::Series(at), Text::name(name)),
        None => (Tone::Muted, "all others".into()),
    }
}

/// What each CPU lost, by source; of many CPUs a map. `None` if events were not traced.
pub(crate) fn by_cpu(summary: &NoiseSummary) -> Option<Chart> {
    let found = summary.by_cpu(SERIES - 1).filter(|found| !found.sources.is_empty())?;
    let is_map = found.cpus.len() > BARS;
    let panel = if is_map { map(&found) } else { bars(&found, summary) };
    Some(Chart::new("noise-by-cpu", "Lost time by CPU and source").panel(panel))
}

fn bars(found: &NoiseByCpu, summary: &NoiseSummary) -> Panel {
    let total = |cpu: Cpu| {
        let found = summary.cpus.iter().find(|one| one.cpu == cpu);
        number::known(found.and_then(|one| one.noise_ppm))
    };
    let series = found.sources.iter().enumerate().map(|(at, source)| {
        let is_last = at + 1 == found.sources.len();
        let marks = marks(found, source).into_iter().zip(&found.cpus).enumerate();
        let marks = marks.map(|(band, ((label, share, words), cpu))| {
            let beside = if is_last { total(*cpu) } else { Text::default() };
            Mark::bar(band, share).says(label, words).beside(beside)
        });
        let (tone, name) = named(at, source.name.as_deref(), source.is_own);
        Series::new(Shape::Box, tone, name, marks)
    });
    let cpus = found.cpus.iter().map(|cpu| text!("CPU {}", *cpu));
    let x = Axis::linear("share of the CPU's time", Unit::Ppm);
    Panel::new(x, Axis::bands(cpus)).stacked(series)
}

fn map(found: &NoiseByCpu) -> Panel {
    let shares = found.sources.iter().flat_map(|source| &source.shares);
    let most = shares.map(|share| ppm(*share)).fold(0.0, f64::max);
    let name = |source: &SourceShares| named(0, source.name.as_deref(), source.is_own).1;
    let cells = found.sources.iter().enumerate().flat_map(|(at, source)| {
        let marks = marks(found, source).into_iter().enumerate();
        marks.map(move |(band, (label, share, words))| {
            let [x, y] = [at, band].map(|at| [at as f64, at as f64 + 1.0]);
            let label = text!("{}, {}", label, name(source));
            Mark::over(x, y).tone(heat(share, most)).says(label, words)
        })
    });
    let key = text!("share of the CPU's time: 0 to {}", number::share(Ppm::new(most)));
    let cells = Series::new(Shape::Box, Tone::Heat(1.0), key, cells);
    let cpus = found.cpus.iter().map(|cpu| text!("CPU {}", *cpu));
    Panel::new(Axis::bands(found.sources.iter().map(name)), Axis::bands(cpus))
        .series(cells)
}

/// The name of each CPU, and the share of its time that a source took.
fn marks(found: &NoiseByCpu, source: &SourceShares) -> Vec<(Text, f64, Text)> {
    let all = found.sources.iter().flat_map(|source| &source.shares);
    let unit = ShareUnit::of(all.copied());
    let mark = |(cpu, share): (&Cpu, &Option<Ppm>)| {
        let words = number::any(share.map(|share| unit.print(share)));
        (text!("CPU {}", *cpu), ppm(*share), words)
    };
    found.cpus.iter().zip(&source.shares).map(mark).collect()
}

/// The probability that a job meets a gap; `None` without a measurement.
pub(crate) fn hits(series: &NoiseSeries) -> Option<Chart> {
    let x = Axis::log("CPU time of the job", Unit::Ns);
    let panel = Panel::new(x, Axis::linear("probability of at least one gap", Unit::Ppm));
    let panel = match series.cpus.len() {
        ..=LINES => hits_of_each(panel, series),
        _ => hits_of_all(panel, &summary::job_hit_ranges(&series.cpus)),
    };
    let has_points = panel.series.iter().any(|series| !series.marks.is_empty());
    let title = "Probability that a job is interrupted";
    has_points.then(|| Chart::new("job-hits", title).panel(panel))
}

/// The risk of a job, between two shares.
fn hit(job: Nanos, [low, high]: [Ppm; 2]) -> Mark {
    Mark::over([nanos(job); 2], [low.get(), high.get()])
        .says(text!("job of {}", number::duration(job)), number::share(high))
}

fn hits_of_each(panel: Panel, series: &NoiseSeries) -> Panel {
    let lines = series.cpus.iter().enumerate().map(|(at, cpu)| {
        let risks = summary::job_hits(cpu).into_iter();
        let point = |Risk { job_ns, hit_ppm }| Some(hit(job_ns, [hit_ppm?; 2]));
        let name = text!("CPU {}", cpu.cpu);
        Series::new(Shape::Line, Tone::Series(at), name, risks.filter_map(point))
    });
    lines.fold(panel, Panel::series)
}

fn hits_of_all(panel: Panel, ranges: &[HitRange]) -> Panel {
    let worst = ranges
        .iter()
        .map(|one| hit(one.job_ns, [one.min_mean_max[0], one.min_mean_max[2]]));
    let mean = ranges.iter().map(|one| hit(one.job_ns, [one.min_mean_max[1]; 2]));
    let name = "from the best to the worst CPU";
    panel
        .series(Series::new(Shape::Area, Tone::Series(5), name, worst))
        .series(Series::new(Shape::Line, Tone::Series(0), "mean of all CPUs", mean))
}
