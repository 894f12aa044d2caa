//! Numbers as text: three significant digits and a unit. Full precision is in JSON only.
//!
//! An exact number is printed without trailing zeros (`10 µs`), a rounded number with them
//! (`10.0 µs`). A number other than zero is never printed as zero, and a share below the whole
//! never as 100 %.

use units::{Nanos, PerSecond, Ppm};

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
pub(crate) fn bytes(bytes: u64) -> String {
    with_unit(bytes, &BYTES)
}

/// A difference in percent, with its sign: `-1.23 %`, `0 %`; what is less than 0.005 % is `±0 %`.
pub(crate) fn change(part: Ppm) -> String {
    let percent = part.get() / 1e4;
    if percent == 0.0 {
        "0 %".to_owned()
    } else if percent.abs() < 0.005 {
        "±0 %".to_owned()
    } else if percent.abs() < 9.995 {
        format!("{percent:+.2} %")
    } else if percent.abs() < 99.95 {
        format!("{percent:+.1} %")
    } else {
        let sign = if percent < 0.0 { '-' } else { '+' };
        format!("{sign}{} %", group_digits(&format!("{:.0}", percent.abs())))
    }
}

/// A difference of counts, rounded to an integer, with its sign: `-1234`, `+12,345`, `0`.
pub(crate) fn count_difference(difference: f64) -> String {
    let rounded = difference.round();
    match rounded == 0.0 {
        true => "0".to_owned(),
        false => {
            let sign = if rounded < 0.0 { '-' } else { '+' };
            format!("{sign}{}", group_digits(&format!("{:.0}", rounded.abs())))
        }
    }
}

/// A duration: `13.2 µs`.
pub(crate) fn duration(time: Nanos) -> String {
    with_unit(time.get(), &TIMES)
}

/// Bounds of a duration: `4.7 ms to 4.73 ms`, or one duration if they look the same.
pub(crate) fn bounds(least: Nanos, most: Nanos) -> String {
    match (duration(least), duration(most)) {
        (least, most) if least == most => most,
        (_, most) if least.is_zero() => format!("at most {most}"),
        (least, most) => format!("{least} to {most}"),
    }
}

/// The duration of a measurement: the requested one, unless the real one differs by more than 1 %.
pub(crate) fn measured(real: Option<Nanos>, requested: Nanos) -> String {
    let differs = |real: &Nanos| {
        real.get().abs_diff(requested.get()).saturating_mul(100) > requested.get()
    };
    duration(real.filter(differs).unwrap_or(requested))
}

/// A period with microseconds: `10.000 ms`.
pub(crate) fn period(time: Nanos) -> String {
    let micros = (time.get() + 500) / 1_000;
    format!("{}.{:03} ms", micros / 1_000, micros % 1_000)
}

/// A frequency: `2.6 GHz`.
pub(crate) fn frequency(hz: u64) -> String {
    with_unit(hz, &FREQUENCIES)
}

/// A time since the start of a recording, with tenths of a second: `12.0 s`.
pub(crate) fn moment(since_start: Nanos) -> String {
    let tenths = (since_start.get() + 50_000_000) / 100_000_000;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

/// Shares from here on are printed in percent.
const PERCENT_FROM: f64 = 99.95;

/// A share of a whole: `0.41 %`; below 0.01 % in ppm: `41.2 ppm`.
pub(crate) fn share(part: Ppm) -> String {
    let ppm = part.get();
    if ppm > 0.0 && ppm < 0.005 {
        "<0.01 ppm".to_owned()
    } else if ppm > 0.0 && ppm < 9.995 {
        format!("{} ppm", with_decimals(ppm, 2))
    } else if ppm > 0.0 && ppm < PERCENT_FROM {
        format!("{} ppm", three_digits(ppm))
    } else if (999_500.0..1e6).contains(&ppm) {
        ">99.9 %".to_owned()
    } else {
        format!("{} %", three_digits(ppm / 1e4))
    }
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
    pub(crate) fn print(self, part: Ppm) -> String {
        let ppm = part.get();
        let decimals = match self {
            Self::Ppm => return share(part),
            Self::Percent if ppm <= 0.0 || ppm >= PERCENT_FROM => return share(part),
            Self::Percent if ppm < 0.995 => return "<0.0001 %".to_owned(),
            Self::Percent if ppm < 9.995 => 6,
            Self::Percent => 5,
        };
        format!("{} %", with_decimals(ppm / 1e4, decimals))
    }

    /// The same, or `?` if it is unknown.
    pub(crate) fn known(self, part: Option<Ppm>) -> String {
        known(part, |part| self.print(part))
    }
}

/// A relative difference of two numbers: `3.94 %`, `120 %`; below 0.01 % in ppm.
pub(crate) fn ratio(part: Ppm) -> String {
    match part.get() {
        ppm if ppm < 100.0 => share(part),
        ppm if ppm < 9_995_000.0 => format!("{} %", three_digits(ppm / 1e4)),
        ppm => format!("{} %", group_digits(&format!("{:.0}", ppm / 1e4))),
    }
}

/// A rate: `250/s`.
pub(crate) fn rate(rate: PerSecond) -> String {
    format!("{}/s", bare_rate(rate))
}

/// A rate without `/s`.
pub(crate) fn bare_rate(rate: PerSecond) -> String {
    let rate = rate.get();
    if rate > 0.0 && rate < 0.005 {
        "<0.01".to_owned()
    } else if rate < 9.995 {
        with_decimals(rate, 2)
    } else if rate < 999.5 {
        three_digits(rate)
    } else {
        group_digits(&format!("{rate:.0}"))
    }
}

/// A count: `2512`, `12,345`.
pub(crate) fn count(count: u64) -> String {
    group_digits(&count.to_string())
}

/// A number, rounded to an integer.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "means of counts are not negative, and far below 2^53"
)]
pub(crate) fn rounded(value: f64, count: fn(u64) -> String) -> String {
    count(value.round() as u64)
}

