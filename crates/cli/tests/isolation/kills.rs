//! Runs that are killed at a random moment, 200 times by default.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use isolate::{Isolation, IsolationOptions};

use crate::settings::{self, Settings};
use crate::trying::is_writable;
use crate::{alone, cpu, output, text, text as text_of, tool};

/// Default number of runs, unless the environment has another; a kernel passes unknown words of
/// its command line to its first program as environment.
const TIMES: u32 = 200;
/// On a busy machine fewer runs within this time, but at least this number.
pub(crate) const LONG: Duration = Duration::from_secs(120);
pub(crate) const FEWEST: u32 = 40;
const ASKED: &str = "NOISEFLOOR_TEST_KILLS";
/// The number of changes after which a child of this test panics.
const PANIC: &str = "NOISEFLOOR_TEST_PANICS_AFTER";

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Signal(i32),
    Panic,
}

const ENDS: [End; 5] = [
    End::Signal(libc::SIGKILL),
    End::Signal(libc::SIGTERM),
    End::Signal(libc::SIGINT),
    End::Signal(libc::SIGHUP),
    End::Panic,
];

/// A small random number generator with the same sequence each time: an LCG.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// The number of kinds of settings that must be changed by some run when it is killed.
const KINDS: usize = 5;
/// The same on a CPU that was isolated at boot, where no partition is created before Linux
/// 6.15, and workqueues and kernel threads are already excluded.
const KINDS_ISOLATED: usize = 3;
/// All isolation options.
const EVERYTHING: [&str; 4] = ["--irqs", "--workqueues", "--kthreads", "--partition"];

/// Check that settings are restored after each of many runs that ended by a signal or a panic
/// at a random moment: by the run itself if possible, by the next command or by `restore` if it
/// was killed; and that at least five kinds of settings were changed at those moments (three on
/// a CPU that was isolated at boot).
#[test]
fn settings_are_as_they_were() {
    let Some(cpu) = cpu("settings_are_as_they_were") else { return };
    let _alone = alone();
    let state = tempfile::tempdir().unwrap();
    let before = settings::now();
    let asked = std::env::var(ASKED).ok().map(|asked| asked.parse().unwrap());
    let mut times = asked.unwrap_or(TIMES);
    let mut random = Random(7 + u64::from(times));
    let began = Instant::now();
    let run = ["jitter", "--no-trace", "-a", &cpu, "-t", "1", "-l", "2"];
    let refused = text(&output(&[&run, &EVERYTHING[..]].concat()).stderr);
    println!("not changed here: {refused}");
    let is_isolated = refused.contains("no isolated partition: before Linux 6.15");
    let enough = if is_isolated { KINDS_ISOLATED } else { KINDS };
    let latest = u64::try_from(began.elapsed().as_micros()).unwrap() * 3 / 2;
    let (mut left_changed, mut kinds) = (0, Vec::new());
    for number in 0..times {
        if asked.is_none() && number >= FEWEST && began.elapsed() > LONG {
            println!("the machine is busy: {number} runs instead of {times}");
            times = number;
            break;
        }
        let end = ENDS[number as usize % ENDS.len()];
        let mut run = start(end, &cpu, state.path(), &mut random);
        if let End::Signal(signal) = end {
            // On a host whose speed changes, none of the random moments may be in the middle:
            // in every other round something was changed before, alternately one setting or
            // many.
            match number / 5 % 4 {
                1 => wait_for(|| journal(state.path()).exists()),
                3 => wait_for(|| changed_kinds(&before).len() >= enough),
                _ => {}
            }
            sleep(Duration::from_micros(random.below(latest)));
            // SAFETY: takes numbers only; the child has not been waited for.
            unsafe { libc::kill(i32::try_from(run.id()).unwrap(), signal) };
        }
        run.wait().unwrap();
        kinds.extend(changed_kinds(&before));
        if end == End::Signal(libc::SIGKILL) {
            left_changed += u32::from(journal(state.path()).exists());
            clean_up(number, state.path());
        }
        judge(number, end, &before, state.path());
    }
    kinds.sort_unstable();
    kinds.dedup();
    println!("{times} runs, {left_changed} killed while {kinds:?} were changed");
    assert!(
        left_changed > times / 20,
        "only {left_changed} runs were killed in the middle"
    );
    assert!(kinds.len() >= enough, "{kinds:?}");
}

/// The settings that are tried, as far as this kernel has them.
fn tried(cpu: &str) -> Vec<String> {
    let other = if cpu == "0" { "1" } else { "0" };
    let mut tried = vec![
        "vm.stat_interval=7".to_owned(),
        "vm.dirty_writeback_centisecs=777".to_owned(),
    ];
    let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
    if let Ok(now) = fs::read_to_string(thp) {
        let value = if now.contains("[never]") { "always" } else { "never" };
        tried.push(format!("thp={value}"));
    }
    if Path::new("/sys/devices/virtual/workqueue/cpumask").exists() {
        tried.push(format!("workqueues={other}"));
    }
    tried.push(format!("irqs={other}"));
    let partition = format!("partition={cpu}");
    let once = ["try", &partition, "-n", "1", "--", "noise", "-c", cpu, "-d", "1ms"];
    let made = output(&once);
    match made.status.success() {
        true => tried.push(partition),
        false => println!("not tried here: {}", text(&made.stderr)),
    }
    tried
}

