//! The report of `nohz test` and `nohz stress`: whether the tick stopped, how long that took, the
//! remaining interrupts, and the kernel's reasons not to stop it.

pub(crate) mod tick_back;

use recording::{KeptBy, WaitingThread};
use summary::{NohzStressSummary, NohzTestSummary, ProcSummary};
use units::printable;

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::nohz::tick_back::restart_causes;
use crate::text::noise::proc_counters::interrupt_table;

/// The kernel's tick dependencies (`include/linux/tick.h`): their causes, and remedies.
const DEPENDENCIES: [(&str, &str); 6] = [
    (
        "POSIX_TIMER",
        "a timer on CPU time is armed for a thread on this CPU or for its process: \
         timer_create(2) or timer_settime(2) on a CPU clock, setitimer(2) with ITIMER_PROF or \
         ITIMER_VIRTUAL, or a limit on CPU time (ulimit -t)",
    ),
    (
        "PERF_EVENTS",
        "perf events are multiplexed, or sample by frequency (perf record -F, perf top): end \
         them, or sample by a fixed period (perf record -c)",
    ),
    (
        "SCHED",
        "another task is runnable on this CPU, a deadline task is present (since 6.12 the fair \
         server is one), or a control group limits CPU time; isolcpus= and CPU affinity keep \
         other tasks away",
    ),
    (
        "CLOCK_UNSTABLE",
        "the kernel regards its clock as unstable, and stops no CPU's tick: tsc=reliable, if \
         the hardware is",
    ),
    ("RCU", "RCU waits for this CPU, or its callbacks run on it: rcu_nocbs= moves them"),
    (
        "RCU_EXP",
        "an expedited RCU grace period waits for this CPU: rcupdate.rcu_normal=1 disables them",
    ),
];

pub(crate) fn nohz_test_text(summary: &NohzTestSummary) -> String {
    let cpu = summary.cpu;
    let wait = number::known(summary.wait_ns, number::duration);
    let left = match (summary.forced, summary.left) {
        (false, _) => String::new(),
        (true, count) => format!("; the thread left the CPU {}", times(count.into())),
    };
    let text = match summary.entered {
        Some(true) => format!("The tick of CPU {cpu} stopped after {wait}{left}."),
        Some(false) => format!("The tick of CPU {cpu} did not stop in {wait}{left}."),
        None => format!("Ended before it was clear whether the tick of CPU {cpu} stops."),
    };
    let mut text = paragraph("", &text);
    if let Some(counters) = &summary.observed {
        text.push_str(&remaining(counters));
    }
    let is_back = summary.came_back == Some(true);
    if is_back {
        let rate = summary.observed.as_ref().and_then(|counters| counters.timer_hz);
        let rate = number::known(rate, number::bare_rate);
        let back = format!(
            "The tick of CPU {cpu} restarted: {rate} timer interrupts per second."
        );
        text.push_str(&paragraph("", &back));
    }
    match &summary.brought_back {
        Some(back) => text.push_str(&restart_causes(back)),
        None if is_back || summary.entered == Some(false) => {
            text.push_str(&dependencies(summary.kept_by.as_deref(), &summary.others));
        }
        None => {}
    }
    text
}

pub(crate) fn nohz_stress_text(summary: &NohzStressSummary) -> String {
    let (cpu, time) = (summary.cpu, number::duration(summary.elapsed_ns));
    let tries = number::count(summary.tries);
    let outcome = match (summary.failures, summary.tries) {
        (_, 0) => format!("Ended before the first try on CPU {cpu} was complete."),
        (0, _) => {
            format!(
                "The tick of CPU {cpu} stopped in {tries} of {tries} tries, in {time}."
            )
        }
        _ => format!("The tick of CPU {cpu} did not stop at try {tries}, after {time}."),
    };
    let mut text = paragraph("", &outcome);
    if let Some(wait) = summary.wait_ns {
        let heads = ["", "min", "median", "p99", "max"].map(|name| (name, Side::Right));
        let mut table = Table::new(1, &heads);
        let lengths = [wait.min, wait.p50, wait.p99, wait.max]
            .map(|wait| number::any(wait, number::duration));
        table.row(std::iter::once("time until it stopped".to_owned()).chain(lengths));
        text.push('\n');
        text.push_str(&table.text());
    }
    if summary.failures > 0 {
        text.push_str(&dependencies(summary.kept_by.as_deref(), &summary.others));
    }
    text
}

/// A number of times, in words.
pub(crate) fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{} times", number::count(count)),
    }
}

