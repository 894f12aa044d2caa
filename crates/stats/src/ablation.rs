//! Which of several changes make the difference of a metric between two states, by testing ever
//! smaller sets of them.
//!
//! The changes are made in a fixed order, so that the states between the two form a path. An interval
//! of the path at whose ends the metric differs is halved, the one with the largest difference first,
//! until it contains a single change; intervals with the same value at both ends are left out. This is
//! delta debugging with numbers instead of a verdict (Zeller and Hildebrandt, "Simplifying and
//! Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002): a state that cannot be tested is
//! unresolved there and here, and its interval is divided elsewhere.
//!
//! The contribution of a change is the difference between its two ends, so that contributions and what
//! remains add up to the whole. Where changes interact it depends on the order; so it is compared with
//! the difference that the change makes alone, and as the last one.
//!
//! Cannot see changes in the same interval whose effects cancel exactly.

use std::collections::BTreeMap;

use serde::Serialize;

/// An option that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OptionChange {
    /// Its name.
    pub name: String,
    /// Its value in the first state: `n` if it has none.
    pub from: String,
    /// Its value in the second state.
    pub to: String,
}

/// Options that are changed together: one, or all of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct OptionsChange(pub Vec<OptionChange>);

/// The result of a test of a state.
#[derive(Debug, Clone, PartialEq)]
pub enum Tested {
    /// The value of the metric.
    Value(f64),
    /// The state cannot be tested, for that reason.
    Unresolved(String),
    /// It was not tested, and no other is to be.
    Ended(Ended),
}

/// Why tests ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The number of builds or the time is used up.
    Budget,
    /// The user stopped it.
    Interrupted,
}

/// Changes that make a part of the difference: one, or several that cannot be tested apart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contribution {
    /// The changes.
    pub changes: Vec<OptionsChange>,
    /// Their difference, with the changes before them.
    pub difference: f64,
    /// Their difference alone in the first state; unknown if it was not tested.
    pub alone: Option<f64>,
    /// Their difference as the last ones, in the second state.
    pub last: Option<f64>,
}

impl Contribution {
    /// Whether the difference is known to depend on other changes.
    pub fn interacts(&self) -> bool {
        [self.alone, self.last].iter().flatten().any(|other| *other != self.difference)
    }
}

/// Changes whose difference was not examined further.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unexplained {
    /// The changes.
    pub changes: Vec<OptionsChange>,
    /// Their difference together.
    pub difference: f64,
}

/// A state that could not be tested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unresolved {
    /// The number of changes that were made in it.
    pub made: usize,
    /// The reason.
    pub why: String,
}

/// The parts of a difference. `difference` is the sum of the contributions and `unexplained_sum`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Ablation {
    /// The metric in the first state; unknown if there is no change, because none was tested.
    pub from: Option<f64>,
    /// The metric in the second state.
    pub to: Option<f64>,
    /// The difference.
    pub difference: f64,
    /// By how much the metric may differ without a reason; smaller differences are not examined.
    pub tolerance: f64,
    /// The number of changes.
    pub changes: usize,
    /// The number of changes in intervals without a difference.
    pub without_effect: usize,
    /// The parts, the largest first.
    pub contributions: Vec<Contribution>,
    /// What remains.
    pub unexplained: Vec<Unexplained>,
    /// Its sum.
    pub unexplained_sum: f64,
    /// The states that could not be tested.
    pub unresolved: Vec<Unresolved>,
    /// Why tests ended early, if they did.
    pub ended: Option<Ended>,
}

impl Ablation {
    /// Divides the difference between two states. `test` gets the indices of the changes that are
    /// made; the state of none has the value `from`, that of all `to`.
    ///
    /// # Errors
    /// Those of `test`.
    pub fn of<E>(
        changes: &[OptionsChange],
        [from, to]: [f64; 2],
        tolerance: f64,
        test: &mut dyn FnMut(&[usize]) -> Result<Tested, E>,
    ) -> Result<Self, E> {
        let points = BTreeMap::from([(0, Some(from)), (changes.len(), Some(to))]);
        let (unresolved, ended) = (Vec::new(), None);
        let mut path = Path { points, tolerance, unresolved, ended };
        path.divide(test)?;
        let mut parts = path.parts();
        parts.sort_by(|one, other| other.size().total_cmp(&one.size()));
        let (found, rest): (Vec<Interval>, Vec<Interval>) =
            parts.iter().partition(|part| path.is_final(part));
        let mut contributions = Vec::new();
        for part in &found {
            contributions.push(path.contribution(part, changes, [from, to], test)?);
        }
        let unexplained: Vec<Unexplained> = rest
            .iter()
            .filter(|part| part.difference != 0.0)
            .map(|part| Unexplained {
                changes: changes[part.begin..part.end].to_vec(),
                difference: part.difference,
            })
            .collect();
        let without_effect = rest.iter().filter(|part| part.difference == 0.0);
        Ok(Self {
            from: Some(from),
            to: Some(to),
            difference: to - from,
            tolerance,
            changes: changes.len(),
            without_effect: without_effect.map(|part| part.end - part.begin).sum(),
            contributions,
            // The sum of no numbers would be -0.
            unexplained_sum: unexplained
                .iter()
                .fold(0.0, |sum, part| sum + part.difference),
            unexplained,
            unresolved: path.unresolved,
            ended: path.ended,
        })
    }
}