/// The number of runs of `try`, unless the environment has another.
const TRIES: u32 = 60;

/// Check that `try` restores all settings after each of many runs that ended by a signal at a random
/// moment, as `settings_are_as_they_were` does for isolated CPUs.
#[test]
fn tried_settings_are_restored() {
    let test = "tried_settings_are_restored";
    let Some(cpu) = cpu(test).filter(|_| is_writable(test)) else { return };
    let _alone = alone();
    let state = tempfile::tempdir().unwrap();
    let before = settings::now();
    let asked = std::env::var(ASKED).ok().map(|asked| asked.parse().unwrap());
    let times = asked.unwrap_or(TRIES);
    let mut random = Random(11 + u64::from(times));
    let repeated = ["-n", "100000", "--pause", "0", "--"];
    // Loading programs into the kernel would be most of the time, and no setting changes then.
    let measured = ["noise", "-c", &cpu, "-d", "5ms", "--source", "proc"];
    let tried = tried(&cpu);
    let began = Instant::now();
    let (mut done, mut left_changed, mut kinds) = (0, 0, Vec::new());
    for number in 0..times {
        if asked.is_none() && number >= FEWEST && began.elapsed() > LONG {
            println!("the machine is busy: {number} runs instead of {times}");
            break;
        }
        let signals = [libc::SIGKILL, libc::SIGKILL, libc::SIGTERM, libc::SIGINT];
        let signal = signals[number as usize % signals.len()];
        let mut command = tool(&["try"]);
        command
            .args(&tried)
            .args(repeated)
            .args(measured)
            .env("NOISEFLOOR_STATE", state.path());
        let mut run = command.spawn().unwrap();
        match number % 3 {
            0 => {}
            1 => wait_for(|| journal(state.path()).exists()),
            _ => wait_for(|| changed_kinds(&before).len() >= 3),
        }
        sleep(Duration::from_micros(random.below(300_000)));
        // SAFETY: takes numbers only; the child has not been waited for.
        unsafe { libc::kill(i32::try_from(run.id()).unwrap(), signal) };
        run.wait().unwrap();
        kinds.extend(changed_kinds(&before));
        if signal == libc::SIGKILL {
            left_changed += u32::from(journal(state.path()).exists());
            clean_up(number, state.path());
        }
        judge(number, End::Signal(signal), &before, state.path());
        done += 1;
    }
    kinds.sort_unstable();
    kinds.dedup();
    println!("{done} runs, {left_changed} killed while {kinds:?} were changed");
    assert!(left_changed > done / 20, "only {left_changed} were killed in the middle");
    assert!(kinds.len() >= 3, "{kinds:?}");
}

pub(crate) fn journal(state: &Path) -> std::path::PathBuf {
    state.join("journal.json")
}

/// Starts a run that ends in this way.
fn start(end: End, cpu: &str, state: &Path, random: &mut Random) -> Child {
    let mut command = match end {
        End::Signal(_) => tool(
            &[&["jitter", "--no-trace", "-a", cpu, "-d", "10"], &EVERYTHING[..]].concat(),
        ),
        End::Panic => {
            let mut own = Command::new(std::env::current_exe().unwrap());
            own.args(["--ignored", "--exact", "kills::panics"]);
            own.env(PANIC, random.below(6).to_string());
            own.stdout(Stdio::null()).stderr(Stdio::null());
            own
        }
    };
    command.env("NOISEFLOOR_STATE", state).env("NOISEFLOOR_TEST_CPU", cpu);
    command.spawn().unwrap()
}

/// The kinds of settings that differ from the original. A run does not change what another run on this
/// machine has changed already.
fn changed_kinds(before: &Settings) -> Vec<&'static str> {
    settings::kinds(before, &settings::raw())
}

/// Alternately `restore` and another command.
fn clean_up(number: u32, state: &Path) {
    let args: &[&str] =
        if number % 2 == 0 { &["restore"] } else { &["ticks", "-n", "1", "-i", "1ms"] };
    let done = tool(args).env("NOISEFLOOR_STATE", state).status().unwrap();
    assert!(done.success(), "{args:?}: {done}");
}

fn judge(number: u32, end: End, before: &Settings, state: &Path) {
    let changed = settings::changed(before, &settings::now());
    assert!(changed.is_empty(), "run {number}, {end:?}: {changed:?}");
    let left = fs::read_to_string(journal(state)).unwrap_or_default();
    assert!(left.is_empty(), "run {number}, {end:?}: {left}");
}

