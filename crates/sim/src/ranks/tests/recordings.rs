use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use recording::{
    Blamed, Body, Code, Coscheduled, Culprit, CulpritKind, Network, Pattern, Recording,
    ScaleSeries, ScaleSpec, Share, Thread, ThreadOwner,
};
use units::{Nanos, Span};

use super::{nanos, span};
use crate::ranks::{Recorded, Watch, check, runs, simulate};

fn golden(name: &str) -> Recording {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/golden");
    Recording::load(&folder.join(name)).unwrap()
}

fn spec(ranks: &[u64]) -> ScaleSpec {
    ScaleSpec {
        ranks: ranks.to_vec(),
        pattern: Pattern::Bsp,
        algorithm: None,
        compute_ns: Nanos::from_millis(1),
        steps: Some(20),
        message_bytes: 8,
        network: Network::default(),
        ranks_per_node: 1,
        coscheduled: Coscheduled::All(false),
        seed: 7,
        seeds: 3,
        sources: 3,
        inputs: Vec::new(),
    }
}

/// One CPU whose ticks take 10 µs and whose daemon takes 1 ms, in 2 s; noisefloor's own thread is there, too.
fn blamed() -> Recording {
    let mut recording = golden("noise-1.json");
    let noise = recording.body.noise_mut().unwrap();
    noise.cpus.truncate(1);
    let cpu = &mut noise.cpus[0];
    (cpu.elapsed_ns, cpu.lost) = (Nanos::from_secs(2), None);
    let thread = |tid, name: &str, own| {
        let owner = Some(ThreadOwner::Program(name.to_owned()));
        let thread = Some(Thread { tid, pid: tid, prio: 120, owner, unit: None, own });
        Culprit { kind: CulpritKind::Thread, name: format!("{name}-{tid}"), thread }
    };
    let timer =
        Culprit { kind: CulpritKind::Timer, name: "tick".to_owned(), thread: None };
    let culprits = vec![
        timer,
        thread(1, "daemon", false),
        thread(2, "daemon", false),
        thread(3, "noisefloor", true),
    ];
    let (mut gaps, mut shares): (Vec<Span>, Vec<Share>) = Default::default();
    for at in 0..500_usize {
        let own = if at % 100 == 7 { 50_000 } else { 0 };
        let daemon = if at % 50 == 10 { 1_000_000 } else { 0 };
        let parts = [(0, 10_000), (1 + at % 2, daemon), (3, own)];
        gaps.push(span(
            at as u64 * 4_000_000 + 1_000,
            parts.iter().map(|(_, ns)| ns).sum(),
        ));
        let parts = parts.into_iter().filter(|(_, ns)| *ns > 0);
        shares.extend(parts.map(|(culprit, ns)| {
            let (ns, inside_ns) = (nanos(ns), nanos(ns));
            Share { gap: at, culprit, ns, inside_ns, entry_ns: None }
        }));
    }
    cpu.gaps = gaps;
    cpu.blamed =
        Some(Blamed { culprits, shares, events: vec![0; 4], ..Blamed::default() });
    recording
}

fn recorded(all: &[Recording]) -> Recorded {
    let mut recorded = Recorded::default();
    for one in all {
        recorded.add("a.json", one).unwrap();
    }
    recorded
}

fn simulated(recorded: &Recorded, spec: ScaleSpec, threads: usize) -> Recording {
    let (stop, ended) = (AtomicBool::new(false), AtomicUsize::new(0));
    let found =
        simulate(recorded, spec.clone(), Watch { threads, stop: &stop, ended: &ended });
    assert_eq!(ended.into_inner(), runs(recorded, &spec));
    found.unwrap()
}

fn series(recording: &Recording) -> &ScaleSeries {
    let Body::Scale { series, .. } = &recording.body else { panic!() };
    series
}

/// Check that the numbers are those of this test on every machine, with any number of threads.
#[test]
fn same_bytes() {
    let recorded = recorded(&[blamed()]);
    let one = simulated(&recorded, spec(&[1, 16, 300]), 1);
    for threads in [2, 5] {
        let several = simulated(&recorded, spec(&[1, 16, 300]), threads);
        assert_eq!(one.to_json().unwrap(), several.to_json().unwrap());
    }
    let found: Vec<u64> =
        series(&one).counts.iter().map(|count| count.runs[0].run_ns[0].get()).collect();
    assert_eq!(found, KNOWN);
    let other = simulated(&recorded, ScaleSpec { seed: 8, ..spec(&[300]) }, 1);
    assert_ne!(series(&other).counts[0].runs, series(&one).counts[2].runs);
}

/// The run times of the first seed.
const KNOWN: [u64; 3] = [20_050_000, 22_605_860, 39_393_869];