/// A difference, with its sign: `+552`, `+740.5`, `-3`, `0`.
pub(crate) fn difference(difference: f64) -> String {
    if difference == 0.0 {
        return "0".to_owned();
    }
    let decimals = usize::from(difference.fract() != 0.0);
    format!("{difference:+.decimals$}")
}

/// A metric, which has the unit in its name: all digits of an integer, otherwise as many as of a
/// rate.
pub(crate) fn metric(value: f64) -> String {
    match value.fract() == 0.0 {
        true => group_digits(&format!("{value:.0}")),
        false => bare_rate(PerSecond::new(value)),
    }
}

/// A metric's value, with its unit.
pub(crate) fn in_unit(value: f64, unit: stats::Unit) -> String {
    match unit {
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
) -> [String; N] {
    if unit != stats::Unit::Ppm {
        return values.map(|value| in_unit(value, unit));
    }
    let shares = values.map(Ppm::new);
    let unit = ShareUnit::of(shares.map(Some));
    shares.map(|share| unit.print(share))
}

/// A count in little space: from a million on `47.8 M`.
pub(crate) fn short_count(count: u64) -> String {
    if count < 1_000_000 { self::count(count) } else { with_unit(count, &COUNTS) }
}

/// The formatted value, or `?` if it is unknown.
pub(crate) fn known<T>(value: Option<T>, print: impl Fn(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), print)
}

/// The formatted value, or `-` if there is none.
pub(crate) fn any<T>(value: Option<T>, print: impl Fn(T) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), print)
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

