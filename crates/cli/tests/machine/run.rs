//! Programs that are run, as users run them: all input and output is theirs, except for the
//! report at the end.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::environment::with_usual_signals;
use crate::tool::{
    TOOL, children, is_root, json, public_tool, signal, text, tool, turn, unprivileged,
    wait_for,
};

/// A CPU that is available here, the last one.
fn last_cpu() -> String {
    let facts = json(&["facts", "--json"]);
    let allowed = facts["facts"]["cpus"]["allowed"].as_str().unwrap().to_owned();
    allowed.rsplit(['-', ',']).next().unwrap().to_owned()
}

/// As an ordinary task, which needs no privilege.
fn ordinary(script: &str) -> Output {
    let cpu = last_cpu();
    tool(&["run", "-c", &cpu, "--", "sh", "-c", script]).output().unwrap()
}

/// The JSON object, after the program's own output.
fn told(stderr: &[u8]) -> Value {
    let said = text(stderr);
    let at = said.find("{\n").unwrap_or_else(|| panic!("no JSON: {said}"));
    serde_json::from_str(&said[at..]).unwrap()
}

/// A program that reports when it is ready, in that file.
fn start(dir: &Path, script: &str) -> Child {
    let ready = dir.join("ready");
    let cpu = last_cpu();
    let mut command = tool(&["run", "--json", "-c", &cpu, "--", "sh", "-c"]);
    let script = script.replace("READY", &format!("echo $$ >{}", ready.display()));
    let piped = command.arg(script).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = piped.spawn().unwrap();
    wait_for("program", || {
        fs::read_to_string(&ready).is_ok_and(|text| text.ends_with('\n'))
    });
    child
}

/// Check that exit codes and signals are the program's, as shells report them, and those of
/// programs that are not found or cannot be executed.
#[test]
fn exit_codes() {
    let _turn = turn();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
        ("kill -SEGV $$", 139),
    ] {
        let output = ordinary(script);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{script}: {}",
            text(&output.stderr)
        );
    }
    let cpu = last_cpu();
    let run = |program: &str| tool(&["run", "-c", &cpu, program]).output().unwrap();
    let missing = run("./no-such-program");
    assert_eq!(missing.status.code(), Some(127));
    assert!(
        text(&missing.stderr).contains("no-such-program"),
        "{}",
        text(&missing.stderr)
    );
    assert_eq!(run("/etc/passwd").status.code(), Some(126));
    assert_eq!(run("/").status.code(), Some(126));
}

