//! Files of every kind that commands write to and read from.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::thread;

use crate::tool::{
    UNPRIVILEGED, first_cpu, is_root, pid, public_tool, run, spawn, text, tool, turn,
    unprivileged,
};

/// The shortest run of a command that writes a file.
const TICKS: [&str; 5] = ["ticks", "-n", "1", "-i", "1ms"];

fn make(program: &str, args: &[&str]) {
    assert!(Command::new(program).args(args).status().unwrap().success());
}

/// Check that every option that names a file preserves a device and a link.
#[test]
fn nodes_stay() {
    if !is_root() {
        println!("skipped: nodes_stay: it takes root to make a device");
        return;
    }
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (null, real, link) = (path("null"), path("real.svg"), path("link.svg"));
    make("mknod", &[&null, "c", "1", "3"]);
    if File::open(&null).is_err() {
        println!("skipped: nodes_stay: {} allows no device", dir.path().display());
        return;
    }
    symlink("real.svg", &link).unwrap();
    let cpu = first_cpu();
    let saved = path("saved.json");
    let slices = ["slices", "2", "-d", "50ms", "-c", &cpu, "-o", &saved, "-o"];
    let jitter = ["jitter", "-q", "--fifo", "0", "-t", "2", "-l", "2", "-H"];
    let noise = ["noise", "-q", "-d", "50ms", "-c", &cpu, "--trace"];
    for (args, file) in [
        (&["ticks", "-n", "1", "-i", "1ms", "-o"][..], &null),
        (&jitter, &null),
        (&noise, &null),
        (&slices, &link),
        (&["report", &saved, "-o"], &link),
    ] {
        let output = tool(args).arg(file).output().unwrap();
        let said = text(&output.stderr);
        if args[0] == "noise" && said.contains("events cannot be traced") {
            println!("skipped: nodes_stay, its trace: {said}");
            continue;
        }
        assert!([0, 4].contains(&output.status.code().unwrap()), "{args:?}: {said}");
        let what = fs::symlink_metadata(file).unwrap().file_type();
        assert!(what.is_char_device() || what.is_symlink(), "{args:?}");
        if what.is_symlink() {
            assert!(fs::metadata(&real).unwrap().len() > 0, "{args:?}");
            fs::write(&real, "").unwrap();
        }
    }
}

/// Check that without privileges another user's file is refused and not changed unless it may
/// be written, and that the user's own file keeps its mode.
#[test]
fn files_of_others() {
    if !is_root() {
        println!("skipped: files_of_others: it takes root to make another user's file");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let tool = public_tool(dir.path());
    let open = Permissions::from_mode(0o777);
    fs::set_permissions(dir.path(), open).unwrap();
    for (owner, mode, code) in [(0, 0o644, 2), (0, 0o666, 0), (UNPRIVILEGED, 0o600, 0)] {
        let file = dir.path().join("file");
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::chown(&file, Some(owner), Some(owner)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let mut command = unprivileged(&tool);
        let output = command.args(TICKS).arg("-o").arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        let about = fs::metadata(&file).unwrap();
        assert_eq!((about.uid(), about.mode() & 0o777), (owner, mode));
        let is_old = fs::read_to_string(&file).unwrap() == "old";
        assert_eq!(is_old, code != 0, "{owner} {mode:o}");
    }
}

/// Check that `-o -` prints the recording and nothing else, and that `report -` reads it.
#[test]
fn standard_output_and_input() {
    let recording = tool(&TICKS).args(["-o", "-"]).output().unwrap();
    assert_eq!(recording.status.code(), Some(0), "{}", text(&recording.stderr));
    let object: serde_json::Value = serde_json::from_slice(&recording.stdout).unwrap();
    assert!(object["series"].is_object());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.json");
    fs::write(&file, &recording.stdout).unwrap();
    let from_file = run(&["report", file.to_str().unwrap()]);
    let mut report = Command::new(crate::TOOL);
    report.args(["report", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut report = report.spawn().unwrap();
    report.stdin.take().unwrap().write_all(&recording.stdout).unwrap();
    let from_stdin = report.wait_with_output().unwrap();
    assert!(text(&from_stdin.stdout).contains("Timer interrupts"), "{from_stdin:?}");
    assert_eq!(text(&from_stdin.stdout), text(&from_file.stdout));
}

/// Check that standard output can be used for one purpose only.
#[test]
fn one_standard_output() {
    for args in [
        &["ticks", "-o", "-", "--json"][..],
        &["noise", "-o", "-", "--trace", "-"],
        &["jitter", "-o", "-", "-H", "-"],
        &["run", "-o", "-", "true"],
        &["report", "-", "-o", "-"],
    ] {
        let output = run(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert_eq!(text(&output.stdout), "", "{args:?}");
    }
}

/// Check that `report` refuses a device and a file of 1 GB at once, with little memory, and
/// that it ends when the writer of a FIFO ends.
#[test]
fn what_report_reads_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (large, fifo) = (path("large"), path("fifo"));
    File::create(&large).unwrap().set_len(1 << 30).unwrap();
    make("mkfifo", &[&fifo]);
    let writer = thread::spawn({
        let fifo = fifo.clone();
        move || {
            let mut fifo = OpenOptions::new().write(true).open(fifo).unwrap();
            fifo.write_all(br#"{"format":1,"kind":"noise","#).unwrap();
        }
    });
    for (file, why) in [
        ("/dev/zero", "is a character device"),
        (&large, "larger than 512 MiB"),
        (&fifo, "ends in the middle"),
    ] {
        let (code, said, memory) = memory_of(&["report", file]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(file) && said.contains(why), "{said}");
        assert!(memory < 128 << 20, "{file}: {memory} bytes");
    }
    writer.join().unwrap();
}

/// Runs the program: its exit code, its standard error, and its peak memory, in bytes.
#[expect(clippy::zombie_processes, reason = "wait4 waits for it")]
fn memory_of(args: &[&str]) -> (i32, String, i64) {
    let mut child = spawn(args);
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
    let mut status = 0;
    // SAFETY: all zeros is a value of this struct of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both are written to; the child is ours and not waited for otherwise.
    let ended = unsafe { libc::wait4(pid(&child), &raw mut status, 0, &raw mut usage) };
    assert_eq!(ended, pid(&child));
    (libc::WEXITSTATUS(status), said, usage.ru_maxrss * 1024)
}

/// Check that a tree of facts whose files are links out of it shows nothing of this machine,
/// and is recorded without these files.
#[test]
fn trees_are_not_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (tree, copy) = (path("tree"), path("copy"));
    assert!(run(&["facts", "-q", "--record", &tree]).status.success());
    let release = dir.path().join("tree/proc/sys/kernel/osrelease");
    fs::write(path("outside"), "6.66-outside").unwrap();
    fs::remove_file(&release).unwrap();
    symlink(path("outside"), &release).unwrap();
    let facts = run(&["facts", "--root", &tree]);
    assert!(!text(&facts.stdout).contains("6.66-outside"), "{}", text(&facts.stdout));
    assert!(text(&facts.stdout).contains("/proc/sys/kernel/version"));
    // A link in place of a new tree is refused: only the directory itself may be one.
    fs::create_dir(&copy).unwrap();
    symlink(dir.path(), format!("{copy}/proc")).unwrap();
    let refused = run(&["facts", "--record", &copy]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}
