//! The 2009 report's own numbers, with its arithmetic: user time in whole ticks, divided by
//! switches and cut to whole milliseconds for each task, then averaged; and the exact ones.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::slices_input::{SlicesInput, SlicesSampleInput, TaskTimeInput};

/// A sample, as the 2009 report's program would have printed it, and exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClassicLine {
    /// "avg slice": of whole milliseconds.
    pub avg_slice_ms: f64,
    /// "utime": the average user time, of whole ticks.
    pub utime_us: f64,
    /// The mean slice, exactly.
    pub slice_ns: Option<Nanos>,
    /// The average CPU time, exactly.
    pub cpu_ns: Nanos,
    /// How long the sample was: what a longer one counts is no gain.
    pub wall_ns: Nanos,
}

/// The 2009 report's arithmetic, sample by sample.
pub(crate) fn classic(input: &SlicesInput<'_>) -> Vec<ClassicLine> {
    let Some(tick) = input.tick.filter(|tick| !tick.is_zero()) else { return Vec::new() };
    let mut used = vec![Nanos::ZERO; input.spinners];
    let samples = input.turns(0).flat_map(|turn| &turn.samples);
    let line = |sample: &SlicesSampleInput| {
        let (mut slices, mut utimes) = (0, 0);
        for (time, used) in sample.tasks.iter().take(input.spinners).zip(&mut used) {
            let ticks = |used: Nanos| used.get() / tick.get();
            let before = ticks(*used);
            *used = *used + time.cpu;
            let utime = (ticks(*used) - before) * tick.get() / 1_000;
            utimes += utime;
            slices += utime / time.involuntary.max(1) / 1_000;
        }
        let spun = TaskTimeInput::sum(sample.tasks.iter().take(input.spinners));
        let count = u64::try_from(input.spinners.max(1)).unwrap_or(u64::MAX);
        let spinners = count as f64;
        ClassicLine {
            avg_slice_ms: slices as f64 / spinners,
            utime_us: utimes as f64 / spinners,
            slice_ns: spun.mean_slice(),
            cpu_ns: Nanos::from_nanos(spun.cpu.get() / count),
            wall_ns: sample.wall,
        }
    };
    samples.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slices_input::SlicesTurnInput;

    /// The line of two processes, of a sample of a second.
    fn line(tasks: [(u64, u64); 2]) -> ClassicLine {
        let time = |(cpu_us, involuntary)| {
            let cpu = Nanos::from_micros(cpu_us);
            TaskTimeInput { cpu, involuntary, ..TaskTimeInput::default() }
        };
        let sample = SlicesSampleInput {
            start: Nanos::ZERO,
            wall: Nanos::from_secs(1),
            tasks: tasks.map(time).to_vec(),
        };
        let found = classic(&SlicesInput {
            spinners: 2,
            turns: vec![SlicesTurnInput { step: 0, samples: vec![sample] }],
            tick: Some(Nanos::from_millis(4)),
            ..SlicesInput::default()
        });
        found[0]
    }

    /// Check the report's arithmetic: 1 ms slices that ticks and whole milliseconds make
    /// nothing of, and the exact ones beside them.
    #[test]
    fn as_in_2009() {
        let short = line([(125_900, 126), (127_000, 125)]);
        // 124 ms in whole ticks each; by 126 less than a millisecond, by 125 too.
        assert_eq!((short.avg_slice_ms, short.utime_us), (0.0, 124_000.0));
        assert_eq!(short.slice_ns, Some(Nanos::from_nanos(252_900_000 / 251)));
        let whole = line([(125_900, 60), (128_000, 128)]);
        assert_eq!(whole.avg_slice_ms, 1.5);
    }
}
