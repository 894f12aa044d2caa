//! Many ranks compared with LogGOPSim, if `NOISEFLOOR_LOGGOPSIM` names a folder with its programs `LogGOPSim`
//! and `txt2bin`, built from its repository with `-O3`: `cargo bench -p sim --bench ranks`.
//!
//! Both run the same program, a barrier by dissemination after each step of 1 ms, in turn. An event is a
//! computation, a send, a receive or a message: LogGOPSim counts the same. Its time is that of its process,
//! with reading the schedule, which it needs and this simulator does not; the one of this simulator includes
//! the beginning of all ranks.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use recording::{Network, Pattern};
use sim::ranks::{Assigned, Program, Trace};
use units::{Nanos, Span};

/// Ranks and steps.
const CASES: [(u64, u64); 2] = [(1_024, 100), (262_144, 1)];
/// The noise of the cases: 1000 times a second 25 µs.
const HZ: u64 = 1_000;
const LENGTH: Nanos = Nanos::from_micros(25);
const TURNS: u64 = 3;
/// A million ranks: steps, and the longest time in seconds.
const MILLION: (u64, u64, f64) = (1 << 20, 100, 60.0);
/// How many times as many events a second as LogGOPSim.
const FASTER: f64 = 10.0;

fn main() -> Result<(), Box<dyn Error>> {
    let machines = [vec![trace().ok_or("no trace")?]];
    let peer = std::env::var_os("NOISEFLOOR_LOGGOPSIM").map(PathBuf::from);
    if peer.is_none() {
        println!("skipped: LogGOPSim (NOISEFLOOR_LOGGOPSIM names no folder)");
    }
    for (ranks, steps) in CASES {
        let program = program(steps);
        let events = program.events(ranks) as f64 / 1e6;
        let mut own = Vec::new();
        let mut others = Vec::new();
        let schedule = peer.as_deref().map(|peer| Schedule::write(peer, ranks, steps));
        let schedule = schedule.transpose()?;
        for seed in 1..=TURNS {
            let (seconds, end) = timed(&program, ranks, &machines, seed)?;
            own.push(events / seconds);
            println!(
                "  {ranks} ranks, {steps} steps: {:.1} M events/s, {end} ns",
                events / seconds
            );
            if let Some(schedule) = &schedule {
                let (seconds, end) = schedule.run(true)?;
                others.push(events / seconds);
                println!("    LogGOPSim: {:.2} M events/s, {end} ns", events / seconds);
            }
        }
        let base =
            program.run(size(ranks), &[], &AtomicBool::new(false)).ok_or("stopped")?;
        if let Some(schedule) = schedule {
            let (_, end) = schedule.run(false)?;
            println!("  without noise: {} ns, LogGOPSim {end} ns", base.get());
            if base.get() != end {
                return Err("the times without noise differ".into());
            }
            let times = median(own) / median(others);
            println!(
                "  {times:.0} times as fast; at least {FASTER}: {:.2} of the limit",
                FASTER / times
            );
        }
    }
    let (ranks, steps, most) = MILLION;
    let (seconds, _) = timed(&program(steps), ranks, &machines, 1)?;
    println!(
        "  {ranks} ranks, {steps} steps: {seconds:.1} s, {:.2} of the limit",
        seconds / most
    );
    Ok(())
}

fn trace() -> Option<Trace> {
    let period = 1_000_000_000 / HZ;
    let detours = (0..10 * HZ)
        .map(|at| Span { start: Nanos::from_nanos(at * period), length: LENGTH });
    Trace::new(Nanos::from_secs(10), detours)
}

fn program(steps: u64) -> Program {
    let (pattern, network) = (Pattern::Bsp, Network::default());
    let compute = Nanos::from_millis(1);
    Program { pattern, algorithm: None, compute, steps, bytes: 8, network }
}

fn size(ranks: u64) -> usize {
    usize::try_from(ranks).unwrap_or(usize::MAX)
}

/// The seconds of a run, and its end in virtual time.
fn timed(
    program: &Program,
    ranks: u64,
    machines: &[Vec<Trace>],
    seed: u64,
) -> Result<(f64, u64), Box<dyn Error>> {
    let noise = Assigned { machines, ranks_per_node: 1, coscheduled: false, seed };
    let start = Instant::now();
    let end = program.run(size(ranks), &[noise], &AtomicBool::new(false));
    Ok((start.elapsed().as_secs_f64(), end.ok_or("stopped")?.get()))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A schedule for LogGOPSim, and a trace of noise.
struct Schedule<'a> {
    peer: &'a Path,
    binary: PathBuf,
    trace: PathBuf,
}

impl<'a> Schedule<'a> {
    fn write(peer: &'a Path, ranks: u64, steps: u64) -> Result<Self, Box<dyn Error>> {
        let folder = std::env::temp_dir();
        let file =
            |end| folder.join(format!("noisefloor-{}-{ranks}.{end}", std::process::id()));
        let (text, binary, trace) = (file("goal"), file("bin"), file("noise"));
        fs::write(&text, goal(ranks, steps)?)?;
        let detours = (0..=10 * HZ)
            .map(|at| format!("{}\t{}\n", at * 1_000_000_000 / HZ, LENGTH.get()));
        fs::write(&trace, detours.collect::<String>())?;
        let made = Command::new(peer.join("txt2bin"))
            .args(["-i".as_ref(), text.as_os_str(), "-o".as_ref(), binary.as_os_str()])
            .output()?;
        fs::remove_file(&text)?;
        match made.status.success() {
            true => Ok(Self { peer, binary, trace }),
            false => Err("txt2bin failed".into()),
        }
    }

    /// The seconds of a run, and its end in virtual time.
    fn run(&self, has_noise: bool) -> Result<(f64, u64), Box<dyn Error>> {
        let mut command = Command::new(self.peer.join("LogGOPSim"));
        command.arg("-b").arg("-f").arg(&self.binary);
        if has_noise {
            command.arg("--noise-trace").arg(&self.trace);
        }
        let start = Instant::now();
        let output = String::from_utf8(command.output()?.stdout)?;
        let seconds = start.elapsed().as_secs_f64();
        let line =
            output.lines().find_map(|line| line.split_once("Maximum finishing time"));
        let end = line.and_then(|(_, rest)| rest.split(' ').nth(4)?.parse().ok());
        Ok((seconds, end.ok_or("LogGOPSim printed no time")?))
    }
}

impl Drop for Schedule<'_> {
    fn drop(&mut self) {
        for file in [&self.binary, &self.trace] {
            drop(fs::remove_file(file));
        }
    }
}

/// The program as LogGOPSim reads it.
fn goal(ranks: u64, steps: u64) -> Result<String, std::fmt::Error> {
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        writeln!(text, "rank {rank} {{")?;
        let (mut label, mut last) = (0, 0);
        for _ in 0..steps {
            label += 1;
            writeln!(text, "l{label}: calc 1000000")?;
            if last > 0 {
                writeln!(text, "l{label} requires l{last}")?;
            }
            last = label;
            let mut distance = 1;
            while distance < ranks {
                let (to, from) =
                    ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
                let [send, receive] = [label + 1, label + 2];
                writeln!(
                    text,
                    "l{send}: send 8b to {to} tag 1\nl{send} requires l{last}"
                )?;
                writeln!(
                    text,
                    "l{receive}: recv 8b from {from} tag 1\nl{receive} requires l{last}"
                )?;
                (label, last, distance) = (receive, receive, distance * 2);
            }
        }
        text.push_str("}\n");
    }
    Ok(text)
}
