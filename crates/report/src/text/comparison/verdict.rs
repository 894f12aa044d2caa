//! What follows from a comparison, in words.

use stats::Conclusion;
use summary::Compared;

use crate::number;

/// The verdict with its interval.
pub(crate) fn verdict(compared: &Compared) -> String {
    let direction = match compared.conclusion {
        Conclusion::Lower => "lower",
        Conclusion::Higher => "higher",
        Conclusion::Equal
        | Conclusion::NoLargerDifference { .. }
        | Conclusion::NotEnoughData { .. } => return short(compared),
    };
    let (difference_ppm, interval_ppm) = (compared.difference_ppm, compared.interval_ppm);
    if let (None, None, Some(difference), Some([low, high])) =
        (difference_ppm, interval_ppm, compared.difference, compared.interval)
    {
        let [difference, low, high] = signed([difference, low, high], compared);
        return format!("{direction}: {difference} ({low} to {high})");
    }
    let interval = interval(compared).map(|[low, high]| format!(" ({low} to {high})"));
    format!("{direction}: {}{}", difference(compared), interval.unwrap_or_default())
}

/// The verdict without the interval; of a culprit that only one set has, in how many runs.
pub(crate) fn short(compared: &Compared) -> String {
    match compared.conclusion {
        Conclusion::Equal => "equal".to_owned(),
        Conclusion::Lower => format!("lower: {}", difference(compared)),
        Conclusion::Higher => format!("higher: {}", difference(compared)),
        Conclusion::NoLargerDifference { largest_ppm } if largest_ppm.get() == 0.0 => {
            "no difference".to_owned()
        }
        Conclusion::NoLargerDifference { largest_ppm } => {
            format!("no difference larger than {}", number::ratio(largest_ppm))
        }
        Conclusion::NotEnoughData { more_runs } => match more_runs {
            None => "not enough data".to_owned(),
            Some(1) => "not enough data: 1 more run".to_owned(),
            Some(runs) => format!("not enough data: {} more runs", number::count(runs)),
        },
    }
}

/// The verdict on a culprit, for the set of that letter compared with A.
pub(crate) fn of_culprit(letter: &str, compared: &Compared) -> String {
    let of = if compared.block.is_some() { "blocks" } else { "runs" };
    let [base, other] = compared.nonzero;
    let (change, set, with, all) = match (base, other) {
        (0, 1..) => ("new", letter, other, compared.values[1]),
        (1.., 0) => ("gone", "A", base, compared.values[0]),
        _ => return short(compared),
    };
    match compared.is_difference() {
        true => format!("{change}: {set} has it in {with} of {all} {of}"),
        false => format!("only in {set}, in {with} of {all} {of}"),
    }
}

/// The difference, in percent of the base if possible.
fn difference(compared: &Compared) -> String {
    match (compared.difference_ppm, compared.difference) {
        (Some(part), _) => number::change(part),
        (None, Some(difference)) => {
            let [difference] = signed([difference], compared);
            difference
        }
        (None, None) => number::UNKNOWN.to_owned(),
    }
}

fn interval(compared: &Compared) -> Option<[String; 2]> {
    match compared.interval_ppm {
        Some(bounds) => Some(bounds.map(number::change)),
        None => Some(signed(compared.interval?, compared)),
    }
}

/// Differences in the metric's unit, with their signs.
fn signed<const N: usize>(differences: [f64; N], compared: &Compared) -> [String; N] {
    let mut sizes = number::in_one_unit(differences.map(f64::abs), compared.unit);
    for (size, difference) in sizes.iter_mut().zip(differences) {
        size.insert(0, if difference < 0.0 { '-' } else { '+' });
    }
    sizes
}

/// A value in its unit.
pub(crate) fn value(value: f64, compared: &Compared) -> String {
    number::in_unit(value, compared.unit)
}
