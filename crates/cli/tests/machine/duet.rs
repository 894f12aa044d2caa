//! Two programs in pairs (`repeat --duet`): where they run, that they run at once, failing and hanging programs, signals,
//! and what is left behind.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::tool::{children, run, signal, spawn, text, tool_on, turn, wait_for};

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{}", text(&output.stderr)))
}

/// Two CPUs of this process, as a list; prints why the test is skipped if there is only one.
fn two_cpus(test: &str) -> Option<[String; 2]> {
    let cpus: Vec<String> =
        isolate::allowed().unwrap().iter().map(|cpu| cpu.to_string()).collect();
    let [first, second, ..] = cpus.as_slice() else {
        println!("skipped: {test}: this process may use one CPU only");
        return None;
    };
    Some([first.clone(), second.clone()])
}

fn duet(options: &[&str], a: &str, b: &str) -> Output {
    run(&[&["repeat"], options, &["--duet", a, b]].concat())
}

fn report(output: &Output) -> Value {
    assert_eq!(code(output), 0, "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The processes with a word in their command lines.
fn with_word(word: &str) -> Vec<String> {
    let lines = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = text(&line).replace('\0', " ");
        let is_program = !line.starts_with("noisefloor") && !line.contains("repeat");
        (is_program && line.contains(word)).then_some(line)
    });
    lines.collect()
}

/// Check that both programs of a pair run on the two CPUs, which they read themselves, that they swap them equally
/// often, and that recordings have the same; and that each supervisor is on the CPU of its program: on the other one, it
/// would learn of the end late.
#[test]
fn programs_are_pinned_and_swapped() {
    let Some(cpus) = two_cpus("programs_are_pinned_and_swapped") else { return };
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let program = |name: &str| {
        let file = path(name);
        let status = "/proc/self/status /proc/$PPID/status";
        format!("grep -h Cpus_allowed_list {status} >>{}", file.display())
    };
    let (set, list) = (path("set"), cpus.join(","));
    let options =
        ["--json", "-n", "8", "--seed", "3", "-c", &list, "-o", set.to_str().unwrap()];
    let found = report(&duet(&options, &program("a.log"), &program("b.log")));
    let read = |name: &str| -> Vec<String> {
        let lines = fs::read_to_string(path(name)).unwrap();
        let cpu = |line: &str| line.split_whitespace().nth(1).unwrap().to_owned();
        let cpus: Vec<String> = lines.lines().map(cpu).collect();
        let of_run = |run: &[String]| {
            assert_eq!(run[0], run[1]);
            run[0].clone()
        };
        cpus.chunks(2).map(of_run).collect()
    };
    let (a, b) = (read("a.log"), read("b.log"));
    assert_eq!((a.len(), b.len()), (8, 8));
    for (at, (a, b)) in a.iter().zip(&b).enumerate() {
        assert!(a != b && cpus.contains(a) && cpus.contains(b), "{a} {b}");
        let pair = &found["pairs"][at]["programs"];
        for (of, cpu) in [(0, a), (1, b)] {
            assert_eq!(pair[of]["cpu"].to_string(), *cpu);
            assert_eq!(pair[of]["place"] == 1, *cpu == cpus[0]);
        }
        let file = set.join("b").join(format!("{:03}.json", at + 1));
        let saved: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_eq!(saved["spec"]["cpus"], **b);
        assert_eq!(saved["repeat"]["duet"]["program"], "b");
        assert_eq!(saved["repeat"]["round"], at + 1);
    }
    assert_eq!(a.iter().filter(|cpu| **cpu == cpus[0]).count(), 4);
    assert_eq!(a[..2].iter().filter(|cpu| **cpu == cpus[0]).count(), 1);
    assert_eq!(found["cpus"], found["cpus"].as_str().unwrap());
    assert_eq!(found["summary"]["pairs"], 8);
}

/// Check that both programs of a pair wait for each other, and so run at once: each waits for what the other one
/// makes. In turn, on one CPU, the second one finds what the first one made.
#[test]
fn programs_run_at_once_or_in_turn() {
    if two_cpus("programs_run_at_once_or_in_turn").is_none() {
        return;
    }
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (a, b) = (at("a"), at("b"));
    let meets = |own: &str, other: &str| {
        format!("touch {own}; until test -e {other}; do sleep 0.001; done")
    };
    let prepare = format!("rm -f {a} {b}");
    let options = ["--json", "-n", "4", "--warmup", "1", "--prepare", &prepare];
    let found = report(&duet(&options, &meets(&a, &b), &meets(&b, &a)));
    assert_eq!(found["summary"]["pairs"], 4);
    assert!(found["summary"]["together"]["part_ppm"].as_f64().unwrap() > 0.0);
    let log = at("log");
    let appends = |name: &str| format!("echo {name} >>{log}; sleep 0.01");
    let in_turn = ["--json", "-n", "4", "--in-turn", "--seed", "1"];
    let found = report(&duet(&in_turn, &appends("a"), &appends("b")));
    assert_eq!(
        (&found["summary"]["together"], &found["at_once"]),
        (&Value::Null, &false.into())
    );
    let order: Vec<String> =
        fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect();
    for pair in order.chunks(2) {
        assert_ne!(pair[0], pair[1]);
    }
    let pairs = found["pairs"].as_array().unwrap();
    for (pair, order) in pairs.iter().zip(order.chunks(2)) {
        let is_a_first = pair["programs"][0]["place"] == 1;
        assert_eq!(is_a_first, order[0] == "a");
    }
}

