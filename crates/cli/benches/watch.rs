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

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
const ROUNDS: usize = 7;
/// The number of works in a round.
const WORKS: usize = 5;
/// The work: groups of 40 processes that send each other messages.
const WORK: [&str; 6] = ["--pipe", "-g", "2", "-l", "1500", "-T"];
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
    for needed in
        [&["hackbench", "-h"][..], &["perf", "--version"], &["bpftrace", "--version"]]
    {
        if Command::new(needed[0]).args(&needed[1..]).output().is_err() {
            println!("skipped: {} is not installed", needed[0]);
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
        let own =
            program.as_ref().map_or(Ok(0.0), |program| own_seconds(program.id()))?;
        Ok(seconds_of_children() + own)
    };
    let mut seconds = Vec::new();
    for _ in 0..WORKS {
        let before = used()?;
        if !Command::new("hackbench").args(WORK).output()?.status.success() {
            return Err("hackbench failed".into());
        }
        seconds.push(used()? - before);
    }
    program.map_or(Ok(()), end)?;
    Ok(seconds)
}

/// The CPU time of the children that have ended, and of theirs.
fn seconds_of_children() -> f64 {
    // SAFETY: plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: it writes to the structure only.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6)
        .sum()
}

/// The CPU time of a running process (`/proc/PID/task/TID/schedstat`).
fn own_seconds(pid: u32) -> Result<f64, Box<dyn Error>> {
    let mut ns = 0_u64;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let counts = std::fs::read_to_string(task?.path().join("schedstat"))?;
        ns += counts.split(' ').next().unwrap_or("0").parse::<u64>()?;
    }
    Ok(Duration::from_nanos(ns).as_secs_f64())
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
    println!("hackbench {}, medians of {ROUNDS} rounds of {WORKS}", WORK.join(" "));
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