/// Check that standard input, output and error are the program's, byte by byte, and that the
/// report follows, on standard error.
#[test]
fn streams_are_the_programs() {
    let _turn = turn();
    let cpu = last_cpu();
    let script = "cat; echo to-stderr >&2";
    let mut child = Command::new(TOOL)
        .args(["run", "-c", &cpu, "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let sent: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    child.stdin.take().unwrap().write_all(&sent).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, sent);
    let said = text(&output.stderr);
    assert!(said.starts_with("to-stderr\n"), "{said}");
    assert!(said.contains("ended with exit code 0"), "{said}");
    let quiet = tool(&["run", "-q", "-c", &cpu, "sh", "-c", "echo x >&2"]);
    assert_eq!({ quiet }.output().unwrap().stderr, b"x\n");
}

/// Check that the program runs on its CPU only, with unchanged signals and environment.
#[test]
fn the_program_is_where_it_should_be() {
    let _turn = turn();
    let read = "sed -n 's/^\\(Cpus_allowed_list\\|SigBlk\\|SigIgn\\|SigCgt\\):.//p' /proc/self/status";
    let plain = Command::new("sh").args(["-c", read]).output().unwrap();
    let isolated = ordinary(read);
    let lines = |output: &Output| -> Vec<String> {
        text(&output.stdout).lines().map(str::to_owned).collect()
    };
    let (plain, isolated) = (lines(&plain), lines(&isolated));
    // SIGPIPE is excluded: this test's own process ignores it.
    assert_eq!(plain[0], isolated[0], "blocked");
    assert_eq!(plain[2], isolated[2], "caught");
    assert_eq!(isolated[3], last_cpu());
}

/// Check that the report of a saved recording is the same, and has plausible results: times,
/// switches, interrupts of the CPU.
#[test]
fn saved_and_told_again() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.json");
    let file = file.to_str().unwrap();
    let cpu = last_cpu();
    let script =
        "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 0.05; sleep 0.05";
    let args = ["run", "-c", &cpu, "-o", file, "sh", "-c", script];
    let output = tool(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(
        text(&tool(&["report", file]).output().unwrap().stdout),
        text(&output.stderr)
    );
    let object = json(&["report", file, "--json"]);
    assert_eq!(object["kind"], "run");
    let summary = &object["summary"];
    let number = |key: &str| summary[key].as_u64().unwrap();
    assert!(number("elapsed_ns") >= 100_000_000, "{summary}");
    assert!(
        number("user_ns") > 0 && number("user_ns") < number("elapsed_ns"),
        "{summary}"
    );
    // The shell waits for each sleep, and each sleep for its time.
    assert!(number("voluntary") >= 4, "{summary}");
    let timer = summary["proc"]["interrupts"].as_array().unwrap();
    assert!(timer.iter().any(|line| line["timer"] == true), "{summary}");
    let found = &summary["interruptions"];
    if found.is_null() {
        let source = &summary["source"];
        println!("skipped: saved_and_told_again: interruptions, by {source}");
        assert!(object["doubts"].to_string().contains("untraced"), "{object}");
        return;
    }
    let sum: u64 = found["culprits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["ns"].as_u64().unwrap())
        .sum();
    assert_eq!(Some(sum), found["noise_ns"].as_u64());
    // The time that it ran or was ready is no longer than its life; without its interruptions
    // it is the time that the kernel accounts to it, a moment of which was on another CPU.
    let ready = found["ready_ns"].as_u64().unwrap();
    assert!(ready <= number("elapsed_ns"), "{summary}");
    let (used, own) = (number("user_ns") + number("system_ns"), ready - sum);
    let stolen = summary["proc"]["steal_ns"].as_u64().unwrap_or_default();
    let most = used + stolen + 30_000_000;
    assert!(used < ready + 30_000_000 && own < most, "{summary}");
}

/// Check that a thread that takes the CPU from the program is reported with its name and its
/// time, and that threads that the program starts itself are not.
#[test]
fn interruptions_are_found() {
    let _turn = turn();
    if !is_root() {
        println!("skipped: interruptions_are_found: it needs root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [done, own_child] = ["done", "own-child"].map(|name| dir.path().join(name));
    std::os::unix::fs::symlink("/bin/ls", &own_child).unwrap();
    // It waits only for processes that it starts itself, and not once it is ready: the time
    // that a woken thread waits on the run queue is not measured, and may be long under load.
    let script = format!(
        "own() {{ for i in 1 2 3; do {child} / >/dev/null; done; }}; \
         own; READY; while [ ! -e {done} ]; do :; done; own",
        done = done.display(),
        child = own_child.display()
    );
    let child = start(dir.path(), &script);
    let cpu = last_cpu();
    // Real-time, so that an ordinary program has to wait until it ends; for that long on the
    // CPU, which a hypervisor or RT throttling may take from it.
    let steal = "import os,time\nos.sched_setaffinity(0,{CPU})\n\
                 os.sched_setscheduler(0,os.SCHED_FIFO,os.sched_param(40))\n\
                 open('/proc/self/comm','w').write('thief')\n\
                 t=time.process_time()\n\
                 while time.process_time()<t+0.06: pass\n";
    let thief =
        Command::new("python3").args(["-c", &steal.replace("CPU", &cpu)]).status();
    fs::write(&done, "").unwrap();
    let output = child.wait_with_output().unwrap();
    if !thief.is_ok_and(|status| status.success()) {
        println!("skipped: interruptions_are_found: no python3 that may be real-time");
        return;
    }
    let object = told(&output.stderr);
    let found = &object["summary"]["interruptions"];
    if found.is_null() {
        println!("skipped: interruptions_are_found: {}", object["doubts"]);
        return;
    }
    let culprits = found["culprits"].as_array().unwrap();
    let thief = culprits.iter().find(|culprit| culprit["name"] == "thief");
    let thief = thief.unwrap_or_else(|| panic!("no thief: {found}"));
    // The kernel may have run the program in between.
    assert!(thief["ns"].as_u64().unwrap() >= 50_000_000, "{thief}");
    let longest = &found["longest"][0];
    assert!(longest["ns"].as_u64().unwrap() >= 20_000_000, "{longest}");
    assert!(
        !culprits.iter().any(|culprit| culprit["name"] == "own-child"),
        "{culprits:?}"
    );
    assert!(object["summary"]["involuntary"].as_u64().unwrap() > 0);
}

/// Check that a signal sent to noisefloor is forwarded to the program, which may handle it, and
/// that the report is printed.
#[test]
fn signals_are_passed_on() {
    let _turn = turn();
    for (number, name) in [
        (libc::SIGTERM, "TERM"),
        (libc::SIGHUP, "HUP"),
        (libc::SIGINT, "INT"),
        (libc::SIGUSR1, "USR1"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let script = format!(
            "trap 'echo got {name}; exit 9' {name}; READY; while :; do sleep 0.01; done"
        );
        let child = start(dir.path(), &script);
        signal(&child, number);
        let output = child.wait_with_output().unwrap();
        assert_eq!(text(&output.stdout), format!("got {name}\n"));
        assert_eq!(output.status.code(), Some(9), "{}", text(&output.stderr));
        assert_eq!(told(&output.stderr)["summary"]["ended"]["code"], 9);
    }
    let dir = tempfile::tempdir().unwrap();
    let child = start(dir.path(), "READY; exec sleep 1000");
    signal(&child, libc::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    assert_eq!(told(&output.stderr)["summary"]["ended"]["signal"], 15);
}

/// Check that a signal typed at a terminal reaches the program once, and that noisefloor
/// continues to the report: a signal that the kernel sends to the group is not forwarded.
#[test]
fn ctrl_c_is_the_programs() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let (ready, out) = (dir.path().join("ready"), dir.path().join("out"));
    let cpu = last_cpu();
    // script(1) gives it a terminal of its own; the program counts the signals.
    let program = format!(
        "trap 'echo got >>{out}' INT; echo $$ >{ready}; \
         i=0; while [ $i -lt 6000 ] && [ ! -s {out} ]; do sleep 0.01; i=$((i+1)); done; \
         sleep 0.2; exit 5",
        out = out.display(),
        ready = ready.display()
    );
    let file = dir.path().join("run.sh");
    fs::write(&file, program).unwrap();
    // A shell that remains would receive the typed signal, too, and end.
    let line = format!("exec {TOOL} run -c {cpu} -- sh {}", file.display());
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &line, "/dev/null"]).env("SHELL", "/bin/sh");
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
    with_usual_signals(&mut terminal);
    let Ok(mut terminal) = terminal.spawn() else {
        println!("skipped: ctrl_c_is_the_programs: there is no script(1)");
        return;
    };
    wait_for("program", || ready.exists());
    terminal.stdin.as_mut().unwrap().write_all(&[3]).unwrap();
    wait_for("signal", || out.exists());
    let mut said = String::new();
    terminal.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(terminal.wait().unwrap().code(), Some(5), "{said}");
    assert_eq!(fs::read_to_string(&out).unwrap(), "got\n", "{said}");
    assert!(said.contains("ended with exit code 5"), "{said}");
}

/// Check that if noisefloor is killed, the program is, too, and its descendants, including a
/// daemon that has left the session and whose parent has ended.
#[test]
fn killed_with_the_tool() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let daemon = dir.path().join("daemon");
    let script = format!(
        "(setsid sh -c 'echo $$ >{daemon}; sleep 1000 & exec sleep 1000' &); \
         while [ ! -s {daemon} ]; do sleep 0.01; done; READY; exec sleep 1000",
        daemon = daemon.display()
    );
    let mut child = start(dir.path(), &script);
    let pid = |file: &str| fs::read_to_string(dir.path().join(file)).unwrap();
    let (program, daemon) = (pid("ready"), pid("daemon"));
    // After the kill, its new parent may not wait for it.
    let is_gone = |pid: &str| {
        fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
            .map_or(true, |stat| stat.contains(") Z "))
    };
    let of_daemon = children(daemon.trim().parse().unwrap());
    assert!(!is_gone(&program) && !is_gone(&daemon) && of_daemon.len() == 1);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    for pid in [program, daemon, of_daemon[0].to_string()] {
        wait_for("end", || is_gone(&pid));
    }
}

/// Check that a daemon which a program leaves behind continues, and is reported.
#[test]
fn left_behind() {
    let _turn = turn();
    let output = ordinary("setsid sleep 1000 >/dev/null 2>&1 & echo $!");
    let pid: libc::pid_t = text(&output.stdout).trim().parse().unwrap();
    // SAFETY: takes numbers only.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    let said = text(&output.stderr);
    assert!(said.contains("were still running when it ended"), "{said}");
}

/// Check that a signal that noisefloor ignores is ignored by the program, too.
#[test]
fn ignored_signals_stay_ignored() {
    let _turn = turn();
    let cpu = last_cpu();
    let read = "sed -n 's/^SigIgn:.//p' /proc/self/status";
    let line = format!("trap '' HUP; exec {TOOL} run -q -c {cpu} sh -c \"{read}\"");
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let ignored = u64::from_str_radix(text(&output.stdout).trim(), 16).unwrap();
    assert_eq!(ignored & 1, 1, "{ignored:x}");
}

/// Check that a program is an ordinary task by default, and with --fifo a real-time task, with
/// its descendants; and that without the privilege nothing is started, and the error names the
/// remedy.
#[test]
fn real_time_where_asked() {
    let _turn = turn();
    let cpu = last_cpu();
    let script = "cut -d' ' -f40,41 /proc/$$/stat; cut -d' ' -f40,41 /proc/self/stat";
    let run = |options: &[&str]| {
        let args = [&["run", "-c", &cpu], options, &["sh", "-c", script]].concat();
        tool(&args).output().unwrap()
    };
    assert_eq!(text(&run(&[]).stdout), "0 0\n0 0\n");
    if is_root() {
        let output = run(&["--fifo", "7"]);
        if output.status.code() == Some(3) {
            println!("skipped: real_time_where_asked: {}", text(&output.stderr));
            return;
        }
        assert_eq!(text(&output.stdout), "7 1\n7 1\n", "{}", text(&output.stderr));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut command = unprivileged(&public_tool(dir.path()));
    let args = ["run", "--cpus", &cpu, "--fifo", "7", "echo", "started"];
    let output = command.args(args).output().unwrap();
    if output.status.success() {
        println!("skipped: real_time_where_asked: RLIMIT_RTPRIO allows it to everyone");
        return;
    }
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), String::new()));
    let said = text(&output.stderr);
    assert!(said.contains("CAP_SYS_NICE") && said.contains("without --fifo"), "{said}");
}

/// Check that a program may have several CPUs, and that the report covers all of them.
#[test]
fn several_cpus() {
    let _turn = turn();
    let facts = json(&["facts", "--json"]);
    let allowed = facts["facts"]["cpus"]["allowed"].as_str().unwrap().to_owned();
    // A timer interrupt within 0.1 s; sed's few milliseconds may have none.
    let script = "sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status; sleep 0.1";
    let args = ["run", "--json", "-c", &allowed, "sh", "-c", script];
    let output = tool(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let cpus = |list: &str| list.trim().parse::<units::CpuSet>().unwrap();
    assert_eq!(cpus(&text(&output.stdout)), cpus(&allowed));
    let summary = &told(&output.stderr)["summary"];
    assert_eq!(cpus(summary["cpus"].as_str().unwrap()), cpus(&allowed));
    let lines = summary["proc"]["interrupts"].as_array().unwrap();
    assert!(lines.iter().any(|line| line["timer"] == true), "{summary}");
}

/// Check that without privileges a program runs, and that the missing parts of the report are
/// named; and that unavailable options are refused before anything is started.
#[test]
fn without_privileges() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let public = public_tool(dir.path());
    let cpu = last_cpu();
    let args = ["run", "-c", &cpu, "--", "sh", "-c", "exit 4"];
    let output = unprivileged(&public).args(args).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("the causes are unknown"), "{said}");
    let refused = tool(&["run", "-c", "65000", "echo", "started"]).output().unwrap();
    assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(2), String::new()));
}

