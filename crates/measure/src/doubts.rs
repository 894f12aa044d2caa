//! What a run gives reason to doubt.

use facts::{Facts, Why};
use recording::{Code, Doubt, NoiseSpec};
use units::{CpuSet, Nanos, TscHz};

use crate::spinner::Seen;

/// Two frequencies further apart than this are two clocks that disagree: one part in a
/// thousand is ten times what NTP may steer.
const DRIFT: u64 = 1_000;
/// A counter that steps by more hides gaps that matter.
const COARSE: Nanos = Nanos::from_micros(1);
/// What was seen in less time than this is a matter of chance.
pub(crate) const BRIEF: Nanos = Nanos::from_millis(100);
/// A CPU that spun for less than this share of the time asked is told.
const SHARE_PERCENT: u64 = 90;
/// What the kernel keeps from real-time tasks it takes in pieces longer than this: the fair
/// server may have 50 ms of a second, and so has RT throttling, if nobody changed them.
pub(crate) const KEPT_OFF: Nanos = Nanos::from_millis(10);

/// `CPU 3` or `CPUs 0-2`, to begin a doubt with.
pub(crate) fn named(cpus: &CpuSet) -> String {
    let word = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{word} {cpus}")
}

/// What is true of the CPUs that a doubt is about.
type Test<'a> = &'a dyn Fn(&Seen) -> bool;

/// Doubts of the clock: its frequency before and over the run, what the kernel found at
/// boot, and time spent suspended.
pub(crate) fn of_clock(
    before: TscHz,
    over: TscHz,
    suspended: Nanos,
    facts: &Facts,
) -> Vec<Doubt> {
    let apart = |other: TscHz| other.get().abs_diff(over.get()) > over.get() / DRIFT;
    let mut doubts = Vec::new();
    if apart(before) {
        let text = format!(
            "the counter ran at {} Hz before the run and at {} Hz over it, by the kernel's \
             clock: lengths may be off by as much",
            before.get(),
            over.get()
        );
        doubts.push(Doubt::new(Code::ClockDrift, text));
    }
    if let Some(&boot) = facts.clock.tsc_hz.get().filter(|&&boot| apart(boot)) {
        let text = format!(
            "the kernel found the counter at {} Hz at boot, it ran at {} Hz over the run",
            boot.get(),
            over.get()
        );
        doubts.push(Doubt::new(Code::ClockDrift, text));
    }
    let tsc_is_a_source =
        facts.clock.available.get().map(|all| all.iter().any(|c| c == "tsc"));
    if cfg!(target_arch = "x86_64") && tsc_is_a_source == Some(false) {
        let text = "the kernel does not take the TSC for a clock on this machine: it may run \
                    unevenly or differ between CPUs, and lengths may be wrong";
        doubts.push(Doubt::new(Code::ClockRejected, text));
    }
    doubts.extend(of_suspension(suspended));
    doubts
}

/// A doubt where the machine was suspended for that long.
pub(crate) fn of_suspension(suspended: Nanos) -> Option<Doubt> {
    let ms = suspended.get() / 1_000_000;
    let text = format!("the machine was suspended for {ms} ms during the run");
    (ms > 0).then(|| Doubt::new(Code::Suspended, text))
}

