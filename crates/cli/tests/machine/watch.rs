//! A program that runs already, observed as users do.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::counters::{Counters, Reading, schedstat};
use crate::culprits::can_watch;
use crate::environment::end_with_test;
use crate::outranking::{self, Outranking};
use crate::tool::{
    first_cpu, is_root, json, on, public_tool, run, signal, spawn, text, tool, turn,
    unprivileged, wait_for,
};

/// A shell with a script, which ends with the test.
struct Script(Child);

impl Script {
    fn start(mut command: Command, script: &str) -> Self {
        command.args(["-c", script]).stdout(Stdio::null()).stderr(Stdio::null());
        end_with_test(&mut command, libc::SIGKILL);
        Self(command.spawn().unwrap())
    }

    /// A loop on one CPU, which other load of the machine does not keep from it for long: a wait that has
    /// begun before the measurement is not seen.
    fn spins_on(cpu: &str) -> Self {
        let mut command = on(cpu, "setsid");
        command.args(["nice", "-n", "-20", "sh"]);
        let spins = Self::start(command, "while :; do :; done");
        // The scheduler divides time among sessions first (CONFIG_SCHED_AUTOGROUP).
        let autogroup = format!("/proc/{}/autogroup", spins.pid());
        let is_own = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", spins.pid())).unwrap();
            stat.contains("(sh)")
        };
        wait_for("shell", is_own);
        let _ = fs::write(autogroup, "-20");
        spins
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Whether two numbers differ by at most two percent, or so many of the unit.
fn agree(one: u64, other: u64, within: u64) -> bool {
    one.abs_diff(other) <= within.max(one.max(other) / 50)
}

/// Whether the thread of a run, or of what had the CPU, is the one that outranks others.
fn is_named(one: &Value) -> bool {
    one["thread"]["name"] == outranking::NAME
}

/// Check that a thread of high priority that delays a program is named, with its time as its own clock
/// has it; that the program's time on the CPU and waiting for it are all of its time; that all parts and
/// the times of all other threads add up; and the sentence.
#[test]
fn delays_of_a_program() {
    let _turn = turn();
    if !can_watch("delays_of_a_program") {
        return;
    }
    let cpu = first_cpu();
    let spins = Script::spins_on(&cpu);
    let Some(outranking) = Outranking::start("delays_of_a_program", &cpu) else { return };
    let pid = spins.pid();
    let args = ["watch", "-p", &pid, "-d", "3", "--keep", "64", "--json", "--series"];
    let object = json(&args);
    let (summary, series) = (&object["summary"], &object["series"]);
    let [began, elapsed] = ["began_ns", "elapsed_ns"].map(|key| number(&series[key]));
    let busy = outranking.busy_ns(began, began + elapsed);
    drop(outranking);
    let takers = summary["takers"].as_array().unwrap();
    let is_it = |taker: &&Value| is_named(taker);
    let taker = takers.iter().find(is_it).unwrap_or_else(|| panic!("{takers:?}"));
    assert!(agree(number(&taker["ns"]), busy, 0), "{taker}: {busy} ns");
    let [ran, waited] = ["run_ns", "wait_ns"].map(|key| number(&summary[key]));
    // The first and the last switch are seen some microseconds after the begin and before the end.
    assert!(agree(ran + waited, elapsed, 0), "{ran} + {waited}, {elapsed}");
    let parts = summary["parts"].as_object().unwrap().values().map(number).sum::<u64>();
    assert_eq!(parts + number(&summary["unknown_ns"]), waited);
    let taken = takers.iter().map(|taker| number(&taker["ns"])).sum::<u64>();
    assert!(agree(taken, parts, 100_000), "{taken}, {parts}");
    let longest = summary["longest"].as_array().unwrap();
    assert!(longest.iter().map(|delay| number(&delay["ns"])).is_sorted_by(|a, b| a >= b));
    let its_ns = |delay: &Value| {
        let runs = delay["runs"].as_array().unwrap().iter();
        runs.filter(|run| is_named(run)).map(|run| number(&run["ns"])).sum::<u64>()
    };
    // On a busy machine, others delay the program for longer than its 2 ms.
    let has_it = longest.iter().any(|delay| its_ns(delay) > 1_900_000);
    assert!(has_it || number(&longest[0]["ns"]) > 4_000_000, "{longest:?}");
    for delay in longest {
        let part = |key: &str| number(&delay["parts"][key]);
        assert!(its_ns(delay) <= part("realtime_ns") + part("interrupts_ns"), "{delay}");
    }
    for delay in longest {
        let sum = delay["parts"].as_object().unwrap().values().map(number).sum::<u64>();
        assert_eq!(sum, number(&delay["ns"]), "{delay}");
    }
}

/// The least and the most that a thread's counters can have grown between two moments, as they were read at
/// others. A wait that had begun before the first one is not in the least, and one that ended after the last
/// one is in the most, as the kernel counts a wait when it is over.
fn growth(read: &[Reading<[u64; 3]>], from: u64, until: u64) -> [[u64; 2]; 3] {
    let last = |moment| {
        let earlier = read.iter().rfind(|reading| reading.between_ns[1] <= moment);
        earlier.unwrap().value
    };
    let later = |moment| {
        let later = read.iter().filter(|reading| reading.between_ns[0] > moment);
        let mut values = later.map(|reading| reading.value);
        let [_, _, runs] = values.next().unwrap();
        values.find(|value| value[2] > runs).unwrap()
    };
    let ([before, begun], [ending, over]) =
        ([last(from), later(from)], [last(until), later(until)]);
    let between =
        |at: usize| [ending[at].saturating_sub(begun[at]), over[at] - before[at]];
    [0, 1, 2].map(between)
}

/// Check that the time of a thread on CPUs, its waits and its number of runs are those that the kernel
/// counts in `schedstat`, for a thread that sleeps and wakes up beside others.
#[test]
fn the_kernel_counts_the_same() {
    let _turn = turn();
    if !can_watch("the_kernel_counts_the_same") {
        return;
    }
    let cpu = first_cpu();
    let script =
        "while :; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; sleep 0.001; done";
    let sleeps = Script::start(on(&cpu, "sh"), script);
    let _spins = Script::spins_on(&cpu);
    let pid = sleeps.pid();
    let log = tempfile::tempdir().unwrap();
    let log = log.path().join("delays.jsonl");
    let counters = Counters::begin({
        let pid = sleeps.0.id();
        move || schedstat(pid)
    });
    let args = ["watch", "-p", &pid, "-d", "4", "--json", "--series", "--log"];
    let object = json(&[&args[..], &[log.to_str().unwrap()]].concat());
    // The wait that it ended in is counted when it is over.
    let [_, _, runs] = schedstat(sleeps.0.id());
    wait_for("run", || schedstat(sleeps.0.id())[2] > runs + 1);
    let read = counters.end();
    let (summary, series) = (&object["summary"], &object["series"]);
    let [began, elapsed] = ["began_ns", "elapsed_ns"].map(|key| number(&series[key]));
    let grown = growth(&read, began, began + elapsed);
    for ([least, most], key) in grown.into_iter().zip(["run_ns", "wait_ns", "waits"]) {
        let found = number(&summary[key]);
        let is_between = found + found / 50 >= least && found <= most + most / 50;
        println!("{key}: {found}, by the kernel {least} to {most}");
        assert!(is_between, "{key}: {found}, by the kernel {least} to {most}");
    }
    // Delays are written as they happen.
    let log = fs::read_to_string(log).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lengths: Vec<u64> = lines.map(|line| number(&line["ns"])).collect();
    for delay in summary["longest"].as_array().unwrap() {
        assert!(lengths.contains(&number(&delay["ns"])), "{delay}: {lengths:?}");
    }
}

/// A cgroup below the mount point of some hierarchy, with one below it; removed when it is dropped.
struct Groups(PathBuf);

impl Groups {
    fn new(mount: &str) -> Option<Self> {
        let top =
            Path::new(mount).join(format!("noisefloor-watch-{}", std::process::id()));
        fs::create_dir(&top).ok()?;
        let groups = Self(top);
        fs::create_dir(groups.below()).ok()?;
        Some(groups)
    }

