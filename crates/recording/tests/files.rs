//! Files of recordings: written files can be read, and other files are rejected with file, position
//! and reason.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use facts::Facts;
use proptest::prelude::*;
use recording::{
    Body, Code, CpuNoise, Doubt, Kind, Lost, NoiseSeries, NoiseSpec, ProcCounts,
    Recording, Trigger, write_file,
};
use units::{Cpu, CpuSet, Nanos, Span, TscHz};

fn span(start: u64, length: u64) -> Span {
    Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
}

fn example() -> Recording {
    let page = r#"{"sources": {"tick.hz": "/proc/config.gz CONFIG_HZ"}, "unknown": {},
                   "tick": {"hz": 250, "mode": "idle", "divider": null}}"#;
    let facts: Facts = serde_json::from_str(page).unwrap();
    let cpus: CpuSet = "0-1".parse().unwrap();
    let duration_ns = Nanos::from_secs(1);
    let spec = NoiseSpec {
        cpus,
        duration_ns,
        threshold_ns: None,
        fifo: Some(50),
        trigger: Trigger::default(),
        phases: None,
        at_scale: None,
    };
    let cpu = CpuNoise {
        cpu: Cpu::new(1),
        began_ns: Nanos::from_micros(40),
        elapsed_ns: Nanos::from_millis(999),
        phases: Vec::new(),
        loop_ns: Nanos::from_nanos(8),
        passes: 110_000_000,
        gaps: vec![span(3_000, 12_000), span(4_003_000, 9_500)],
        lost: Some(Lost {
            since_ns: Nanos::from_millis(900),
            gaps: 3,
            ns: Nanos::from_micros(30),
            max_ns: Nanos::from_micros(20),
        }),
        blamed: None,
        backwards: 0,
        proc: ProcCounts { interrupts: None, ..ProcCounts::default() },
    };
    let series = NoiseSeries {
        clock: "tsc".to_owned(),
        clock_hz: TscHz::new(2_596_122_000).unwrap(),
        began_raw_ns: Nanos::from_secs(77),
        monotonic: None,
        source: None,
        threshold_ns: Nanos::from_nanos(100),
        cpus: vec![cpu],
    };
    let doubts =
        vec![Doubt::new(Code::GapsLost, "CPU 1: more gaps than there is room for")];
    Recording::now(facts, Body::Noise { spec, series }, doubts)
}

fn refused(text: &str) -> (Kind, String) {
    let error = Recording::from_json(text, Path::new("my.json")).unwrap_err();
    (error.kind(), units::chain(&error))
}

fn golden() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<PathBuf> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Check that a recording is the same after saving and loading, and that its directory contains only
/// this file.
#[test]
fn saved_then_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.json");
    let recording = example();
    for _ in 0..2 {
        write_file(&file, recording.to_json().unwrap()).unwrap();
    }
    assert_eq!(Recording::load(&file).unwrap(), recording);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Check that files of format 1 from earlier versions can be read, and are the same if written and
/// read again.
#[test]
fn golden_files_stay_readable() {
    let mut kinds = Vec::new();
    for file in golden() {
        let recording = Recording::load(&file).unwrap();
        let again = recording.to_json().unwrap();
        assert_eq!(Recording::from_json(&again, &file).unwrap(), recording);
        let kind = recording.body.kind();
        kinds.push(kind);
        if !["benchmarks", "imported"].contains(&kind) {
            assert_eq!(recording.tool, "noisefloor 0.1.0", "{}", file.display());
            assert!(recording.facts.tick.hz.get().is_some(), "{}", file.display());
        }
    }
    let all = [
        "benchmarks",
        "calls",
        "check",
        "guests",
        "imported",
        "jitter",
        "latency",
        "noise",
        "program",
        "run",
        "slices",
        "ticks",
        "top",
        "wakers",
        "watch",
    ];
    assert_eq!(kinds, all);
}