/// The interrupts after the tick stopped.
fn remaining(counters: &ProcSummary) -> String {
    let lines = counters.interrupts.as_deref();
    let count = match lines.map(|_| counters.interrupts_all()) {
        None => "unknown".to_owned(),
        Some(0) => "none".to_owned(),
        Some(count) => number::count(count),
    };
    let time = number::duration(counters.span_ns);
    let text =
        paragraph("", &format!("Remaining interrupts in the next {time}: {count}"));
    let lines = lines.filter(|lines| !lines.is_empty());
    text + &lines.map_or_else(String::new, interrupt_table)
}

fn dependencies(traced: Option<&[KeptBy]>, others: &[WaitingThread]) -> String {
    let text = match traced {
        None => String::new(),
        Some([]) => {
            let text = "Tick dependencies unknown: the kernel did not try to stop the tick while \
                        it was traced.";
            format!("\n{}", paragraph("", text))
        }
        Some(all) => {
            let line =
                |one: &KeptBy| paragraph("  ", &dependency(&one.dependency, one.times));
            let lines: String = all.iter().map(line).collect();
            let head = "Tick dependencies that prevented the tick from stopping, traced for 25 ticks";
            format!("\n{head}\n{lines}")
        }
    };
    text + &runnable(others)
}

/// The threads that share the CPU.
fn runnable(others: &[WaitingThread]) -> String {
    if others.is_empty() {
        return String::new();
    }
    let named = |other: &WaitingThread| {
        let class = match other.rt_priority {
            0 => String::new(),
            priority => format!(", real-time priority {priority}"),
        };
        format!("{} ({}{class})", printable(&other.name), other.tid)
    };
    let list: Vec<String> = others.iter().map(named).collect();
    format!(
        "\n{}",
        paragraph("", &format!("Other runnable threads: {}", list.join(", ")))
    )
}

