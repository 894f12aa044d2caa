//! `try`, `repeat --step` and `slices --step`: settings that are left in place, refused, or changed by others.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{alone, cpu, output, text, tool};

/// A setting that nothing depends on, and another one.
const STAT: &str = "/proc/sys/vm/stat_interval";
const WRITEBACK: &str = "/proc/sys/vm/dirty_writeback_centisecs";

/// The value of a setting before a test, which is restored after it.
struct Before(&'static str, String);

impl Before {
    fn of(file: &'static str) -> Self {
        Self(file, now(file))
    }
}

impl Drop for Before {
    fn drop(&mut self) {
        let _ = fs::write(self.0, &self.1);
    }
}

fn now(file: &str) -> String {
    fs::read_to_string(file).unwrap().trim().to_owned()
}

/// Runs `try` with a program of the shell, without traced events.
fn tried(cpu: &str, options: &[&str], script: &str) -> (Value, String) {
    let run = ["--", "run", "-c", cpu, "--source", "proc", "sh", "-c", script];
    let output = output(&[&["try", "--json"], options, &run[..]].concat());
    let stderr = text(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (report, stderr)
}

/// Whether sysctls can be written: in containers, often not even by root.
pub(crate) fn is_writable(test: &str) -> bool {
    let open = |file| fs::OpenOptions::new().write(true).open(file).is_ok();
    let is_writable = [STAT, WRITEBACK].into_iter().all(open);
    if !is_writable {
        println!("skipped: {test}: /proc/sys is read-only");
    }
    is_writable
}

/// The CPU, if there is a shell: guests have none.
fn cpu_and_shell(test: &str) -> Option<String> {
    if !fs::exists("/bin/sh").unwrap() {
        println!("skipped: {test}: there is no shell");
        return None;
    }
    cpu(test).filter(|_| is_writable(test))
}

/// Check that `slices --step` tries settings as `try` does, in balanced order.
#[test]
fn slices_try_settings() {
    let test = "slices_try_settings";
    let Some(cpu) = cpu(test).filter(|_| is_writable(test)) else { return };
    let _alone = alone();
    let before = Before::of(STAT);
    let slices = ["slices", "2", "--sleepers", "0", "-c", &cpu, "-d", "200ms"];
    let step = ["--step", "vm.stat_interval=7", "-o", "-"];
    let output = output(&[&slices[..], &step].concat());
    let recording: Value = serde_json::from_slice(&output.stdout).unwrap();
    let turns = recording["series"]["turns"].as_array().unwrap().iter();
    let steps: Vec<u64> = turns.map(|turn| turn["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [0, 1, 1, 0, 0, 1, 1, 0]);
    assert_eq!(now(STAT), before.1);
}

/// Check that a setting that another process has changed is not tried: each would measure with the
/// value of the other.
#[test]
fn one_process_at_a_time() {
    let test = "one_process_at_a_time";
    let Some(cpu) = cpu(test).filter(|_| is_writable(test)) else { return };
    let _alone = alone();
    let before = Before::of(STAT);
    let noise = ["--", "noise", "-c", &cpu, "-d"];
    let other = ["try", "vm.stat_interval=7", "-n", "1"];
    let mut first = tool(&[&other[..], &noise, &["10"]].concat());
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while now(STAT) != "7" && begin.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(5));
    }
    // Both variants change it: which one is the first is random.
    let own = ["try", "vm.stat_interval=9", "--vs", "vm.stat_interval=8", "-n", "1"];
    let second = output(&[&own[..], &noise, &["1ms"]].concat());
    let said = text(&second.stderr);
    let meanwhile = now(STAT);
    // SAFETY: takes numbers only; the child has not been waited for.
    unsafe { libc::kill(i32::try_from(first.id()).unwrap(), libc::SIGTERM) };
    first.wait().unwrap();
    assert!(said.contains("has changed"), "{said}");
    assert_eq!((meanwhile.as_str(), now(STAT)), ("7", before.1.clone()));
}

/// Check that if Ctrl-C ends `try` before each variant has a run, one sentence says so.
#[test]
fn nothing_is_compared() {
    let test = "nothing_is_compared";
    let Some(cpu) = cpu(test).filter(|_| is_writable(test)) else { return };
    let _alone = alone();
    let before = Before::of(STAT);
    let args = ["try", "vm.stat_interval=7", "--vs", "vm.stat_interval=8", "--"];
    let mut run = tool(&[&args[..], &["noise", "-c", &cpu, "-d", "100"]].concat());
    let run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while now(STAT) == before.1 && begin.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(1));
    }
    // SAFETY: takes numbers only; the child has not been waited for.
    unsafe { libc::kill(i32::try_from(run.id()).unwrap(), libc::SIGINT) };
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let said =
        "noisefloor: nothing to compare: the runs ended before each variant had one\n";
    assert_eq!(
        (text(&output.stdout).as_str(), text(&output.stderr).as_str()),
        ("", said)
    );
    assert_eq!(now(STAT), before.1);
}

