//! The charts: each is made of the numbers of a summary, and drawn by [`crate::chart`].

pub(crate) mod cells;
pub(crate) mod compared;
pub(crate) mod flame;
pub(crate) mod fleet;
pub(crate) mod history;
pub(crate) mod lengths;
pub(crate) mod noise;
pub(crate) mod others;
pub(crate) mod repeated;
pub(crate) mod scale;
pub(crate) mod slices;
mod values;

use recording::{Body, Recording};
use summary::{PlacementsPicture, SlicesPicture, Summary};

use crate::charts::lengths::Lengths;
use crate::document::chart::Chart;

/// The charts of a recording, the most important first.
pub(crate) fn of(recording: &Recording, summary: &Summary) -> Vec<Chart> {
    let lengths = || Lengths::of(recording).and_then(|of| lengths::chart(&of));
    let noise = |series| [noise::over_time(series), noise::hits(series), lengths()];
    let by_cpu = summary.noise().and_then(noise::by_cpu);
    let charts: Vec<Option<Chart>> = match (&recording.body, summary) {
        (Body::Noise { series, .. }, _) => [vec![by_cpu], noise(series).into()].concat(),
        (Body::Check { series, .. }, _) => {
            [vec![by_cpu], noise(&series.noise).into()].concat()
        }
        (Body::Latency { .. } | Body::Imported { .. }, _) => vec![lengths()],
        (Body::Jitter { spec, series }, _) => {
            vec![others::jitter(spec, series), lengths()]
        }
        (Body::Slices { spec, series }, Summary::Slices(summary)) => {
            let picture = SlicesPicture::of(spec, series);
            let chart = slices::chart(&recording.facts, spec, summary, picture.as_ref());
            let placed = PlacementsPicture::of(spec, series, picture.as_ref());
            let placed = placed.map(|picture| {
                slices::placements::chart(&recording.facts, spec, summary, &picture)
            });
            vec![Some(chart), placed]
        }
        (_, Summary::Scale(summary)) => vec![scale::chart(summary)],
        (_, Summary::Wakers(summary)) => vec![others::wakers(summary)],
        (_, Summary::Guests(summary)) => vec![others::guests(summary)],
        (_, Summary::Watch(summary)) => vec![others::watched(summary)],
        (_, Summary::Top(summary)) => vec![others::top(summary)],
        _ => Vec::new(),
    };
    charts.into_iter().flatten().collect()
}

/// The chart of a recording that a few lines of text can show.
pub(crate) fn overview(recording: &Recording) -> Option<Chart> {
    let has_one = matches!(
        recording.body,
        Body::Noise { .. } | Body::Latency { .. } | Body::Jitter { .. }
    );
    // First, as it costs nothing: there can be millions of lengths.
    has_one.then(|| lengths::overview(recording)).flatten()
}

#[cfg(test)]
mod tests;
