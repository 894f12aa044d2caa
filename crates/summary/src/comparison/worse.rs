//! Which metrics of a set are worse than those of the base: what a gate fails on, and what a short report says.

use serde::Serialize;
use stats::{BetterSet, Conclusion};
use units::Ppm;

use crate::comparison::cells::CellsComparison;
use crate::comparison::condition::{Condition, Judged};
use crate::comparison::{Compared, Comparison};
use crate::metrics::definition;

/// What became of a metric, compared with the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricChange {
    /// Its values are worse.
    Worse,
    /// They differ, and it is not known which are better.
    Different,
    /// They may differ: there is not enough data.
    Unknown,
    /// They are better.
    Better,
    /// There is no difference of interest.
    Same,
}

impl MetricChange {
    /// The change of a metric.
    pub fn of(compared: &Compared) -> Self {
        match (compared.conclusion, compared.better_set()) {
            (Conclusion::NotEnoughData { .. }, _) => Self::Unknown,
            (Conclusion::Equal | Conclusion::NoLargerDifference { .. }, _) => Self::Same,
            (_, Some(BetterSet::Base)) => Self::Worse,
            (_, Some(BetterSet::Other)) => Self::Better,
            (_, Some(BetterSet::Mixed | BetterSet::Unknown) | None) => Self::Different,
        }
    }
}

/// Whether a metric is worse by more than this part of the base. One whose better values are unknown is not.
pub fn is_worse(compared: &Compared, by: Ppm) -> Judged {
    let condition = compared
        .quantity
        .metric()
        .and_then(|metric| Condition::worse(metric, compared.better, by));
    condition.map_or(Judged::False, |condition| condition.of_compared(compared))
}

/// Whether any metric of a comparison is.
pub fn any_worse(comparison: &Comparison, by: Ppm) -> Judged {
    Judged::any(comparison.metrics.iter().map(|one| is_worse(one, by)))
}

/// The same of exact values.
pub fn any_worse_cells(comparison: &CellsComparison, by: Ppm) -> Judged {
    let is_worse = |one: &crate::comparison::cells::CellDifference| {
        let about = definition(&one.metric)?;
        let condition = Condition::worse(&one.metric, about.better, by)?;
        let part = one.difference_ppm.map(Ppm::get);
        Some(Judged::known(condition.exceeds(one.difference?, part)))
    };
    Judged::any(comparison.metrics.iter().filter_map(is_worse))
}

#[cfg(test)]
mod tests {
    use stats::{Better, Pair, Unit};

    use super::*;
    use crate::comparison::quantity::Quantity;

    fn compared(better: Better, base: &[f64], other: &[f64]) -> Compared {
        let pair = Pair {
            quantity: Quantity::Metric { metric: "a:ns".to_owned(), cpu: None },
            unit: Unit::Ns,
            better,
            base: base.to_vec(),
            other: other.to_vec(),
            block: None,
            inflation: 1.0,
        };
        let p_value = pair.p_value();
        pair.compared((p_value, p_value), Ppm::new(1e5))
    }

    /// Check that a metric is worse in its own direction only, beyond the limit only, and with enough data only.
    #[test]
    fn directions() {
        let base: Vec<f64> = (0..20).map(|at| 100.0 + f64::from(at % 7) / 10.0).collect();
        let more: Vec<f64> = base.iter().map(|value| value * 1.2).collect();
        let of = |better, base: &[f64], other: &[f64]| {
            let compared = compared(better, base, other);
            let judged = [10.0, 30.0].map(|by| is_worse(&compared, Ppm::new(by * 1e4)));
            (MetricChange::of(&compared), judged)
        };
        use Judged::{False, True, Undecided};
        assert_eq!(of(Better::Less, &base, &more), (MetricChange::Worse, [True, False]));
        assert_eq!(of(Better::More, &base, &more), (MetricChange::Better, [False; 2]));
        assert_eq!(of(Better::More, &more, &base), (MetricChange::Worse, [True, False]));
        assert_eq!(
            of(Better::Neither, &base, &more),
            (MetricChange::Different, [False; 2])
        );
        assert_eq!(of(Better::Less, &base, &base), (MetricChange::Same, [False; 2]));
        let few = of(Better::Less, &base[..1], &more[..1]);
        assert_eq!(few, (MetricChange::Unknown, [Undecided; 2]));
    }
}
