//! Whether a series of repeated runs is stationary: whether all runs are of one distribution with a single
//! mode, in an order that is chance.
//!
//! Three tests look for different signs. None assumes a distribution that noise does not have:
//!
//! ```text
//! contrasts    the order: a trend, a jump, or values that alternate; exact, from random orders
//! dip          two modes, in any order
//! first_runs   the first run, or the first few, far from all others
//! ```
//!
//! All together have a sign in at most one of 200 stationary series. Which pattern a series has is another
//! question, since a jump is a trend, too, and two modes that change once are a jump: it is the one that
//! explains the values best (`fit`), of those for which there is a sign.

mod contrasts;
mod dip;
mod first_runs;
mod fit;
pub(crate) mod pattern;
#[cfg(test)]
mod simulations;

use crate::stationary::fit::Signs;
use crate::stationary::pattern::Pattern;

/// In at most this share of stationary series, a pattern is reported.
pub const FALSE_PATTERNS: f64 = 0.005;

/// The pattern of a series of runs; `None` if it is stationary as far as known. Values must not be NaN.
pub fn pattern(values: &[f64]) -> Option<Pattern> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let signs = Signs {
        is_ordered: contrasts::is_ordered(values),
        has_two_modes: dip::has_two_modes(&sorted),
        first: first_runs::differing(values),
    };
    fit::best(values, &sorted, signs)
}
