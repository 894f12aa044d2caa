//! A simulation of many ranks.

use recording::{
    Body, Code, Coscheduled, CulpritKind, Doubt, Network, Pattern, Recording, ScaleCount,
    ScaleInput, ScaleRuns, ScaleSeries, ScaleSource, ScaleSpec, StepDelay,
};
use units::Nanos;

use crate::example::recording;

/// Up to a million ranks with the noise of two CPUs, of which a timer and two threads took time.
pub(crate) fn scale(groups: &str) -> Recording {
    let ranks: Vec<u64> = (0..=10).map(|power| 1 << (2 * power)).collect();
    let window = Nanos::from_secs(14);
    let spec = ScaleSpec {
        ranks: ranks.clone(),
        pattern: Pattern::Bsp,
        algorithm: None,
        compute_ns: Nanos::from_millis(1),
        steps: None,
        message_bytes: 8,
        network: Network::default(),
        ranks_per_node: 1,
        coscheduled: Coscheduled::All(false),
        seed: 1,
        seeds: 5,
        sources: 3,
        inputs: vec![ScaleInput {
            name: "check.json".to_owned(),
            kind: "check".to_owned(),
            release: None,
            taken: "2026-11-29T00:00:00Z".to_owned(),
            cpus: 2,
            window_ns: window,
            gaps: 3_512,
            noise_ns: Nanos::from_millis(150),
            longest_ns: Some(Nanos::from_millis(2)),
        }],
    };
    let doubt = Doubt::new(
        Code::TooShort,
        "the recordings have 14.000 s of CPU time, a step of more than 14000 ranks needs more: rarer gaps \
         were not seen, so that the slowdowns of more ranks are lower bounds",
    );
    recording(groups, Body::Scale { spec, series: series(&ranks) }, vec![doubt])
}

fn series(ranks: &[u64]) -> ScaleSeries {
    let source = |kind, name: &str, millis| ScaleSource {
        kind,
        name: name.to_owned(),
        noise_ns: Nanos::from_millis(millis),
    };
    let delay = |micros, millis| StepDelay {
        delay_ns: Nanos::from_micros(micros),
        starts_ns: Nanos::from_millis(millis),
    };
    ScaleSeries {
        sources: vec![
            source(CulpritKind::Thread, "a-daemon-with-a-long-name", 80),
            source(CulpritKind::Timer, "tick_nohz_handler", 50),
            source(CulpritKind::Steal, "hypervisor", 20),
        ],
        delays: vec![
            delay(0, 10_400),
            delay(10, 3_500),
            delay(500, 80),
            delay(2_000, 20),
        ],
        counts: ranks
            .iter()
            .enumerate()
            .map(|(at, ranks)| count(at as u64, *ranks))
            .collect(),
    }
}

/// Each power of four takes a twentieth longer.
fn count(power: u64, ranks: u64) -> ScaleCount {
    let steps = if power > 6 { 20 } else { 1_000 };
    let base_ns = Nanos::from_micros((1_000 + 11 * power) * steps);
    let runs = |omitted: Option<usize>| {
        let part = omitted.map_or(6, |number| 2 * number as u64 + 1);
        let run = |seed: u64| {
            let more = base_ns.get() / 1_000 * (10 + power * 50) * part / 6;
            Nanos::from_nanos(base_ns.get() + more + more * seed / 100)
        };
        ScaleRuns { omitted, run_ns: (0..5).map(run).collect() }
    };
    let omitted = [None, Some(0), Some(1), Some(2)];
    let events = ranks * (1 + 6 * power) * steps;
    ScaleCount { ranks, steps, events, base_ns, runs: omitted.map(runs).to_vec() }
}
