//! Reports as text for the terminal, JSON, SVG and HTML.
//!
//! Formats facts and recordings as strings, which the caller prints. Every number is a field of
//! a `summary`, scaled and rounded in `number` only; JSON has full precision. No line of
//! text is wider than 80 columns, except for paths, which are not wrapped.
//!
//! ```
//! # let text = include_str!("../../recording/tests/golden/latency-1.json");
//! // The text of a file that `noisefloor latency -o FILE` wrote.
//! let recording = recording::Recording::from_json(text, "latency.json".as_ref())?;
//! let summary = summary::Summary::of(&recording);
//! assert!(report::text(&recording, &summary).contains("longest"));
//! # Ok::<(), recording::Error>(())
//! ```
#![forbid(unsafe_code)]

mod ablated;
mod cell_doubts;
mod cells;
mod compared;
#[cfg(test)]
#[path = "../tests/example/recordings.rs"]
mod example;
mod export;
mod history;
mod json;
mod number;
mod picture;
mod repeated;
mod text;
mod tried;

pub use ablated::Ablated;
pub use cell_doubts::cell_doubts;
pub use cells::Cells;
pub use compared::{
    ComparedCells, ComparedSets, compared_cells_json, compared_sets_json,
};
pub use export::benchmark_action::benchmark_action_json;
pub use export::csv::{CSV_HEAD, metrics_csv};
pub use export::hdr_log::hdr_log;
pub use export::prometheus::prometheus_text;
pub use history::{FactsChange, HistoryReport, MetricHistory, history_csv, history_json};
pub use json::ablation::ablation_json;
pub use json::cells::cells_json;
pub use json::trace::trace_json;
pub use json::{facts_json, json};
pub use picture::chart::chart_svg;
pub use picture::flame::{flame_diff_svg, flame_svg};
pub use picture::page::slices_html;
pub use picture::phase::phase_svg;
pub use picture::slices::slices_svg;
pub use repeated::{RepeatedRuns, repeated_json};
pub use text::cells::ablation::ablation_text;
pub use text::cells::cells_text;
pub use text::cells::made_with::made_with_text;
pub use text::cells::markdown::cells_markdown;
pub use text::cells::outputs::cell_outputs_text;
pub use text::comparison::boots::tried_boot_text;
pub use text::comparison::cells::compared_cells_text;
pub use text::comparison::compared_sets_text;
pub use text::comparison::repeated::repeated_text;
pub use text::comparison::tried::tried_text;
pub use text::explain::folded::{folded_stacks, folded_stacks_diff};
pub use text::explain::phase::{phase_json, phase_text};
pub use text::explain::{
    explain_diff_json, explain_diff_text, explain_json, explain_text,
};
pub use text::facts::facts_text;
pub use text::history::history_text;
pub use text::jitter::histogram::{jitter_hgrm, jitter_list};
pub use text::jitter::{
    jitter_close, jitter_header, jitter_row, jitter_rows_header, jitter_so_far,
};
pub use text::layout::doubts::doubts as doubts_text;
pub use text::layout::paragraph::paragraph;
pub use text::layout::width::{folded, set_width};
pub use text::limits::exceeded_limits;
pub use text::noise::around::around;
pub use text::slices::slices_classic;
pub use text::text;
pub use text::ticks::{ticks_close, ticks_header, ticks_sample};
pub use tried::{TriedSettings, tried_json};
