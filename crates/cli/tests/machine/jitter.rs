//! `jitter`, with its own workloads and with libraries that are built here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::culprits::can_watch;
use crate::outranking::{self, Outranking};
use crate::settings_lock::lock_settings;
use crate::tool::{
    children, first_cpu, is_root, json, public_tool, run, signal, spawn, text, tool,
    turn, unprivileged, wait_for_threads,
};

/// Few and short tests that any user may run.
const FEW: [&str; 8] = ["jitter", "--fifo", "0", "-q", "-t", "3", "-l", "2"];

fn few(more: &[&str]) -> Vec<&'static str> {
    let more = more.iter().map(|word| &*word.to_string().leak());
    FEW.iter().copied().chain(more).collect()
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// Check that each workload is run as often as reported, and that the summary agrees with an
/// independent computation from the series.
#[test]
fn the_summary_adds_up() {
    let _turn = turn();
    for workload in ["tif", "memory:1M", "compute", "syscall"] {
        let more = ["--json", "--series", "-c", "--workload", workload];
        let object = json(&few(&more));
        let (summary, tests) = (&object["summary"], &object["series"]["tests"]);
        let tests: Vec<_> = tests.as_array().unwrap().iter().map(numbers).collect();
        let mut jitters: Vec<u64> = tests.iter().map(|test| test[1] - test[0]).collect();
        jitters.sort_unstable();
        let [min, p50, max] = jitters[..] else { panic!("{workload}: {jitters:?}") };
        assert_eq!((&summary["tests"], &summary["loops"]), (&3.into(), &2.into()));
        assert_eq!(summary["unit"], "ticks");
        let mean = (min + p50 + max + 1) / 3;
        let expected = serde_json::json!({
            "max": max, "min": min, "mean": mean, "p50": p50, "p99": max,
        });
        assert_eq!(summary["jitter"], expected, "{workload}");
        let sum: u64 = tests.iter().map(|test| test[2]).sum();
        assert_eq!(summary["loop"]["mean"], (sum + 3) / 6);
        assert_eq!(object["spec"]["workload"], workload);
    }
}

/// Check that the duration takes precedence over the number of tests, as TIF documents it, with
/// a message; that the plan is printed first; and that rows follow if there is no terminal.
#[test]
fn time_goes_first() {
    let _turn = turn();
    let args = ["jitter", "--fifo", "0", "-t", "1", "-l", "2", "-d", "200ms"];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains("take precedence over -t"), "{said}");
    let told = text(&output.stdout);
    let places = ["2 loops each, for 200 ms", "Jitter in nanoseconds", "Measured in"]
        .map(|words| told.find(words));
    assert!(places.is_sorted() && places[0].is_some(), "{told}");
    let mut rows = told.lines().skip_while(|line| !line.contains("min          mean"));
    let row = rows.nth(1).unwrap().split_whitespace();
    let row: Vec<u64> = row.map(|number| number.parse().unwrap()).collect();
    let [tests, _, max, min, mean] = row[..] else { panic!("{row:?}") };
    assert!(tests > 1 && min <= mean && mean <= max, "{row:?}");
    let object = json(&[&args[..], &["--json", "-q"]].concat());
    assert_eq!(object["spec"]["tests"], Value::Null);
}

/// Check the files for other programs: one line per test in order, and percentiles that end
/// with the largest.
#[test]
fn histograms() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut command = tool(&few(&["-h", "-o", "my.json"]));
    assert!(command.current_dir(dir.path()).output().unwrap().status.success());
    let file = |name: &str| dir.path().join(name);
    let saved = fs::read_to_string(file("my.json")).unwrap();
    let saved: Value = serde_json::from_str(&saved).unwrap();
    let hz = saved["series"]["clock_hz"].as_f64().unwrap();
    let lines = fs::read_to_string(file("tif.hist")).unwrap();
    let tests = saved["series"]["tests"].as_array().unwrap();
    assert_eq!(lines.lines().count(), tests.len());
    for (at, (line, test)) in lines.lines().zip(tests).enumerate() {
        let test = numbers(test);
        let nanos = ((test[1] - test[0]) as f64 * 1e9 / hz).round();
        assert_eq!(line, format!("{:>10} {nanos:>10}", at + 1));
    }
    let hgrm = file("my.hgrm");
    let object = json(&few(&["--json", "-H", hgrm.to_str().unwrap()]));
    let text = fs::read_to_string(&hgrm).unwrap();
    let last = text.lines().take_while(|line| !line.starts_with('#')).last().unwrap();
    let words: Vec<&str> = last.split_whitespace().collect();
    let max = object["summary"]["jitter"]["max"].to_string();
    assert_eq!(words, [&format!("{max}.000"), "1.000000000000", "3"]);
}

