//! Limits on what cells measured, and a stored baseline: what `lab check` holds them to.
//!
//! A limit is for metrics, named numbers that `stats` works out per cell; which there are
//! is known only when a cell has been run. A limit that is for no metric of any cell is a
//! mistake in the table, and an error rather than a limit that is kept.
//!
//! Cannot see whether a cell was lost: it has no metrics, and is passed over. A gate must
//! fail for that by itself.

use std::fmt;

use toml::Spanned;

use crate::condition::Condition;
use crate::error::{Error, Kind};
use crate::plan::Plan;
use crate::rows::{BaselineRow, LimitRow, Table};
use crate::sequence::List;
use crate::toml_place::Source;

/// What a cell measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The kernel, as the experiment asks for it.
    pub kernel: String,
    /// The cell's name.
    pub cell: String,
    /// Its metrics: name and number, with the unit in the name; none of a lost cell.
    pub metrics: Vec<(String, f64)>,
}

/// A cell that does not keep a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Breach {
    /// The kernel, as the experiment asks for it.
    pub kernel: String,
    /// The cell's name.
    pub cell: String,
    /// The metric.
    pub metric: String,
    /// What it is.
    pub seen: f64,
    /// What it should be: `<= 2600`, `== 2584`.
    pub limit: String,
    /// Where the limit stands: `tick.toml:12:1`.
    pub place: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, cell, metric, seen, limit, place } = self;
        write!(f, "{kernel}, {cell}: {metric} is {seen}, and {place} says {limit}")
    }
}

/// All limits and the baseline of an experiment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    rules: Vec<Rule>,
}

/// What one metric must be.
#[derive(Debug, Clone, PartialEq)]
struct Rule {
    place: String,
    /// The kernels that it is for; `None`: all.
    kernels: Option<Vec<String>>,
    /// The cells that it is for; `None`: all that have the metric.
    cells: Option<Vec<String>>,
    metric: String,
    condition: Condition,
}

impl Limits {
    /// The limits of a table whose cells are planned.
    pub(crate) fn read(
        source: &Source,
        table: &Table,
        plans: &[Plan],
    ) -> Result<Self, Error> {
        let names = Names { source, table, plans };
        let mut rules = Vec::new();
        for (metric, condition) in table.limits.iter() {
            let (place, condition) = (source.place(&metric.span()), condition.clone());
            let metric = metric.get_ref().as_str().to_owned();
            rules.push(Rule { place, kernels: None, cells: None, metric, condition });
        }
        for row in &table.limit {
            names.limit_rules(row, &mut rules)?;
        }
        for row in &table.baseline {
            names.baseline_rules(row, &mut rules)?;
        }
        Ok(Self { rules })
    }

    /// Whether there are none, so that nothing could be held against them.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The cells that do not keep a limit, by limit; each such cell once, however often
    /// it was repeated with the same result. Limits for kernels and cells that were not
    /// run are passed over, and so are lost cells.
    ///
    /// # Errors
    /// A limit for a metric that no cell has, or that a cell which the limit names does
    /// not have; or no limit at all is for what was run.
    pub fn check(&self, measured: &[Measured]) -> Result<Vec<Breach>, Error> {
        let mut breaches = Vec::new();
        let mut held = 0;
        for rule in &self.rules {
            for (cell, seen) in rule.values(measured)? {
                held += 1;
                let breach = rule.breach(cell, seen);
                if !rule.condition.holds(seen) && !breaches.contains(&breach) {
                    breaches.push(breach);
                }
            }
        }
        let ran = measured.iter().any(|cell| !cell.metrics.is_empty());
        match self.rules.first() {
            Some(first) if ran && held == 0 => {
                let why = "no limit, this or later, is for a cell that was run";
                let text = format!("{}: {why}", first.place);
                Err(Error::new(Kind::Experiment, text))
            }
            _ => Ok(breaches),
        }
    }
}

