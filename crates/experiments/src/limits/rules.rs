//! Limits and baselines of a table, as rules.
//!
//! Cells have the names of the table's combinations, whichever are run. Kernels are named as in the
//! table or on the command line, so they are checked when both are known.

use itertools::Itertools;
use toml::Spanned;

use crate::error::Error;
use crate::limits::{Limits, Rule};
use crate::plan::CellPlan;
use crate::table::condition::{Condition, Tolerance};
use crate::table::sequence::List;
use crate::table::source::Source;
use crate::table::{BaselineNumber, BaselineRow, LimitRow, Table, Within};

/// The limits of a table whose cells are planned; the kernels they name are not checked.
pub(crate) fn read(
    source: &Source,
    table: &Table,
    plans: &[CellPlan],
) -> Result<Limits, Error> {
    let rows = Rows { source, plans };
    let mut rules = Vec::new();
    for (metric, condition) in table.limits.iter() {
        let (place, condition) = (source.place(&metric.span()), condition.clone());
        let metric = metric.get_ref().as_str().to_owned();
        rules.push(Rule { place, kernels: None, cells: None, metric, condition });
    }
    for row in &table.limit {
        rows.limit_rules(row, &mut rules)?;
    }
    for row in &table.baseline {
        rows.baseline_rules(row, &mut rules)?;
    }
    Ok(Limits::new(rules))
}

/// Refuses a limit for a kernel that neither the table nor the command line names.
pub(crate) fn refuse_kernels(
    source: &Source,
    table: &Table,
    given: &[String],
) -> Result<(), Error> {
    let kernels = table.kernels.iter().map(|kernel| kernel.get_ref().as_str());
    let known: Vec<&str> =
        kernels.chain(given.iter().map(String::as_str)).unique().collect();
    let limits = table.limit.iter().filter_map(|row| row.kernels.as_ref());
    let baselines = table.baseline.iter().filter_map(|row| row.kernel.as_ref());
    let mut named = limits.flat_map(List::iter).chain(baselines);
    named.try_for_each(|name| refuse(source, "kernel", name, &known))
}

/// Refuses an unknown name.
fn refuse(
    source: &Source,
    kind: &str,
    name: &Spanned<String>,
    known: &[&str],
) -> Result<(), Error> {
    if known.contains(&name.get_ref().as_str()) {
        return Ok(());
    }
    let why = format!("no {kind} '{name}': there are '{}'", known.join("', '"));
    Err(source.refuse(name.span(), why))
}

fn texts(list: &List<String>) -> Vec<String> {
    list.iter().map(|name| name.get_ref().clone()).collect()
}

/// The cells and kernels that limits can name.
struct Rows<'a> {
    source: &'a Source,
    plans: &'a [CellPlan],
}

impl Rows<'_> {
    fn limit_rules(&self, row: &LimitRow, rules: &mut Vec<Rule>) -> Result<(), Error> {
        let kernels = row.kernels.as_ref().map(texts);
        let cells = row.cells.as_ref();
        cells.into_iter().flat_map(List::iter).try_for_each(|name| self.cell(name))?;
        let cells = cells.map(texts);
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
        self.cell(&row.cell)?;
        let kernels = row.kernel.as_ref().map(|name| vec![name.get_ref().clone()]);
        let of_row = Tolerance::Ppm(row.tolerance_ppm.map_or(0, |ppm| ppm.get()));
        let near = |number: &BaselineNumber| match *number {
            BaselineNumber::Plain(number) => {
                Condition::Near { number, tolerance: of_row }
            }
            BaselineNumber::Within(Within { value, tolerance }) => {
                let tolerance = Tolerance::Absolute(tolerance);
                Condition::Near { number: value, tolerance }
            }
        };
        let negative = |(_, number): &&(Spanned<_>, BaselineNumber)| match number {
            BaselineNumber::Plain(_) => false,
            BaselineNumber::Within(within) => {
                within.tolerance.is_nan() || within.tolerance < 0.0
            }
        };
        if let Some((metric, _)) = row.metrics.iter().find(negative) {
            let why = "the tolerance must not be less than 0";
            return Err(self.source.refuse(metric.span(), why));
        }
        rules.extend(row.metrics.iter().map(|(metric, number)| Rule {
            place: self.source.place(&metric.span()),
            kernels: kernels.clone(),
            cells: Some(vec![row.cell.get_ref().clone()]),
            metric: metric.get_ref().as_str().to_owned(),
            condition: near(number),
        }));
        Ok(())
    }

    /// Refuses a cell that the table does not have.
    fn cell(&self, name: &Spanned<String>) -> Result<(), Error> {
        let cells = self.plans.iter().map(|plan| plan.name.as_str());
        let cells: Vec<&str> = cells.unique().collect();
        refuse(self.source, "cell", name, &cells)
    }
}
