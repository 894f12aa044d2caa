//! Recordings for the tests of this crate, similar to real ones.

use facts::Facts;
use recording::{
    Body, Call, CallTimes, CallsSeries, CallsSpec, CheckSeries, CheckSpec, Code, Counted,
    CpuNoise, CpuTicks, Doubt, Ended, Interruptions, LineCount, Moments, NoiseSeries,
    NoiseSpec, Partner, Picked, ProcCounts, Recording, RunSeries, RunSpec, Source,
    TickSample, TicksSeries, TicksSpec, Trigger, Usage, WakersSeries, WakersSpec,
    WokenThread, Words,
};
use units::{Cpu, CpuSet, Nanos, Span, TscHz};

use crate::example::slices as slices_example;

pub(crate) use crate::example::changed::{blamed, quiet, wide, with_scheduler};
pub(crate) use crate::example::guests::guests;
pub(crate) use crate::example::jitter::jitter;
pub(crate) use crate::example::scale::scale;

pub(crate) mod cell;
pub(crate) mod cells;
mod changed;
pub(crate) mod guests;
mod jitter;
pub(crate) mod latency;
mod scale;
pub(crate) mod sets;
pub(crate) mod slices;
mod summaries;
pub(crate) mod top;
pub(crate) mod watch;

/// A common guest.
pub(crate) const GUEST: &str = r##"
    "kernel": {"release": "6.12.48+deb13-cloud-amd64", "arch": "x86_64",
        "version": "#1 SMP PREEMPT_DYNAMIC Debian 6.12.48-1 (2025-09-20)",
        "flavour": "cloud", "distribution": "Debian GNU/Linux 13 (trixie)",
        "config": "/boot/config-6.12.48+deb13-cloud-amd64"},
    "tick": {"hz": 250, "mode": "idle", "nohz_full": "", "divider": null,
        "high_res": true, "migration": true},
    "cpus": {"possible": "0,1", "present": "0,1", "online": "0,1", "allowed": "0,1",
        "isolated": "", "isolcpus": true, "housekeeping": "0,1",
        "smt": {"control": "on", "active": true},
        "cores": ["0,1"], "packages": ["0,1"], "nodes": ["0,1"]},
    "preempt": {"model": "voluntary", "chosen": "default", "dynamic": true},
    "sched": {"policy": "eevdf", "rt_runtime_us": 950000, "rt_period_us": 1000000,
        "autogroup": true, "rr_timeslice_ms": 100},
    "irq": {"default_affinity": "0,1", "threaded": false, "fixed": []},
    "cgroup": {"partitions": "/sys/fs/cgroup"},
    "clock": {"source": "tsc", "available": ["tsc", "kvm-clock", "acpi_pm"],
        "tsc_flags": ["constant_tsc", "nonstop_tsc", "tsc_known_freq"],
        "tsc_hz": 2596122000},
    "virt": {"hypervisor": "KVM", "product": "Standard PC (Q35 + ICH9, 2009)",
        "steal_clock": true},
    "power": {"driver": "none", "governor": "none", "idle_driver": "haltpoll",
        "idle_governor": "haltpoll",
        "idle_states": [{"name": "poll", "latency_us": 0, "disabled": false},
            {"name": "haltpoll", "latency_us": 1, "disabled": true}]},
    "security": {"lockdown": "none", "uid": 1000, "capabilities": []},
    "boot": {"parameters": ["root=UUID=...", "ro", "quiet", "divider=10"],
        "inert": [{"parameter": "divider=10", "why": "other_age",
            "text": "belongs to RHEL 5; today idle CPUs do not tick, and the rate is CONFIG_HZ"}],
        "changed_with": "update-grub"}
"##;

/// Sources and unknown facts of all machines.
const SOURCES: &str = r#"
    "sources": {"kernel.release": "/proc/sys/kernel/osrelease", "tick.hz":
        "/boot/config-6.12.48+deb13-cloud-amd64: CONFIG_HZ",
        "tick.migration": "/proc/sys/kernel/timer_migration",
        "cpus.online": "/sys/devices/system/cpu/online",
        "sched.base_slice_ns": "/sys/kernel/debug/sched/base_slice_ns"},
    "unknown": {"sched.base_slice_ns": {"code": "needs_root",
            "text": "/sys/kernel/debug/sched/base_slice_ns may be read by root only"},
        "sched.latency_ns": {"code": "too_new",
            "text": "gone since Linux 6.6, where EEVDF replaced CFS"}}