/// Check that a program that fails ends the other one with its processes, although that ignores the request; and so
/// does one that is not there, before the other one has begun; and that failures can be ignored.
#[test]
fn failures_end_both() {
    if two_cpus("failures_end_both").is_none() {
        return;
    }
    let _turn = turn();
    // No other process has this word.
    let sleep = format!("sleep 4322.{}", std::process::id());
    let hanging = format!("trap '' TERM; {sleep} & wait; {sleep}");
    let output = duet(&[], &hanging, "sleep 0.2; echo why >&2; exit 3");
    let said = text(&output.stderr);
    assert_eq!(code(&output), 1, "{said}");
    assert!(
        said.contains("why\n") && said.contains("program B ended with exit code 3"),
        "{said}"
    );
    assert_eq!(with_word(&sleep), [""; 0]);
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let touch = format!("touch {}", begun.display());
    let output = duet(&[], "./no-such-program", &touch);
    assert_eq!(code(&output), 3);
    let said = text(&output.stderr);
    assert!(said.contains("failed to run ./no-such-program"), "{said}");
    assert!(!begun.exists());
    let options = ["--json", "-n", "2", "-i"];
    let found = report(&duet(&options, "true", "true; exit 4"));
    assert_eq!(found["programs"][1]["exit_codes"], serde_json::json!([4, 4]));
}

/// Check that hanging programs are ended with their processes after --timeout, and that processes that a program
/// leaves behind are killed before the next pair, with a doubt.
#[test]
fn programs_hang_and_fork() {
    if two_cpus("programs_hang_and_fork").is_none() {
        return;
    }
    let _turn = turn();
    let sleep = format!("sleep 4323.{}", std::process::id());
    let hanging = format!("{sleep} & wait");
    let output = duet(&["--timeout", "300ms"], &hanging, "true");
    assert_eq!(code(&output), 1);
    assert!(text(&output.stderr).contains("--timeout"), "{}", text(&output.stderr));
    assert_eq!(with_word(&sleep), [""; 0]);
    let forking = format!("{sleep} & exit 0");
    let found = report(&duet(&["-n", "2", "--json"], &forking, "true"));
    let doubts = found["programs"][0]["doubts"].as_array().unwrap();
    assert!(doubts.iter().any(|doubt| doubt["code"] == "survivors"), "{found:#}");
    assert_eq!(with_word(&sleep), [""; 0]);
}

/// Starts pairs of programs that sleep, and waits until both programs of the first pair run.
fn sleeping(folder: &Path, word: &str) -> std::process::Child {
    let set = folder.join("set");
    let sleep = format!("sleep {word} & wait");
    let options = ["repeat", "-n", "4", "-o", set.to_str().unwrap(), "--duet"];
    let child = spawn(&[&options[..], &[&sleep, &sleep]].concat());
    let running =
        || with_word(word).iter().filter(|line| line.starts_with("sleep")).count();
    wait_for("both programs", || running() == 2);
    child
}

/// Check that Ctrl-C ends both programs with their processes, and that one sentence says that no pair is complete.
#[test]
fn ctrl_c_ends_both() {
    if two_cpus("ctrl_c_ends_both").is_none() {
        return;
    }
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let word = format!("4324.{}", std::process::id());
    let child = sleeping(folder.path(), &word);
    signal(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 4, "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("before one pair was complete"));
    assert_eq!(with_word(&word), [""; 0]);
}

/// Check that SIGKILL of noisefloor ends both programs with their processes; and of the process that runs one of them,
/// the other one, too, with a message.
#[test]
fn sigkill_leaves_nothing() {
    if two_cpus("sigkill_leaves_nothing").is_none() {
        return;
    }
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let word = format!("4325.{}", std::process::id());
    let mut child = sleeping(folder.path(), &word);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("end of both", || with_word(&word).is_empty());
    let child = sleeping(folder.path(), &word);
    let own = children(child.id());
    assert_eq!(own.len(), 2);
    // SAFETY: takes numbers only.
    unsafe { libc::kill(libc::pid_t::try_from(own[0]).unwrap(), libc::SIGKILL) };
    let output = child.wait_with_output().unwrap();
    assert_ne!(code(&output), 0);
    assert!(text(&output.stderr).contains("a run failed"), "{}", text(&output.stderr));
    wait_for("end of both", || with_word(&word).is_empty());
}

/// Check what is refused before anything runs: another number of CPUs, a single CPU, an output that is a file.
#[test]
fn refusals() {
    let Some([first, _]) = two_cpus("refusals") else { return };
    let output = duet(&["-c", &first], "true", "true");
    assert_eq!(code(&output), 2);
    assert!(
        text(&output.stderr).contains("expected two CPUs"),
        "{}",
        text(&output.stderr)
    );
    let alone = tool_on(&first, &["repeat", "--duet", "true", "true"]).output().unwrap();
    let said = text(&alone.stderr);
    assert_eq!(code(&alone), 3);
    assert!(said.contains("need two CPUs") && said.contains("--in-turn"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    let output = duet(&["-o", file.to_str().unwrap()], "true", "true");
    assert_eq!(code(&output), 2);
    assert!(
        text(&output.stderr).contains("-o: failed to write "),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(fs::read_to_string(file).unwrap(), "x");
}
