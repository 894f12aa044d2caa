//! Printed numbers.

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
        shares
            .iter()
            .map(print)
            .map(|text| text.to_string())
            .collect::<Vec<_>>()
            .join(", ")
    };
    assert_eq!(print(&[2_960.0, 56.5, 0.0]), "0.296 %, 0.00565 %, 0 %");
    assert_eq!(print(&[99.95, 9.994, 1.0]), "0.0100 %, 0.000999 %, 0.0001 %");
    assert_eq!(print(&[999_999.0, 0.004, 0.994]), ">99.9 %, <0.0001 %, <0.0001 %");
    assert_eq!(print(&[56.5, 0.001]), "56.5 ppm, <0.01 ppm");
    assert_eq!(print(&[0.0]), "0 %");
    assert_eq!(ShareUnit::of([None]).known(None), Text::from("?"));
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
    let expected = ["0 %", "±0 %", "-1.23 %", "+12.3 %", "+99.0 %", "-150 %", "+4200 %"];
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
    let counted = [0, 1, 12_345].map(|count| counted(count, "CPU").to_string());
    assert_eq!(counted, ["0 CPUs", "1 CPU", "12,345 CPUs"]);
    let counts = [0, 999, 9_999, 10_000, 123_456, 1_234_567].map(count);
    assert_eq!(counts, ["0", "999", "9999", "10,000", "123,456", "1,234,567"]);
    let counts = [999_999, 1_000_000, 47_751_804, 999_950_000, u64::MAX];
    let short = ["999,999", "1 M", "47.8 M", "1.00 G", "18.4 E"];
    assert_eq!(counts.map(short_count), short);
    assert_eq!([-3_000_000, 0, 5].map(signed_duration), ["-3 ms", "0 ns", "5 ns"]);
    assert_eq!(signed_duration(i64::MIN), "-106,752 d");
    assert_eq!(moment(Nanos::from_millis(12_049)), "12.0 s");
    assert_eq!(moment(Nanos::from_millis(12_050)), "12.1 s");
}

/// Check that durations of up to three significant digits are printed exactly, in every unit.
#[test]
fn nearest() {
    for lead in 1_u64..1000 {
        for scale in [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000] {
            let exact = lead * scale;
            let text = duration(Nanos::from_nanos(exact)).to_string();
            let (digits, unit) = text.split_once(' ').unwrap();
            let unit = TIMES.iter().find(|(name, ..)| *name == unit).unwrap().1;
            let back = digits.parse::<f64>().unwrap() * unit as f64;
            assert!((back - exact as f64).abs() < 1e-3, "{exact}: {text}");
        }
    }
}
