//! A recording, reduced to what a fleet needs of it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use recording::{
    Blamed, Code, Culprit, CulpritKind, NoiseSeries, Recording, source_name,
};
use stats::Unit;

use crate::comparison::run_numbers::RunNumbers;
use crate::fleet::fact::FleetFact;
use crate::metrics::definition;

/// The facts in which recordings of one machine agree.
const MACHINE: [&str; 6] = [
    "kernel.arch",
    "cpus.possible",
    "cpus.packages",
    "cpus.cores",
    "virt.hypervisor",
    "virt.product",
];
/// Facts that count, and so differ with each recording.
const COUNTS: [&str; 4] = [
    "hardware.heat_throttles",
    "hardware.power_limits",
    "hardware.machine_checks",
    "hardware.machine_check_polls",
];

/// The numbers and facts of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetRun {
    pub(crate) kind: String,
    pub(crate) taken: String,
    /// Each metric of the whole node.
    pub(crate) metrics: Vec<(String, f64)>,
    /// The shares of its time that sources took; `None` if events were not traced.
    pub(crate) sources: Option<Sources>,
    pub(crate) facts: Vec<FleetFact>,
    /// The facts of the machine that do not change.
    pub(crate) machine: String,
    pub(crate) doubts: Vec<Code>,
    /// Equal for copies.
    pub(crate) identity: u64,
}

/// The same, with numbers in place of names.
#[derive(Debug)]
pub(crate) struct StoredRun {
    pub(crate) node: String,
    pub(crate) file: String,
    pub(crate) kind: String,
    pub(crate) taken: String,
    pub(crate) metrics: Vec<(u32, f64)>,
    pub(crate) sources: Option<Vec<(u32, f64)>>,
    pub(crate) facts: Vec<u32>,
    pub(crate) machine: String,
    pub(crate) doubts: Vec<Code>,
    pub(crate) identity: u64,
}

/// Shares of time by the kind and the name of their source.
type Sources = Vec<((CulpritKind, String), f64)>;

impl FleetRun {
    /// From a recording. Threads are summed up by program.
    pub fn of_recording(recording: &Recording) -> Self {
        let numbers = RunNumbers::of(recording, None);
        let run = Self::of(recording.body.kind(), &numbers);
        let series = recording.body.noise().filter(|_| run.sources.is_some());
        let sources = series.map(by_program).or(run.sources);
        Self { sources, ..run }
    }

    /// From the numbers of a recording of that kind.
    pub fn of(kind: &str, numbers: &RunNumbers) -> Self {
        let known = |key: &str| numbers.facts.iter().find(|(own, _)| own == key);
        let machine = MACHINE.iter().filter_map(|key| known(key));
        let machine: Vec<String> =
            machine.map(|(key, value)| format!("{key} {value}")).collect();
        let facts =
            numbers.facts.iter().filter(|(key, _)| !COUNTS.contains(&key.as_str()));
        let facts = facts.flat_map(|(key, value)| FleetFact::of(key, value));
        let parameters = numbers.parameters.iter().filter(|(key, _)| key != "kind");
        let parameters = parameters.map(|(key, value)| FleetFact {
            key: format!("measurement.{key}"),
            value: value.clone(),
            is_part: false,
        });
        let mut doubts: Vec<Code> = numbers
            .doubts
            .iter()
            .filter(|one| one.is_grave())
            .map(|one| one.code)
            .collect();
        doubts.dedup();
        Self {
            kind: kind.to_owned(),
            taken: numbers.taken.clone(),
            metrics: of_node(numbers),
            sources: numbers.culprits.as_ref().map(|_| sources(numbers)),
            facts: facts.chain(parameters).collect(),
            machine: machine.join("; "),
            doubts,
            identity: identity(kind, numbers),
        }
    }
}

