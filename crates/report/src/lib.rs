//! Terminal and JSON.
//!
//! Takes facts and recordings, returns texts; printing them is the caller's. Every
//! number in them is a field of a `stats` summary, scaled and rounded for people in
//! `number` only; the JSON has them in full. No line is wider than 80 columns.
#![forbid(unsafe_code)]

mod check;
mod doubts;
#[cfg(test)]
mod example;
mod findings;
mod json;
mod limits;
mod meanwhile;
mod noise;
mod number;
mod page;
mod paragraph;
mod summary;
mod table;
mod text;
mod tick_words;
mod ticks;
mod value;
mod worst;

pub use findings::{Finding, findings};
pub use json::{facts_json, json};
pub use limits::exceeded;
pub use page::facts_text;
pub use summary::{check_summary, noise_summary, sample_summary, ticks_summary};
pub use text::text;
pub use ticks::{ticks_close, ticks_header, ticks_sample};
