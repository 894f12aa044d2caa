//! Signals in quick succession, to the process or to its process group, as timeout(1), systemd and
//! Ctrl-C send them: settings are restored, and results written, as after a single signal.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kills::{FEWEST, LONG, Random, journal};
use crate::settings::{self, Settings};
use crate::trying::is_writable;
use crate::{alone, cpu, text, tool};

/// Default number of storms, unless the environment has another.
const TIMES: u32 = 33;
const ASKED: &str = "NOISEFLOOR_TEST_STORMS";
/// The longest time from one signal to the next.
const APART_US: u64 = 200_000;
/// The first signal of each storm, which a program that is run does not survive,
const FIRST: [i32; 4] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];
/// and all others whose default action ends a process.
const OTHERS: [i32; 11] = [
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
    libc::SIGABRT,
];

/// What a command writes when it is ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Result {
    /// Its recording, to the file that `-o` names.
    Recording,
    /// That of a program, with the program's exit code.
    Program,
    /// A report of the runs that have ended, if there are any, and their recordings in a folder.
    Runs,
    /// A report if each variant has a run.
    Comparison,
}

/// A command that changes settings.
struct Case {
    result: Result,
    args: Vec<String>,
    /// The number of storms during changed settings.
    changed: u32,
}

/// Every command that changes settings, as far as this machine supports it.
fn cases(place: &Path, cpu: &str) -> Vec<Case> {
    let own = std::env::current_exe().unwrap().display().to_string();
    let library = library(place).map(|library| library.display().to_string());
    // Paths may have spaces, and are filled in after the split.
    let words = |args: String| {
        let filled = |word: &str| {
            let word = word.replace("OWN", &own);
            word.replace("LIBRARY", library.as_deref().unwrap_or_default())
        };
        args.split(' ').map(filled).collect()
    };
    let sleeps = format!(
        "run -q -c {cpu} --irqs --workqueues -- OWN --ignored --exact storms::sleeps"
    );
    let with_library = format!(
        "jitter -q -a {cpu} -d 100s -l 2 --irqs --workqueues --workload exec:LIBRARY"
    );
    let short = format!("-n 1000 --pause 0 -- noise -c {cpu} -d 20ms");
    let cases = [
        (Result::Recording, format!("noise -q --unthrottled --fifo 50 -c {cpu} -d 100")),
        (
            Result::Recording,
            format!(
                "jitter -q --no-trace -a {cpu} -d 100s -l 2 --irqs --workqueues --kthreads \
                 --partition"
            ),
        ),
        (
            Result::Recording,
            format!("latency -q --no-trace -c {cpu} --irqs --workqueues -d 100"),
        ),
        (
            Result::Recording,
            format!("nohz test -q --cpu {cpu} --observe 100 --irqs --workqueues"),
        ),
        (
            Result::Recording,
            format!(
                "slices -q 2 --sleepers 0 -c {cpu} -d 500ms --step vm.stat_interval=7"
            ),
        ),
        (Result::Program, sleeps.clone()),
        (Result::Program, sleeps.replace(" --irqs", " --irqs --fifo 5")),
        (
            Result::Runs,
            format!(
                "repeat -n 1000 --pause 0 -- jitter -a {cpu} -t 1 -l 2 --irqs --workqueues"
            ),
        ),
        (Result::Runs, format!("repeat --step vm.stat_interval=7 {short}")),
        (Result::Runs, format!("repeat -n 1000 --pause 0 -- {sleeps}")),
        (Result::Comparison, format!("try vm.stat_interval=7 {short}")),
    ];
    let with_library = library.as_ref().map(|_| (Result::Recording, with_library));
    let cases = cases.into_iter().chain(with_library);
    cases.map(|(result, args)| Case { result, args: words(args), changed: 0 }).collect()
}

/// A workload library, which runs in a process of its own; `None` without a C compiler.
fn library(place: &Path) -> Option<PathBuf> {
    let (source, library) = (place.join("work.c"), place.join("work.so"));
    let work = "void nf_workload(void) { for (volatile int i = 0; i < 1000; i++); }\n";
    fs::write(&source, work).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    match cc.status() {
        Ok(status) if status.success() => Some(library),
        _ => {
            println!("no workload library: no C compiler");
            None
        }
    }
}

/// Not a test: a program that is run.
#[test]
#[ignore = "started by another test"]
fn sleeps() {
    sleep(Duration::from_secs(600));
}

/// Check that after many storms of signals, to each command that changes settings, all settings are
/// restored when the process ends, that it ends by itself, with its documented exit code, and that it
/// has written its results.
#[test]
fn storms_change_nothing() {
    let test = "storms_change_nothing";
    let Some(cpu) = cpu(test).filter(|_| is_writable(test)) else { return };
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let asked = std::env::var(ASKED).ok().map(|asked| asked.parse().unwrap());
    let mut random = Random(13);
    let mut cases = cases(place.path(), &cpu);
    let (began, mut done) = (Instant::now(), 0);
    for number in 0..asked.unwrap_or(TIMES) {
        if asked.is_none() && number >= FEWEST && began.elapsed() > LONG {
            println!("the machine is busy: {number} storms");
            break;
        }
        let at = number as usize % cases.len();
        match storm(number, &mut cases[at], place.path(), &mut random) {
            true => done += 1,
            false => drop(cases.remove(at)),
        }
    }
    for Case { args, changed, .. } in &cases {
        println!("{changed} storms during changed settings: {}", args.join(" "));
    }
    let changed: u32 = cases.iter().map(|case| case.changed).sum();
    println!("{done} storms, {changed} of them during changed settings: all restored");
    assert!(changed > done / 3, "only {changed} of {done}");
}

