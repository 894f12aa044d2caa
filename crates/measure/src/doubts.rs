//! The doubts about a run.

use facts::{ExtState, Facts, Throttling, Why};
use recording::{Code, Doubt, NoiseSpec};
use units::{Cpu, CpuSet, Nanos, TscHz};

use crate::control::hotplug::Offline;
use crate::spinner::SpinResult;

/// Frequencies that differ by more than this are those of clocks that disagree: one part in a
/// thousand is twice what NTP adjusts at most (500 ppm).
const DRIFT: u64 = 1_000;
/// A counter with larger steps hides relevant gaps.
const COARSE: Nanos = Nanos::from_micros(1);
/// Results of a shorter run are random.
pub(crate) const BRIEF: Nanos = Nanos::from_millis(100);
/// A CPU that was measured for less than this share of the duration has a doubt.
const SHARE_PERCENT: u64 = 90;
/// CPU time that the kernel reserves for ordinary tasks is taken from real-time tasks in pieces
/// longer than this: the fair server has 50 ms per second by default, and so has RT throttling.
pub(crate) const THROTTLED_MIN: Nanos = Nanos::from_millis(10);

/// `CPU 3` or `CPUs 0-2`, the beginning of a doubt.
pub(crate) fn label(cpus: &CpuSet) -> String {
    let word = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{word} {cpus}")
}

/// A condition on the result of a CPU, and its doubt.
pub(crate) type DoubtIf<'a, T> = (&'a dyn Fn(&T) -> bool, Code, &'a str);

/// A doubt for each condition that CPUs meet.
pub(crate) fn of_cpus<T>(
    results: &[T],
    cpu: fn(&T) -> Cpu,
    conditions: &[DoubtIf<'_, T>],
) -> Vec<Doubt> {
    let doubt = |(test, code, text): &DoubtIf<'_, T>| {
        let cpus: CpuSet = results.iter().filter(|one| test(one)).map(cpu).collect();
        let text = format!("{}: {text}", label(&cpus));
        (!cpus.is_empty()).then(|| Doubt::new(*code, text))
    };
    conditions.iter().filter_map(doubt).collect()
}

/// Adds doubts about CPUs that were offline, and removes those that only suspect it: about threads
/// that were moved away from them, and about their missing counters.
pub(crate) fn replace_suspicions(doubts: &mut Vec<Doubt>, offline: &[Offline]) {
    let cpus: CpuSet = offline.iter().map(Offline::cpu).collect();
    let suspects = [Code::Migrated, Code::CounterReset];
    doubts.retain(|doubt| !(suspects.contains(&doubt.code) && doubt.is_about(&cpus)));
    doubts.extend(offline.iter().map(Offline::doubt));
}

/// Doubts of the clock: its frequency before and over the run, the kernel's calibration at boot,
/// and time spent suspended.
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
            "the counter's frequency, by the kernel's clock, was {} Hz before the run and \
             {} Hz over it: lengths may be wrong by as much",
            before.get(),
            over.get()
        );
        doubts.push(Doubt::new(Code::ClockDrift, text));
    }
    if let Some(&boot) = facts.clock.tsc_hz.get().filter(|&&boot| apart(boot)) {
        let text = format!(
            "the counter's frequency was {} Hz at boot, and {} Hz over the run",
            boot.get(),
            over.get()
        );
        doubts.push(Doubt::new(Code::ClockDrift, text));
    }
    let tsc_is_a_source =
        facts.clock.available.get().map(|all| all.iter().any(|c| c == "tsc"));
    if cfg!(target_arch = "x86_64") && tsc_is_a_source == Some(false) {
        let text = "the kernel rejects the TSC as a clock source on this machine: it may \
                    be unstable or differ between CPUs, and lengths may be wrong";
        doubts.push(Doubt::new(Code::ClockRejected, text));
    }
    doubts.extend(of_suspension(suspended));
    doubts
}

/// A doubt if the machine was suspended for that long.
pub(crate) fn of_suspension(suspended: Nanos) -> Option<Doubt> {
    let ms = suspended.get() / 1_000_000;
    let text = format!("the machine was suspended for {ms} ms during the run");
    (ms > 0).then(|| Doubt::new(Code::Suspended, text))
}

