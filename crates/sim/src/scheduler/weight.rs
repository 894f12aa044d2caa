//! Weights of tasks by nice value, and time scaled by weight, in the kernel's integer arithmetic.
//!
//! Source: `sched_prio_to_weight` in `kernel/sched/core.c` and `__calc_delta` in `kernel/sched/fair.c`
//! (6.12; the table is the same since 2.6.23). Kernels before 3.5 rounded differently
//! (`calc_delta_mine` in `kernel/sched.c`), which decides whether a slice of exactly two ticks is one
//! nanosecond shorter.

/// The weight of nice 0.
pub(crate) const NICE_0: u64 = 1024;

/// A span of time as a difference. Simulations are far shorter than 292 years.
#[inline]
pub(crate) fn signed(ns: u64) -> i64 {
    ns as i64
}

/// From nice -20 to 19: each step is about a tenth of a CPU beside one other task.
const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620,
    6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272,
    215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// The weight of a nice value; one outside of -20 to 19 has that of the nearest.
pub(crate) fn of_nice(nice: i8) -> u64 {
    let place = usize::try_from(i16::from(nice) + 20).unwrap_or(0);
    WEIGHTS[place.min(WEIGHTS.len() - 1)]
}

/// A span of virtual time of an entity whose weight changes.
pub(crate) fn rescaled(span: i64, before: u64, after: u64) -> i64 {
    span.saturating_mul(signed(before)) / signed(after.max(1))
}

/// How a kernel multiplies by a weight and divides by another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// Rounded to the nearest at each shift, with a slightly smaller inverse.
    Nearest,
    /// Rounded down.
    Down,
}

/// By which shifts the kernel divides by a weight.
const SHIFT: u32 = 32;

impl Rounding {
    /// `delta * weight / load`, by the inverse of the load in 32 bits.
    pub(crate) fn scale(self, delta: u64, weight: u64, load: u64) -> u64 {
        match self {
            Self::Nearest => {
                let inverse = 1 + ((1 << SHIFT) - load / 2) / (load + 1);
                nearest(delta, weight, inverse)
            }
            Self::Down => down(delta, weight, u64::from(u32::MAX) / load.max(1)),
        }
    }

    /// `delta` in virtual time: unchanged at nice 0, slower for heavier tasks. The inverse of a nice
    /// value's weight is from a table (`sched_prio_to_wmult`).
    #[inline]
    pub(crate) fn to_virtual(self, delta: u64, weight: u64) -> u64 {
        if weight == NICE_0 {
            return delta;
        }
        let inverse = (1 << SHIFT) / weight.max(1);
        match self {
            Self::Nearest => nearest(delta, NICE_0, inverse),
            Self::Down => down(delta, NICE_0, inverse),
        }
    }
}

fn down(delta: u64, weight: u64, inverse: u64) -> u64 {
    let factor = u128::from(weight) * u128::from(inverse);
    // The kernel keeps 32 bits of the factor.
    let excess = u128::BITS - (factor >> SHIFT).leading_zeros();
    let kept = factor >> excess;
    let scaled = (u128::from(delta) * kept) >> (SHIFT - excess);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

fn nearest(delta: u64, weight: u64, inverse: u64) -> u64 {
    let (product, inverse) =
        (u128::from(delta) * u128::from(weight), u128::from(inverse));
    let round = |value: u128, shift: u32| (value + (1 << (shift - 1))) >> shift;
    let scaled = if product > 1 << SHIFT {
        round(round(product, SHIFT / 2) * inverse, SHIFT / 2)
    } else {
        round(product * inverse, SHIFT)
    };
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the weights at the ends and in the middle, and that values beyond have those of the ends.
    #[test]
    fn weights() {
        assert_eq!([-20, 0, 19].map(of_nice), [88761, NICE_0, 15]);
        assert_eq!([-128, 127].map(of_nice), [88761, 15]);
    }

    /// Check that nice 0 is exact, and other weights are right to a millionth, with both roundings.
    #[test]
    fn virtual_time() {
        for rounding in [Rounding::Nearest, Rounding::Down] {
            assert_eq!(rounding.to_virtual(123_456_789, NICE_0), 123_456_789);
            for nice in -20..=19 {
                let weight = of_nice(nice);
                let exact = 1e9 * 1024.0 / weight as f64;
                let scaled = rounding.to_virtual(1_000_000_000, weight) as f64;
                assert!((scaled / exact - 1.0).abs() < 3e-5, "{nice}: {scaled} {exact}");
            }
        }
    }

    /// Check the slices of five equal tasks: 40 ms by five are 8 ms, less what is lost by the inverse;
    /// two ticks of 4 ms are therefore longer than such a slice.
    #[test]
    fn rounded_slices() {
        let slice = |rounding: Rounding| rounding.scale(40_000_000, 1024, 5 * 1024);
        assert_eq!(slice(Rounding::Down), 7_999_992);
        assert_eq!(slice(Rounding::Nearest), 7_998_438);
    }
}
