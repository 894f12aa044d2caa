//! Recordings of `latency` for the tests of reports.

use recording::{
    Body, CpuLatency, Culprit, CulpritKind, IdleUse, LateWakeup, LatencySeries,
    LatencySpec, Recording, Source, Thread, Timer, Trigger, WakeMoment, WakePart,
    WakeShare, Wakeup, WakeupCauses,
};
use units::{Cpu, Nanos, Span};

use crate::example::{GUEST, METAL, proc, recording, set};

/// The states of an idle CPU: in a guest nearly always the deepest, on metal the first only.
fn idle_states(groups: &str, cpu: u32) -> Vec<IdleUse> {
    let state = |name: &str, latency_us, disabled, millis| IdleUse {
        name: name.to_owned(),
        latency_us,
        disabled,
        entered: millis,
        time_ns: Nanos::from_millis(millis),
    };
    match groups {
        GUEST => vec![
            state("POLL", 0, false, 7),
            state("haltpoll idle", 1, false, 1_880 - u64::from(cpu)),
        ],
        METAL => vec![
            state("POLL", 0, false, 1_900),
            state("C1", 2, true, 0),
            state("C6", 133, false, 0),
        ],
        _ => Vec::new(),
    }
}

/// Timers that wake threads of `count` CPUs two thousand times; on the last CPU one wake-up is 20 ms
/// late. Ordinary tasks in a guest, real-time tasks otherwise.
pub(crate) fn latency(groups: &str, count: u32) -> Recording {
    let fifo = (groups != GUEST).then_some(80);
    let slack = if fifo.is_none() { 50_000 } else { 0 };
    let late = |cpu: u32, at: u64| {
        Nanos::from_nanos(slack + 4_000 + at % 900 * 7 + u64::from(cpu))
    };
    let cpu_latency = |cpu: u32| {
        let mut wakeups: Vec<Wakeup> =
            (0..1_980).map(|at| Wakeup { expiries: 1, late_ns: late(cpu, at) }).collect();
        if cpu + 1 == count {
            wakeups.push(Wakeup { expiries: 20, late_ns: Nanos::from_millis(20) });
        }
        CpuLatency {
            cpu: Cpu::new(cpu),
            first_ns: Nanos::from_micros(5_000),
            slack_ns: Nanos::from_nanos(slack),
            clock_ns: Nanos::from_nanos(27),
            wakeups,
            lost: None,
            causes: None,
            proc: proc(cpu),
            // Root set it to 0 on metal; in a guest, the ordinary user cannot read it.
            wake_limit_us: (groups == METAL).then_some(0),
            idle_states: idle_states(groups, cpu),
        }
    };
    let spec = LatencySpec {
        cpus: set(count),
        interval_ns: Nanos::from_millis(1),
        duration_ns: Nanos::from_secs(2),
        timer: Timer::ClockNanosleep,
        fifo,
        trigger: Trigger::default(),
    };
    let began_ns = Nanos::from_secs(77);
    let series = LatencySeries {
        began_ns,
        source: None,
        cpus: (0..count).map(cpu_latency).collect(),
    };
    recording(groups, Body::Latency { spec, series }, Vec::new())
}

/// The same with causes: the idle task, the timer, and on the last CPU a thread that outranks ours for
/// 19.9 ms, and ran for 0.5 ms before.
pub(crate) fn with_causes(mut recording: Recording) -> Recording {
    if let Body::Latency { series, .. } = &mut recording.body {
        series.source = Some(Source::Bpf);
        for cpu in &mut series.cpus {
            cpu.causes = Some(causes(cpu));
        }
    }
    recording
}

fn causes(cpu: &CpuLatency) -> WakeupCauses {
    let thread = |name: String, tid, prio| Culprit {
        kind: CulpritKind::Thread,
        thread: Some(Thread {
            tid,
            pid: tid,
            prio,
            owner: None,
            unit: None,
            own: tid == 70,
        }),
        name,
    };
    let timer = Culprit {
        kind: CulpritKind::Timer,
        name: "hrtimer_wakeup".to_owned(),
        thread: None,
    };
    let culprits = vec![
        thread(format!("swapper/{}", cpu.cpu), 0, 120),
        timer,
        thread("pathd".to_owned(), 417, 0),
        thread(format!("late/{}", cpu.cpu), 70, 19),
    ];
    let (us, half) = (Nanos::from_micros(1), Nanos::from_micros(500));
    let late: Nanos = cpu.wakeups.iter().map(|wakeup| wakeup.late_ns).sum();
    let longest = cpu.wakeups.iter().position(|w| w.late_ns == Nanos::from_millis(20));
    let wakeups = cpu.wakeups.len() as u64;
    let share = |part, culprit, wakeups, ns, max_ns| WakeShare {
        part,
        culprit,
        wakeups,
        ns,
        max_ns,
    };
    let each = us.saturating_mul(wakeups);
    let delayed =
        if longest.is_some() { Nanos::from_micros(19_900) } else { Nanos::ZERO };
    let rest = late.saturating_sub(each + each + delayed);
    let mut shares = vec![
        share(WakePart::Expiry, 0, wakeups, each, us),
        share(WakePart::Interrupt, 1, wakeups, each, us),
        share(WakePart::Return, 3, wakeups, rest, us),
    ];
    let latest = longest.map(|wakeup| {
        shares.push(share(WakePart::Scheduling, 2, 1, delayed, delayed));
        let mut start = Nanos::ZERO;
        let mut moment = |part, culprit, length| {
            let span = Span { start, length };
            start = span.end();
            WakeMoment { part, culprit, span }
        };
        let moments = vec![
            moment(None, 2, half),
            moment(Some(WakePart::Interrupt), 1, us),
            moment(Some(WakePart::Scheduling), 2, delayed),
            moment(Some(WakePart::Return), 3, Nanos::from_micros(99)),
        ];
        LateWakeup { wakeup, before_ns: half, moments }
    });
    WakeupCauses { culprits, shares, latest: latest.into_iter().collect(), lost: 0 }
}
