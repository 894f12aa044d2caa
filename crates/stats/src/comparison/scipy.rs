//! The same samples through SciPy, which is a tool of this test only.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::effect::Effect;
use super::statistic::Statistic;
use crate::example::Random;
use crate::ranks::p_value;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference.py");

#[derive(Serialize)]
struct Samples {
    a: Vec<f64>,
    b: Vec<f64>,
    statistic: Statistic,
}

#[derive(Deserialize)]
struct Found {
    p: f64,
    bounds: Option<[f64; 2]>,
}

/// Intervals of two samples are in SciPy since this version.
const VERSION: &str = "import scipy.stats\n\
    assert tuple(map(int, scipy.__version__.split('.')[:2])) >= (1, 10)";

/// The first Python that has SciPy.
fn python() -> Option<&'static str> {
    ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let found = Command::new(python).args(["-c", VERSION]).output();
        found.is_ok_and(|output| output.status.success())
    })
}

fn scipy(python: &str, samples: &[Samples]) -> Vec<Found> {
    let mut script = Command::new(python);
    let script = script.arg(SCRIPT).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = script.spawn().unwrap();
    let text = serde_json::to_string(samples).unwrap();
    running.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = running.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Samples of all kinds: without a difference and with one, of different sizes, with equal values,
/// with long tails, and mostly 0.
fn samples() -> Vec<Samples> {
    let mut random = Random::new(6);
    let mut all = Vec::new();
    for (sizes, difference) in
        [([4, 4], 30.0), ([10, 12], 0.0), ([20, 20], 9.0), ([35, 40], 5.0)]
    {
        let mut of = |size, add: f64| -> Vec<f64> {
            (0..size).map(|_| 100.0 + add + 9.0 * random.normal()).collect()
        };
        all.push((of(sizes[0], 0.0), of(sizes[1], difference)));
        let mut of = |size, add: f64| -> Vec<f64> {
            (0..size).map(|_| add + 50.0 * random.pareto()).collect()
        };
        all.push((of(sizes[0], 0.0), of(sizes[1], difference)));
        let mut of = |size| -> Vec<f64> {
            (0..size).map(|_| 5.0 + (random.exponential() * 20.0).floor()).collect()
        };
        all.push((of(3 * sizes[0]), of(3 * sizes[1])));
    }
    let mut rare = |size, rate: f64| -> Vec<f64> {
        let value = |random: &mut Random| match random.uniform() < rate {
            true => 10.0 * random.exponential(),
            false => 0.0,
        };
        (0..size).map(|_| value(&mut random)).collect()
    };
    all.push((rare(30, 0.2), rare(40, 0.4)));
    let samples = all.into_iter().map(|(a, b)| {
        let statistic = Statistic::for_samples([&a, &b]);
        Samples { a, b, statistic }
    });
    samples.collect()
}

/// Check that p-values are those of SciPy, and that intervals differ by less than resampling explains.
#[test]
fn agrees_with_scipy() {
    let Some(python) = python() else {
        println!(
            "skipped: agrees_with_scipy: no python3 here has SciPy 1.10 (python3-scipy)"
        );
        return;
    };
    let samples = samples();
    assert_eq!(samples.iter().filter(|one| one.statistic == Statistic::Mean).count(), 1);
    let mut compared = 0;
    for (own, found) in samples.iter().zip(scipy(python, &samples)) {
        let p = p_value(&own.a, &own.b, 1.0);
        assert!((p - found.p).abs() <= 1e-9 + 1e-6 * found.p, "{p} {}", found.p);
        let effect = Effect::of(own.statistic, [&own.a, &own.b], 1.0).unwrap();
        let Some([low, high]) = found.bounds else { continue };
        compared += 1;
        // Equal values have few possible bounds, and the smallest samples few resamples.
        let is_coarse =
            own.a.len() < 10 || own.a.iter().all(|value| value.fract() == 0.0);
        let most = if is_coarse { 0.25 } else { 0.1 };
        for (bound, other) in [(effect.low, low), (effect.high, high)] {
            let part = (bound - other).abs() / (high - low);
            println!("n = {}: {bound:.3} {other:.3}, {part:.3}", own.a.len());
            assert!(part <= most, "{bound} {other}: {effect:?}");
        }
    }
    assert!(compared > 8, "{compared}");
}