/// Each metric of the whole node: shares and rates are means of CPUs, lengths those of the worst one.
fn of_node(numbers: &RunNumbers) -> Vec<(String, f64)> {
    let mut all: Vec<(&str, Vec<f64>)> = Vec::new();
    for one in &numbers.metrics {
        match all.iter_mut().find(|(key, _)| *key == one.metric) {
            Some((_, values)) => values.push(one.value),
            None => all.push((&one.metric, vec![one.value])),
        }
    }
    let of = |(key, values): (&str, Vec<f64>)| {
        let unit = definition(key).map_or(Unit::Count, |about| about.unit);
        let value = match unit {
            Unit::Ppm | Unit::Hz => values.iter().sum::<f64>() / values.len() as f64,
            Unit::Ns | Unit::Instructions | Unit::Count => {
                values.into_iter().fold(f64::MIN, f64::max)
            }
        };
        (key.to_owned(), value)
    };
    all.into_iter().map(of).filter(|(_, value)| value.is_finite()).collect()
}

/// The shares by source, whose name has no number of a CPU or a queue.
fn sources(numbers: &RunNumbers) -> Sources {
    let mut all: BTreeMap<(CulpritKind, String), f64> = BTreeMap::new();
    for one in numbers.culprits.iter().flatten() {
        let name = fleet_name(one.kind, &one.name);
        *all.entry((one.kind, name)).or_default() += one.ppm.get();
    }
    all.into_iter().collect()
}

/// The shares of a recording by source, which is the program of a thread that has one.
fn by_program(series: &NoiseSeries) -> Sources {
    let time: f64 = series.cpus.iter().map(|cpu| cpu.elapsed_ns.get() as f64).sum();
    let mut all: BTreeMap<(CulpritKind, String), f64> = BTreeMap::new();
    let mut add = |key, ns: u64| *all.entry(key).or_default() += ns as f64 * 1e6 / time;
    for cpu in &series.cpus {
        for (culprit, ns) in cpu.blamed.iter().flat_map(times) {
            let name = source_name(&culprit.name, culprit.thread.as_ref());
            add((culprit.kind, fleet_name(culprit.kind, name)), ns);
        }
        if let Some(lost) = cpu.lost {
            add((CulpritKind::Unexplained, "unexplained".to_owned()), lost.ns.get());
        }
    }
    all.into_iter().filter(|(_, ppm)| *ppm > 0.0).collect()
}

/// The culprits of a CPU, each with the sum of its shares in nanoseconds.
fn times(blamed: &Blamed) -> impl Iterator<Item = (&Culprit, u64)> {
    let mut sums = vec![0; blamed.culprits.len()];
    for share in &blamed.shares {
        if let Some(sum) = sums.get_mut(share.culprit) {
            *sum += share.ns.get();
        }
    }
    blamed.culprits.iter().zip(sums)
}

/// The name that a source has on all nodes: kernel threads without a CPU, devices without numbers.
fn fleet_name(kind: CulpritKind, name: &str) -> String {
    match kind {
        // `kworker/3`, `ksoftirqd/12`
        CulpritKind::Thread => name.split('/').next().unwrap_or(name).to_owned(),
        CulpritKind::Irq => without_numbers(name),
        CulpritKind::Timer
        | CulpritKind::Ipi
        | CulpritKind::Softirq
        | CulpritKind::Nmi
        | CulpritKind::Quota
        | CulpritKind::Steal
        | CulpritKind::Firmware
        | CulpritKind::Unexplained => name.to_owned(),
    }
}

/// Each number as `N`: `eth0-TxRx-3` and `eth1-TxRx-12` are the same on nodes that number them differently.
fn without_numbers(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        match c.is_ascii_digit() {
            false => text.push(c),
            true if text.ends_with('N') => {}
            true => text.push('N'),
        }
    }
    text
}

/// A number that copies of a recording share: of the same time, with the same values.
fn identity(kind: &str, numbers: &RunNumbers) -> u64 {
    let mut hash = DefaultHasher::new();
    (kind, &numbers.taken).hash(&mut hash);
    for one in &numbers.metrics {
        (&one.metric, one.cpu.map(units::Cpu::get), one.value.to_bits()).hash(&mut hash);
    }
    for one in numbers.culprits.iter().flatten() {
        (&one.name, one.ppm.get().to_bits()).hash(&mut hash);
    }
    for (key, value) in &numbers.facts {
        (key, value.to_string()).hash(&mut hash);
    }
    hash.finish()
}