/// Check that an existing file that may not be written is refused before anything runs.
#[test]
fn histograms_that_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let tool = public_tool(dir.path());
    let file = dir.path().join("my.hist");
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o444))
        .unwrap();
    let mut command = unprivileged(&tool);
    let output = command.args(["jitter", "-D", "1", "-H"]).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("-H"), "{}", text(&output.stderr));
}

/// Check that without the privilege for SCHED_FIFO the error names the remedy and the
/// alternative.
#[test]
fn fifo_needs_a_privilege() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let tool = public_tool(dir.path());
    let output = unprivileged(&tool).args(["jitter", "-t", "1"]).output().unwrap();
    if output.status.success() {
        println!("skipped: fifo_needs_a_privilege: RLIMIT_RTPRIO allows it to everyone");
        return;
    }
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    for words in ["CAP_SYS_NICE", "RLIMIT_RTPRIO of 99", "--fifo 0"] {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(text(&output.stdout), "");
    assert!(unprivileged(&tool).args(FEW).output().unwrap().status.success());
}

/// The result of Ctrl-C in a run of an hour with short tests.
fn interrupted(args: &[&str], find: impl Fn(u32) -> Option<u32>) -> Value {
    let mut endless = vec!["jitter", "--fifo", "0", "-D", "1", "-l", "2", "--json"];
    endless.extend(args);
    let child = spawn(&endless);
    let measuring = || find(child.id());
    wait_for_threads(measuring, "jitter", 1);
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn assert_ended_early(object: &Value) {
    assert!(object["summary"]["tests"].as_u64().unwrap() > 0);
    let doubts = object["doubts"].as_array().unwrap();
    assert!(doubts.iter().any(|doubt| doubt["code"] == "interrupted"), "{doubts:?}");
}

/// Check that Ctrl-C ends a run early, and that the result so far is reported, with a doubt.
#[test]
fn interrupted_runs_are_told() {
    let _turn = turn();
    assert_ended_early(&interrupted(&[], Some));
}

/// Libraries, built from given C code or from the examples.
struct Libraries(TempDir);

impl Libraries {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Builds one from a text; `None` without a compiler.
    fn c(&self, name: &str, text: &str) -> Option<PathBuf> {
        let source = self.0.path().join(name).with_extension("c");
        fs::write(&source, text).unwrap();
        self.build(&source, "cc", &["-O2", "-shared", "-fPIC"])
    }

    fn build(&self, source: &Path, compiler: &str, args: &[&str]) -> Option<PathBuf> {
        let library =
            self.0.path().join(source.file_name().unwrap()).with_extension("so");
        let mut command = Command::new(compiler);
        let built = command.args(args).arg("-o").arg(&library).arg(source).output();
        let Ok(built) = built else {
            println!("skipped: a library is not built: no {compiler} here");
            return None;
        };
        assert!(built.status.success(), "{}", text(&built.stderr));
        Some(library)
    }
}

fn exec(library: &Path) -> String {
    format!("exec:{}", library.display())
}

fn run_library(library: &Path) -> Output {
    run(&few(&["--workload", &exec(library)]))
}

/// Check that the examples, built as their comments say, are run as often as reported.
#[test]
fn the_examples_run() {
    let _turn = turn();
    let libraries = Libraries::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workloads");
    let rust = ["--edition", "2024", "-O", "-C", "panic=abort", "--crate-type", "cdylib"];
    let c = ["-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"];
    for library in [
        libraries.build(&folder.join("sort.c"), "cc", &c),
        libraries.build(&folder.join("primes.rs"), "rustc", &rust),
    ] {
        let Some(library) = library else { continue };
        let object = json(&few(&["--json", "--workload", &exec(&library)]));
        assert_eq!(object["summary"]["tests"], 3);
        // Sorting or sieving thousands of numbers takes longer than a microsecond.
        assert!(object["summary"]["loop"]["min"].as_u64().unwrap() > 1_000);
    }
}

/// Check that the functions of TIF's workloads are used, too, and noisefloor's own first: the others
/// of a library that has several end its process.
#[test]
fn functions_of_tif() {
    let _turn = turn();
    let libraries = Libraries::new();
    for names in [
        &["tif_workload"][..],
        &["nohz_workload", "tif_workload"],
        &["nf_workload", "nohz_workload", "tif_workload"],
    ] {
        let (first, others) = names.split_first().unwrap();
        let others =
            others.iter().map(|name| format!("void {name}(void) {{ abort(); }}\n"));
        let source = format!(
            "#include <stdlib.h>\nvoid {first}(void) {{ for (volatile int i = 0; i < 1000; i++); \
             }}\n{}",
            others.collect::<String>()
        );
        let Some(library) = libraries.c(first, &source) else { return };
        let object = json(&few(&["--json", "--workload", &exec(&library)]));
        assert_eq!(object["summary"]["tests"], 3, "{names:?}");
    }
}

/// Check that a run without a complete test, because tests are too long for it or the run is too
/// short, has measured nothing: a warning, and exit code 4.
#[test]
fn no_complete_test() {
    let _turn = turn();
    for args in [&["-l", "4294967295", "-d", "200ms"][..], &["-d", "0.001s"]] {
        let output = run(&[&["jitter", "--fifo", "0", "--json"], args].concat());
        assert_eq!(output.status.code(), Some(4), "{args:?}");
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(object["summary"]["tests"], 0, "{args:?}");
        let doubts = object["doubts"].as_array().unwrap();
        let nothing = |doubt: &&Value| doubt["code"] == "nothing_measured";
        assert_eq!(doubts.iter().filter(nothing).count(), 1, "{doubts:?}");
    }
}

/// Check that the doubt about a CPU that is not isolated as requested is in the result of a library,
/// too, whose process has isolated nothing itself.
#[test]
fn libraries_have_the_doubt() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let tool = public_tool(dir.path());
    let libraries = Libraries(dir);
    let source = "void nf_workload(void) { for (volatile int i = 0; i < 1000; i++); }";
    let Some(library) = libraries.c("loop", source) else { return };
    let mut command = unprivileged(&tool);
    command.args(few(&["--wait", "--json", "--irqs", "--partition", "--workload"]));
    let output = command.arg(exec(&library)).output().unwrap();
    let object: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let doubts = object["doubts"].as_array().unwrap();
    let found = doubts.iter().find(|doubt| doubt["code"] == "not_isolated");
    let said = found.unwrap_or_else(|| panic!("{doubts:?}"))["text"].as_str().unwrap();
    assert!(said.contains("was not isolated as requested: "), "{said}");
}

