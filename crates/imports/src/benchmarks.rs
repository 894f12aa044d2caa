//! What a file of benchmarks contains, as a recording: named series of values, or the statistics of the tool.
//!
//! Times become nanoseconds; values in other units stay what they are. Values that no run can have (not a
//! number, infinite, a negative time) are refused, not left out: they are a mistake in what wrote the file.

pub(crate) mod criterion;
pub(crate) mod divan;
pub(crate) mod go_testing;
pub(crate) mod google_benchmark;
pub(crate) mod hyperfine;
pub(crate) mod jmh;
pub(crate) mod numbers;
pub(crate) mod perf_stat;
pub(crate) mod pytest_benchmark;
pub(crate) mod table;
pub(crate) mod unit;

use std::collections::{BTreeMap, HashMap};

use facts::Facts;
use jiff::Timestamp;
use recording::{
    Benchmark, BenchmarksSeries, BenchmarksSpec, Body, Code, Doubt, Moments, Recording,
    ValueStatistics, ValueUnit,
};
use serde_json::Value;
use units::printable;

use crate::benchmarks::unit::Measured;
use crate::import::{Failure, corrupt, foreign};

/// The most quantities of a file: comparisons of more take minutes.
const BENCHMARKS_MAX: usize = 10_000;
/// The most values of a file, 32 MB of memory.
pub(crate) const VALUES_MAX: usize = 4_000_000;
/// So many characters of a name are in an error.
const NAME_SHOWN: usize = 80;

/// The contents of a file.
#[derive(Debug, Default)]
pub(crate) struct BenchmarkFile {
    /// The tool and its version.
    pub(crate) tool: String,
    /// When it was measured, if the file says so.
    pub(crate) taken: Option<Timestamp>,
    pub(crate) command: Option<String>,
    pub(crate) environment: BTreeMap<String, String>,
    /// Known facts: the key, as `kernel.release`, and the value.
    pub(crate) facts: Vec<(&'static str, Value)>,
    pub(crate) doubts: Vec<Doubt>,
    benchmarks: Vec<Benchmark>,
    places: HashMap<(String, ValueUnit), usize>,
    /// The number of values so far.
    values: usize,
    /// How often each name was requested.
    names: HashMap<String, u32>,
}

impl BenchmarkFile {
    /// A file of a tool, of which nothing else is known.
    pub(crate) fn by(tool: impl Into<String>) -> Self {
        Self { tool: tool.into(), ..Self::default() }
    }

    /// Adds a reason not to trust a number.
    pub(crate) fn doubt(&mut self, text: impl Into<String>) {
        self.doubts.push(Doubt::new(Code::Imprecise, text));
    }

    /// Adds what the file says about the runtime, the build or the machine, if it does.
    pub(crate) fn environment(&mut self, name: &str, value: Option<impl ToString>) {
        let value = value.map(|value| value.to_string()).filter(|it| !it.is_empty());
        self.environment.extend(value.map(|value| (name.to_owned(), value)));
    }

    /// Adds values to the benchmark of that name.
    pub(crate) fn add(
        &mut self,
        name: &str,
        measured: &Measured,
        values: &[f64],
    ) -> Result<(), Failure> {
        let scaled = values.iter().map(|value| measured.scaled(*value, name));
        let scaled: Vec<f64> = scaled.collect::<Result<_, _>>()?;
        self.values += scaled.len();
        if self.values > VALUES_MAX {
            return Err(too_many_values());
        }
        self.benchmark(name, measured)?.values.extend(scaled);
        Ok(())
    }

    /// Sets what the tool computed of the benchmark of that name.
    pub(crate) fn set_statistics(
        &mut self,
        name: &str,
        measured: &Measured,
        of: ValueStatistics,
    ) -> Result<(), Failure> {
        let scaled =
            |value: Option<f64>| value.map(|one| measured.scaled(one, name)).transpose();
        let statistics = ValueStatistics {
            count: of.count,
            min: scaled(of.min)?,
            median: scaled(of.median)?,
            mean: scaled(of.mean)?,
            stddev: scaled(of.stddev)?,
            max: scaled(of.max)?,
        };
        self.benchmark(name, measured)?.statistics = statistics;
        Ok(())
    }

