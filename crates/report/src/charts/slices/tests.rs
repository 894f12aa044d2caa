use proptest::prelude::*;
use recording::{SlicesSeries, SlicesSpec};
use summary::{SlicesPicture, SlicesSummary};
use units::Nanos;

use crate::chart;
use crate::chart::svg::checked::check_xml;
use crate::document::Document;
use crate::document::chart::Chart;
use crate::example::slices::{dense, holes, large, untraced, woken};
use crate::example::{GUEST, facts};
use crate::html_page;

fn picture((spec, series): &(SlicesSpec, SlicesSeries)) -> Chart {
    let summary = SlicesSummary::of(None, spec, series);
    let picture = SlicesPicture::of(spec, series);
    super::chart(&facts(GUEST), spec, &summary, picture.as_ref())
}

fn draw(recorded: &(SlicesSpec, SlicesSeries)) -> String {
    let svg = chart::file(&picture(recorded));
    check_xml(&svg);
    svg
}

/// The left end and the width of a rectangle.
fn extent(line: &str) -> [f64; 2] {
    let path = line.split_once(" d=\"M").unwrap().1.split_once('v').unwrap().0;
    let (start, width) = path.split_once('h').unwrap();
    [start.split_once(' ').unwrap().0, width].map(|number| number.parse().unwrap())
}

/// Check that a picture is well-formed, loads nothing, has each variant's figures and a row
/// for each CPU, and that stretches are inside rows.
#[test]
fn two_steps() {
    let svg = draw(&woken());
    let links = svg.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    assert!(!links.contains("http") && !links.contains("href"));
    assert_eq!(svg.matches(">CPU 0</text>").count(), 2);
    assert!(svg.contains(">mean slice 1.02 ms, "));
    assert!(svg.contains(">mean slice 3.54 ms, "));
    let spinners = svg.lines().filter(|line| line.contains("<title>spin/"));
    let mut count = 0;
    for line in spinners {
        let [x, width] = extent(line);
        assert!(x >= 16.0 && width > 0.0 && x + width <= 584.01, "{line}");
        count += 1;
    }
    assert!(count > 100, "{count}");
}

/// Check that a wake-up has a mark with a head if it preempts a task, and one without a head
/// otherwise.
#[test]
fn marks() {
    let svg = draw(&woken());
    let (as_found, off) = svg.split_once(">WAKEUP_PREEMPTION=off</text>").unwrap();
    let marks = |svg: &str, has_head: bool| {
        let mark = |line: &&str| line.contains("<title>sleep/");
        let lines = svg.lines().filter(mark);
        lines.filter(|line| line.contains("h6.4z") == has_head).count()
    };
    assert!(marks(as_found, true) > 90 && marks(as_found, false) < 5);
    assert!(marks(off, true) == 0 && marks(off, false) > 20);
}

/// Check that only means are drawn if switches were not traced, with a note.
#[test]
fn without_tracing() {
    let svg = draw(&untraced());
    assert!(svg.contains("Scheduler switches were not traced"));
    let nothing = ["class=\"ground\"", "p50", "p99", ">CPU 0<", "<title>spin"];
    assert!(nothing.iter().all(|nothing| !svg.contains(nothing)));
    let bars: Vec<f64> = svg
        .lines()
        .filter(|line| line.starts_with("<path class=\"s0\""))
        .map(|line| extent(line)[1])
        .collect();
    let [short, long] = bars.as_slice() else { panic!("{svg}") };
    // There is a space of 0.6 after each bar.
    assert!(((long + 0.6) / (short + 0.6) - 3.46).abs() < 0.03, "{bars:?}");
    assert!(svg.contains(">3.54 ms, 564/s slices</text>"));
}

/// Check that periods without traced switches are hatched and idle ones are not drawn, that
/// names are escaped, and that there is a note about lost stretches.
#[test]
fn missing_data() {
    let svg = draw(&holes());
    assert!(svg.contains("<title>not traced for "));
    assert!(!svg.contains("<title>swapper"));
    assert!(svg.contains("<title>&lt;kworker&gt; &amp; &quot;co&quot; ran 4.0"));
    assert!(svg.contains(">The last 2468 stretches were lost"));
}

