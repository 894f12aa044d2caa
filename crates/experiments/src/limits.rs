//! Limits on metrics of cells, and stored baselines: what `lab check` checks.
//!
//! Metrics are named numbers that `summary` computes per cell; which of them a cell has is known
//! only after it has run. A limit on a metric that no cell has is a mistake in the table, and
//! an error rather than a limit that holds. How limits are parsed is in `rules`.
//!
//! Cannot see whether a cell was lost: it has no metrics, and is skipped. The caller must
//! fail for that itself.

pub(crate) mod baseline;
pub(crate) mod rules;
pub(crate) mod suggestion;

use itertools::Itertools;
use summary::{Metric, ViolatedLimit};

use crate::error::{Error, Place};
use crate::table::condition::Condition;

/// The metrics of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The kernel, as the experiment names it.
    pub kernel: String,
    /// The cell's name.
    pub cell: String,
    /// The number of variations that a check runs at least.
    pub variations: u32,
    /// Its metrics; none of a lost cell.
    pub metrics: Vec<Metric>,
}

/// All limits and the baseline of an experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    rules: Vec<Rule>,
}

/// A condition on one metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    pub(crate) place: Place,
    /// The kernels that it is for; `None`: all.
    pub(crate) kernels: Option<Vec<String>>,
    /// The cells that it is for; `None`: all that have the metric.
    pub(crate) cells: Option<Vec<String>>,
    pub(crate) metric: String,
    pub(crate) condition: Condition,
}

impl Limits {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Refuses an unknown metric, so that a mistyped one is found before anything boots.
    ///
    /// # Errors
    /// There is such a metric; the message names the place and similar metrics.
    pub fn refuse_unknown(&self, known: &[String]) -> Result<(), Error> {
        match self.rules.iter().find(|rule| !known.contains(&rule.metric)) {
            Some(rule) => {
                let names: Vec<&str> = known.iter().map(String::as_str).collect();
                let there = suggestion::suggest(&rule.metric, &names);
                Err(rule.no_metric("no cell has a", &there))
            }
            None => Ok(()),
        }
    }

    /// The violated limits, in their order; each once per cell, however often it was repeated with
    /// the same result. Limits for kernels and cells that were not run are skipped, and so are lost
    /// cells.
    ///
    /// # Errors
    /// A limit for a metric that no cell has, or that a cell which the limit names does not have;
    /// or no limit applies to any cell that was run.
    pub fn check(&self, measured: &[Measured]) -> Result<Vec<ViolatedLimit>, Error> {
        let mut violated = Vec::new();
        let mut held = 0;
        for rule in &self.rules {
            for (cell, metric) in rule.metrics(measured)? {
                held += 1;
                let limit = rule.violated_by(cell, metric);
                if !rule.condition.may_hold(metric) && !violated.contains(&limit) {
                    violated.push(limit);
                }
            }
        }
        let ran = measured.iter().any(|cell| !cell.metrics.is_empty());
        match self.rules.first() {
            Some(first) if ran && held == 0 => Err(self.none_applies(first, measured)),
            _ => Ok(violated),
        }
    }

    /// No limit applies to a cell that was run; with the reason, if it is the kernels that they
    /// name.
    fn none_applies(&self, first: &Rule, measured: &[Measured]) -> Error {
        let reason = self.kernels_not_run(measured).unwrap_or_default();
        Error::NoLimitApplies(first.place.clone(), reason)
    }

    /// The kernels that the limits name, if each names some and none of them was run.
    fn kernels_not_run(&self, measured: &[Measured]) -> Option<String> {
        let named: Option<Vec<_>> =
            self.rules.iter().map(|rule| rule.kernels.as_ref()).collect();
        let names = named?.into_iter().flatten().map(String::as_str);
        let names: Vec<&str> = names.unique().collect();
        let ran = |name: &&str| measured.iter().any(|cell| cell.kernel == *name);
        let s = if names.len() == 1 { "" } else { "s" };
        (!names.iter().any(ran)).then(|| {
            format!(
                ": they name kernel{s} {}; leave out '{}' to hold every kernel to them",
                names.join(", "),
                self.kernel_key()
            )
        })
    }

    /// The key for kernels in the rows: a baseline is of one.
    fn kernel_key(&self) -> &'static str {
        let is_baseline = |rule: &Rule| matches!(rule.condition, Condition::Near { .. });
        if self.rules.iter().all(is_baseline) { "kernel" } else { "kernels" }
    }
}

impl Rule {
    /// The metric in each of its cells.
    fn metrics<'a>(
        &self,
        measured: &'a [Measured],
    ) -> Result<Vec<(&'a Measured, &'a Metric)>, Error> {
        let mut metrics = Vec::new();
        let cells: Vec<_> = measured.iter().filter(|cell| self.is_for(cell)).collect();
        for cell in &cells {
            let found = cell.metrics.iter().find(|metric| metric.key == self.metric);
            match found {
                Some(metric) => metrics.push((*cell, metric)),
                None if self.cells.is_some() => return Err(self.none_has_it(&[*cell])),
                None => {}
            }
        }
        if metrics.is_empty() && !cells.is_empty() {
            return Err(self.none_has_it(&cells));
        }
        Ok(metrics)
    }

    fn is_for(&self, cell: &Measured) -> bool {
        let among = |names: &Option<Vec<String>>, name: &String| {
            names.as_ref().is_none_or(|names| names.contains(name))
        };
        !cell.metrics.is_empty()
            && among(&self.kernels, &cell.kernel)
            && among(&self.cells, &cell.cell)
    }

    /// None of those cells has the metric.
    fn none_has_it(&self, cells: &[&Measured]) -> Error {
        let names = cells.iter().flat_map(|cell| &cell.metrics).map(|metric| &metric.key);
        let there = format!("there are {}", names.unique().join(", "));
        match cells {
            [cell] => self.no_metric(&format!("cell '{}' has no", cell.cell), &there),
            _ => self.no_metric("no cell has a", &there),
        }
    }

    fn no_metric(&self, cells: &str, known: &str) -> Error {
        let (place, metric) = (self.place.clone(), self.metric.clone());
        Error::NoMetric(place, cells.into(), metric, known.into())
    }

    fn violated_by(&self, cell: &Measured, metric: &Metric) -> ViolatedLimit {
        ViolatedLimit {
            kernel: cell.kernel.clone(),
            cell: cell.cell.clone(),
            metric: self.metric.clone(),
            value: metric.value,
            within: metric.varied.map(|varied| varied.within),
            limit: self.condition.to_string(),
            place: self.place.to_string(),
        }
    }
}
