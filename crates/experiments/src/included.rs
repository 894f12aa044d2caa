//! Cells of built-in experiments in another one, so that both have the same workload.
//!
//! Their plans are those of the built-in experiment, with its machine, boot parameters and settings,
//! on the kernels of the experiment that includes them. Exact cells of both are the same, and share
//! their results in the cache.

use crate::builtin;
use crate::error::Error;
use crate::plan::combination::{self, combinations};
use crate::plan::{self, CellPlan};
use crate::table::Table;
use crate::table::include::IncludeRow;
use crate::table::source::Source;

/// A built-in experiment of which some cells are included.
#[derive(Debug, Clone)]
pub(crate) struct Included {
    source: Source,
    pub(crate) table: Table,
    /// The names of its cells; all without.
    cells: Option<Vec<String>>,
}

impl Included {
    /// Reads the built-in experiment of a row.
    ///
    /// # Errors
    /// There is none of that name, it consists of others itself, or it has no such cell.
    pub(crate) fn read(source: &Source, row: &IncludeRow) -> Result<Self, Error> {
        let name = &row.experiment;
        let refuse = |why: String| source.refuse(name.span(), why);
        let text = builtin::text(name.get_ref().as_str());
        let text = text.map_err(|error| refuse(error.to_string()))?;
        let own = Source::new(&format!("the built-in {}", name.get_ref().as_str()), text);
        let table: Table = own.read()?;
        if !table.include.is_empty() || !table.step.is_empty() {
            let why = format!(
                "experiment '{}' includes others or has steps, and cannot be included",
                name.get_ref().as_str()
            );
            return Err(refuse(why));
        }
        let table = table.with_first_rows();
        let known = combinations(&own, &table)?;
        let known: Vec<String> = known.iter().map(|rows| rows.name()).collect();
        if let Some(cell) = row
            .cells
            .as_ref()
            .and_then(|cells| cells.iter().find(|cell| !known.contains(cell.get_ref())))
        {
            let why = format!("no cell '{cell}': there are '{}'", known.join("', '"));
            return Err(source.refuse(cell.span(), why));
        }
        let cells = row.cells.as_ref();
        let cells =
            cells.map(|all| all.iter().map(|one| one.get_ref().clone()).collect());
        Ok(Self { source: own, table, cells })
    }

    /// The plans of its cells on a kernel. Their names begin with that of the experiment.
    ///
    /// # Errors
    /// Its rows cannot be combined after a change.
    pub(crate) fn plans(&self, kernel: &str) -> Result<Vec<CellPlan>, Error> {
        let experiment = self.table.name.get_ref().as_str();
        let mut plans = plan::of_kernel(&self.source, &self.table, kernel)?;
        plans.retain(|plan| {
            self.cells.as_ref().is_none_or(|cells| cells.contains(&plan.name))
        });
        for plan in &mut plans {
            plan.name = format!("{experiment} {}", plan.name);
        }
        Ok(plans)
    }
}

/// The plans of all cells on these kernels: by kernel, boot row, setting row, workload and repeat;
/// then those of included experiments.
pub(crate) fn plans(
    source: &Source,
    table: &Table,
    included: &[Included],
    kernels: &[String],
) -> Result<Vec<CellPlan>, Error> {
    combination::check_kernels(source, table)?;
    let has_rows = included.is_empty() || !table.workload.is_empty();
    let mut plans = Vec::new();
    for kernel in kernels {
        if has_rows {
            plans.extend(plan::of_kernel(source, table, kernel)?);
        }
        for one in included {
            plans.extend(one.plans(kernel)?);
        }
    }
    if plans.is_empty() {
        let why = "there is no cell: no boot row or no setting row is for one of these kernels, \
                   or no setting row goes with a boot row that something runs with";
        return Err(source.refuse(table.name.span(), why));
    }
    combination::check_plans(source, table, &plans)?;
    Ok(plans)
}
