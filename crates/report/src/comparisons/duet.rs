//! `repeat --duet`: how much longer one of two programs takes, from pairs of runs.

use recording::Doubt;
use serde::Serialize;
use stats::PairedDifference;
use summary::{DuetPair, DuetSummary, RunSet, RunSpread, RunsDoubt};
use units::CpuSet;

use crate::comparisons::letter;
use crate::comparisons::repeated::RepeatedRuns;
use crate::document::Document;
use crate::document::list::{Item, List};
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::grouped::grouped;
use crate::json::object;
use crate::number;
use crate::pictures::{Medium, repeated_pictures};

/// The metric that is compared.
const RUN_TIME: &str = "run_ns";
const LEGEND: &str = "The true median is between \"from\" and \"to\" (95 %, from 6 runs on). \"spread\": \
    half the difference of the quartiles, in percent of the median.";
const METHOD: &str = "The difference is that of the logarithms of both times of a pair, of which the effect of the \
    places cancels: the median over all two pairs with swapped places (Hodges-Lehmann), with the interval of the \
    Mann-Whitney test.";
const NEIGHBOURS: &str =
    "Both programs run beside each other, and so each may take longer than alone.";

/// Two programs that were run in pairs.
#[derive(Debug, Clone, Copy)]
pub struct ComparedPrograms<'a> {
    /// Both command lines.
    pub commands: &'a [String; 2],
    /// The runs of each.
    pub sets: &'a [RunSet; 2],
    /// The pairs.
    pub pairs: &'a [DuetPair],
    /// What the pairs say; `None` with too few.
    pub summary: Option<&'a DuetSummary>,
    /// Whether both ran at once; otherwise one after the other.
    pub at_once: bool,
    /// Where they ran.
    pub cpus: &'a CpuChoice,
    /// The seed of the order of places.
    pub seed: u32,
    /// The folders of the recordings; empty if they are not saved.
    pub folders: &'a [String],
    /// Reasons not to trust all of them.
    pub doubts: &'a [Doubt],
}

/// The CPUs of two programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuChoice {
    /// Two CPUs, or one if the programs ran in turn.
    pub cpus: CpuSet,
    /// Why these.
    pub why: String,
}

/// The difference of both programs.
pub fn duet_document(compared: &ComparedPrograms<'_>) -> Document {
    let mut commands = Table::new([Column::words(""), Column::prose("")]);
    for (at, command) in compared.commands.iter().enumerate() {
        commands.row([Text::from(letter(at)), Text::command(command)]);
    }
    let runs = number::counted(compared.pairs.len() as u64, "pair");
    let how = if compared.at_once { "at once" } else { "in turn" };
    Document::default()
        .heading(text!("{} of runs of A and B, {}", runs, how))
        .add(commands)
        .add_all(compared.summary.map(verdict))
        .add(times(compared).legend(LEGEND))
        .add_all(compared.summary.map(spread))
        .add(places(compared))
        .add(saved(compared.folders))
        .add_full(method(compared))
        .reasons(reasons(compared))
}

/// The difference in one sentence.
fn verdict(summary: &DuetSummary) -> Text {
    let difference = &summary.difference;
    let change = number::change(difference.difference_ppm);
    match difference.interval_ppm {
        None => text!(
            "B differs from A by {}; an interval takes 4 pairs of each order.",
            change
        ),
        Some(ends) => {
            let [low, high] = ends.map(number::change);
            let verdict = match difference.is_significant() {
                true if difference.difference_ppm.get() > 0.0 => "B takes longer than A",
                true => "B takes less time than A",
                false => "No difference was found",
            };
            text!("{}: {} ({} to {}, 95 %).", verdict, change, low, high)
        }
    }
}

/// The run times of both programs.
fn times(compared: &ComparedPrograms<'_>) -> Table {
    let mut table = Table::new(
        [Column::words("run time")]
            .into_iter()
            .chain(["median", "from", "to", "min", "max", "spread"].map(Column::number)),
    );
    for (at, set) in compared.sets.iter().enumerate() {
        let spreads = set.spreads().into_iter();
        let mut times = spreads.filter(|one| one.quantity.metric() == Some(RUN_TIME));
        if let Some(times) = times.next() {
            table.row([Text::from(letter(at))].into_iter().chain(cells(&times)));
        }
    }
    table
}

