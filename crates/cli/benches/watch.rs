//! The cost of `watch` beside the programs that others use for the same questions: `perf sched record`, and
//! bpftrace with scripts for run-queue latency and for the time off CPUs: `sudo cargo bench -p cli --bench
//! watch`. Needs hackbench (rt-tests), perf and bpftrace.
//!
//! hackbench does a fixed amount of work on all CPUs, alone and beside each program in turn. The cost is the CPU
//! time of hackbench and of the program, minus that of hackbench alone: what others do on the machine is not
//! in it. bpftrace has one process with both scripts, so that it has one program per event. All numbers of
//! `watch` are read at the end: nothing may be lost.
//!
//! The number of switches of the same work differs by a third from run to run, and so does its CPU time: each round
//! has several works, and the medians of all are compared.

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

mod load;

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
const ROUNDS: usize = 7;
/// The number of works in a round.
const WORKS: usize = 5;
/// The largest part of the others' cost.
const PART: f64 = 0.25;
/// How long the programs need to start.
const START: Duration = Duration::from_secs(3);

/// Waits for a CPU, as bpftrace's own tool runqlat counts them, and the time off CPUs by stack, as bcc's
/// offcputime counts it.
const SCRIPT: &str = "\
tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new { @q[args->pid] = nsecs; }
tracepoint:sched:sched_switch {
    if (args->prev_state == 0) { @q[args->prev_pid] = nsecs; }
    @off[args->prev_pid] = nsecs;
    @stack[args->prev_pid] = kstack;
    $queued = @q[args->next_pid];
    if ($queued) {
        @usecs = hist((nsecs - $queued) / 1000);
        delete(@q[args->next_pid]);
    }
    $off = @off[args->next_pid];
    if ($off) {
        @[@stack[args->next_pid], args->next_comm] = sum(nsecs - $off);
        delete(@off[args->next_pid]);
        delete(@stack[args->next_pid]);
    }
}
END { clear(@off); clear(@stack); clear(@q); }";

/// A program beside which hackbench works; none in the first column.
struct Column {
    name: &'static str,
    command: Option<Vec<String>>,
    /// CPU time of each work.
    seconds: Vec<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    for needed in ["perf", "bpftrace", "hackbench"] {
        let is_installed = match needed {
            "hackbench" => load::is_installed(),
            other => Command::new(other).arg("--version").output().is_ok(),
        };
        if !is_installed {
            println!("skipped: {needed} is not installed");
            return Ok(());
        }
    }
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("perf.data").display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let watch = |target: &[&str]| {
        Some(words(&[&[TOOL, "watch", "--json", "-d", "1h"], target].concat()))
    };
    let own = std::process::id().to_string();
    let mut columns = [
        ("alone", None),
        ("watch --cgroup (all of hackbench)", watch(&["--cgroup", "/"])),
        ("watch -p (another program)", watch(&["-p", &own])),
        (
            "perf sched record",
            Some(words(&["perf", "sched", "record", "-q", "-o", &data])),
        ),
        (
            "bpftrace: run-queue latency and off-CPU time",
            Some(words(&["bpftrace", "-e", SCRIPT])),
        ),
    ]
    .map(|(name, command)| Column { name, command, seconds: Vec::new() });
    for _ in 0..ROUNDS {
        for column in &mut columns {
            let seconds = round(column.command.as_deref())?;
            column.seconds.extend(seconds);
        }
    }
    report(&columns)
}

/// The CPU time of each work and of the program beside it, in seconds.
fn round(command: Option<&[String]>) -> Result<Vec<f64>, Box<dyn Error>> {
    let start = |words: &[String]| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn()
    };
    let program = command.map(start).transpose()?;
    sleep(if program.is_some() { START } else { Duration::ZERO });
    let used = || -> Result<f64, Box<dyn Error>> {
        let own = program
            .as_ref()
            .map_or(Ok(0.0), |program| load::own_seconds(program.id()))?;
        Ok(load::seconds_of_children() + own)
    };
    let mut seconds = Vec::new();
    for _ in 0..WORKS {
        let before = used()?;
        load::work()?;
        seconds.push(used()? - before);
    }
    program.map_or(Ok(()), end)?;
    Ok(seconds)
}

/// Ends a program as Ctrl-C does; nothing that `watch` saw may be lost.
fn end(program: Child) -> Result<(), Box<dyn Error>> {
    let pid = libc::pid_t::try_from(program.id())?;
    // SAFETY: the child is ours and not yet waited for.
    unsafe { libc::kill(pid, libc::SIGINT) };
    let output = program.wait_with_output()?;
    let Ok(object) = serde_json::from_slice::<Value>(&output.stdout) else {
        return Ok(());
    };
    let doubts = object["doubts"].as_array().into_iter().flatten();
    let lost = doubts.filter(|doubt| {
        doubt["text"].as_str().is_some_and(|text| text.starts_with("too many"))
    });
    lost.map(|doubt| Err(doubt.to_string().into())).next().unwrap_or(Ok(()))
}

fn report(columns: &[Column]) -> Result<(), Box<dyn Error>> {
    let median = |column: &Column| {
        let mut seconds = column.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 2]
    };
    let alone = columns.first().map_or(0.0, median);
    println!("hackbench {}, medians of {ROUNDS} rounds of {WORKS}", load::WORK.join(" "));
    let cost = |column: &Column| median(column) - alone;
    for column in columns {
        let (seconds, cost) = (median(column), cost(column));
        println!(
            "  {:<46} {seconds:>6.2} s of CPU time, {cost:>6.3} s more",
            column.name
        );
    }
    let [_, watch, _, perf, bpftrace] = columns else { return Ok(()) };
    for (name, other) in [("perf sched record", perf), ("bpftrace", bpftrace)] {
        let part = cost(watch) / cost(other) / PART;
        println!("  watch: {part:.2} of at most 1.00 ({PART} of {name})");
    }
    Ok(())
}
