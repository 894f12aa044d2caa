//! The numbers of the 2009 report, with its arithmetic: user time in whole ticks, divided by switches
//! and truncated to whole milliseconds for each task, then averaged; and the exact numbers.

use recording::{SlicesSample, SlicesSeries};
use serde::Serialize;
use units::Nanos;

use crate::slices::turns::{mean_slice, sum, turns};

/// A sample, as the program of the 2009 report would have printed it, and exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClassicLine {
    /// "avg slice": the average of whole milliseconds.
    pub avg_slice_ms: f64,
    /// "utime": the average user time in whole ticks.
    pub utime_us: f64,
    /// The mean slice, exactly.
    pub slice_ns: Option<Nanos>,
    /// The average CPU time, exactly.
    pub cpu_ns: Nanos,
    /// The duration of the sample: a longer one has more CPU time.
    pub wall_ns: Nanos,
}

/// The lines of all samples; empty if the tick's length is unknown.
pub(super) fn classic(
    tick: Option<Nanos>,
    spinners: usize,
    series: &SlicesSeries,
) -> Vec<ClassicLine> {
    let Some(tick) = tick.filter(|tick| !tick.is_zero()) else { return Vec::new() };
    let mut used = vec![Nanos::ZERO; spinners];
    let samples = turns(series, 0).flat_map(|turn| &turn.samples);
    let line = |sample: &SlicesSample| {
        let (mut slices, mut utimes) = (0, 0);
        for (time, used) in sample.tasks.iter().take(spinners).zip(&mut used) {
            let ticks = |used: Nanos| used.get() / tick.get();
            let before = ticks(*used);
            *used = *used + time.cpu_ns;
            let utime = (ticks(*used) - before) * tick.get() / 1_000;
            utimes += utime;
            slices += utime / time.involuntary.max(1) / 1_000;
        }
        let spun = sum(sample.tasks.iter().take(spinners));
        let count = spinners.max(1) as u64;
        let spinners = count as f64;
        ClassicLine {
            avg_slice_ms: slices as f64 / spinners,
            utime_us: utimes as f64 / spinners,
            slice_ns: mean_slice(&spun),
            cpu_ns: Nanos::from_nanos(spun.cpu_ns.get() / count),
            wall_ns: sample.wall_ns,
        }
    };
    samples.map(line).collect()
}

#[cfg(test)]
mod tests {
    use recording::{SlicesTurn, TaskTime};

    use super::*;

    /// The line of two processes, for a sample of one second.
    fn line(tasks: [(u64, u64); 2]) -> ClassicLine {
        let time = |(cpu_us, involuntary)| {
            let cpu_ns = Nanos::from_micros(cpu_us);
            TaskTime { cpu_ns, involuntary, ..TaskTime::default() }
        };
        let sample = SlicesSample {
            start_ns: Nanos::ZERO,
            wall_ns: Nanos::from_secs(1),
            reading_ns: Nanos::ZERO,
            tasks: tasks.map(time).to_vec(),
        };
        let series = SlicesSeries {
            began_ns: Nanos::ZERO,
            tasks: Vec::new(),
            turns: vec![SlicesTurn { step: 0, samples: vec![sample] }],
            switches: None,
            wakers: None,
            placements: None,
        };
        classic(Some(Nanos::from_millis(4)), 2, &series)[0]
    }

    /// Check the report's arithmetic, in which slices of 1 ms become zero, and the exact numbers.
    #[test]
    fn as_in_2009() {
        let short = line([(125_900, 126), (127_000, 125)]);
        // 124 ms in whole ticks each; divided by 126 or 125 less than a millisecond.
        assert_eq!((short.avg_slice_ms, short.utime_us), (0.0, 124_000.0));
        assert_eq!(short.slice_ns, Some(Nanos::from_nanos(252_900_000 / 251)));
        let whole = line([(125_900, 60), (128_000, 128)]);
        assert_eq!(whole.avg_slice_ms, 1.5);
    }
}