/// Check the sources: the daemon's threads together, then the tick; and that without one, the run of each seed is
/// shorter, or as long; and that noisefloor's own time is in none.
#[test]
fn sources() {
    let recorded = recorded(&[blamed()]);
    let found = simulated(&recorded, spec(&[64]), 2);
    let series = series(&found);
    let sources: Vec<_> = series
        .sources
        .iter()
        .map(|one| (one.kind, &*one.name, one.noise_ns.get()))
        .collect();
    let expected = [
        (CulpritKind::Thread, "daemon", 10_000_000),
        (CulpritKind::Timer, "tick", 5_000_000),
    ];
    assert_eq!(sources, expected);
    let [all, daemon, tick] = &series.counts[0].runs[..] else { panic!() };
    assert_eq!([all.omitted, daemon.omitted, tick.omitted], [None, Some(0), Some(1)]);
    for ((all, daemon), tick) in all.run_ns.iter().zip(&daemon.run_ns).zip(&tick.run_ns) {
        assert!(daemon < tick && tick < all, "{all:?} {daemon:?} {tick:?}");
    }
    let Body::Scale { spec, .. } = &found.body else { panic!() };
    assert_eq!(spec.inputs[0].noise_ns.get(), 15_000_000);
    assert_eq!(spec.inputs[0].longest_ns, Some(nanos(1_010_000)));
}

/// Check that noise at the same time on all nodes costs about its share, and noise at different times more.
#[test]
fn coscheduled() {
    let recorded = recorded(&[blamed()]);
    let long = |coscheduled| {
        let coscheduled = Coscheduled::All(coscheduled);
        let spec =
            ScaleSpec { steps: Some(500), sources: 0, coscheduled, ..spec(&[1, 512]) };
        let found = simulated(&recorded, spec, 2);
        let counts = &series(&found).counts;
        let slowdown = |count: &recording::ScaleCount| {
            let run =
                count.runs[0].run_ns.iter().map(|run| run.get()).sum::<u64>() as f64;
            run / 3.0 / count.base_ns.get() as f64 - 1.0
        };
        [slowdown(&counts[0]), slowdown(&counts[1])]
    };
    let ([alone, apart], [_, together]) = (long(false), long(true));
    assert!((alone - 0.0075).abs() < 0.002, "{alone}");
    assert!((together / alone - 1.0).abs() < 0.3, "{together} {alone}");
    assert!(apart > 20.0 * together, "{apart} {together}");
}

/// The mean run time of all seeds, with all sources and without each.
fn means(recorded: &Recorded, spec: ScaleSpec) -> Vec<u64> {
    let found = simulated(recorded, spec, 2);
    let runs = &series(&found).counts.last().unwrap().runs;
    let mean = |runs: &recording::ScaleRuns| {
        runs.run_ns.iter().map(|run| run.get()).sum::<u64>() / runs.run_ns.len() as u64
    };
    runs.iter().map(mean).collect()
}

/// Check that the daemon at the same time everywhere costs less than at different times, and more than without
/// it; without it, its moments do not matter; and that the numbers are the same with any number of threads.
#[test]
fn one_source() {
    let recorded = recorded(&[blamed()]);
    let of = |coscheduled| ScaleSpec { steps: Some(200), coscheduled, ..spec(&[64]) };
    let daemon = recorded.named(&["daemon".to_owned()]).unwrap();
    let daemon = of(Coscheduled::Sources(daemon));
    let apart = means(&recorded, of(Coscheduled::All(false)));
    let together = means(&recorded, of(Coscheduled::All(true)));
    let one = means(&recorded, daemon.clone());
    assert!(together[0] < one[0] && one[0] < apart[0], "{together:?} {one:?} {apart:?}");
    // Of the sources in turn, the daemon is the first.
    assert!(apart[1] < one[0], "{one:?} {apart:?}");
    assert_eq!(apart[1], one[1]);
    // Without ticks, it is the only one.
    assert_eq!(together[2], one[2]);
    let saved =
        |threads| simulated(&recorded, daemon.clone(), threads).to_json().unwrap();
    assert_eq!(saved(1), saved(5));
    let read = Recording::from_json(&saved(1), Path::new("a.json")).unwrap();
    assert!(
        matches!(read.body, Body::Scale { spec, .. } if spec.coscheduled == daemon.coscheduled)
    );
}

/// Check that all sources by name are as all noise, and none by name as no noise at the same time.
#[test]
fn all_sources() {
    let recorded = recorded(&[blamed()]);
    let runs = |coscheduled| {
        let found = simulated(&recorded, ScaleSpec { coscheduled, ..spec(&[1, 64]) }, 2);
        series(&found).counts.clone()
    };
    let all = recorded.named(&["tick".to_owned(), "daemon".to_owned()]).unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(runs(Coscheduled::Sources(all)), runs(Coscheduled::All(true)));
    assert_eq!(runs(Coscheduled::Sources(Vec::new())), runs(Coscheduled::All(false)));
}