impl Rule {
    /// What the metric is in the cells that it is for.
    fn values<'a>(
        &self,
        measured: &'a [Measured],
    ) -> Result<Vec<(&'a Measured, f64)>, Error> {
        let mut values = Vec::new();
        let cells: Vec<_> = measured.iter().filter(|cell| self.is_for(cell)).collect();
        for cell in &cells {
            let seen = cell.metrics.iter().find(|(name, _)| *name == self.metric);
            match seen {
                Some((_, seen)) => values.push((*cell, *seen)),
                None if self.cells.is_some() => return Err(self.no_metric(&[*cell])),
                None => {}
            }
        }
        if values.is_empty() && !cells.is_empty() {
            return Err(self.no_metric(&cells));
        }
        Ok(values)
    }

    fn is_for(&self, cell: &Measured) -> bool {
        let among = |names: &Option<Vec<String>>, name: &String| {
            names.as_ref().is_none_or(|names| names.contains(name))
        };
        !cell.metrics.is_empty()
            && among(&self.kernels, &cell.kernel)
            && among(&self.cells, &cell.cell)
    }

    fn no_metric(&self, cells: &[&Measured]) -> Error {
        let mut there: Vec<&str> = Vec::new();
        for (name, _) in cells.iter().flat_map(|cell| &cell.metrics) {
            if !there.contains(&name.as_str()) {
                there.push(name);
            }
        }
        let which = match cells {
            [cell] => format!("cell '{}' has no", cell.cell),
            _ => "no cell has a".to_owned(),
        };
        let text = format!(
            "{}: {which} metric '{}': there are {}",
            self.place,
            self.metric,
            there.join(", ")
        );
        Error::new(Kind::Experiment, text)
    }

    fn breach(&self, cell: &Measured, seen: f64) -> Breach {
        Breach {
            kernel: cell.kernel.clone(),
            cell: cell.cell.clone(),
            metric: self.metric.clone(),
            seen,
            limit: self.condition.to_string(),
            place: self.place.clone(),
        }
    }
}

/// A list's names, each of which must be known.
fn each(
    list: Option<&List<String>>,
    known: impl Fn(&Spanned<String>) -> Result<String, Error>,
) -> Result<Option<Vec<String>>, Error> {
    list.map(|list| list.iter().map(known).collect()).transpose()
}

/// What limits can be for.
struct Names<'a> {
    source: &'a Source,
    table: &'a Table,
    plans: &'a [Plan],
}

impl Names<'_> {
    fn limit_rules(&self, row: &LimitRow, rules: &mut Vec<Rule>) -> Result<(), Error> {
        let kernels = each(row.kernels.as_ref(), |name| self.kernel(name))?;
        let cells = each(row.cells.as_ref(), |name| self.cell(name))?;
        rules.extend(row.metrics.iter().map(|(metric, condition)| Rule {
            place: self.source.place(&metric.span()),
            kernels: kernels.clone(),
            cells: cells.clone(),
            metric: metric.get_ref().as_str().to_owned(),
            condition: condition.clone(),
        }));
        Ok(())
    }

    fn baseline_rules(
        &self,
        row: &BaselineRow,
        rules: &mut Vec<Rule>,
    ) -> Result<(), Error> {
        let kernel = row.kernel.as_ref().map(|name| self.kernel(name)).transpose()?;
        let cell = self.cell(&row.cell)?;
        let tolerance_ppm = row.tolerance_ppm.map_or(0, |ppm| ppm.get());
        rules.extend(row.metrics.iter().map(|(metric, number)| Rule {
            place: self.source.place(&metric.span()),
            kernels: kernel.clone().map(|kernel| vec![kernel]),
            cells: Some(vec![cell.clone()]),
            metric: metric.get_ref().as_str().to_owned(),
            condition: Condition::Near { number: *number, tolerance_ppm },
        }));
        Ok(())
    }

    fn kernel(&self, name: &Spanned<String>) -> Result<String, Error> {
        let kernels = self.table.kernels.iter();
        let kernels: Vec<&str> =
            kernels.map(|kernel| kernel.get_ref().as_str()).collect();
        self.known("kernel", name, &kernels)
    }

    fn cell(&self, name: &Spanned<String>) -> Result<String, Error> {
        let mut cells: Vec<&str> = Vec::new();
        for plan in self.plans {
            if !cells.contains(&plan.name.as_str()) {
                cells.push(&plan.name);
            }
        }
        self.known("cell", name, &cells)
    }

    fn known(
        &self,
        kind: &str,
        name: &Spanned<String>,
        names: &[&str],
    ) -> Result<String, Error> {
        if names.contains(&name.get_ref().as_str()) {
            return Ok(name.get_ref().clone());
        }
        let why = format!("no {kind} '{name}': there are '{}'", names.join("', '"));
        Err(self.source.refuse(name.span(), why))
    }
}
