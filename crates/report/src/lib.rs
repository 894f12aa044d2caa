//! Terminal, JSON and pictures.
//!
//! Takes facts and recordings, returns texts; printing them is the caller's. Every
//! number in them is a field of a `stats` summary, scaled and rounded for people in
//! `number` only; the JSON has them in full. No line is wider than 80 columns, but for
//! paths that are there to be copied.
#![forbid(unsafe_code)]

mod around;
mod call_tables;
mod calls;
mod cell_doubts;
#[cfg(test)]
mod cell_example;
mod cell_legend;
#[cfg(test)]
mod cell_summaries;
mod cell_tables;
mod cells;
#[cfg(test)]
mod cells_example;
mod cells_json;
mod cells_markdown;
mod cells_text;
mod check;
mod culprits;
mod doubts;
mod edges;
#[cfg(test)]
mod example;
mod explain;
mod findings;
mod fit;
mod flame;
mod folded;
mod histogram;
mod idle_states;
mod jitter;
mod json;
mod kernel_label;
mod kinds_table;
mod latency;
#[cfg(test)]
mod latency_example;
mod limits;
mod made_with;
mod meanwhile;
mod nohz;
mod nohz_tables;
mod noise;
mod number;
mod page;
mod paragraph;
mod periods;
mod phase;
mod run;
mod sheet;
mod sleepers;
mod slices;
mod slices_bars;
#[cfg(test)]
mod slices_example;
mod slices_page;
mod slices_picture;
mod slices_rows;
mod slices_tables;
mod steal;
mod table;
mod text;
mod tick_back;
mod tick_words;
mod ticks;
mod trace;
mod typical_words;
mod value;
mod verdict;
mod wakers;
mod watched;
mod worst;
mod xml;

pub use around::around;
pub use cell_doubts::cell_doubts;
pub use cells::{Cells, Exceeded};
pub use cells_json::cells_json;
pub use cells_markdown::cells_markdown;
pub use cells_text::cells_text;
pub use doubts::doubts as doubts_text;
pub use explain::{explain_diff_json, explain_diff_text, explain_json, explain_text};
pub use findings::{Action, Finding, When, findings};
pub use flame::{flame_diff_svg, flame_svg};
pub use folded::{folded, folded_diff};
pub use histogram::{jitter_hgrm, jitter_list};
pub use jitter::{
    jitter_close, jitter_header, jitter_row, jitter_rows_header, jitter_so_far,
};
pub use json::{facts_json, json};
pub use limits::exceeded;
pub use made_with::made_with;
pub use page::facts_text;
pub use paragraph::paragraph;
pub use phase::{phase_json, phase_svg, phase_text};
pub use slices::slices_classic;
pub use slices_page::slices_html;
pub use slices_picture::slices_svg;
pub use text::text;
pub use ticks::{ticks_close, ticks_header, ticks_sample};
pub use trace::trace;
