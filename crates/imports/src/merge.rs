//! Lengths of several threads on one CPU, or on none that is named: one series of each kind and CPU.
//!
//! A series that occurs twice would be two values of one metric.

use recording::{Bin, ImportedLengths};
use units::{Cpu, Nanos};

/// Lengths of each kind, CPU and tag once, in the order in which they first occur; and the CPUs of
/// which there were several, each once.
pub(crate) fn merged(
    all: Vec<ImportedLengths>,
) -> (Vec<ImportedLengths>, Vec<Option<Cpu>>) {
    let (mut lengths, mut several) = (Vec::<ImportedLengths>::new(), Vec::new());
    for one in all {
        match lengths.iter_mut().find(|known| is_same_series(known, &one)) {
            Some(known) => {
                if !several.contains(&known.cpu) {
                    several.push(known.cpu);
                }
                *known = sum(known, &one);
            }
            None => lengths.push(one),
        }
    }
    (lengths, several)
}

fn is_same_series(a: &ImportedLengths, b: &ImportedLengths) -> bool {
    (a.kind, a.cpu, &a.tag) == (b.kind, b.cpu, &b.tag)
}

/// The lengths of both. What is known of one only is unknown, and so are quantiles, which do not add up.
fn sum(a: &ImportedLengths, b: &ImportedLengths) -> ImportedLengths {
    let mut intervals = [a.intervals.as_slice(), &b.intervals].concat();
    intervals.sort_by_key(|one| one.start_ns);
    let count = number(a).zip(number(b)).map(|(a, b)| a.saturating_add(b));
    ImportedLengths {
        tag: a.tag.clone(),
        elapsed_ns: both(a.elapsed_ns, b.elapsed_ns),
        count: if intervals.is_empty() { count } else { None },
        sum_ns: both(a.sum_ns, b.sum_ns),
        min_ns: extreme([a, b], |one| one.min_ns, Nanos::min),
        max_ns: extreme([a, b], |one| one.max_ns, Nanos::max),
        bins: Bin::merged(a.bins.iter().chain(&b.bins)),
        intervals,
        ..ImportedLengths::new(a.kind, a.cpu)
    }
}

/// The number of lengths. Without one in the file, all are in bins.
fn number(lengths: &ImportedLengths) -> Option<u64> {
    let binned = || Bin::total(&lengths.bins);
    lengths.count.or_else(|| (!lengths.bins.is_empty()).then(binned))
}

fn both(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    a.zip(b).map(|(a, b)| a.saturating_add(b))
}

/// The shortest or longest of both: a thread without lengths has none.
fn extreme(
    both: [&ImportedLengths; 2],
    of: fn(&ImportedLengths) -> Option<Nanos>,
    choose: fn(Nanos, Nanos) -> Nanos,
) -> Option<Nanos> {
    let some = both.into_iter().filter(|one| number(one) != Some(0));
    let known: Option<Vec<Nanos>> = some.map(of).collect();
    known?.into_iter().reduce(choose)
}

#[cfg(test)]
mod tests {
    use recording::LengthKind;

    use super::*;

    fn ns(length: u64) -> Option<Nanos> {
        Some(Nanos::from_nanos(length))
    }

    fn lengths(cpu: Option<u32>, bins: &[(u64, u64)]) -> ImportedLengths {
        let bin = |(from, count): &(u64, u64)| Bin {
            from_ns: Nanos::from_nanos(*from),
            until_ns: Nanos::from_nanos(from + 10),
            count: *count,
        };
        let count = bins.iter().map(|(_, count)| count).sum();
        ImportedLengths {
            elapsed_ns: ns(1_000),
            count: Some(count),
            sum_ns: ns(100 * count),
            min_ns: bins.first().and_then(|(from, _)| ns(from + 1)),
            max_ns: bins.last().and_then(|(from, _)| ns(from + 7)),
            quantiles: vec![(500_000, Nanos::ZERO)],
            bins: bins.iter().map(bin).collect(),
            ..ImportedLengths::new(LengthKind::Gap, cpu.map(Cpu::new))
        }
    }

    /// Check that counts, sums and times are added (2 + 3 and 4 + 5 lengths of 100 ns each, in 1,000 ns
    /// each), that other CPUs stay as they are, and that those without a name are one series.
    #[test]
    fn threads_of_a_cpu() {
        let (first, second) = (lengths(Some(0), &[(0, 2), (20, 3)]), [(10, 4), (20, 5)]);
        let other = lengths(Some(1), &[(0, 9)]);
        let unnamed = || lengths(None, &[(0, 1)]);
        let all =
            vec![first, other.clone(), lengths(Some(0), &second), unnamed(), unnamed()];
        let (found, several) = merged(all);
        assert_eq!(several, [Some(Cpu::new(0)), None]);
        let sum = ImportedLengths {
            elapsed_ns: ns(2_000),
            sum_ns: ns(1_400),
            quantiles: Vec::new(),
            ..lengths(Some(0), &[(0, 2), (10, 4), (20, 8)])
        };
        assert_eq!(found[..2], [sum, other]);
        assert_eq!((found.len(), found[2].count, found[2].sum_ns), (3, Some(2), ns(200)));
    }

    /// Check that a CPU with several threads is named once, however many kinds of lengths they have, and
    /// wherever those of other CPUs are.
    #[test]
    fn kinds_of_a_cpu() {
        let of = |kind, cpu| ImportedLengths { kind, ..lengths(Some(cpu), &[(0, 1)]) };
        let cpu = |cpu| {
            let kinds = [LengthKind::TimerInterruptLatency, LengthKind::WakeupLatency];
            kinds.map(|kind| of(kind, cpu))
        };
        let all = [cpu(0), cpu(1), cpu(1), cpu(0)].concat();
        let by_kind = [0, 4, 2, 6, 1, 5, 3, 7].map(|at: usize| all[at].clone()).to_vec();
        for all in [all, by_kind] {
            let (found, several) = merged(all);
            assert_eq!(found.len(), 4);
            assert_eq!(several.len(), 2, "{several:?}");
        }
    }

    /// Check that what is known of one thread only is unknown, but for the extremes of a thread that has
    /// no lengths.
    #[test]
    fn unknown_values() {
        let known = lengths(None, &[(0, 2)]);
        let unknown = ImportedLengths::new(LengthKind::Gap, None);
        let none = lengths(None, &[]);
        let (found, _) = merged(vec![known.clone(), unknown]);
        let of = &found[0];
        assert_eq!(
            (of.elapsed_ns, of.count, of.sum_ns, of.max_ns),
            (None, None, None, None)
        );
        let (found, _) = merged(vec![known, none]);
        assert_eq!(
            (found[0].count, found[0].min_ns, found[0].max_ns),
            (Some(2), ns(1), ns(7))
        );
    }
}