/// Check that a file truncated anywhere is reported as truncated, with the position.
#[test]
fn truncated_anywhere() {
    let text = example().to_json().unwrap();
    for end in 0..text.len() {
        let (kind, message) = refused(&text[..end]);
        assert_eq!(kind, Kind::Truncated, "{end}: {message}");
        assert!(
            message.starts_with(
                "failed to read my.json: ends in the middle, at line 1 column"
            )
        );
    }
}

/// Check that files that are not recordings, are newer, or have no series have different errors.
#[test]
fn foreign_newer_and_without_series() {
    for (text, kind, words) in [
        ("hello", Kind::Foreign, "not a noisefloor recording"),
        ("{}", Kind::Foreign, "no \"format\""),
        (r#"{"format": "ELF", "kind": "noise"}"#, Kind::Corrupt, "line 1 column 16"),
        (r#"{"format": 2, "kind": "noise"}"#, Kind::Newer, "format 2"),
        (r#"{"format": 1, "kind": "noise"}"#, Kind::NoSeries, "--json --series"),
        (r#"{"format": 1, "kind": "song", "series": {}}"#, Kind::Corrupt, "'song'"),
        (r#"{"format": 1, "kind": "noise", "series": {}}"#, Kind::Corrupt, "line 1"),
        ("[1, 2]", Kind::Corrupt, "line 1"),
    ] {
        let (found, message) = refused(text);
        assert_eq!(found, kind, "{text}: {message}");
        assert!(message.contains(words), "{text}: {message}");
    }
}

/// Check that the order of the keys has no effect.
#[test]
fn any_order_of_keys() {
    let recording = example();
    let text = recording.to_json().unwrap();
    let sorted: serde_json::Value = serde_json::from_str(&text).unwrap();
    let sorted = sorted.to_string();
    assert!(
        text.starts_with(r#"{"format":1,"kind":"#) && !sorted.starts_with(r#"{"format"#)
    );
    for text in [text, sorted] {
        assert_eq!(Recording::from_json(&text, Path::new("my.json")).unwrap(), recording);
    }
}

/// Check that a value of the wrong type is reported with its position.
#[test]
fn corrupt_in_the_middle() {
    let text = example().to_json().unwrap();
    let broken = text.replace("\"elapsed_ns\":999000000", "\"elapsed_ns\":\"long\"");
    let (kind, message) = refused(&broken);
    assert_eq!(kind, Kind::Corrupt);
    assert!(message.contains("expected u64 at line 1 column"), "{message}");
}

/// Check the errors of binary files, missing files and missing directories.
#[test]
fn unreadable_files() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.json");
    assert_eq!(Recording::load(&file).unwrap_err().kind(), Kind::Read);
    fs::write(&file, b"\x7fELF\xff\xfe").unwrap();
    let error = Recording::load(&file).unwrap_err();
    assert_eq!(error.kind(), Kind::Foreign);
    let text = units::chain(&error);
    assert!(text.contains("line 1 column 1"), "{text}");
    assert_eq!(write_file(&dir.path().join("a/b"), "").unwrap_err().kind(), Kind::Write);
}

/// Check that a doubt with a code of a later version can be read.
#[test]
fn doubts_of_later_versions() {
    let text = example().to_json().unwrap().replace("gaps_lost", "moon_phase");
    let recording = Recording::from_json(&text, Path::new("my.json")).unwrap();
    assert_eq!(recording.doubts[0].code, Code::Other);
}

proptest! {
    /// Check that a file with damaged bytes is read or rejected without a panic.
    #[test]
    fn damaged_bytes(places in prop::collection::vec((0usize..2_000, any::<u8>()), 1..6)) {
        let mut bytes = example().to_json().unwrap().into_bytes();
        for (place, byte) in places {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        let text = String::from_utf8_lossy(&bytes);
        let _ = Recording::from_json(&text, Path::new("my.json"));
    }
}
