//! Statistics of numbers that know no recording: distributions, quantiles, ranks, intervals,
//! comparisons of samples, change points, and the parts of a difference. All functions are pure;
//! what is random follows from a seed.
//!
//! ```
//! // A quantile is a measured value: the median of four lengths is the second of them.
//! assert_eq!(stats::quantile(&[120, 130, 180, 9_000], 500_000), Some(130));
//! // A series whose level changes has two stretches.
//! let series = [[1.0; 20], [3.0; 20]].concat();
//! assert_eq!(stats::stretches(&series).len(), 2);
//! ```
#![forbid(unsafe_code)]

mod ablation;
mod balanced_order;
mod binned;
mod change_points;
mod comparison;
mod dependence;
mod distribution;
mod exact_test;
#[cfg(test)]
#[path = "../tests/example/random.rs"]
mod example;
mod explained;
mod length_bars;
mod mean_interval;
mod outliers;
mod paired;
mod random;
mod ranks;
mod relative;
mod run_spread;
mod stationary;
mod step_delays;
mod unit;
mod values;
mod variations;

pub use ablation::{
    Ablation, Contribution, Ended, OptionChange, OptionsChange, Tested, Unexplained,
    Unresolved,
};
pub use balanced_order::balanced_order;
pub use binned::{Bin, binned};
pub use change_points::{Stretch, stretches};
pub use comparison::block::{Block, BlockUnit, ItemUnit};
pub use comparison::compared::{BetterSet, Compared};
pub use comparison::conclusion::{Conclusion, VALUES_MIN};
pub use comparison::detectable::{Detectable, POWER};
pub use comparison::discovery::{FALSE_DISCOVERIES, adjusted};
pub use comparison::sample::{Pair, Sample};
pub use comparison::statistic::Statistic;
pub use dependence::inflation;
pub use distribution::{
    Distribution, DistributionKey, Gaps, Jitters, Latencies, Loops, Placed, Repeats,
    Slices, Statistics, Waits, mean, quantile, rank,
};
pub use exact_test::{adjusted_for_any, together_by_chance};
pub use explained::{Explained, explained, rank_correlation};
pub use length_bars::{LengthBar, LengthBars, length_counts};
pub use mean_interval::MeanInterval;
pub use outliers::{
    FALSE_OUTLIERS, Fence, Height, MedianOfRuns, OUTLIER_FACTOR_MIN, OUTLIER_VALUES_MIN,
};
pub use paired::{PairedDifference, TimedPair};
pub use random::below;
pub use relative::relative;
pub use run_spread::RunSpread;
pub use stationary::pattern::{ModeOrder, Pattern};
pub use stationary::{FALSE_PATTERNS, pattern};
pub use step_delays::StepDelays;
pub use unit::{Better, Unit};
pub use values::Spread;
pub use variations::{VariedMean, none_above_ppm};