/// A tick dependency, how often it was traced, its cause and the remedy.
pub(crate) fn dependency(name: &str, count: u64) -> String {
    let known = DEPENDENCIES.iter().find(|(known, _)| *known == name);
    let cause = known.map_or("an unknown dependency", |(_, cause)| cause);
    format!("{name}, {}: {cause}", times(count))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{
        KeptBy, LineCount, NohzSeries, NohzSpec, NohzTry, ProcCounts, SoftirqCount,
        TickReturn, TimerCount, WaitingThread,
    };
    use units::{Cpu, Nanos};

    use super::*;

    fn spec(forced: bool) -> NohzSpec {
        NohzSpec {
            cpu: Cpu::new(1),
            tries: None,
            limit_ns: Nanos::from_secs(5),
            forced,
            fifo: Some(99),
            observe_ns: Nanos::from_secs(1),
            phases: None,
        }
    }

    fn series(tries: &[(bool, u64)]) -> NohzSeries {
        let of = |&(entered, wait)| NohzTry {
            entered,
            wait_ns: Nanos::from_micros(wait),
            left: 3,
        };
        let dependency =
            |name: &str, times| KeptBy { dependency: name.to_owned(), times };
        let other = |name: &str, rt_priority| WaitingThread {
            tid: 27,
            name: name.to_owned(),
            rt_priority,
        };
        let timer = LineCount {
            line: "LOC".to_owned(),
            name: "Local timer interrupts".to_owned(),
            count: 1,
            timer: true,
        };
        NohzSeries {
            elapsed_ns: Nanos::from_secs(70),
            tries: tries.iter().map(of).collect(),
            kept_by: Some(vec![dependency("POSIX_TIMER", 24), dependency("RCU", 1)]),
            others: vec![other("stress", 0), other("irq/31-virtio1", 50)],
            observed: Some(ProcCounts {
                span_ns: Nanos::from_secs(1),
                interrupts: Some(vec![timer]),
                ..ProcCounts::default()
            }),
            back: None,
        }
    }

    fn test_text(forced: bool, series: &NohzSeries) -> String {
        nohz_test_text(&NohzTestSummary::of(&spec(forced), series))
    }

    /// Check a tick that stopped.
    #[test]
    fn stopped() {
        assert_snapshot!(test_text(false, &series(&[(true, 512)])), @r#"
    The tick of CPU 1 stopped after 512 µs.
    Remaining interrupts in the next 1 s: 1
                                  count  per second
      LOC Local timer interrupts      1           1
    "#);
    }

    /// Check a tick that stopped and restarted, with the causes.
    #[test]
    fn restarted() {
        let mut series = series(&[(true, 512)]);
        let lines = series.observed.as_mut().unwrap().interrupts.as_mut().unwrap();
        lines[0].count = 227;
        series.kept_by.as_mut().unwrap().remove(0);
        let timer =
            |function: &str, times| TimerCount { function: function.to_owned(), times };
        let waiting =
            |name: &str| WaitingThread { tid: 30, name: name.to_owned(), rt_priority: 1 };
        series.back = Some(TickReturn {
            stopped: true,
            span_ns: Nanos::from_secs(5),
            ticks: 1_020,
            softirqs: vec![SoftirqCount {
                name: "TIMER".to_owned(),
                raised: 994,
                run: 0,
            }],
            timers: vec![timer("process_timeout", 1)],
            hrtimers: vec![timer("hrtimer_wakeup", 200)],
            waiting: vec![waiting("ktimers/1"), waiting("rcuc/1")],
        });
        assert_snapshot!(test_text(false, &series), @r#"
    The tick of CPU 1 stopped after 512 µs.
    Remaining interrupts in the next 1 s: 227
                                  count  per second
      LOC Local timer interrupts    227         227
    The tick of CPU 1 restarted: 227 timer interrupts per second.

    Causes of the restart, traced for another 5 s with 1020 timer interrupts
      softirq TIMER, 994 times: raised but not run, and the tick does not stop until
      it is: ktimers/1 (SCHED_FIFO 1) runs it and waits for the CPU; lower the
      priority of the measured thread, or raise that of the waiting one (chrt -f
      -p). Timers due: process_timeout
      hrtimer hrtimer_wakeup, 200 times: a high-resolution timer on this CPU: its
      interrupts are counted as ticks
    "#);
    }

    /// Check a tick that did not stop.
    #[test]
    fn did_not_stop() {
        let failed = NohzSeries { observed: None, ..series(&[(false, 5_000_000)]) };
        assert_snapshot!(test_text(true, &failed), @r#"
    The tick of CPU 1 did not stop in 5 s; the thread left the CPU 3 times.

    Tick dependencies that prevented the tick from stopping, traced for 25 ticks
      POSIX_TIMER, 24 times: a timer on CPU time is armed for a thread on this
      CPU or for its process: timer_create(2) or timer_settime(2) on a CPU clock,
      setitimer(2) with ITIMER_PROF or ITIMER_VIRTUAL, or a limit on CPU time
      (ulimit -t)
      RCU, once: RCU waits for this CPU, or its callbacks run on it: rcu_nocbs=
      moves them

    Other runnable threads: stress (27), irq/31-virtio1 (27, real-time priority 50)
    "#);
    }

    /// Check a stress that failed.
    #[test]
    fn stress() {
        let series = series(&[(true, 512), (true, 480), (false, 5_000_000)]);
        let summary = NohzStressSummary::of(&spec(false), &series);
        assert_snapshot!(nohz_stress_text(&summary), @r#"
    The tick of CPU 1 did not stop at try 3, after 70 s.

                               min  median     p99     max
     time until it stopped  480 µs  480 µs  512 µs  512 µs

    Tick dependencies that prevented the tick from stopping, traced for 25 ticks
      POSIX_TIMER, 24 times: a timer on CPU time is armed for a thread on this
      CPU or for its process: timer_create(2) or timer_settime(2) on a CPU clock,
      setitimer(2) with ITIMER_PROF or ITIMER_VIRTUAL, or a limit on CPU time
      (ulimit -t)
      RCU, once: RCU waits for this CPU, or its callbacks run on it: rcu_nocbs=
      moves them

    Other runnable threads: stress (27), irq/31-virtio1 (27, real-time priority 50)
    "#);
    }

    /// Check reports without dependencies: not traced, or none traced.
    #[test]
    fn no_dependencies() {
        let mut series = series(&[(false, 9)]);
        (series.observed, series.kept_by) = (None, None);
        assert_snapshot!(test_text(false, &series), @r#"
    The tick of CPU 1 did not stop in 9 µs.

    Other runnable threads: stress (27), irq/31-virtio1 (27, real-time priority 50)
    "#);
        series.kept_by = Some(Vec::new());
        assert_snapshot!(test_text(false, &series), @r#"
    The tick of CPU 1 did not stop in 9 µs.

    Tick dependencies unknown: the kernel did not try to stop the tick while it was
    traced.

    Other runnable threads: stress (27), irq/31-virtio1 (27, real-time priority 50)
    "#);
    }
}
