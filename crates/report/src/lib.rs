//! Reports: each is a [`Document`], made of summaries, and rendered as text for a terminal, Markdown or a
//! page of HTML; and JSON, charts, and files for other programs.
//!
//! A builder (`measurements`, `cells`, `comparisons`, ...) knows what is said, a renderer (`terminal`,
//! `markdown`, `html`, `chart`) how it looks. Every number is a field of a summary, scaled and rounded in
//! `number` only; JSON has full precision.
//!
//! ```
//! # let text = include_str!("../../recording/tests/golden/latency-1.json");
//! // The text of a file that `noisefloor latency -o FILE` wrote.
//! let recording = recording::Recording::from_json(text, "latency.json".as_ref())?;
//! let summary = summary::Summary::of(&recording);
//! let document = report::recording_document(&recording, &summary);
//! let text = report::terminal_text(&document, report::View::FULL);
//! assert!(text.contains("longest"));
//! # Ok::<(), recording::Error>(())
//! ```
#![forbid(unsafe_code)]

mod advice;
mod catalogue;
mod cells;
mod chart;
mod charts;
mod comparisons;
mod document;
mod doubt_line;
mod emitted;
#[cfg(test)]
#[path = "../tests/example/recordings.rs"]
mod example;
mod explanations;
mod export;
mod fitting;
mod fleet;
mod grouped;
mod html;
mod isolation_plan;
mod json;
mod kernel_facts;
mod kernel_label;
mod limits;
mod markdown;
mod measurements;
mod metric_names;
mod number;
mod pictures;
mod terminal;

pub use advice::reference::rules_reference;
pub use advice::{AdvisedMachine, AdvisedProgram, advice_document, goal_in_words};
pub use catalogue::{ArchiveSuite, CachedKernel, catalogue_document, kernels_document};
pub use cells::ablation::{Ablated, ablation_document, ablation_json};
pub use cells::cells_document;
pub use cells::doubts::cell_doubts;
pub use cells::labelled::Cells;
pub use cells::metrics::cell_metrics_document;
pub use cells::outputs::cell_outputs_document;
pub use charts::cells::chart_svg;
pub use comparisons::ComparedSets;
pub use comparisons::boots::tried_boot_document;
pub use comparisons::cells::{
    ComparedCells, compared_cells_document, compared_cells_json,
};
pub use comparisons::duet::{
    ComparedPrograms, CpuChoice, duet_document, duet_json, duet_pictures,
};
pub use comparisons::history::{
    FactsChange, HistoryEntry, HistoryReport, MetricHistory, history_csv,
    history_document, history_json,
};
pub use comparisons::repeated::{RepeatedRuns, repeated_document, repeated_json};
pub use comparisons::sets::{compared_sets_document, compared_sets_json};
pub use comparisons::tried::{TriedSettings, tried_document, tried_json};
pub use comparisons::verdicts::verdicts_document;
pub use document::{Document, Importance};
pub use emitted::{emitted_document, emitted_json, verified_document, verified_json};
pub use explanations::phase::phase_document;
pub use explanations::{explain_diff_document, explain_document};
pub use export::benchmark_action::benchmark_action_json;
pub use export::csv::{CSV_HEAD, metrics_csv};
pub use export::exporter::{ExporterValues, OwnUsage, exporter_text};
pub use export::folded::{folded_stacks, folded_stacks_diff};
pub use export::github::github_annotations;
pub use export::hdr_log::hdr_log;
pub use export::jitter::{jitter_hgrm, jitter_list};
pub use export::prometheus::prometheus_text;
pub use fleet::doubts::fleet_doubts;
pub use fleet::{fleet_document, fleet_json};
pub use html::html_page;
pub use isolation_plan::{PlannedMachine, isolation_plan_document, isolation_plan_json};
pub use json::advice::advice_json;
pub use json::cells::cells_json;
pub use json::explanations::{explain_diff_json, explain_json, phase_json};
pub use json::trace::trace_json;
pub use json::{facts_json, json};
pub use kernel_facts::facts_document;
pub use limits::{exceeded_limits, worst_moment};
pub use markdown::markdown_text;
pub use measurements::jitter::live::{jitter_row, jitter_rows_header, jitter_so_far};
pub use measurements::jitter::{jitter_plan, jitter_results};
pub use measurements::recording_document;
pub use measurements::slices::classic::slices_classic;
pub use measurements::ticks::live::{ticks_header, ticks_sample};
pub use measurements::ticks::ticks_close;
pub use measurements::top::live::{TopKey, TopView};
pub use measurements::top::screen::{LiveScreen, LiveTable};
pub use pictures::{
    Medium, cells_pictures, compared_sets_pictures, explain_diff_pictures,
    explain_pictures, fleet_pictures, history_pictures, phase_pictures, picture_svg,
    recording_pictures, repeated_pictures, terminal_picture,
};
pub use terminal::chart::ascii_for;
pub use terminal::width::{folded, set_width, width};
pub use terminal::{Part, Role, View, terminal_parts, terminal_text};