/// Sends signals to a run of this command; false if this machine does not support it.
fn storm(number: u32, case: &mut Case, place: &Path, random: &mut Random) -> bool {
    let (state, out) = (place.join("state"), place.join("out"));
    fs::create_dir_all(&state).unwrap();
    let _restored = RestoredAtEnd(&state);
    let before = settings::now();
    let mut run = start(case, &state, &out);
    let has_begun = || journal(&state).exists();
    let begin = Instant::now();
    while !has_begun() && begin.elapsed() < Duration::from_secs(10) {
        if run.try_wait().unwrap().is_some() {
            let output = run.wait_with_output().unwrap();
            println!("not here: {:?}: {}", case.args, text(&output.stderr));
            return false;
        }
        sleep(Duration::from_micros(200));
    }
    let is_changed = has_begun();
    case.changed += u32::from(is_changed);
    // In every other round there is a result.
    sleep(Duration::from_micros(random.below(if number % 2 == 0 {
        500_000
    } else {
        5_000
    })));
    let signals = send(number, case.result, &run, random);
    let what = format!("storm {number} of {signals:?} to {}", case.args.join(" "));
    let output = ended(run, &what);
    let changed = settings::changed(&before, &settings::now());
    assert!(changed.is_empty(), "{what}: {changed:?}: {output:?}");
    let left = fs::read_to_string(journal(&state)).unwrap_or_default();
    assert!(left.is_empty(), "{what}: {left}");
    // Before the first change, signals may have their default action.
    if is_changed {
        check_result(case.result, &output, &out, &what);
    }
    clear(&out);
    true
}

