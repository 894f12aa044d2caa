//! Outputs in folders that other users can write to, and FIFOs whose other end never comes.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use crate::file_protections::with_protections_off_and_on;
use crate::tool::{TOOL, UNPRIVILEGED, is_root, run, signal, spawn, text, tool};

/// A recording of slices.
const SLICES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../recording/tests/golden/slices-1.json");
/// A short measurement.
const TICKS: [&str; 5] = ["ticks", "-n", "1", "-i", "1ms"];

/// Each option that names a file: FILE and DIR are replaced by links to a file and to a folder.
const OPTIONS: [&str; 17] = [
    "ticks -n 1 -i 1ms -o FILE",
    "noise -d 50ms --trace FILE",
    "jitter -t 2 -l 2 --fifo 0 -H FILE",
    "run --json-to FILE true",
    "check -d 50ms --rest 10ms --prometheus FILE",
    "slices 2 -d 50ms -o FILE",
    "report SLICES -o FILE",
    "export SLICES --format csv -o FILE",
    "lab run tick-cost --metric tick_instructions --chart FILE",
    "lab explain tick-cost/other -o FILE",
    "facts -q --record DIR",
    "advise --no-measure --emit script DIR",
    "generate man DIR/man",
    "generate completions DIR",
    "repeat -n 2 -o DIR -- ticks -n 1 -i 1ms",
    "noise -d 50ms --save",
    "history",
];

/// Runs a command with the link of another user.
fn with_links(command: &str, dir: &Path) -> Output {
    let (file, folder) = (dir.join("shared/link.svg"), dir.join("shared/folder"));
    let command = command.replace("FILE", file.to_str().unwrap());
    let command = command.replace("DIR", folder.to_str().unwrap());
    let words: Vec<&str> = command.split(' ').collect();
    let words = words.iter().map(|word| if *word == "SLICES" { SLICES } else { word });
    let mut tool = tool(&words.collect::<Vec<_>>());
    tool.env("NOISEFLOOR_HISTORY", &file).env("NOISEFLOOR_CACHE", folder);
    tool.output().unwrap()
}

/// Check that root does not follow another user's link in a folder as /tmp, with every option that names
/// a file, whatever `fs.protected_symlinks` is, and that this is an error before the measurement.
#[test]
fn links_of_others() {
    if !is_root() {
        println!("skipped: links_of_others: it takes root to make another user's link");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    for (name, mode) in [("own", 0o755), ("shared", 0o1777)] {
        fs::create_dir(path(name)).unwrap();
        fs::set_permissions(path(name), Permissions::from_mode(mode)).unwrap();
    }
    fs::write(path("own/victim"), "old").unwrap();
    for (link, target) in [("link.svg", "own/victim"), ("folder", "own")] {
        let link = path("shared").join(link);
        symlink(path(target), &link).unwrap();
        lchown(&link, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    }
    let caches = ["lab kernels build build:debian:6.1,lean"];
    with_protections_off_and_on(|| {
        for command in OPTIONS.iter().chain(&caches) {
            let output = with_links(command, dir.path());
            let said = text(&output.stderr);
            assert!([2, 3].contains(&output.status.code().unwrap()), "{command}: {said}");
            assert!(
                said.contains("is a symbolic link of user 59999"),
                "{command}: {said}"
            );
            assert_eq!(text(&output.stdout), "", "{command}");
            assert_eq!(
                fs::read_to_string(path("own/victim")).unwrap(),
                "old",
                "{command}"
            );
            assert_eq!(fs::read_dir(path("own")).unwrap().count(), 1, "{command}");
        }
    });
}

/// Check that another user's FIFO is refused at once: it would give the recording away, or wait.
#[test]
fn fifos_of_others() {
    if !is_root() {
        println!("skipped: fifos_of_others: it takes root to make another user's FIFO");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).unwrap();
    let fifo = fifo(dir.path());
    lchown(&fifo, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    with_protections_off_and_on(|| {
        let output = run(&[&TICKS[..], &["-o", &fifo]].concat());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("is a FIFO of user 59999"), "{said}");
    });
}

fn fifo(dir: &Path) -> String {
    let fifo = dir.join("fifo").to_str().unwrap().to_owned();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    fifo
}

/// Waits for a message of a process that has these words; returns its other messages, which must not be
/// dropped before it has ended.
fn wait_for_message(child: &mut Child, words: &str) -> BufReader<ChildStderr> {
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let is_found = stderr.by_ref().lines().any(|line| line.unwrap().contains(words));
    assert!(is_found, "no message: {words}");
    stderr
}

/// Check that a run whose FIFO has no reader reports the wait, and that one signal ends it, after
/// the measurement (exit code 4).
#[test]
fn writers_do_not_wait_forever() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = fifo(dir.path());
    for end in [libc::SIGTERM, libc::SIGINT] {
        let mut child = spawn(&[&TICKS[..], &["-o", &fifo]].concat());
        let _said = wait_for_message(
            &mut child,
            &format!("waiting for a reader of the FIFO {fifo}"),
        );
        signal(&child, end);
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(4));
    }
}

/// Check that the signal that ends a measurement also ends a run whose FIFO has no reader.
#[test]
fn one_signal_ends_both() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = fifo(dir.path());
    let mut child = spawn(&["ticks", "-i", "10ms", "-o", &fifo]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    // It measures, and so handles signals.
    stdout.read_line(&mut String::new()).unwrap();
    signal(&child, libc::SIGTERM);
    let rest =
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("interrupted while waiting for a reader"), "{said}");
    rest.join().unwrap().unwrap();
}

/// Check that commands that read a FIFO without a writer report the wait, and that a signal ends it.
#[test]
fn readers_do_not_wait_forever() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = fifo(dir.path());
    let toml = fs::canonicalize(dir.path()).unwrap().join("fifo");
    let toml = toml.to_str().unwrap();
    for args in [
        &["report", &fifo][..],
        &["export", "--format", "csv", &fifo],
        &["compare", &fifo, SLICES],
        &["lab", "show", toml],
    ] {
        let mut child = spawn(args);
        let _said = wait_for_message(&mut child, "waiting for data from the FIFO ");
        signal(&child, libc::SIGINT);
        let status = child.wait_with_output().unwrap().status;
        assert_eq!(status.signal(), Some(libc::SIGINT), "{args:?}: {status:?}");
    }
}

/// Check that a recording goes from one noisefloor to another by a FIFO, and to and from the files of a
/// shell: process substitution, a descriptor, and a pipe as standard output.
#[test]
fn shells() {
    if Command::new("bash").arg("-c").arg("true").status().is_err() {
        println!("skipped: shells: there is no bash");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = r#"set -e
        ticks() { "$0" ticks -q -n 1 -i 1ms "$@"; }
        mkfifo p
        ticks -o p > /dev/null & "$0" report p > fifo.txt; wait $!
        ticks -o >(cat > sub.json) > /dev/null; wait $!
        "$0" report <(cat sub.json) > sub.txt
        ticks -o /dev/fd/3 > /dev/null 3> fd.json; "$0" report fd.json > fd.txt
        ticks -o /dev/stderr 2>&1 > /dev/null | "$0" report /dev/stdin > pipe.txt
        ticks -o /dev/null > null.txt"#;
    let mut bash = Command::new("bash");
    bash.args(["-c", script, TOOL]).current_dir(dir.path()).stdin(Stdio::null());
    let output = bash.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    for file in ["fifo", "sub", "fd", "pipe", "null"] {
        let report = fs::read_to_string(dir.path().join(format!("{file}.txt"))).unwrap();
        assert!(report.contains("Timer interrupts"), "{file}: {report}");
    }
}
