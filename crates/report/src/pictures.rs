//! The pictures of reports: all of them for a page, and the one that a terminal shows below a report.

use recording::Recording;
use summary::{FleetSummary, MetricChart, Summary, Typical, WholePhase};

use crate::cells::labelled::Cells;
use crate::chart;
use crate::charts::{self, cells, compared, flame, fleet, history, repeated};
use crate::comparisons::ComparedSets;
use crate::comparisons::history::HistoryReport;
use crate::comparisons::letter;
use crate::comparisons::repeated::RepeatedRuns;
use crate::document::chart::Chart;
use crate::document::{Content, Document};

/// The most metrics of cells that have a chart each.
const METRICS: usize = 8;
/// The most cells that have a flame graph.
const FLAMES: usize = 4;
/// The most rows of runs, and of those on a terminal.
const ROWS: usize = 60;
const LINES: usize = 6;
/// The most charts at the end of a report on a terminal.
const STRIPS: usize = 3;

/// Where pictures are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// Pages and files.
    Page,
    /// The end of a report on a terminal: a few lines of text.
    Terminal,
}

/// The pictures of a recording.
pub fn recording_pictures(recording: &Recording, summary: &Summary) -> Document {
    section(charts::of(recording, summary))
}

/// The differences between sets.
pub fn compared_sets_pictures(compared: &ComparedSets<'_>, medium: Medium) -> Document {
    let others = || compared.comparisons.iter().enumerate();
    match medium {
        Medium::Page => section(
            others().filter_map(|(at, one)| compared::chart(&letter(at + 1), one)),
        ),
        Medium::Terminal => {
            strips(others().filter_map(|(at, one)| compared::strip(&letter(at + 1), one)))
        }
    }
}

/// The runs of sets.
pub fn repeated_pictures(runs: &RepeatedRuns<'_>, medium: Medium) -> Document {
    match medium {
        Medium::Page => section(repeated::chart(runs, ROWS)),
        Medium::Terminal => strips(repeated::chart(runs, LINES)),
    }
}

/// The metrics of a machine over time, on pages.
pub fn history_pictures(report: &HistoryReport, medium: Medium) -> Document {
    match medium {
        Medium::Page => section(history::chart(report)),
        Medium::Terminal => Document::default(),
    }
}

/// The heat maps of a fleet, on pages.
pub fn fleet_pictures(of: &FleetSummary, medium: Medium) -> Document {
    match medium {
        Medium::Page => section(fleet::charts(of)),
        Medium::Terminal => Document::default(),
    }
}

/// The metrics of cells and what they execute, the first ones of an experiment, on pages.
pub fn cells_pictures(of: &Cells<'_>, medium: Medium) -> Document {
    if medium == Medium::Terminal {
        return Document::default();
    }
    let flames = of.cells.iter().filter_map(flame::of_cell).take(FLAMES);
    let keys = MetricChart::keys(of.cells);
    let charts = keys.iter().filter_map(|key| MetricChart::of(of.cells, key));
    let charts = charts.take(METRICS).map(|metric| cells::chart(of, &metric));
    section(charts.chain(flames))
}

/// The flame graph of a tick or call.
pub fn explain_pictures(typical: &Typical<'_>) -> Document {
    section([flame::event(typical)])
}

/// The flame graph of a whole phase.
pub fn phase_pictures(phase: &WholePhase<'_>) -> Document {
    section([flame::whole(phase)])
}

/// The flame graph of the second of two events, with their differences.
pub fn explain_diff_pictures(before: &Typical<'_>, after: &Typical<'_>) -> Document {
    section([flame::compared(before, after)])
}

/// The picture that a terminal shows below the report of a recording, in a few lines of text.
pub fn terminal_picture(recording: &Recording) -> Document {
    strips(charts::overview(recording))
}

/// Charts in a few lines, without a heading.
fn strips(charts: impl IntoIterator<Item = Chart>) -> Document {
    Document::default().add_all(charts.into_iter().take(STRIPS))
}

fn section(charts: impl IntoIterator<Item = Chart>) -> Document {
    Document::section("Pictures", Document::default().add_all(charts))
}

/// One picture of a report as an SVG file: the first, or the one of that name.
///
/// # Errors
/// There is none, or none of that name; the names are listed.
pub fn picture_svg(document: &Document, name: Option<&str>) -> Result<String, String> {
    let charts = || {
        document.blocks.iter().filter_map(|block| {
            let Content::Chart(chart) = &block.content else { return None };
            Some(&**chart)
        })
    };
    let found = charts().find(|chart| name.is_none_or(|name| chart.name == name));
    found.map(chart::file).ok_or_else(|| {
        let names: Vec<&str> = charts().map(|chart| chart.name).collect();
        match names.is_empty() {
            true => "this report has no pictures".to_owned(),
            false => format!("no such picture; there are: {}", names.join(", ")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::cell::{OLD, cell, lost, old_tick, typical};
    use crate::example::{self, GUEST};
    use crate::html::html_page;

    /// Check that the pictures of a recording are found by their names, and others are not.
    #[test]
    fn by_name() {
        let recording = example::blamed(example::noise(GUEST, 2));
        let all = recording_pictures(&recording, &Summary::of(&recording));
        let first = picture_svg(&all, None).unwrap();
        assert!(first.starts_with("<?xml") && first.ends_with("</svg>\n"));
        assert_ne!(picture_svg(&all, Some("lengths")).unwrap(), first);
        let refused = picture_svg(&all, Some("length")).unwrap_err();
        assert!(refused.contains("lengths"), "{refused}");
        assert!(picture_svg(&Document::default(), None).is_err());
    }

    /// Check that a page has the flame graph of a tick, and each of its frames in a table: a function with
    /// two callers twice.
    #[test]
    fn flame_on_page() {
        let cell = cell("fifo", OLD, lost());
        let tick = typical(&cell, old_tick());
        let page = html_page(&explain_pictures(&tick));
        let frames = page.matches("<g class=\"frame\"").count();
        assert_eq!(page.matches("</tr>").count(), frames + 1);
        assert!(page.contains("<script>") && frames > 50, "{frames}");
    }
}
