//! The period of recorded gaps: two times 2 s of unexplained gaps of a guest on a host with a timer of
//! 100 Hz (kernel 6.18, `noise --fifo 60` on a busy machine). Each line is the start and the length of
//! a gap in nanoseconds.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use summary::Period;
use units::Nanos;

const PERIOD: u64 = 10_000_000;
/// A hundredth of it.
const BIN: u64 = PERIOD / 100;

fn gaps(text: &str) -> Vec<(u64, u64)> {
    let number = |word: &str| word.parse().unwrap();
    let gap = |line: &str| {
        let (begin, length) = line.split_once(' ').unwrap();
        (number(begin), number(length))
    };
    text.lines().map(gap).collect()
}

/// The largest share of the time in a hundredth of the period.
fn heaviest(gaps: &[(u64, u64)]) -> f64 {
    let mut bins = [0; 100];
    gaps.iter()
        .for_each(|(at, ns)| bins[usize::try_from(at % PERIOD / BIN).unwrap()] += ns);
    *bins.iter().max().unwrap() as f64 / bins.iter().sum::<u64>() as f64
}

/// Check that the host's period is found although few of the gaps have it, and that its share is at
/// least that of one hundredth of the period, and not much more.
#[test]
fn of_a_host() {
    for text in
        [include_str!("unexplained-gaps-1.txt"), include_str!("unexplained-gaps-2.txt")]
    {
        let gaps = gaps(text);
        let nanos =
            |&(at, ns): &(u64, u64)| (Nanos::from_nanos(at), Nanos::from_nanos(ns));
        let found = Period::find(&gaps.iter().map(nanos).collect::<Vec<_>>()).unwrap();
        let off = found.period_ns.get().abs_diff(PERIOD);
        // Over 200 cycles, one of the 128 bins is 39 ppm.
        assert!(off * 25_000 <= PERIOD, "{found:?}");
        let (share, least) = (found.share_ppm.get() / 1e6, heaviest(&gaps));
        assert!((least - 0.01..least + 0.1).contains(&share), "{found:?} {least}");
    }
}
