//! Numbers as text: three significant digits and a unit. Full precision is in JSON only.
//!
//! An exact number is printed without trailing zeros (`10 µs`), a rounded number with them
//! (`10.0 µs`). A number other than zero is never printed as zero, and a share below the whole
//! never as 100 %.

use units::{Instructions, Nanos, PerSecond, Ppm};

use crate::document::text::{Text, text};

/// Printed for an unknown value.
pub(crate) const UNKNOWN: &str = "?";
/// Printed if there is no value.
pub(crate) const NONE: &str = "-";

/// A unit: its name, its size in the smallest unit, and the number from which the next is used.
type Unit = (&'static str, u64, u128);

/// Seconds are used up to ten minutes.
const TIMES: [Unit; 7] = [
    ("ns", 1, 1000),
    ("µs", 1_000, 1000),
    ("ms", 1_000_000, 1000),
    ("s", 1_000_000_000, 600),
    ("min", 60_000_000_000, 600),
    ("h", 3_600_000_000_000, 240),
    ("d", 86_400_000_000_000, u128::MAX),
];
const FREQUENCIES: [Unit; 4] = [
    ("Hz", 1, 1000),
    ("kHz", 1_000, 1000),
    ("MHz", 1_000_000, 1000),
    ("GHz", 1_000_000_000, u128::MAX),
];
const COUNTS: [Unit; 5] = [
    ("M", 1_000_000, 1000),
    ("G", 1_000_000_000, 1000),
    ("T", 1_000_000_000_000, 1000),
    ("P", 1_000_000_000_000_000, 1000),
    ("E", 1_000_000_000_000_000_000, u128::MAX),
];

const BYTES: [Unit; 4] = [
    ("B", 1, 1000),
    ("kB", 1_000, 1000),
    ("MB", 1_000_000, 1000),
    ("GB", 1_000_000_000, u128::MAX),
];

/// A size: `9.31 MB`.
pub(crate) fn bytes(bytes: u64) -> Text {
    with_unit(bytes, &BYTES)
}

/// A difference in percent, with its sign: `-1.23 %`, `0 %`; what is less than 0.005 % is `±0 %`.
pub(crate) fn change(part: Ppm) -> Text {
    let percent = part.get() / 1e4;
    let text = match percent.abs() {
        0.0 => "0 %".to_owned(),
        ..0.005 => "±0 %".to_owned(),
        ..9.995 => format!("{percent:+.2} %"),
        ..99.95 => format!("{percent:+.1} %"),
        size => {
            let sign = if percent < 0.0 { '-' } else { '+' };
            format!("{sign}{} %", group_digits(&format!("{size:.0}")))
        }
    };
    Text::number(text)
}

/// A difference of counts, rounded to an integer, with its sign: `-1234`, `+12,345`, `0`.
pub(crate) fn count_difference(difference: f64) -> Text {
    let rounded = difference.round();
    signed(rounded, Text::number(group_digits(&format!("{:.0}", rounded.abs()))))
}

/// The same of an integer.
pub(crate) fn exact_difference(difference: i128) -> Text {
    let size = u64::try_from(difference.unsigned_abs()).unwrap_or(u64::MAX);
    signed(difference as f64, count(size))
}

/// The size of a difference with its sign.
pub(crate) fn signed(difference: f64, size: Text) -> Text {
    match difference {
        0.0 => Text::number("0"),
        ..0.0 => Text::number(format!("-{size}")),
        _ => Text::number(format!("+{size}")),
    }
}

/// A duration: `13.2 µs`.
pub(crate) fn duration(time: Nanos) -> Text {
    with_unit(time.get(), &TIMES)
}

/// A duration in the one or the other direction: `-3 ms`.
pub(crate) fn signed_duration(nanos: i64) -> Text {
    let size = duration(Nanos::from_nanos(nanos.unsigned_abs()));
    if nanos < 0 { Text::number(format!("-{size}")) } else { size }
}

/// Bounds of a duration: `4.7 ms to 4.73 ms`, or one duration if they look the same.
pub(crate) fn bounds(least: Nanos, most: Nanos) -> Text {
    match (duration(least), duration(most)) {
        (least, most) if least == most => most,
        (_, most) if least.is_zero() => Text::number(format!("at most {most}")),
        (least, most) => Text::number(format!("{least} to {most}")),
    }
}

/// The duration of a measurement: the requested one, unless the real one differs by more than 1 %.
pub(crate) fn measured(real: Option<Nanos>, requested: Nanos) -> Text {
    let differs = |real: &Nanos| {
        real.get().abs_diff(requested.get()).saturating_mul(100) > requested.get()
    };
    duration(real.filter(differs).unwrap_or(requested))
}

/// A period with microseconds: `10.000 ms`.
pub(crate) fn period(time: Nanos) -> Text {
    let micros = (time.get() + 500) / 1_000;
    Text::number(format!("{}.{:03} ms", micros / 1_000, micros % 1_000))
}

/// A frequency: `2.6 GHz`.
pub(crate) fn frequency(hz: u64) -> Text {
    with_unit(hz, &FREQUENCIES)
}

/// A time since the start of a recording, with tenths of a second: `12.0 s`.
pub(crate) fn moment(since_start: Nanos) -> Text {
    let tenths = (since_start.get() + 50_000_000) / 100_000_000;
    Text::number(format!("{}.{} s", tenths / 10, tenths % 10))
}

/// Shares from here on are printed in percent.
const PERCENT_FROM: f64 = 99.95;

/// A share of a whole: `0.41 %`; below 0.01 % in ppm: `41.2 ppm`.
pub(crate) fn share(part: Ppm) -> Text {
    let text = match part.get() {
        ppm if ppm > 0.0 && ppm < 0.005 => "<0.01 ppm".to_owned(),
        ppm if ppm > 0.0 && ppm < 9.995 => format!("{} ppm", with_decimals(ppm, 2)),
        ppm if ppm > 0.0 && ppm < PERCENT_FROM => format!("{} ppm", three_digits(ppm)),
        999_500.0..1e6 => ">99.9 %".to_owned(),
        ppm => format!("{} %", three_digits(ppm / 1e4)),
    };
    Text::number(text)
}

/// The common unit of the shares in one sentence, so that they can be compared: that of the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShareUnit {
    /// If the largest share is 0.01 % or more, or all are zero.
    Percent,
    /// Parts per million.
    Ppm,
}

