//! Tests of all charts, and what draws them for visual review.

use std::time::Duration;

use recording::{
    Blamed, CpuNoise, Culprit, CulpritKind, NoiseSeries, ProcCounts, Recording, Share,
};
use stats::{Better, Unit};
use summary::{ChartBar, ChartPanel, MetricChart, RunSet, Summary};
use units::{Cpu, Nanos, Ppm, Span};

use crate::cells::labelled::Cells;
use crate::chart;
use crate::chart::svg::checked::check_xml;
use crate::comparisons::history::{HistoryEntry, HistoryReport, MetricHistory};
use crate::comparisons::repeated::RepeatedRuns;
use crate::document::Document;
use crate::document::chart::Chart;
use crate::example::cell::{NEW, OLD, cell, lost, new_tick, old_tick, typical};
use crate::example::sets::run_set;
use crate::example::slices::{dense, holes, large, untraced, woken};
use crate::example::{GUEST, facts};
use crate::markdown::markdown_text;
use crate::terminal::chart::lines;
use crate::terminal::width::set_width;
use crate::terminal::{View, terminal_text};

type Bars<'a> = &'a [(&'a str, Option<f64>)];

/// A chart of one metric, with these panels.
pub(super) fn metric<'a>(panels: &[(&'a str, Bars<'a>)]) -> Chart {
    let about = summary::definitions()
        .find(|one| one.unit == Unit::Hz && one.better == Better::Less)
        .unwrap();
    let panel = |(name, bars): &(&'a str, Bars<'a>)| {
        let first = bars[0].1;
        let bar = |(at, (kernel, value)): (usize, &(&'a str, Option<f64>))| ChartBar {
            kernel,
            value: *value,
            range: value.map(|value| [0.97 * value, 1.04 * value]),
            is_varied: false,
            difference: first
                .filter(|_| at > 0)
                .zip(*value)
                .map(|(base, value)| Ppm::new((value / base - 1.0) * 1e6)),
            is_lost: value.is_none(),
        };
        ChartPanel {
            name,
            largest: bars.iter().filter_map(|(_, value)| *value).fold(0.0, f64::max),
            bars: bars.iter().enumerate().map(bar).collect(),
        }
    };
    let panels = panels.iter().map(panel).collect();
    let metric = MetricChart { key: "idle_instructions_hz", about, panels };
    let cells = Cells {
        experiment: "idle-hz",
        about: "what an idle second costs at each HZ, periodic and tickless",
        cells: &[],
        planned: 0,
        made_with: None,
        violations: None,
        series: &[],
        beside: &[],
        guests: 100,
    };
    super::cells::chart(&cells, &metric)
}

fn idle_hz() -> Chart {
    metric(&[
        (
            "nohz=off idle",
            &[
                ("build:debian:6.1,lean,HZ=1000", Some(2_214_265.0)),
                ("build:debian:6.1,lean,HZ=500", Some(1_129_660.0)),
                ("build:debian:6.1,lean,HZ=250", Some(586_340.0)),
                ("build:debian:6.1,lean,HZ=200", Some(476_839.0)),
                ("build:debian:6.1,lean,HZ=100", Some(259_073.0)),
                ("build:debian:6.1,lean,HZ=40", Some(126_881.0)),
                ("build:debian:6.1,lean,HZ=1000,NO_HZ=full", Some(2_229_396.0)),
            ],
        ),
        (
            "nohz=on idle",
            &[
                ("build:debian:6.1,lean,HZ=1000", Some(56_247.0)),
                ("build:debian:6.1,lean,HZ=500", Some(55_971.0)),
                ("build:debian:6.1,lean,HZ=40", None),
                ("build:debian:6.1,lean,HZ=1000,NO_HZ=full", Some(56_573.0)),
            ],
        ),
    ])
}

/// Pseudo-random numbers from 0 to 1 (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Noise of some seconds: a tick 250 times a second, disk interrupts in the middle third, a rare kernel
/// thread, and one millisecond of a program.
fn noise(cpus: u32, seconds: u64) -> NoiseSeries {
    let mut random = Random(42);
    let names =
        ["tick_nohz_handler", "virtio1-req.0", "kworker/1:2-events", "postgres", "RCU"];
    let kinds = [
        CulpritKind::Timer,
        CulpritKind::Irq,
        CulpritKind::Thread,
        CulpritKind::Thread,
        CulpritKind::Softirq,
    ];
    let culprits = names.iter().zip(kinds).map(|(name, kind)| Culprit {
        kind,
        name: (*name).to_owned(),
        thread: None,
    });
    let culprits: Vec<Culprit> = culprits.collect();
    let mut cpu = |number: u32| {
        let (mut gaps, mut shares) = (Vec::new(), Vec::new());
        for at in 0..seconds * 250 {
            let time = at * 4_000_000;
            let part = at as f64 / (seconds * 250) as f64;
            let (culprit, length) = match random.next() {
                some if some > 0.9997 => (3, 300_000.0 + 9e5 * random.next()),
                some if some > 0.99 => (2, 8_000.0 * (1.0 + 9.0 * random.next().powi(3))),
                some if some > 0.8 && (0.33..0.66).contains(&part) => (1, 12_000.0),
                some if some > 0.7 => (4, 900.0),
                _ => (0, 2_500.0),
            };
            let each = if number == 5 { 4.0 } else { 1.0 };
            let length = Nanos::from(Duration::from_secs_f64(
                length * each * (0.8 + 0.4 * random.next()) / 1e9,
            ));
            gaps.push(Span { start: Nanos::from_nanos(time), length });
            let (gap, ns, inside_ns) = (gaps.len() - 1, length, length);
            shares.push(Share { gap, culprit, ns, inside_ns, entry_ns: None });
        }
        CpuNoise {
            cpu: Cpu::new(number),
            began_ns: Nanos::ZERO,
            elapsed_ns: Nanos::from_secs(seconds),
            phases: Vec::new(),
            loop_ns: Nanos::from_nanos(20),
            passes: 1,
            gaps,
            lost: None,
            blamed: Some(Blamed {
                culprits: culprits.clone(),
                shares,
                ..Blamed::default()
            }),
            backwards: 0,
            proc: ProcCounts::default(),
        }
    };
    NoiseSeries {
        cpus: (0..cpus).map(&mut cpu).collect(),
        ..crate::example::noise_series(1)
    }
}

fn recording_of_noise(cpus: u32, seconds: u64) -> Recording {
    let mut recording = crate::example::noise(GUEST, 1);
    *recording.body.noise_mut().unwrap() = noise(cpus, seconds);
    recording
}

/// A history with a change and an outlier.
fn history() -> HistoryReport {
    let mut random = Random(7);
    let values = |level: f64, random: &mut Random| -> Vec<f64> {
        let value = |day: u32, random: &mut Random| {
            let level = if day < 50 { level } else { level * 1.4 };
            level * (1.0 + 0.2 * random.next()) * if day == 20 { 3.0 } else { 1.0 }
        };
        (0..80).map(|day| value(day, random)).collect()
    };
    let mut metric = |name: &str, unit, level| {
        let values = values(level, &mut random);
        let entry = |(day, value): (usize, &f64)| {
            let taken = format!("2026-{:02}-{:02}T06:00:00Z", 9 + day / 30, day % 30 + 1);
            HistoryEntry { id: 1, taken, value: *value }
        };
        MetricHistory {
            metric: name.to_owned(),
            unit,
            entries: values.iter().enumerate().map(entry).collect(),
            stretches: stats::stretches(&values),
        }
    };
    let metrics = [
        ("noise_ppm", Unit::Ppm, 1100.0),
        ("gap_ns_p99", Unit::Ns, 5e3),
        ("gaps_hz", Unit::Hz, 260.0),
    ];
    HistoryReport {
        machine: "node-7".to_owned(),
        kind: "check".to_owned(),
        metrics: metrics.map(|(name, unit, level)| metric(name, unit, level)).into(),
        changes: Vec::new(),
    }
}

/// Runs of a program with one or two variants of the settings.
fn repeated(sets: usize) -> Option<Chart> {
    let recording = recording_of_noise(2, 4);
    let each: [&[u64]; 2] =
        [&[98, 99, 100, 101, 102, 103, 101, 100, 130], &[84, 83, 82, 86, 85, 81, 80]];
    let all: Vec<RunSet> =
        each[..sets].iter().map(|each| run_set(&recording, each)).collect();
    let variants = ["unmodified", "vm.stat_interval=120"].map(str::to_owned);
    let measurement = "noise -c 0,1 -d 4";
    let runs = RepeatedRuns {
        measurement,
        variants: &variants[..sets],
        sets: &all,
        folders: &[],
        files: &[],
        known: &[],
        seed: 7,
        doubts: &[],
    };
    super::repeated::chart(&runs, 6)
}

/// All charts, with names of files.
fn all() -> Vec<(String, Chart)> {
    let mut all = vec![("idle-hz".to_owned(), idle_hz())];
    for (name, (spec, series)) in [
        ("woken", woken()),
        ("large", large()),
        ("holes", holes()),
        ("dense", dense()),
        ("untraced", untraced()),
    ] {
        let summary = summary::SlicesSummary::of(None, &spec, &series);
        let picture = summary::SlicesPicture::of(&spec, &series);
        let chart =
            super::slices::chart(&facts(GUEST), &spec, &summary, picture.as_ref());
        all.push((format!("slices-{name}"), chart));
    }
    let cells = [OLD, NEW].map(|kernel| cell("other", kernel, lost()));
    let (a, b) = (typical(&cells[0], old_tick()), typical(&cells[1], new_tick()));
    all.push(("flame-diff".to_owned(), super::flame::compared(&a, &b)));
    for (name, recording) in [
        ("noise-1", recording_of_noise(1, 60)),
        ("noise-6", recording_of_noise(6, 10)),
        ("noise-256", recording_of_noise(256, 4)),
        ("check", crate::example::check(GUEST, 2)),
        ("latency", crate::example::latency::latency(GUEST, 2)),
        ("latency-9", crate::example::latency::latency(GUEST, 9)),
        ("jitter", crate::example::jitter(GUEST)),
        ("wakers", crate::example::wakers(GUEST, 20)),
        ("guests", crate::example::guests(GUEST, 20)),
        ("watch", crate::example::watch::watch(GUEST)),
        ("placed", crate::example::slices_placed(GUEST)),
    ] {
        for chart in super::of(&recording, &Summary::of(&recording)) {
            all.push((format!("{name}-{}", chart.name), chart));
        }
    }
    let recording = recording_of_noise(2, 4);
    let set = |each: &[u64]| run_set(&recording, each);
    let comparison = summary::compare(
        &set(&[98, 99, 100, 101, 102, 103, 101]),
        &[set(&[84, 83, 82, 86, 85, 81, 80])],
        Ppm::new(1e4),
    );
    all.extend(
        super::compared::chart("B", &comparison[0])
            .map(|one| ("compared".to_owned(), one)),
    );
    all.extend(
        super::compared::strip("B", &comparison[0])
            .map(|one| ("compared-strip".to_owned(), one)),
    );
    all.extend(
        [1, 2]
            .into_iter()
            .filter_map(|sets| Some((format!("repeated-{sets}"), repeated(sets)?))),
    );
    all.extend(super::history::chart(&history()).map(|one| ("history".to_owned(), one)));
    all
}

/// Check that all charts are well-formed, load nothing, name their marks, have their numbers in a table, and
/// that those in text fit the terminal.
#[test]
fn all_are_complete() {
    for (name, chart) in all() {
        let svg = chart::file(&chart);
        check_xml(&svg);
        let links = svg.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!links.contains("http") && !links.contains("href"), "{name}");
        assert!(svg.matches("<title>").count() > 2, "{name}");
        assert!(!chart::numbers::numbers(&chart).is_empty(), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{name}");
        for width in [40, 60, 80] {
            set_width(width);
            let text = lines(&chart, width);
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{name}: {text}"
            );
        }
    }
}

/// Check that text has no heading above charts that it cannot draw.
#[test]
fn no_empty_section() {
    let view = View { has_pictures: true, ..View::FULL };
    for (name, is_drawn) in [("history", false), ("noise-6-lengths", true)] {
        let chart = all().into_iter().find(|(other, _)| other == name).unwrap().1;
        let section = Document::section("Pictures", Document::default().add(chart));
        for text in [terminal_text(&section, view), markdown_text(&section)] {
            assert_eq!(text.contains("Pictures"), is_drawn, "{text}");
        }
    }
}

/// Check that recordings have their charts, and none of a kind without.
#[test]
fn of_recordings() {
    let count =
        |recording: &Recording| super::of(recording, &Summary::of(recording)).len();
    assert_eq!(count(&recording_of_noise(1, 4)), 4);
    assert_eq!(count(&crate::example::calls(GUEST)), 0);
    assert!(super::history::chart(&history()).is_some());
}

/// Check the titles of single charts: names with numbers and units.
#[test]
fn titles() {
    let svg = |name: &str| {
        let found = all().into_iter().find(|(other, _)| other == name);
        chart::file(&found.unwrap().1)
    };
    for (name, title) in [
        ("noise-1-noise-by-cpu", "CPU 0: 0.0438 %"),
        ("noise-1-lengths", "p99: 14.1 µs"),
        ("noise-256-job-hits", "job of 1 ms: 25.1 %"),
        ("compared", "gap, p99, CPU 0: -17.8 % (-19.8 % to -15.8 %)"),
        ("wakers-wake-ups", "1234 notifier: 1000/s"),
        ("idle-hz", "build:debian:6.1,lean,HZ=500: 1,129,660/s (-49.0 %)"),
    ] {
        assert!(
            svg(name).contains(&format!("<title>{title}</title>")),
            "{name}: {title}"
        );
    }
}

/// Check the charts in text at three widths: bars, stacked bars, a histogram, a map, a strip over time,
/// intervals and points.
#[test]
fn in_text() {
    for width in [60, 80, 120] {
        set_width(width);
        let simple = [
            "idle-hz",
            "noise-6-noise-over-time",
            "noise-6-noise-by-cpu",
            "noise-6-lengths",
            "noise-1-lengths",
            "guests-guests",
            "compared-strip",
            "repeated-1",
            "repeated-2",
        ];
        let drawn = all().into_iter().filter(|(name, _)| simple.contains(&name.as_str()));
        let text: Vec<String> = drawn.map(|(_, chart)| lines(&chart, width)).collect();
        insta::assert_snapshot!(format!("in_text_{width}"), text.join("\n"));
    }
}

/// Check nothing: writes all charts into a temporary folder for visual review.
#[test]
#[ignore = "writes pictures for visual review"]
fn write_pictures() {
    let folder = std::env::temp_dir().join("noisefloor-charts");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, chart) in all() {
        let svg = chart::file(&chart);
        check_xml(&svg);
        std::fs::write(folder.join(format!("{name}.svg")), svg).unwrap();
        let text = lines(&chart, 80);
        let numbers = crate::terminal::full_text(&chart::numbers::numbers(&chart));
        std::fs::write(folder.join(format!("{name}.txt")), text + &numbers).unwrap();
    }
}
