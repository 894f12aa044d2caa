//! A history: each metric over its entries, with the medians between change points.

use stats::{Stretch, binned};

use crate::charts::others::over_time;
use crate::comparisons::history::{HistoryReport, MetricHistory};
use crate::document::chart::{Axis, Chart, Mark, Panel, Series, Shape, Tone};
use crate::document::text::{Text, text};
use crate::metric_names;
use crate::number;

/// The most bins of a long history.
const BINS: usize = 160;
/// The length of a date in a time.
const DATE: usize = "2026-11-26".len();

/// A panel for each metric; `None` without an entry.
pub(crate) fn chart(history: &HistoryReport) -> Option<Chart> {
    let metrics = history.metrics.iter().filter(|metric| !metric.entries.is_empty());
    let panels: Vec<Panel> = metrics.map(panel).collect();
    let title = text!(
        "History of {} on {}",
        Text::name(&history.kind),
        Text::name(&history.machine)
    );
    (!panels.is_empty()).then(|| Chart { panels, ..Chart::new("history", title) })
}

fn panel(metric: &MetricHistory) -> Panel {
    let date = |at: usize| {
        let taken = metric.entries.get(at).map_or("", |entry| entry.taken.as_str());
        Text::name(taken.get(..DATE).unwrap_or(taken))
    };
    let values: Vec<f64> = metric.entries.iter().map(|entry| entry.value).collect();
    let x = Axis::bands((0..values.len()).map(date));
    // Each metric has a scale of its own: that of its name.
    let panel =
        Panel::new(x, Axis::linear(metric_names::name(&metric.metric), metric.unit));
    let panel = over_time(panel, &binned(&values, BINS), metric.unit, date);
    let medians = metric.stretches.iter().enumerate().map(|(at, stretch)| {
        let Stretch { begin, end, median, .. } = *stretch;
        let words = number::in_unit(median, metric.unit);
        let from = text!("{} to {}", date(begin), date(end.saturating_sub(1)));
        let mark = Mark::over([begin as f64, end as f64], [median; 2]).says(from, words);
        match at
            .checked_sub(1)
            .and_then(|before| stretch.change_since(metric.stretches.get(before)?))
        {
            Some(change) => Mark {
                value: text!("{} ({})", mark.value, number::change(change)),
                ..mark
            },
            None => mark,
        }
    });
    let changes = metric.stretches.iter().skip(1).map(|stretch| {
        Mark::over([stretch.begin as f64; 2], [f64::NEG_INFINITY, f64::INFINITY])
            .says(text!("change at {}", date(stretch.begin)), "")
            .beside(date(stretch.begin))
    });
    let medians =
        Series::new(Shape::Rule, Tone::Strong, "median between changes", medians);
    panel.series(medians).draw(Shape::Rule, Tone::Muted, "", changes)
}