/// Check that a variant without traced switches has a note, no row and no slices.
#[test]
fn variant_without_switches() {
    let (spec, mut series) = woken();
    series.turns.retain(|turn| turn.step == 0);
    let svg = draw(&(spec, series));
    assert_eq!(svg.matches(">CPU 0</text>").count(), 1);
    assert!(svg.contains("WAKEUP_PREEMPTION=off: no slice ended<"));
    assert!(svg.contains(">No task of this variant was traced: mean slice ?, "));
}

/// Check that the picture has the slices of the summary, also if stretches are lost, but that
/// slices without a length are in the summary only.
#[test]
fn as_in_the_summary() {
    for (spec, series) in [woken(), holes(), dense()] {
        let summary = SlicesSummary::of(None, &spec, &series);
        let picture = SlicesPicture::of(&spec, &series).unwrap();
        let variants = super::variants(&summary);
        assert_eq!(variants.len(), picture.steps.len());
        let mut without = 0;
        for ((_, found), step) in variants.into_iter().zip(&picture.steps) {
            let slices: u64 = step.bins.iter().map(|bin| bin.slices).sum();
            without += found.traced_slices.unwrap() - slices;
        }
        let cpus = series.switches.iter().flat_map(|switches| &switches.cpus);
        let loose: usize = cpus.map(|cpu| cpu.loose_ends.len()).sum();
        assert_eq!(usize::try_from(without).unwrap(), loose);
    }
    let (spec, series) = untraced();
    assert_eq!(SlicesPicture::of(&spec, &series), None);
}

/// Check that pictures are small: of many CPUs some are drawn, and very many stretches are
/// merged.
#[test]
fn stays_small() {
    let elements =
        |svg: &str| svg.matches("<rect").count() + svg.matches("<path").count();
    let svg = draw(&large());
    assert!((1000..6000).contains(&elements(&svg)));
    assert!(svg.contains(">28 more CPUs are not shown; their slices are"), "{svg}");
    let svg = draw(&dense());
    assert!(elements(&svg) < 150, "{}", elements(&svg));
    assert!(svg.contains(" marks, too many to name each</title>"));
    assert!(svg.len() < 1_000_000, "{}", svg.len());
}

/// Check that consecutive pinned tasks of a CPU have different shades, even if there are as
/// many CPUs as shades.
#[test]
fn shades_of_pinned_tasks() {
    let (mut spec, series) = large();
    spec.cpus = "0-8".parse().unwrap();
    spec.pinned = true;
    let tasks = SlicesPicture::of(&spec, &series).unwrap().tasks;
    let shades: Vec<usize> =
        tasks.iter().step_by(9).take(20).map(|task| task.shade % 9).collect();
    assert!(shades.windows(2).all(|pair| pair[0] != pair[1]), "{shades:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Check that the picture and the page are well-formed for any parameters and results.
    #[test]
    fn well_formed(
        name in any::<String>(),
        value in any::<String>(),
        [start, ns, wall, cpu] in any::<[u64; 4]>(),
        numbers in any::<(u32, u32, i8, bool, u64)>(),
    ) {
        let (mut spec, mut series) = holes();
        (spec.spinners, spec.sleepers, spec.nice, spec.pinned, _) = numbers;
        spec.steps[0].settings[0] = recording::StepSetting { name: name.clone(), value };
        spec.burst_ns = Nanos::from_nanos(ns);
        let switches = series.switches.as_mut().unwrap();
        switches.tasks[3].name = name;
        let stretch = &mut switches.cpus[0].stretches[7];
        stretch.ns = Nanos::from_nanos(ns);
        stretch.start_ns = Nanos::from_nanos(start);
        stretch.task = numbers.0;
        let sample = &mut series.turns[0].samples[0];
        sample.wall_ns = Nanos::from_nanos(wall);
        sample.tasks[0].cpu_ns = Nanos::from_nanos(cpu);
        sample.tasks[0].involuntary = numbers.4;
        let recorded = (spec, series);
        prop_assert!(!draw(&recorded).contains("NaN"));
        let page = html_page(&Document::from(picture(&recorded)));
        let root = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
        check_xml(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{root}"));
    }
}
