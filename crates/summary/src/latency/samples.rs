//! The samples of wake-ups: one for each expiry of the timer that a wake-up stands for.

use recording::{LostWakeups, Wakeup};
use stats::{Distribution, Latencies, mean, quantile, rank};
use units::Nanos;

/// The samples of one wake-up; the latency of each is an interval less than that of the one before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fall {
    pub(crate) samples: u64,
    most: Nanos,
    interval: Nanos,
}

impl Fall {
    /// `None` without a sample.
    pub(crate) fn of(wakeup: Wakeup, interval: Nanos) -> Option<Self> {
        let Wakeup { expiries: samples, late_ns: most } = wakeup;
        let interval = interval.max(Nanos::from_nanos(1));
        (samples > 0).then_some(Self { samples, most, interval })
    }

    fn least(self) -> Nanos {
        self.most.saturating_sub(self.interval.saturating_mul(self.samples - 1))
    }

    fn sum(self) -> u128 {
        let ends = u128::from(self.most.get()) + u128::from(self.least().get());
        ends.saturating_mul(u128::from(self.samples)) / 2
    }

    /// The number of samples up to this latency.
    fn up_to(self, late: Nanos) -> u64 {
        let above = self.most.saturating_sub(late).get();
        let later = above.div_ceil(self.interval.get());
        self.samples.saturating_sub(later)
    }
}

/// Minimum, mean and maximum are those of all samples, quantiles those of the stored ones.
pub(crate) fn lateness(
    falls: &[Fall],
    lost: Option<LostWakeups>,
    samples: u64,
) -> Distribution<Latencies> {
    let lost_sum = u128::from(lost.map_or(0, |lost| lost.ns.get()));
    let sums = falls.iter().map(|fall| fall.sum());
    let sum = sums.fold(lost_sum, u128::saturating_add);
    let lost_min = lost.map(|lost| lost.min_ns);
    let lost_max = lost.map(|lost| lost.max_ns);
    let ranks = Ranks::of(falls);
    Distribution {
        min: falls.iter().map(|fall| fall.least()).chain(lost_min).min(),
        mean: mean(sum, samples).map(Nanos::from_nanos),
        max: falls.iter().map(|fall| fall.most).chain(lost_max).max(),
        ..Distribution::new(|key| ranks.quantile(key.millionths()?))
    }
}

/// Samples by rank. Those of wake-ups with only one are sorted; the others are counted.
struct Ranks {
    single: Vec<Nanos>,
    falling: Vec<Fall>,
    samples: u128,
}

impl Ranks {
    fn of(falls: &[Fall]) -> Self {
        let (single, falling): (Vec<Fall>, Vec<Fall>) =
            falls.iter().partition(|fall| fall.samples == 1);
        let mut single: Vec<Nanos> = single.iter().map(|fall| fall.most).collect();
        single.sort_unstable();
        let samples = falls.iter().map(|fall| u128::from(fall.samples)).sum();
        Self { single, falling, samples }
    }

    /// By nearest rank, as [`quantile`]. If a wake-up has several samples, the smallest latency with
    /// enough samples up to it is found by bisection; it is always a sample.
    fn quantile(&self, millionths: u32) -> Option<Nanos> {
        if self.falling.is_empty() {
            return quantile(&self.single, millionths);
        }
        let rank = rank(self.samples, millionths);
        let most = self.falling.iter().map(|fall| fall.most);
        let most = most.chain(self.single.last().copied()).max()?.get();
        let (mut low, mut high) = (0, most);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.up_to(Nanos::from_nanos(middle)) >= rank {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(Nanos::from_nanos(low))
    }

    /// The number of samples up to this latency.
    fn up_to(&self, late: Nanos) -> u128 {
        let single = self.single.partition_point(|sample| *sample <= late);
        let falling = self.falling.iter().map(|fall| u128::from(fall.up_to(late)));
        falling.sum::<u128>() + u128::try_from(single).unwrap_or(0)
    }
}
