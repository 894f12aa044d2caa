//! Simulations of false alarms and of found outliers, with fixed seeds.

use super::*;
use crate::example::Random;

/// The resolution of shares in parts per million.
const STEP: f64 = 1.0;

fn found(values: &[f64]) -> usize {
    let fence = Fence::of(values, STEP).unwrap();
    let is_outlier = |value: &&f64| fence.height(&single(**value)).is_outlier;
    values.iter().filter(is_outlier).count()
}

fn single(value: f64) -> MedianOfRuns {
    MedianOfRuns { value, spread: None, count: 1 }
}

/// The share of sets of `count` values in which one is called an outlier.
fn false_alarms(count: usize, trials: u32, mut value: impl FnMut() -> f64) -> f64 {
    let is_alarm = |_: &u32| found(&(0..count).map(|_| value()).collect::<Vec<_>>()) > 0;
    f64::from(u32::try_from((0..trials).filter(is_alarm).count()).unwrap())
        / f64::from(trials)
}

/// Check that a fleet of 5 to 10,000 nodes without a noisy one has a false alarm in at most one of twenty cases: of
/// normal, lognormal (narrow, and over decades), gamma and rounded values, and of small counts.
#[test]
fn few_false_alarms() {
    let mut random = Random::new(40);
    for (count, trials) in [
        (5, 4000),
        (6, 4000),
        (8, 4000),
        (12, 4000),
        (30, 4000),
        (100, 2000),
        (1000, 400),
        (10_000, 100),
    ] {
        for kind in
            ["normal", "narrow", "decades", "gamma", "uniform", "rounded", "counts"]
        {
            let mut gamma =
                |shape: u32| -> f64 { (0..shape).map(|_| random.exponential()).sum() };
            let rate = match kind {
                "normal" => {
                    false_alarms(count, trials, || 1000.0 + 100.0 * random.normal())
                }
                "narrow" => {
                    false_alarms(count, trials, || 1000.0 * (0.2 * random.normal()).exp())
                }
                "decades" => {
                    false_alarms(count, trials, || 1000.0 * (1.5 * random.normal()).exp())
                }
                "gamma" => false_alarms(count, trials, || 1000.0 * gamma(3)),
                "uniform" => false_alarms(count, trials, || 1000.0 * random.uniform()),
                "rounded" => false_alarms(count, trials, || {
                    (20.0 * (0.2 * random.normal()).exp()).round()
                }),
                _ => false_alarms(count, trials, || (2.0 * gamma(3)).floor()),
            };
            let error =
                (FALSE_OUTLIERS * (1.0 - FALSE_OUTLIERS) / f64::from(trials)).sqrt();
            println!("{kind}, {count} nodes: {rate:.4}");
            assert!(rate <= FALSE_OUTLIERS + 3.0 * error, "{kind}, {count}: {rate}");
        }
    }
}

/// Check that nodes whose values are several times those of the others are found, also if they are a third.
#[test]
fn outliers_are_found() {
    let mut random = Random::new(41);
    for (count, noisy, factor, least) in [
        (8, 1, 20.0, 90),
        (30, 1, 4.0, 90),
        (30, 10, 12.0, 90),
        (1000, 300, 12.0, 90),
        (10_000, 3, 4.0, 90),
    ] {
        let trials = 100;
        let hits = (0..trials).filter(|_| {
            let values: Vec<f64> = (0..count)
                .map(|node| {
                    let value = 1000.0 * (0.2 * random.normal()).exp();
                    if node < noisy { factor * value } else { value }
                })
                .collect();
            let fence = Fence::of(&values, STEP).unwrap();
            values[..noisy].iter().all(|value| fence.height(&single(*value)).is_outlier)
        });
        let hits = hits.count();
        println!(
            "{noisy} of {count} nodes with {factor} times the noise: all found in {hits} of {trials} fleets"
        );
        assert!(hits >= least, "{count} {noisy}: {hits}");
    }
}

/// Check equal values: one that is larger by a tenth is an outlier, and one by less is none.
#[test]
fn zero_spread() {
    let set = |other: f64| [vec![1000.0; 9], vec![other]].concat();
    assert_eq!(found(&set(1000.0)), 0);
    assert_eq!(found(&set(1090.0)), 0);
    assert_eq!(found(&set(1120.0)), 1);
    assert_eq!(found(&set(0.0)), 0);
    assert_eq!(found(&[0.0; 7]), 0);
    assert_eq!(found(&[vec![0.0; 7], vec![5.0]].concat()), 1);
    let fence = Fence::of(&[1000.0; 9], STEP).unwrap();
    assert!((fence.limit() - 1101.15).abs() < 0.01, "{fence:?}");
    assert_eq!(fence.height(&single(1000.0)).scales, 0.0);
}

/// Check that fewer than five values have no outlier.
#[test]
fn too_few() {
    assert_eq!(Fence::of(&[1.0, 1.0, 1.0, 1e6], STEP), None);
    assert!(Fence::of(&[1.0, 1.0, 1.0, 1.0, 1e6], STEP).is_some());
    assert_eq!(MedianOfRuns::of(&[], STEP), None);
}

/// Check that a node whose own values differ much needs a larger median than one whose values agree.
#[test]
fn within_a_node() {
    let values: Vec<f64> = (0..30).map(|node| 1000.0 + 10.0 * f64::from(node)).collect();
    let fence = Fence::of(&values, STEP).unwrap();
    let steady = MedianOfRuns::of(&[2400.0, 2500.0, 2600.0], STEP).unwrap();
    let wild = MedianOfRuns::of(&[20.0, 2500.0, 300_000.0], STEP).unwrap();
    assert_eq!(steady.value, wild.value);
    assert!(fence.height(&steady).is_outlier && !fence.height(&wild).is_outlier);
    assert!(fence.height(&steady).scales < fence.height(&single(2500.0)).scales);
    assert_eq!(MedianOfRuns::of(&[1.0, 2.0], STEP).unwrap().spread, None);
}