/// Doubts of the threads: lost gaps, a counter set back, another CPU than asked, too
/// short a run, and what the kernel keeps from real-time tasks.
pub(crate) fn of_spinners(
    seen: &[Seen],
    spec: &NoiseSpec,
    hz: TscHz,
    facts: &Facts,
    stopped: bool,
) -> Vec<Doubt> {
    let which = |test: Test<'_>| -> Option<CpuSet> {
        let cpus: CpuSet = seen.iter().filter(|s| test(s)).map(|s| s.cpu).collect();
        (!cpus.is_empty()).then_some(cpus)
    };
    let short = |seen: &Seen| {
        let asked = spec.duration_ns.get() / 100 * SHARE_PERCENT;
        !stopped && hz.span(seen.spun.elapsed).get() < asked
    };
    let told: [(Test<'_>, Code, &str); 6] = [
        (
            &|seen| hz.span(seen.spun.elapsed) < BRIEF,
            Code::TooShort,
            "spun for less than a tenth of a second: rates and chances worked out from so \
             little say little",
        ),
        (
            &|seen| seen.ring.overflow().is_some(),
            Code::GapsLost,
            "more gaps than there is room for: all are counted and summed, but the later \
             ones are not in the quantiles and the risk; a higher --threshold keeps fewer",
        ),
        (
            &|seen| seen.spun.backwards > 0,
            Code::ClockBackwards,
            "the counter went backwards during the run",
        ),
        (
            &|seen| seen.ended_on.is_some_and(|cpu| cpu != seen.cpu),
            Code::Migrated,
            "the spinning thread was moved to another CPU: something changed its affinity, \
             or the CPU went offline",
        ),
        (
            &short,
            Code::Unequal,
            "spun for less than nine tenths of the time: it started late, or was kept off \
             its CPU at the end",
        ),
        (
            &|seen| hz.span(seen.ordinary.step) > COARSE,
            Code::CoarseClock,
            "the counter steps by more than a microsecond: shorter gaps are not seen",
        ),
    ];
    let mut doubts: Vec<Doubt> = told
        .into_iter()
        .filter_map(|(test, code, text)| {
            which(test).map(|cpus| Doubt::new(code, format!("{}: {text}", named(&cpus))))
        })
        .collect();
    if spec.fifo.is_some() {
        let kept_off = which(&|seen| hz.span(seen.ring.longest()) > KEPT_OFF);
        doubts.extend(kept_off.map(|cpus| of_fifo(&cpus, facts)));
    }
    doubts
}

/// What the kernel keeps from spinners that outrank ordinary tasks and were kept off their
/// CPUs.
pub(crate) fn of_fifo(cpus: &CpuSet, facts: &Facts) -> Doubt {
    let kept = match (facts.sched.fair_server_runtime_ns.value(), rt_runtime(facts)) {
        (Ok(runtimes), _) => {
            let most =
                runtimes.iter().max().map_or(0, |runtime| runtime.get() / 1_000_000);
            format!("up to {most} ms of each second (the fair server)")
        }
        // Only before the fair server (6.12) does RT throttling decide.
        (Err(unknown), Some(runtime)) if unknown.code == Why::TooOld => {
            format!("all but {runtime} ms of each second (RT throttling)")
        }
        _ => "a share of each second (50 ms if nobody changed it)".to_owned(),
    };
    let text = format!(
        "{}: the kernel keeps {kept} for ordinary tasks where a SCHED_FIFO spinner would \
         leave them nothing; gaps of tens of milliseconds are probably that",
        named(cpus)
    );
    Doubt::new(Code::RtThrottled, text)
}

/// How much of each second real-time tasks may run, in milliseconds; `None`: all of it,
/// or not known.
fn rt_runtime(facts: &Facts) -> Option<i64> {
    let (runtime, period) =
        (facts.sched.rt_runtime_us.get()?, facts.sched.rt_period_us.get()?);
    (*runtime >= 0 && *period > 0).then(|| runtime * 1_000 / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hz(hz: u64) -> TscHz {
        TscHz::new(hz).unwrap()
    }

    fn facts(boot_hz: u64) -> Facts {
        let page = serde_json::json!({
            "clock": {"tsc_hz": boot_hz}, "sources": {}, "unknown": {},
        });
        serde_json::from_value(page).unwrap()
    }

    fn codes(doubts: &[Doubt]) -> Vec<Code> {
        doubts.iter().map(|doubt| doubt.code).collect()
    }

    /// Check that clocks within a thousandth agree, and that others do not.
    #[test]
    fn clocks_that_disagree() {
        let steady = facts(2_600_100_000);
        let of = |before, over| of_clock(hz(before), hz(over), Nanos::ZERO, &steady);
        assert_eq!(codes(&of(2_600_000_000, 2_600_000_500)), []);
        assert_eq!(codes(&of(2_600_000_000, 2_604_000_000)), [Code::ClockDrift; 2]);
    }

    /// Check that a suspended machine is told of, and how long it was.
    #[test]
    fn suspended_machines() {
        let same = hz(1_000_000_000);
        let doubts = of_clock(same, same, Nanos::from_secs(3), &facts(1_000_000_000));
        assert_eq!(codes(&doubts), [Code::Suspended]);
        assert!(doubts[0].text.contains("3000 ms"), "{}", doubts[0]);
    }
}
