//! An experiment: a table of kernels, boot parameters, settings and workloads, every
//! combination of which is a cell. It is written as TOML (`docs/experiments.md`).
//!
//! Its rows are stored as they are written (`table`), and combined again after each change
//! (`plan`): rows that cannot be combined are reported with their place in the file.

use itertools::Itertools;
use toml::Spanned;

use crate::changes;
use crate::error::Error;
use crate::limits::{Limits, rules};
use crate::plan::{self, CellPlan};
use crate::table::entry::KernelName;
use crate::table::sequence::List;
use crate::table::source::{NOWHERE, Source};
use crate::table::{BootRow, SettingRow, Table};

/// A table of cells.
#[derive(Debug, Clone)]
pub struct Experiment {
    source: Source,
    table: Table,
    plans: Vec<CellPlan>,
    limits: Limits,
}

impl Experiment {
    /// Parses an experiment; `file` is its name in messages. The kernels in its limits are checked
    /// by [`Self::with_kernels`].
    ///
    /// # Errors
    /// The text is not TOML, has unknown keys, or is impossible; the message begins with
    /// `file:line:column`.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        let source = Source::new(file, text);
        let mut table: Table = source.read()?;
        if table.boot.is_empty() {
            table.boot.push(Spanned::new(NOWHERE, BootRow::default()));
        }
        if table.setting.is_empty() {
            table.setting.push(Spanned::new(NOWHERE, SettingRow::default()));
        }
        Self::from_table(source, table)
    }

    /// The experiment of a table with boot rows and setting rows.
    pub(crate) fn from_table(source: Source, table: Table) -> Result<Self, Error> {
        let plans = plan::plans(&source, &table)?;
        let limits = rules::read(&source, &table, &plans)?;
        Ok(Self { source, table, plans, limits })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.table.name.get_ref().as_str()
    }

    /// Its description, in one line; may be empty.
    pub fn about(&self) -> &str {
        self.table.about.as_str()
    }

    /// Its TOML text, as it was written.
    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// Its cells, in order of kernel, boot row, setting row, workload and repeat.
    pub fn cells(&self) -> &[CellPlan] {
        &self.plans
    }

    /// The limits of its cells.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The same on other kernels; one that is named twice is run once. If none is named, the
    /// experiment's own are used. Limits may be for kernels of either.
    ///
    /// # Errors
    /// One of the names is none, these are too many cells, or a limit is for a kernel that neither
    /// the experiment nor `kernels` name.
    pub fn with_kernels(mut self, kernels: &[String]) -> Result<Self, Error> {
        let name = |kernel: &String| match kernel.parse::<KernelName>() {
            Ok(name) => Ok(Spanned::new(NOWHERE, name)),
            Err(cause) => Err(Error::Kernel(cause)),
        };
        let named: Vec<_> = kernels.iter().unique().map(name).try_collect()?;
        rules::refuse_kernels(&self.source, &self.table, kernels)?;
        if let Some(named) = List::new(named) {
            self.table.kernels = named;
        }
        self.plans = plan::plans(&self.source, &self.table)?;
        Ok(self)
    }

    /// The same with changes, each written `key=value`; they are checked together. Limits stay as
    /// they are.
    ///
    /// # Errors
    /// A key is unknown, or its value is invalid.
    pub fn with_changes(mut self, changes: &[String]) -> Result<Self, Error> {
        for change in changes {
            changes::change(&mut self.table, change)
                .map_err(|cause| Error::Change(change.clone(), cause))?;
        }
        let plans = plan::plans(&self.source, &self.table);
        self.plans = plans.map_err(|error| match changes {
            [] => error,
            _ => Error::Changed(changes.join(" "), Box::new(error)),
        })?;
        Ok(self)
    }
}