/// Check that the JSON object is written to a file, while standard output is the program's and
/// the text report goes to standard error, and that no file can be standard output.
#[test]
fn json_in_a_file() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my.json");
    let file = file.to_str().unwrap();
    let mut command = tool(&["run", "--json-to", file, "--", "echo", "from the program"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "from the program\n");
    assert!(text(&output.stderr).contains("echo from the program"), "{output:?}");
    let object: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(object["kind"], "run");
    assert_eq!(object["summary"]["ended"]["code"], 0);
    for (option, with) in [("--json-to", "-q"), ("-o", "-q"), ("--json-to", "--json")] {
        let refused = tool(&["run", with, option, "-", "true"]).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{option} {with}");
    }
}

/// Runs a program in Python, and returns the JSON object; `None` without python3.
fn python(options: &[&str], script: &str) -> Option<Value> {
    let cpu = last_cpu();
    let args =
        [&["run", "--json", "-c", &cpu], options, &["--", "python3", "-c", script]];
    let output = tool(&args.concat()).output().unwrap();
    let is_there = output.status.code() != Some(127);
    is_there.then(|| told(&output.stderr))
}

/// Whether an object has a doubt of that kind.
fn has_doubt(object: &Value, code: &str) -> bool {
    object["doubts"].as_array().unwrap().iter().any(|doubt| doubt["code"] == code)
}

