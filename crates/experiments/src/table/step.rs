//! The steps of a series: each changes options of the kernels that are built, alone and together with
//! all steps before it.
//!
//! Steps become kernels with names of their own, which plans and reports have, and the series that
//! the report compares them in.

use std::collections::HashSet;

use kernels::{BuildSpec, OptionValue};
use summary::{TrimSeries, TrimStep};
use toml::Spanned;

use crate::error::{EntryError, Error};
use crate::table::Table;
use crate::table::entry::{KernelName, Line, Name};
use crate::table::kernel_build::{Options, name_of};
use crate::table::source::Source;

/// Begins the label of a kernel with several steps: all up to the one of that name.
const UP_TO: &str = "to-";

/// A step.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct StepRow {
    pub(crate) name: Spanned<Name>,
    options: Options,
    #[serde(default)]
    costs: Line,
}

/// The series of all kernels of a table; none without a step.
///
/// # Errors
/// A kernel is not built, two steps have one name, or an option is wrong.
pub(crate) fn series(source: &Source, table: &Table) -> Result<Vec<TrimSeries>, Error> {
    if table.step.is_empty() {
        return Ok(Vec::new());
    }
    let mut seen = HashSet::new();
    let names = table.step.iter().map(|step| &step.get_ref().name);
    if let Some(twice) = names.into_iter().find(|name| !seen.insert(name.get_ref())) {
        let why = format!("two steps are named '{}'", twice.get_ref().as_str());
        return Err(source.refuse(twice.span(), why));
    }
    let is_taken = |name: &str| {
        name.strip_prefix(UP_TO).is_some_and(|rest| {
            table.step.iter().any(|step| step.get_ref().name.get_ref().as_str() == rest)
        })
    };
    let mut names = table.step.iter().map(|step| &step.get_ref().name);
    if let Some(taken) = names.find(|name| is_taken(name.get_ref().as_str())) {
        let name = taken.get_ref().as_str();
        let why = format!("'{name}' is the name of all steps up to another one");
        return Err(source.refuse(taken.span(), why));
    }
    table.kernels.iter().map(|kernel| of_kernel(source, table, kernel)).collect()
}

/// The names of all kernels of a table, with those of its series.
pub(crate) fn kernels(table: &Table, series: &[TrimSeries]) -> Vec<String> {
    match series {
        [] => {
            table.kernels.iter().map(|name| name.get_ref().as_str().to_owned()).collect()
        }
        series => {
            series.iter().flat_map(TrimSeries::kernels).map(str::to_owned).collect()
        }
    }
}

fn of_kernel(
    source: &Source,
    table: &Table,
    kernel: &Spanned<KernelName>,
) -> Result<TrimSeries, Error> {
    let name = kernel.get_ref().as_str();
    let build = name.strip_prefix(BuildSpec::PREFIX);
    let Some((text, Ok(base))) = build.map(|text| (text, BuildSpec::parse(text))) else {
        let why = format!(
            "steps change the options of kernels that are built, and '{name}' is not: write \
             build:debian:6.1,debian, or a table with a source"
        );
        return Err(source.refuse(kernel.span(), why));
    };
    let mut before: Vec<OptionValue> = Vec::new();
    let mut steps = Vec::new();
    for row in &table.step {
        let refuse = |why: EntryError| source.refuse(row.span(), units::chain(&why));
        let row = row.get_ref();
        let options = row.options.values(text).map_err(refuse)?;
        let label = row.name.get_ref().as_str();
        let built = |label: &str, more: &[OptionValue]| {
            name_of(&with_options(&base, label, more)).map_err(refuse)
        };
        let alone = built(label, &options)?;
        let is_first = before.is_empty();
        before.extend(options.iter().cloned());
        let cumulated = match is_first {
            true => alone.clone(),
            false => built(&format!("{UP_TO}{label}"), &before)?,
        };
        steps.push(TrimStep {
            name: label.to_owned(),
            options: options.iter().map(OptionValue::to_string).collect(),
            costs: row.costs.as_str().to_owned(),
            alone,
            cumulated,
        });
    }
    Ok(TrimSeries { base: name.to_owned(), steps })
}

/// The base with more options; a label of its own begins the new one.
fn with_options(base: &BuildSpec, label: &str, more: &[OptionValue]) -> BuildSpec {
    let label = match &base.label {
        Some(base) => format!("{base}-{label}"),
        None => label.to_owned(),
    };
    let options = [&base.options[..], more].concat();
    BuildSpec { options, label: Some(label), ..base.clone() }
}
