//! The picture of `slices`: for each step what ran on each CPU for 50 ms, to the same scale,
//! and below that how long all slices were.
//!
//! One self-contained SVG, for light and dark, that tells of each stretch when it is pointed at.
//! Takes what the scheduler's switches say; where nobody watched them only the mean slices are
//! drawn. `page` is the same with its numbers as a page.

use facts::Facts;
use recording::{Policy, SlicesSeries, SlicesSpec};
use stats::{PictureStep, SlicesPicture};
use units::Nanos;

use crate::number;
use crate::picture::bars::{histograms, means};
use crate::picture::rows::{Rows, SHADES, mark};
use crate::picture::sheet::{LEFT, Sheet, WIDTH, px, rect};
use crate::picture::xml::escaped;
use crate::text::layout::table::cut;
use crate::text::ticks::words::{self as tick_words, cpus};

/// So many rows are drawn of all steps together, and of one step, but one of each at least.
const ROWS: [usize; 2] = [24, 8];
/// So many stretches are drawn one by one.
const STRETCHES: usize = 5000;
/// The longest texts that fit: a step's name, and the lines below the title.
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
    let mut sheet = Sheet::default();
    head(&mut sheet, facts, spec);
    if picture.lost.is_some() {
        legend(&mut sheet);
        windows(&mut sheet, picture);
        histograms(&mut sheet, picture);
    } else {
        let words = "Nobody watched the scheduler's switches: how long slices were on average is \
                     known, and nothing else.";
        sheet.text("about", LEFT, 14.0, words);
        sheet.down(36.0);
        means(&mut sheet, picture);
    }
    foot(&mut sheet, picture);
    let (width, height) = (px(WIDTH), px(sheet.y + 10.0));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"slices\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n<style><![CDATA[\n{STYLE}]]>\
         </style>\n{UNSEEN}\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{}</svg>\n",
        sheet.svg()
    )
}

/// What stands for what nobody saw.
const UNSEEN: &str = "<defs><pattern id=\"unseen\" width=\"6\" height=\"6\" \
    patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><path class=\"hatch\" \
    d=\"M1 0V6\"/></pattern></defs>";

fn head(sheet: &mut Sheet, facts: &Facts, spec: &SlicesSpec) {
    let title = "How long tasks run before something preempts them";
    sheet.text("title", LEFT, 34.0, title);
    sheet.text("about", LEFT, 54.0, &cut(&asked(spec), ABOUT));
    sheet.text("about", LEFT, 71.0, &cut(&machine(facts), ABOUT));
    sheet.down(82.0);
}

/// What was asked, in a line.
pub(crate) fn asked(spec: &SlicesSpec) -> String {
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
    let pinned = if spec.pinned { ", each on one of them" } else { "" };
    format!(
        "{}{sleepers} on {}{pinned}{policy}{nice}; each step for {} in {}",
        count(spec.spinners, "spinner"),
        cpus(&spec.cpus),
        number::duration(spec.duration_ns),
        count(spec.turns, "turn"),
    )
}

/// What it was asked of, in a line.
pub(crate) fn machine(facts: &Facts) -> String {
    let release =
        number::known(facts.kernel.release.get(), |release| release.to_string());
    let tick =
        tick_words::rate(facts).map_or_else(String::new, |rate| format!(", tick {rate}"));
    format!("Linux {release}{tick}")
}

/// What the colours are.
fn legend(sheet: &mut Sheet) {
    sheet.open(LEFT);
    for shade in 0..SHADES {
        let place = [12.0 * shade as f64, 8.0, 11.4, 14.0];
        sheet.put(rect(&format!("k{shade}"), place, None));
    }
    sheet.close();
    sheet.text("small", LEFT + 116.0, 19.0, "spinners");
    for (x, is_rude, words) in [
        (246.0, true, "sleeper or other task: woke up and preempted"),
        (538.0, false, "the same, without preempting"),
    ] {
        sheet.y -= 2.0;
        sheet.open(x);
        let path = mark([0.0, 1.6], is_rude);
        sheet.put(format_args!("<path class=\"other\" d=\"{path}\"/>"));
        sheet.close();
        sheet.y += 2.0;
        sheet.text("small", x + 9.0, 19.0, words);
    }
    for (x, class, words) in [(750.0, "track", "idle"), (820.0, "unseen", "not seen")] {
        sheet.open(x);
        sheet.put(rect(class, [0.0, 8.0, 18.0, 14.0], None));
        sheet.close();
        sheet.text("small", x + 24.0, 19.0, words);
    }
    sheet.down(36.0);
}

