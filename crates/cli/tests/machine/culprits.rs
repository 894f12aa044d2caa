//! Attribution, as users request it: a single gap with its events, a trace, the parts.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::tool::{first_cpu, json, on, run, text, turn};

/// Whether events can be traced here; prints the reason if not.
pub(crate) fn can_watch(name: &str) -> bool {
    let tried = run(&["noise", "-d", "1ms", "-c", &first_cpu(), "--source", "bpf"]);
    let can = tried.status.code() == Some(0);
    if !can {
        println!("skipped: {name}: {}: {}", tried.status, text(&tried.stderr).trim());
    }
    can
}

fn read(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Check that the first gap above a limit ends the run, and that the events around it are
/// reported in order.
#[test]
fn what_was_that_one() {
    let _turn = turn();
    if !can_watch("what_was_that_one") {
        return;
    }
    let cpu = first_cpu();
    let output = run(&["noise", "-d", "1h", "-c", &cpu, "--stop-above", "1us"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    let places = ["more than 1 µs", "start of the gap", "end of the gap"]
        .map(|part| report.find(part).unwrap_or_else(|| panic!("no {part}: {report}")));
    assert!(places.is_sorted(), "{report}");
}

/// Check that a trace and the recording have the same gaps, and that timers are in it.
#[test]
fn a_trace() {
    let _turn = turn();
    if !can_watch("a_trace") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [trace, recording] =
        ["trace.json", "my.json"].map(|name| dir.path().join(name).display().to_string());
    let cpu = first_cpu();
    let args = ["noise", "-d", "1", "-c", &cpu, "--trace", &trace, "-o", &recording];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let recording = read(&recording);
    let gaps = recording["series"]["cpus"][0]["gaps"].as_array().unwrap().len();
    let trace = read(&trace);
    let slices = trace["traceEvents"].as_array().unwrap();
    let drawn = slices.iter().filter(|slice| slice["cat"] == "gap");
    assert_eq!(drawn.clone().count(), gaps);
    let pid = cpu.parse::<u64>().unwrap();
    assert!(drawn.clone().all(|slice| slice["ph"] == "X" && slice["pid"] == pid));
    assert!(slices.iter().any(|slice| slice["ph"] == "X" && slice["cat"] == "interrupt"));
}

/// Check that the culprits of a CPU and of all CPUs add up to the noise, that threads have
/// their numbers, and that everything is named.
#[test]
fn parts_and_names() {
    let _turn = turn();
    if !can_watch("parts_and_names") {
        return;
    }
    let object = json(&["noise", "-d", "1", "--json"]);
    let summary = &object["summary"];
    assert_eq!(summary["source"], "bpf");
    let sum = |culprits: &Value| -> u64 {
        culprits.as_array().unwrap().iter().map(|c| c["ns"].as_u64().unwrap()).sum()
    };
    let cpus = summary["cpus"].as_array().unwrap();
    let noise: u64 = cpus.iter().map(|cpu| cpu["noise_ns"].as_u64().unwrap()).sum();
    assert_eq!(cpus.iter().map(|cpu| sum(&cpu["culprits"])).sum::<u64>(), noise);
    assert_eq!(sum(&summary["culprits"]), noise);
    let all = summary["culprits"].as_array().unwrap();
    for culprit in all {
        assert!(!culprit["name"].as_str().unwrap().is_empty(), "{culprit}");
        let is_thread = culprit["kind"] == "thread";
        for key in ["tid", "pid", "prio"] {
            assert_eq!(culprit[key].is_number(), is_thread, "{culprit}");
        }
        assert!(culprit["inside_ns"].as_u64() <= culprit["ns"].as_u64(), "{culprit}");
    }
    assert!(all.iter().any(|culprit| culprit["kind"] == "timer"), "{all:?}");
}

/// Check that own threads are those of one process, that they add up to the own cost, and that the
/// thread that reads events hardly wakes up: 20 times a second would be 40 gaps.
#[test]
fn own_cost() {
    let _turn = turn();
    if !can_watch("own_cost") {
        return;
    }
    let object = json(&["noise", "-d", "2", "--json"]);
    let summary = &object["summary"];
    let all = summary["culprits"].as_array().unwrap();
    let own: Vec<&Value> = all.iter().filter(|culprit| culprit["own"] == true).collect();
    assert!(own.iter().all(|culprit| culprit["pid"] == own[0]["pid"]), "{own:?}");
    for key in ["ns", "gaps"] {
        let sum: u64 = own.iter().map(|culprit| culprit[key].as_u64().unwrap()).sum();
        assert_eq!(summary["own"][key], sum, "{own:?}");
    }
    assert!(summary["own"]["gaps"].as_u64().unwrap() < 20, "{own:?}");
}

/// Check that time named stolen is at most that of `/proc/stat`, within its step, and that the
/// clock of the events agrees with it; and that an event's entry, inside and exit add up to its
/// time.
#[test]
fn steal_and_edges() {
    let _turn = turn();
    if !can_watch("steal_and_edges") {
        return;
    }
    let object = json(&["noise", "-d", "2", "--json"]);
    // A step of 10 ms; and the kernel counts at the next tick, which may itself be stolen.
    let step = 10_000_000;
    for cpu in object["summary"]["cpus"].as_array().unwrap() {
        let culprits = cpu["culprits"].as_array().unwrap();
        let ns = |value: &Value| value.as_u64().unwrap();
        for culprit in culprits.iter().filter(|culprit| is_event(culprit)) {
            let parts = ["entry_ns", "inside_ns", "exit_ns"].map(|key| ns(&culprit[key]));
            assert_eq!(parts.iter().sum::<u64>(), ns(&culprit["ns"]), "{culprit}");
        }
        let stolen = culprits.iter().filter(|culprit| culprit["kind"] == "steal");
        let named: u64 = stolen.map(|culprit| ns(&culprit["ns"])).sum();
        let Some(counted) = cpu["proc"]["steal_ns"].as_u64() else {
            println!("skipped: steal_and_edges: this machine has no steal clock");
            assert_eq!(named, 0, "{culprits:?}");
            continue;
        };
        let steal = &cpu["steal"];
        let longest = ns(&cpu["gap_ns"]["max"]);
        assert_eq!(named, ns(&steal["proven_ns"]));
        assert!(named <= counted + step + longest, "{named} of {counted}: {steal}");
        assert!(
            ns(&steal["at_least_ns"]) <= counted + step + longest,
            "{counted}: {steal}"
        );
        assert!(
            counted <= ns(&steal["at_most_ns"]) + step + longest,
            "{counted}: {steal}"
        );
    }
}

fn is_event(culprit: &Value) -> bool {
    !["steal", "unexplained"].iter().any(|kind| culprit["kind"] == *kind)
}

/// A shell that never sleeps.
const SPIN: &str = "while :; do :; done";

/// Processes that load a CPU until this is dropped.
struct Busy(Vec<std::process::Child>);

impl Busy {
    fn on(cpu: &str, count: usize, script: &str) -> Self {
        Self::with("sh".as_ref(), cpu, count, script)
    }

    fn with(shell: &Path, cpu: &str, count: usize, script: &str) -> Self {
        let start = |_| on(cpu, shell).args(["-c", script]).spawn();
        Self((0..count).map_while(|number| start(number).ok()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Check that no event is lost on a CPU where fifty processes spin and others wake up
/// continuously.
#[test]
fn loses_nothing_under_load() {
    let _turn = turn();
    if !can_watch("loses_nothing_under_load") {
        return;
    }
    let cpu = first_cpu();
    let spinning = Busy::on(&cpu, 50, SPIN);
    let _waking = Busy::on(&cpu, 4, "while :; do sleep 0.001; done");
    if spinning.0.len() < 50 {
        println!("skipped: loses_nothing_under_load: there is no taskset");
        return;
    }
    // The loop gets a fiftieth of the CPU: other doubts than lost events are expected.
    let output = run(&["noise", "-d", "3", "-c", &cpu, "--json"]);
    let object: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {:?} {}", output.status, text(&output.stderr))
    });
    let doubts = object["doubts"].as_array().unwrap();
    assert!(doubts.iter().all(|doubt| doubt["code"] != "events_lost"), "{doubts:?}");
    let culprits = object["summary"]["culprits"].as_array().unwrap();
    let threads = culprits.iter().filter(|culprit| culprit["kind"] == "thread");
    assert!(threads.count() > 10, "{culprits:?}");
}

/// A cgroup of version 2 with the name of a service; removed when it is dropped.
struct Service(std::path::PathBuf);

impl Service {
    fn start(name: &str) -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
        let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mount = lines.find(|words| words[2] == "cgroup2")?[1].to_owned();
        let folder = Path::new(&mount).join(name);
        std::fs::create_dir(&folder).ok()?;
        Some(Self(folder))
    }

    fn with(&self, child: &std::process::Child) {
        std::fs::write(self.0.join("cgroup.procs"), child.id().to_string()).unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Check that a program that runs in the cgroup of a service is attributed to it, and that a hostile name
/// of one is escaped in the report.
#[test]
fn units_of_programs() {
    let _turn = turn();
    if !can_watch("units_of_programs") {
        return;
    }
    let cpu = first_cpu();
    let name = format!("noisefloor-test-{}\u{1b}[2J\u{202e}.service", std::process::id());
    let Some(service) = Service::start(&name) else {
        return println!("skipped: units_of_programs: no cgroup v2 can be changed");
    };
    let neighbour = Busy::on(&cpu, 1, SPIN);
    service.with(&neighbour.0[0]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("check.json").to_str().unwrap().to_owned();
    let args = ["check", "-c", &cpu, "--rest", "1s", "-d", "1s", "-q", "-o", &file];
    run(&args);
    drop(neighbour);
    drop(service);
    let object = json(&["report", &file, "--json"]);
    let groups = object["summary"]["verdict"]["split"]["groups"].as_array().unwrap();
    let found =
        groups.iter().find(|group| group["name"] == "sh" && group["unit"].is_object());
    let unit = &found.unwrap_or_else(|| panic!("{groups:?}"))["unit"];
    assert_eq!(unit["kind"], "systemd", "{unit}");
    for full in [&[][..], &["--full"]] {
        let report = text(&run(&[&["report", &file], full].concat()).stdout);
        assert!(report.contains("noisefloor-test-"), "{report}");
        assert!(!report.contains(['\u{1b}', '\u{202e}']), "{report}");
    }
}

/// Check that the verdict of `check` names a program that uses the measured CPU, and calls the
/// machine busy.
#[test]
fn busy_programs() {
    let _turn = turn();
    if !can_watch("busy_programs") {
        return;
    }
    let (cpu, dir) = (first_cpu(), tempfile::tempdir().unwrap());
    let shell = dir.path().join("own-neighbour");
    std::os::unix::fs::symlink("/bin/sh", &shell).unwrap();
    let neighbour = Busy::with(&shell, &cpu, 1, SPIN);
    let object = json(&["check", "-c", &cpu, "--rest", "1s", "-d", "1s", "--json"]);
    drop(neighbour);
    let verdict = &object["summary"]["verdict"];
    assert_eq!(verdict["busy"], true, "{verdict}");
    let groups = verdict["split"]["groups"].as_array().unwrap();
    let of_neighbour = |group: &&Value| group["name"] == "own-neighbour";
    let group = groups.iter().find(of_neighbour).unwrap_or_else(|| panic!("{verdict}"));
    assert_eq!(
        (&group["category"], &group["processes"]),
        (&"programs".into(), &1.into())
    );
    assert!(group["part"]["ns"].as_u64().unwrap() > 0, "{group}");
}