/// The changes from `begin` to before `end`, and the difference that they make.
#[derive(Debug, Clone, Copy)]
struct Interval {
    begin: usize,
    end: usize,
    difference: f64,
}

impl Interval {
    fn size(&self) -> f64 {
        self.difference.abs()
    }
}

/// The states that were tested: those with the first changes, by their number.
struct Path {
    /// The values; `None` where the state cannot be tested.
    points: BTreeMap<usize, Option<f64>>,
    tolerance: f64,
    unresolved: Vec<Unresolved>,
    ended: Option<Ended>,
}

impl Path {
    /// Tests states until every difference is that of a change, or none remains to be tested.
    fn divide<E>(
        &mut self,
        test: &mut dyn FnMut(&[usize]) -> Result<Tested, E>,
    ) -> Result<(), E> {
        while let Some(next) = self.next() {
            let made: Vec<usize> = (0..next).collect();
            let value = self.value(&made, test)?;
            if self.ended.is_some() {
                break;
            }
            self.points.insert(next, value);
        }
        Ok(())
    }

    /// The state to test next: in the interval with the largest difference.
    fn next(&self) -> Option<usize> {
        let mut parts = self.parts();
        parts.retain(|part| part.size() > self.tolerance);
        parts.sort_by(|one, other| other.size().total_cmp(&one.size()));
        parts.iter().find_map(|part| self.middle(part))
    }

    /// The middle of the longest gap between tested states; `None` if all are tested.
    fn middle(&self, part: &Interval) -> Option<usize> {
        let tested: Vec<usize> =
            self.points.range(part.begin..=part.end).map(|(at, _)| *at).collect();
        let gaps = tested.windows(2).map(|pair| (pair[1] - pair[0], pair[0]));
        // The first of several.
        let longest = gaps.rev().max_by_key(|(length, _)| *length);
        longest.filter(|(length, _)| *length > 1).map(|(length, at)| at + length / 2)
    }

    /// The intervals between states with a value.
    fn parts(&self) -> Vec<Interval> {
        let known: Vec<(usize, f64)> =
            self.points.iter().filter_map(|(at, value)| Some((*at, (*value)?))).collect();
        let part = |pair: &[(usize, f64)]| Interval {
            begin: pair[0].0,
            end: pair[1].0,
            difference: pair[1].1 - pair[0].1,
        };
        known.windows(2).map(part).collect()
    }

    /// Whether a difference is that of a change, or of changes that cannot be tested apart.
    fn is_final(&self, part: &Interval) -> bool {
        part.size() > self.tolerance && self.middle(part).is_none()
    }

    /// A part, with the differences that it makes alone and as the last one.
    fn contribution<E>(
        &mut self,
        part: &Interval,
        changes: &[OptionsChange],
        [from, to]: [f64; 2],
        test: &mut dyn FnMut(&[usize]) -> Result<Tested, E>,
    ) -> Result<Contribution, E> {
        let Interval { begin, end, difference } = *part;
        let own: Vec<usize> = (begin..end).collect();
        let others: Vec<usize> = (0..begin).chain(end..changes.len()).collect();
        let alone = match begin {
            0 => Some(difference),
            _ => self.value(&own, test)?.map(|value| value - from),
        };
        let last = match end == changes.len() {
            true => Some(difference),
            false => self.value(&others, test)?.map(|value| to - value),
        };
        let changes = changes[begin..end].to_vec();
        Ok(Contribution { changes, difference, alone, last })
    }

    /// The value of a state, unless it cannot be tested or tests have ended.
    fn value<E>(
        &mut self,
        made: &[usize],
        test: &mut dyn FnMut(&[usize]) -> Result<Tested, E>,
    ) -> Result<Option<f64>, E> {
        if self.ended.is_some() {
            return Ok(None);
        }
        Ok(match test(made)? {
            Tested::Value(value) => Some(value),
            Tested::Unresolved(why) => {
                self.unresolved.push(Unresolved { made: made.len(), why });
                None
            }
            Tested::Ended(ended) => {
                self.ended = Some(ended);
                None
            }
        })
    }
}

#[cfg(test)]
mod tests;