impl ShareUnit {
    /// The unit for these shares.
    pub(crate) fn of(shares: impl IntoIterator<Item = Option<Ppm>>) -> Self {
        let largest = shares.into_iter().flatten().map(Ppm::get).fold(0.0, f64::max);
        if largest > 0.0 && largest < PERCENT_FROM { Self::Ppm } else { Self::Percent }
    }

    /// A share in this unit: `0.0357 %`, `<0.0001 %`.
    pub(crate) fn print(self, part: Ppm) -> Text {
        let ppm = part.get();
        let decimals = match self {
            Self::Ppm => return share(part),
            Self::Percent if ppm <= 0.0 || ppm >= PERCENT_FROM => return share(part),
            Self::Percent if ppm < 0.995 => return Text::number("<0.0001 %"),
            Self::Percent if ppm < 9.995 => 6,
            Self::Percent => 5,
        };
        Text::number(format!("{} %", with_decimals(ppm / 1e4, decimals)))
    }

    /// The same, or `?` if it is unknown.
    pub(crate) fn known(self, part: Option<Ppm>) -> Text {
        known(part.map(|part| self.print(part)))
    }
}

/// A relative difference of two numbers: `3.94 %`, `120 %`; below 0.01 % in ppm.
pub(crate) fn ratio(part: Ppm) -> Text {
    match part.get() {
        ppm if ppm < 100.0 => share(part),
        ppm if ppm < 9_995_000.0 => {
            Text::number(format!("{} %", three_digits(ppm / 1e4)))
        }
        ppm => Text::number(format!("{} %", group_digits(&format!("{:.0}", ppm / 1e4)))),
    }
}

/// A factor: `39`, `1.5`.
pub(crate) fn factor(factor: f64) -> Text {
    match factor {
        ..0.995 => Text::number(three_digits(factor)),
        ..9.95 => Text::number(trim_zeros(&with_decimals(factor, 1))),
        _ => Text::number(group_digits(&format!("{factor:.0}"))),
    }
}

/// A rate: `250/s`.
pub(crate) fn rate(rate: PerSecond) -> Text {
    Text::number(format!("{}/s", bare_rate(rate)))
}

/// A rate without `/s`.
pub(crate) fn bare_rate(rate: PerSecond) -> Text {
    let text = match rate.get() {
        rate if rate > 0.0 && rate < 0.005 => "<0.01".to_owned(),
        rate if rate < 9.995 => with_decimals(rate, 2),
        rate if rate < 999.5 => three_digits(rate),
        rate => group_digits(&format!("{rate:.0}")),
    };
    Text::number(text)
}

/// A count: `2512`, `12,345`.
pub(crate) fn count(count: u64) -> Text {
    Text::number(group_digits(&count.to_string()))
}

/// A number of things: `1 thread`, `12 threads`, `2 entries`.
pub(crate) fn counted(count: u64, thing: &str) -> Text {
    match (count, thing.strip_suffix('y')) {
        (1, _) => text!("1 {}", thing),
        (_, Some(stem)) => text!("{} {}ies", count, stem),
        (_, None) => text!("{} {}s", count, thing),
    }
}

/// A sentence about rows that are left out; empty if none is.
pub(crate) fn more(left_out: usize, words: &str) -> Text {
    match left_out {
        0 => Text::default(),
        more => text!("{} {}: see {}", more, words, Text::command("--json")),
    }
}

/// A number, rounded to an integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "means of counts are not negative, and far below 2^53"
)]
pub(crate) fn rounded(value: f64, count: fn(u64) -> Text) -> Text {
    count(value.round() as u64)
}

