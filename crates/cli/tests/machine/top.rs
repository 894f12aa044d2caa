//! The live view of what uses the CPUs, on a terminal and without one.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::counters::{Counters, schedstat};
use crate::culprits::can_watch;
use crate::quota::{Load, WithQuota};
use crate::terminals::OnTerminal;
use crate::tool::{
    first_cpu, json, public_tool, run, signal, spawn, text, tool, turn, unprivileged,
};

/// The sequences that begin and end the alternate screen.
const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The sum of a number of all intervals of a series, of that CPU.
fn of_cpu(series: &Value, cpu: &Value, key: &str) -> u64 {
    let samples = series["samples"].as_array().unwrap().iter();
    let cpus = samples.flat_map(|sample| sample["cpus"].as_array().unwrap());
    cpus.filter(|one| one["cpu"] == *cpu).map(|one| number(&one[key])).sum()
}

/// The time and the runs of a process's threads, of all intervals.
fn of_process(series: &Value, pid: u32) -> (u64, u64) {
    let samples = series["samples"].as_array().unwrap().iter();
    let uses = samples.flat_map(|sample| sample["uses"].as_array().unwrap());
    let own = uses.filter(|one| one["culprit"]["thread"]["pid"] == pid);
    own.fold((0, 0), |(ns, count), one| {
        (ns + number(&one["ns"]), count + number(&one["count"]))
    })
}

/// Check that the time and the runs of two threads that share a CPU are those that the kernel counts, that
/// the CPU's waits are at least theirs, and that its timer interrupts are those of `/proc/interrupts`.
#[test]
fn the_kernel_counts_the_same() {
    let _turn = turn();
    if !can_watch("the_kernel_counts_the_same") {
        return;
    }
    let cpu = first_cpu();
    let loads = [Load::start(&cpu), Load::start(&cpu)];
    let counters = || loads.each_ref().map(|load| schedstat(load.0.id()));
    let before = counters();
    let object = json(&["top", "-d", "2", "-i", "500ms", "--json", "--series"]);
    let after = counters();
    let (series, cpu) = (&object["series"], Value::from(cpu.parse::<u64>().unwrap()));
    let elapsed = number(&series["elapsed_ns"]);
    let interrupts = of_cpu(series, &cpu, "interrupts_ns");
    for (load, (before, after)) in loads.iter().zip(before.into_iter().zip(after)) {
        let (ns, runs) = of_process(series, load.0.id());
        let [ran, _, counted] = [0, 1, 2].map(|at| after[at] - before[at]);
        // The kernel counted for longer, and its time has interrupts in it.
        assert!(ns <= ran + 4_000_000, "{ns} of {ran}: {series}");
        assert!(runs <= counted + 1, "{runs} of {counted}: {series}");
    }
    let used: u64 = loads.iter().map(|load| of_process(series, load.0.id()).0).sum();
    let others = of_cpu(series, &cpu, "kernel_ns") + interrupts;
    let programs = of_cpu(series, &cpu, "programs_ns");
    assert!(used <= programs + 1_000_000 && programs + others <= elapsed + 1_000_000);
    // Each of the two waits while the other one runs.
    let waited = of_cpu(series, &cpu, "wait_ns");
    assert!(waited + 50_000_000 >= used, "{waited}, {used}: {series}");
    let share = &object["summary"]["cpus"].as_array().unwrap();
    assert!(share.iter().any(|one| one["cpu"] == cpu));
    assert!(of_cpu(series, &cpu, "ticks") > 0);
}

/// Check that the time in which a quota is used up is that of the kernel's count, within a tick of each
/// period.
#[test]
fn time_of_a_quota() {
    let _turn = turn();
    if !can_watch("time_of_a_quota") {
        return;
    }
    let cgroup = match WithQuota::new("top") {
        Ok(cgroup) => cgroup,
        Err(why) => return println!("skipped: time_of_a_quota: {why}"),
    };
    let cpu = first_cpu();
    let load = Load::start(&cpu);
    cgroup.with(&load.0);
    std::thread::sleep(Duration::from_millis(300));
    let throttled = Counters::begin(move || cgroup.throttled_ns());
    let object = json(&["top", "-d", "3", "-i", "1", "--json", "--series"]);
    let [began, elapsed] =
        ["began_ns", "elapsed_ns"].map(|key| number(&object["series"][key]));
    let throttled = throttled.end();
    let until = |moment| {
        let read = throttled.iter().rfind(|reading| reading.between_ns[1] <= moment);
        read.unwrap().value
    };
    let counted = until(began + elapsed) - until(began);
    let cpu = Value::from(cpu.parse::<u64>().unwrap());
    let quota = of_cpu(&object["series"], &cpu, "quota_ns");
    // The kernel counts at the end of each throttling, which lasts up to a period.
    let within = counted / 10 + 200_000_000;
    assert!(quota.abs_diff(counted) <= within, "{quota}, {counted}");
    // On a busy machine, the load has little time to use.
    assert!(quota > 0 || counted < 200_000_000, "{quota}, {counted}");
    drop(load);
}

