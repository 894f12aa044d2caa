//! A sentence about ranks that wait for each other, of `noise` and `check`.

use summary::AtScale;

use crate::document::text::{Text, text};
use crate::number;

/// What this noise would do to so many ranks; empty if that is not known.
pub(crate) fn at_scale(all: &[AtScale]) -> Text {
    let Some((first, others)) = all.split_first() else { return Text::default() };
    let begin = text!(
        "{} ranks that wait for each other after each step of {} would be {}",
        number::count(first.ranks),
        first.step_ns,
        slower(first, " slower")
    );
    let others = others
        .iter()
        .map(|one| text!("{} ranks {}", number::count(one.ranks), slower(one, "")));
    text!("{}.", Text::join(std::iter::once(begin).chain(others), ", "))
}

/// The slowdown with its interval, or the lower end if there is no upper one.
fn slower(one: &AtScale, words: &str) -> Text {
    let slowdown = number::ratio(one.slowdown_ppm);
    match (one.low_ppm, one.high_ppm) {
        (Some(low), Some(high)) => {
            let [low, high] = [low, high].map(number::ratio);
            text!("{}{} ({} to {})", slowdown, words, low, high)
        }
        (low, _) => {
            let low = low.unwrap_or(one.slowdown_ppm);
            text!("at least {}{}", number::ratio(low), words)
        }
    }
}
