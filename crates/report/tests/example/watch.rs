//! Recordings of `watch` for the tests of this crate.

use recording::{
    Body, Culprit, CulpritKind, DelayKind, DelayRun, Recording, Source, Thread,
    ThreadOwner, WaitParts, WaitTaker, WatchLost, WatchSeries, WatchSpec, WatchTarget,
    WatchedDelay, WatchedInterruption, WatchedThread,
};
use units::{Cpu, Nanos};

use crate::example::recording;

fn micros(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

fn thread(name: &str, tid: u32, prio: i32, owner: ThreadOwner) -> Culprit {
    let thread =
        Thread { tid, pid: tid, prio, owner: Some(owner), unit: None, own: false };
    Culprit { kind: CulpritKind::Thread, name: name.to_owned(), thread: Some(thread) }
}

fn program(name: &str, tid: u32, prio: i32) -> Culprit {
    thread(name, tid, prio, ThreadOwner::Program(name.to_owned()))
}

fn worker() -> Culprit {
    thread("kworker/1:1-events", 77, 120, ThreadOwner::Kernel)
}

fn interrupt(kind: CulpritKind, name: &str) -> Culprit {
    Culprit { kind, name: name.to_owned(), thread: None }
}

/// A web server with two threads, and some that have ended, beside a thread of high priority.
pub(crate) fn watch(groups: &str) -> Recording {
    let spec = WatchSpec {
        target: WatchTarget::Unit("nginx".to_owned()),
        duration_ns: Nanos::from_secs(10),
        keep: 10,
        log_above_ns: None,
    };
    recording(groups, Body::Watch { spec, series: series() }, Vec::new())
}

/// The same with the counters of `/proc` only.
pub(crate) fn counted(groups: &str) -> Recording {
    let mut recording = watch(groups);
    let Body::Watch { series, .. } = &mut recording.body else { return recording };
    series.source = Source::Proc;
    for thread in &mut series.threads {
        (thread.parts, thread.wait_ns_max) = (None, None);
        (thread.interrupted_ns, thread.interruptions, thread.migrations) =
            (None, None, None);
    }
    (series.takers, series.interruptions) = (Vec::new(), Vec::new());
    (series.lengths, series.longest) = (Vec::new(), Vec::new());
    recording
}

fn series() -> WatchSeries {
    let parts = WaitParts {
        idle_ns: micros(100),
        same_ns: micros(900),
        others_ns: micros(30_000),
        realtime_ns: micros(55_000),
        kernel_ns: micros(3_000),
        interrupts_ns: micros(1_000),
        quota_ns: Nanos::ZERO,
    };
    let main = WatchedThread {
        tid: Some(417),
        pid: Some(417),
        name: "nginx".to_owned(),
        count: 1,
        run_ns: Nanos::from_millis(3_120),
        wait_ns: parts.sum(),
        waits: 12_345,
        wait_ns_max: Some(micros(11_300)),
        parts: Some(parts),
        interrupted_ns: Some(micros(12_400)),
        interruptions: Some(2_600),
        preempted: 210,
        slept: 12_100,
        migrations: Some(12),
        user_ns: Nanos::from_millis(1_100),
        system_ns: Nanos::from_millis(2_020),
        minor_faults: 345,
        major_faults: 0,
    };
    let other = WatchedThread {
        tid: Some(418),
        pid: Some(417),
        name: "nginx: cache manager".to_owned(),
        run_ns: micros(800),
        wait_ns: micros(20),
        waits: 10,
        wait_ns_max: Some(micros(4)),
        parts: Some(WaitParts { idle_ns: micros(20), ..WaitParts::default() }),
        ..main.clone()
    };
    let ended = WatchedThread {
        tid: None,
        name: "sh".to_owned(),
        count: 14,
        run_ns: micros(14_000),
        ..other.clone()
    };
    WatchSeries {
        source: Source::Bpf,
        began_ns: Nanos::from_secs(77),
        elapsed_ns: Nanos::from_secs(10),
        threads: vec![main, other, ended],
        takers: vec![taker(Some(program("pathd", 27_418, 0)), 55_000, 40), cc1(), idle()],
        interruptions: interruptions(),
        lengths: vec![(micros(5), 12_300), (micros(4_000), 60), (micros(11_400), 5)],
        longest: vec![preempted(), interrupted()],
        lost: WatchLost::default(),
    }
}

fn interruptions() -> Vec<WatchedInterruption> {
    vec![
        WatchedInterruption {
            culprit: interrupt(CulpritKind::Timer, "local timer"),
            ns: micros(9_000),
            count: 2_500,
            ns_max: micros(44),
        },
        WatchedInterruption {
            culprit: interrupt(CulpritKind::Softirq, "NET_RX"),
            ns: micros(3_400),
            count: 100,
            ns_max: micros(900),
        },
    ]
}

fn taker(thread: Option<Culprit>, us: u64, runs: u64) -> WaitTaker {
    WaitTaker { thread, is_same: false, ns: micros(us), runs }
}

fn cc1() -> WaitTaker {
    taker(Some(program("cc1", 5_000, 120)), 30_000, 210)
}

fn idle() -> WaitTaker {
    taker(None, 120, 33)
}

fn preempted() -> WatchedDelay {
    let run = |thread, before, during| DelayRun {
        thread,
        is_same: false,
        before_ns: micros(before),
        ns: micros(during),
    };
    WatchedDelay {
        begin_ns: Nanos::from_secs(80),
        ns: micros(11_300),
        kind: DelayKind::Woken,
        thread: program("nginx", 417, 120),
        cpu: Cpu::new(1),
        elsewhere_ns: Nanos::ZERO,
        parts: WaitParts {
            realtime_ns: micros(11_000),
            kernel_ns: micros(300),
            ..WaitParts::default()
        },
        interruption: None,
        runs: vec![
            run(Some(program("pathd", 27_418, 0)), 636, 11_000),
            run(Some(worker()), 0, 300),
        ],
        runs_before: 0,
    }
}

fn interrupted() -> WatchedDelay {
    WatchedDelay {
        begin_ns: Nanos::from_secs(81),
        ns: micros(900),
        kind: DelayKind::Interrupted,
        parts: WaitParts { interrupts_ns: micros(900), ..WaitParts::default() },
        interruption: Some(interrupt(CulpritKind::Softirq, "NET_RX")),
        runs: Vec::new(),
        ..preempted()
    }
}
