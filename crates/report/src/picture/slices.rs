//! The picture of `slices`: for each variant the tasks on each CPU during 50 ms, and below
//! histograms of all slices.
//!
//! One self-contained SVG with tool-tips, for light and dark themes, drawn from traced scheduler
//! switches; if they were not traced, only the mean slices are drawn. `page` embeds it in HTML.

use facts::Facts;
use recording::{Policy, SlicesSeries, SlicesSpec};
use summary::{PictureStep, SlicesPicture};
use units::Nanos;

use crate::number;
use crate::picture::bars::{histograms, means};
use crate::picture::canvas::{Canvas, LEFT, WIDTH, px, rect};
use crate::picture::rows::{Rows, SHADES, mark};
use crate::picture::xml::escape;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::table::cut;
use crate::text::ticks::words::{self as tick_words, cpus};

/// The maximum number of rows of all variants and of one variant; each has at least one.
const ROWS: [usize; 2] = [24, 8];
/// The maximum number of stretches with tool-tips.
const STRETCHES: usize = 5000;
/// The maximum lengths of a variant's name and of the lines below the title.
const NAME: usize = 95;
const ABOUT: usize = 140;

const STYLE: &str = include_str!("slices.css");

/// The picture as an SVG file.
pub fn slices_svg(facts: &Facts, spec: &SlicesSpec, series: &SlicesSeries) -> String {
    let picture = SlicesPicture::of(spec, series);
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", svg(facts, spec, &picture))
}

/// The picture as an element of a page.
pub(crate) fn svg(facts: &Facts, spec: &SlicesSpec, picture: &SlicesPicture) -> String {
    let mut canvas = Canvas::default();
    head(&mut canvas, facts, spec);
    if picture.lost.is_some() {
        legend(&mut canvas);
        windows(&mut canvas, picture);
        histograms(&mut canvas, picture);
    } else {
        let words = "Scheduler switches were not traced: only the mean slice is known.";
        canvas.text("about", LEFT, 14.0, words);
        canvas.move_down(36.0);
        means(&mut canvas, picture);
    }
    foot(&mut canvas, picture);
    let (width, height) = (px(WIDTH), px(canvas.y + 10.0));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"slices\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n<style><![CDATA[\n{STYLE}]]>\
         </style>\n{UNSEEN}\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{}</svg>\n",
        canvas.svg()
    )
}

/// The hatching of periods without traced switches.
const UNSEEN: &str = "<defs><pattern id=\"unseen\" width=\"6\" height=\"6\" \
    patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><path class=\"hatch\" \
    d=\"M1 0V6\"/></pattern></defs>";

fn head(canvas: &mut Canvas, facts: &Facts, spec: &SlicesSpec) {
    let title = "Time slices: how long tasks run before they are preempted";
    canvas.text("title", LEFT, 34.0, title);
    canvas.text("about", LEFT, 54.0, &cut(&workload(spec), ABOUT));
    canvas.text("about", LEFT, 71.0, &cut(&machine(facts), ABOUT));
    canvas.move_down(82.0);
}

/// The workload in a line.
pub(crate) fn workload(spec: &SlicesSpec) -> String {
    let count = |count: u32, thing: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{} {thing}{plural}", number::count(count.into()))
    };
    let sleep = number::duration(spec.sleep_ns);
    let works = if spec.burst_ns.is_zero() {
        String::new()
    } else {
        format!(", then {} of work", number::duration(spec.burst_ns))
    };
    let sleepers = match spec.sleepers {
        0 => String::new(),
        many => format!(" and {} (asleep for {sleep}{works})", count(many, "sleeper")),
    };
    let policy = match spec.policy {
        Policy::Other => "",
        Policy::Batch => ", SCHED_BATCH",
    };
    let nice =
        if spec.nice == 0 { String::new() } else { format!(", nice {}", spec.nice) };
    let pinned = if spec.pinned { ", each pinned to one" } else { "" };
    format!(
        "{}{sleepers} on {}{pinned}{policy}{nice}; each variant for {} in {}",
        count(spec.spinners, "spinner"),
        cpus(&spec.cpus),
        number::duration(spec.duration_ns),
        count(spec.turns, "round"),
    )
}