/// A difference, with its sign: `+552`, `+740.5`, `-3`, `0`.
pub(crate) fn difference(difference: f64) -> Text {
    if difference == 0.0 {
        return Text::number("0");
    }
    let decimals = usize::from(difference.fract() != 0.0);
    Text::number(format!("{difference:+.decimals$}"))
}

/// A metric, which has the unit in its name: all digits of an integer, otherwise as many as of a
/// rate.
pub(crate) fn metric(value: f64) -> Text {
    match value.fract() == 0.0 {
        true => Text::number(group_digits(&format!("{value:.0}"))),
        false if value.abs() < 0.995 => Text::number(small::significant(value)),
        false => bare_rate(PerSecond::new(value)),
    }
}

/// A metric's value, with its unit.
pub(crate) fn in_unit(value: f64, unit: stats::Unit) -> Text {
    match unit {
        stats::Unit::Ns if value.abs() < 100.0 && value.fract() != 0.0 => {
            Text::number(format!("{} ns", three_digits(value)))
        }
        stats::Unit::Ns => rounded(value, |nanos| duration(Nanos::from_nanos(nanos))),
        stats::Unit::Ppm => share(Ppm::new(value)),
        stats::Unit::Hz => rate(PerSecond::new(value)),
        stats::Unit::Instructions | stats::Unit::Count => metric(value),
    }
}

/// The values of one metric in one sentence: shares have one unit.
pub(crate) fn in_one_unit<const N: usize>(
    values: [f64; N],
    unit: stats::Unit,
) -> [Text; N] {
    if unit != stats::Unit::Ppm {
        return values.map(|value| in_unit(value, unit));
    }
    let shares = values.map(Ppm::new);
    let unit = ShareUnit::of(shares.map(Some));
    shares.map(|share| unit.print(share))
}

/// A count in little space: from a million on `47.8 M`.
pub(crate) fn short_count(count: u64) -> Text {
    if count < 1_000_000 { self::count(count) } else { with_unit(count, &COUNTS) }
}

/// The value, or `?` if it is unknown.
pub(crate) fn known(value: Option<impl Into<Text>>) -> Text {
    value.map_or_else(|| UNKNOWN.into(), Into::into)
}

/// The value, or `-` if there is none.
pub(crate) fn any(value: Option<impl Into<Text>>) -> Text {
    value.map_or_else(|| NONE.into(), Into::into)
}

/// How values of these types are printed, unless a builder chooses another function.
macro_rules! printed {
    ($($type:ty: $print:expr;)+) => {
        $(impl From<$type> for Text {
            fn from(value: $type) -> Self {
                let print: fn($type) -> Self = $print;
                print(value)
            }
        })+
    };
}
printed! {
    Nanos: duration;
    Ppm: share;
    PerSecond: bare_rate;
    Instructions: |all| count(all.get());
    u64: count;
    u32: |all| count(all.into());
    usize: |all| count(all as u64);
}

/// The digits with commas; four digits or fewer have none.
fn group_digits(digits: &str) -> String {
    if digits.len() < 5 {
        return digits.to_owned();
    }
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn with_unit(value: u64, units: &[Unit]) -> Text {
    let in_unit = |&(name, unit, below): &Unit| {
        let (digits, whole) = scale(u128::from(value), u128::from(unit));
        (whole < below).then(|| format!("{digits} {name}"))
    };
    units.iter().find_map(in_unit).map(Text::number).unwrap_or_default()
}

/// `value / unit` with three significant digits, or all digits before the point, and the integer
/// part of the rounded number. In integers, because large values have no exact float.
fn scale(value: u128, unit: u128) -> (String, u128) {
    let rounded = |power: u128| (value * power + unit / 2) / unit;
    let power = [100, 10].into_iter().find(|&power| rounded(power) < 1000).unwrap_or(1);
    let (whole, part) = (rounded(power) / power, rounded(power) % power);
    let text = match power {
        100 => format!("{whole}.{part:02}"),
        10 => format!("{whole}.{part}"),
        _ => group_digits(&whole.to_string()),
    };
    let is_exact = rounded(power) * unit == value * power;
    (if is_exact { trim_zeros(&text) } else { text }, whole)
}

/// Three significant digits, or all digits before the point.
fn three_digits(value: f64) -> String {
    let decimals = [(0.0995, 4), (0.9995, 3), (9.995, 2), (99.95, 1)]
        .iter()
        .find(|(below, _)| value < *below)
        .map_or(0, |(_, decimals)| *decimals);
    with_decimals(value, decimals)
}

/// The number with so many decimals, without trailing zeros if it is exact.
fn with_decimals(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let is_exact = text.parse() == Ok(value);
    if is_exact { trim_zeros(&text) } else { text }
}

fn trim_zeros(text: &str) -> String {
    if !text.contains('.') {
        return text.to_owned();
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

mod small;
#[cfg(test)]
mod tests;
