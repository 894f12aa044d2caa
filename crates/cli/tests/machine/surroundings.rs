//! Machines on which something is missing: file systems, CPUs, columns of the terminal.

use std::process::{Command, Output, Stdio};

use crate::environment::with_own_claims;
use crate::tool::{TOOL, first_cpu, is_root, text, tool, tool_on, turn};

/// A short check.
const CHECK: &str = "check --full -d 100ms --rest 100ms";

/// The program in a mount namespace in which `hide` was run before; `None`, with the reason printed,
/// if that is not possible here.
fn without(hide: &str, arguments: &str) -> Option<Output> {
    let script = |then: &str| {
        let mut command = Command::new("unshare");
        command
            .args(["-m", "sh", "-ec", &format!("{hide}\n{then}")])
            .stdin(Stdio::null());
        with_own_claims(&mut command);
        command.output()
    };
    let is_possible = is_root() && script("true").is_ok_and(|done| done.status.success());
    if !is_possible {
        println!("skipped: surroundings: no mount namespace can be made here");
        return None;
    }
    Some(script(&format!("exec {TOOL} {arguments}")).unwrap())
}

/// Check that a container without /sys gets a report.
#[test]
fn without_sys() {
    let _turn = turn();
    let Some(done) = without("mount -t tmpfs none /sys", CHECK) else { return };
    let (out, err) = (text(&done.stdout), text(&done.stderr));
    assert!(matches!(done.status.code(), Some(0 | 4)), "{err}");
    assert!(out.contains("Findings, each") && out.contains("isolated unknown"), "{out}");
    assert!(!err.contains("panicked"), "{err}");
}

/// Check that commands for which the list of CPUs is needed say in one line that it cannot be read,
/// and what helps, with exit code 3; and that it is no usage error.
#[test]
fn without_a_list_of_cpus() {
    let _turn = turn();
    let hide = "mount -t tmpfs none /sys\nmount -t tmpfs none /proc";
    for arguments in [
        CHECK,
        "noise -d 100ms",
        "latency -d 100ms",
        "slices 1 -d 100ms",
        "jitter -d 1s --fifo 0",
        "run true",
    ] {
        let Some(done) = without(hide, arguments) else { return };
        let err = text(&done.stderr);
        assert_eq!(done.status.code(), Some(3), "{arguments}: {err}");
        assert_eq!(err.lines().count(), 1, "{arguments}: {err}");
        let words =
            ["failed to read the kernel's lists of CPUs: ", "hint: mount /proc and /sys"];
        assert!(words.iter().all(|words| err.contains(words)), "{arguments}: {err}");
    }
}

/// Check that `check` on one CPU has a report.
#[test]
fn on_one_cpu() {
    let _turn = turn();
    let arguments: Vec<&str> = CHECK.split(' ').collect();
    let done = tool_on(&first_cpu(), &arguments).output().unwrap();
    assert!(matches!(done.status.code(), Some(0 | 4)), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("Findings, each"));
}

/// Check that reports fit a narrow terminal, and that a width of no use has no effect.
#[test]
fn in_forty_columns() {
    for kind in ["check", "noise", "ticks", "latency", "jitter", "slices", "run"] {
        let file = format!("../recording/tests/golden/{kind}-1.json");
        let report = |columns: &str| {
            let done = tool(&["report", &file]).env("COLUMNS", columns).output().unwrap();
            assert!(done.status.success(), "{kind}: {}", text(&done.stderr));
            text(&done.stdout)
        };
        let narrow = report("40");
        let longest = narrow.lines().map(|line| line.chars().count()).max();
        assert!(longest.is_some_and(|longest| longest <= 40), "{narrow}");
        assert_eq!(report("0"), report("200"));
        assert_ne!(report("0"), narrow);
    }
}
