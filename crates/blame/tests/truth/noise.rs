//! Noise of known kind, number and length comes back under its right name.
//!
//! How much was made is known from those who made it and from `/proc`. Each test is done with
//! each source: eBPF needs a kernel with BTF, the other one tracefs.

use recording::{CulpritKind, Source};
use units::Nanos;

use crate::CPU;
use crate::injector::{
    Deferred, Injector, PACKETS, membarriers, sleeper, thief, timer, udp, yields,
};
use crate::own_mounts::with_tracefs;
use crate::seen::{Made, Seen, cpu, rising, seen_beside, typical};

/// Of so many bursts, at least, typical ones can be told.
const ENOUGH: usize = 15;
/// Of a typical gap that an injected culprit had a share in, at most so many percent may
/// stay unexplained. Of others more: the hypervisor comes between, and may not tell.
const UNEXPLAINED: u64 = 5;

/// Runs noise beside an injector, as each source sees it that this machine allows.
fn measure(name: &str, make: fn(units::Cpu) -> Injector, check: impl Fn(&Seen)) {
    let _turn = CPU.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for source in [Source::Bpf, Source::Tracefs] {
        let seen = match source {
            Source::Tracefs => with_tracefs(|| seen_beside(source, make)),
            _ => seen_beside(source, make),
        };
        match seen {
            Ok(seen) => check(&seen),
            Err(why) => println!("skipped: {name}, {source:?}: {why}"),
        }
    }
}

pub(crate) fn explained(seen: &Seen, kind: CulpritKind, name: &str) {
    let percent = seen.unexplained_beside(kind, name);
    assert!(typical(&percent) <= UNEXPLAINED, "{name}: {percent:?}");
}

/// Check that as many events were seen as `/proc` counted, which looks a little earlier
/// and a little later: then twice as many may come as come on average.
fn counted(seen: &Seen, events: u64, proc: u64) {
    let besides = proc * 2 * seen.besides_the_loop() / 1_000;
    let least = proc.saturating_sub(besides) * 95 / 100;
    assert!(least > 100, "only {proc} were made, of which {besides} besides the loop");
    assert!(
        (least..=proc).contains(&events),
        "{:?}: {events} events for {least} to {proc} that were counted: {:?}",
        seen.source(),
        seen.told()
    );
}

/// Of a typical gap of what is injected, at most so many percent may be others': the interrupt of
/// the timer that wakes the injected, and the switches.
const OTHERS: u64 = 10;

/// Check that what is injected is not blamed on others: of a typical gap they take little. What
/// they take of all gaps hangs on what else falls into the run: on when it begins, and so on the
/// bytes of this program. Where there are more CPUs than one, what others do changes from run to
/// run.
fn others_take_little(seen: &Seen) {
    if !seen.on_only_cpu {
        return;
    }
    let percent = seen.percent_of_others("nf-");
    assert!(percent.len() > ENOUGH, "{percent:?}");
    assert!(typical(&percent) <= OTHERS, "{:?}: {percent:?}", seen.source());
}

/// Check that a thread that takes 200 us of every 10 ms is blamed by name, once for each
/// time, for all that it computed, and typically for no longer than it ran; and that all shares
/// together are all noise.
#[test]
fn a_thread() {
    measure("a_thread", thief, |seen| {
        let made = seen.made("nf-thief");
        assert!(made.len() > ENOUGH, "{made:?}");
        assert_eq!(seen.gaps_of_bursts(CulpritKind::Thread, "nf-thief"), made.len());
        let sum = |of: fn(&Made) -> Nanos| made.iter().map(of).sum::<Nanos>().get();
        let (inside, burnt) = (sum(|burst| burst.inside), sum(|burst| burst.burnt));
        assert!(inside * 100 >= burnt * 95, "{:?}: {made:?}", seen.source());
        // What the hypervisor takes while the kernel switches is its own as well, but neither
        // it nor the kernel counts it: that may hit some of them.
        let percent = rising(made.iter().map(|burst| burst.percent_of(burst.ran)));
        assert!(typical(&percent) <= 105, "{:?}: {percent:?}", seen.source());
        // All threads took no longer than the loop waited, as the kernel counts it, interrupts
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

/// Check that a function of a timer that expires each millisecond was seen and explains its gaps.
fn each_millisecond(seen: &Seen, function: &str) {
    let named = seen.events(CulpritKind::Timer, function);
    let millis = seen.elapsed().get() / 1_000_000;
    assert!(named * 2 > millis, "{named} in {millis} ms: {:#?}", seen.told());
    explained(seen, CulpritKind::Timer, function);
}

/// Check that a timer of a millisecond is the timer interrupt's, by its function's name.
#[test]
fn a_timer() {
    measure("a_timer", timer, |seen| {
        counted(seen, seen.events(CulpritKind::Timer, ""), seen.interrupts("LOC"));
        each_millisecond(seen, "timerfd_tmrproc");
    });
}

/// Check that a sleep of a millisecond ends in a timer interrupt, by its function's name.
#[test]
fn a_sleep() {
    measure("a_sleep", sleeper, |seen| {
        each_millisecond(seen, "hrtimer_wakeup");
    });
}

/// Check that barriers that another CPU asks for are inter-processor interrupts.
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
        // What came before and after the loop, `/proc` counts as well.
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

/// Check that threads that hand the CPU to one another have all of it together.
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
