mod colours;

use proptest::prelude::*;
use stats::Unit;

use super::*;
use crate::chart::svg::checked::check_xml;
use crate::document::chart::{Measure, Series, Tone};

/// Escapes, markup, the end of a section, control characters, and what is invisible.
const HOSTILE: &str = "\u{1b}[2J<script>\"&'</svg>]]>\u{0}\u{ffff}\u{202e}\n\u{7f}-->";

fn bars(values: &[f64]) -> Panel {
    let names = (0..values.len()).map(|at| Text::name(format!("kernel {at}")));
    let marks = values.iter().enumerate().map(|(at, value)| {
        Mark::bar(at, *value).says(format!("kernel {at}"), format!("{value} ns"))
    });
    Panel::new(Axis::linear("time", Unit::Ns), Axis::bands(names)).series(Series::new(
        Shape::Box,
        Tone::Series(0),
        "",
        marks,
    ))
}

/// A chart with each shape, all of whose texts are this one.
fn with_all_shapes(text: &str, x: [f64; 2], y: [f64; 2]) -> Chart {
    let name = || Text::name(text);
    let mark = || Mark::over(x, y).says(name(), name()).beside(name());
    use Shape::{Area, Box, Flag, Frame, Line, Point, Rule, Whisker};
    let all = [Box, Flag, Line, Area, Whisker, Point, Rule];
    let tones = [Tone::Series(8), Tone::Heat(2.0), Tone::Change(f64::NAN), Tone::Unseen];
    let panel = |x: Axis, y: Axis, shapes: &[Shape]| {
        let panel = Panel::new(x, y).titled(name(), name());
        shapes.iter().zip(tones.iter().cycle()).fold(panel, |panel, (shape, tone)| {
            let marks = [mark(), mark(), mark().tone(Tone::Shade(99))];
            panel.series(Series::new(*shape, *tone, name(), marks))
        })
    };
    let linear = || Axis::linear(name(), Unit::Ns);
    let log = || Axis::log(name(), Unit::Count);
    let bands = || Axis::bands([name(), name()]);
    let change = Axis { measure: Measure::Change, ..linear() };
    let mut chart = Chart::new("all", name()).about(name());
    chart.notes.push(name());
    chart
        .panel(panel(linear(), linear(), &all))
        .panel(panel(log(), log(), &all))
        .panel(panel(change, bands(), &all))
        .panel(panel(bands(), log(), &all))
        .panel(panel(bands(), bands(), &[Frame]))
}

/// The widths of all rectangles of the first series.
fn widths(svg: &str) -> Vec<f64> {
    let bars = svg.lines().filter(|line| line.starts_with("<path class=\"s0\""));
    let width = |line: &str| line.split_once('h')?.1.split_once('v')?.0.parse().ok();
    bars.map(|line| width(line.split_once(" d=").unwrap().1).unwrap()).collect()
}

/// Check that each mark has a rectangle and says its name and its number, that a bar without a length
/// is not drawn, and that the picture has a title and a description.
#[test]
fn marks_say_what_they_are() {
    let svg = file(
        &Chart::new("bars", "Bars")
            .about("Less is better.")
            .panel(bars(&[10.0, 5.0, 0.0])),
    );
    check_xml(&svg);
    assert_eq!(widths(&svg).len(), 2);
    assert!(svg.contains("<title>kernel 0: 10 ns</title>"));
    assert!(svg.contains("<title>kernel 1: 5 ns</title>"));
    assert!(svg.contains("role=\"img\" aria-label=\"Bars. Less is better.\""));
    let [long, short] = widths(&svg)[..] else { panic!("{svg}") };
    assert!((long - 2.0 * short).abs() < 1.0, "{long} {short}");
}

/// Check that panels of one axis have one scale, also if the words beside their bars are not as wide, and
/// that a chart with a scale for each says by how much they are enlarged.
#[test]
fn scales() {
    let mut second = bars(&[1.0]);
    second.series[0].marks[0].beside = "words beside it".into();
    let chart = Chart::new("bars", "Bars").panel(bars(&[100.0])).panel(second);
    let [long, short] = widths(&file(&chart))[..] else { panic!() };
    assert!((long / 100.0 - short).abs() < 1.0, "{long} {short}");
    assert!(!file(&chart).contains("enlarged"));
    let own = Chart { has_own_scales: true, ..chart };
    let [long, short] = widths(&file(&own))[..] else { panic!() };
    assert!((long - short).abs() < 0.01, "{long} {short}");
    assert_eq!(file(&own).matches(">scale enlarged 100 times<").count(), 1);
}