    /// The benchmark of that name, in that unit; a new one if there is none.
    fn benchmark(
        &mut self,
        name: &str,
        measured: &Measured,
    ) -> Result<&mut Benchmark, Failure> {
        let key = (name.to_owned(), measured.unit.clone());
        let next = self.benchmarks.len();
        let at = *self.places.entry(key).or_insert(next);
        if at == next {
            if next == BENCHMARKS_MAX {
                return Err(corrupt(format!(
                    "more than {BENCHMARKS_MAX} quantities, the most that are read; hint: \
                     select some of the benchmarks"
                )));
            }
            self.benchmarks.push(Benchmark {
                name: name.to_owned(),
                unit: measured.unit.clone(),
                better: measured.better,
                values: Vec::new(),
                statistics: ValueStatistics::default(),
            });
        }
        self.benchmarks.get_mut(at).ok_or_else(|| corrupt("a benchmark is missing"))
    }

    /// A name that no benchmark of that unit has: the second of a name is `NAME (2)`.
    pub(crate) fn new_name(&mut self, name: &str, measured: &Measured) -> String {
        let is_free = |name: &String| {
            !self.places.contains_key(&(name.clone(), measured.unit.clone()))
        };
        if is_free(&name.to_owned()) {
            return name.to_owned();
        }
        // From the last number on: a file may have thousands of one name.
        let last = self.names.get(name).copied().unwrap_or(1);
        let mut numbers = (last..).map(|number| (number, format!("{name} ({number})")));
        let found = numbers.find(|(number, text)| *number > 1 && is_free(text));
        let (number, text) = found.unwrap_or_else(|| (last, name.to_owned()));
        self.names.insert(name.to_owned(), number);
        text
    }

    /// Whether there is no result.
    pub(crate) fn is_empty(&self) -> bool {
        self.benchmarks.is_empty()
    }

    /// Adds the benchmarks of another file of the same tool, which has others.
    pub(crate) fn merge(&mut self, other: Self) -> Result<(), Failure> {
        for one in other.benchmarks {
            let measured = Measured::of(&one);
            let name = self.new_name(&one.name, &measured);
            let own = self.benchmark(&name, &measured)?;
            *own = Benchmark { name, ..one };
        }
        self.doubts.extend(other.doubts);
        Ok(())
    }

    /// The recording. A file without the time of the measurement was written at its end.
    pub(crate) fn recording(
        self,
        written: Option<Timestamp>,
    ) -> Result<Recording, Failure> {
        if self.benchmarks.is_empty() {
            return Err(foreign("it has no result of a benchmark"));
        }
        let taken = self.taken.or(written);
        let moment = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let spec = BenchmarksSpec {
            measured_by: self.tool.clone(),
            environment: self.environment,
        };
        let series =
            BenchmarksSeries { command: self.command, benchmarks: self.benchmarks };
        Ok(Recording {
            hardware: None,
            taken: taken.map_or_else(Recording::moment, moment),
            tool: self.tool,
            facts: Facts::of_known(self.facts),
            body: Body::Benchmarks { spec, series },
            doubts: self.doubts,
            moments: Moments::default(),
            repeat: None,
        })
    }
}

/// A file with more values than are read.
pub(crate) fn too_many_values() -> Failure {
    corrupt(format!(
        "more than {VALUES_MAX} values, the most that are read; hint: use a part of them"
    ))
}

/// A name in an error: its beginning, without escape sequences.
pub(crate) fn shown(name: &str) -> String {
    let short: String = name.chars().take(NAME_SHOWN).collect();
    let rest = if short.len() < name.len() { "..." } else { "" };
    format!("{}{rest}", printable(&short))
}

/// The lines of a text with their numbers from 1, without the last one if it does not end: then it may be cut in
/// a number.
pub(crate) fn whole_lines(text: &str) -> (impl Iterator<Item = (usize, &str)>, bool) {
    let end = text.rfind('\n').map_or(0, |at| at + 1);
    let is_cut = !text[end..].trim().is_empty();
    (text[..end].lines().enumerate().map(|(at, line)| (at + 1, line)), is_cut)
}
