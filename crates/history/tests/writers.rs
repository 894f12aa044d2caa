//! Many writers, killed writers, damage, later versions, full disks.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use history::{Filter, History, Kind, RunNumbers};
use summary::MetricNumber;

const MACHINE: &str = "here";
/// The file of a child process that appends, and how many entries it appends.
const FILE: &str = "NOISEFLOOR_TEST_HISTORY";
const COUNT: &str = "NOISEFLOOR_TEST_ENTRIES";

fn numbers(value: f64) -> RunNumbers {
    let metric = |metric: &str, cpu, value| MetricNumber {
        metric: metric.to_owned(),
        cpu: Some(units_cpu(cpu)),
        value,
        better: None,
    };
    RunNumbers {
        taken: "2026-11-26T00:00:00Z".to_owned(),
        metrics: vec![
            metric("noise_ppm", 0, value),
            metric("noise_ppm", 1, value / 2.0),
            metric("gap_ns_max", 0, 7.0),
        ],
        culprits: None,
        facts: vec![("tick.hz".to_owned(), 250.into())],
        parameters: Vec::new(),
        doubts: Vec::new(),
    }
}

fn units_cpu(cpu: u32) -> units::Cpu {
    units::Cpu::new(cpu)
}

fn filter() -> Filter {
    let (machine, kind) = (MACHINE.to_owned(), "check".to_owned());
    Filter { machine, kind, since: None }
}

fn append(file: &Path, value: f64) -> i64 {
    let mut history = History::create(file).unwrap();
    history.append(MACHINE, "check", &numbers(value)).unwrap()
}

fn values(file: &Path) -> Vec<f64> {
    let history = History::open(file).unwrap().unwrap();
    history.series(&filter(), "noise_ppm").unwrap().values
}

/// Starts a process that appends so many entries.
fn child(file: &Path, count: u32) -> Child {
    let mut own = Command::new(std::env::current_exe().unwrap());
    own.args(["--ignored", "--exact", "--nocapture", "appends"]).env(FILE, file);
    own.env(COUNT, count.to_string()).stdout(Stdio::null());
    own.spawn().unwrap()
}

/// Not a test: appends entries, each with a database connection of its own.
#[test]
#[ignore = "started by other tests"]
fn appends() {
    let Ok(file) = std::env::var(FILE) else { return };
    let count: u32 = std::env::var(COUNT).unwrap().parse().unwrap();
    for value in 0..count {
        append(Path::new(&file), f64::from(value));
    }
}

/// Check that entries are read as they were written, that equal facts are stored once, and that old entries
/// are deleted.
#[test]
fn entries() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state/noisefloor/history.db");
    assert!(History::open(&file).unwrap().is_none());
    assert_eq!([append(&file, 3.0), append(&file, 5.0)], [1, 2]);
    let mut later = numbers(9.0);
    "2026-11-27T00:00:00Z".clone_into(&mut later.taken);
    later.facts[0].1 = 1000.into();
    let mut history = History::create(&file).unwrap();
    assert_eq!(history.append(MACHINE, "check", &later).unwrap(), 3);
    history.append("elsewhere", "check", &later).unwrap();
    history.append(MACHINE, "noise", &later).unwrap();
    let series = history.series(&filter(), "noise_ppm").unwrap();
    assert_eq!(series.values, [3.0, 5.0, 9.0]);
    assert_eq!(series.facts[0], series.facts[1]);
    assert_eq!(history.facts(series.facts[2]).unwrap(), later.facts);
    let stored = history.entries(2, 3).unwrap();
    assert_eq!(
        stored.iter().map(|one| &one.run).collect::<Vec<_>>(),
        [&numbers(5.0), &later]
    );
    assert_eq!(history.entries(3, 9).unwrap_err().kind(), Kind::NoEntry);
    assert_eq!(history.metrics(&filter()).unwrap(), ["gap_ns_max", "noise_ppm"]);
    let kinds = history.kinds(MACHINE).unwrap();
    assert_eq!(kinds, [("check".to_owned(), 3), ("noise".to_owned(), 1)]);
    let since = Filter { since: Some("2026-11-27".to_owned()), ..filter() };
    assert_eq!(history.series(&since, "noise_ppm").unwrap().values, [9.0]);
    assert_eq!(history.prune("2026-11-27").unwrap(), 2);
    assert_eq!(history.series(&filter(), "noise_ppm").unwrap().values, [9.0]);
}