fn windows(sheet: &mut Sheet, picture: &SlicesPicture) {
    let rows_shown = rows_shown(picture);
    let all = (rows_shown * picture.steps.len()).max(1);
    let rows =
        Rows { tasks: &picture.tasks, window: picture.window, most: STRETCHES / all };
    for step in &picture.steps {
        sheet.text("step", LEFT, 13.0, &cut(&step.text, NAME));
        figures(sheet, step);
        sheet.down(43.0);
        let seen = step.switches.as_ref().map_or(&[][..], |seen| &seen.rows);
        if seen.is_empty() {
            sheet.y -= 8.0;
            sheet.text("small", LEFT, 12.0, "Nothing that ran in this step was seen.");
            sheet.down(18.0);
        } else {
            rows.draw(sheet, seen.get(..rows_shown).unwrap_or(seen));
        }
        sheet.down(16.0);
    }
}

/// So many CPUs of each step.
fn rows_shown(picture: &SlicesPicture) -> usize {
    let [all, most] = ROWS;
    all.checked_div(picture.steps.len()).unwrap_or(1).clamp(1, most)
}

/// The figures of a step: the mean in front, and strong.
fn figures(sheet: &mut Sheet, step: &PictureStep) {
    let [mean, p50, p99, rate, _] = step_figures(step);
    let rest = [p50, p99, rate].map(|(name, figure)| {
        format!("<tspan dx=\"16\" class=\"name\">{name}</tspan> {}", escaped(&figure))
    });
    let (x, y, mean) = (px(LEFT), px(sheet.y + 33.0), escaped(&mean.1));
    sheet.put(format_args!(
        "<text class=\"figures\" x=\"{x}\" y=\"{y}\"><tspan class=\"name\">mean slice</tspan> \
         <tspan class=\"strong\">{mean}</tspan>{}</text>",
        rest.concat()
    ));
}

