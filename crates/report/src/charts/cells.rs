//! One metric of an experiment's cells: a panel for each workload, with a bar for each kernel.

use std::collections::BTreeSet;

use stats::{Better, Unit};
use summary::{ChartBar, ChartPanel, MetricChart};

use crate::cells::labelled::Cells;
use crate::chart;
use crate::document::chart::{Axis, Chart, Mark, Panel, Shape, Tone};
use crate::document::text::{Text, text};
use crate::number;

/// Panels have one scale if the largest values of all differ by no more than this factor.
const FACTOR: f64 = 10.0;

/// The chart of a metric as an SVG file.
pub fn chart_svg(cells: &Cells<'_>, metric: &MetricChart<'_>) -> String {
    chart::file(&chart(cells, metric))
}

/// The chart of a metric.
pub(crate) fn chart(cells: &Cells<'_>, metric: &MetricChart<'_>) -> Chart {
    let better = match metric.about.better {
        Better::Less => "; less is better",
        Better::More => "; more is better",
        Better::Neither => "",
    };
    let title = match cells.about {
        "" => Text::name(cells.experiment),
        about => text!("{}: {}", Text::name(cells.experiment), about),
    };
    let about = text!("{}: {}{}", Text::name(metric.key), metric.about.help, better);
    let unit = metric.about.unit;
    let largest = || metric.panels.iter().map(|panel| panel.largest);
    let (most, least) =
        (largest().fold(0.0, f64::max), largest().fold(f64::MAX, f64::min));
    Chart {
        panels: metric.panels.iter().map(|one| panel(one, unit)).collect(),
        has_own_scales: least * FACTOR < most,
        ..Chart::new("metric", title).about(about)
    }
}

/// A workload: a bar for each kernel, and the spread of its repeats.
fn panel(panel: &ChartPanel<'_>, unit: Unit) -> Panel {
    let bars = || panel.bars.iter().enumerate();
    let spread = |bar: &ChartBar<'_>| bar.range.filter(|[low, high]| low < high);
    let values = bars().map(|(at, bar)| {
        let figures = figures(bar, unit);
        let beside =
            if spread(bar).is_none() { figures.clone() } else { Text::default() };
        let mark = Mark::bar(at, bar.value.unwrap_or(0.0));
        mark.says(Text::name(bar.kernel), figures).beside(beside)
    });
    let spreads = bars().filter_map(|(at, bar)| {
        let [from, to] = spread(bar)?.map(|end| number::in_unit(end, unit));
        let what = if bar.is_varied { "± of the mean" } else { "all repeats" };
        let label = text!("{}, {}", Text::name(bar.kernel), what);
        let mark = Mark::over(spread(bar)?, [at as f64 + 0.5; 2]);
        Some(mark.says(label, text!("{} to {}", from, to)).beside(figures(bar, unit)))
    });
    let is_varied = panel.bars.iter().any(|bar| bar.is_varied);
    let named = match is_varied {
        true => "± of the mean of variations",
        false => "smallest to largest repeat",
    };
    let kernels = kernels(panel.bars.iter().map(|bar| bar.kernel).collect());
    Panel::new(Axis::linear("", unit), Axis::bands(kernels.into_iter().map(Text::name)))
        .titled(Text::name(panel.name), "")
        .draw(Shape::Box, Tone::Series(0), "", values)
        .draw(Shape::Whisker, Tone::Text, named, spreads)
}

/// The value, and its difference from that of the first kernel.
fn figures(bar: &ChartBar<'_>, unit: Unit) -> Text {
    match (bar.value, bar.difference) {
        (None, _) if bar.is_lost => "lost".into(),
        (None, _) => "not measured".into(),
        (Some(value), None) => number::in_unit(value, unit),
        (Some(value), Some(by)) => {
            text!("{} ({})", number::in_unit(value, unit), number::change(by))
        }
    }
}