fn start(case: &Case, state: &Path, out: &Path) -> Child {
    let (first, rest) = case.args.split_at(1);
    let mut command = tool(&[]);
    command.args(first);
    let is_nohz = first[0] == "nohz";
    let (first, rest) = rest.split_at(usize::from(is_nohz));
    command.args(first).arg("-o").arg(out);
    if matches!(case.result, Result::Runs | Result::Comparison) {
        command.arg("--json");
    }
    command.args(rest).env("NOISEFLOOR_STATE", state).process_group(0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends one to five signals, alternately to the process and to its group.
fn send(number: u32, result: Result, run: &Child, random: &mut Random) -> Vec<i32> {
    let process = i32::try_from(run.id()).unwrap();
    let pick = |random: &mut Random, from: &[i32]| {
        let at = random.below(u64::try_from(from.len()).unwrap());
        from[usize::try_from(at).unwrap()]
    };
    let mut signals = vec![pick(random, &FIRST)];
    for _ in 0..random.below(5) {
        let others = if number % 3 == 0 { &OTHERS[..] } else { &FIRST };
        signals.push(pick(random, others));
    }
    let apart = [0, APART_US / 4, APART_US][number as usize % 3];
    for (place, &signal) in signals.iter().enumerate() {
        if place > 0 {
            sleep(Duration::from_micros(random.below(apart + 1)));
        }
        // A program in the group would not end by itself, if the first one misses it.
        let to_group = (number + u32::try_from(place).unwrap()) % 2 == 0;
        let target =
            if to_group && result != Result::Program { -process } else { process };
        // SAFETY: takes numbers only; the child has not been waited for.
        unsafe { libc::kill(target, signal) };
    }
    signals
}

/// Its output, at the latest after two minutes.
fn ended(mut run: Child, what: &str) -> Output {
    let begin = Instant::now();
    while run.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(120) {
            run.kill().unwrap();
            panic!("{what}: it does not end: {:?}", run.wait_with_output());
        }
        sleep(Duration::from_millis(1));
    }
    run.wait_with_output().unwrap()
}

fn check_result(result: Result, output: &Output, out: &Path, what: &str) {
    let what = format!("{what}: {output:?}");
    let code = output.status.code();
    let is_read = |file: &Path| -> Value {
        let read = fs::read_to_string(file).unwrap_or_else(|why| panic!("{why}: {what}"));
        serde_json::from_str(&read).unwrap_or_else(|why| panic!("{why}: {what}"))
    };
    match result {
        // Another noisefloor has moved the CPU to a partition of its own meanwhile.
        Result::Recording if text(&output.stderr).contains("may not be used by this") => {
            println!("skipped: {what}");
            assert_eq!(code, Some(3), "{what}");
        }
        // The process that runs a library was not ready yet.
        Result::Recording if text(&output.stderr).contains("interrupted before") => {
            assert_eq!(code, Some(4), "{what}");
        }
        Result::Recording => {
            assert!(matches!(code, Some(0 | 4)), "{what}");
            assert!(is_read(out)["series"].is_object(), "{what}");
        }
        Result::Program => {
            let ended = &is_read(out)["series"]["ended"];
            let killed = ended["killed"].as_i64().map(|signal| 128 + signal);
            let expected = killed.or(ended["exited"].as_i64());
            assert_eq!(code.map(i64::from), expected, "{what}");
        }
        Result::Runs | Result::Comparison => {
            assert_eq!(code, Some(4), "{what}");
            let folders = folders(out);
            let saved = |folder: &PathBuf| {
                let files = fs::read_dir(folder).into_iter().flatten().flatten();
                let files: Vec<_> = files.map(|file| file.path()).collect();
                files.iter().for_each(|file| drop(is_read(file)));
                files.len()
            };
            let saved: Vec<usize> = folders.iter().map(saved).collect();
            let has_report = match result {
                Result::Runs => true,
                Result::Recording | Result::Program | Result::Comparison => {
                    saved.len() > 1 && saved.iter().all(|&runs| runs > 0)
                }
            };
            assert_eq!(!output.stdout.is_empty(), has_report, "{saved:?}: {what}");
            if has_report {
                let report: Value = serde_json::from_slice(&output.stdout).unwrap();
                assert_eq!(report["doubts"][0]["code"], "interrupted", "{what}");
                let runs: usize = saved.iter().sum();
                let sets = report["sets"].as_array().unwrap().iter();
                let reported = sets.map(|set| set["runs"].as_u64().unwrap()).sum::<u64>();
                assert_eq!(reported, runs as u64, "{what}");
            }
        }
    }
}

/// The folders of sets of runs: this one, or those in it.
fn folders(out: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(out).into_iter().flatten().flatten();
    let folders: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    if folders.is_empty() { vec![out.to_owned()] } else { folders }
}

fn clear(out: &Path) {
    if out.is_dir() {
        fs::remove_dir_all(out).unwrap();
    } else {
        let _ = fs::remove_file(out);
    }
}

fn signal(run: &Child, signal: i32) {
    // SAFETY: takes numbers only; the child has not been waited for.
    unsafe { libc::kill(i32::try_from(run.id()).unwrap(), signal) };
}

/// Check that a run that has to wait before it can restore its settings is not ended by two signals,
/// nor by many within the time that this takes, and that one more after seconds ends it, with a message
/// about what is not restored: of a measurement, and of a program.
#[test]
fn a_late_signal_ends_a_wait() {
    let test = "a_late_signal_ends_a_wait";
    let Some(cpu) = cpu(test) else { return };
    let _alone = alone();
    for case in cases(tempfile::tempdir().unwrap().path(), &cpu) {
        if !matches!(case.args[0].as_str(), "latency" | "run") {
            continue;
        }
        for is_late in [false, true] {
            let place = tempfile::tempdir().unwrap();
            let (state, out) = (place.path().join("state"), place.path().join("out"));
            fs::create_dir(&state).unwrap();
            let before = settings::now();
            let mut run = start(&case, &state, &out);
            while !journal(&state).exists() && run.try_wait().unwrap().is_none() {
                sleep(Duration::from_millis(1));
            }
            if run.try_wait().unwrap().is_some() {
                println!("skipped: {test}: {:?} changes nothing here", case.args);
                continue;
            }
            wait_or_end(run, is_late, &state, &before);
        }
    }
}

/// Restores what a run has left changed, also if a test fails.
struct RestoredAtEnd<'a>(&'a Path);

impl Drop for RestoredAtEnd<'_> {
    fn drop(&mut self) {
        let _ = tool(&["restore"]).env("NOISEFLOOR_STATE", self.0).status();
    }
}

/// Holds the lock of the journal while the run wants to restore its settings.
fn wait_or_end(run: Child, is_late: bool, state: &Path, before: &Settings) {
    let _restored = RestoredAtEnd(state);
    let lock = File::open(state.join("lock")).unwrap();
    // Waits until all settings have been changed.
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let is_restored = || settings::changed(before, &settings::now()).is_empty();
    for _ in 0..4 {
        signal(&run, libc::SIGINT);
        sleep(Duration::from_millis(300));
    }
    let is_changed = !is_restored();
    let lock = Some(lock).filter(|_| is_late);
    if is_late {
        sleep(Duration::from_secs(5));
        signal(&run, libc::SIGINT);
    }
    let output = ended(run, "the wait");
    let said = text(&output.stderr);
    assert!(is_changed, "{said}");
    assert_eq!(said.contains("hint: noisefloor restore"), is_late, "{said}");
    assert_eq!(is_restored(), !is_late, "{said}");
    assert!(is_documented(output.status), "{output:?}");
    if is_late {
        drop(lock);
        let restore = tool(&["restore"]).env("NOISEFLOOR_STATE", state).status();
        assert!(restore.unwrap().success());
        assert!(is_restored());
    }
}

/// 130 after a forced end, 128 + the signal of a program; else that of the measurement, which reports
/// its result if it notices the late signal first.
fn is_documented(status: ExitStatus) -> bool {
    matches!(status.code(), Some(0 | 130))
}
