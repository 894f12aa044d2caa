//! An experiment: a table of kernels, boot parameters, settings and workloads, every
//! combination of which is a cell. It is written as TOML (`docs/experiments.md`).
//!
//! Its rows are stored as they are written (`table`), and combined again after each change
//! (`plan`): rows that cannot be combined are reported with their place in the file.

use itertools::Itertools;
use summary::TrimSeries;
use toml::Spanned;

use crate::builtin::{self, BUILTINS};
use crate::changes;
use crate::error::{ChangeError, Error};
use crate::included::{self, Included};
use crate::limits::{Limits, rules};
use crate::plan::CellPlan;
use crate::table::entry::KernelName;
use crate::table::sequence::List;
use crate::table::source::{NOWHERE, Source};
use crate::table::step;
use crate::table::{BootRow, Table};

/// A table of cells.
#[derive(Debug, Clone)]
pub struct Experiment {
    source: Source,
    table: Table,
    included: Vec<Included>,
    series: Vec<TrimSeries>,
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
        let table: Table = source.read()?;
        Self::from_table(source, table.with_first_rows())
    }

    /// The built-in experiment of that name.
    ///
    /// # Errors
    /// There is none; the message names the existing ones.
    pub fn builtin(name: &str) -> Result<Self, Error> {
        Self::parse(builtin::text(name)?, &format!("the built-in {name}"))
    }

    /// All built-in experiments.
    ///
    /// # Errors
    /// None, as tests parse all of them.
    pub fn builtins() -> Result<Vec<Self>, Error> {
        BUILTINS.iter().map(|(name, _)| Self::builtin(name)).collect()
    }

    /// The experiment of a table with boot rows and setting rows.
    pub(crate) fn from_table(source: Source, table: Table) -> Result<Self, Error> {
        let is_written = |row: &&Spanned<BootRow>| row.span() != NOWHERE;
        if let (true, false, Some(boot)) = (
            table.workload.is_empty(),
            table.include.is_empty(),
            table.boot.iter().find(is_written),
        ) {
            return Err(source.refuse(boot.span(), "no workload runs with this boot row"));
        }
        let rows = table.include.iter().map(Spanned::get_ref);
        let included: Vec<Included> =
            rows.map(|row| Included::read(&source, row)).try_collect()?;
        let (series, plans, limits) = (Vec::new(), Vec::new(), Limits::default());
        let planned =
            Self { source, table, included, series, plans, limits }.planned()?;
        let limits = rules::read(&planned.source, &planned.table, &planned.plans)?;
        Ok(Self { limits, ..planned })
    }

    /// The same with the plans of its rows.
    fn planned(self) -> Result<Self, Error> {
        let Self { source, table, included, .. } = &self;
        let series = step::series(source, table)?;
        let kernels = step::kernels(table, &series);
        let plans = included::plans(source, table, included, &kernels)?;
        Ok(Self { series, plans, ..self })
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

    /// The series of kernels that its steps make, one for each of its kernels; none without steps.
    pub fn series(&self) -> &[TrimSeries] {
        &self.series
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
        self.planned()
    }

    /// The same with changes, each written `key=value`; they are checked together. Limits stay as
    /// they are.
    ///
    /// # Errors
    /// A key is unknown, or its value is invalid.
    pub fn with_changes(mut self, changes: &[String]) -> Result<Self, Error> {
        for change in changes {
            self.change(change).map_err(|cause| Error::Change(change.clone(), cause))?;
        }
        self.planned().map_err(|error| match changes {
            [] => error,
            _ => Error::Changed(changes.join(" "), Box::new(error)),
        })
    }

    /// Makes a change to its own rows, and to those of included experiments, as far as they have
    /// what is changed. Experiments without a selected row are left out.
    fn change(&mut self, change: &str) -> Result<(), ChangeError> {
        let Self { table, included, .. } = self;
        if included.is_empty() || changes::is_of_steps(change) {
            return changes::change(table, change);
        }
        let mut ends = Vec::new();
        if !table.workload.is_empty() {
            let end = changes::change(table, change);
            if matches!(end, Err(ChangeError::NoRow(..))) {
                table.workload.clear();
            }
            ends.push(end);
        }
        included.retain_mut(|one| {
            let end = changes::change(&mut one.table, change);
            let is_selected = !matches!(end, Err(ChangeError::NoRow(..)));
            ends.push(end);
            is_selected
        });
        match ends.iter().any(Result::is_ok) {
            true => Ok(()),
            false => ends.into_iter().next().unwrap_or(Ok(())),
        }
    }
}
