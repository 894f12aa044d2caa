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
        doubts.extend(kept_off.and_then(|cpus| of_fifo(&cpus, facts)));
    }
    doubts
}

/// What the kernel keeps from threads that outrank ordinary tasks and were kept off their CPUs;
/// `None` where it keeps nothing.
pub(crate) fn of_fifo(cpus: &CpuSet, facts: &Facts) -> Option<Doubt> {
    let kept = kept_for_ordinary_tasks(cpus, facts)?;
    let text = format!(
        "{}: the kernel keeps {kept} for ordinary tasks where a SCHED_FIFO spinner would \
         leave them nothing; gaps of tens of milliseconds are probably that",
        named(cpus)
    );
    Some(Doubt::new(Code::RtThrottled, text))
}

/// RT throttling decides before the fair server (6.12), and for groups of real-time tasks.
fn kept_for_ordinary_tasks(cpus: &CpuSet, facts: &Facts) -> Option<String> {
    let sched = &facts.sched;
    let is_throttled = match sched.fair_server_runtime_ns.value() {
        Err(unknown) => unknown.code == Why::TooOld,
        Ok(_) => sched.rt_group.get().is_some_and(|&grouped| grouped),
    };
    let throttling = is_throttled.then(|| of_throttling(facts)).flatten();
    throttling.or_else(|| match sched.fair_server_runtime_ns.value() {
        Ok(runtimes) => {
            let most = fair_server(cpus, runtimes, facts).get() / 1_000_000;
            (most > 0)
                .then(|| format!("up to {most} ms of each second (the fair server)"))
        }
        Err(unknown) if unknown.code == Why::TooOld => None,
        Err(_) => Some("a share of each second (50 ms unless changed)".to_owned()),
    })
}

/// The longest time that the fair server has on one of those CPUs.
fn fair_server(cpus: &CpuSet, runtimes: &[Nanos], facts: &Facts) -> Nanos {
    let of_cpu = |cpu| match (runtimes, facts.cpus.possible.get()) {
        ([one], _) => Some(*one),
        (_, Some(possible)) => {
            let place = possible.iter().position(|other| other == cpu)?;
            runtimes.get(place).copied()
        }
        (all, None) => all.iter().max().copied(),
    };
    cpus.iter().filter_map(of_cpu).max().unwrap_or_default()
}

/// What RT throttling keeps for ordinary tasks; `None`: nothing.
fn of_throttling(facts: &Facts) -> Option<String> {
    let known = facts.sched.rt_runtime_us.get().zip(facts.sched.rt_period_us.get());
    match known {
        Some((runtime, _)) if *runtime < 0 => None,
        Some((runtime, period)) if *period > 0 => {
            let part = runtime * 1_000 / period;
            Some(format!("all but {part} ms of each second (RT throttling)"))
        }
        _ => Some("a share of each second (50 ms unless changed)".to_owned()),
    }
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

    /// Check what is said to be kept for ordinary tasks, before and since the fair server, and
    /// that nothing is where that is switched off.
    #[test]
    fn kept_from_real_time_tasks() {
        let kept = |sched: serde_json::Value, why: Option<&str>| {
            let mut page = serde_json::json!({
                "cpus": {"possible": "0-1"}, "sched": sched, "sources": {}, "unknown": {},
            });
            if let Some(code) = why {
                page["unknown"]["sched.fair_server_runtime_ns"] =
                    serde_json::json!({"code": code, "text": "?"});
            }
            let facts: Facts = serde_json::from_value(page).unwrap();
            kept_for_ordinary_tasks(&"1".parse().unwrap(), &facts).unwrap_or_default()
        };
        let throttling = |runtime| {
            let sched =
                serde_json::json!({"rt_runtime_us": runtime, "rt_period_us": 1_000_000});
            kept(sched, Some("too_old"))
        };
        assert!(throttling(950_000).starts_with("all but 950 ms of each second"));
        assert_eq!(throttling(-1), "");
        let server = |runtimes: &[u64]| {
            let sched = serde_json::json!({
                "rt_runtime_us": 950_000, "rt_period_us": 1_000_000,
                "fair_server_runtime_ns": runtimes,
            });
            kept(sched, None)
        };
        assert!(server(&[50_000_000]).starts_with("up to 50 ms"));
        assert_eq!(server(&[50_000_000, 0]), "");
        assert!(server(&[0, 40_000_000]).starts_with("up to 40 ms"));
        let unknown = serde_json::json!({"rt_runtime_us": -1, "rt_period_us": 1_000_000});
        assert!(kept(unknown, Some("not_mounted")).starts_with("a share"));
    }
}