fn cells(times: &RunSpread) -> [Text; 6] {
    let value = |value: f64| number::in_unit(value, times.unit);
    let [from, to] = [0, 1].map(|bound| {
        number::any(times.median_interval.map(|interval| value(interval[bound])))
    });
    let spread = times.spread_ppm.map(|part| text!("±{}", number::ratio(part)));
    let [median, min, max] = [times.median, times.min, times.max].map(value);
    [median, from, to, min, max, number::any(spread)]
}

/// How much pairs differ from each other, and how much they would if noise did not hit both programs of a pair.
fn spread(summary: &DuetSummary) -> Text {
    let PairedDifference { stddev_ppm, independent_stddev_ppm, correlation, .. } =
        summary.difference;
    let spread = stddev_ppm.zip(independent_stddev_ppm).map(|(own, independent)| {
        let correlation = correlation.map(|it| text!(" (correlation {})", format!("{it:.2}")));
        text!(
            "The difference of a pair has a standard deviation of {}; with independent noise it would have {}{}.",
            number::ratio(own),
            number::ratio(independent),
            correlation
        )
    });
    let together = summary.together.map(|together| {
        text!(
            "Both ran at once for {} of the longer one's time, and started {} apart.",
            number::share(together.part_ppm),
            number::duration(together.starts_apart_ns)
        )
    });
    Text::join(spread.into_iter().chain(together), " ")
}

/// Where both ran, and what the place costs.
fn places(compared: &ComparedPrograms<'_>) -> Text {
    let CpuChoice { cpus, why } = compared.cpus;
    let effect = compared.summary.map(|summary| {
        let difference = &summary.difference;
        let interval = difference.place_interval_ppm.map(|ends| {
            let [low, high] = ends.map(number::change);
            text!(" ({} to {})", low, high)
        });
        let [second, first] = match compared.at_once {
            true => ["On the second CPU", "on the first one"],
            false => ["After the other program", "before it"],
        };
        let change = number::change(difference.place_ppm);
        text!(
            " {}, run times differ by {}{} from those {}, which cancels.",
            second,
            change,
            interval,
            first
        )
    });
    let label = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    text!("{} {}: {}.{}", label, cpus, Text::from(why.as_str()), effect)
}

/// Where the recordings are.
fn saved(folders: &[String]) -> Option<List> {
    let [a, b] = folders else { return None };
    let text = text!(
        "Saved in {} and {}. To compare them without pairs:",
        Text::name(a),
        Text::name(b)
    );
    Some(List::lines([Item::new(text).command(format!("noisefloor compare {a} {b}"))]))
}

fn method(compared: &ComparedPrograms<'_>) -> Document {
    let order = match compared.at_once {
        true => "The programs swapped their CPUs in balanced random order",
        false => "The programs took turns in balanced random order",
    };
    let seed = Text::command(format!("--seed {}", compared.seed));
    Document::from(text!("{} ({}).", order, seed))
        .add(METHOD)
        .add(compared.at_once.then(|| Text::from(NEIGHBOURS)))
}

/// The doubts about all pairs, and those about single runs, with the program.
fn reasons<'a>(compared: &ComparedPrograms<'a>) -> impl Iterator<Item = Text> + use<'a> {
    let mut of_runs: Vec<(Text, String)> = Vec::new();
    for (at, set) in compared.sets.iter().enumerate() {
        for RunsDoubt { doubt, runs } in &set.doubts {
            let of = match set.runs() {
                all if all == *runs => letter(at),
                all => format!("{} ({runs} of {all} runs)", letter(at)),
            };
            of_runs.push((doubt.text.as_str().into(), of));
        }
    }
    let of_runs = grouped(of_runs).into_iter();
    let of_runs = of_runs.map(|(reason, of)| text!("{}: {}", of.join(", "), reason));
    let of_all = compared.doubts.iter().map(|doubt| doubt.text.as_str().into());
    of_all.chain(of_runs)
}

/// The pictures of the runs of both programs.
pub fn duet_pictures(compared: &ComparedPrograms<'_>, medium: Medium) -> Document {
    let names = [0, 1].map(letter);
    let runs = RepeatedRuns {
        measurement: "",
        variants: &names,
        sets: compared.sets,
        folders: compared.folders,
        files: &[],
        known: &[],
        seed: compared.seed,
        doubts: &[],
    };
    repeated_pictures(&runs, medium)
}

#[derive(Serialize)]
struct DuetJson<'a> {
    at_once: bool,
    seed: u32,
    #[serde(flatten)]
    cpus: &'a CpuChoice,
    programs: Vec<ProgramJson<'a>>,
    pairs: &'a [DuetPair],
    summary: Option<&'a DuetSummary>,
    doubts: &'a [Doubt],
}