"#;

/// A machine without a hypervisor, with isolated CPUs.
pub(crate) const METAL: &str = r#"
    "kernel": {"release": "6.12.48-rt", "arch": "x86_64", "flavour": "rt"},
    "tick": {"hz": 1000, "mode": "full", "nohz_full": "2-7", "divider": null},
    "cpus": {"online": "0-7", "isolated": "2-7", "housekeeping": "0,1"},
    "preempt": {"model": "rt", "chosen": "static", "dynamic": false},
    "irq": {"fixed": [36]},
    "clock": {"source": "tsc"},
    "virt": {"hypervisor": null, "steal_clock": true},
    "boot": {"parameters": ["nohz_full=2-7", "isolcpus=2-7"], "inert": [], "changed_with": "grubby"}
"#;

/// A machine without known facts.
pub(crate) const MUTE: &str = r#""tick": {}"#;

/// Facts with these groups; all others are unknown.
pub(crate) fn facts(groups: &str) -> Facts {
    serde_json::from_str(&format!("{{{groups},{SOURCES}}}")).unwrap()
}

pub(crate) fn set(count: u32) -> CpuSet {
    (0..count).map(Cpu::new).collect()
}

pub(crate) fn recording(groups: &str, body: Body, doubts: Vec<Doubt>) -> Recording {
    Recording {
        taken: "2026-11-20T06:30:12Z".to_owned(),
        tool: "noisefloor 0.1.0".to_owned(),
        facts: facts(groups),
        body,
        doubts,
        moments: Moments::default(),
        hardware: None,
        repeat: None,
    }
}

/// Ticks on `count` CPUs; odd CPUs are busy. The last one is unknown if there are more than two.
pub(crate) fn ticks_series(count: u32, seconds: u64) -> TicksSeries {
    let cpu = |cpu: u32, second: u64| {
        let is_known = count <= 2 || cpu + 1 < count;
        let (timer, busy) = if cpu % 2 == 0 {
            (11 + second + u64::from(cpu), 10)
        } else {
            (250 + second % 2, 1000)
        };
        CpuTicks {
            cpu: Cpu::new(cpu),
            timer: is_known.then_some(timer),
            interrupts: is_known.then_some(timer + 40),
            busy_ns: is_known.then_some(Nanos::from_millis(busy)),
            accounted_ns: is_known.then_some(Nanos::from_secs(1)),
        }
    };
    let sample = |second| TickSample {
        start_ns: Nanos::from_millis(1000 * second + second),
        span_ns: Nanos::from_secs(1),
        cpus: (0..count).map(|number| cpu(number, second)).collect(),
    };
    TicksSeries { samples: (0..seconds).map(sample).collect(), ..TicksSeries::default() }
}

/// The noise of one CPU in ten seconds: ticks and, on two of three CPUs, another program.
fn cpu_noise(cpu: u32) -> CpuNoise {
    let tick = |at: u64| Span {
        start: Nanos::from_micros(4_000 * at + 17),
        length: Nanos::from_nanos(3_100 + at % 7 * 450 + u64::from(cpu) * 61),
    };
    let mut gaps: Vec<Span> = (0..2_499).map(tick).collect();
    gaps.extend((0..u64::from(cpu % 3) * 6).map(|at| Span {
        start: Nanos::from_micros(600_000 * at + 900),
        length: Nanos::from_nanos(1_204_567 + at * 100_000),
    }));
    gaps.sort_unstable();
    CpuNoise {
        cpu: Cpu::new(cpu),
        began_ns: Nanos::from_micros(20),
        elapsed_ns: Nanos::from_secs(10),
        phases: Vec::new(),
        loop_ns: Nanos::from_nanos(12),
        passes: 700_000_000,
        gaps,
        lost: None,
        blamed: None,
        backwards: 0,
        proc: proc(cpu),
    }
}

