//! Times, bins and counts as what a chart draws.

use units::Nanos;

use crate::document::chart::{Mark, Tone};
use crate::document::text::{Text, text};
use crate::number;

/// A time as a number of its axis.
pub(crate) fn nanos(time: Nanos) -> f64 {
    time.as_secs_f64() * 1e9
}

/// The ends of a bin on a logarithmic axis. The first bin begins at zero and the last has no end: they are
/// drawn as wide as a third of a power of ten.
pub(crate) fn open_bin(from: Nanos, below: Nanos) -> [f64; 2] {
    match [from, below].map(nanos) {
        [from, below] if from <= 0.0 => [below / 2.0, below],
        [from, _] if below == Nanos::MAX => [from, from * 2.0],
        ends => ends,
    }
}

/// The lengths in a bin, in words.
pub(crate) fn length(from: Nanos, below: Nanos) -> Text {
    let [least, most] = [from, below].map(number::duration);
    match (from, below) {
        (Nanos::ZERO, _) => text!("below {}", most),
        (_, Nanos::MAX) => text!("{} and more", least),
        _ => text!("{} to {}", least, most),
    }
}

/// A mark for the lengths in a bin: from zero to a height, which is said in words.
pub(crate) fn bin(
    [from, below]: [Nanos; 2],
    height: f64,
    words: impl Into<Text>,
) -> Mark {
    Mark::over(open_bin(from, below), [0.0, height]).says(length(from, below), words)
}

/// Lines at the lengths that are known, each with its name.
pub(crate) fn rules<const N: usize>(
    lengths: [(&'static str, Option<Nanos>); N],
) -> impl Iterator<Item = Mark> {
    lengths.into_iter().filter_map(|(name, length)| Some(rule(name, length?)))
}

/// A line at a length, with its name.
fn rule(name: &'static str, length: Nanos) -> Mark {
    let x = nanos(length);
    let words = text!("{} {}", name, number::duration(length));
    Mark::over([x, x], [f64::NEG_INFINITY, f64::INFINITY])
        .says(name, number::duration(length))
        .beside(words)
}

/// The colour of a part of the most.
pub(crate) fn heat(part: f64, most: f64) -> Tone {
    Tone::Heat(if most > 0.0 { part / most } else { 0.0 })
}

/// The colour of a count, which is 1 or more, on a logarithmic scale.
pub(crate) fn heat_of_count(count: u64, most: u64) -> Tone {
    let logarithm = |count: u64| (count as f64 + 1.0).ln();
    heat(logarithm(count), logarithm(most))
}
