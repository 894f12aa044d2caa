//! The time stamp counter that the loops read, and its frequency.
//!
//! x86: `rdtsc`; arm64: `cntvct_el0`; elsewhere `CLOCK_MONOTONIC_RAW`, in nanoseconds. None of them
//! enters the kernel. `rdtsc` is not ordered with other instructions, which does not matter here: a
//! gap is thousands of times longer than the reordering of a CPU. The frequency is measured against
//! `CLOCK_MONOTONIC_RAW`, which is not adjusted by NTP.
//!
//! # Caveats
//! A counter that stops in deep idle states or differs between CPUs is noticed only as drift, at
//! the run's end. A virtual machine may get another counter when it is migrated; it then steps.

use units::{Nanos, Tsc, TscDelta, TscHz};

use crate::time::timespec::nanos;

/// Number of attempts to read a pair without an interruption in between.
const TRIES: u32 = 32;

/// The name of the counter in recordings.
#[cfg(target_arch = "x86_64")]
pub const NAME: &str = "tsc";
/// The name of the counter in recordings.
#[cfg(target_arch = "aarch64")]
pub const NAME: &str = "cntvct";
/// The name of the counter in recordings.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub const NAME: &str = "monotonic_raw";

/// Reads the counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn now() -> Tsc {
    // SAFETY: every x86-64 CPU has the instruction, and this process does not disable it with
    // prctl(PR_SET_TSC).
    Tsc::from_counter(unsafe { core::arch::x86_64::_rdtsc() })
}

/// Reads the counter.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub fn now() -> Tsc {
    let ticks: u64;
    // SAFETY: Linux lets every process read the virtual counter (`CNTKCTL_EL1.EL0VCTEN`);
    // the instruction writes only `ticks`.
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack));
    }
    Tsc::from_counter(ticks)
}

/// Reads the counter.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub fn now() -> Tsc {
    Tsc::from_counter(kernel(libc::CLOCK_MONOTONIC_RAW).get())
}

/// Reads one of the kernel's clocks (`clock_gettime(2)`).
pub(crate) fn kernel(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to write. The clocks read here exist since
    // 2.6.39; if one is missing, the time stays 0.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    nanos(time.tv_sec, time.tv_nsec)
}

/// The counter and the kernel's raw clock, read at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// The counter.
    pub(crate) tsc: Tsc,
    /// `CLOCK_MONOTONIC_RAW`.
    pub(crate) raw: Nanos,
}

impl Moment {
    pub(crate) fn now() -> Self {
        let (tsc, raw) = read_with(libc::CLOCK_MONOTONIC_RAW);
        Self { tsc, raw }
    }

    /// The counter's frequency between an earlier moment and this; `None` if no time has passed or
    /// the counter went backwards.
    pub(crate) fn frequency_since(self, earlier: Self) -> Option<TscHz> {
        let ticks = self.tsc.since(earlier.tsc);
        let span = self.raw.saturating_sub(earlier.raw);
        if ticks.is_backwards() { None } else { TscHz::from_ticks(ticks, span) }
    }
}

/// The counter and one of the kernel's clocks at one moment: of several pairs of readings, the one
/// that was read in the shortest time.
pub(crate) fn read_with(clock: libc::clockid_t) -> (Tsc, Nanos) {
    let mut best = TscDelta::from_ticks(u64::MAX);
    let mut pair = (now(), Nanos::ZERO);
    for _ in 0..TRIES {
        let before = now();
        let time = kernel(clock);
        let width = now().since(before);
        if width < best {
            best = width;
            pair = (before.plus(TscDelta::from_ticks(width.ticks() / 2)), time);
        }
    }
    pair
}

/// How long the machine has been suspended since it booted.
pub(crate) fn suspended() -> Nanos {
    let awake = kernel(libc::CLOCK_MONOTONIC);
    kernel(libc::CLOCK_BOOTTIME).saturating_sub(awake)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that two measurements of the frequency agree within a thousandth.
    #[test]
    fn frequency_is_steady() {
        let moments: Vec<Moment> = (0..3)
            .map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                Moment::now()
            })
            .collect();
        let hz = |from: usize, to: usize| {
            moments[to].frequency_since(moments[from]).unwrap().get()
        };
        let (first, second) = (hz(0, 1), hz(1, 2));
        assert!(first.abs_diff(second) < first / 1000, "{first} {second}");
    }
}