/// Check that no entry of 100 processes that write at once is lost, the creation of the file
/// included.
#[test]
fn a_hundred_writers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut children: Vec<Child> = (0..100).map(|_| child(&file, 3)).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(values(&file).len(), 300);
}

/// Check that the file is never damaged if a writer is killed at a random moment, 300 times by default, and
/// that no entry is there in part.
#[test]
fn killed_writers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    append(&file, 0.0);
    let (mut random, mut killed) = (7_u64, 0);
    for _ in 0..300 {
        let mut writer = child(&file, 1000);
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_micros((random >> 33) % 30_000));
        writer.kill().unwrap();
        killed += u32::from(writer.wait().unwrap().signal() == Some(9));
    }
    assert_eq!(killed, 300);
    let history = History::open(&file).unwrap().unwrap();
    history.check().unwrap();
    let series = history.series(&filter(), "noise_ppm").unwrap();
    let gaps = history.series(&filter(), "gap_ns_max").unwrap();
    assert_eq!(series.ids, gaps.ids);
    let last = *series.ids.last().unwrap();
    println!("{last} entries of 300 killed writers");
    assert_eq!(history.entries(1, last).unwrap().len(), series.ids.len());
}

/// Check that damage, another program's database, and a later version are refused with their reasons, and
/// left as they are.
#[test]
fn other_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let file = folder.path().join(name);
        fs::write(&file, bytes).unwrap();
        file
    };
    let text = write("text", b"no database, but a text that is longer than a header\n");
    let refused = History::open(&text).unwrap_err();
    assert_eq!(refused.kind(), Kind::Damaged, "{refused}");
    assert!(refused.to_string().contains(".recover"), "{refused}");
    assert_eq!(History::create(&text).unwrap_err().kind(), Kind::Damaged);
    assert!(fs::read(&text).unwrap().starts_with(b"no database"));

    let good = folder.path().join("good.db");
    for value in 0..50 {
        append(&good, f64::from(value));
    }
    let bytes = fs::read(&good).unwrap();
    let mut damaged = bytes.clone();
    damaged[4096..8192].fill(0x5a);
    let damaged = write("damaged.db", &damaged);
    let opened = History::open(&damaged).and_then(|history| history.unwrap().check());
    assert_eq!(opened.unwrap_err().kind(), Kind::Damaged);

    let connection = rusqlite::Connection::open(&good).unwrap();
    connection.pragma_update(None, "user_version", history::SCHEMA + 1).unwrap();
    let newer = History::open(&good).unwrap_err();
    assert_eq!(newer.kind(), Kind::Newer, "{newer}");
    connection.pragma_update(None, "application_id", 3).unwrap();
    assert_eq!(History::create(&good).unwrap_err().kind(), Kind::Damaged);
    assert_eq!(History::open(folder.path()).unwrap_err().kind(), Kind::Access);
}

/// Check that a full disk loses no earlier entry.
#[test]
fn full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
        .arg(folder.path())
        .stderr(Stdio::null())
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        println!("skipped: full_disk: no file system can be mounted");
        return;
    }
    let file = folder.path().join("history.db");
    let mut stored = 0_u32;
    let mut history = History::create(&file).unwrap();
    let refused = loop {
        match history.append(MACHINE, "check", &numbers(f64::from(stored))) {
            Ok(_) => stored += 1,
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused.kind(), Kind::Full | Kind::Access), "{refused}");
    assert!(stored > 0);
    drop(history);
    let history = History::open(&file).unwrap().unwrap();
    let read = history.series(&filter(), "noise_ppm").unwrap().values.len();
    history.check().unwrap();
    drop(history);
    let _ = Command::new("umount").arg("-l").arg(folder.path()).status();
    assert_eq!(u32::try_from(read).unwrap(), stored);
}
