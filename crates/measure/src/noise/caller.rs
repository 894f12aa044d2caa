//! Gaps of the calling thread, wherever it runs and however it is scheduled: for programs that have
//! isolated their CPU themselves, and check the result.
//!
//! The loop, the clock and the doubts are those of `noise`. The thread does not sleep from the
//! beginning to the end, so that a stopped tick stays stopped. The result is no recording: no other
//! CPU is measured, and it contains no facts.
//!
//! Cannot be ended early, and cannot see the cause of a gap.

use std::sync::atomic::AtomicBool;

use facts::Facts;
use recording::{CpuNoise, Doubt, NoiseSpec, ProcCounts, Trigger};
use units::Nanos;

use crate::clock::Clock;
use crate::control::moments::OnMoment;
use crate::noise::{cpu_noise, place, refuse, threshold};
use crate::spin::Ring;
use crate::spinner::SpinParams;
use crate::time::counter::Moment;
use crate::{Error, Kind, LoopCost, doubts};

/// The gaps of the calling thread.
#[derive(Debug, Clone, PartialEq)]
pub struct CallerGaps {
    /// The shortest gap that was recorded.
    pub threshold: Nanos,
    /// The measured values; of the counts of `/proc` only those of the thread.
    pub noise: CpuNoise,
    /// Reasons to distrust them.
    pub doubts: Vec<Doubt>,
}

/// Runs the busy loop on the calling thread, and records each gap longer than the threshold; `None`
/// calibrates the threshold by running the loop.
///
/// # Errors
/// `Kind::Spec` for an invalid length, `Kind::System` if the current CPU is unknown or the counter
/// does not advance.
pub fn caller_gaps(
    duration: Nanos,
    threshold_asked: Option<Nanos>,
    facts: &Facts,
) -> Result<CallerGaps, Error> {
    let unknown = || Error::new(Kind::System, "failed to determine the current CPU");
    let cpu = isolate::current_cpu().ok_or_else(unknown)?;
    let spec = NoiseSpec {
        cpus: [cpu].into_iter().collect(),
        duration_ns: duration,
        threshold_ns: threshold_asked,
        fifo: None,
        trigger: Trigger::default(),
        phases: None,
        at_scale: None,
    };
    refuse(&spec, facts)?;
    let ring = Ring::new(place(&spec, cpu).capacity);
    let clock = Clock::calibrate_awake()?;
    let ordinary = LoopCost::measure();
    let threshold = threshold(&spec, [ordinary].into_iter(), clock.estimate());
    let began = Moment::now();
    let length = clock.estimate().ticks(duration);
    let params = SpinParams { length, threshold, limit: None };
    let never = AtomicBool::new(false);
    let result = params.spin(cpu, ordinary, ring, OnMoment::stopping(&never));
    let (hz, mut doubts) = clock.finish(facts);
    let result = [result];
    doubts.extend(doubts::of_spinners(&result, &spec, hz, facts, false));
    let [result] = &result;
    let noise = cpu_noise(result, hz, began, ProcCounts::default());
    Ok(CallerGaps { threshold: hz.span(threshold), noise, doubts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Check that the loop runs for its duration, by another clock, and that gaps are in order,
    /// within the run, and longer than the threshold.
    #[test]
    fn runs_and_keeps() {
        let facts = Facts::read(&facts::Root::live());
        let (duration, threshold) = (Nanos::from_millis(50), Nanos::from_nanos(500));
        let began = Instant::now();
        let found = caller_gaps(duration, Some(threshold), &facts).unwrap();
        let whole = Nanos::from(began.elapsed());
        let noise = &found.noise;
        // The counter's frequency is known more precisely after the run than before it.
        assert!(noise.elapsed_ns.get() >= duration.get() / 10 * 9, "{noise:?}");
        assert!(noise.elapsed_ns <= whole, "{noise:?}");
        assert!(noise.gaps.is_sorted() && noise.passes > 0);
        // A tick of the counter may be lost by rounding.
        let short = |gap: &units::Span| gap.length.get() + 1 < threshold.get();
        assert!(!noise.gaps.iter().any(short), "{:?}", noise.gaps);
        assert!(noise.gaps.last().is_none_or(|gap| gap.end() <= noise.elapsed_ns));
    }

    /// Check that invalid lengths are refused before anything runs.
    #[test]
    fn nonsense_is_refused() {
        let facts = serde_json::from_str(r#"{"sources": {}, "unknown": {}}"#).unwrap();
        let ten = Nanos::from_millis(10);
        for (duration, threshold) in
            [(Nanos::ZERO, None), (Nanos::MAX, None), (ten, Some(ten))]
        {
            let refused = caller_gaps(duration, threshold, &facts).unwrap_err();
            assert_eq!(refused.kind(), Kind::Spec, "{refused}");
        }
    }
}