/// Check that a library has no capability of the program's file, in no thread of its process,
/// neither when it is loaded nor when it runs, and that it is a real-time task.
#[test]
fn libraries_have_no_capabilities() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let tool = public_tool(dir.path());
    let mut setcap = Command::new("setcap");
    let names = "cap_sys_nice,cap_ipc_lock,cap_bpf,cap_perfmon,cap_dac_override+ep";
    let given = setcap.arg(names).arg(&tool).output();
    if !is_root() || !given.is_ok_and(|given| given.status.success()) {
        println!("skipped: libraries_have_no_capabilities: it takes root and setcap(8)");
        return;
    }
    let source = "#include <sched.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
                  static void show(void) {\n\
                  fprintf(stderr, \"policy %d\\n\", sched_getscheduler(0) & 0xff);\n\
                  system(\"cat /proc/$PPID/task/*/status 1>&2\"); }\n\
                  __attribute__((constructor)) static void load(void) { show(); }\n\
                  static int calls;\n\
                  void nf_workload(void) { if (!calls++) show(); }";
    let libraries = Libraries(dir);
    let Some(library) = libraries.c("shows", source) else { return };
    let mut command = unprivileged(&tool);
    // Its own claims are those of the machine, as it ignores the environment.
    let args = ["jitter", "-q", "--wait", "-t", "2", "-l", "2", "--workload"];
    let output = command.args(args).arg(exec(&library)).output().unwrap();
    let shown = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    let lines = |name| shown.lines().filter(move |line| line.starts_with(name));
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert!(lines(set).count() >= 4, "{shown}");
        assert!(lines(set).all(|line| line.ends_with("\t0000000000000000")), "{shown}");
    }
    assert_eq!(lines("policy 1").count(), 2, "{shown}");
}