/// The kernel and its tick in a line.
pub(crate) fn machine(facts: &Facts) -> String {
    let release =
        number::known(facts.kernel.release.get(), |release| release.to_string());
    let tick =
        tick_words::rate(facts).map_or_else(String::new, |rate| format!(", tick {rate}"));
    format!("Linux {release}{tick}")
}

/// The legend of the colours.
fn legend(canvas: &mut Canvas) {
    canvas.open_group(LEFT);
    for shade in 0..SHADES {
        let place = [12.0 * shade as f64, 8.0, 11.4, 14.0];
        canvas.draw(rect(&format!("k{shade}"), place, None));
    }
    canvas.close_group();
    canvas.text("small", LEFT + 116.0, 19.0, "spinners");
    for (x, has_head, words) in [
        (246.0, true, "sleeper or other task: woke up and preempted"),
        (538.0, false, "the same, without preempting"),
    ] {
        canvas.y -= 2.0;
        canvas.open_group(x);
        let path = mark([0.0, 1.6], has_head);
        canvas.draw(format_args!("<path class=\"other\" d=\"{path}\"/>"));
        canvas.close_group();
        canvas.y += 2.0;
        canvas.text("small", x + 9.0, 19.0, words);
    }
    for (x, class, words) in [(750.0, "track", "idle"), (820.0, "unseen", "not traced")] {
        canvas.open_group(x);
        canvas.draw(rect(class, [0.0, 8.0, 18.0, 14.0], None));
        canvas.close_group();
        canvas.text("small", x + 24.0, 19.0, words);
    }
    canvas.move_down(36.0);
}

fn windows(canvas: &mut Canvas, picture: &SlicesPicture) {
    let rows_shown = rows_shown(picture);
    let all = (rows_shown * picture.steps.len()).max(1);
    let rows = Rows {
        tasks: &picture.tasks,
        window: picture.window,
        tool_tips_max: STRETCHES / all,
    };
    let names = cut_labels(picture.steps.iter().map(|step| &step.text), NAME);
    for (step, name) in picture.steps.iter().zip(names) {
        canvas.text("step", LEFT, 13.0, &name);
        figures(canvas, step);
        canvas.move_down(43.0);
        let traced = step.switches.as_ref().map_or(&[][..], |traced| &traced.rows);
        if traced.is_empty() {
            canvas.y -= 8.0;
            canvas.text("small", LEFT, 12.0, "No task of this variant was traced.");
            canvas.move_down(18.0);
        } else {
            rows.draw(canvas, traced.get(..rows_shown).unwrap_or(traced));
        }
        canvas.move_down(16.0);
    }
}

/// The number of CPUs drawn for each variant.
fn rows_shown(picture: &SlicesPicture) -> usize {
    let [all, most] = ROWS;
    all.checked_div(picture.steps.len()).unwrap_or(1).clamp(1, most)
}

/// The figures of a variant: the mean first, in bold.
fn figures(canvas: &mut Canvas, step: &PictureStep) {
    let [mean, p50, p99, rate, _] = step_figures(step);
    let rest = [p50, p99, rate].map(|(name, figure)| {
        format!("<tspan dx=\"16\" class=\"name\">{name}</tspan> {}", escape(&figure))
    });
    let (x, y, mean) = (px(LEFT), px(canvas.y + 33.0), escape(&mean.1));
    canvas.draw(format_args!(
        "<text class=\"figures\" x=\"{x}\" y=\"{y}\"><tspan class=\"name\">mean slice</tspan> \
         <tspan class=\"strong\">{mean}</tspan>{}</text>",
        rest.concat()
    ));
}

