//! Programs that wait actively: they end, with any policy.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{alone, cpu, text, tool};

/// The file that ends the program of that name here.
const END: &str = "NOISEFLOOR_TEST_END";
/// The time that another task waits for a CPU before the program becomes ordinary.
const OTHER_LIMIT: Duration = Duration::from_secs(20);

/// Runs one of the programs below; returns the recording's doubts.
fn doubts(options: &[&str], program: &str, dir: &Path) -> Value {
    let file = dir.join("run.json");
    let own = std::env::current_exe().unwrap();
    let mut run = tool(&["run", "-o", file.to_str().unwrap()]);
    run.args(options).arg("--").arg(own);
    run.args(["--ignored", "--exact", program, "--test-threads=1"]);
    run.env(END, dir.join("end")).env("NOISEFLOOR_STATE", dir);
    let done = run.stderr(std::process::Stdio::piped()).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{options:?}: {}", text(&done.stderr));
    let recording: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    recording["doubts"].clone()
}

fn starved(doubts: &Value) -> Option<&str> {
    let all = doubts.as_array().unwrap().iter();
    let mut starved = all.filter(|doubt| doubt["code"] == "made_ordinary");
    starved.next().map(|doubt| doubt["text"].as_str().unwrap())
}

/// Check that a program whose first thread spins until its second one has run ends: as an
/// ordinary program by itself, with SCHED_FIFO on one CPU because it is made ordinary, which is
/// reported, and on two CPUs.
#[test]
fn a_thread_waits_for_its_own() {
    let Some(cpu) = cpu("a_thread_waits_for_its_own") else { return };
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let run = |options: &[&str]| {
        doubts(options, "spinning::spins_until_its_thread_has_run", dir.path())
    };
    assert_eq!(starved(&run(&["-c", &cpu])), None);
    let on_one = run(&["-c", &cpu, "--fifo", "50"]);
    let said = starved(&on_one).unwrap_or_else(|| panic!("{on_one}"));
    assert!(said.starts_with("the program's own thread "), "{said}");
    assert!(said.contains("made ordinary (SCHED_OTHER)"), "{said}");
    let two = format!("0,{cpu}");
    let facts = facts::Facts::read(&facts::Root::live());
    match isolate::require_ordinary_share(&two.parse().unwrap(), &facts) {
        Ok(()) => drop(run(&["-c", &two, "--fifo", "50"])),
        Err(why) => println!("not on two CPUs here: {why}"),
    }
}

/// Check that another task that may run on that CPU only does run, at the latest when the
/// program is made ordinary, which is reported then.
#[test]
fn another_task_has_its_turn() {
    let Some(cpu) = cpu("another_task_has_its_turn") else { return };
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--ignored", "--exact", "spinning::ends_it_from_its_cpu"]);
    other.env("NOISEFLOOR_TEST_CPU", &cpu).env(END, dir.path().join("end"));
    let mut other = other.stdout(std::process::Stdio::null()).spawn().unwrap();
    let said = doubts(
        &["-c", &cpu, "--fifo", "50"],
        "spinning::spins_until_the_end",
        dir.path(),
    );
    let took = began.elapsed();
    assert!(other.wait().unwrap().success());
    match starved(&said) {
        // The kernel keeps a share for ordinary tasks here.
        None => assert!(took < OTHER_LIMIT + OTHER_LIMIT, "{took:?}"),
        Some(said) => assert!(took >= OTHER_LIMIT, "{took:?}: {said}"),
    }
}

/// Not a test: spins until another of its threads has run.
#[test]
#[ignore = "started by another test"]
fn spins_until_its_thread_has_run() {
    if std::env::var_os(END).is_none() {
        return;
    }
    static HAS_RUN: AtomicBool = AtomicBool::new(false);
    let thread = std::thread::spawn(|| HAS_RUN.store(true, Ordering::SeqCst));
    while !HAS_RUN.load(Ordering::SeqCst) {
        std::hint::spin_loop();
    }
    thread.join().unwrap();
}

/// Not a test: reports its start, and spins until a file exists.
#[test]
#[ignore = "started by another test"]
fn spins_until_the_end() {
    let Some(end) = std::env::var_os(END) else { return };
    fs::write(Path::new(&end).with_file_name("begun"), "").unwrap();
    while !Path::new(&end).exists() {
        std::hint::spin_loop();
    }
}

/// Not a test: waits until that has started, and ends it from the same CPU.
#[test]
#[ignore = "started by another test"]
fn ends_it_from_its_cpu() {
    let Some(end) = std::env::var_os(END) else { return };
    let cpu = std::env::var("NOISEFLOOR_TEST_CPU").unwrap();
    let begun = Path::new(&end).with_file_name("begun");
    while !begun.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    isolate::pin(cpu.parse().unwrap()).unwrap();
    fs::write(end, "").unwrap();
}