/// Short names of the kernels: their own names if the experiment gives them some, without the source and
/// the options that all builds have.
fn kernels(all: Vec<&str>) -> Vec<String> {
    let own = |kernel: &str| kernel.rsplit_once(",name=").map(|(_, own)| own.to_owned());
    let parts = |kernel: &str| kernel.split(',').map(str::to_owned).collect::<Vec<_>>();
    let builds: Vec<&str> =
        all.iter().copied().filter(|kernel| kernel.contains(',')).collect();
    let alike = if builds.len() > 1 { &builds } else { &all };
    let is_common =
        |part: &String| alike.iter().all(|kernel| parts(kernel).contains(part));
    let short = |kernel: &&str| {
        let rest = || parts(kernel).into_iter().filter(|part| !is_common(part));
        let rest = rest().collect::<Vec<_>>().join(",");
        let last = || parts(kernel).pop().unwrap_or_default();
        own(kernel).unwrap_or_else(|| if rest.is_empty() { last() } else { rest })
    };
    let names: Vec<String> = all.iter().map(short).collect();
    let distinct = |names: BTreeSet<&str>| names.len();
    match distinct(names.iter().map(String::as_str).collect())
        == distinct(all.iter().copied().collect())
    {
        true => names,
        false => all.into_iter().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use recording::Cell;

    use super::*;
    use crate::chart::svg::checked::check_xml;
    use crate::example::cell::{NEW, OLD, cell, lost, tick_cost};

    /// A chart of two workloads, one with a lost cell and a name that has to be escaped.
    fn chart(cells: &[Cell]) -> String {
        let all = Cells {
            experiment: "atlas",
            about: "what a tick costs",
            cells,
            planned: cells.len(),
            made_with: None,
            violations: None,
            series: &[],
            beside: &[],
            guests: 100,
        };
        let svg = chart_svg(&all, &MetricChart::of(cells, "tick_instructions").unwrap());
        check_xml(&svg);
        svg
    }

    /// Check that all kernels are there, with values and differences, that a lost cell has no
    /// bar, and that names are escaped.
    #[test]
    fn of_two_kernels() {
        let tick = |gap| tick_cost(&[gap, gap, 10_911], &[(gap - 13, 248)]);
        let asked = |asked: &str, cell: Cell| Cell { asked: asked.to_owned(), ..cell };
        let svg = chart(&[
            asked("debian:6.1-cloud", cell("fifo", OLD, tick(2000))),
            asked("./a<b>\u{1b}[2J", cell("fifo", NEW, tick(2500))),
            asked("debian:9.9", cell("fifo", "debian:9.9", lost())),
            asked("debian:6.1-cloud", cell("other", OLD, tick(40))),
            asked("debian:9.9", cell("lost", "debian:9.9", lost())),
        ]);
        assert_eq!(svg.matches("<path class=\"s0\"").count(), 3, "{svg}");
        assert_eq!(svg.matches("class=\"panel\"").count(), 2);
        for words in [
            ">2500 (+25.0 %)<",
            ">lost<",
            "./a&lt;b&gt;\u{fffd}[2J: 2500 (+25.0 %)</title>",
            ">40<",
            ">other; scale enlarged 62 times<",
        ] {
            assert!(svg.contains(words), "{words}");
        }
    }

    /// Check that no cell with the metric gives no chart.
    #[test]
    fn of_none() {
        let tick = tick_cost(&[2584, 2584, 10_911], &[(2571, 248)]);
        let cells = [cell("fifo", OLD, tick), cell("fifo", NEW, lost())];
        assert_eq!(MetricChart::of(&cells, "units_hz"), None);
        assert!(MetricChart::keys(&cells).contains(&"tick_instructions".to_owned()));
    }

    /// Check that names say in what kernels differ, or are what the experiment says.
    #[test]
    fn names() {
        let hz =
            ["1000", "500,NO_HZ=full"].map(|hz| format!("build:debian:6.1,lean,HZ={hz}"));
        let found = kernels(hz.iter().map(String::as_str).collect());
        assert_eq!(found, ["HZ=1000", "HZ=500,NO_HZ=full"]);
        let mixed = [&["debian:6.1-cloud".to_owned()][..], &hz].concat();
        let found = kernels(mixed.iter().map(String::as_str).collect());
        assert_eq!(found, ["debian:6.1-cloud", "HZ=1000", "HZ=500,NO_HZ=full"]);
        let own = ["build:debian:6.1,lean,AUDIT=n,name=quiet", "build:debian:6.1,lean"];
        assert_eq!(kernels(own.to_vec()), ["quiet", "lean"]);
        assert_eq!(
            kernels(vec!["debian:6.1", "debian:6.12"]),
            ["debian:6.1", "debian:6.12"]
        );
    }
}
