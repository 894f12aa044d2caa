//! A set of runs, reduced to what is compared: recordings are large, and are not held in memory.

use std::hash::{DefaultHasher, Hash, Hasher};

use recording::{Doubt, Recording};
use serde::Serialize;
use serde_json::Value;
use units::{Cpu, CpuSet};

use crate::comparison::benchmark_values::BenchmarkValues;
use crate::comparison::blocks::{Level, levels};
use crate::comparison::observation::{CulpritNumber, MetricNumber, Observation};
use crate::comparison::program_run::ProgramRun;
use crate::comparison::run_numbers::RunNumbers;
use crate::comparison::variants::Variants;

/// Runs that are compared as one set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunSet {
    pub(crate) observations: Vec<Observation>,
    /// What identifies each run.
    pub(crate) identities: Vec<RunIdentity>,
    /// The blocks of a single run.
    pub(crate) levels: Vec<Level>,
    /// The values of benchmarks.
    pub(crate) benchmarks: BenchmarkValues,
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

/// What identifies a run: when it was taken, and its numbers. Two runs never have the same, to the nanosecond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunIdentity {
    /// When it was taken: RFC 3339, UTC.
    pub(crate) taken: String,
    numbers: u64,
}

impl RunIdentity {
    fn of(run: &RunNumbers) -> Self {
        let mut hasher = DefaultHasher::new();
        for MetricNumber { metric, cpu, value, .. } in &run.metrics {
            (metric, cpu, value.to_bits()).hash(&mut hasher);
        }
        for CulpritNumber { kind, name, ppm } in run.culprits.iter().flatten() {
            (kind, name, ppm.get().to_bits()).hash(&mut hasher);
        }
        for (key, value) in &run.parameters {
            (key, value.to_string()).hash(&mut hasher);
        }
        Self { taken: run.taken.clone(), numbers: hasher.finish() }
    }
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
        let values = self.benchmarks.of(run);
        self.add_numbers(&RunNumbers::of(run, None));
        self.benchmarks.set(values);
    }

    /// Adds a run of which the numbers were stored.
    pub fn add_numbers(&mut self, run: &RunNumbers) {
        self.levels.clear();
        self.benchmarks.add(run);
        let (metrics, culprits) = (run.metrics.clone(), run.culprits.clone());
        self.observations.push(Observation { metrics, culprits });
        self.identities.push(RunIdentity::of(run));
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

    /// The number of runs that another set has, too, whatever their files are called.
    pub fn runs_in(&self, other: &Self) -> usize {
        let mut others: Vec<&RunIdentity> = other.identities.iter().collect();
        let mut is_there = |own: &&RunIdentity| {
            let at = others.iter().position(|one| one == own);
            at.map(|at| others.swap_remove(at)).is_some()
        };
        self.identities.iter().filter(&mut is_there).count()
    }

    /// The kinds of its recordings; of files of other tools, the tool.
    pub fn kinds(&self) -> Vec<&str> {
        let texts = |key| self.parameters.of(key).iter().filter_map(Value::as_str);
        let of = |kind| match kind {
            "imported" | "benchmarks" => texts("measured_by").collect(),
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

    /// The CPUs that were measured, and the others that are online; empty if they are unknown, or not the same
    /// in all runs.
    pub fn measured_and_other_cpus(&self) -> [CpuSet; 2] {
        let one = |values: &[Value]| match values {
            [Value::String(cpus)] => cpus.parse().unwrap_or_default(),
            _ => CpuSet::default(),
        };
        let measured: CpuSet = one(self.parameters.of("cpus"));
        let others = match measured.is_empty() {
            true => CpuSet::default(),
            false => one(self.facts.of("cpus.online")).without(&measured),
        };
        [measured, others]
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