/// Check that the time begins after the program's process was made, and before the program itself reads
/// the clock, and that it ends after that.
#[test]
fn time_begins_with_exec() {
    let _turn = turn();
    // The kernel has the start of the process in steps of 10 ms, rounded down. In this order, the
    // difference of the clocks is not too small.
    let script = "import time\nread=time.clock_gettime_ns\n\
                  fields=open('/proc/self/stat').read().rsplit(')',1)[1].split()\n\
                  before=read(time.CLOCK_MONOTONIC)\noffset=read(time.CLOCK_BOOTTIME)-before\n\
                  print(int(fields[19])*10_000_000-offset, before)\n";
    for source in ["proc", "bpf"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("run.json");
        let cpu = last_cpu();
        let mut command = tool(&["run", "-q", "--source", source, "-c", &cpu, "-o"]);
        let output = command.arg(&file).args(["python3", "-c", script]).output().unwrap();
        if !output.status.success() {
            println!("skipped: time_begins_with_exec: {}", text(&output.stderr));
            continue;
        }
        let said = text(&output.stdout);
        let [made, read] = &said.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{said}")
        };
        let [made, read]: [u64; 2] = [made, read].map(|it| it.parse().unwrap());
        let recording: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let series = &recording["series"];
        let began = series["began_ns"].as_u64().unwrap();
        let ended = began + series["elapsed_ns"].as_u64().unwrap();
        assert!(made < began && began < read && read < ended, "{said} {series}");
    }
}