pub(crate) fn proc(cpu: u32) -> ProcCounts {
    let line = |line: &str, name: &str, count, timer| LineCount {
        line: line.to_owned(),
        name: name.to_owned(),
        count,
        timer,
    };
    let softirq = |name: &str, count| Counted { name: name.to_owned(), count };
    let other = u64::from(cpu % 3);
    let mut interrupts = vec![
        line("LOC", "Local timer interrupts", 2_505, true),
        line("CAL", "Function call interrupts", 31, false),
    ];
    if other > 0 {
        interrupts.push(line("36", "virtio1-req.0", 402 * other, false));
    }
    ProcCounts {
        span_ns: Nanos::from_micros(10_000_400),
        interrupts: Some(interrupts),
        softirqs: Some(vec![
            softirq("RCU", 1_100 + other),
            softirq("TIMER", 600),
            softirq("SCHED", 2_400),
        ]),
        preempted: 6 * other,
        waited_ns: Some(Nanos::from_micros(7_300 * other)),
        steal_ns: Some(Nanos::from_millis(20 * other)),
    }
}

pub(crate) fn noise_series(count: u32) -> NoiseSeries {
    NoiseSeries {
        clock: "tsc".to_owned(),
        clock_hz: TscHz::new(2_596_122_000).unwrap(),
        began_raw_ns: Nanos::from_secs(1_000),
        monotonic: None,
        source: None,
        threshold_ns: Nanos::from_nanos(120),
        cpus: (0..count).map(cpu_noise).collect(),
    }
}

pub(crate) fn ticks(groups: &str, count: u32, seconds: u64) -> Recording {
    let spec = TicksSpec {
        cpus: set(count),
        interval_ns: Nanos::from_secs(1),
        count: Some(seconds),
    };
    let body = Body::Ticks { spec, series: ticks_series(count, seconds) };
    recording(groups, body, Vec::new())
}

pub(crate) fn noise(groups: &str, count: u32) -> Recording {
    let spec = NoiseSpec {
        cpus: set(count),
        duration_ns: Nanos::from_secs(10),
        threshold_ns: None,
        fifo: None,
        trigger: Trigger::default(),
        phases: None,
        at_scale: None,
    };
    let body = Body::Noise { spec, series: noise_series(count) };
    let doubt = Doubt::new(
        Code::Unequal,
        "CPU 1 began 30 ms after the others, so not all of them spun at the same time",
    );
    recording(groups, body, vec![doubt])
}

pub(crate) fn check(groups: &str, count: u32) -> Recording {
    let spec = CheckSpec {
        cpus: set(count),
        rest_cpus: set(count),
        idle_ns: Nanos::from_secs(2),
        noise_ns: Nanos::from_secs(10),
        at_scale: None,
    };
    let mut rest = ticks_series(count, 2);
    for cpu in rest.samples.iter_mut().flat_map(|sample| &mut sample.cpus) {
        cpu.timer = Some(11 + u64::from(cpu.cpu.get() % 5));
        cpu.busy_ns = Some(Nanos::from_millis(10));
        cpu.accounted_ns = Some(Nanos::from_secs(1));
    }
    let series = CheckSeries { rest, noise: noise_series(count) };
    let doubt =
        Doubt::new(Code::TooShort, "10 s are short for gaps that come once a minute");
    recording(groups, Body::Check { spec, series }, vec![doubt])
}

/// Each call a hundred times on CPU 1; every tenth repeat is interrupted.
pub(crate) fn calls(groups: &str) -> Recording {
    let typical = [
        (Call::Getpid, 73),
        (Call::ClockGettime, 140),
        (Call::Futex, 2_900),
        (Call::Pipe, 3_400),
        (Call::Switch, 810),
        (Call::PageFault, 690),
        (Call::Fork, 61_000),
        (Call::Timer, 1_950),
    ];
    let step = |number: u64, ns: u64| match number % 10 {
        0 => Nanos::from_nanos(ns + 41 * (number + 1)),
        rest => Nanos::from_nanos(ns + rest / 8),
    };
    let times = typical.map(|(call, ns)| CallTimes {
        call,
        step_ns: (0..100).map(|number| step(number, ns)).collect(),
    });
    let spec = CallsSpec {
        cpu: Cpu::new(1),
        calls: typical.map(|(call, _)| call).to_vec(),
        repeats: 100,
        phases: None,
    };
    let series = CallsSeries {
        clock: "tsc".to_owned(),
        clock_hz: TscHz::new(2_596_122_000).unwrap(),
        calls: times.to_vec(),
    };
    recording(groups, Body::Calls { spec, series }, Vec::new())
}