/// Not a test: changes settings, one more each time, and panics after that many.
#[test]
#[ignore = "started by another test"]
fn panics() {
    let Ok(after) = std::env::var(PANIC) else { return };
    let cpus = std::env::var("NOISEFLOOR_TEST_CPU").unwrap().parse().unwrap();
    let after: usize = after.parse().unwrap();
    let facts = facts::Facts::read(&facts::Root::live());
    let none = IsolationOptions { cpus: Some(cpus), ..IsolationOptions::default() };
    let options = [
        IsolationOptions { unthrottled: true, ..none.clone() },
        IsolationOptions { irqs: true, ..none.clone() },
        IsolationOptions { workqueues: true, ..none.clone() },
        IsolationOptions { kthreads: true, ..none.clone() },
        IsolationOptions { partition: true, ..none },
    ];
    let held: Vec<Isolation> = options
        .iter()
        .enumerate()
        .map(|(number, options)| {
            assert!(number < after, "a panic, on purpose");
            Isolation::begin(options, &facts).unwrap()
        })
        .collect();
    assert!(held.is_empty(), "a panic, on purpose");
}

/// Check that two parallel runs share their changes: the last one restores the setting, and
/// none does so before.
#[test]
fn runs_share() {
    let Some(cpu) = cpu("runs_share") else { return };
    let _alone = alone();
    let state = tempfile::tempdir().unwrap();
    let before = settings::now();
    let is_changed = || !settings::changed(&before, &settings::now()).is_empty();
    let mut runs = [(); 2].map(|()| hold(&cpu, state.path()));
    let text = || fs::read_to_string(journal(state.path())).unwrap_or_default();
    let both_hold =
        || runs_of(&text()).iter().all(|holders| *holders == 2) && is_changed();
    wait_for(|| !text().is_empty() && both_hold());
    end(&mut runs[0]);
    assert!(is_changed(), "restored too early");
    let told = tool(&["restore"])
        .env("NOISEFLOOR_STATE", state.path())
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    assert!(told.status.success() && is_changed(), "taken away");
    let (told, other) = (text_of(&told.stdout), runs[1].id());
    assert!(told.contains(&format!("process {other} (")), "{told}");
    end(&mut runs[1]);
    judge(0, End::Signal(0), &before, state.path());
}

/// The number of runs of each entry of a journal.
fn runs_of(journal: &str) -> Vec<usize> {
    let page: serde_json::Value = serde_json::from_str(journal).unwrap_or_default();
    let changes = page["changes"].as_array().cloned().unwrap_or_default();
    changes.iter().map(|entry| entry["holders"].as_array().map_or(0, Vec::len)).collect()
}

/// Starts a run that needs interrupts moved away from the CPU until its standard input ends.
fn hold(cpu: &str, state: &Path) -> Child {
    let mut own = Command::new(std::env::current_exe().unwrap());
    own.args(["--ignored", "--exact", "kills::holds"]).stdin(Stdio::piped());
    own.env("NOISEFLOOR_STATE", state).env("NOISEFLOOR_TEST_CPU", cpu);
    own.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn end(run: &mut Child) {
    drop(run.stdin.take());
    assert!(run.wait().unwrap().success());
}

/// Not a test: holds settings until its standard input ends.
#[test]
#[ignore = "started by another test"]
fn holds() {
    let Ok(cpu) = std::env::var("NOISEFLOOR_TEST_CPU") else { return };
    let facts = facts::Facts::read(&facts::Root::live());
    let cpus = Some(cpu.parse().unwrap());
    let options = IsolationOptions { cpus, irqs: true, ..IsolationOptions::default() };
    let held = Isolation::begin(&options, &facts).unwrap();
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    held.end().unwrap();
}

pub(crate) fn wait_for(mut what: impl FnMut() -> bool) {
    for _ in 0..6_000 {
        if what() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("it did not happen in a minute");
}

/// Check that a setting that another program has changed is not touched, and that this is
/// reported.
#[test]
fn others_are_not_overruled() {
    let Some(_) = cpu("others_are_not_overruled") else { return };
    let _alone = alone();
    let state = tempfile::tempdir().unwrap();
    let file = "/proc/sys/kernel/sched_rt_runtime_us";
    let now = || settings::now().remove(file).unwrap();
    let old = now();
    let entry = serde_json::json!({
        "setting": {"file": file}, "old": "940000", "new": ["930000"], "holders": ["1-0"],
        "pid": 1, "time_s": 0,
        "boot_id": fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim(),
    });
    let page = serde_json::json!({"format": 1, "changes": [entry]}).to_string();
    fs::write(journal(state.path()), page).unwrap();
    let told = tool(&["restore"])
        .env("NOISEFLOOR_STATE", state.path())
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let told = text(&told.stdout);
    assert!(told.contains("another program changed it"), "{told}");
    assert_eq!(now(), old);
    assert_eq!(text(&output(&["restore"]).stderr), "");
}
