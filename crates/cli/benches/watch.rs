//! The cost of `watch` beside the programs that others use for the same questions: `perf sched record`, and
//! bpftrace with scripts for run-queue latency and for the time off CPUs: `sudo cargo bench -p cli --bench
//! watch`. Needs hackbench (rt-tests), perf and bpftrace.
//!
//! hackbench does a fixed amount of work on all CPUs, alone and beside each program in turn. As it leaves no
//! CPU idle, what it takes longer is the program's CPU time, in the kernel and outside of it. All numbers are
//! read at the end: nothing may be lost.

use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
const ROUNDS: usize = 7;
/// The work: groups of 40 processes that send each other messages.
const WORK: [&str; 6] = ["--pipe", "-g", "2", "-l", "4000", "-T"];
/// The largest part of the others' cost.
const PART: f64 = 0.25;
/// How long the programs need to start.
const START: Duration = Duration::from_secs(3);

/// Waits for a CPU, as bpftrace's own tool runqlat counts them.
const RUNQLAT: &str = "\
tracepoint:sched:sched_wakeup, tracepoint:sched:sched_wakeup_new { @q[args->pid] = nsecs; }
tracepoint:sched:sched_switch {
    if (args->prev_state == 0) { @q[args->prev_pid] = nsecs; }
    $ns = @q[args->next_pid];
    if ($ns) { @usecs = hist((nsecs - $ns) / 1000); }
    delete(@q[args->next_pid]);
}";
/// The time off CPUs by stack, as bcc's offcputime counts it.
const OFFCPUTIME: &str = "\
tracepoint:sched:sched_switch {
    @off[args->prev_pid] = nsecs;
    @stack[args->prev_pid] = kstack;
    $ns = @off[args->next_pid];
    if ($ns) { @[@stack[args->next_pid], args->next_comm] = sum(nsecs - $ns); }
    delete(@off[args->next_pid]);
    delete(@stack[args->next_pid]);
}
END { clear(@off); clear(@stack); }";

/// The programs of one column, which run at the same time.
struct Column {
    name: &'static str,
    commands: Vec<Vec<String>>,
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
        vec![words(&[&[TOOL, "watch", "--json", "-d", "1h"], target].concat())]
    };
    let own = std::process::id().to_string();
    let mut columns = [
        ("alone", vec![]),
        ("watch --cgroup (all of hackbench)", watch(&["--cgroup", "/"])),
        ("watch -p (another program)", watch(&["-p", &own])),
        (
            "perf sched record",
            vec![words(&["perf", "sched", "record", "-q", "-o", &data])],
        ),
        (
            "bpftrace: run-queue latency and off-CPU time",
            vec![
                words(&["bpftrace", "-e", RUNQLAT]),
                words(&["bpftrace", "-e", OFFCPUTIME]),
            ],
        ),
    ]
    .map(|(name, commands)| Column { name, commands, seconds: Vec::new() });
    for _ in 0..ROUNDS {
        for column in &mut columns {
            column.seconds.push(round(&column.commands)?);
        }
    }
    report(&columns)
}

/// The seconds that the work takes beside the programs.
fn round(commands: &[Vec<String>]) -> Result<f64, Box<dyn Error>> {
    let start = |words: &Vec<String>| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn()
    };
    let programs = commands.iter().map(start).collect::<Result<Vec<Child>, _>>()?;
    sleep(if programs.is_empty() { Duration::ZERO } else { START });
    let begun = Instant::now();
    let work = Command::new("hackbench").args(WORK).output()?;
    let seconds = begun.elapsed().as_secs_f64();
    if !work.status.success() {
        return Err("hackbench failed".into());
    }
    for program in programs {
        end(program)?;
    }
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
    let cpus = f64::from(u32::try_from(std::thread::available_parallelism()?.get())?);
    println!("hackbench {}, medians of {ROUNDS} rounds", WORK.join(" "));
    let cost = |column: &Column| (median(column) - alone) * cpus;
    for column in columns {
        let (seconds, cost) = (median(column), cost(column));
        println!("  {:<46} {seconds:>6.2} s, {cost:>6.2} s of CPU time", column.name);
    }
    let [_, watch, _, perf, bpftrace] = columns else { return Ok(()) };
    for (name, other) in [("perf sched record", perf), ("bpftrace", bpftrace)] {
        let part = cost(watch) / cost(other) / PART;
        println!("  watch: {part:.2} of at most 1.00 ({PART} of {name})");
    }
    Ok(())
}