/// Check that the function is called once for each loop: one that ends its process at the
/// hundredth call does so before 60 tests of two loops are over, and this is reported.
#[test]
fn libraries_that_end_their_process() {
    let _turn = turn();
    let libraries = Libraries::new();
    let text_of = "#include <stdlib.h>\nstatic int calls;\n\
                   void nf_workload(void) { if (++calls == 100) exit(0); }";
    let Some(library) = libraries.c("exits", text_of) else { return };
    let output = run_library(&library);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
    let said = text(&output.stderr);
    assert!(said.contains("ended its process (exit status: 0)"), "{said}");
}

/// Check that slow runs at the beginning do not reduce the capacity for later tests, and that
/// no more tests are reported as missing.
#[test]
fn slow_beginnings() {
    let _turn = turn();
    let libraries = Libraries::new();
    let source = "#include <time.h>\nstatic int calls;\nvoid nf_workload(void) {\n\
                  struct timespec slow = {0, 100000000};\n\
                  if (++calls <= 3) nanosleep(&slow, 0);\n\
                  for (volatile int i = 0; i < 1000; i++); }";
    let Some(library) = libraries.c("slow", source) else { return };
    let args = ["jitter", "--fifo", "0", "-q", "-d", "2s", "-l", "9", "--workload"];
    let object = json(&[&args[..], &[&exec(&library), "--json", "--series"]].concat());
    let tests = object["summary"]["tests"].as_u64().unwrap();
    let kept = object["series"]["tests"].as_array().unwrap().len();
    if tests < 100 {
        println!("skipped: slow_beginnings: {tests} tests only");
        return;
    }
    // At least the minimal capacity, which no machine exceeds in 2 s.
    assert!(kept as u64 == tests || kept >= 1 << 16, "{kept} of {tests}");
    let codes = object["doubts"].as_array().unwrap().iter().map(|doubt| &doubt["code"]);
    let codes: Vec<_> = codes.collect();
    assert!(!codes.contains(&&"too_short".into()), "{codes:?}");
}

/// Check that a recording has the settings in effect during the run, and that those changed by
/// noisefloor for it cause no doubt.
#[test]
fn facts_of_the_run() {
    let _turn = turn();
    // No test with a journal of its own restores it meanwhile.
    let _settings = lock_settings();
    let file = "/proc/sys/kernel/sched_rt_runtime_us";
    let output = run(&["jitter", "-q", "-t", "9", "-l", "9", "--json"]);
    let said = text(&output.stderr);
    if output.status.code() == Some(3)
        || fs::OpenOptions::new().write(true).open(file).is_err()
    {
        println!("skipped: facts_of_the_run: {said}");
        return;
    }
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["facts"]["sched"]["rt_runtime_us"], -1, "{said}");
}

/// Check that a crash is reported with the library and the signal, in the middle of a run and
/// while the library is loaded.
#[test]
fn libraries_that_crash() {
    let _turn = turn();
    let libraries = Libraries::new();
    let crash = "*(volatile int *)8 = 1;";
    for (name, source, words) in [
        ("segv", format!("void nf_workload(void) {{ {crash} }}"), "SIGSEGV"),
        (
            "loading",
            format!("__attribute__((constructor)) static void begin(void) {{ {crash} }}"),
            "SIGSEGV",
        ),
        (
            "abort",
            "#include <stdlib.h>\nvoid nf_workload(void) { abort(); }".to_owned(),
            "SIGABRT",
        ),
    ] {
        let Some(library) = libraries.c(name, &source) else { return };
        let output = run_library(&library);
        assert_eq!(output.status.code(), Some(3), "{name}: {}", text(&output.stdout));
        let said = text(&output.stderr);
        assert!(said.contains("crashed") && said.contains(words), "{said}");
        assert!(said.contains(library.to_str().unwrap()), "{said}");
    }
}

