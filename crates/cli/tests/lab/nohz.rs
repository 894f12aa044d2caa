//! `nohz-entry` on real kernels: the tick stops, on those for real time, too, and the counts of
//! the guest and of the counter agree. What restarts the tick is named, and so are the timers of the
//! interrupts that remain.

use serde_json::Value;

use crate::site::{NEW, OLD, Site};
use crate::watched::{REAL_TIME, kernels};

/// The counts of one CPU.
fn of_cpu(work: &Value, cpu: u64) -> &Value {
    let mut cpus = work.as_array().unwrap().iter();
    cpus.find(|work| work["cpu"] == cpu).unwrap()
}

/// Check that the tick of CPU 1 stops on every kernel, with an unforced wait and, on one of
/// them, a forced one, that hardly any interrupt follows, and that both counts of these agree.
#[test]
fn entry() {
    let Some(site) = Site::new() else { return };
    if !kernels(&site, &REAL_TIME) {
        return;
    }
    let run = |workload: &str, kernels: &[&str]| {
        let workload = format!("workload={workload}");
        let brief = ["nohz-entry", "--set", "duration=300ms", "--set", &workload];
        let kernels = kernels.iter().flat_map(|kernel| ["--kernel", kernel]);
        site.cells(&brief.into_iter().chain(kernels).collect::<Vec<_>>(), 0)
    };
    let plain = run("plain", &[OLD, NEW, REAL_TIME[0], REAL_TIME[1]]);
    let forced = run("forced", &[NEW]);
    assert_eq!((plain.len(), forced.len()), (4, 1));
    for cell in plain.iter().chain(&forced) {
        let summary = &cell["summary"];
        assert_eq!(summary["entered"], true, "{cell}");
        let observed = &summary["observed"];
        // One in 300 ms is 3.3 a second.
        assert!(observed["timer_hz"].as_f64().unwrap() < 4.0, "{cell}");
        let lines = observed["interrupts"].as_array().unwrap().iter();
        let timer = lines.filter(|line| line["timer"] == true);
        let by_proc: u64 = timer.map(|line| line["count"].as_u64().unwrap()).sum();
        let counted = of_cpu(&summary["observing"], 1)["timer_entries"].as_u64().unwrap();
        // One may come between a reading of /proc and the mark.
        assert!(by_proc.abs_diff(counted) <= 2, "{by_proc} {counted}: {cell}");
        assert!(by_proc <= 1, "{by_proc}: {cell}");
        // The wait is on the guest's clock, a nanosecond per instruction of any CPU: the
        // instructions of CPU 1 in that time are a part of it, except for those between clock
        // and mark.
        let wait = summary["wait_ns"].as_u64().unwrap();
        // Most of it is what the kernel executes to generate /proc/timer_list: the file is not
        // read completely, nor more than once.
        assert!(wait < 350_000, "{wait}: {cell}");
        let executed = of_cpu(&summary["entering"], 1)["instructions"].as_u64().unwrap();
        assert!(executed < wait + 100_000 && executed > 1_000, "{executed} {wait}");
    }
}

/// A real-time thread beside an ordinary one that spins, with a fair server (since 6.12) that
/// gives the latter nine tenths of each second, and so starts the tick again, and without.
const SERVER: &str = "name = \"server\"\nkernels = [\"debian:6.12-rt\"]\n\
    phases = 1\n[machine]\ncpus = 2\ncpu = \"max,-rdrand,-rdseed\"\n\
    [[boot]]\nappend = \"nohz_full=1 isolcpus=1 rcu_nocbs=1\"\n\
    [[setting]]\nname = \"with\"\n\
    write = { \"/proc/sys/kernel/sched_rt_runtime_us\" = \"-1\", \
    \"/sys/kernel/debug/sched/fair_server/cpu1/runtime\" = \"900000000\" }\n\
    [[setting]]\nname = \"without\"\n\
    write = { \"/proc/sys/kernel/sched_rt_runtime_us\" = \"-1\", \
    \"/sys/kernel/debug/sched/fair_server/cpu1/runtime\" = \"0\" }\n\
    [[workload]]\nname = \"plain\"\n\
    nohz = { cpu = 1, limit = \"5s\", observe = \"1200ms\", fifo = 99 }\n\
    background = [{ cpu = 1, spinners = 1 }]\n";

