//! Times in seconds and nanoseconds, as in the kernel's interfaces. The structure has a type in
//! `libc` and another one in `rustix`: both are made of these parts.

use units::Nanos;

const PER_SECOND: u64 = 1_000_000_000;

/// The seconds and nanoseconds of a time.
#[inline(always)]
pub(crate) fn parts(time: Nanos) -> (i64, i64) {
    (
        i64::try_from(time.get() / PER_SECOND).unwrap_or(i64::MAX),
        i64::try_from(time.get() % PER_SECOND).unwrap_or(0),
    )
}

/// The time of so many seconds and nanoseconds; negative parts count as 0.
#[inline(always)]
pub(crate) fn nanos(seconds: i64, nanos: i64) -> Nanos {
    let (seconds, nanos) = (u64::try_from(seconds), u64::try_from(nanos));
    Nanos::from_secs(seconds.unwrap_or(0)) + Nanos::from_nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that times are unchanged after splitting and joining.
    #[test]
    fn split_and_joined() {
        for time in [0, 1, 999_999_999, 1_000_000_000, 12_345_678_901_234, u64::MAX] {
            let (seconds, rest) = parts(Nanos::from_nanos(time));
            assert_eq!(nanos(seconds, rest), Nanos::from_nanos(time));
        }
        assert_eq!(nanos(-1, -1), Nanos::ZERO);
    }
}
