//! The run time of programs by `repeat -- run`, beside that by `hyperfine -N`:
//! `cargo bench -p cli --bench own_time`, with hyperfine in the PATH, and two CPUs.
//!
//! Both are real-time tasks if that is permitted, so that other tasks do not disturb them, and run each
//! program a few times on the same CPU, in turns. The limit is 3 % of its time, or 30 us if that is more.
//! hyperfine's time also has what it does between its first look at the clock and the program's exec (it
//! opens `/dev/null`, and searches `PATH`), and from the program's end to its second look.

use std::error::Error;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
const PLACE: &str = env!("CARGO_TARGET_TMPDIR");
/// The CPU of the program.
const CPU: usize = 1;
const SOURCES: [&str; 2] = ["proc", "bpf"];
/// How often each has its turn.
const TURNS: usize = 20;
/// The smallest limit, in microseconds.
const LEAST: f64 = 30.0;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|word| word == "--spin") {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(1) {
            std::hint::spin_loop();
        }
        return Ok(());
    }
    if Command::new("hyperfine").arg("--version").output().is_err() {
        println!("skipped: own_time: there is no hyperfine");
        return Ok(());
    }
    if std::thread::available_parallelism()?.get() < 2 {
        println!("skipped: own_time: it takes two CPUs");
        return Ok(());
    }
    outrank();
    let small = Path::new(PLACE).join("small");
    fs::write(&small, (0..=255).cycle().take(16 << 10).collect::<Vec<u8>>())?;
    let gzip = format!("gzip -c {}", small.display());
    let spin = format!("{} --spin", std::env::current_exe()?.display());
    println!("median run times beside those of hyperfine -N, in us; parts of the limit");
    for (name, line, runs) in [
        ("true", "true", 15),
        ("gzip", &gzip, 15),
        ("sleep 0.1", "sleep 0.1", 2),
        ("spin 1 s", &spin, 1),
    ] {
        compare(name, line, runs)?;
    }
    Ok(())
}

/// Makes this process and those that it starts real-time tasks, if that is permitted.
fn outrank() {
    let parameters = libc::sched_param { sched_priority: 10 };
    // SAFETY: `parameters` outlives the call, which only reads it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
}

/// Prints the median times of a program, of so many runs in a row.
fn compare(name: &str, line: &str, runs: usize) -> Result<(), Box<dyn Error>> {
    let mut other = Vec::new();
    let mut own: [Vec<f64>; SOURCES.len()] = Default::default();
    for _ in 0..TURNS {
        other.extend(of_hyperfine(line, runs)?);
        for (times, source) in own.iter_mut().zip(SOURCES) {
            times.extend(of_repeat(line, runs, source)?);
        }
    }
    let other = middle(other);
    let limit = LEAST.max(other * 0.03);
    for (times, source) in own.into_iter().zip(SOURCES) {
        if times.is_empty() {
            println!("skipped: {name}, {source}: it is not available");
            continue;
        }
        let (time, name) = (middle(times), format!("{name}, {source}"));
        let off = time - other;
        println!(
            "  {name:<16} {time:>11.1} of {other:>11.1}: {off:>+8.1} of {limit:>8.1}   {:.2}",
            off.abs() / limit
        );
    }
    Ok(())
}

fn of_hyperfine(line: &str, runs: usize) -> Result<Vec<f64>, Box<dyn Error>> {
    let file = Path::new(PLACE).join("hyperfine.json");
    let mut command = Command::new("hyperfine");
    // SAFETY: between fork and exec, one system call is made.
    unsafe { command.pre_exec(settle) };
    command.args(["-N", "--runs", &runs.to_string(), "--style", "none"]);
    command.arg("--export-json").arg(&file);
    let status =
        command.arg(line).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("hyperfine failed ({status})").into());
    }
    times(&fs::read(&file)?)
}

/// The run times in the results of hyperfine, or of `repeat --json`, which has the same.
fn times(json: &[u8]) -> Result<Vec<f64>, Box<dyn Error>> {
    let report: Value = serde_json::from_slice(json)?;
    let seconds = report["results"][0]["times"].as_array().ok_or("no times")?;
    Ok(seconds.iter().filter_map(|time| Some(time.as_f64()? * 1e6)).collect())
}

/// Lets the calling process run on the CPU of the program only.
fn settle() -> io::Result<()> {
    // SAFETY: all-zero is a valid set, which outlives the call.
    let failed = unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(CPU, &mut cpus);
        libc::sched_setaffinity(0, size_of_val(&cpus), &raw const cpus)
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Empty if this source is not available.
fn of_repeat(line: &str, runs: usize, source: &str) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut command = Command::new(TOOL);
    command.args(["repeat", "-q", "-n", &runs.to_string(), "--json", "--"]);
    command.args(["run", "-q", "-c", &CPU.to_string(), "--source", source]);
    command.args(line.split(' ')).stderr(Stdio::null());
    let output = command.output()?;
    if output.status.success() { times(&output.stdout) } else { Ok(Vec::new()) }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