/// Check that a program that chooses another CPU for itself is noticed, with the time that it ran there
/// if events are traced, and that its net time is unknown then.
#[test]
fn other_cpus_are_noticed() {
    let _turn = turn();
    let facts = json(&["facts", "--json"]);
    let allowed = facts["facts"]["cpus"]["allowed"].as_str().unwrap().to_owned();
    let allowed: units::CpuSet = allowed.parse().unwrap();
    let other = allowed.first().unwrap().to_string();
    if allowed.len() < 2 {
        println!("skipped: other_cpus_are_noticed: there is one CPU");
        return;
    }
    let script = format!(
        "import os,time\nos.sched_setaffinity(0,{{{other}}})\nt=time.process_time()\n\
         while time.process_time()<t+0.3: pass\n"
    );
    let Some(untraced) = python(&["--source", "proc"], &script) else {
        println!("skipped: other_cpus_are_noticed: there is no python3");
        return;
    };
    assert!(has_doubt(&untraced, "ran_elsewhere"), "{untraced}");
    let traced = python(&[], &script).unwrap();
    assert!(has_doubt(&traced, "ran_elsewhere"), "{traced}");
    let summary = &traced["summary"];
    assert!(summary["net_ns"].is_null(), "{summary}");
    if summary["source"] != "bpf" {
        println!("skipped: other_cpus_are_noticed: events are not traced");
        return;
    }
    let [elsewhere] = &summary["elsewhere"].as_array().unwrap()[..] else {
        panic!("{summary}")
    };
    assert_eq!(elsewhere["cpu"].to_string(), other);
    // Interrupts and the hypervisor can only add to the CPU time.
    assert!(elsewhere["ns"].as_u64().unwrap() >= 290_000_000, "{summary}");
    let stays = python(&[], "pass").unwrap();
    assert!(!has_doubt(&stays, "ran_elsewhere"), "{stays}");
    assert_eq!(stays["summary"]["elsewhere"], Value::Array(vec![]));
}

