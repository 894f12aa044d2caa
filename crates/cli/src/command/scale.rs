//! `scale`: what the noise of recordings costs many ranks that wait for each other.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use recording::{Algorithm, Coscheduled, Network, Pattern, Recording, ScaleSpec};
use sim::ranks::{self, Recorded, Watch};
use units::{Cause, Nanos};

use crate::args::{Output, outputs, some_span, span};
use crate::file_pattern::file_name;
use crate::inputs::load;
use crate::measured::Measured;
use crate::measuring::finish;
use crate::outcome::{Failure, Outcome};
use crate::progress_line::ProgressLine;
use crate::terminal::stop_flag;

/// The sources that are omitted in turn by default.
const SOURCES: u32 = 3;
/// The name of all sources for `--coscheduled`.
const ALL: &str = "all";
/// Progress is shown so often.
const PERIOD: std::time::Duration = std::time::Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct ScaleArgs {
    /// Recordings of noise or check saved with -o, or files of other tools with gaps: each node has the
    /// noise of one of them. `-`: standard input.
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Numbers of ranks: A..B are A, the powers of two between, and B; others with commas between them
    /// [default: powers of four up to 65536].
    #[arg(long, value_name = "LIST", value_parser = rank_list)]
    pub(crate) ranks: Option<RankList>,
    /// What ranks do after each step: bsp (a barrier), allreduce, halo2d, halo3d (messages to 4 or 6
    /// neighbours), or pipeline.
    #[arg(long, value_name = "PATTERN", default_value = "bsp")]
    pub(crate) pattern: Pattern,
    /// Algorithm of an allreduce: recursive-doubling, dissemination, ring or tree [default:
    /// recursive-doubling].
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<Algorithm>,
    /// CPU time of a rank in each step, with a unit.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = some_span)]
    pub(crate) compute: Nanos,
    /// Number of steps [default: 1000, fewer of many ranks, at least 10].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) steps: Option<u64>,
    /// Size of a message, in bytes.
    #[arg(long, value_name = "BYTES", default_value = "8",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) message: u64,
    /// Number of ranks on a node, which have the CPUs of one recording at the same time; further ones
    /// share them.
    #[arg(long, value_name = "N", default_value = "1",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) ranks_per_node: u64,
    /// All nodes have the noise of SOURCE, a name as in the report, at the same time; without a name, or with
    /// all: their whole noise. Can be repeated.
    #[arg(long, value_name = "SOURCE", num_args = 0..=1, require_equals = true,
        default_missing_value = ALL)]
    pub(crate) coscheduled: Vec<String>,
    /// Number of sources of noise that are omitted in turn, those with most time first.
    #[arg(long, value_name = "N", default_value_t = SOURCES,
        value_parser = clap::value_parser!(u32).range(..=20))]
    pub(crate) sources: u32,
    /// Number of runs with different random numbers.
    #[arg(long, value_name = "N", default_value = "5",
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) seeds: u32,
    /// Seed of the random numbers: the same seed gives the same numbers on every machine.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Number of threads; the numbers do not depend on it [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    #[command(flatten)]
    pub(crate) network: NetworkOptions,
    /// Save the simulation to FILE, for `noisefloor report`; or write its report: a page (FILE.html),
    /// Markdown (FILE.md), or its picture (FILE.svg). `-`: the simulation to standard output, instead of
    /// the report. Can be repeated.
    #[arg(short, long, value_name = "FILE", value_parser = file_name())]
    pub(crate) output: Vec<PathBuf>,
}

/// The parameters of the network.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Network (LogGOPS)")]
pub(crate) struct NetworkOptions {
    /// L: time of the first byte in the network.
    #[arg(long, value_name = "TIME", default_value = "2500ns", value_parser = span)]
    latency: Nanos,
    /// o: CPU time of sending, and of receiving, a message.
    #[arg(long, value_name = "TIME", default_value = "1500ns", value_parser = span)]
    overhead: Nanos,
    /// g: time between the beginnings of two messages.
    #[arg(long, value_name = "TIME", default_value = "1000ns", value_parser = span)]
    gap: Nanos,
    /// G: time of each further byte in the network.
    #[arg(long, value_name = "TIME", default_value = "6ns", value_parser = span)]
    byte_gap: Nanos,
    /// O: CPU time of each further byte.
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = span)]
    byte_overhead: Nanos,
    /// S: size above which the sender waits for the receiver, in bytes.
    #[arg(long, value_name = "BYTES", default_value = "65535")]
    eager: u64,
}

impl NetworkOptions {
    fn of_recording(self) -> Network {
        Network {
            latency_ns: self.latency,
            overhead_ns: self.overhead,
            gap_ns: self.gap,
            byte_gap_ns: self.byte_gap,
            byte_overhead_ns: self.byte_overhead,
            eager_bytes: self.eager,
        }
    }
}

