//! The values of one quantity: a sample, and those of two sets side by side. `Q` says of what they are.

use std::cmp::Ordering;

use crate::comparison::block::Block;
use crate::comparison::statistic::Statistic;
use crate::ranks;
use crate::unit::{Better, Unit};

/// The values of a quantity, one for each run or block that has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample<Q> {
    /// What the values are of.
    pub quantity: Q,
    /// Their unit.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// The values.
    pub values: Vec<f64>,
}

/// The values of a quantity in two sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair<Q> {
    /// What the values are of.
    pub quantity: Q,
    /// Their unit.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// The values of the base.
    pub base: Vec<f64>,
    /// Those of the other set.
    pub other: Vec<f64>,
    /// The blocks that the values are of.
    pub block: Option<Block>,
    /// How much larger the variance of a sum of values is than if they were independent.
    pub inflation: f64,
}

impl<Q> Pair<Q> {
    /// The probability of values that differ as much, by chance.
    pub fn p_value(&self) -> f64 {
        ranks::p_value(&self.base, &self.other, self.inflation)
    }

    /// Whether the other set's values are larger, by their ranks.
    pub(crate) fn direction(&self) -> Ordering {
        ranks::direction(&self.base, &self.other)
    }

    /// The mean of the means of both sets.
    pub fn mean(&self) -> f64 {
        let mean = |values: &[f64]| Statistic::Mean.of(values).unwrap_or(0.0);
        (mean(&self.base) + mean(&self.other)) / 2.0
    }
}
