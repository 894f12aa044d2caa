//! `latency` compared with cyclictest (rt-tests), with and without idle states, and with itself while it
//! traces what delays wake-ups: `sudo cargo bench -p cli --bench latency`.
//!
//! Two run in turn on the last CPU, with the same interval and priority, so that drifting machine
//! speed affects both alike. The medians of samples are compared.

use std::error::Error;
use std::process::{Command, Output};

use serde_json::Value;

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
/// Rounds of each program; the median of their medians is reported.
const TURNS: usize = 75;
/// Duration of a round, in seconds.
const SECONDS: &str = "1";
const INTERVAL: &str = "997";
const PRIORITY: &str = "80";
/// Largest allowed difference of the medians of both programs, and by tracing.
const LIMIT: f64 = 0.1;
const TRACING_LIMIT: f64 = 0.02;
/// Keeps CPUs in their first idle state, as cyclictest does.
const AWAKE: [&str; 2] = ["--dma-latency", "0"];
/// Does not trace.
const UNTRACED: &str = "--no-trace";

/// Runs a round; returns the median lateness in microseconds.
type Round<'a> = &'a dyn Fn() -> Result<f64, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let cpu = (std::thread::available_parallelism()?.get() - 1).to_string();
    println!("median lateness on CPU {cpu}, µs; {TURNS} turns of {SECONDS} s each");
    let awake = || noisefloor(&cpu, &[AWAKE[0], AWAKE[1], UNTRACED]);
    let idle = || noisefloor(&cpu, &[UNTRACED]);
    if Command::new("cyclictest").arg("--help").output().is_ok() {
        let theirs = || cyclictest(&cpu, &[]);
        compare("first idle state only, cyclictest", &awake, &theirs, LIMIT)?;
        let theirs = || cyclictest(&cpu, &["--laptop"]);
        compare("all idle states, cyclictest", &idle, &theirs, LIMIT)?;
    } else {
        println!("skipped: cyclictest (the package rt-tests) is not installed");
    }
    let traced = || noisefloor(&cpu, &AWAKE);
    compare("first idle state only, not traced", &traced, &awake, TRACING_LIMIT)?;
    let traced = || noisefloor(&cpu, &[]);
    compare("all idle states, not traced", &traced, &idle, TRACING_LIMIT)
}

/// Prints the medians of two that run in turn, and their difference as a part of the limit.
fn compare(
    name: &str,
    one: Round<'_>,
    other: Round<'_>,
    limit: f64,
) -> Result<(), Box<dyn Error>> {
    let mut medians = [Vec::new(), Vec::new()];
    for turn in 0..TURNS {
        // Each runs first equally often.
        for side in [turn % 2, 1 - turn % 2] {
            medians[side].push(if side == 0 { one()? } else { other()? });
        }
    }
    let [one, other] = medians.map(|mut side| {
        side.sort_by(f64::total_cmp);
        side[TURNS / 2]
    });
    let apart = one / other - 1.0;
    println!(
        "  {one:>6.1}; {name} {other:>6.1}: {:+.1} %, {:.2} of the limit",
        apart * 1e2,
        apart.abs() / limit
    );
    Ok(())
}

fn noisefloor(cpu: &str, args: &[&str]) -> Result<f64, Box<dyn Error>> {
    let interval = format!("{INTERVAL}us");
    let mut command = Command::new(TOOL);
    command.args(["latency", "-c", cpu, "--fifo", PRIORITY, "-d", SECONDS]);
    command.args(["-i", &interval, "--json", "--quiet"]).args(args);
    let seen: Value = serde_json::from_slice(&ended(&mut command)?.stdout)?;
    let median = seen["summary"]["cpus"][0]["late_ns"]["p50"].as_f64();
    Ok(median.ok_or("no sample")? / 1e3)
}

/// Its median, from a histogram with a line for each observed value in nanoseconds.
fn cyclictest(cpu: &str, args: &[&str]) -> Result<f64, Box<dyn Error>> {
    let mut command = Command::new("cyclictest");
    command.args(["-q", "-m", "-N", "-t", "1", "-h", "2000000", "-a", cpu]);
    command.args(["-p", PRIORITY, "-i", INTERVAL, "-D", SECONDS]).args(args);
    let text = String::from_utf8(ended(&mut command)?.stdout)?;
    let counts: Vec<(u64, u64)> = text
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace))
        .filter_map(|(ns, count)| Some((ns.parse().ok()?, count.trim().parse().ok()?)))
        .collect();
    let samples: u64 = counts.iter().map(|(_, count)| count).sum();
    let mut seen = 0;
    let median = counts.iter().find(|(_, count)| {
        seen += count;
        *count > 0 && 2 * seen >= samples
    });
    let (ns, _) = median.ok_or("no sample")?;
    #[expect(clippy::cast_precision_loss, reason = "less than two seconds")]
    Ok(*ns as f64 / 1e3)
}

fn ended(command: &mut Command) -> Result<Output, Box<dyn Error>> {
    let output = command.output()?;
    match output.status.code() {
        // Doubts are not failures: a noisy machine has some.
        Some(0 | 4) => Ok(output),
        _ => Err(format!(
            "{:?}: {}",
            command.get_program(),
            String::from_utf8_lossy(&output.stderr)
        )
        .into()),
    }
}
