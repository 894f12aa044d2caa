//! The state directory on a shared machine, damaged journals and processes that hold its lock.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::install::install;
use crate::kills::journal;
use crate::{alone, cpu, text, tool};

/// A user without privileges.
const UNPRIVILEGED: u32 = 65_534;
const CORE_PATTERN: &str = "/proc/sys/kernel/core_pattern";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

fn is_root() -> bool {
    // SAFETY: takes no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// A state directory with a journal according to which a file was changed from `old` to `new`.
fn with_journal(file: &str, old: &str, new: &str) -> tempfile::TempDir {
    let state = tempfile::tempdir().unwrap();
    let entry = serde_json::json!({
        "setting": {"file": file}, "old": old, "new": [new], "holders": [], "pid": 1,
        "time_s": 0, "boot_id": fs::read_to_string(BOOT_ID).unwrap().trim(),
    });
    let page = serde_json::json!({"format": 1, "changes": [entry]});
    fs::write(journal(state.path()), page.to_string()).unwrap();
    state
}

fn restore(tool: &mut Command, state: &Path) -> Output {
    let restore = tool.env("NOISEFLOOR_STATE", state);
    restore.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
}

/// Check that a journal causes writes to files of settings only.
#[test]
fn only_settings_are_restored() {
    let now = fs::read_to_string(CORE_PATTERN).unwrap();
    let state = with_journal(CORE_PATTERN, "forged", now.trim());
    let output = restore(&mut tool(&["restore"]), state.path());
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
    let said = text(&output.stdout);
    assert!(said.contains("not a setting that noisefloor changes"), "{said}");
    let said = text(&output.stderr);
    assert!(said.contains("failed to restore 1 of 1 settings"), "{said}");
    // No privilege helps.
    assert_eq!(said.contains("run it as root"), !is_root(), "{said}");
    assert_eq!(fs::read_to_string(CORE_PATTERN).unwrap(), now);
}

/// Check that a journal that another user wrote, or could have written, is refused, and also
/// one behind a symbolic link.
#[test]
fn journals_of_others_are_refused() {
    let refused = |why: &str, spoil: &dyn Fn(&Path)| {
        let state = with_journal(CORE_PATTERN, "forged", "core");
        spoil(state.path());
        let output = restore(&mut tool(&["restore"]), state.path());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{why}: {said}");
        assert!(said.contains(why), "{said}");
    };
    let open =
        |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    refused("can be written by others", &|state| open(state));
    refused("can be written by others", &|state| open(&journal(state)));
    refused("symbolic link", &|state| {
        let moved = state.join("moved");
        fs::rename(journal(state), &moved).unwrap();
        std::os::unix::fs::symlink(&moved, journal(state)).unwrap();
    });
    if is_root() {
        let chown = |path: &Path| {
            std::os::unix::fs::chown(path, Some(UNPRIVILEGED), None).unwrap();
        };
        refused("belongs to user 65534", &|state| chown(state));
        refused("belongs to user 65534", &|state| chown(&journal(state)));
    }
}

/// Check that another user cannot open, and so lock, anything in the state directory, also if
/// an earlier version had made it readable for all.
#[test]
fn others_can_lock_nothing() {
    let Some(cpu) = cpu("others_can_lock_nothing") else { return };
    let _alone = alone();
    let outer = tempfile::tempdir().unwrap();
    let state = outer.path().join("state");
    fs::create_dir(&state).unwrap();
    for path in [outer.path(), &state] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let run = tool(&["jitter", "-a", &cpu, "-t", "1", "-l", "2"])
        .env("NOISEFLOOR_STATE", &state)
        .status();
    assert!(run.unwrap().code().is_some_and(|code| code == 0 || code == 4));
    assert!(state.join("lock").exists());
    let mut read = Command::new(std::env::current_exe().unwrap());
    read.args(["--ignored", "--exact", "state::opens"]).env(OPEN, state.join("lock"));
    let program = public(outer.path(), Path::new(read.get_program()));
    let mut other = Command::new(program);
    other.args(read.get_args()).env(OPEN, state.join("lock")).uid(UNPRIVILEGED);
    assert!(
        read.stdout(Stdio::null()).status().unwrap().success(),
        "root cannot open it"
    );
    assert!(
        !other.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success(),
        "others can open it"
    );
}

/// A copy of a program that every user may run.
fn public(folder: &Path, program: &Path) -> PathBuf {
    let copy = folder.join("program");
    install(program, &copy);
    copy
}

const OPEN: &str = "NOISEFLOOR_TEST_OPENS";

/// Not a test: opens a file.
#[test]
#[ignore = "started by another test"]
fn opens() {
    let Some(file) = std::env::var_os(OPEN) else { return };
    File::open(file).unwrap();
}

/// Check that a run that has to wait for the journal names the process that holds it, and that
/// a signal ends the wait, with or without a handler.
#[test]
fn waits_are_reported_and_end() {
    let Some(cpu) = cpu("waits_are_reported_and_end") else { return };
    let _alone = alone();
    let state = with_journal("/proc/irq/4000000/smp_affinity_list", "0", "1");
    let lock = File::create(state.path().join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    // Without a journal there is nothing to restore at the beginning, when signals have no
    // handlers yet.
    let measure = ["jitter", "-a", &cpu, "-d", "600"];
    for (args, is_changed) in [(&["restore"][..], true), (&measure, false)] {
        if !is_changed {
            fs::remove_file(journal(state.path())).unwrap();
        }
        let mut run = tool(args)
            .env("NOISEFLOOR_STATE", state.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
        let own = format!("waiting: process {} (", std::process::id());
        let said = lines.find(|line| line.as_ref().unwrap().contains(&own));
        assert!(said.is_some(), "{args:?}: no wait was reported");
        // SAFETY: takes numbers only; the child has not been waited for.
        unsafe { libc::kill(i32::try_from(run.id()).unwrap(), libc::SIGINT) };
        // A measurement of ten minutes ends, too.
        run.wait().unwrap();
    }
}

/// Check that a user who is not root is informed that settings of root's runs may be changed.
#[test]
fn roots_settings_are_not_hidden() {
    let Some(cpu) = cpu("roots_settings_are_not_hidden") else { return };
    let _alone = alone();
    tool(&["jitter", "-a", &cpu, "-t", "1", "-l", "2"]).status().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let program = public(folder.path(), Path::new(tool(&[]).get_program()));
    let mut other = Command::new(program);
    other.arg("restore").uid(UNPRIVILEGED).env("HOME", folder.path());
    let output = other.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stdout));
    let said = text(&output.stderr);
    assert!(said.contains("/run/noisefloor") && said.contains("sudo"), "{said}");
    assert_eq!(text(&output.stdout), "Nothing to restore from runs of this user.\n");
}
