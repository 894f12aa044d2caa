//! The cache: its contents, after a killed lab, with a second lab, and on a full disk.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::lost::has_guests;
use crate::repeats::Mixed;
use crate::site::{OLD, Site, named, text};

/// The longest time for a guest on a busy host.
const LONG: Duration = Duration::from_secs(300);

/// The number of cells of the brief experiment.
const BRIEF: usize = 2;

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The number of cached results.
fn kept(site: &Site) -> usize {
    let entries =
        fs::read_dir(site.cache().join("cells")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().join("inputs.json").exists()).count()
}

/// Whether a guest boots; before, QEMU is started to determine whether it loads the counter.
fn has_console(site: &Site) -> bool {
    let works = fs::read_dir(site.cache().join("work")).into_iter().flatten().flatten();
    works.into_iter().any(|work| work.path().join("console").exists())
}

fn cached(cells: &[Value]) -> usize {
    cells.iter().filter(|cell| cell["cached"] == true).count()
}

fn same(some: &[Value], all: &[Value]) {
    for one in some {
        let other = named(all, one["name"].as_str().unwrap());
        assert_eq!(one["counts"], other["counts"]);
        assert_eq!(one["series"], other["series"]);
    }
}

/// Ends a lab in its second cell with a signal, when the first is cached already, and checks
/// that nothing is left of it and that another lab continues from there.
fn resumes(signal: Signal) {
    let Some(mixed) = Mixed::get() else { return };
    let site = mixed.copied();
    fs::remove_dir_all(site.kept(named(&mixed.cells, "idle"))).unwrap();
    let before = kept(&site);
    let mut lab = site.tool(&["lab", "run", "--json", "-j", "1", &mixed.brief]);
    let lab = lab.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the second begins", || has_console(&site));
    kill_process(Pid::from_child(&lab), signal).unwrap();
    let output = lab.wait_with_output().unwrap();
    wait_until("its guest ends, too", || !has_guests(&site.cache()));
    if signal == Signal::INT {
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["cells"].as_array().unwrap().len(), 1, "{told}");
    }
    assert_eq!(kept(&site), before, "nothing of it is cached");
    let cells = site.cells(&[&mixed.brief], 0);
    assert_eq!((cached(&cells), cells.len()), (BRIEF - 1, BRIEF));
    assert_eq!(fs::read_dir(site.cache().join("work")).unwrap().count(), 0);
    same(&cells, &mixed.cells);
}

/// Check that after SIGKILL the lab continues with the cell that was running.
#[test]
fn resumes_after_sigkill() {
    resumes(Signal::KILL);
}

/// Check that Ctrl-C ends a lab, which reports the finished cells.
#[test]
fn resumes_after_ctrl_c() {
    resumes(Signal::INT);
}

/// Check that with two labs on one cache each cell is run by one, and reported by both.
#[test]
fn two_labs() {
    let Some(mixed) = Mixed::get() else { return };
    let site = Site::new().unwrap();
    let cells = thread::scope(|scope| {
        let lab = || site.cells(&[&mixed.brief, "-j", "1"], 0);
        let labs = [scope.spawn(lab), scope.spawn(lab)];
        labs.map(|lab| lab.join().unwrap())
    });
    assert_eq!([cells[0].len(), cells[1].len()], [BRIEF; 2]);
    assert_eq!(cached(&cells[0]) + cached(&cells[1]), BRIEF);
    same(&cells[0], &mixed.cells);
    same(&cells[1], &mixed.cells);
}

/// Check that a cached result is not measured again, that a run with `--fresh` confirms it, and
/// that a modified one is detected.
#[test]
fn fresh() {
    let Some(mixed) = Mixed::get() else { return };
    let site = mixed.copied();
    let args = [mixed.file.as_str(), "-s", "workload=calls"];
    assert_eq!(site.cells(&args, 0)[0]["cached"], true);
    let fresh = [args.as_slice(), &["--fresh"]].concat();
    assert_eq!(site.cells(&fresh, 0)[0]["cached"], false);
    let file = site.kept(&site.cells(&args, 0)[0]).join("counts.json");
    let counts = fs::read_to_string(&file).unwrap();
    fs::write(&file, counts.replacen("\"kernel\":", "\"kernel\":1", 1)).unwrap();
    let cells = site.cells(&fresh, 4);
    assert_eq!(cells[0]["doubts"][0]["code"], "not_repeated", "{}", cells[0]["doubts"]);
}

/// Check that a damaged result is replaced.
#[test]
fn damaged() {
    let Some(mixed) = Mixed::get() else { return };
    let site = mixed.copied();
    let args = [mixed.file.as_str(), "-s", "workload=calls"];
    let first = site.cells(&args, 0);
    assert_eq!(cached(&first), 1);
    let file = site.kept(&first[0]).join("answer");
    let answer = fs::read(&file).unwrap();
    fs::write(&file, &answer[..answer.len() / 2]).unwrap();
    let again = site.cells(&args, 0);
    assert_eq!(cached(&again), 0);
    same(&first, &again);
    assert!(fs::read(&file).unwrap() == answer);
}

/// Check that a full disk is reported as such, with the remedy.
#[test]
fn full_disk() {
    let Some(site) = Site::new() else { return };
    let kernels = site.cache().join("kernels").canonicalize().unwrap();
    let disk = site.cache().join("disk");
    fs::create_dir(&disk).unwrap();
    let file = site.file("full", "");
    // In a separate mount namespace, which ends with it.
    let script = format!(
        "mount -t tmpfs -o size=256k none '{disk}' && ln -s '{kernels}' '{disk}/kernels' && \
         touch '{file}.ready' && exec '{tool}' lab run tick-cost -k {OLD} --json",
        disk = disk.display(),
        kernels = kernels.display(),
        tool = crate::site::TOOL,
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).env("NOISEFLOOR_CACHE", &disk);
    let output = command.output().unwrap();
    if !std::path::Path::new(&format!("{file}.ready")).exists() {
        println!("skipped: no small disk to fill: {}", text(&output.stderr).trim());
        return;
    }
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains("No space left"), "{said}");
    assert!(said.contains("NOISEFLOOR_CACHE"), "{said}");
    assert!(output.stdout.is_empty());
}

/// Check that a QEMU that is too old for two CPUs is refused before anything boots.
#[test]
fn old_qemu() {
    let Some(mixed) = Mixed::get() else { return };
    let site = Site::new().unwrap();
    let old = site.script("qemu-7", "#!/bin/sh\necho QEMU emulator version 7.2.19\n");
    let mut command = site.tool(&["lab", "run", &mixed.file, "--json"]);
    let output = command.env("NOISEFLOOR_QEMU", &old).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(said.contains("2 CPUs") && said.contains("qemu-system-x86"), "{said}");
}