/// Check that a function that does not return is abandoned after the time, and after the first
/// signal, in its first run and in a later one, and that no process is left.
#[test]
fn libraries_that_do_not_return() {
    let _turn = turn();
    let libraries = Libraries::new();
    let source = "static int calls;\nvoid nf_workload(void) {\n\
                  if (++calls > 0) for (volatile int i = 0;; i++); }";
    let Some(first) = libraries.c("first", source) else { return };
    let later = libraries.c("later", &source.replace("> 0", "> 100000")).unwrap();
    for (library, duration, sends) in [(first, "1h", true), (later, "1s", false)] {
        let workload = exec(&library);
        let args = ["jitter", "--fifo", "0", "-l", "9", "-d", duration, "--workload"];
        let child = spawn(&[&args[..], &[&workload]].concat());
        if sends {
            let only_child = |supervisor| children(supervisor).first().copied();
            wait_for_threads(|| only_child(child.id()), "jitter", 1);
            signal(&child, libc::SIGTERM);
        }
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
        let said = text(&output.stderr);
        assert!(said.contains("has not returned within 5 s"), "{said}");
        assert!(said.contains(library.to_str().unwrap()), "{said}");
    }
}

/// Check that a file that is not such a library is refused with the loader's message.
#[test]
fn libraries_that_are_none() {
    let _turn = turn();
    let libraries = Libraries::new();
    let none = libraries.0.path().join("none.so");
    fs::write(&none, "hello").unwrap();
    let mut cases =
        vec![(none, "file too short"), ("/nowhere/at-all.so".into(), "No such")];
    if let Some(library) = libraries.c("other", "void other(void) {}") {
        cases.push((library, "undefined symbol: nf_workload"));
    }
    for (library, words) in cases {
        let output = run_library(&library);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        let said = text(&output.stderr);
        assert!(said.contains(words), "{said}");
    }
}

/// Check that Ctrl-C ends a library's run early, with the result so far, and that the process
/// that runs it ends with its parent.
#[test]
fn supervised_runs_end() {
    let _turn = turn();
    let libraries = Libraries::new();
    let source = "void nf_workload(void) { for (volatile int i = 0; i < 1000; i++); }";
    let Some(library) = libraries.c("counts", source) else { return };
    let workload = exec(&library);
    let args = ["--workload", &workload];
    let only_child = |supervisor| children(supervisor).first().copied();
    assert_ended_early(&interrupted(&args, only_child));

    let mut supervisor = spawn(&["jitter", "--fifo", "0", "-D", "1", args[0], args[1]]);
    wait_for_threads(|| only_child(supervisor.id()), "jitter", 1);
    let child = only_child(supervisor.id()).unwrap();
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    let gone = || {
        let status =
            fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
        // The claim on the CPU exists as long as one of its threads.
        let is_ended = status.contains("State:\tZ") && status.contains("Threads:\t1\n");
        status.is_empty() || is_ended
    };
    while !gone() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Check that a thread that interrupts the workload is named as a cause of jitter, and that all causes add
/// up to the jitter of all tests; and that nothing is traced if that is not wanted.
#[test]
fn causes_of_jitter() {
    let _turn = turn();
    if !can_watch("causes_of_jitter") {
        return;
    }
    // No test with a journal of its own restores it meanwhile.
    let _settings = lock_settings();
    let cpu = first_cpu();
    let Some(outranking) = Outranking::start("causes_of_jitter", &cpu) else { return };
    let args = ["jitter", "-a", &cpu, "--fifo", "50", "-w", "compute", "--json", "-l"];
    let object = json(&[&args[..], &["300", "-t", "20"]].concat());
    let untraced = json(&[&args[..], &["2", "-t", "2", "--no-trace"]].concat());
    drop(outranking);
    let culprits = object["summary"]["culprits"].as_array().unwrap();
    let is_it = |culprit: &&Value| culprit["name"] == outranking::NAME;
    let culprit = culprits.iter().find(is_it).unwrap_or_else(|| panic!("{culprits:?}"));
    assert!(culprit["gaps"].as_u64().unwrap() >= 10, "{culprit}");
    assert!(culprit["max_ns"].as_u64().unwrap() > 1_000_000, "{culprit}");
    let sum = culprits.iter().map(|culprit| culprit["ns"].as_u64().unwrap()).sum::<u64>();
    let jitter = &object["summary"]["jitter"];
    let mean = jitter["mean"].as_u64().unwrap();
    // The mean is rounded, and so is each of 20 lengths.
    assert!(sum.abs_diff(mean * 20) <= 40, "{sum} {mean}");
    assert!(untraced["summary"]["culprits"].is_null(), "{untraced}");
}