/// Check that 256 CPUs and 40 kernels have room: the rows are thin, and names are not closer than their
/// height.
#[test]
fn many_bands() {
    let svg =
        |count: usize| file(&Chart::new("many", "Many").panel(bars(&vec![3.0; count])));
    let names = |svg: &str| svg.matches("<text class=\"name\"").count();
    assert_eq!((names(&svg(40)), widths(&svg(40)).len()), (40, 40));
    assert_eq!(widths(&svg(256)).len(), 256);
    assert!((60..80).contains(&names(&svg(256))), "{}", names(&svg(256)));
}

/// Check that charts without a panel, without marks, and of one value are drawn.
#[test]
fn little() {
    for values in [&[][..], &[0.0], &[-5.0], &[1e300], &[f64::MIN_POSITIVE]] {
        let svg = file(&Chart::new("few", "Few").panel(bars(values)));
        check_xml(&svg);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
    check_xml(&file(&Chart::new("none", "")));
}

/// Check that numbers that are not finite are drawn at the edge or not at all.
#[test]
fn not_finite() {
    let odd = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0, -1.0, 1e308];
    for (x, y) in odd.iter().zip(odd.iter().rev()) {
        let svg = file(&with_all_shapes("a", [*x, 1.0], [*y, 1.0]));
        check_xml(&svg);
        assert!(!svg.contains("NaN"), "{x} {y}");
        let coordinates =
            svg.split(" d=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        assert!(coordinates.into_iter().all(|path| !path.contains("inf")), "{x} {y}");
    }
}

/// Check that an embedded chart has no style, and no ID, which another one on the page could have.
#[test]
fn embedded_twice() {
    let chart = with_all_shapes("a", [0.0, 1.0], [0.0, 1.0]);
    let svg = embedded(&chart);
    check_xml(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{svg}"));
    assert!(!svg.contains("<style") && !svg.contains("<script"));
    assert!(!svg.contains(" id=\"") && !svg.contains("url("));
    assert!(file(&chart).contains("<script>"));
}

/// Check that very many marks are few elements, and that the largest of them is among them.
#[test]
fn many_marks() {
    let mark = |at: u32| {
        let height = if at == 77_777 { 1000.0 } else { f64::from(at % 7) };
        Mark::over([f64::from(at), f64::from(at + 1)], [0.0, height]).says("bin", "1")
    };
    let series = Series::new(Shape::Box, Tone::Series(0), "gaps", (0..100_000).map(mark));
    let panel = Panel::new(Axis::linear("time", Unit::Ns), Axis::linear("gap", Unit::Ns));
    let svg = file(&Chart::new("many", "Many").panel(panel.series(series)));
    check_xml(&svg);
    assert!(svg.len() < 300_000, "{}", svg.len());
    assert!(svg.contains("<title>gaps: 100000 marks, too many to name each</title>"));
    let heights =
        svg.split('v').skip(1).filter_map(|rest| rest.split_once('h')?.0.parse().ok());
    assert!(heights.fold(0.0, f64::max) > 180.0);
}

/// Check the labels of axes.
#[test]
fn ticks() {
    let ticks = |axis: &Axis, values: [f64; 2]| {
        Ruler::of(axis, values.into_iter()).ticks(axis.measure, 5)
    };
    let linear = Axis::linear("", Unit::Hz);
    assert_eq!(ticks(&linear, [0.0, 2_212_955.0]), [0.0, 5e5, 1e6, 1.5e6, 2e6]);
    assert_eq!(ticks(&linear, [-0.5, 0.4]), [-0.4, -0.2, 0.0, 0.2, 0.4]);
    let minutes = [0.0, 3e11, 6e11, 9e11, 1.2e12].to_vec();
    assert_eq!(ticks(&Axis::linear("", Unit::Ns), [0.0, 1.3e12]), minutes);
    let log = Axis::log("", Unit::Ns);
    assert_eq!(ticks(&log, [3.0, 50.0]), [5.0, 10.0, 20.0, 50.0]);
    assert_eq!(ticks(&log, [1.0, 1e9]), [1.0, 1e2, 1e4, 1e6, 1e8]);
    assert!(ticks(&linear, [f64::NAN, f64::NAN]).len() <= 7);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Check that pictures are well-formed for any texts and numbers, and that numbers are in a table.
    #[test]
    fn well_formed(text in any::<String>(), x in any::<[f64; 2]>(), y in any::<[f64; 2]>()) {
        for text in [&text, HOSTILE, &format!("{HOSTILE}{}", "x".repeat(10_000))] {
            let chart = with_all_shapes(text, x, y);
            let svg = file(&chart);
            check_xml(&svg);
            prop_assert!(svg.len() < 200_000, "{}", svg.len());
            let page = embedded(&chart);
            check_xml(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{page}"));
            prop_assert!(!numbers::numbers(&chart).is_empty() || text.is_empty());
        }
    }
}