/// The `top` threads of a desktop on which a notifier wakes up a thousand times per second during
/// a build.
pub(crate) fn wakers(groups: &str, top: u32) -> Recording {
    let partner = |tid, name: &str, count| Partner { tid, name: name.to_owned(), count };
    let thread = |tid, name: &str, wakeups: u64, run: u64| WokenThread {
        tid,
        pid: tid,
        name: name.to_owned(),
        prio: 120,
        wakeups,
        run_ns: Some(Nanos::from_nanos(run)),
        preempted: 0,
        woken_by: vec![partner(None, "interrupt", wakeups)],
        victims: Vec::new(),
    };
    let notifier = WokenThread {
        preempted: 4_990,
        victims: vec![
            partner(Some(4711), "compile", 4_790),
            partner(Some(9), "rude", 200),
        ],
        ..thread(1234, "notifier", 5_000, 61_500_000)
    };
    let rude = WokenThread {
        preempted: 5_005,
        woken_by: vec![partner(Some(8), "systemd", 4_000), partner(None, "softirq", 950)],
        victims: vec![partner(Some(1234), "notifier", 5_005)],
        ..thread(9, "rude", 4_950, 4_123_456_789)
    };
    let worker = thread(4_194_303, "kworker/u513:15-events_unbound", 12, 48_000);
    let spec =
        WakersSpec { cpus: None, duration_ns: Nanos::from_secs(5), top, process: None };
    let series = WakersSeries {
        began_ns: Nanos::from_secs(77),
        elapsed_ns: Nanos::from_secs(5),
        lost: 0,
        threads: vec![rude, notifier, worker],
    };
    recording(groups, Body::Wakers { spec, series }, Vec::new())
}

/// Spinners in rounds with two variants, traced or not.
pub(crate) fn slices(groups: &str, is_traced: bool) -> Recording {
    let (spec, series) =
        if is_traced { slices_example::woken() } else { slices_example::untraced() };
    recording(groups, Body::Slices { spec, series }, Vec::new())
}

/// The same, simulated: with the placement of tasks that woke up.
pub(crate) fn slices_placed(groups: &str) -> Recording {
    let (spec, series) = slices_example::placed();
    recording(groups, Body::Slices { spec, series }, Vec::new())
}

/// In a guest: a program that exited, with traced interruptions; otherwise: a long command that
/// was killed, not traced.
pub(crate) fn run(groups: &str) -> Recording {
    let is_guest = groups == GUEST;
    let noise = blamed(noise(GUEST, 1));
    let Body::Noise { series: NoiseSeries { mut cpus, .. }, .. } = noise.body else {
        return noise;
    };
    let cpu = cpus.remove(0);
    let interruptions = Interruptions {
        ready_ns: cpu.elapsed_ns,
        gaps: cpu.gaps,
        gap_cpus: Vec::new(),
        blamed: cpu.blamed.unwrap_or_default(),
        steal_ns: Some(Nanos::from_micros(40)),
        edges: Vec::new(),
    };
    let command = if is_guest {
        "./compute --size 8".to_owned()
    } else {
        "./a-name-of-a-program-that-is-long ".repeat(9)
    };
    let spec = RunSpec {
        command: Words::new(command.split_whitespace().map(Into::into)),
        cpus: Cpu::new(1).into(),
        picked: if is_guest { Picked::LeastInterrupted } else { Picked::NohzFull },
        fifo: is_guest.then_some(99),
        top: 4,
        trigger: Trigger::default(),
    };
    let series = RunSeries {
        began_ns: Nanos::from_secs(77),
        elapsed_ns: Nanos::from_millis(10_002),
        stopped: Vec::new(),
        elsewhere: Vec::new(),
        ended: if is_guest { Ended::Exited(3) } else { Ended::Killed(15) },
        usage: Usage {
            user_ns: Nanos::from_millis(9_985),
            system_ns: Nanos::from_millis(12),
            voluntary: 12,
            involuntary: 1_234_567,
            minor_faults: 98_765,
            major_faults: 2,
        },
        source: Some(if is_guest { Source::Bpf } else { Source::Proc }),
        interruptions: is_guest.then_some(interruptions),
        proc: cpu.proc,
    };
    recording(groups, Body::Run { spec, series }, Vec::new())
}
