//! Noise of known kind, number and length is found under its right name.
//!
//! The expected values are from the injectors and from `/proc`. Each test is done with each source:
//! eBPF needs a kernel with BTF, the other one tracefs.

use recording::{CulpritKind, Source};
use units::Nanos;

use crate::CPU;
use crate::injector::{
    Deferred, Injector, PACKETS, membarriers, sleeper, thief, timer, udp, yields,
};
use crate::noise_run::{Made, NoiseRun, cpu, rising, seen_beside, typical};
use crate::own_mounts::with_tracefs;

/// At least that many bursts determine a typical one.
const ENOUGH: usize = 15;
/// The percentage of a typical gap with a share of an injected culprit that may be unexplained.
/// Others may have more: the hypervisor may interrupt them, and not export that.
const UNEXPLAINED: u64 = 5;

/// Measures noise beside an injector, with each source that this machine permits.
fn measure(name: &str, make: fn(units::Cpu) -> Injector, check: impl Fn(&NoiseRun)) {
    let _turn = CPU.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for source in [Source::Bpf, Source::Tracefs] {
        let seen = match source {
            Source::Tracefs => with_tracefs(|| seen_beside(source, make)),
            Source::Bpf
            | Source::BpfClassic
            | Source::Proc
            | Source::Simulation
            | Source::Other => seen_beside(source, make),
        };
        match seen {
            Ok(seen) => check(&seen),
            Err(why) => println!("skipped: {name}, {source:?}: {why}"),
        }
    }
}

pub(crate) fn explained(seen: &NoiseRun, kind: CulpritKind, name: &str) {
    let percent = seen.unexplained_beside(kind, name);
    assert!(typical(&percent) <= UNEXPLAINED, "{name}: {percent:?}");
}

/// Check that the number of events is that of `/proc`, which is read a little earlier and a little
/// later: up to twice the average number may occur in that time.
fn counted(seen: &NoiseRun, events: u64, proc: u64) {
    let besides = proc * 2 * seen.besides_the_loop() / 1_000;
    let least = proc.saturating_sub(besides) * 95 / 100;
    assert!(least > 100, "only {proc} were made, of which {besides} besides the loop");
    assert!(
        (least..=proc).contains(&events),
        "{:?}: {events} events, expected {least} to {proc}: {:?}",
        seen.source(),
        seen.told()
    );
}

/// The percentage of a typical gap of an injected culprit that may belong to others: the timer
/// interrupt that wakes it, and the switches.
const OTHERS: u64 = 10;

/// Check that injected noise is not attributed to others: they have a small share in a typical gap.
/// Their share in all gaps depends on what else coincides with the run: on when it begins, and so
/// on the bytes of this program. With more than one CPU, others differ from run to run.
fn others_take_little(seen: &NoiseRun) {
    if !seen.on_only_cpu {
        return;
    }
    let percent = seen.percent_of_others("nf-");
    assert!(percent.len() > ENOUGH, "{percent:?}");
    assert!(typical(&percent) <= OTHERS, "{:?}: {percent:?}", seen.source());
}

/// Check that a thread that takes 200 us of every 10 ms is the culprit by name, once for each
/// burst, for all of its computing time, and typically for no longer than it ran; and that all
/// shares add up to the noise.
#[test]
fn a_thread() {
    measure("a_thread", thief, |seen| {
        let made = seen.made("nf-thief");
        assert!(made.len() > ENOUGH, "{made:?}");
        assert_eq!(seen.gaps_of_bursts(CulpritKind::Thread, "nf-thief"), made.len());
        let sum = |of: fn(&Made) -> Nanos| made.iter().map(of).sum::<Nanos>().get();
        let (inside, burnt) = (sum(|burst| burst.inside), sum(|burst| burst.burnt));
        assert!(inside * 100 >= burnt * 95, "{:?}: {made:?}", seen.source());
        // Time that the hypervisor takes during a switch counts as the thread's as well, but is not
        // counted by the hypervisor or the kernel: some bursts may include that.
        let percent = rising(made.iter().map(|burst| burst.percent_of(burst.ran)));
        assert!(typical(&percent) <= 105, "{:?}: {percent:?}", seen.source());
        // All threads took no longer than the loop waited according to the kernel, interrupts
        // included.
        let (threads, waited) = (seen.inside_of_threads().get(), seen.waited().get());
        assert!(
            threads * 100 <= waited * 105,
            "threads took {threads} ns of {waited} ns: {:#?}",
            seen.told()
        );
        explained(seen, CulpritKind::Thread, "nf-thief");
        others_take_little(seen);
        assert_eq!(seen.shares(), seen.noise());
        assert!(seen.noise() > Nanos::ZERO);
    });
}

/// Check that the function of a timer that expires each millisecond was recorded and explains its
/// gaps.
fn each_millisecond(seen: &NoiseRun, function: &str) {
    let named = seen.events(CulpritKind::Timer, function);
    let millis = seen.elapsed().get() / 1_000_000;
    assert!(named * 2 > millis, "{named} in {millis} ms: {:#?}", seen.told());
    explained(seen, CulpritKind::Timer, function);
}

/// Check that a timer of a millisecond is attributed to the timer interrupt, by its function's
/// name.
#[test]
fn a_timer() {
    measure("a_timer", timer, |seen| {
        counted(seen, seen.events(CulpritKind::Timer, ""), seen.timer_interrupts());
        each_millisecond(seen, "timerfd_tmrproc");
    });
}

/// Check that a sleep of a millisecond ends with a timer interrupt, by its function's name.
#[test]
fn a_sleep() {
    measure("a_sleep", sleeper, |seen| {
        each_millisecond(seen, "hrtimer_wakeup");
    });
}

/// Check that barriers requested on another CPU are inter-processor interrupts.
#[test]
fn another_cpu() {
    measure("another_cpu", membarriers, |seen| {
        let made = seen.interrupts("CAL") + seen.interrupts("TLB");
        counted(seen, seen.events(CulpritKind::Ipi, "call function"), made);
        explained(seen, CulpritKind::Ipi, "call function");
    });
}

/// Check that packets that a program of this CPU sends to itself are softirqs.
#[test]
fn packets() {
    let facts = facts::Facts::read(&facts::Root::live());
    let _deferred = Deferred::outranks_on(cpu(&facts));
    measure("packets", udp, |seen| {
        let bursts = u64::try_from(seen.bursts()).unwrap();
        // `/proc` also counts those before and after the loop.
        let [least, most] = [bursts * PACKETS, seen.softirqs("NET_RX")];
        let events = seen.events(CulpritKind::Softirq, "NET_RX");
        assert!(least > 100, "only {least} were made");
        let told = (seen.source(), seen.told());
        assert!(
            (least..=most).contains(&events),
            "{events} of {least} to {most}: {told:?}"
        );
        explained(seen, CulpritKind::Softirq, "NET_RX");
    });
}

/// Check that threads that yield to one another have the whole CPU time together.
#[test]
fn threads_that_yield() {
    measure("threads_that_yield", yields, |seen| {
        let made = seen.made("nf-yield");
        assert!(made.len() > ENOUGH, "{made:?}");
        // A task of higher priority may take most of one burst.
        let percent = rising(made.iter().map(|burst| burst.percent_of(burst.took)));
        assert!(typical(&percent) >= 90, "{:?}: {percent:?}", seen.source());
        let switches = seen.events(CulpritKind::Thread, "nf-yield");
        assert!(switches > 1_000, "{switches}");
        explained(seen, CulpritKind::Thread, "nf-yield");
        others_take_little(seen);
    });
}