/// Check that every user has a report from `/proc`, with the reason.
#[test]
fn without_privileges() {
    let dir = tempfile::tempdir().unwrap();
    let tool = public_tool(dir.path());
    let _load = Load::start(&first_cpu());
    let output =
        unprivileged(&tool).args(["top", "-d", "1", "-i", "500ms"]).output().unwrap();
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}{}", text(&output.stderr));
    assert!(printed.contains("whole ticks"), "{printed}");
    assert!(printed.contains("only counters of /proc are read"), "{printed}");
    assert!(printed.lines().any(|line| line.starts_with(" sh ")), "{printed}");
}

/// Check that a recording is saved when it is ended by Ctrl-C, without a doubt about its end, and that its
/// report is that of the measurement.
#[test]
fn recordings() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("top.json");
    let name = file.to_str().unwrap();
    let mut child = spawn(&["top", "-i", "200ms", "--record", name]);
    std::thread::sleep(Duration::from_secs(3));
    signal(&child, libc::SIGINT);
    child.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    assert!(!printed.contains("ended early"), "{printed}");
    let report = run(&["report", name]);
    assert_eq!(text(&report.stdout), printed);
}

/// Check wrong intervals, and a file that cannot be written.
#[test]
fn bad_arguments() {
    for args in [&["top", "-i", "0"][..], &["top", "-i", "x"], &["top", "-d", "0"]] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
    let refused = run(&["top", "-d", "1", "--record", "/proc/none/x.json"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

/// Another program with the variables of a command.
fn in_environment_of(command: &Command, program: &str, args: &[&str]) -> Command {
    let mut other = Command::new(program);
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    other.args(args).envs(set);
    other
}

fn on_terminal(args: &[&str]) -> OnTerminal {
    let shown = OnTerminal::start(tool(args), 80, 24);
    shown.wait_for_screen("Sources");
    shown
}

/// Check the view of a terminal: keys, its end by a key, and that the terminal is as it was.
#[test]
fn view() {
    let _turn = turn();
    let mut shown = on_terminal(&["top", "-i", "300ms"]);
    assert!(!shown.is_restored());
    shown.press("h");
    shown.wait_for_screen("Keys");
    shown.press("x");
    shown.wait_for_screen("Sources");
    shown.press(" ");
    shown.wait_for_screen("PAUSED");
    shown.press(" tsr/nothing\r");
    shown.press("q");
    let status = shown.wait();
    assert!(status.success(), "{status}: {}", shown.end());
    assert!(shown.is_restored());
    shown.wait_for(LEAVE);
}

/// Check that the terminal is restored by Ctrl-C, and after every signal that ends the process; that what
/// was shown until then is saved; and that a hung-up terminal is an end, too.
#[test]
fn ends() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    for number in
        [libc::SIGINT, libc::SIGTERM, libc::SIGQUIT, libc::SIGHUP, libc::SIGABRT]
    {
        let file = dir.path().join(format!("{number}.json"));
        let mut shown =
            on_terminal(&["top", "-i", "200ms", "--record", file.to_str().unwrap()]);
        signal(shown.child(), number);
        shown.wait();
        assert!(shown.is_restored(), "{number}: {}", shown.end());
        shown.wait_for(LEAVE);
        assert!(file.exists(), "{number}: {}", shown.end());
    }
    let mut shown = on_terminal(&["top", "-i", "200ms"]);
    shown.press("\u{3}");
    assert!(shown.wait().success());
    assert!(shown.is_restored());
}

/// Check that the process ends when its terminal is gone, also if it ignores SIGHUP, and that what was shown
/// is saved.
#[test]
fn terminal_is_gone() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    for ignores in [false, true] {
        let file = dir.path().join(format!("{ignores}.json"));
        let mut command =
            tool(&["top", "-i", "200ms", "--record", file.to_str().unwrap()]);
        if ignores {
            let program = command.get_program().to_owned();
            let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
            let script = ["-c", "trap '' HUP; exec \"$@\"", "sh"];
            command = in_environment_of(&command, "sh", &script);
            command.arg(program).args(args);
        }
        let mut shown = OnTerminal::start(command, 80, 24);
        shown.wait_for_screen("Sources");
        shown.hang_up();
        shown.wait();
        assert!(file.exists(), "{ignores}");
    }
}

/// Check that Ctrl-Z stops the process with the terminal restored, and that the view returns.
#[test]
fn suspended() {
    let _turn = turn();
    let mut shell = tool(&[]);
    let script = format!(
        "{:?} top -i 200ms; stty -a | grep -o ' icanon' && fg >/dev/null; echo done $?; exit",
        shell.get_program()
    );
    // A shell with job control, which types into the terminal what it is to do.
    shell = in_environment_of(&shell, "sh", &["-i"]);
    let mut shown = OnTerminal::start(shell, 80, 24);
    shown.press(&(script + "\r"));
    shown.wait_for_screen("Sources");
    shown.forget();
    shown.press("\u{1a}");
    shown.wait_for(" icanon");
    shown.wait_for(ENTER);
    shown.press("q");
    shown.wait_for("done 0");
    assert!(shown.wait().success());
    assert!(shown.is_restored());
}

/// Check that a pipe as standard output or input is no view.
#[test]
fn pipes() {
    let _turn = turn();
    let mut command = tool(&["top", "-d", "1", "-i", "500ms"]);
    let output = command.stdin(Stdio::null()).stdout(Stdio::piped()).output().unwrap();
    let printed = text(&output.stdout);
    assert!(printed.starts_with("What used") && !printed.contains('\u{1b}'), "{printed}");
}
