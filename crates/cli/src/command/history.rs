//! `history`: the numbers of this machine over time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Subcommand;
use history::{Filter, History, RunNumbers, Series};
use report::{FactsChange, HistoryEntry, HistoryReport, MetricHistory};
use report::{history_csv, history_document, history_json, history_pictures};
use serde_json::Value;
use stats::{Unit, stretches};
use units::Cause;

use crate::args::{Output, ReportFiles};
use crate::inputs::load;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print, print_content, print_json, say};
use crate::reporting::show;
use crate::saved;

/// The metrics that are shown if none is named, of measurements that have them.
const METRICS: [&str; 2] = ["noise_ppm", "gap_ns_max"];
/// Of other measurements, so many; of benchmarks, each of which has one or a few, more.
const METRICS_MAX: usize = 4;
const BENCHMARKS_MAX: usize = 16;
const BENCHMARKS: &str = "benchmarks";

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HistoryArgs {
    #[command(subcommand)]
    pub(crate) command: Option<HistoryCommand>,
    /// Metric to show. Can be repeated [default: noise_ppm and gap_ns_max, or the first ones].
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Vec<String>,
    /// Kind of measurement: check, noise, run, benchmarks.
    #[arg(long, value_name = "KIND", default_value = "check")]
    pub(crate) kind: String,
    /// Leave out what was taken before that date: 2026-11-26, or a time as in 2026-11-26T06:00:00Z.
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub(crate) since: Option<String>,
    /// Name of the machine [default: this one].
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    /// Print comma-separated values: id, taken, metric, value.
    #[arg(long, conflicts_with = "json")]
    pub(crate) csv: bool,
    #[command(flatten)]
    pub(crate) written: ReportFiles,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HistoryCommand {
    /// Append recordings, and files of other tools, such as results of benchmarks.
    Add {
        /// Recordings, files of other tools, or folders of Criterion. One that the history has already is not
        /// appended again.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// Name of the machine on which they were measured [default: this one].
        #[arg(long, value_name = "NAME")]
        machine: Option<String>,
    },
    /// Delete old entries.
    Prune {
        /// Delete what was taken before that date: 2026-01-01.
        #[arg(long, value_name = "DATE", value_parser = date)]
        before: String,
    },
}

pub(crate) fn run(args: &HistoryArgs, output: Output) -> Result<Outcome, Failure> {
    let files = args.written.files()?;
    let output = output.beside(files.clone())?;
    if let Some(HistoryCommand::Add { files, machine }) = &args.command {
        return add(files, machine.as_deref(), output);
    }
    let mut history = saved::open()?;
    if let Some(HistoryCommand::Prune { before }) = &args.command {
        return prune(&mut history, before, output);
    }
    let report = report(args, &history)?;
    if args.csv {
        print_content(&history_csv(&report))?;
        return Ok(Outcome::Done);
    }
    show(
        output,
        &files,
        || history_json(&report),
        || history_document(&report),
        |medium| history_pictures(&report, medium),
    )?;
    Ok(Outcome::Done)
}

/// Appends files; all are read before the first is.
fn add(
    files: &[PathBuf],
    machine: Option<&str>,
    output: Output,
) -> Result<Outcome, Failure> {
    let machine = machine.map_or_else(saved::machine, str::to_owned);
    let read = |file: &PathBuf| {
        let recording = load(file)?;
        Ok((recording.body.kind(), RunNumbers::of(&recording, None)))
    };
    let runs = files.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
    let mut history = saved::create()?;
    let (mut added, mut known) = (Vec::new(), Vec::new());
    for ((kind, run), file) in runs.iter().zip(files) {
        let file = file.display();
        let remark = match history.number_of(&machine, kind, run)? {
            Some(id) => {
                known.push(id);
                format!("{file} is entry {id} of the history already")
            }
            None => {
                let id = history.append(&machine, kind, run)?;
                added.push(id);
                format!("{file} was saved as entry {id} of the history")
            }
        };
        if !output.quiet && !output.json {
            say(remark);
        }
    }
    if output.json {
        let object = serde_json::json!({"format": 1, "kind": "history_add",
            "machine": machine, "added": added, "known": known});
        print_json(&object.to_string())?;
    }
    Ok(Outcome::Done)
}

fn prune(
    history: &mut History,
    before: &str,
    output: Output,
) -> Result<Outcome, Failure> {
    let deleted = history.prune(before)?;
    match output.json {
        true => print_json(
            &serde_json::json!({"format": 1, "kind": "history_prune",
            "deleted": deleted})
            .to_string(),
        )?,
        false => drop(print(&format!("Deleted {deleted} entries.\n"))?),
    }
    Ok(Outcome::Done)
}

fn report(args: &HistoryArgs, history: &History) -> Result<HistoryReport, Failure> {
    let machine = args.machine.clone().unwrap_or_else(saved::machine);
    let filter = Filter {
        machine: machine.clone(),
        kind: args.kind.clone(),
        since: args.since.clone(),
    };
    let known = history.metrics(&filter)?;
    if known.is_empty() {
        return Err(no_entries(history, &filter)?);
    }
    let mut metrics = Vec::new();
    let mut longest = Series::default();
    let most = if args.kind == BENCHMARKS { BENCHMARKS_MAX } else { METRICS_MAX };
    for metric in chosen(&args.metric, &known, most)? {
        let series = history.series(&filter, &metric)?;
        let stretches = stretches(&series.values);
        let rows = series.ids.iter().zip(&series.taken).zip(&series.values);
        let entry = |((&id, taken), &value): ((&i64, &String), &f64)| {
            let taken = taken.clone();
            HistoryEntry { id, taken, value }
        };
        let entries = rows.map(entry).collect();
        if series.ids.len() > longest.ids.len() {
            longest = series;
        }
        let unit = RunNumbers::unit(&metric).unwrap_or(Unit::Count);
        metrics.push(MetricHistory { metric, unit, entries, stretches });
    }
    let changes = changes(history, &longest)?;
    Ok(HistoryReport { machine, kind: args.kind.clone(), metrics, changes })
}

/// The metrics that were named, or the default ones.
fn chosen(
    named: &[String],
    known: &[String],
    most: usize,
) -> Result<Vec<String>, Failure> {
    if let Some(unknown) = named.iter().find(|metric| !known.contains(metric)) {
        let text = format!(
            "--metric {unknown}: no entry has it; the metrics are: {}",
            known.join(", ")
        );
        return Err(Failure::usage(text));
    }
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let usual = METRICS.iter().filter(|metric| known.iter().any(|one| one == *metric));
    let usual: Vec<String> = usual.map(|metric| (*metric).to_owned()).collect();
    Ok(match usual.is_empty() {
        true => known.iter().take(most).cloned().collect(),
        false => usual,
    })
}

fn no_entries(history: &History, filter: &Filter) -> Result<Failure, Failure> {
    let kinds = history.kinds(&filter.machine)?;
    let kinds: Vec<String> =
        kinds.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
    let Filter { machine, kind, .. } = filter;
    Ok(Failure::usage(match kinds.is_empty() {
        true => format!("the history has no entry of the machine {machine}"),
        false => {
            let kinds = kinds.join(", ");
            format!("the history has no entry of {kind}; --kind: {kinds}")
        }
    }))
}

/// The facts that changed from one entry to the next.
fn changes(history: &History, series: &Series) -> Result<Vec<FactsChange>, Failure> {
    let facts = |id| -> Result<BTreeMap<String, Value>, Failure> {
        Ok(history.facts(id)?.into_iter().collect())
    };
    let mut changes = Vec::new();
    let mut last = None;
    for (at, pair) in series.facts.windows(2).enumerate() {
        if pair[0] == pair[1] {
            continue;
        }
        // Facts stay the same from one change to the next.
        let old = last.take().map_or_else(|| facts(pair[0]), Ok)?;
        let new = facts(pair[1])?;
        let keys =
            old.keys().chain(new.keys()).filter(|key| old.get(*key) != new.get(*key));
        let changed =
            keys.map(|key| (key.clone(), [old.get(key).cloned(), new.get(key).cloned()]));
        let (id, taken) = (series.ids[at + 1], series.taken[at + 1].clone());
        changes.push(FactsChange { id, taken, facts: changed.collect() });
        last = Some(new);
    }
    Ok(changes)
}

/// A date or a time, as text that can be compared with the times of entries.
fn date(text: &str) -> Result<String, Cause> {
    let (date, time) = text.split_once('T').unwrap_or((text, "00:00:00Z"));
    let is_date = numbers(date, '-', [4, 2, 2]).is_some_and(|[_, month, day]| {
        (1..=12).contains(&month) && (1..=31).contains(&day)
    });
    let time = time.strip_suffix('Z').and_then(|time| numbers(time, ':', [2, 2, 2]));
    let is_time = time
        .is_some_and(|[hour, minute, second]| hour < 24 && minute < 60 && second < 60);
    match is_date && is_time {
        true => Ok(text.to_owned()),
        false => {
            Err("expected a date (2026-11-26), or a time as 2026-11-26T06:00:00Z".into())
        }
    }
}

/// Three numbers with so many digits.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[u32; 3]> {
    let mut parts = text.split(separator);
    let numbers = digits.map(|digits| {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
        part.parse().ok().filter(|_| is_number)
    });
    let [Some(first), Some(second), Some(third)] = numbers else { return None };
    parts.next().is_none().then_some([first, second, third])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that dates and times are complete and possible.
    #[test]
    fn dates() {
        for possible in ["2026-11-26", "2026-02-30", "2026-11-26T06:00:59Z"] {
            assert_eq!(date(possible).unwrap(), possible);
        }
        for wrong in [
            "",
            "2026-31-01",
            "2026-00-01",
            "2026-11-00",
            "2026-11-32",
            "2026-11",
            "2026-11-26T",
            "2026-11-26T06:00",
            "2026-11-26T24:00:00Z",
            "2026-11-26T06:60:00Z",
            "2026-11-26-01",
            "+026-11-26",
            "2026-1é-26",
        ] {
            assert!(date(wrong).is_err(), "{wrong}");
        }
    }
}