#[derive(Serialize)]
struct ProgramJson<'a> {
    command: &'a str,
    folder: Option<&'a String>,
    runs: usize,
    taken: &'a Option<[String; 2]>,
    metrics: Vec<RunSpread>,
    exit_codes: Vec<u8>,
    doubts: &'a [RunsDoubt],
}

/// The difference of both programs as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn duet_json(compared: &ComparedPrograms<'_>) -> serde_json::Result<String> {
    let program = |(at, set): (usize, &'_ RunSet)| ProgramJson {
        command: &compared.commands[at],
        folder: compared.folders.get(at),
        runs: set.runs(),
        taken: &compared.sets[at].taken,
        metrics: set.spreads(),
        exit_codes: set.programs.iter().map(|run| run.exit_code).collect(),
        doubts: &compared.sets[at].doubts,
    };
    object(
        "duet",
        DuetJson {
            at_once: compared.at_once,
            seed: compared.seed,
            cpus: compared.cpus,
            programs: compared.sets.iter().enumerate().map(program).collect(),
            pairs: compared.pairs,
            summary: compared.summary,
            doubts: compared.doubts,
        },
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Body, Recording};
    use summary::DuetRun;
    use units::{Cpu, Nanos};

    use super::*;
    use crate::example::{self, GUEST};
    use crate::terminal::full_text;

    /// A run of a program that begins and ends at these times.
    fn recording(began: Nanos, took: Nanos) -> Recording {
        let mut recording = example::run(GUEST);
        if let Body::Run { series, .. } = &mut recording.body {
            (series.began_ns, series.elapsed_ns) = (began, took);
        }
        recording
    }

    /// Pairs whose times in microseconds these are, beside noise that hits both.
    fn compared_text(times: &[[u64; 2]], at_once: bool) -> String {
        let mut sets = [RunSet::default(), RunSet::default()];
        let mut pairs = Vec::new();
        for (took, round) in times.iter().zip(1..) {
            let took = took.map(Nanos::from_micros);
            let first = usize::from(round % 2 == 0);
            let mut began = [Nanos::from_secs(round.into()); 2];
            if !at_once {
                began[1 - first] = began[first] + took[first];
            }
            let run = |at: usize| DuetRun {
                place: if at == first { 1 } else { 2 },
                cpu: Some(Cpu::new(u32::from(at_once && at != first))),
                began_ns: began[at],
                elapsed_ns: took[at],
            };
            pairs.push(DuetPair { round, programs: [run(0), run(1)] });
            for at in [0, 1] {
                sets[at].add(&recording(began[at], took[at]));
            }
        }
        let summary = DuetSummary::of(&pairs, at_once);
        let cpus = CpuChoice {
            cpus: if at_once { "0-1" } else { "0" }.parse().unwrap(),
            why: "they share the last-level cache, but no core".to_owned(),
        };
        let doubts: Vec<Doubt> = summary.iter().filter_map(DuetSummary::doubt).collect();
        let compared = ComparedPrograms {
            commands: &["./before".to_owned(), "./after --size 8".to_owned()],
            sets: &sets,
            pairs: &pairs,
            summary: summary.as_ref(),
            at_once,
            cpus: &cpus,
            seed: 7,
            folders: &["set/a".to_owned(), "set/b".to_owned()],
            doubts: &doubts,
        };
        let page: serde_json::Value =
            serde_json::from_str(&duet_json(&compared).unwrap()).unwrap();
        assert_eq!(page["programs"][1]["command"], "./after --size 8");
        assert_eq!(page["pairs"].as_array().unwrap().len(), times.len());
        full_text(&duet_document(&compared))
    }

    const NOISE: [u64; 8] = [100, 140, 101, 180, 99, 100, 133, 102];

    /// Check the report of programs at once: noise of tens of percent, and a difference of 2 %.
    #[test]
    fn at_once() {
        let times = NOISE.map(|noise| [noise * 1000, noise * 1020 + noise % 7]);
        assert_snapshot!(compared_text(&times, true));
    }

    /// Check the report of programs in turn without a difference, and of too few pairs, of which one program takes much
    /// longer.
    #[test]
    fn other_pairs() {
        let other = [140, 100, 100, 99, 181, 102, 100, 131];
        let times =
            [0, 1, 2, 3, 4, 5, 6, 7].map(|at| [NOISE[at] * 1000, other[at] * 1001]);
        let few = [[100_000, 200_000], [110_000, 202_000]];
        let texts = [compared_text(&times, false), compared_text(&few, true)];
        assert_snapshot!(texts.join("\n----\n"));
    }
}
