//! Waits until the kernel has finished booting, so that the rest of that work is not measured.
//!
//! After the first program has started, a kernel still tests its ciphers (6.12, up to a second and
//! a half) and calibrates its clock: until then `current_clocksource` is `tsc-early`. If guest time
//! counts instructions, waiting costs nothing.

use std::fs;
use std::thread;
use std::time::Duration;

use facts::CpuTimes;

const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// The time between two checks: ten steps of the CPUs' times.
const STEP: Duration = Duration::from_millis(100);
/// A kernel that is still busy after that (5 s) is measured in that state.
const STEPS_MAX: usize = 50;

/// Returns once the clock is calibrated and every CPU has been idle for a step.
pub(crate) fn wait() {
    let mut before = times();
    for _ in 0..STEPS_MAX {
        thread::sleep(STEP);
        let now = times();
        let idle = before.zip(now.as_ref()).is_some_and(|(then, now)| idle(&then, now));
        if idle && clock_is_chosen() {
            return;
        }
        before = now;
    }
}

/// Whether no CPU is idle for a step: services keep all of them busy.
pub(crate) fn is_busy() -> bool {
    let before = times();
    thread::sleep(STEP);
    before.zip(times()).is_some_and(|(then, now)| never_idle(&then, &now))
}

fn never_idle(before: &CpuTimes, now: &CpuTimes) -> bool {
    let is_idle = |cpu| now.since(before, cpu).is_some_and(|time| !time.idle.is_zero());
    !now.cpus().iter().any(is_idle)
}

/// Lets every CPU become idle.
pub(crate) fn pause() {
    thread::sleep(STEP);
}

fn times() -> Option<CpuTimes> {
    let text = fs::read_to_string(CpuTimes::FILE).ok()?;
    CpuTimes::parse(&text, CpuTimes::FILE).ok()
}

fn idle(before: &CpuTimes, now: &CpuTimes) -> bool {
    let busy = |cpu| now.since(before, cpu).is_none_or(|time| !time.busy.is_zero());
    !now.cpus().iter().any(busy)
}

fn clock_is_chosen() -> bool {
    fs::read_to_string(CLOCK).map_or(true, |name| !name.trim_end().ends_with("-early"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> CpuTimes {
        CpuTimes::parse(text, CpuTimes::FILE).unwrap()
    }

    /// Check that a busy CPU, or one that has just come online, is not idle.
    #[test]
    fn all_cpus_rest() {
        let before = at("cpu0 1 0 5 100 0 0 0 0\ncpu1 1 0 5 100 0 0 0 0\n");
        let rested = at("cpu0 1 0 5 110 0 0 0 0\ncpu1 1 0 5 109 1 0 0 0\n");
        let busy = at("cpu0 1 0 5 110 0 0 0 0\ncpu1 1 0 6 109 0 0 0 0\n");
        let more = at("cpu0 1 0 5 110 0 0 0 0\ncpu2 1 0 5 110 0 0 0 0\n");
        assert!(idle(&before, &rested));
        assert!(!idle(&before, &busy));
        assert!(!idle(&before, &more));
    }

    /// Check that only CPUs without any idle time are busy all the time.
    #[test]
    fn never_idle_cpus() {
        let before = at("cpu0 1 0 5 100 0 0 0 0\ncpu1 1 0 5 100 0 0 0 0\n");
        let busy = at("cpu0 6 0 10 100 0 0 0 0\ncpu1 11 0 5 100 0 0 0 0\n");
        let one = at("cpu0 6 0 10 100 0 0 0 0\ncpu1 10 0 5 101 0 0 0 0\n");
        assert!(never_idle(&before, &busy));
        assert!(!never_idle(&before, &one));
    }
}