/// Numbers of ranks, in rising order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankList(Vec<u64>);

pub(crate) fn run(args: &ScaleArgs, output: Output) -> Result<Outcome, Failure> {
    let files = outputs(&args.output);
    let output = output.beside(files.clone())?;
    let mut spec = spec(args)?;
    ranks::check(&spec).map_err(Failure::usage)?;
    let mut recorded = Recorded::default();
    for file in &args.files {
        let name = file.display().to_string();
        recorded.add(&name, &load(file)?).map_err(Failure::usage)?;
    }
    spec.coscheduled = coscheduled(&args.coscheduled, &recorded)?;
    let recording = simulate(args, &recorded, spec, output)?;
    finish(&Measured::new(recording), &files, output)
}

fn spec(args: &ScaleArgs) -> Result<ScaleSpec, Failure> {
    let is_allreduce = args.pattern == Pattern::Allreduce;
    if args.algorithm.is_some() && !is_allreduce {
        return Err(Failure::usage("--algorithm needs --pattern allreduce"));
    }
    let default = || RankList((0..=8).map(|power| 1 << (2 * power)).collect());
    let RankList(ranks) = args.ranks.clone().unwrap_or_else(default);
    Ok(ScaleSpec {
        ranks,
        pattern: args.pattern,
        algorithm: is_allreduce
            .then(|| args.algorithm.unwrap_or(Algorithm::RecursiveDoubling)),
        compute_ns: args.compute,
        steps: args.steps,
        message_bytes: args.message,
        network: args.network.of_recording(),
        ranks_per_node: args.ranks_per_node,
        coscheduled: Coscheduled::All(false),
        seed: args.seed,
        seeds: args.seeds,
        sources: args.sources,
        inputs: Vec::new(),
    })
}

/// The noise that all nodes have at the same time.
fn coscheduled(names: &[String], recorded: &Recorded) -> Result<Coscheduled, Failure> {
    let is_all = names.iter().any(|name| name == ALL);
    if names.is_empty() || is_all {
        return Ok(Coscheduled::All(is_all));
    }
    recorded.named(names).map(Coscheduled::Sources).map_err(Failure::usage)
}

/// Simulates in a thread of its own, with progress on this one; Ctrl-C ends it early.
fn simulate(
    args: &ScaleArgs,
    recorded: &Recorded,
    spec: ScaleSpec,
    output: Output,
) -> Result<Recording, Failure> {
    let (stop, ended) = (stop_flag()?, AtomicUsize::new(0));
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or(cpus, usize::from);
    let watch = Watch { threads, stop: &stop, ended: &ended };
    let all = ranks::runs(recorded, &spec);
    let mut line = ProgressLine::new(output.quiet);
    std::thread::scope(|scope| {
        let simulated = scope.spawn(|| ranks::simulate(recorded, spec, watch));
        while line.is_shown() && !simulated.is_finished() {
            std::thread::park_timeout(PERIOD);
            let ended = ended.load(Ordering::Relaxed);
            line.draw(&format!("simulating, {ended} of {all} runs"));
        }
        line.clear();
        match simulated.join() {
            Ok(found) => found.map_err(Failure::usage),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Parses `1..1048576` or `64,1000`.
fn rank_list(text: &str) -> Result<RankList, Cause> {
    let number = |text: &str| {
        let number = text.trim().parse::<u64>();
        number.map_err(|_| {
            format!("'{text}' is not a number of ranks (64,1000 or 1..1048576)")
        })
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => all.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last {
                    return Err(format!("'{part}' ends before it begins").into());
                }
                let powers = (0..u64::BITS).map(|power| 1_u64 << power);
                let between = powers.filter(|ranks| (first..=last).contains(ranks));
                all.extend(between.chain([first, last]));
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    match all.first() {
        Some(0) | None => Err("the number of ranks must be at least 1".into()),
        Some(_) => Ok(RankList(all)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that ranges are powers of two and their ends, each once, and that others are refused.
    #[test]
    fn numbers_of_ranks() {
        let of = |text| rank_list(text).map(|list| list.0).map_err(|why| why.to_string());
        assert_eq!(of("1..8"), Ok(vec![1, 2, 4, 8]));
        assert_eq!(of("3..10"), Ok(vec![3, 4, 8, 10]));
        assert_eq!(of("1000, 64,64"), Ok(vec![64, 1000]));
        assert_eq!(of("5..5"), Ok(vec![5]));
        for (text, why) in [
            ("0", "at least 1"),
            ("0..4", "at least 1"),
            ("8..1", "ends before"),
            ("1..x", "'x' is not a number"),
            ("", "'' is not a number"),
            ("-1", "'-1' is not a number"),
        ] {
            assert!(of(text).unwrap_err().contains(why), "{text}");
        }
    }
}