/// Doubts of the threads: lost gaps, a counter that was set back, a wrong CPU, too short a run, and
/// CPU time that the kernel reserves for ordinary tasks.
pub(crate) fn of_spinners(
    results: &[SpinResult],
    spec: &NoiseSpec,
    hz: TscHz,
    facts: &Facts,
    stopped: bool,
) -> Vec<Doubt> {
    let short = |result: &SpinResult| {
        let requested = spec.duration_ns.get() / 100 * SHARE_PERCENT;
        !stopped && hz.span(result.spun.elapsed).get() < requested
    };
    let conditions: [DoubtIf<'_, SpinResult>; 6] = [
        (
            &|result| hz.span(result.spun.elapsed) < BRIEF,
            Code::TooShort,
            "measured for less than 0.1 s: rates and probabilities are unreliable",
        ),
        (
            &|result| result.ring.overflow().is_some(),
            Code::GapsLost,
            "more gaps than the buffer holds: all are counted and summed, but the later \
             ones are missing in the quantiles and the risk; a higher --threshold records \
             fewer",
        ),
        (
            &|result| result.spun.backwards > 0,
            Code::ClockBackwards,
            "the counter went backwards during the run",
        ),
        (
            &|result| result.ended_on.is_some_and(|cpu| cpu != result.cpu),
            Code::Migrated,
            "the spinning thread was moved to another CPU: something changed its affinity, \
             or the CPU went offline",
        ),
        (
            &short,
            Code::Unequal,
            "measured for less than 90 % of the duration: it started late, or did not run \
             at the end",
        ),
        (
            &|result| hz.span(result.ordinary.step) > COARSE,
            Code::CoarseClock,
            "the counter's resolution is worse than 1 us: shorter gaps are not seen",
        ),
    ];
    let mut doubts = of_cpus(results, |result| result.cpu, &conditions);
    let is_throttled = |one: &&SpinResult| hz.span(one.ring.longest()) > THROTTLED_MIN;
    let throttled: CpuSet = results.iter().filter(is_throttled).map(|s| s.cpu).collect();
    if spec.fifo.is_some() && !throttled.is_empty() {
        doubts.extend(of_fifo(&throttled, facts));
    }
    doubts
}

/// The doubt about gaps of real-time threads that the kernel throttled; `None` if it reserves no
/// CPU time for ordinary tasks.
pub(crate) fn of_fifo(cpus: &CpuSet, facts: &Facts) -> Option<Doubt> {
    let share = reserved_share(cpus, facts)?;
    let text = format!(
        "{}: the kernel reserves {share} for ordinary tasks on CPUs that SCHED_FIFO tasks \
         occupy; gaps of tens of milliseconds are probably caused by that",
        label(cpus)
    );
    Some(Doubt::new(Code::RtThrottled, text))
}

/// The doubts if cgroups of this process were throttled between these two readings.
pub(crate) fn of_quota(
    before: &[Throttling],
    after: &[Throttling],
    facts: &Facts,
) -> Vec<Doubt> {
    let throttled = after.iter().filter_map(|now| now.since(before));
    let doubt = |throttled: Throttling| {
        let Throttling { cgroup, times, ns, .. } = throttled;
        let quota = facts.cgroup.quota.get().filter(|quota| quota.cgroup == cgroup);
        let quota = quota.map_or_else(String::new, |quota| {
            let [quota, period] = [quota.quota_us, quota.period_us];
            format!(" of {} ms in each {} ms", millis(quota), millis(period))
        });
        let seconds = Nanos::from_nanos(ns).as_secs_f64();
        let text = format!(
            "the cgroup {cgroup} used up its CPU quota{quota} {times} times: its threads \
             waited {seconds:.3} s for the next period, on all CPUs together"
        );
        Doubt::new(Code::Throttled, text)
    };
    throttled.map(doubt).collect()
}

/// The doubt if sched_ext had another scheduler before the run than after it.
pub(crate) fn of_scheduler([before, after]: [Option<ExtState>; 2]) -> Option<Doubt> {
    let (before, after) = before.zip(after)?;
    let text = format!(
        "the scheduler of ordinary tasks changed during the run: {before} before it, {after} \
         after it"
    );
    (before != after).then(|| Doubt::new(Code::SchedulerChanged, text))
}

/// Microseconds as milliseconds.
#[expect(clippy::cast_precision_loss, reason = "a quota, for a sentence")]
fn millis(us: u64) -> f64 {
    us as f64 / 1e3
}