/// The figures of a step, by their names: not known where nothing of the step was seen.
pub(crate) fn step_figures(step: &PictureStep) -> [(&'static str, String); 5] {
    let seen = step.switches.as_ref().filter(|seen| seen.began.is_some());
    let length = |length: Option<Option<Nanos>>| {
        number::known(length, |length| number::any(length, number::duration))
    };
    let mean = step.slices_hz.map(|_| step.mean);
    [
        ("mean slice", length(mean)),
        ("p50", length(seen.map(|seen| seen.p50))),
        ("p99", length(seen.map(|seen| seen.p99))),
        ("slices", number::known(step.slices_hz, number::rate)),
        ("seen whole", number::known(seen.map(|seen| seen.slices), number::count)),
    ]
}

/// What the picture does not show.
fn foot(sheet: &mut Sheet, picture: &SlicesPicture) {
    let rows =
        picture.steps.iter().filter_map(|step| Some(step.switches.as_ref()?.rows.len()));
    let (rows, shown) = (rows.max().unwrap_or(0), rows_shown(picture));
    let mut lines = Vec::new();
    if rows > shown {
        lines.push(format!(
            "{} more CPUs are not drawn; their slices are counted.",
            rows - shown
        ));
    }
    if let Some(lost @ 1..) = picture.lost {
        let lost = number::count(lost);
        lines.push(format!(
            "{lost} stretches at the end were lost: there was no room for them."
        ));
    }
    for line in lines {
        sheet.text("small", LEFT, 14.0, &line);
        sheet.down(17.0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use stats::SlicesSummary;
    use units::Nanos;

    use super::*;
    use crate::example::slices::{dense, holes, large, unwatched, woken};
    use crate::example::{GUEST, facts};
    use crate::picture::xml::checked::check_xml;
    use crate::slices_html;

    fn drawn((spec, series): &(SlicesSpec, SlicesSeries)) -> String {
        let svg = slices_svg(&facts(GUEST), spec, series);
        check_xml(&svg);
        svg
    }

    /// The number that an attribute has.
    fn attribute(line: &str, name: &str) -> f64 {
        let from = format!(" {name}=\"");
        line.split_once(&from).unwrap().1.split_once('"').unwrap().0.parse().unwrap()
    }

    /// Check that a picture is well-formed, loads nothing, has each step's figures and a row for
    /// each CPU, and that what is in rows lies within them.
    #[test]
    fn two_steps() {
        let svg = drawn(&woken());
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

    /// Check that who wakes up has a mark with a head where that preempts somebody, and one
    /// without a head where it does not.
    #[test]
    fn marks() {
        let svg = drawn(&woken());
        let (as_found, off) = svg.split_once(">WAKEUP_PREEMPTION=off</text>").unwrap();
        let marks = |svg: &str, has_head: bool| {
            let mark = |line: &&str| line.contains("<title>sleep/");
            let lines = svg.lines().filter(mark);
            lines.filter(|line| line.contains("h6.4z") == has_head).count()
        };
        assert!(marks(as_found, true) > 90 && marks(as_found, false) < 5);
        assert!(marks(off, true) == 0 && marks(off, false) > 20);
    }

    /// Check that where nobody watched only means are drawn, and the picture says so.
    #[test]
    fn nobody_watched() {
        let svg = drawn(&unwatched());
        assert!(svg.contains("Nobody watched"));
        let nothing = ["class=\"track\"", "p50</", "p99</", ">CPU 0<", "<title>"];
        assert!(nothing.iter().all(|nothing| !svg.contains(nothing)));
        let bars: Vec<f64> = svg
            .lines()
            .filter(|line| line.starts_with("<rect class=\"bar\""))
            .map(|line| attribute(line, "width"))
            .collect();
        let [short, long] = bars.as_slice() else { panic!("{svg}") };
        assert!((long / short - 3.46).abs() < 0.02, "{bars:?}");
        assert!(svg.contains(">3.54 ms on average, 564 slices a second</text>"));
    }

    /// Check that what was not seen is hatched and idling is not drawn, that names are escaped,
    /// and that the picture tells what was lost.
    #[test]
    fn what_is_missing() {
        let svg = drawn(&holes());
        assert!(svg.contains("<title>not seen for "));
        assert!(!svg.contains("<title>swapper"));
        assert!(svg.contains("<title>&lt;kworker&gt; &amp; &quot;co&quot; ran 4.0"));
        assert!(svg.contains(">2468 stretches at the end were lost"));
    }

    /// Check that a step of which nothing was seen says so, and has no row and no slices.
    #[test]
    fn step_that_was_not_seen() {
        let (spec, mut series) = woken();
        series.turns.retain(|turn| turn.step == 0);
        let svg = drawn(&(spec, series));
        assert_eq!(svg.matches(">CPU 0</text>").count(), 1);
        assert!(svg.contains("Nothing that ran in this step was seen."));
        assert!(svg.contains(">WAKEUP_PREEMPTION=off: no slice was seen to end<"));
        assert!(svg.contains("mean slice</tspan> <tspan class=\"strong\">?</tspan>"));
    }

    /// Check that the picture's figures are the summary's, also where some stretches are lost;
    /// but that slices without a length are only in the summary.
    #[test]
    fn as_in_the_summary() {
        for (spec, series) in [woken(), holes(), unwatched(), dense()] {
            let summary = SlicesSummary::of(None, &spec, &series);
            let picture = SlicesPicture::of(&spec, &series);
            let changed = summary.steps.iter().map(|step| &step.found);
            let steps: Vec<_> = std::iter::once(&summary.found).chain(changed).collect();
            assert_eq!(steps.len(), picture.steps.len());
            let mut without = 0;
            for (found, step) in steps.into_iter().zip(&picture.steps) {
                let seen = step.switches.as_ref();
                let (p50, p99) = (seen.and_then(|s| s.p50), seen.and_then(|s| s.p99));
                assert_eq!(found.slice_ns.mean, step.mean);
                assert_eq!((found.slice_ns.p50, found.slice_ns.p99), (p50, p99));
                let slices = seen.map(|seen| seen.slices);
                assert_eq!(found.seen.is_some(), slices.is_some());
                without += found.seen.unwrap_or(0) - slices.unwrap_or(0);
                assert_eq!(found.switches_hz, step.slices_hz);
            }
            let cpus = series.switches.iter().flat_map(|switches| &switches.cpus);
            let loose: usize = cpus.map(|cpu| cpu.loose_ends.len()).sum();
            assert_eq!(usize::try_from(without).unwrap(), loose);
        }
    }

    /// Check that pictures stay small: of many CPUs some are drawn, and of very many stretches
    /// no single one.
    #[test]
    fn stays_small() {
        let elements =
            |svg: &str| svg.matches("<rect").count() + svg.matches("<path").count();
        let svg = drawn(&large());
        assert!((1000..6000).contains(&elements(&svg)));
        assert!(svg.contains(">28 more CPUs are not drawn; their slices are counted.<"));
        let svg = drawn(&dense());
        assert!(elements(&svg) < 150, "{}", elements(&svg));
        assert!(svg.len() < 1_000_000, "{}", svg.len());
    }

    /// Check that tasks that stay on one CPU have different shades there, one after the other,
    /// even if there are as many CPUs as shades.
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

        /// Check that whatever is asked and seen the picture and the page are well-formed.
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
            let asked = (spec, series);
            prop_assert!(!drawn(&asked).contains("NaN"));
            let page = slices_html(&facts(GUEST), &asked.0, &asked.1);
            let root = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
            check_xml(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{root}"));
        }
    }

    /// Check nothing: writes pictures to look at into a folder for temporary files.
    #[test]
    #[ignore = "writes pictures to look at"]
    fn to_look_at() {
        let folder = std::env::temp_dir().join("noisefloor-slices");
        std::fs::create_dir_all(&folder).unwrap();
        let all = [
            ("woken", woken()),
            ("large", large()),
            ("holes", holes()),
            ("dense", dense()),
            ("unwatched", unwatched()),
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
