//! arm64 guests on any machine: exact cells are the same twice, noise is found in them, isolation is
//! reached and restored; and the program itself, under QEMU's user mode.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lab::Program;
use recording::Mode;
use serde_json::Value;

use crate::site::{Site, TOOL, named, text};
use crate::watched::kernels;

const KERNEL: &str = "debian:6.12-cloud-arm64";
/// How to get the programs.
const NOT_BUILT: &str = "not built: cargo xtask guest --arch arm64, and with --tests";
/// The longest time for a guest on a busy host.
const LONG: Duration = Duration::from_secs(3_600);

/// A tick of an ordinary task with its noise traced, calls, an idle second, wake-ups, and slices.
const ALL: &str = "name = \"all\"\nkernels = [\"debian:6.12-cloud-arm64\"]\nvariations = 1\n\
    [[workload]]\nname = \"noise\"\ntrace = \"bpf\"\n\
    noise = { cpu = 0, duration = \"300ms\" }\n\
    [[workload]]\nname = \"fifo\"\nnoise = { cpu = 0, duration = \"1s\", fifo = 50 }\n\
    [[workload]]\nname = \"calls\"\n\
    calls = { cpu = 0, calls = [\"getpid\", \"switch\", \"fork\"], repeats = 20 }\n\
    [[workload]]\nname = \"idle\"\nticks = { cpu = 0, duration = \"1s\" }\n\
    [[workload]]\nname = \"latency\"\n\
    latency = { cpu = 0, duration = \"300ms\", interval = \"1ms\" }\n\
    [[workload]]\nname = \"slices\"\n\
    slices = { spinners = 4, sleepers = 1, duration = \"1s\" }\n";

/// Commands whose output does not depend on the machine, in the folder of recorded trees.
const WORDS: [&[&str]; 9] = [
    &["facts", "--root", "debian-6.1-arm64"],
    &["facts", "--root", "arm64", "--json"],
    &["advise", "--isolate", "2", "--root", "ubuntu-24.04"],
    &["report", "../docs/pictures/noise.json"],
    &["report", "../docs/pictures/slices-6.12.json", "--full"],
    &["report", "../docs/pictures/noise.json", "--json"],
    &["compare", "../docs/pictures/slices-6.1.json", "../docs/pictures/slices-6.12.json"],
    &["scale", "../docs/pictures/noise.json"],
    &["sim", "slices", "4", "--rules", "6.12", "-d", "100ms"],
];

/// The file `noisefloor-NAME-arm64` of the lab.
fn built(name: &str) -> PathBuf {
    let name = format!("../lab/noisefloor-{name}-arm64");
    Path::new(TOOL).with_file_name(name)
}

/// A site, if arm64 guests can run and these programs are built.
fn site(test: &str, programs: &[&str]) -> Option<Site> {
    let qemu = Command::new("qemu-system-aarch64").arg("--version").output();
    let why = match qemu.map(|output| output.status.success()) {
        Ok(true) if programs.iter().all(|name| built(name).exists()) => {
            return Site::new().filter(|site| kernels(site, &[KERNEL]));
        }
        Ok(true) => NOT_BUILT,
        _ => "no qemu-system-aarch64",
    };
    println!("skipped: arm64::{test}: {why}");
    None
}

/// The output of a program of tests in a guest, where none may fail; `programs` are it and the tool.
fn run(
    site: &Site,
    mode: Mode,
    cpus: u32,
    params: &str,
    words: &[&str],
    programs: [&str; 2],
) -> String {
    let [bytes, tool] = programs.map(|name| std::fs::read(built(name)).unwrap());
    let always = ["--test-threads=1", "--show-output"];
    let arguments = [&always[..], words].concat();
    let others = vec![("noisefloor".to_owned(), tool)];
    let program =
        Program { bytes, others, arguments: &arguments, mode, cpus, cpu: None, params };
    let (code, said) = site.run_program(KERNEL, program, LONG);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// Check that exact cells of every kind are the same to the last byte in two labs, and that the counter
/// agrees: a tick is one gap, and traced time has the name of the tick's function.
#[test]
fn to_the_last_byte() {
    let Some(one) = site("to_the_last_byte", &["agent"]) else { return };
    let two = Site::new().unwrap();
    let [cells, again] =
        [&one, &two].map(|site| site.cells(&[&site.file("all.toml", ALL)], 0));
    let answer = |site: &Site, cell: &Value| {
        std::fs::read(site.kept(cell).join("answer")).unwrap()
    };
    for (cell, other) in cells.iter().zip(&again) {
        assert!(answer(&one, cell) == answer(&two, other), "{}", cell["name"]);
        assert_eq!(cell["counts"], other["counts"], "{}", cell["name"]);
    }
    let noise = &named(&cells, "noise")["summary"];
    assert_eq!(noise["culprits"][0]["name"], "tick_nohz_handler", "{noise}");
    let ticks = &named(&cells, "fifo")["summary"]["gap_instructions"]["values"];
    let counts = ticks.as_array().unwrap().iter().map(|value| value[1].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), 250, "CONFIG_HZ=250, for 1 s: {ticks}");
}

/// Check that injected noise of known kinds is found and named.
#[test]
fn injected() {
    let Some(site) = site("injected", &["agent", "truth", "tool"]) else { return };
    let said = run(&site, Mode::Exact, 1, "", &[], ["truth", "tool"]);
    for test in ["late::late_wakeups", "noise::a_thread", "switches::ordinary_spinners"] {
        assert!(said.contains(&format!("{test} ... ok")), "{said}");
    }
}

/// Check that CPUs are isolated, and settings restored after each of twenty runs that were killed.
#[test]
fn isolated() {
    let Some(site) = site("isolated", &["agent", "isolation", "tool"]) else { return };
    let params = "nohz_full=1 isolcpus=1 rcu_nocbs=1 NOISEFLOOR_TEST_KILLS=20";
    let skipped = ["what_would_help", "trying::", "proving::", "storms::"];
    let words = skipped.map(|test| ["--skip", test]).concat();
    let said = run(&site, Mode::Timed, 2, params, &words, ["isolation", "tool"]);
    let killed = said.lines().filter(|line| line.contains(" killed while "));
    killed.for_each(|line| println!("{line}"));
}

/// Check that facts, reports and comparisons of the arm64 program, under QEMU's user mode, are those of
/// this machine's program to the last byte.
#[test]
fn user_mode() {
    let tool = built("tool");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let emulator = "qemu-aarch64";
    let has_emulator = Command::new(emulator).arg("--version").output().is_ok();
    if !tool.exists() || !has_emulator {
        let why = if has_emulator { NOT_BUILT } else { "no qemu-aarch64" };
        return println!("skipped: arm64::user_mode: {why}");
    }
    let outputs = |words: &[&str]| {
        let mut here = Command::new(TOOL);
        let mut there = Command::new(emulator);
        there.arg(&tool);
        [&mut here, &mut there].map(|command| {
            let output = command.current_dir(&fixtures).args(words).output().unwrap();
            // The time at which facts were read.
            let is_same = |line: &&str| !line.contains("\"taken\": ");
            let said = text(&output.stdout);
            let lines: Vec<_> = said.lines().filter(is_same).collect();
            (output.status.code(), lines.join("\n"), text(&output.stderr))
        })
    };
    for words in WORDS {
        let [here, there] = outputs(words);
        assert!(!here.1.is_empty(), "{words:?}: {}", here.2);
        assert_eq!(here, there, "{words:?}");
    }
}