/// RT throttling applies before the fair server (6.12), and to groups of real-time tasks.
fn reserved_share(cpus: &CpuSet, facts: &Facts) -> Option<String> {
    let sched = &facts.sched;
    let is_throttled = match sched.fair_server_runtime_ns.value() {
        Err(unknown) => unknown.code == Why::TooOld,
        Ok(_) => sched.rt_group.get().is_some_and(|&grouped| grouped),
    };
    let throttling = is_throttled.then(|| rt_throttling_share(facts)).flatten();
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

/// The longest runtime of the fair server on any of those CPUs.
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

/// The share that RT throttling reserves for ordinary tasks; `None`: none.
fn rt_throttling_share(facts: &Facts) -> Option<String> {
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

    /// The scheduler of a kernel with sched_ext, as facts have it.
    fn scheduler(state: &str, ops: Option<&str>, enable_seq: u64) -> Option<ExtState> {
        let mut page = serde_json::json!({
            "sched": {"ext_state": state, "ext_ops": ops, "ext_enable_seq": enable_seq},
            "sources": {}, "unknown": {},
        });
        if ops.is_none() {
            page["unknown"]["sched.ext_ops"] =
                serde_json::json!({"code": "not_applicable", "text": "none is loaded"});
        }
        let facts: Facts = serde_json::from_value(page).unwrap();
        ExtState::of(&facts.sched)
    }

    /// Check that a scheduler that was loaded, ended or replaced during a run is a doubt, and one that is
    /// there all the time, or unknown, is none.
    #[test]
    fn changed_schedulers() {
        let own = || scheduler("disabled", None, 0);
        let first = || scheduler("enabled", Some("simple"), 1);
        let text = |before, after| of_scheduler([before, after]).map(|doubt| doubt.text);
        assert_eq!(text(own(), own()), None);
        assert_eq!(text(first(), first()), None);
        assert_eq!(text(None, None), None);
        assert_eq!(text(None, first()), None);
        let loaded = text(own(), first()).unwrap();
        let expected =
            "the kernel's own, enable_seq 0 before it, simple (sched_ext), enable_seq 1";
        assert!(loaded.contains(expected), "{loaded}");
        assert!(text(first(), scheduler("disabled", None, 1)).is_some());
        assert!(text(first(), scheduler("enabled", Some("simple"), 2)).is_some());
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

    /// Check that a suspension is reported with its length.
    #[test]
    fn suspended_machines() {
        let same = hz(1_000_000_000);
        let doubts = of_clock(same, same, Nanos::from_secs(3), &facts(1_000_000_000));
        assert_eq!(codes(&doubts), [Code::Suspended]);
        assert!(doubts[0].text.contains("3000 ms"), "{}", doubts[0]);
    }

    /// Check which share is reserved for ordinary tasks, before and since the fair server, and that
    /// there is none if that is switched off.
    #[test]
    fn kept_from_real_time_tasks() {
        let share = |sched: serde_json::Value, why: Option<&str>| {
            let mut page = serde_json::json!({
                "cpus": {"possible": "0-1"}, "sched": sched, "sources": {}, "unknown": {},
            });
            if let Some(code) = why {
                page["unknown"]["sched.fair_server_runtime_ns"] =
                    serde_json::json!({"code": code, "text": "?"});
            }
            let facts: Facts = serde_json::from_value(page).unwrap();
            reserved_share(&"1".parse().unwrap(), &facts).unwrap_or_default()
        };
        let throttling = |runtime| {
            let sched =
                serde_json::json!({"rt_runtime_us": runtime, "rt_period_us": 1_000_000});
            share(sched, Some("too_old"))
        };
        assert!(throttling(950_000).starts_with("all but 950 ms of each second"));
        assert_eq!(throttling(-1), "");
        let server = |runtimes: &[u64]| {
            let sched = serde_json::json!({
                "rt_runtime_us": 950_000, "rt_period_us": 1_000_000,
                "fair_server_runtime_ns": runtimes,
            });
            share(sched, None)
        };
        assert!(server(&[50_000_000]).starts_with("up to 50 ms"));
        assert_eq!(server(&[50_000_000, 0]), "");
        assert!(server(&[0, 40_000_000]).starts_with("up to 40 ms"));
        let unknown = serde_json::json!({"rt_runtime_us": -1, "rt_period_us": 1_000_000});
        assert!(share(unknown, Some("not_mounted")).starts_with("a share"));
    }
}
