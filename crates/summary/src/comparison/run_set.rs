//! A set of runs, reduced to what is compared: recordings are large, and are not held in memory.

use recording::{Doubt, Recording};
use serde::Serialize;
use serde_json::Value;
use units::Cpu;

use crate::comparison::blocks::{Level, levels};
use crate::comparison::observation::Observation;
use crate::comparison::program_run::ProgramRun;
use crate::comparison::run_numbers::RunNumbers;
use crate::comparison::variants::Variants;

/// Runs that are compared as one set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSet {
    pub(crate) observations: Vec<Observation>,
    /// The blocks of a single run.
    pub(crate) levels: Vec<Level>,
    /// The facts of the runs, those of this process and its tracing excepted.
    pub facts: Variants,
    /// The parameters of the runs.
    pub parameters: Variants,
    /// When the first and the last run were taken: RFC 3339, UTC.
    pub taken: Option<[String; 2]>,
    /// The doubts of the runs.
    pub doubts: Vec<RunsDoubt>,
    /// The times of each run of a program; of other measurements none.
    pub programs: Vec<ProgramRun>,
}

/// A doubt, and the number of runs that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunsDoubt {
    /// The doubt.
    #[serde(flatten)]
    pub doubt: Doubt,
    /// The number of runs.
    pub runs: usize,
}

impl RunSet {
    /// A set of one run, which is divided into blocks.
    pub fn single(run: &Recording) -> Self {
        let mut set = Self::default();
        set.add(run);
        Self { levels: levels(run), ..set }
    }

    /// Adds a run.
    pub fn add(&mut self, run: &Recording) {
        self.programs.extend(ProgramRun::of(run));
        self.add_numbers(&RunNumbers::of(run, None));
    }

    /// Adds a run of which the numbers were stored.
    pub fn add_numbers(&mut self, run: &RunNumbers) {
        self.levels.clear();
        let (metrics, culprits) = (run.metrics.clone(), run.culprits.clone());
        self.observations.push(Observation { metrics, culprits });
        self.facts.add(&run.facts);
        self.parameters.add(&run.parameters);
        self.add_taken(&run.taken, &run.doubts);
    }

    fn add_taken(&mut self, taken: &str, doubts: &[Doubt]) {
        let [first, last] =
            self.taken.get_or_insert_with(|| [taken.to_owned(), taken.to_owned()]);
        if taken < first.as_str() {
            taken.clone_into(first);
        }
        if taken > last.as_str() {
            taken.clone_into(last);
        }
        for doubt in doubts {
            match self.doubts.iter_mut().find(|one| one.doubt == *doubt) {
                Some(known) => known.runs += 1,
                None => self.doubts.push(RunsDoubt { doubt: doubt.clone(), runs: 1 }),
            }
        }
    }

    /// The number of runs.
    pub fn runs(&self) -> usize {
        self.observations.len()
    }

    /// The kinds of its recordings; of files of other tools, the tool.
    pub fn kinds(&self) -> Vec<&str> {
        let texts = |key| self.parameters.of(key).iter().filter_map(Value::as_str);
        let of = |kind| match kind {
            "imported" => texts("measured_by").collect(),
            _ => vec![kind],
        };
        texts("kind").flat_map(of).collect()
    }

    /// The CPUs of its metrics, in order.
    pub(crate) fn cpus(&self) -> Vec<Cpu> {
        let metrics = self.observations.iter().flat_map(|one| &one.metrics);
        let mut cpus: Vec<Cpu> = metrics.filter_map(|metric| metric.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// Its CPUs that another set does not have.
    pub(crate) fn cpus_without(&self, other: &Self) -> Vec<Cpu> {
        let others = other.cpus();
        let cpus = self.cpus().into_iter();
        cpus.filter(|cpu| !others.contains(cpu)).collect()
    }

    /// Whether single events were traced in each run.
    pub fn is_traced(&self) -> bool {
        self.observations.iter().all(|one| one.culprits.is_some())
    }
}
