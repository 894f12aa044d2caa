//! Counts of `perf stat`, as `-x SEPARATOR` and `-j` write them: `print_counter_aggrdata` in
//! `tools/perf/util/stat-display.c`, described in perf-stat(1), "CSV FORMAT" and "JSON FORMAT".
//!
//! An event that a file has several times (`--append`, `-I`) has several values. With `-r`, perf writes means of
//! its runs only. Events that were not counted are left out.

use recording::{BetterValues, Code, Doubt, ValueStatistics};
use serde::Deserialize;

use crate::benchmarks::unit::{Measured, time_factor};
use crate::benchmarks::{BenchmarkFile, shown, whole_lines};
use crate::import::{Failure, corrupt, of_json};

/// Separators that are recognised.
const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];
/// What an event that was not counted has in place of a number.
const MISSING: [&str; 2] = ["<not counted>", "<not supported>"];
/// The columns before the number: a time, a part of the machine, and its CPUs.
const PREFIX_MAX: usize = 3;
/// Parts of names of events that are costs.
const COSTS: [&str; 9] = [
    "cycles",
    "instructions",
    "misses",
    "faults",
    "switches",
    "migrations",
    "clock",
    "stalled",
    "time",
];
/// Counts that ran for a smaller part of the time, in percent, are estimates.
const WHOLE: f64 = 99.9;

