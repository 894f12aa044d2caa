//! Guests with traced events: injected noise is found in them, on each of Debian's kernels, and
//! the result does not depend on the host.

use std::time::Duration;

use lab::Program;
use recording::Mode;
use serde_json::Value;

use crate::guest_program::GuestProgram;
use crate::site::{NEW, OLD, Site, named, text};

/// A kernel without the helper that gives programs the running task (since 5.11), and whose
/// `sched_switch` does not have the previous task's state (since 5.18).
const ANCIENT: &str = "debian:5.10-cloud";
/// Kernels for real time, in addition to the usual ones: their scheduler and interrupts differ.
pub(crate) const REAL_TIME: [&str; 2] = ["debian:6.1-rt", "debian:6.12-rt"];
/// How long a guest may take on a busy host.
const LONG: Duration = Duration::from_secs(1_200);

/// Traced noise, and the same calls with and without tracing.
const WATCHED: &str = "name = \"watched\"\nkernels = [\"debian:6.1-cloud\"]\n\
    [[workload]]\nname = \"noise\"\ntrace = \"bpf\"\n\
    noise = { cpu = 0, duration = \"300ms\" }\n\
    [[workload]]\nname = \"switch\"\n\
    calls = { cpu = 0, calls = [\"switch\"], repeats = 20 }\n\
    [[workload]]\nname = \"switch-bpf\"\ntrace = \"bpf\"\n\
    calls = { cpu = 0, calls = [\"switch\"], repeats = 20 }\n";
/// A traced idle CPU.
const IDLE: &str = "[[workload]]\nname = \"idle\"\ntrace = \"bpf\"\n\
    ticks = { cpu = 0, duration = \"300ms\" }\n";

/// Downloads these kernels into the cache that all tests share.
pub(crate) fn kernels(site: &Site, names: &[&str]) -> bool {
    let output = site.output(&[&["lab", "kernels"], names].concat());
    let is_there = output.status.success();
    if !is_there {
        println!("skipped: {}", text(&output.stderr).trim().replace('\n', " "));
    }
    is_there
}

/// The output of the tests of crate `blame` in a guest of that kernel, where none of them may
/// fail.
fn said_there(site: &Site, kernel: &str, tests: GuestProgram) -> String {
    let words = ["--test-threads=1", "--show-output"];
    let program = Program {
        bytes: tests.program,
        others: tests.libraries,
        arguments: &words,
        mode: Mode::Exact,
        cpus: 1,
        cpu: None,
        params: "",
    };
    let (code, said) = site.run_program(kernel, program, LONG);
    assert_eq!(code, Some(0), "{kernel}: {said}");
    said
}

/// Check that these tests ran there, and that only tests that the kernel does not support were
/// skipped.
fn ran(kernel: &str, said: &str, certain: &[&str]) {
    let told: Vec<&str> =
        said.lines().filter_map(|line| line.strip_prefix("skipped: ")).collect();
    let known = [
        "there is one CPU",
        "a real-time kernel",
        "this kernel has no osnoise tracer",
        "no SMIs are raised",
    ];
    let is_known = |why: &&str| known.iter().any(|known| why.contains(known));
    assert!(told.iter().all(is_known), "{kernel}: {told:?}");
    for test in certain {
        assert!(said.contains(&format!("{test} ... ok")), "{kernel}: {said}");
    }
}

/// The tests of crate `blame`; `name` is the calling test.
fn tests_for_guests(name: &str) -> Option<GuestProgram> {
    let found = GuestProgram::find("truth");
    if found.is_none() {
        println!("skipped: {name}: not built: cargo xtask guest --tests");
    }
    found
}

/// Check that noise of known kinds is found in guests of Debian's kernels, real-time kernels
/// included, and that the reason why a task left its CPU is reported correctly. How a kernel
/// exposes that reason differs by version and by preemption model.
#[test]
fn injected() {
    let Some(site) = Site::new() else { return };
    let Some(program) = tests_for_guests("injected") else { return };
    let certain =
        ["late::late_wakeups", "noise::a_thread", "switches::ordinary_spinners"];
    if !kernels(&site, &REAL_TIME) {
        return;
    }
    for pair in [[OLD, NEW], REAL_TIME] {
        std::thread::scope(|scope| {
            for kernel in pair {
                let (site, program) = (&site, program.clone());
                scope.spawn(move || {
                    ran(kernel, &said_there(site, kernel, program), &certain);
                });
            }
        });
    }
}

