//! Whole processes: their wall time and peak memory, and the recordings that they read.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::iter::successors;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use recording::{Body, Recording};
use units::{Cpu, CpuSet, Nanos};

pub(crate) const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
/// The folder of files.
pub(crate) const PLACE: &str = env!("CARGO_TARGET_TMPDIR");
/// 300 million bytes, in MB of 2^20.
pub(crate) const MEMORY: f64 = 300e6 / (1 << 20) as f64;

/// Prints a measured value, its limit, and its share of that.
pub(crate) fn line(name: &str, value: f64, limit: f64) {
    println!("  {name:<26} {value:>8.2} of {limit:>7.2}   {:.2}", value / limit);
}

/// The median.
pub(crate) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median wall time of so many runs in seconds, and the largest peak memory in MB.
pub(crate) fn median(runs: usize, args: &[&str]) -> Result<(f64, f64), Box<dyn Error>> {
    let mut walls = Vec::new();
    let mut most: f64 = 0.0;
    for _ in 0..runs {
        let (wall, peak) = run(TOOL, args)?;
        walls.push(wall);
        most = most.max(peak);
    }
    Ok((middle(walls), most))
}

/// Runs a program; its wall time in seconds, and its peak memory in MB. That is at least the peak memory
/// of this process, which therefore holds no recording.
pub(crate) fn run(program: &str, args: &[&str]) -> Result<(f64, f64), Box<dyn Error>> {
    let start = Instant::now();
    let child = Command::new(program).args(args).stdout(Stdio::null()).spawn()?;
    let process = libc::pid_t::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is ours and waited for only here; both pointers outlive the call.
    unsafe { libc::wait4(process, &raw mut status, 0, &raw mut usage) };
    let wall = start.elapsed().as_secs_f64();
    if !ExitStatus::from_raw(status).success() {
        return Err(format!("{program} {args:?} failed").into());
    }
    #[expect(clippy::cast_precision_loss, reason = "kilobytes of one process")]
    let peak = usage.ru_maxrss as f64 / 1024.0;
    Ok((wall, peak))
}

/// Gaps of pseudo-random lengths and pauses.
#[derive(Clone, Copy)]
pub(crate) struct Gaps {
    pub(crate) count: usize,
    /// The shortest and the longest pause before a gap.
    pub(crate) pause: [u64; 2],
    pub(crate) seed: u64,
}

impl Gaps {
    /// The start and the length of each.
    fn each(self) -> impl Iterator<Item = [u64; 2]> {
        let mut state = self.seed;
        let mut next = move |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        let [shortest, longest] = self.pause;
        let mut after = move |[start, length]: [u64; 2]| {
            let start = start + length + shortest + next(longest - shortest);
            [start, 200 + next(9_000)]
        };
        let first = after([0, 0]);
        successors(Some(first), move |last| Some(after(*last))).take(self.count)
    }

    fn end(self) -> u64 {
        self.each().last().map_or(0, |[start, length]| start + length)
    }
}

/// Makes a recording with these gaps of each CPU from one of a moment.
pub(crate) fn recording(file: &Path, cpus: &[Gaps]) -> Result<(), Box<dyn Error>> {
    let mut noise = Command::new(TOOL);
    noise.args(["noise", "-d", "10ms", "-q", "--source", "proc", "-c", "0", "-o"]);
    if !noise.arg(file).stdout(Stdio::null()).status()?.success() {
        return Err("a recording of 10 ms failed".into());
    }
    let mut recording = Recording::load(file)?;
    let Body::Noise { spec, series } = &mut recording.body else {
        return Err("another kind of recording".into());
    };
    let mut cpu = series.cpus.remove(0);
    cpu.gaps.clear();
    for (gaps, number) in cpus.iter().zip(0..) {
        (cpu.cpu, cpu.elapsed_ns) = (Cpu::new(number), Nanos::from_nanos(gaps.end()));
        spec.duration_ns = spec.duration_ns.max(cpu.elapsed_ns);
        series.cpus.push(cpu.clone());
    }
    spec.cpus = series.cpus.iter().map(|cpu| cpu.cpu).collect::<CpuSet>();
    let text = recording.to_json()?;
    let mut parts = text.split("\"gaps\":[]");
    fs::remove_file(file)?;
    let mut to = BufWriter::new(File::create(file)?);
    write!(to, "{}", parts.next().unwrap_or_default())?;
    for (gaps, rest) in cpus.iter().zip(parts) {
        for (at, [start, length]) in gaps.each().enumerate() {
            let before = if at == 0 { "\"gaps\":[" } else { "," };
            write!(to, "{before}[{start},{length}]")?;
        }
        write!(to, "]{rest}")?;
    }
    Ok(to.flush()?)
}
