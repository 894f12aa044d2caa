//! Recordings changed: with few gaps, attributed gaps, wide numbers.

use facts::Fact;
use recording::{
    Blamed, Body, CheckSeries, Culprit, CulpritKind, Lost, Partner, ProcCounts,
    Recording, Share, Source, Steal, StealClock, Thread, Wakeup,
};
use units::{Cpu, Nanos, Span};

use crate::example::{guests, jitter};

/// The same recording with few gaps on CPUs from 2 on, and without `/proc` counters on CPU 0.
pub(crate) fn quiet(mut recording: Recording) -> Recording {
    let (Body::Check { series: CheckSeries { noise, .. }, .. }
    | Body::Noise { series: noise, .. }) = &mut recording.body
    else {
        return recording;
    };
    for cpu in &mut noise.cpus {
        match cpu.cpu.get() {
            0 => {
                cpu.proc =
                    ProcCounts { span_ns: cpu.proc.span_ns, ..ProcCounts::default() }
            }
            1 => {}
            _ => {
                cpu.gaps.truncate(10);
                cpu.proc.interrupts.iter_mut().flatten().for_each(|line| {
                    line.count = 10;
                });
                (cpu.proc.preempted, cpu.proc.waited_ns) = (0, Some(Nanos::ZERO));
            }
        }
    }
    recording
}

/// The same recording of a machine with a scheduler of sched_ext, for all ordinary tasks or for some.
pub(crate) fn with_scheduler(
    mut recording: Recording,
    ops: &str,
    has_all: bool,
) -> Recording {
    let sched = &mut recording.facts.sched;
    sched.ext_state = Fact::known("enabled".to_owned(), "/sys/kernel/sched_ext/state");
    sched.ext_ops = Fact::known(ops.to_owned(), "/sys/kernel/sched_ext/root/ops");
    sched.ext_switch_all = Fact::known(has_all, "/sys/kernel/sched_ext/switch_all");
    recording
}

/// The same recording with attributed gaps: short ones to the tick and its softirq, long ones to a
/// thread as well.
pub(crate) fn blamed(mut recording: Recording) -> Recording {
    let Some(noise) = recording.body.noise_mut() else { return recording };
    noise.source = Some(Source::Bpf);
    let culprit =
        |kind, name: &str, thread| Culprit { kind, name: name.to_owned(), thread };
    let thread = Thread {
        tid: 4_194_303,
        pid: 4_194_303,
        prio: 120,
        owner: None,
        unit: None,
        own: false,
    };
    let culprits = vec![
        culprit(CulpritKind::Timer, "tick_nohz_handler", None),
        culprit(CulpritKind::Softirq, "SCHED", None),
        culprit(CulpritKind::Unexplained, "unexplained", None),
        culprit(CulpritKind::Thread, "kworker/u513:15-events_unbound", Some(thread)),
    ];
    for cpu in &mut noise.cpus {
        let mut shares = Vec::new();
        for (gap, Span { length, .. }) in cpu.gaps.iter().enumerate() {
            let (short, rest) = (Nanos::from_nanos(700), Nanos::from_nanos(1_400));
            let entry = Nanos::from_nanos(600);
            let last = if *length > Nanos::from_millis(1) { 3 } else { 0 };
            let shared = [(1, short), (2, short), (last, length.saturating_sub(rest))];
            shares.extend(shared.map(|(culprit, ns)| Share {
                gap,
                culprit,
                ns,
                inside_ns: match culprit {
                    0 => ns.saturating_sub(entry),
                    2 => Nanos::ZERO,
                    _ => ns,
                },
                entry_ns: Some(if culprit == 0 { entry } else { Nanos::ZERO }),
            }));
        }
        let events = vec![2_499, 2_499, 0, 12];
        cpu.blamed = Some(Blamed {
            firmware: None,
            culprits: culprits.clone(),
            shares,
            events,
            lost: 0,
            losses: Vec::new(),
            steal: Some(steal(cpu.proc.steal_ns.unwrap_or_default())),
            trace: None,
        });
    }
    recording
}

/// Steal time by the scheduler's clock, a little more than `/proc/stat` counted.
fn steal(counted: Nanos) -> Steal {
    let time = counted.saturating_add(Nanos::from_micros(3_400));
    Steal {
        clock: StealClock::Paravirt,
        at_least_ns: time,
        at_most_ns: time,
        unexplained_max_ns: Nanos::from_micros(345),
    }
}

/// The same recording with the widest possible numbers.
pub(crate) fn wide(mut recording: Recording) -> Recording {
    let (Body::Check { series: CheckSeries { noise, .. }, .. }
    | Body::Noise { series: noise, .. }) = &mut recording.body
    else {
        let recording = guests::wide(wide_wakers(recording));
        return wide_latency(jitter::wide(recording));
    };
    for cpu in &mut noise.cpus {
        cpu.cpu = Cpu::new(cpu.cpu.get() + 700);
        cpu.gaps.iter_mut().for_each(|gap| gap.length = gap.length.saturating_mul(37));
        cpu.lost = Some(Lost {
            since_ns: Nanos::from_secs(9),
            gaps: 12_345_678,
            ns: Nanos::from_millis(640),
            max_ns: Nanos::from_micros(345_678),
        });
        cpu.proc.preempted = 1_234_567;
        for line in cpu.proc.interrupts.iter_mut().flatten() {
            line.name =
                "a handler's name that is longer than any, and then some".to_owned();
            line.count *= 2_432;
        }
    }
    recording
}

fn wide_latency(mut recording: Recording) -> Recording {
    let Body::Latency { series, .. } = &mut recording.body else { return recording };
    for cpu in &mut series.cpus {
        cpu.cpu = Cpu::new(cpu.cpu.get() + 700);
        cpu.wakeups
            .push(Wakeup { expiries: 12_345_678, late_ns: Nanos::from_secs(12_346) });
    }
    recording
}

fn wide_wakers(mut recording: Recording) -> Recording {
    let Body::Wakers { spec, series } = &mut recording.body else { return recording };
    spec.cpus = Some((0..600).step_by(2).map(Cpu::new).collect());
    spec.process = Some(4_194_303);
    for thread in &mut series.threads {
        (thread.tid, thread.name) =
            (thread.tid.max(4_194_000), "chromium-browser".into());
        (thread.wakeups, thread.preempted) = (1_234_567, 1_234_566);
        thread.run_ns = Some(Nanos::from_millis(4_987));
        for partner in thread.woken_by.iter_mut().chain(&mut thread.victims) {
            *partner = Partner {
                tid: Some(4_194_302),
                name: "kworker/u513:15-events_unbound".to_owned(),
                count: 1_234_566,
            };
        }
    }
    recording
}
