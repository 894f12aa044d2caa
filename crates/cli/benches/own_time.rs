//! The run time of programs by `run`, beside that by `hyperfine -N`: `cargo bench -p cli --bench own_time`,
//! with hyperfine in the PATH, and two CPUs.
//!
//! Both are real-time tasks if that is permitted, so that other tasks do not disturb them, and run each
//! program once on the same CPU, in turns: a program that follows itself at once finds its files and the
//! kernel's code in the caches, and takes a fifth less time. hyperfine's time also has what it does
//! between its first look at the clock and the program's exec (it opens `/dev/null`, and calls
//! `posix_spawn(3)`), and from the program's end to its second look: 50 to 100 us, which is more than the
//! limit for a program of 1 ms: 3 % of its time, or 30 us if that is more.

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
    for (name, line, rounds) in [
        ("true", "true", 100),
        ("gzip", &gzip, 100),
        ("sleep 0.1", "sleep 0.1", 20),
        ("spin 1 s", &spin, 5),
    ] {
        compare(name, line, rounds)?;
    }
    Ok(())
}

/// Makes this process and those that it starts real-time tasks, if that is permitted.
fn outrank() {
    let parameters = libc::sched_param { sched_priority: 10 };
    // SAFETY: `parameters` outlives the call, which only reads it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
}

/// Prints the median times of a program.
fn compare(name: &str, line: &str, rounds: usize) -> Result<(), Box<dyn Error>> {
    let mut other = Vec::new();
    let mut own: [Vec<f64>; SOURCES.len()] = Default::default();
    for _ in 0..rounds {
        other.push(of_hyperfine(line)?);
        for (times, source) in own.iter_mut().zip(SOURCES) {
            times.extend(of_run(line, source)?);
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

fn of_hyperfine(line: &str) -> Result<f64, Box<dyn Error>> {
    let file = Path::new(PLACE).join("hyperfine.json");
    let mut command = Command::new("hyperfine");
    // SAFETY: between fork and exec, one system call is made.
    unsafe { command.pre_exec(settle) };
    command.args(["-N", "--runs", "1", "--style", "none", "--export-json"]).arg(&file);
    let status =
        command.arg(line).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("hyperfine failed ({status})").into());
    }
    let report: Value = serde_json::from_slice(&fs::read(&file)?)?;
    let seconds = report["results"][0]["times"][0].as_f64().ok_or("no time")?;
    Ok(seconds * 1e6)
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

/// `None` if this source is not available.
fn of_run(line: &str, source: &str) -> Result<Option<f64>, Box<dyn Error>> {
    let file = Path::new(PLACE).join("run.json");
    let mut command = Command::new(TOOL);
    command
        .args(["run", "-q", "-c", &CPU.to_string(), "--source", source, "--json-to"])
        .arg(&file);
    command.args(line.split(' ')).stdout(Stdio::null()).stderr(Stdio::null());
    if !command.status()?.success() {
        return Ok(None);
    }
    let report: Value = serde_json::from_slice(&fs::read(&file)?)?;
    let nanos = report["summary"]["elapsed_ns"].as_f64().ok_or("no time")?;
    Ok(Some(nanos / 1e3))
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
