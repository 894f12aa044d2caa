//! What delays wake-ups is found under its right name, for as long as it did.

use blame::{TypicalEdges, Watcher};
use facts::{Facts, Root};
use measure::Control;
use recording::{
    Body, CpuLatency, Culprit, CulpritKind, LatencySeries, LatencySpec, Source, Spec,
    Timer, Trigger, WakeShare, WakeupCauses,
};
use units::{Nanos, Span};

use crate::CPU;
use crate::injector::{Burst, Injector, thief};
use crate::noise_run::{cpu, rising, typical};
use crate::own_mounts::with_tracefs;

/// Some thirty bursts of 200 us, one every 10 ms, and expiries in each of them.
const RUN: Nanos = Nanos::from_millis(300);
const INTERVAL: Nanos = Nanos::from_micros(100);
const INJECTOR: &str = "nf-thief";
/// Below the injector's priority.
const SLEEPER: u8 = 5;
/// A shorter part of a burst may be over before the thread that is woken would run.
const SHORT: Nanos = Nanos::from_micros(30);
/// The switches to a burst and from it, and the writing of its log. The hypervisor may interrupt these: of
/// a typical burst.
const AROUND: Nanos = Nanos::from_micros(60);

/// The wake-ups beside an injector, from expiry to end, their causes, and its bursts.
struct LateRun {
    wakeups: Vec<Span>,
    causes: WakeupCauses,
    /// When they were, and how long the injector did not have the CPU meanwhile.
    bursts: Vec<(Span, Nanos)>,
}

impl LateRun {
    /// How long bursts lasted during a wake-up.
    fn delayed(&self, wakeup: Span) -> Nanos {
        self.bursts.iter().map(|(burst, _)| common(*burst, wakeup)).sum()
    }

    /// How long others may have had the CPU in bursts during a wake-up, by the injector's own clock.
    fn preempted(&self, wakeup: Span) -> Nanos {
        let during = self.bursts.iter();
        let during = during.filter(|(burst, _)| !common(*burst, wakeup).is_zero());
        during.map(|(_, preempted)| *preempted).sum()
    }
}

/// The length of the common part.
fn common(one: Span, other: Span) -> Nanos {
    one.end().min(other.end()).saturating_sub(one.start.max(other.start))
}

fn late_beside(source: Source) -> Result<LateRun, String> {
    let facts = Facts::read(&Root::live());
    let cpu = cpu(&facts);
    let injector = thief(cpu);
    if let Injector::None(why) = injector {
        return Err(why.to_owned());
    }
    let spec = LatencySpec {
        cpus: [cpu].into_iter().collect(),
        interval_ns: INTERVAL,
        duration_ns: RUN,
        timer: Timer::ClockNanosleep,
        fifo: Some(SLEEPER),
        trigger: Trigger::default(),
    };
    let control = Control::new().unwrap();
    let watcher = Watcher::open(&spec.cpus, Some(source), &facts);
    let watched = watcher.map_err(|error| units::chain(&error)).map(|watcher| {
        let watching = watcher.begin();
        let spec = Spec::Latency(spec);
        let recording = measure::run(&spec, &facts, &control, &mut measure::ignore);
        (recording, watching.end())
    });
    let bursts = injector.stop();
    let (recording, events) = watched?;
    let mut recording = recording.map_err(|error| units::chain(&error))?;
    events.blame_in(&mut recording, false, &TypicalEdges::default());
    let Body::Latency { series, .. } = recording.body else {
        unreachable!("asked for latency")
    };
    let burst = |burst: Burst| {
        let length = burst.end.saturating_sub(burst.begin);
        let preempted = length.saturating_sub(burst.spent);
        (Span { start: burst.begin, length }, preempted)
    };
    Ok(LateRun {
        wakeups: wakeups(&series, &series.cpus[0]),
        causes: series.cpus[0].causes.clone().unwrap(),
        bursts: bursts.into_iter().map(burst).collect(),
    })
}

fn wakeups(series: &LatencySeries, cpu: &CpuLatency) -> Vec<Span> {
    let mut due = series.began_ns + cpu.first_ns;
    let mut all = Vec::new();
    for wakeup in &cpu.wakeups {
        all.push(Span { start: due, length: wakeup.late_ns });
        due = due + INTERVAL.saturating_mul(wakeup.expiries);
    }
    all
}

/// Check that a thread that takes 200 us of every 10 ms is named for every wake-up that it delays, for
/// as long as its own clock says; and that the shares add up to the latency.
#[test]
fn late_wakeups() {
    let _turn = CPU.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for source in [Source::Bpf, Source::Tracefs] {
        let seen = match source {
            Source::Tracefs => with_tracefs(|| late_beside(source)),
            Source::Bpf
            | Source::BpfClassic
            | Source::Proc
            | Source::Simulation
            | Source::Other => late_beside(source),
        };
        match seen {
            Ok(seen) => check(source, &seen),
            Err(why) => println!("skipped: late_wakeups, {source:?}: {why}"),
        }
    }
}

fn check(source: Source, seen: &LateRun) {
    let late: Nanos = seen.wakeups.iter().map(|wakeup| wakeup.length).sum();
    let shares: Nanos = seen.causes.shares.iter().map(|share| share.ns).sum();
    assert_eq!((seen.causes.lost, shares), (0, late), "{source:?}");
    let is_injector =
        |share: &&WakeShare| seen.causes.culprits[share.culprit].name == INJECTOR;
    let delayed =
        seen.wakeups.iter().filter(|wakeup| seen.delayed(**wakeup) > SHORT).count()
            as u64;
    assert!(delayed > 15, "{source:?}: {delayed} wake-ups were delayed");
    let own = seen.causes.shares.iter().filter(is_injector);
    // All of them in one part: the thread that it delays has been woken, or is not asleep yet.
    let named = own.map(|share| share.wakeups).max().unwrap();
    assert!(named >= delayed, "{source:?}: {named} of {delayed} have its name");
    let mut around = Vec::new();
    for late in &seen.causes.latest {
        let time = |is_meant: &dyn Fn(&Culprit) -> bool| {
            let moments = late.moments.iter().filter(|moment| {
                moment.part.is_some() && is_meant(&seen.causes.culprits[moment.culprit])
            });
            moments.map(|moment| moment.span.length.get()).sum::<u64>()
        };
        let found = time(&|culprit| culprit.name == INJECTOR);
        let others = [CulpritKind::Thread, CulpritKind::Unexplained];
        let interrupts = time(&|culprit| !others.contains(&culprit.kind));
        let wakeup = seen.wakeups[late.wakeup];
        let (expected, preempted) =
            (seen.delayed(wakeup).get(), seen.preempted(wakeup).get());
        let text = format!(
            "{source:?}: {found} ns, {interrupts} of interrupts: {expected}, of which it may not have \
             had {preempted}"
        );
        // On a busy machine, threads of a higher priority have the CPU in a burst.
        let known = found + interrupts + preempted;
        assert!(known * 100 >= expected * 95, "{text}");
        around.push(found.saturating_sub(expected));
    }
    let around = rising(around.into_iter());
    assert!(typical(&around) <= AROUND.get(), "{source:?}: {around:?}");
}