/// Check names of sources: those of reports, or without the kind; unknown ones are refused with those that there
/// are, escaped.
#[test]
fn names() {
    let mut recording = blamed();
    let blamed = recording.body.noise_mut().unwrap().cpus[0].blamed.as_mut().unwrap();
    let Some(ThreadOwner::Program(name)) =
        &mut blamed.culprits[1].thread.as_mut().unwrap().owner
    else {
        panic!()
    };
    *name = "a\n\x1b[2J".to_owned();
    let recorded = recorded(&[recording]);
    let named = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let found = recorded.named(&names).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|source| source.name).collect::<Vec<_>>())
    };
    let odd = "a\n\x1b[2J";
    assert_eq!(named(&["timer tick", odd, "tick"]), Ok(vec![odd.into(), "tick".into()]));
    assert_eq!(named(&[]), Ok(Vec::new()));
    let sources = "thread a\\x0a\\x1b[2J, timer tick";
    for (unknown, shown) in [("thread tick", "thread tick"), ("", ""), ("\x07", "\\x07")]
    {
        let text =
            format!("unknown source of noise '{shown}': expected one of: {sources}");
        assert_eq!(named(&["tick", unknown]), Err(text));
    }
    let none = Recorded::default().named(&["tick".to_owned()]).unwrap_err();
    assert!(none.to_string().ends_with("the recordings have none"), "{none}");
}

/// Check that parts which take all time are refused, as those of gaps that overlap, and runs with too many
/// co-scheduled gaps.
#[test]
fn refused_parts() {
    let refused = |recording: Recording, spec: ScaleSpec| {
        let recorded = recorded(&[recording]);
        let tick = recorded.named(&["tick".to_owned()]).unwrap();
        let spec = ScaleSpec { coscheduled: Coscheduled::Sources(tick), ..spec };
        let (stop, ended) = (AtomicBool::new(true), AtomicUsize::new(0));
        let watch = Watch { threads: 1, stop: &stop, ended: &ended };
        simulate(&recorded, spec, watch).err().map(|error| error.to_string())
    };
    assert_eq!(refused(blamed(), spec(&[1 << 16])), None);
    let long = Nanos::from_secs(1);
    let long = ScaleSpec { compute_ns: long, steps: Some(1_000), ..spec(&[1 << 16]) };
    let text = refused(blamed(), long).unwrap();
    assert!(text.contains("gaps of co-scheduled sources: choose fewer"), "{text}");
    let mut overlapping = blamed();
    let cpu = &mut overlapping.body.noise_mut().unwrap().cpus[0];
    cpu.gaps.truncate(2);
    cpu.gaps.fill(span(0, 1_500_000_000));
    let shares = &mut cpu.blamed.as_mut().unwrap().shares;
    *shares = [0, 1].map(|gap| Share { gap, culprit: gap, ..shares[gap] }).to_vec();
    shares.iter_mut().for_each(|share| share.ns = nanos(1_500_000_000));
    let text = refused(overlapping, spec(&[1])).unwrap();
    assert!(text.contains("take all of its time"), "{text}");
}

/// Check that a simulation that is ended at once has two doubts, and no value.
#[test]
fn ended_early() {
    let (stop, ended) = (AtomicBool::new(true), AtomicUsize::new(0));
    let watch = Watch { threads: 2, stop: &stop, ended: &ended };
    let found = simulate(&recorded(&[blamed()]), spec(&[4]), watch).unwrap();
    let codes: Vec<Code> = found.doubts.iter().map(|doubt| doubt.code).collect();
    assert_eq!(codes, [Code::Interrupted, Code::NothingMeasured]);
    assert!(series(&found).counts.is_empty());
}

