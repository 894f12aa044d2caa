//! `repeat`: the spread of each metric in each set of runs. Runs of programs are listed as in the export of
//! hyperfine (`--export-json`, version 1.20) in JSON, too, so that scripts for that can read it.

use std::collections::BTreeMap;

use recording::Doubt;
use serde::Serialize;
use summary::{MainMetric, ProgramRun, RunSet, RunSpread, RunsDoubt};
use units::Nanos;

use crate::comparisons::doubts::{doubts, with_pattern};
use crate::comparisons::main_metric::{Saved, cause, detectable};
use crate::comparisons::quantities::{self, CULPRITS};
use crate::comparisons::{letter, runs, taken};
use crate::document::Document;
use crate::document::list::{Item, List};
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::json::object;
use crate::{metric_names, number};

/// The number of listed metrics of a set.
const METRICS: usize = 24;
const LEGEND: &str = "The true median is between \"from\" and \"to\" (95 %, from 6 runs on). \"spread\": \
    half the difference of the quartiles, in percent of the median.";
const BOUNDS: &str = "The bounds of a median are two of the values (order statistics), and the true \
    median is between them with a probability of at least 95 %.";

/// Repeated runs of a measurement, in one set for each variant of the settings.
#[derive(Debug, Clone, Copy)]
pub struct RepeatedRuns<'a> {
    /// The command line of the measurement.
    pub measurement: &'a str,
    /// The names of the variants.
    pub variants: &'a [String],
    /// The runs of each variant.
    pub sets: &'a [RunSet],
    /// Their folders; empty if the recordings are not saved.
    pub folders: &'a [String],
    /// The files of the runs of each variant; empty if they are not saved.
    pub files: &'a [Vec<String>],
    /// The number of recordings that each folder had before.
    pub known: &'a [u32],
    /// The seed of the order of variants.
    pub seed: u32,
    /// Reasons not to trust all of them.
    pub doubts: &'a [Doubt],
}

/// The sets.
pub fn repeated_document(repeated: &RepeatedRuns<'_>) -> Document {
    let sets = repeated.sets.iter().enumerate();
    Document::default()
        .add_all(sets.map(|(at, set)| section(repeated, at, set)))
        .add(main_metric(repeated))
        .add(to_compare(repeated.folders))
        .add_full(method(repeated))
        .reasons(doubts(repeated.doubts, repeated.sets))
}

/// A set.
fn section(repeated: &RepeatedRuns<'_>, at: usize, set: &RunSet) -> Document {
    let measurement = Text::command(repeated.measurement);
    let title = text!("{} of {}{}", runs(set), measurement, taken(set));
    let title = match repeated.variants {
        [_] => title,
        variants => text!("{}  {}: {}", letter(at), Text::name(&variants[at]), title),
    };
    let saved = repeated.folders.get(at).zip(repeated.known.get(at));
    let saved = saved.map(|(folder, known)| {
        let beside = (*known > 0).then(|| text!(" beside {} from before", *known));
        text!("Saved in {}{}", Text::name(folder), beside)
    });
    let legend = if at == 0 { LEGEND } else { "" };
    Document::default()
        .heading(title)
        .add(saved)
        .add(metrics(&set.spreads()).legend(legend))
        .add_full(culprits(&set.culprit_spreads()))
}

/// Why the runs of the only set differ, and what another one can show. Several are for a comparison.
fn main_metric(repeated: &RepeatedRuns<'_>) -> Document {
    let [set] = repeated.sets else { return Document::default() };
    let Some(main) = set.main_metric() else { return Document::default() };
    let saved = Saved {
        measurement: repeated.measurement,
        files: repeated.files.first().map_or(&[], Vec::as_slice),
        cpus: set.measured_and_other_cpus(),
    };
    let cause = cause(&main, &saved).map(|cause| List::lines([cause]));
    Document::default().add(cause).add(detectable(&main))
}

fn metrics(spreads: &[RunSpread]) -> Table {
    let listed = &spreads[..spreads.len().min(METRICS)];
    let heads = ["median", "from", "to", "min", "max", "spread"];
    let rows = listed.iter().map(|one| {
        let value = |value: f64| number::in_unit(value, one.unit);
        let [from, to] = [0, 1].map(|bound| {
            number::any(one.median_interval.map(|interval| value(interval[bound])))
        });
        let spread =
            number::any(one.spread_ppm.map(|part| text!("±{}", number::ratio(part))));
        let [median, min, max] = [one.median, one.min, one.max].map(value);
        (&one.quantity, [median, from, to, min, max, spread])
    });
    let table = quantities::table(heads.map(Column::number), rows);
    table.rest(number::more(spreads.len() - listed.len(), "more metrics"))
}

/// The share of their time that runs lost to each source of noise; empty if none was traced.
fn culprits(spreads: &[RunSpread]) -> Document {
    if spreads.is_empty() {
        return Document::default();
    }
    let listed = &spreads[..spreads.len().min(CULPRITS)];
    let rows = listed.iter().map(|one| {
        let shares = [one.mean, one.median, one.min, one.max];
        (&one.quantity, shares.map(|share| number::in_unit(share, one.unit)))
    });
    let heads = ["mean", "median", "min", "max"];
    let table = quantities::table(heads.map(Column::number), rows);
    quantities::culprits(table, spreads.len() - listed.len())
}