/// Check that the time in which a program was stopped by a signal is known, and is no part of its net
/// time.
#[test]
fn stopped_time_is_apart() {
    let _turn = turn();
    // The child waits until its parent has been stopped for 0.2 s.
    let script = "import os,signal,time\nparent=os.getpid()\nif os.fork()==0:\n\
                  \x20 stat=lambda: open(f'/proc/{parent}/stat').read().rsplit(')',1)[1].split()[0]\n\
                  \x20 while stat()!='T': time.sleep(0.001)\n\
                  \x20 time.sleep(0.2)\n  os.kill(parent,signal.SIGCONT)\n  os._exit(0)\n\
                  os.kill(parent,signal.SIGSTOP)\nos.wait()\n";
    let Some(untraced) = python(&["--source", "proc"], script) else {
        println!("skipped: stopped_time_is_apart: there is no python3");
        return;
    };
    let stopped = |object: &Value| object["summary"]["stopped_ns"].as_u64().unwrap();
    let elapsed = untraced["summary"]["elapsed_ns"].as_u64().unwrap();
    assert!(stopped(&untraced) > 0 && stopped(&untraced) < elapsed, "{untraced}");
    assert_eq!(untraced["summary"]["stopped"][0]["count"], 1);
    let traced = python(&[], script).unwrap();
    if traced["summary"]["source"] != "bpf" {
        println!("skipped: stopped_time_is_apart: events are not traced");
        return;
    }
    // Its child was not stopped.
    assert!(has_doubt(&traced, "partly_stopped"), "{traced}");

    let dir = tempfile::tempdir().unwrap();
    let child = start(
        dir.path(),
        "READY; while [ ! -e CONTINUED ]; do :; done"
            .replace("CONTINUED", &dir.path().join("continued").display().to_string())
            .as_str(),
    );
    let pid = fs::read_to_string(dir.path().join("ready")).unwrap();
    let pid: libc::pid_t = pid.trim().parse().unwrap();
    let kill = |signal| {
        // SAFETY: takes numbers only.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    };
    kill(libc::SIGSTOP);
    wait_for("stop", || {
        fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") T ")
    });
    std::thread::sleep(Duration::from_millis(300));
    fs::write(dir.path().join("continued"), "").unwrap();
    kill(libc::SIGCONT);
    let object = told(&child.wait_with_output().unwrap().stderr);
    let summary = &object["summary"];
    let number = |key: &str| summary[key].as_u64().unwrap();
    assert_eq!(summary["stopped"][0]["by"], "signal");
    assert!(stopped(&object) > 0, "{summary}");
    let parts = number("net_ns") + number("lost_ns") + number("stopped_ns");
    assert_eq!(parts, number("elapsed_ns"), "{summary}");
}