/// Check that the cause is named if a tick comes back, and that it does not come back if the
/// cause is disabled.
#[test]
fn brought_back() {
    let Some(site) = Site::new() else { return };
    if !kernels(&site, &REAL_TIME[1..]) {
        return;
    }
    let cells = site.cells(&[&site.file("server.toml", SERVER)], 0);
    let [with, without] = ["with plain", "without plain"].map(|name| {
        let cell = cells.iter().find(|cell| cell["name"] == name).unwrap();
        &cell["summary"]
    });
    assert_eq!((&with["entered"], &without["entered"]), (&true.into(), &true.into()));
    assert_eq!(without["came_back"], false);
    assert_eq!(without["brought_back"], Value::Null);
    assert_eq!(with["came_back"], true, "{with}");
    let cause = &with["brought_back"]["causes"][0];
    assert_eq!((&cause["kind"], &cause["name"]), (&"dependency".into(), &"SCHED".into()));
}

/// An ordinary thread, for which a fair server (since 6.12) keeps about one timer interrupt per
/// second, and the same with the watchdog for soft lockups on its CPU.
const REMAINING: &str = "name = \"remaining\"\n\
    kernels = [\"debian:6.1-cloud\", \"debian:6.12-cloud\"]\n\
    phases = 1\n[machine]\ncpus = 2\ncpu = \"max,-rdrand,-rdseed\"\n\
    [[boot]]\nappend = \"nohz_full=1 isolcpus=1 rcu_nocbs=1\"\n\
    [[setting]]\nname = \"default\"\n\
    write = { \"/proc/sys/kernel/sched_rt_runtime_us\" = \"-1\" }\n\
    [[setting]]\nname = \"watchdog\"\n\
    write = { \"/proc/sys/kernel/watchdog_cpumask\" = \"0-1\", \
    \"/proc/sys/kernel/watchdog_thresh\" = \"1\" }\n\
    [[workload]]\nname = \"other\"\n\
    nohz = { cpu = 1, limit = \"5s\", observe = \"3s\" }\n";

/// The number of traced interrupts in which a timer with this function expired, armed for this
/// reason; `Null`: for any.
fn interrupts_by(remaining: &Value, function: &str, reason: &Value) -> u64 {
    let is_one = |timer: &Value| {
        timer["function"] == function && (reason.is_null() || timer["reason"] == *reason)
    };
    let has_one = |cause: &&Value| cause["timers"].as_array().unwrap().iter().any(is_one);
    let causes = remaining["causes"].as_array().unwrap().iter().filter(has_one);
    causes.map(|cause| cause["count"].as_u64().unwrap()).sum()
}

/// Check that each remaining timer interrupt has the timers that expired in it, by name, and that
/// their counts add up to that of `/proc/interrupts`: the fair server of 6.12, although its own timer
/// expires on another CPU, the watchdog of both kernels, which expires every 400 ms, and the delayed
/// work of `vmstat` on 6.1, which follows it.
#[test]
fn remaining_timers() {
    let Some(site) = Site::new() else { return };
    let cells = site.cells(&[&site.file("remaining.toml", REMAINING)], 0);
    let remaining = |kernel: &str, name: &str| {
        let is_it = |cell: &&Value| cell["asked"] == kernel && cell["name"] == name;
        let summary = &cells.iter().find(is_it).unwrap()["summary"];
        assert_eq!(summary["entered"], true, "{summary}");
        summary["remaining"].clone()
    };
    assert_eq!(remaining(OLD, "default other"), Value::Null);
    let server = remaining(NEW, "default other");
    let restarts = interrupts_by(&server, "tick_nohz_handler", &"fair_server".into());
    assert!((3..=6).contains(&restarts), "5 s: {server}");
    assert_eq!(server["count"], restarts, "{server}");
    let [old, new] = [OLD, NEW].map(|kernel| remaining(kernel, "watchdog other"));
    for remaining in [&server, &old, &new] {
        let causes = remaining["causes"].as_array().unwrap().iter();
        let explained: u64 = causes.map(|cause| cause["count"].as_u64().unwrap()).sum();
        assert_eq!(remaining["count"], explained, "{remaining}");
        assert_eq!(remaining["unexplained"], 0, "{remaining}");
        assert_eq!(remaining["lost"], 0, "{remaining}");
    }
    let work = serde_json::json!({"work": "vmstat_update"});
    assert!(interrupts_by(&old, "delayed_work_timer_fn", &work) > 0, "{old}");
    for remaining in [old, new] {
        let expired = interrupts_by(&remaining, "watchdog_timer_fn", &Value::Null);
        assert!((11..=14).contains(&expired), "5 s: {remaining}");
    }
}