/// Check that noise is found by eBPF on a kernel where programs have to copy the running task's
/// fields, and that recording switches, which that kernel does not support, is refused with the
/// reason.
#[test]
fn before_5_11() {
    let Some(site) = Site::new() else { return };
    let Some(program) = tests_for_guests("before_5_11") else { return };
    if !kernels(&site, &[ANCIENT]) {
        return;
    }
    let said = said_there(&site, ANCIENT, program);
    // The output of each test follows the list of all tests, in the order of their names.
    let (noise, switches) = said.split_once("---- switches::").unwrap();
    ran(ANCIENT, noise, &["noise::a_thread"]);
    let refused: Vec<&str> =
        switches.lines().filter(|line| line.contains("eBPF programs: ")).collect();
    let why = "the kernel's verifier refuses the program ";
    let help = "hint: use Linux 5.18 or newer, where the tracepoint sched_switch has the \
                previous task's state; this is 5.10.";
    assert!(!refused.is_empty(), "{said}");
    for line in refused {
        assert!(line.contains(why) && line.contains(help), "{line}");
    }
}

/// Check that a traced cell of such a kernel has its tick's name, and reports the cost of
/// tracing for a switch.
#[test]
fn cells_before_5_11() {
    let Some(site) = Site::new() else { return };
    if !kernels(&site, &[ANCIENT]) {
        return;
    }
    let file = site.file("watched.toml", &WATCHED.replace(OLD, ANCIENT));
    let cells = site.cells(&[&file], 0);
    let noise = named(&cells, "noise");
    assert_eq!(noise["summary"]["culprits"][0]["name"], "tick_sched_timer");
    let threads = noise["summary"]["culprits"].as_array().unwrap();
    assert!(threads.iter().any(|one| one["kind"] == "thread"), "{threads:?}");
    let added = &named(&cells, "switch-bpf")["added"][0];
    assert!(added["added_instructions"].as_f64().unwrap() > 100.0, "{added}");
}

fn sum(list: &Value, of: impl Fn(&Value) -> &Value) -> u64 {
    list.as_array().unwrap().iter().map(|one| of(one).as_u64().unwrap()).sum()
}

/// Check that traced cells are the same to the last byte, too; that the tick is attributed to
/// its function by name, all shares add up, and tracing has a cost.
#[test]
fn to_the_last_byte() {
    let Some(site) = Site::new() else { return };
    let other = Site::new().unwrap();
    let [cells, again] = [&site, &other].map(|site| {
        let file = site.file("watched.toml", &[WATCHED, IDLE].concat());
        site.cells(&[&file], 0)
    });
    let answer = |site: &Site, cell: &Value| {
        std::fs::read(site.kept(cell).join("answer")).unwrap()
    };
    for (one, two) in cells.iter().zip(&again) {
        assert!(answer(&site, one) == answer(&other, two), "{}", one["name"]);
        assert_eq!(one["counts"], two["counts"], "{}", one["name"]);
    }
    let noise = named(&cells, "noise");
    let culprits = &noise["summary"]["culprits"];
    assert_eq!(culprits[0]["name"], "tick_sched_timer", "{culprits}");
    let gaps = sum(&noise["series"]["cpus"][0]["gaps"], |gap| &gap[1]);
    assert_eq!(sum(culprits, |culprit| &culprit["ns"]), gaps);
    let idle = &named(&cells, "idle")["summary"];
    // The counter includes the time outside of tracepoints, too: entry, exit, the idle thread.
    let counted = sum(&idle["cpus"], |cpu| &cpu["instructions"]);
    let ran = sum(&idle["culprits"], |culprit| &culprit["ns"]);
    assert!(counted / 3 < ran && ran < counted, "{ran} {counted}");
    let timer = |culprit: &&Value| culprit["name"] == "tick_sched_timer";
    let ticks = idle["culprits"].as_array().unwrap().iter().find(timer).unwrap();
    let entries = sum(&idle["cpus"], |cpu| &cpu["timer_entries"]);
    assert!(
        (1..=entries).contains(&ticks["gaps"].as_u64().unwrap()),
        "{entries}: {ticks}"
    );
    let added = named(&cells, "switch-bpf")["added"][0].clone();
    assert_eq!(added["event"], "switch");
    assert!(added["added_instructions"].as_f64().unwrap() > 100.0, "{added}");
}