fn method(repeated: &RepeatedRuns<'_>) -> Document {
    let order = (repeated.sets.len() > 1).then(|| {
        text!(
            "The variants took turns in balanced random order ({}).",
            Text::command(format!("--seed {}", repeated.seed))
        )
    });
    let spreads: Vec<RunSpread> =
        repeated.sets.iter().flat_map(RunSet::spreads).collect();
    let keys = spreads.iter().filter_map(|one| one.quantity.metric());
    Document::from(BOUNDS).add(order).add(metric_names::glossary(keys))
}

/// The command that compares the sets; nothing if they are not saved.
fn to_compare(folders: &[String]) -> Option<List> {
    let (what, folders) = match folders {
        [] => return None,
        [one] => ("To compare with another set:", format!("{one} DIR")),
        several => ("To compare:", several.join(" ")),
    };
    let command = format!("noisefloor compare {folders}");
    Some(List::lines([Item::new(what).command(command)]))
}

#[derive(Serialize)]
struct RepeatedJson<'a> {
    measurement: &'a str,
    seed: u32,
    sets: Vec<SetJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<ProgramJson<'a>>,
    doubts: &'a [Doubt],
}

#[derive(Serialize)]
struct SetJson<'a> {
    variant: &'a str,
    folder: Option<&'a String>,
    runs: usize,
    taken: &'a Option<[String; 2]>,
    metrics: Vec<RunSpread>,
    culprits: Vec<RunSpread>,
    main: Option<MainMetric>,
    doubts: Vec<RunsDoubt>,
}

impl<'a> SetJson<'a> {
    fn of(runs: &RepeatedRuns<'a>, at: usize) -> Self {
        let set = &runs.sets[at];
        Self {
            variant: &runs.variants[at],
            folder: runs.folders.get(at),
            runs: set.runs(),
            taken: &set.taken,
            metrics: set.spreads(),
            culprits: set.culprit_spreads(),
            main: set.main_metric(),
            doubts: with_pattern(set),
        }
    }
}

/// The runs of a program as hyperfine exports them, in seconds.
#[derive(Serialize)]
struct ProgramJson<'a> {
    command: &'a str,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    exit_codes: Vec<u8>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'a str, &'a str>,
    /// Not in hyperfine's: the times without interruptions.
    net_times: Vec<Option<f64>>,
}

impl<'a> ProgramJson<'a> {
    /// `None` without runs of a program.
    fn of(variant: Option<&'a str>, set: &'a RunSet) -> Option<Self> {
        let programs = &set.programs;
        let times = set
            .spreads()
            .into_iter()
            .find(|one| one.quantity.metric() == Some("run_ns"))?;
        Some(Self {
            command: &programs.first()?.command,
            mean: seconds(times.mean),
            stddev: times.stddev.map(seconds),
            median: seconds(times.median),
            user: ProgramRun::mean_secs(programs, |run| run.user_ns),
            system: ProgramRun::mean_secs(programs, |run| run.system_ns),
            min: seconds(times.min),
            max: seconds(times.max),
            times: programs.iter().map(|run| run.elapsed_ns.as_secs_f64()).collect(),
            exit_codes: programs.iter().map(|run| run.exit_code).collect(),
            parameters: variant.map(|name| ("settings", name)).into_iter().collect(),
            net_times: programs
                .iter()
                .map(|run| run.net_ns.map(Nanos::as_secs_f64))
                .collect(),
        })
    }
}

fn seconds(nanos: f64) -> f64 {
    nanos / 1e9
}

/// Repeated runs as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn repeated_json(runs: &RepeatedRuns<'_>) -> serde_json::Result<String> {
    let named = runs.variants.iter().zip(runs.sets);
    let is_named = runs.variants.len() > 1;
    let result =
        |(name, set)| ProgramJson::of(is_named.then_some(String::as_str(name)), set);
    object(
        "repeat",
        RepeatedJson {
            measurement: runs.measurement,
            seed: runs.seed,
            sets: (0..runs.sets.len()).map(|at| SetJson::of(runs, at)).collect(),
            results: named.filter_map(result).collect(),
            doubts: runs.doubts,
        },
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Code;

    use super::*;
    use crate::example::sets::run_set;
    use crate::example::{self, GUEST};
    use crate::terminal::full_text;

    const PERCENTS: [u64; 8] = [100, 98, 140, 97, 101, 99, 102, 100];

    fn assert_fits(text: &str) {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
            assert_eq!(line.trim_end(), line);
        }
    }

    /// Check the report of one set of traced runs that is saved.
    #[test]
    fn one_set() {
        let recording = example::blamed(example::noise(GUEST, 1));
        let text = full_text(&repeated_document(&RepeatedRuns {
            measurement: "noise -c 0",
            variants: &["current".to_owned()],
            sets: &[run_set(&recording, &PERCENTS)],
            folders: &["before".to_owned()],
            files: &[(3..11).map(|run| format!("before/{run:03}.json")).collect()],
            known: &[2],
            seed: 7,
            doubts: &[],
        }));
        assert_fits(&text);
        assert_snapshot!(text);
    }

    /// Check the report of two variants whose runs ended early.
    #[test]
    fn variants() {
        let recording = example::noise(GUEST, 1);
        let doubt = Doubt::new(Code::Interrupted, "ended early, after 5 runs");
        let text = full_text(&repeated_document(&RepeatedRuns {
            measurement: "noise -c 0",
            variants: &["current".to_owned(), "preempt=full".to_owned()],
            sets: &[
                run_set(&recording, &[99, 100, 101]),
                run_set(&recording, &[120, 121]),
            ],
            folders: &[],
            files: &[],
            known: &[],
            seed: 7,
            doubts: &[doubt],
        }));
        assert_fits(&text);
        assert_snapshot!(text);
    }
}