/// Check that a list is as it was if the kernel rejects its last number: it stores the others before.
#[test]
fn rejected_lists_are_restored() {
    const BUFFERS: &str = "/proc/sys/net/ipv4/tcp_rmem";
    let test = "rejected_lists_are_restored";
    let Some(cpu) = cpu(test).filter(|_| is_writable(test)) else { return };
    if fs::OpenOptions::new().write(true).open(BUFFERS).is_err() {
        println!("skipped: {test}: {BUFFERS} is not there, or read-only");
        return;
    }
    let _alone = alone();
    let before = Before::of(BUFFERS);
    let tried = output(&[
        "try",
        "net.ipv4.tcp_rmem=8192 262144 0",
        "-n",
        "1",
        "--",
        "noise",
        "-c",
        &cpu,
        "-d",
        "1ms",
    ]);
    assert_eq!(tried.status.code(), Some(3), "{}", text(&tried.stderr));
    assert!(text(&tried.stderr).contains("failed to set"), "{}", text(&tried.stderr));
    assert_eq!(now(BUFFERS), before.1);
}

/// Check that the better setting is left in place with `--keep`, but not without it, and that the
/// report says what makes it last.
#[test]
fn better_settings_stay() {
    let Some(cpu) = cpu_and_shell("better_settings_stay") else { return };
    let _alone = alone();
    let before = Before::of(STAT);
    fs::write(STAT, "1").unwrap();
    // The setting makes a program faster that reads it.
    let script = format!("[ $(cat {STAT}) = 7 ] || sleep 0.1");
    let options = ["vm.stat_interval=7", "-n", "8"];
    for (keep, expected) in [(&[][..], "1"), (&["--keep"], "7")] {
        let (report, said) = tried(&cpu, &[&options[..], keep].concat(), &script);
        assert_eq!(report["better"], "other", "{report:#} {said}");
        assert_eq!(report["in_place"], !keep.is_empty());
        assert_eq!(report["lasting"][0]["text"], "vm.stat_interval = 7");
        assert_eq!(now(STAT), expected, "{said}");
    }
    // The next command does not restore it.
    assert!(output(&["restore"]).status.success());
    assert_eq!(now(STAT), "7");
    drop(before);
}

/// Check that a setting that another program changes during a run is a doubt, and not overwritten.
#[test]
fn settings_that_others_change() {
    let Some(cpu) = cpu_and_shell("settings_that_others_change") else { return };
    let _alone = alone();
    let _before = Before::of(STAT);
    fs::write(STAT, "1").unwrap();
    let script = format!("[ $(cat {STAT}) = 1 ] || echo 9 > {STAT}");
    let (report, said) = tried(&cpu, &["vm.stat_interval=7", "-n", "2"], &script);
    let doubts = report["doubts"].as_array().unwrap();
    assert!(doubts.iter().any(|one| one["code"] == "setting_changed"), "{report:#}");
    assert!(said.contains("another program changed it to 9"), "{said}");
    assert_eq!(now(STAT), "9");
}

/// Check that settings are restored if the kernel refuses one of them, rounds it, or has none of that
/// name.
#[test]
fn refused_settings() {
    let Some(cpu) = cpu_and_shell("refused_settings") else { return };
    let _alone = alone();
    let _before = [STAT, WRITEBACK].map(Before::of);
    let [stat, writeback] = [STAT, WRITEBACK].map(now);
    let other = "vm.dirty_writeback_centisecs=777";
    for (setting, code, expected) in [
        ("vm.stat_interval=many", 3, "failed to set /proc/sys/vm/stat_interval = many"),
        ("vm.no_such_setting=1", 3, "/proc/sys/vm/no_such_setting"),
        ("kernel.core_pattern=core", 3, "not a setting that noisefloor changes"),
        (other, 2, "is named twice"),
        ("thp=sometimes", 2, "the values are"),
    ] {
        let run = ["-n", "2", "--", "run", "-c", &cpu, "true"];
        let output = output(&[&["try", other, setting], &run[..]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{setting}: {said}");
        // A kernel may be built without huge pages.
        assert!(said.contains(expected) || setting.starts_with("thp"), "{said}");
        assert_eq!([now(STAT), now(WRITEBACK)], [stat.clone(), writeback.clone()]);
    }
}

/// Check that the message to an unprivileged user names what needs root.
#[test]
fn settings_of_root() {
    let Some(cpu) = cpu("settings_of_root") else { return };
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), open).unwrap();
    let mut tool = crate::tool(&["try", "vm.stat_interval=7", "--", "noise", "-c", &cpu]);
    std::os::unix::process::CommandExt::uid(&mut tool, 59_999);
    tool.current_dir(folder.path()).stderr(std::process::Stdio::piped());
    let Ok(output) = tool.output() else {
        println!("skipped: settings_of_root: the program is in a closed folder");
        return;
    };
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(said.contains("may be changed by root only"), "{said}");
}
