//! The combinations of an experiment's rows: which boot row, setting row and workload are combined,
//! and whether their names are unique.

use std::collections::HashSet;
use std::ops::Range;

use toml::Spanned;

use crate::error::Error;
use crate::plan::CellPlan;
use crate::table::sequence::List;
use crate::table::source::Source;
use crate::table::{BootRow, SettingRow, Table, WorkloadRow, quoted, row_name};

/// More cells are a mistake in the table: at two seconds each these take six hours.
const CELLS_MAX: usize = 10_000;

/// One row of each kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Combination<'a> {
    pub(crate) boot: &'a BootRow,
    pub(crate) setting: &'a SettingRow,
    pub(crate) workload: &'a Spanned<WorkloadRow>,
}

impl Combination<'_> {
    /// The cell's name: the rows' names, if they have one.
    pub(crate) fn name(&self) -> String {
        let workload = self.workload.get_ref().name.get_ref().as_str();
        let names = [row_name(&self.boot.name), row_name(&self.setting.name), workload];
        names
            .iter()
            .filter(|name| !name.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// All combinations, in the order of the rows: by boot, setting, workload.
pub(crate) fn combinations<'a>(
    source: &Source,
    table: &'a Table,
) -> Result<Vec<Combination<'a>>, Error> {
    check_names(source, table)?;
    check_boots(source, table)?;
    let mut all = Vec::new();
    for boot in table.boot.iter().map(Spanned::get_ref) {
        let settings = table.setting.iter().map(Spanned::get_ref);
        for setting in settings.filter(|setting| setting.goes_with(boot)) {
            let workloads = table.workload.iter();
            let here = workloads.filter(|workload| workload.get_ref().runs_with(boot));
            all.extend(here.map(|workload| Combination { boot, setting, workload }));
        }
    }
    check_cells(source, table, &all)?;
    Ok(all)
}

/// Refuses a kernel that is named twice.
pub(crate) fn check_kernels(source: &Source, table: &Table) -> Result<(), Error> {
    let mut seen = HashSet::new();
    match table.kernels.iter().find(|kernel| !seen.insert(kernel.get_ref())) {
        Some(twice) => {
            let why = format!("kernel '{}' is named twice", twice.get_ref().as_str());
            Err(source.refuse(twice.span(), why))
        }
        None => Ok(()),
    }
}

fn check_names(source: &Source, table: &Table) -> Result<(), Error> {
    if table.workload.is_empty() {
        let why = "no workload: add a [[workload]] with noise, ticks, calls or program";
        return Err(source.refuse(table.name.span(), why));
    }
    let boots = table.boot.iter().map(|row| (row.span(), row_name(&row.get_ref().name)));
    check_unique(source, "boot", boots)?;
    let settings = table.setting.iter();
    let settings = settings.map(|row| (row.span(), row_name(&row.get_ref().name)));
    check_unique(source, "setting", settings)?;
    let workloads = table.workload.iter();
    let workloads =
        workloads.map(|row| (row.span(), row.get_ref().name.get_ref().as_str()));
    check_unique(source, "workload", workloads)
}

/// Refuses two rows of one name; a missing name counts as one.
fn check_unique<'a>(
    source: &Source,
    kind: &str,
    mut rows: impl Iterator<Item = (Range<usize>, &'a str)>,
) -> Result<(), Error> {
    let mut seen = HashSet::new();
    match rows.find(|(_, name)| !seen.insert(*name)) {
        Some((place, "")) => {
            let why = format!("two {kind} rows have no name: give this one a name");
            Err(source.refuse(place, why))
        }
        Some((place, name)) => {
            Err(source.refuse(place, format!("two {kind} rows are named '{name}'")))
        }
        None => Ok(()),
    }
}

/// Refuses missing boot rows, and those without a workload.
fn check_boots(source: &Source, table: &Table) -> Result<(), Error> {
    let names = table.boot.iter().map(|boot| row_name(&boot.get_ref().name));
    let names: Vec<&str> = names.collect();
    let of_settings = table.setting.iter().filter_map(|row| row.get_ref().boots.as_ref());
    let wanted = table.workload.iter().filter_map(|row| row.get_ref().boots.as_ref());
    let wanted = wanted.chain(of_settings);
    let unknown = |boot: &&Spanned<String>| !names.contains(&boot.get_ref().as_str());
    if let Some(boot) = wanted.flat_map(List::iter).find(unknown) {
        let there = quoted(names.into_iter());
        let why = format!("no boot row '{boot}': there are {there}");
        return Err(source.refuse(boot.span(), why));
    }
    let runs = |boot| table.workload.iter().any(|row| row.get_ref().runs_with(boot));
    match table.boot.iter().find(|boot| !runs(boot.get_ref())) {
        Some(boot) => {
            let name = row_name(&boot.get_ref().name);
            let why = format!("no workload runs with boot row '{name}'");
            Err(source.refuse(boot.span(), why))
        }
        None => Ok(()),
    }
}

/// Refuses two combinations of one name, and too many cells.
fn check_cells(
    source: &Source,
    table: &Table,
    all: &[Combination<'_>],
) -> Result<(), Error> {
    let mut seen = HashSet::new();
    for combination in all {
        if !seen.insert(combination.name()) {
            let why = format!(
                "two combinations of rows are named '{}': give a row another name",
                combination.name()
            );
            return Err(source.refuse(combination.workload.get_ref().name.span(), why));
        }
    }
    let repeats = usize::try_from(table.repeats.get()).unwrap_or(usize::MAX);
    let kernels = table.kernels.len();
    refuse_many(source, table, all.len().saturating_mul(kernels).saturating_mul(repeats))
}

/// Refuses two cells of one name, of which an included experiment has one, and too many cells.
pub(crate) fn check_plans(
    source: &Source,
    table: &Table,
    plans: &[CellPlan],
) -> Result<(), Error> {
    refuse_many(source, table, plans.len())?;
    let mut seen = HashSet::new();
    let key = |plan: &&CellPlan| (plan.kernel.clone(), plan.name.clone(), plan.repeat);
    match plans.iter().find(|plan| !seen.insert(key(plan))) {
        Some(twice) => {
            let why = format!("two cells are named '{}'", twice.name);
            Err(source.refuse(table.name.span(), why))
        }
        None => Ok(()),
    }
}

fn refuse_many(source: &Source, table: &Table, cells: usize) -> Result<(), Error> {
    if cells > CELLS_MAX {
        let why = format!("these are {cells} cells, and {CELLS_MAX} are the most");
        return Err(source.refuse(table.name.span(), why));
    }
    Ok(())
}