/// The figures of a variant with their names; unknown if nothing of it was traced.
pub(crate) fn step_figures(step: &PictureStep) -> [(&'static str, String); 5] {
    let traced = step.switches.as_ref().filter(|traced| traced.began.is_some());
    let length = |length: Option<Option<Nanos>>| {
        number::known(length, |length| number::any(length, number::duration))
    };
    let mean = step.slices_hz.map(|_| step.mean);
    [
        ("mean slice", length(mean)),
        ("p50", length(traced.map(|traced| traced.p50))),
        ("p99", length(traced.map(|traced| traced.p99))),
        ("slices", number::known(step.slices_hz, number::rate)),
        (
            "complete slices",
            number::known(traced.map(|traced| traced.slices), number::count),
        ),
    ]
}

/// Notes about CPUs and stretches that the picture does not show.
fn foot(canvas: &mut Canvas, picture: &SlicesPicture) {
    let rows =
        picture.steps.iter().filter_map(|step| Some(step.switches.as_ref()?.rows.len()));
    let (rows, shown) = (rows.max().unwrap_or(0), rows_shown(picture));
    let mut lines = Vec::new();
    if rows > shown {
        lines.push(format!(
            "{} more CPUs are not shown; their slices are included in the figures.",
            rows - shown
        ));
    }
    if let Some(lost @ 1..) = picture.lost {
        let lost = number::count(lost);
        lines.push(format!("The last {lost} stretches were lost: the buffer was full."));
    }
    for line in lines {
        canvas.text("small", LEFT, 14.0, &line);
        canvas.move_down(17.0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use summary::SlicesSummary;
    use units::Nanos;

    use super::*;
    use crate::example::slices::{dense, holes, large, untraced, woken};
    use crate::example::{GUEST, facts};
    use crate::picture::xml::checked::check_xml;
    use crate::slices_html;

    fn draw((spec, series): &(SlicesSpec, SlicesSeries)) -> String {
        let svg = slices_svg(&facts(GUEST), spec, series);
        check_xml(&svg);
        svg
    }

    /// The number in an attribute.
    fn attribute(line: &str, name: &str) -> f64 {
        let from = format!(" {name}=\"");
        line.split_once(&from).unwrap().1.split_once('"').unwrap().0.parse().unwrap()
    }

    /// Check that a picture is well-formed, loads nothing, has each variant's figures and a row
    /// for each CPU, and that stretches are inside rows.
    #[test]
    fn two_steps() {
        let svg = draw(&woken());
        let links = svg.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!links.contains("http") && !links.contains("href"));
        assert_eq!(svg.matches(">CPU 0</text>").count(), 2);
        assert!(
            svg.contains("mean slice</tspan> <tspan class=\"strong\">1.02 ms</tspan>")
        );
        assert!(
            svg.contains("mean slice</tspan> <tspan class=\"strong\">3.54 ms</tspan>")
        );
        let spinners = svg.lines().filter(|line| line.contains("<title>spin/"));
        let mut count = 0;
        for line in spinners {
            let (x, width) = (attribute(line, "x"), attribute(line, "width"));
            assert!(x >= 0.0 && width > 0.0 && x + width <= 912.01, "{line}");
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
        let nothing = ["class=\"track\"", "p50</", "p99</", ">CPU 0<", "<title>"];
        assert!(nothing.iter().all(|nothing| !svg.contains(nothing)));
        let bars: Vec<f64> = svg
            .lines()
            .filter(|line| line.starts_with("<rect class=\"bar\""))
            .map(|line| attribute(line, "width"))
            .collect();
        let [short, long] = bars.as_slice() else { panic!("{svg}") };
        assert!((long / short - 3.46).abs() < 0.02, "{bars:?}");
        assert!(svg.contains(">3.54 ms on average, 564 slices per second</text>"));
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
        assert!(svg.contains("No task of this variant was traced."));
        assert!(svg.contains(">WAKEUP_PREEMPTION=off: no slice ended<"));
        assert!(svg.contains("mean slice</tspan> <tspan class=\"strong\">?</tspan>"));
    }

    /// Check that the picture has the figures of the summary, also if stretches are lost, but
    /// that slices without a length are in the summary only.
    #[test]
    fn as_in_the_summary() {
        for (spec, series) in [woken(), holes(), untraced(), dense()] {
            let summary = SlicesSummary::of(None, &spec, &series);
            let picture = SlicesPicture::of(&spec, &series);
            let changed = summary.steps.iter().map(|step| &step.results);
            let steps: Vec<_> =
                std::iter::once(&summary.results).chain(changed).collect();
            assert_eq!(steps.len(), picture.steps.len());
            let mut without = 0;
            for (found, step) in steps.into_iter().zip(&picture.steps) {
                let traced = step.switches.as_ref();
                let (p50, p99) = (traced.and_then(|s| s.p50), traced.and_then(|s| s.p99));
                assert_eq!(found.slice_ns.mean, step.mean);
                assert_eq!((found.slice_ns.p50, found.slice_ns.p99), (p50, p99));
                let slices = traced.map(|traced| traced.slices);
                assert_eq!(found.traced_slices.is_some(), slices.is_some());
                without += found.traced_slices.unwrap_or(0) - slices.unwrap_or(0);
                assert_eq!(found.switches_hz, step.slices_hz);
            }
            let cpus = series.switches.iter().flat_map(|switches| &switches.cpus);
            let loose: usize = cpus.map(|cpu| cpu.loose_ends.len()).sum();
            assert_eq!(usize::try_from(without).unwrap(), loose);
        }
    }

    /// Check that pictures are small: of many CPUs some are drawn, and very many stretches are
    /// merged.
    #[test]
    fn stays_small() {
        let elements =
            |svg: &str| svg.matches("<rect").count() + svg.matches("<path").count();
        let svg = draw(&large());
        assert!((1000..6000).contains(&elements(&svg)));
        assert!(svg.contains(
            ">28 more CPUs are not shown; their slices are included in the figures.<"
        ));
        let svg = draw(&dense());
        assert!(elements(&svg) < 150, "{}", elements(&svg));
        assert!(svg.len() < 1_000_000, "{}", svg.len());
    }

    /// Check that consecutive pinned tasks of a CPU have different shades, even if there are as
    /// many CPUs as shades.
    #[test]
    fn shades_of_pinned_tasks() {
        let (mut spec, series) = large();
        spec.cpus = "0-8".parse().unwrap();
        spec.pinned = true;
        let tasks = SlicesPicture::of(&spec, &series).tasks;
        let shades: Vec<usize> =
            tasks.iter().step_by(9).take(20).map(|task| task.shade % SHADES).collect();
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
            let page = slices_html(&facts(GUEST), &recorded.0, &recorded.1);
            let root = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
            check_xml(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{root}"));
        }
    }

    /// Check nothing: writes pictures into a temporary folder for visual review.
    #[test]
    #[ignore = "writes pictures for visual review"]
    fn write_pictures() {
        let folder = std::env::temp_dir().join("noisefloor-slices");
        std::fs::create_dir_all(&folder).unwrap();
        let all = [
            ("woken", woken()),
            ("large", large()),
            ("holes", holes()),
            ("dense", dense()),
            ("untraced", untraced()),
        ];
        for (name, (spec, series)) in all {
            let svg = slices_svg(&facts(GUEST), &spec, &series);
            let html = slices_html(&facts(GUEST), &spec, &series);
            std::fs::write(folder.join(format!("{name}.svg")), svg).unwrap();
            std::fs::write(folder.join(format!("{name}.html")), html).unwrap();
        }
        println!("{}", folder.display());
    }
}