/// Check the doubts about steps that need more CPU time than was measured, about repeated noise, CPUs that are
/// shared, tori that are lines, and unknown causes.
#[test]
fn doubts() {
    let of = |recording: Recording, spec: ScaleSpec| {
        let spec = ScaleSpec { steps: Some(1), seeds: 1, ..spec };
        let doubts = simulated(&recorded(&[recording]), spec, 1).doubts;
        doubts.into_iter().map(|doubt| doubt.text).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(of(blamed(), spec(&[1, 2_000])), "");
    assert!(
        of(blamed(), spec(&[2_001]))
            .contains("a step of more than 2000 ranks needs more")
    );
    let long = ScaleSpec { compute_ns: Nanos::from_secs(3), ..spec(&[1]) };
    assert!(of(blamed(), long).contains("its noise is repeated"));
    let node = ScaleSpec { ranks_per_node: 4, ..spec(&[8]) };
    assert!(of(blamed(), node).contains("4 ranks on a node have the noise of 1 CPUs"));
    let halo = ScaleSpec { pattern: Pattern::Halo2d, ..spec(&[4, 7]) };
    assert!(of(blamed(), halo).contains("7 ranks are a torus of 1 by 7"));
    let mut untraced = blamed();
    untraced.body.noise_mut().unwrap().cpus[0].blamed = None;
    assert!(of(untraced, spec(&[4])).contains("events were not traced"));
}

/// Check recordings without gaps, with gaps longer than all steps, of other tools, and of other kinds.
#[test]
fn inputs() {
    let mut quiet = blamed();
    let cpu = &mut quiet.body.noise_mut().unwrap().cpus[0];
    (cpu.gaps, cpu.blamed) = (Vec::new(), None);
    let found = simulated(&recorded(&[quiet.clone()]), spec(&[1, 64]), 1);
    for count in &series(&found).counts {
        assert_eq!(count.runs[0].run_ns, vec![count.base_ns; 3]);
    }
    let cpu = &mut quiet.body.noise_mut().unwrap().cpus[0];
    cpu.gaps = vec![span(0, 1_999_000_000)];
    let found = simulated(&recorded(&[quiet.clone()]), spec(&[64]), 1);
    assert!(series(&found).counts[0].runs[0].run_ns[0] > Nanos::from_secs(1));
    let refused = |recording: &Recording| {
        Recorded::default().add("a.json", recording).unwrap_err().to_string()
    };
    quiet.body.noise_mut().unwrap().cpus[0].gaps = vec![span(0, 2_000_000_000)];
    assert_eq!(refused(&quiet), "a.json has a CPU that lost all of its time");
    quiet.body.noise_mut().unwrap().cpus[0].elapsed_ns = Nanos::ZERO;
    assert_eq!(refused(&quiet), "a.json has no measured time");
    let latency = refused(&golden("latency-1.json"));
    assert!(
        latency.starts_with("a.json is a recording of 'latency', which has no gaps"),
        "{latency}"
    );
    let check = recorded(&[golden("check-1.json"), blamed()]);
    assert_eq!(simulated(&check, spec(&[4]), 1).taken, golden("check-1.json").taken);
}

/// Check gaps of which only lengths are known: all of them are there, none in another one.
#[test]
fn gaps_of_other_tools() {
    let mut imported = golden("imported-1.json");
    let Body::Imported { series: own, .. } = &mut imported.body else { panic!() };
    let lengths = &mut own.lengths[0];
    lengths.kind = recording::LengthKind::Gap;
    lengths.intervals = Vec::new();
    lengths.elapsed_ns = Some(Nanos::from_secs(1));
    let bin = |from, until, count| recording::Bin {
        from_ns: nanos(from),
        until_ns: nanos(until),
        count,
    };
    lengths.bins = vec![bin(1_000, 2_000, 900), bin(1_000_000, 1_000_000, 100)];
    lengths.max_ns = Some(nanos(3_000_000));
    own.lengths.truncate(1);
    let recorded = recorded(&[imported]);
    let machines = recorded.without(&[]);
    let [cpus] = &machines[..] else { panic!() };
    let [trace] = &cpus[..] else { panic!() };
    assert_eq!(trace.noise().get(), 900 * 1_500 + 99 * 1_000_000 + 3_000_000);
    let found = simulated(&recorded, spec(&[2]), 1);
    assert_eq!(found.doubts[0].code, Code::Imprecise);
}

/// Check that impossible parameters are refused with what would be possible.
#[test]
fn refused() {
    let of = |spec: ScaleSpec| check(&spec).unwrap_err().to_string();
    assert!(of(spec(&[0])).contains("at least 1"));
    assert!(of(spec(&[])).contains("at least 1"));
    assert!(of(spec(&[1 << 25])).contains("the most are 16777216"));
    assert!(of(ScaleSpec { steps: Some(0), ..spec(&[1]) }).contains("more than 0"));
    assert!(of(ScaleSpec { ranks_per_node: 0, ..spec(&[1]) }).contains("more than 0"));
    let ring = ScaleSpec {
        pattern: Pattern::Allreduce,
        algorithm: Some(recording::Algorithm::Ring),
        ..spec(&[1 << 20])
    };
    assert!(of(ring.clone()).contains("another algorithm"));
    assert_eq!(check(&ScaleSpec { ranks: vec![4_096], ..ring }), Ok(()));
    assert!(
        of(ScaleSpec { steps: Some(u64::MAX), ..spec(&[1]) })
            .contains("longer than a year")
    );
    let none = simulate(
        &Recorded::default(),
        spec(&[1]),
        Watch { threads: 1, stop: &AtomicBool::new(false), ended: &AtomicUsize::new(0) },
    );
    assert!(none.unwrap_err().to_string().contains("at least one recording"));
}