    fn below(&self) -> PathBuf {
        // Another clone may run this test at the same time.
        self.0.join(format!("noisefloor-{}\u{1b}[31m.service", std::process::id()))
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir(self.below()).is_err() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = fs::remove_dir(&self.0);
    }
}

/// Check that the processes of a cgroup and of one below it are found, by the directory and by the name of
/// the unit, in hierarchies of v1 and of v2; that a process that starts meanwhile is followed; and that a
/// name with an escape sequence is harmless.
#[test]
fn cgroups_and_units() {
    let _turn = turn();
    if !can_watch("cgroups_and_units") {
        return;
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mounted = |kind: &str, option: &str| {
        let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let is_it = |words: &Vec<&str>| {
            words[2] == kind && words[3].split(',').any(|o| o == option)
        };
        lines.find(is_it).map(|words| words[1].to_owned())
    };
    let hierarchies = [mounted("cgroup2", "rw"), mounted("cgroup", "cpu")];
    for mount in hierarchies.into_iter().flatten() {
        let Some(groups) = Groups::new(&mount) else {
            println!("skipped: cgroups_and_units: no new cgroup in {mount}");
            continue;
        };
        let mut enter = Command::new("sh");
        let script = "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"";
        enter.args(["-c", script]).arg(groups.below()).arg("sh");
        let script =
            "while :; do sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; done";
        let _works = Script::start(enter, script);
        let name = groups.below().file_name().unwrap().to_str().unwrap().to_owned();
        let directory = groups.0.to_str().unwrap().to_owned();
        std::thread::sleep(Duration::from_millis(300));
        for target in [["--cgroup", &directory], ["-u", &name]] {
            let args = [&["watch", "-d", "3", "--json"][..], &target].concat();
            let summary = json(&args)["summary"].clone();
            assert!(number(&summary["seen"]) > 3, "{target:?}: {summary}");
            let threads = summary["threads"].as_array().unwrap();
            let has_ended = threads.iter().any(|thread| thread["tid"].is_null());
            assert!(has_ended, "{threads:?}");
        }
        let report = run(&["watch", "-u", &name, "-d", "100ms"]);
        assert!(!report.stdout.contains(&0x1b), "{}", text(&report.stdout));
    }
}

/// Check that without privileges the counters of `/proc` are reported, with a doubt that names what helps.
#[test]
fn counters_without_privileges() {
    let cpu = first_cpu();
    let spins = Script::spins_on(&cpu);
    let dir = tempfile::tempdir().unwrap();
    let mut command = unprivileged(&public_tool(dir.path()));
    command.args(["watch", "-p", &spins.pid(), "-d", "2", "--json"]);
    let output = command.output().unwrap();
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    if object["summary"]["source"] == "bpf" {
        return println!(
            "skipped: counters_without_privileges: everyone may use eBPF here"
        );
    }
    assert_eq!(object["summary"]["source"], "proc");
    assert!(number(&object["summary"]["run_ns"]) > 0, "{object}");
    let doubts = object["doubts"].to_string();
    assert!(doubts.contains("CAP_BPF") || doubts.contains("BTF"), "{doubts}");
}

/// Waits until a process has attached its programs, which takes long on a busy machine.
fn wait_for_programs(child: &Child) {
    let folder = format!("/proc/{}/fd", child.id());
    let links = || {
        let files = fs::read_dir(&folder).into_iter().flatten().flatten();
        let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        targets.filter(|target| target.to_string_lossy().contains("bpf_link")).count()
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut before = 0;
    loop {
        std::thread::sleep(Duration::from_millis(500));
        let now = links();
        if now > 0 && now == before {
            return;
        }
        assert!(Instant::now() < deadline, "{now} programs are attached");
        before = now;
    }
}

/// Check that targets that do not exist, and files that cannot be written to, are usage errors; that a
/// process may end; and that Ctrl-C ends early with what was seen.
#[test]
fn odd_targets() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let own = std::process::id().to_string();
    let refused: [&[&str]; 8] = [
        &[],
        &["-p", "0"],
        &["-p", "4194999"],
        &["-p", "1,2,3,4,5,6,7,8,9"],
        &["-u", "no such unit\n"],
        &["--cgroup", "/no/such/cgroup"],
        &["-p", &own, "--log", dir],
        &["-p", &own, "--log-above", "1ms"],
    ];
    for args in refused {
        let output = run(&[&["watch"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
    }
    if !is_root() || !can_watch("odd_targets") {
        return;
    }
    let ends = Script::start(Command::new("sh"), "sleep 3");
    let output = run(&["watch", "-p", &ends.pid(), "-d", "4", "--json"]);
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(object["summary"]["elapsed_ns"].as_u64() > Some(3_900_000_000));
    // On a busy machine it may end while the programs are loaded, before anything is seen of it.
    let is_unseen = object["doubts"].to_string().contains("no thread was seen");
    assert_eq!(output.status.code(), Some(if is_unseen { 4 } else { 0 }), "{object}");
    let spins = Script::spins_on(&first_cpu());
    let child = spawn(&["watch", "-p", &spins.pid(), "-d", "1h", "--json"]);
    wait_for_programs(&child);
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(number(&object["summary"]["run_ns"]) > 0, "{object}");
    assert!(object["doubts"].to_string().contains("ended early"), "{object}");
    let limited = ["watch", "-p", &spins.pid(), "-d", "1", "--max-wait", "1ns", "-q"];
    let output = tool(&limited).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}
