//! Gaps on the calling thread, wherever it runs and however it is scheduled: for programs that
//! have taken their CPU themselves, and want to know what it is worth.
//!
//! The loop, the clock and the doubts are those of `noise`. From the beginning to the end the
//! thread does not sleep, so that a tick that has stopped stays so. What comes out is no
//! recording: nobody else spins, and facts are not kept with it.
//!
//! Cannot be ended early, and cannot see what took a gap.

use std::sync::atomic::AtomicBool;

use facts::Facts;
use recording::{CpuNoise, Doubt, Meanwhile, NoiseSpec};
use units::Nanos;

use crate::clock::Clock;
use crate::counter::Moment;
use crate::noise::{cpu_noise, place, refuse, threshold};
use crate::spin::Ring;
use crate::spinner::Stretch;
use crate::{Error, Kind, Ordinary, doubts};

/// What the calling thread lost.
#[derive(Debug, Clone, PartialEq)]
pub struct CallerGaps {
    /// The shortest gap that was kept.
    pub threshold: Nanos,
    /// What was seen; of what `/proc` counts, only what it counts for the thread.
    pub noise: CpuNoise,
    /// Reasons not to trust it.
    pub doubts: Vec<Doubt>,
}

/// Spins on the calling thread, and keeps each gap that is longer than the threshold; where
/// there is none, one is found by running the loop.
///
/// # Errors
/// `Kind::Spec` for a length that makes no sense, `Kind::System` where the kernel does not say
/// which CPU this is or the counter does not advance.
pub fn caller_gaps(
    duration: Nanos,
    threshold_asked: Option<Nanos>,
    facts: &Facts,
) -> Result<CallerGaps, Error> {
    let unknown =
        || Error::new(Kind::System, "the kernel does not say which CPU this is");
    let cpu = isolate::current_cpu().ok_or_else(unknown)?;
    let spec = NoiseSpec {
        cpus: [cpu].into_iter().collect(),
        duration_ns: duration,
        threshold_ns: threshold_asked,
        fifo: None,
        stop_above_ns: None,
        phases: None,
    };
    refuse(&spec, facts)?;
    let ring = Ring::new(place(&spec, cpu).capacity);
    let clock = Clock::settle_awake()?;
    let ordinary = Ordinary::measure();
    let threshold = threshold(&spec, [ordinary].into_iter(), clock.guess());
    let began = Moment::now();
    let length = clock.guess().ticks(duration);
    let stretch = Stretch { length, threshold, end_above: None };
    let seen = stretch.spin(cpu, ordinary, ring, &AtomicBool::new(false));
    let (hz, mut doubts) = clock.over_the_run(facts);
    let seen = [seen];
    doubts.extend(doubts::of_spinners(&seen, &spec, hz, facts, false));
    let [seen] = &seen;
    let noise = cpu_noise(seen, hz, began, Meanwhile::default());
    Ok(CallerGaps { threshold: hz.span(threshold), noise, doubts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Check that the loop runs as long as it is told to, by another clock, and that gaps are
    /// in order, in it, and as long as the threshold says.
    #[test]
    fn runs_and_keeps() {
        let facts = Facts::read(&facts::Root::live());
        let (duration, threshold) = (Nanos::from_millis(50), Nanos::from_nanos(500));
        let began = Instant::now();
        let found = caller_gaps(duration, Some(threshold), &facts).unwrap();
        let whole = Nanos::from(began.elapsed());
        let noise = &found.noise;
        // The counter's frequency is known better after the run than before it.
        assert!(noise.elapsed_ns.get() >= duration.get() / 10 * 9, "{noise:?}");
        assert!(noise.elapsed_ns <= whole, "{noise:?}");
        assert!(noise.gaps.is_sorted() && noise.passes > 0);
        // A tick of the counter may be rounded away.
        let short = |gap: &units::Span| gap.length.get() + 1 < threshold.get();
        assert!(!noise.gaps.iter().any(short), "{:?}", noise.gaps);
        assert!(noise.gaps.last().is_none_or(|gap| gap.end() <= noise.elapsed_ns));
    }

    /// Check that lengths that make no sense are refused before anything runs.
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
