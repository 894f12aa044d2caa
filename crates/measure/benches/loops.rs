//! The cost of the loops, as ratios to a limit measured in the same run: `cargo bench -p measure`.
//!
//! The limit of any busy loop is a bare loop of consecutive counter readings. Both loops run
//! alternately in this process, many short bursts each, and the medians are compared, so that a
//! machine with a drifting speed slows both down.

use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use facts::{Facts, Root};
use measure::spin::{Ring, spin};
use measure::{Control, LoopCost, OnMoment, counter};
use recording::{NoiseSpec, Spec, Trigger};
use units::{Nanos, TscDelta};

/// Bursts of each loop.
const BURSTS: usize = 400;
/// Readings in a burst.
const READINGS: u64 = 4_096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let facts = Facts::read(&Root::live());
    let cpus = facts.cpus.allowed.value().map_err(ToString::to_string)?.clone();
    let cpu = cpus.iter().last().ok_or("no CPU")?;
    isolate::pin(cpu)?;

    let (bare, looped) = medians();
    println!("pass, in ticks of the counter on CPU {cpu} (median of {BURSTS} bursts)");
    println!("  bare readings          {bare:>8.2}   1.00");
    line("spin loop", looped, looped / bare, 1.05);

    let start = Instant::now();
    let read = Facts::read(&Root::live());
    let facts_ms = start.elapsed().as_secs_f64() * 1e3;
    println!("facts, in ms");
    line("one reading", facts_ms, facts_ms / 50.0, 1.0);

    let asked = Nanos::from_secs(3);
    let spec = NoiseSpec {
        cpus,
        duration_ns: asked,
        threshold_ns: None,
        fifo: None,
        trigger: Trigger::default(),
        phases: None,
        at_scale: None,
    };
    let start = Instant::now();
    let recording =
        measure::run(&Spec::Noise(spec), &read, &Control::new()?, &mut measure::ignore)?;
    let wall = start.elapsed().as_secs_f64();
    println!("a run of 3 s on all CPUs");
    line("wall, s", wall, wall / asked.as_secs_f64(), 1.1);
    let peak = peak_mb()?;
    line("peak memory, MB", peak, peak / 12.0, 1.0);
    black_box(recording);
    Ok(())
}

fn line(name: &str, value: f64, ratio: f64, limit: f64) {
    println!("  {name:<20} {value:>10.2}   {ratio:.2} of at most {limit:.2}");
}

/// The mean pass of the median burst, of the bare loop and of the busy loop.
fn medians() -> (f64, f64) {
    let threshold = LoopCost::measure().threshold();
    let never = AtomicBool::new(false);
    let mut ring = Ring::new(1 << 16);
    let (mut bare, mut looped) = (Vec::new(), Vec::new());
    for _ in 0..BURSTS {
        bare.push(bare_burst());
        let length = TscDelta::from_ticks(as_ticks(bare_burst() * as_f64(READINGS)));
        let spun = spin(length, threshold, OnMoment::stopping(&never), &mut ring);
        looped.push(as_f64(spun.elapsed.ticks()) / as_f64(spun.passes));
    }
    (median(bare), median(looped))
}

#[inline(never)]
fn bare_burst() -> f64 {
    let first = counter::now();
    let mut last = first;
    for _ in 0..READINGS {
        last = black_box(counter::now());
    }
    as_f64(last.since(first).ticks()) / as_f64(READINGS)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::cast_precision_loss, reason = "ticks of a burst stay far below 2^53")]
fn as_f64(ticks: u64) -> f64 {
    ticks as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a burst's length is positive and small"
)]
fn as_ticks(ticks: f64) -> u64 {
    ticks as u64
}

/// The largest resident memory of this process (`VmHWM`).
fn peak_mb() -> Result<f64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    let kb = line.and_then(|line| line.split_whitespace().nth(1)).ok_or("no VmHWM")?;
    Ok(kb.parse::<f64>()? / 1024.0)
}