/// A count of an event.
struct Count {
    event: String,
    unit: String,
    /// The part of the machine.
    place: String,
    /// `None` if it was not counted.
    value: Option<f64>,
    /// The standard error of the mean of `-r`, in percent.
    error: Option<f64>,
    /// The part of the time in which it was counted, in percent.
    running: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Json {
    counter_value: String,
    #[serde(default)]
    unit: String,
    event: String,
    #[serde(default)]
    variance: Option<f64>,
    #[serde(default)]
    pcnt_running: Option<f64>,
    #[serde(default)]
    cpu: Option<String>,
    #[serde(default)]
    core: Option<String>,
    #[serde(default)]
    die: Option<String>,
    #[serde(default)]
    socket: Option<String>,
    #[serde(default)]
    node: Option<String>,
    #[serde(default)]
    thread: Option<String>,
}

/// Whether a line is a count, and its separator.
pub(crate) fn separator(line: &str) -> Option<char> {
    SEPARATORS.into_iter().find(|separator| {
        let fields: Vec<&str> = line.split(*separator).collect();
        fields.len() >= 5 && place_of_number(&fields).is_some()
    })
}

/// The column of the number: it is followed by a unit, which may be empty, and an event.
fn place_of_number(fields: &[&str]) -> Option<usize> {
    let is_number = |text: &str| text.trim().parse::<f64>().is_ok();
    let is_event = |text: &str| {
        text.chars().next().is_some_and(|first| first.is_alphabetic() || first == '/')
            && !text.contains(' ')
    };
    (0..=PREFIX_MAX).find(|&at| {
        let [Some(value), Some(unit), Some(event)] =
            [at, at + 1, at + 2].map(|at| fields.get(at))
        else {
            return false;
        };
        (is_number(value) || MISSING.contains(&value.trim()))
            && !is_number(unit)
            && !MISSING.contains(&unit.trim())
            && is_event(event)
    })
}

/// Whether a line has a result: not a comment, nor empty.
fn has_result(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

pub(crate) fn parse_csv(text: &str) -> Result<BenchmarkFile, Failure> {
    let mut counts = Vec::new();
    let (lines, is_cut) = whole_lines(text);
    for (number, line) in lines.filter(|(_, line)| has_result(line)) {
        let refuse = || {
            let line = shown(line);
            corrupt(format!("line {number} is not a count of perf stat: '{line}'"))
        };
        let separator = separator(line).ok_or_else(refuse)?;
        let fields: Vec<&str> = line.split(separator).collect();
        let at = place_of_number(&fields).ok_or_else(refuse)?;
        counts.push(Count::of_fields(&fields, at));
    }
    file(counts, is_cut)
}

pub(crate) fn parse_json(text: &str) -> Result<BenchmarkFile, Failure> {
    let mut counts = Vec::new();
    let (lines, is_cut) = whole_lines(text);
    for (_, line) in lines.filter(|(_, line)| has_result(line)) {
        let json: Json = serde_json::from_str(line).map_err(of_json)?;
        counts.push(Count::of_json(json)?);
    }
    file(counts, is_cut)
}

impl Count {
    fn of_fields(fields: &[&str], at: usize) -> Self {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let field = |place: usize| fields.get(place).copied().unwrap_or_default().trim();
        let prefix = fields.iter().take(at).filter(|text| number(text).is_none());
        let places: Vec<&str> = prefix.map(|text| text.trim()).collect();
        let error = field(at + 3).strip_suffix('%').and_then(number);
        let running = at + if error.is_some() { 5 } else { 4 };
        Self {
            event: field(at + 2).to_owned(),
            unit: field(at + 1).to_owned(),
            place: places.join(" "),
            value: number(field(at)),
            error,
            running: number(field(running)),
        }
    }

    fn of_json(json: Json) -> Result<Self, Failure> {
        let text = json.counter_value.trim();
        let is_missing = MISSING.contains(&text);
        let value = text.parse().ok().filter(|_| !is_missing);
        if value.is_none() && !is_missing {
            let event = shown(&json.event);
            return Err(corrupt(format!("'{}' of {event} is no number", shown(text))));
        }
        let cpu = json.cpu.map(|cpu| format!("CPU{cpu}"));
        let places = [json.socket, json.die, json.core, json.node, json.thread, cpu];
        Ok(Self {
            event: json.event,
            unit: json.unit,
            place: places.into_iter().flatten().collect::<Vec<_>>().join(" "),
            value,
            error: json.variance,
            running: json.pcnt_running,
        })
    }

    fn name(&self) -> String {
        format!("{} {}", self.event, self.place).trim_end().to_owned()
    }

    /// perf's counts have no unit, and clocks are times.
    fn measured(&self) -> Measured {
        if time_factor(&self.unit).is_some() {
            return Measured::named(&self.unit);
        }
        let is_cost = COSTS.iter().any(|cost| self.event.contains(cost));
        let better = if is_cost { BetterValues::Less } else { BetterValues::Unknown };
        let unit = if self.unit.is_empty() { "count" } else { self.unit.as_str() };
        Measured::other(unit, better)
    }
}

fn file(counts: Vec<Count>, is_cut: bool) -> Result<BenchmarkFile, Failure> {
    let mut found = BenchmarkFile::by("perf stat");
    let (mut missing, mut largest_error) = (Vec::new(), None);
    let mut least_running = WHOLE;
    for one in &counts {
        let name = one.name();
        let Some(value) = one.value else {
            missing.push(name);
            continue;
        };
        let measured = one.measured();
        match one.error {
            None => found.add(&name, &measured, &[value])?,
            Some(error) => {
                let mean = ValueStatistics { mean: Some(value), ..Default::default() };
                found.set_statistics(&name, &measured, mean)?;
                largest_error = Some(error.max(largest_error.unwrap_or(0.0)));
            }
        }
        least_running = one.running.unwrap_or(WHOLE).min(least_running);
    }
    if let Some(error) = largest_error {
        found.doubt(format!(
            "perf stat -r wrote means of its runs only (standard errors up to {error} %); hint: a \
             file for each run, in one folder"
        ));
    }
    if least_running < WHOLE {
        found.doubt(format!(
            "events shared counters, and are estimates: one was counted {least_running} % of the \
             time; hint: fewer events"
        ));
    }
    missing.sort_unstable();
    missing.dedup();
    if !missing.is_empty() {
        let names: Vec<String> = missing.iter().take(8).map(|name| shown(name)).collect();
        let more = if missing.len() > 8 { ", ..." } else { "" };
        found.doubt(format!("not counted: {}{more}", names.join(", ")));
    }
    if is_cut {
        let why = "the last line is cut off, and was left out";
        found.doubts.push(Doubt::new(Code::Interrupted, why));
    }
    Ok(found)
}