fn with_unit(value: u64, units: &[Unit]) -> String {
    let in_unit = |&(name, unit, below): &Unit| {
        let (digits, whole) = scale(u128::from(value), u128::from(unit));
        (whole < below).then(|| format!("{digits} {name}"))
    };
    units.iter().find_map(in_unit).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the durations of measurements that ended in time, early and late.
    #[test]
    fn measured_lengths() {
        let of = |real, requested| {
            measured(Some(Nanos::from_millis(real)), Nanos::from_secs(requested))
        };
        assert_eq!([of(6_931, 7), of(7_070, 7)], ["7 s", "7 s"]);
        assert_eq!([of(1_934, 7), of(9_000, 7)], ["1.93 s", "9 s"]);
        assert_eq!(measured(None, Nanos::from_secs(7)), "7 s");
    }

    /// Check that shares of one sentence have one unit: that of the largest.
    #[test]
    fn shares_of_one_unit() {
        let print = |shares: &[f64]| {
            let unit = ShareUnit::of(shares.iter().map(|ppm| Some(Ppm::new(*ppm))));
            let print = |ppm: &f64| unit.print(Ppm::new(*ppm));
            shares.iter().map(print).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(print(&[2_960.0, 56.5, 0.0]), "0.296 %, 0.00565 %, 0 %");
        assert_eq!(print(&[99.95, 9.994, 1.0]), "0.0100 %, 0.000999 %, 0.0001 %");
        assert_eq!(print(&[999_999.0, 0.004, 0.994]), ">99.9 %, <0.0001 %, <0.0001 %");
        assert_eq!(print(&[56.5, 0.001]), "56.5 ppm, <0.01 ppm");
        assert_eq!(print(&[0.0]), "0 %");
        assert_eq!(ShareUnit::of([None]).known(None), "?");
    }

    /// Check durations over the whole range, and at the changes of units.
    #[test]
    fn durations() {
        for (nanos, text) in [
            (0, "0 ns"),
            (8, "8 ns"),
            (120, "120 ns"),
            (999, "999 ns"),
            (1_000, "1 µs"),
            (1_001, "1.00 µs"),
            (1_500, "1.5 µs"),
            (9_994, "9.99 µs"),
            (9_995, "10.0 µs"),
            (9_996, "10.0 µs"),
            (10_000, "10 µs"),
            (13_200, "13.2 µs"),
            (13_249, "13.2 µs"),
            (13_250, "13.3 µs"),
            (99_949, "99.9 µs"),
            (99_950, "100 µs"),
            (120_000, "120 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (1_000_000, "1 ms"),
            (1_204_567, "1.20 ms"),
            (45_100_000, "45.1 ms"),
            (999_499_999, "999 ms"),
            (999_999_999, "1.00 s"),
            (3_000_000_000, "3 s"),
            (10_000_000_000, "10 s"),
            (59_960_000_000, "60.0 s"),
            (599_600_000_000, "9.99 min"),
            (125_000_000_000, "125 s"),
            (599_000_000_000, "599 s"),
            (600_000_000_000, "10 min"),
            (7_200_000_000_000, "120 min"),
            (36_000_000_000_000, "10 h"),
            (864_000_000_000_000, "10 d"),
            (u64::MAX, "213,504 d"),
        ] {
            assert_eq!(duration(Nanos::from_nanos(nanos)), text, "{nanos}");
        }
    }

    /// Check sizes, and differences with their signs.
    #[test]
    fn differences() {
        assert_eq!([9_306_624, 512, 24_000].map(bytes), ["9.31 MB", "512 B", "24 kB"]);
        let changes = [0.0, 1.0, -12_345.0, 123_456.0, 990_000.0, -1.5e6, 4.2e7];
        let expected =
            ["0 %", "±0 %", "-1.23 %", "+12.3 %", "+99.0 %", "-150 %", "+4200 %"];
        assert_eq!(changes.map(|ppm| change(Ppm::new(ppm))), expected);
        let counts = [0.2, -1234.0, 12_345.4].map(count_difference);
        assert_eq!(counts, ["0", "-1234", "+12,345"]);
    }

    /// Check shares in percent and ppm, and that neither 0 nor 100 % is printed for others.
    #[test]
    fn shares() {
        for (ppm, text) in [
            (0.0, "0 %"),
            (0.001, "<0.01 ppm"),
            (0.006, "0.01 ppm"),
            (0.5, "0.5 ppm"),
            (4.123, "4.12 ppm"),
            (41.23, "41.2 ppm"),
            (99.94, "99.9 ppm"),
            (99.96, "0.0100 %"),
            (100.0, "0.01 %"),
            (412.3, "0.0412 %"),
            (4123.0, "0.412 %"),
            (41_234.0, "4.12 %"),
            (250_000.0, "25 %"),
            (412_345.0, "41.2 %"),
            (999_400.0, "99.9 %"),
            (999_500.0, ">99.9 %"),
            (999_999.9, ">99.9 %"),
            (1_000_000.0, "100 %"),
            (1_200_000.0, "120 %"),
        ] {
            assert_eq!(share(Ppm::new(ppm)), text, "{ppm}");
        }
    }

    /// Check rates from one per day to a million per second.
    #[test]
    fn rates() {
        for (hz, text) in [
            (0.0, "0/s"),
            (0.000_01, "<0.01/s"),
            (0.04, "0.04/s"),
            (0.333, "0.33/s"),
            (0.999, "1.00/s"),
            (1.0, "1/s"),
            (2.5, "2.5/s"),
            (12.34, "12.3/s"),
            (99.97, "100/s"),
            (249.98, "250/s"),
            (1000.4, "1000/s"),
            (9999.4, "9999/s"),
            (9999.6, "10,000/s"),
            (1_234_567.0, "1,234,567/s"),
        ] {
            assert_eq!(rate(PerSecond::new(hz)), text, "{hz}");
        }
    }

    /// Check frequencies, counts and times of a recording.
    #[test]
    fn others() {
        assert_eq!(frequency(2_596_122_000), "2.60 GHz");
        assert_eq!(frequency(24_000_000), "24 MHz");
        assert_eq!(frequency(250), "250 Hz");
        let counts = [0, 999, 9_999, 10_000, 123_456, 1_234_567].map(count);
        assert_eq!(counts, ["0", "999", "9999", "10,000", "123,456", "1,234,567"]);
        let counts = [999_999, 1_000_000, 47_751_804, 999_950_000, u64::MAX];
        let short = ["999,999", "1 M", "47.8 M", "1.00 G", "18.4 E"];
        assert_eq!(counts.map(short_count), short);
        assert_eq!(moment(Nanos::from_millis(12_049)), "12.0 s");
        assert_eq!(moment(Nanos::from_millis(12_050)), "12.1 s");
    }

    /// Check that durations of up to three significant digits are printed exactly, in every unit.
    #[test]
    fn nearest() {
        for lead in 1_u64..1000 {
            for scale in [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000] {
                let exact = lead * scale;
                let text = duration(Nanos::from_nanos(exact));
                let (digits, unit) = text.split_once(' ').unwrap();
                let unit = TIMES.iter().find(|(name, ..)| *name == unit).unwrap().1;
                let back = digits.parse::<f64>().unwrap() * unit as f64;
                assert!((back - exact as f64).abs() < 1e-3, "{exact}: {text}");
            }
        }
    }
}
