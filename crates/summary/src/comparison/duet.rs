//! Two programs that were run in pairs: at once on two CPUs, or one after the other.
//!
//! What is compared is the time from start to end. As long as both run, each has the other one as a neighbour;
//! the rest of the longer one runs without it, and so faster, if at all. So the difference of the times is at least
//! as large as it would be if both had a neighbour all the time.

use std::cmp::Ordering;

use recording::{Body, Code, Doubt, Recording};
use serde::Serialize;
use stats::{PairedDifference, TimedPair};
use units::{Cpu, Nanos, Ppm};

/// The part of the longer program that may run alone without a doubt.
const ALONE_MAX: Ppm = Ppm::new(100_000.0);

/// A run of each of two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DuetPair {
    /// The number of the pair, from 1.
    pub round: u32,
    /// Both programs.
    pub programs: [DuetRun; 2],
}

/// A run of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DuetRun {
    /// Its place: 1 or 2.
    pub place: u32,
    /// Its CPU; null if it had several.
    pub cpu: Option<Cpu>,
    /// `CLOCK_MONOTONIC` at its start.
    pub began_ns: Nanos,
    /// The time until its end.
    pub elapsed_ns: Nanos,
}

/// What pairs of runs say about two programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DuetSummary {
    /// How much longer the second one takes.
    #[serde(flatten)]
    pub difference: PairedDifference,
    /// How far both ran at once; null if they ran one after the other.
    pub together: Option<Together>,
}

/// How far the programs of a pair ran at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Together {
    /// The part of the time of the longer one, the median of all pairs.
    pub part_ppm: Ppm,
    /// The time from the start of one to that of the other, the median of all pairs.
    pub starts_apart_ns: Nanos,
}

impl DuetPair {
    /// The pair of the recordings of both programs; `None` if they are not such recordings.
    pub fn of(recordings: [&Recording; 2]) -> Option<Self> {
        let [a, b] = recordings.map(DuetRun::of);
        let round = recordings[0].repeat.as_ref()?.round;
        Some(Self { round, programs: [a?, b?] })
    }

    fn timed(&self) -> TimedPair {
        let [a, b] = self.programs.map(|run| run.elapsed_ns.as_secs_f64());
        TimedPair { a, b, is_swapped: self.programs[0].place > self.programs[1].place }
    }

    /// The time in which both ran.
    fn together(&self) -> Nanos {
        let [a, b] = self.programs;
        let began = a.began_ns.max(b.began_ns);
        (a.began_ns + a.elapsed_ns).min(b.began_ns + b.elapsed_ns).saturating_sub(began)
    }

    /// The part of the time of the longer one in which both ran.
    fn part_together(&self) -> f64 {
        let [a, b] = self.programs.map(|run| run.elapsed_ns);
        self.together().as_secs_f64() / a.max(b).as_secs_f64() * 1e6
    }

    fn starts_apart(&self) -> Nanos {
        let [a, b] = self.programs.map(|run| run.began_ns);
        a.max(b).saturating_sub(a.min(b))
    }
}

impl DuetRun {
    fn of(recording: &Recording) -> Option<Self> {
        let Body::Run { spec, series } = &recording.body else { return None };
        let cpu = spec.cpus.first().filter(|_| spec.cpus.len() == 1);
        Some(Self {
            place: recording.repeat.as_ref()?.place,
            cpu,
            began_ns: series.began_ns,
            elapsed_ns: series.elapsed_ns.max(Nanos::from_nanos(1)),
        })
    }
}

impl DuetSummary {
    /// What these pairs say; `None` without one of each order.
    pub fn of(pairs: &[DuetPair], at_once: bool) -> Option<Self> {
        let timed: Vec<TimedPair> = pairs.iter().map(DuetPair::timed).collect();
        let difference = PairedDifference::of(&timed)?;
        let together = Together {
            part_ppm: Ppm::new(middle(pairs, DuetPair::part_together, f64::total_cmp)),
            starts_apart_ns: middle(pairs, DuetPair::starts_apart, Nanos::cmp),
        };
        Some(Self { difference, together: at_once.then_some(together) })
    }

    /// The doubt if the longer program of a pair ran alone for much of its time.
    pub fn doubt(&self) -> Option<Doubt> {
        let part = self.together?.part_ppm.get();
        let text = format!(
            "the programs of a pair ran at once for {:.0} % of the longer one's time: the rest of that had no \
             neighbour, so that the true difference may be larger",
            part / 1e4
        );
        (1e6 - part > ALONE_MAX.get()).then(|| Doubt::new(Code::RanAlone, text))
    }
}

/// The median of a value of all pairs; of an even number of them the upper one of the middle two. 0 without a pair.
fn middle<T: Copy + Default>(
    pairs: &[DuetPair],
    of: fn(&DuetPair) -> T,
    compare: fn(&T, &T) -> Ordering,
) -> T {
    let mut values: Vec<T> = pairs.iter().map(of).collect();
    values.sort_unstable_by(compare);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pair whose programs begin at these times, and take so many milliseconds.
    fn pair(round: u32, began: [u64; 2], took: [u64; 2]) -> DuetPair {
        let places = if round % 2 == 1 { [1, 2] } else { [2, 1] };
        let run = |at: usize| DuetRun {
            place: places[at],
            cpu: Some(Cpu::new(places[at])),
            began_ns: Nanos::from_millis(began[at]),
            elapsed_ns: Nanos::from_millis(took[at]),
        };
        DuetPair { round, programs: [run(0), run(1)] }
    }

    /// Check the overlap of two runs, in any order of their starts and ends.
    #[test]
    fn overlaps() {
        for (began, took, together) in [
            ([10, 10], [100, 100], 100),
            ([10, 30], [100, 100], 80),
            ([30, 10], [50, 200], 50),
            ([10, 300], [100, 100], 0),
        ] {
            let pair = pair(1, began, took);
            assert_eq!(pair.together(), Nanos::from_millis(together), "{pair:?}");
        }
    }

    /// Check that a program that runs alone for more than a tenth of its time is a doubt, and that programs in turn
    /// have none.
    #[test]
    fn alone() {
        let of = |took| {
            let pairs: Vec<_> = (1..9).map(|round| pair(round, [0, 0], took)).collect();
            DuetSummary::of(&pairs, true).unwrap()
        };
        assert_eq!(of([100, 105]).doubt(), None);
        let text = |took| of(took).doubt().unwrap().text;
        assert!(text([100, 200]).contains("at once for 50 % of the longer one's time"));
        assert!(text([150, 100]).contains("at once for 67 % of the longer one's time"));
        let found = of([100, 200]);
        assert!((found.difference.difference_ppm.get() - 1e6).abs() < 1e-3);
        let pairs: Vec<_> =
            (1..9).map(|round| pair(round, [0, 100], [100, 200])).collect();
        let in_turn = DuetSummary::of(&pairs, false).unwrap();
        assert_eq!((in_turn.together, in_turn.doubt()), (None, None));
        assert_eq!(DuetSummary::of(&pairs[..1], true), None);
    }
}
