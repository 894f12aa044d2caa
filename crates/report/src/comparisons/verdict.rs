//! What follows from a comparison, in words.

use stats::{Block, BlockUnit, Conclusion, ItemUnit, Unit};
use summary::Compared;

use crate::document::text::{Text, text};
use crate::number;

/// The verdict, and what is more to say: the interval of a difference, the bound of one that was not
/// found, or the number of runs that is missing.
pub(crate) fn verdict(compared: &Compared) -> [Text; 2] {
    match compared.conclusion {
        Conclusion::Equal => ["equal".into(), Text::default()],
        Conclusion::Lower => difference("lower", compared),
        Conclusion::Higher => difference("higher", compared),
        Conclusion::NoLargerDifference { largest_ppm } if largest_ppm.get() == 0.0 => {
            ["no difference".into(), Text::default()]
        }
        Conclusion::NoLargerDifference { largest_ppm } => {
            ["no difference".into(), text!("larger than {}", number::ratio(largest_ppm))]
        }
        Conclusion::NotEnoughData { more_runs } => {
            let is_value =
                |block: Block| block.unit == BlockUnit::Items(ItemUnit::Values);
            let what = match compared.block.is_some_and(is_value) {
                true => "more value",
                false => "more run",
            };
            let more = more_runs.map(|count| number::counted(count, what));
            let more = more.unwrap_or_default();
            ["not enough data".into(), more]
        }
    }
}

/// The verdict on a culprit without the interval, for the set of that letter compared with A; of one
/// that only one set has, in how many runs.
pub(crate) fn of_culprit(letter: &str, compared: &Compared) -> Text {
    let of = if compared.block.is_some() { "blocks" } else { "runs" };
    let [base, other] = compared.nonzero;
    let (change, set, with, all) = match (base, other) {
        (0, 1..) => ("new", letter, other, compared.values[1]),
        (1.., 0) => ("gone", "A", base, compared.values[0]),
        _ => return in_one(compared),
    };
    let [with, all] = [with, all].map(|count| count.to_string());
    match compared.is_difference() {
        true => text!("{}: {} has it in {} of {} {}", change, set, with, all, of),
        false => text!("only in {}, in {} of {} {}", set, with, all, of),
    }
}

/// The verdict without the interval.
fn in_one(compared: &Compared) -> Text {
    let [verdict, more] = verdict(compared);
    match compared.conclusion {
        _ if more.is_empty() => verdict,
        Conclusion::Equal | Conclusion::Lower | Conclusion::Higher => verdict,
        Conclusion::NoLargerDifference { .. } => text!("{} {}", verdict, more),
        Conclusion::NotEnoughData { .. } => text!("{}: {}", verdict, more),
    }
}

/// The difference and its interval, in percent of the base if possible.
fn difference(direction: &str, compared: &Compared) -> [Text; 2] {
    let interval = compared.interval.unwrap_or_default();
    let [difference, low, high] = match (compared.difference_ppm, compared.interval_ppm) {
        (Some(part), Some([low, high])) => [part, low, high].map(number::change),
        _ => {
            let difference = compared.difference.unwrap_or_default();
            signed([difference, interval[0], interval[1]], compared.unit)
        }
    };
    [text!("{}: {}", direction, difference), text!("{} to {}", low, high)]
}

/// Differences in the metric's unit, with their signs.
fn signed<const N: usize>(differences: [f64; N], unit: Unit) -> [Text; N] {
    let mut sizes = number::in_one_unit(differences.map(f64::abs), unit);
    for (size, difference) in sizes.iter_mut().zip(differences) {
        *size = number::signed(difference, std::mem::take(size));
    }
    sizes
}
