//! The cost of whole commands, measured from outside, relative to limits: `cargo bench -p cli`.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Instant;

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
/// Runs of each command; the median is reported.
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("whole processes, median of {RUNS} runs; parts of the limit");
    let (wall, _) = median(&["facts"])?;
    line("facts: wall, ms", wall * 1e3, 50.0);
    let (wall, peak) = median(&["noise", "-d", "3"])?;
    line("noise -d 3: wall, s", wall, 3.3);
    line("noise -d 3: peak, MB", peak, 12.0);
    Ok(())
}

fn line(name: &str, value: f64, limit: f64) {
    println!("  {name:<22} {value:>8.2} of {limit:>6.2}   {:.2}", value / limit);
}

/// The median wall time in seconds, and the largest peak memory in MB.
fn median(args: &[&str]) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let mut walls = Vec::new();
    let mut most: f64 = 0.0;
    for _ in 0..RUNS {
        let (wall, peak) = run(args)?;
        walls.push(wall);
        most = most.max(peak);
    }
    walls.sort_by(f64::total_cmp);
    Ok((walls[RUNS / 2], most))
}

fn run(args: &[&str]) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let child = Command::new(TOOL).args(args).stdout(Stdio::null()).spawn()?;
    let process = libc::pid_t::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is ours and waited for only here; both pointers outlive the call.
    unsafe { libc::wait4(process, &raw mut status, 0, &raw mut usage) };
    let wall = start.elapsed().as_secs_f64();
    if !std::process::ExitStatus::from_raw(status).success() {
        return Err(format!("{args:?} failed").into());
    }
    #[expect(clippy::cast_precision_loss, reason = "kilobytes of one process")]
    let peak = usage.ru_maxrss as f64 / 1024.0;
    Ok((wall, peak))
}
