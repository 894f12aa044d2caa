//! The words of `nohz test` and `nohz stress`: whether the tick stopped, how long that took,
//! what came nevertheless, and what keeps it.

pub(crate) mod tick_back;

use recording::{Doubt, KeptBy, NohzSeries, NohzSpec, WaitingThread};
use stats::{MeanwhileSummary, NohzStressSummary, NohzTestSummary};
use units::{Cpu, printable};

use crate::number;
use crate::text::layout::doubts::doubts;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::nohz::tick_back::brought_back;

/// Why each of the kernel's reasons is there, and what would help.
const REASONS: [(&str, &str); 6] = [
    (
        "POSIX_TIMER",
        "a timer of CPU time is armed for a thread on that CPU or its process: \
         timer_create(2) or timer_settime(2) on a CPU clock, setitimer(2) with ITIMER_PROF or \
         ITIMER_VIRTUAL, or a limit on CPU time (ulimit -t)",
    ),
    (
        "PERF_EVENTS",
        "perf events take turns, or sample by frequency (perf record -F, perf top): end them, \
         or sample by a fixed period (perf record -c)",
    ),
    (
        "SCHED",
        "another task wants that CPU too, a deadline task is there (since 6.12 the fair \
         server is one), or a control group limits its time; isolcpus=, and affinity, keep \
         others away",
    ),
    (
        "CLOCK_UNSTABLE",
        "the kernel does not trust its clock, and keeps every CPU's tick: tsc=reliable, where \
         the hardware deserves it",
    ),
    ("RCU", "RCU waits for that CPU, or its callbacks run there: rcu_nocbs= moves them"),
    (
        "RCU_EXP",
        "somebody waits for RCU in a hurry: rcupdate.rcu_normal=1 lets them wait",
    ),
];

/// All of `nohz test`.
pub(crate) fn nohz_test_text(
    spec: &NohzSpec,
    series: &NohzSeries,
    reasons: &[Doubt],
) -> String {
    let summary = NohzTestSummary::of(spec, series);
    let cpu = summary.cpu;
    let wait = number::known(summary.wait_ns, number::duration);
    let left = match (summary.forced, summary.left) {
        (false, _) => String::new(),
        (true, times) => format!(", having left the CPU {}", often(times.into())),
    };
    let text = match summary.entered {
        Some(true) => format!("The tick of CPU {cpu} stopped after {wait}{left}."),
        Some(false) => format!("The tick of CPU {cpu} did not stop in {wait}{left}."),
        None => format!("Ended before it was clear whether the tick of CPU {cpu} stops."),
    };
    let mut text = paragraph("", &text);
    if let Some(observed) = &summary.observed {
        text.push_str(&stayed(observed));
    }
    let is_back = summary.came_back == Some(true);
    if is_back {
        text.push_str(&paragraph("", &back(cpu, &summary)));
    }
    match &summary.brought_back {
        Some(back) => text.push_str(&brought_back(back)),
        None if is_back || summary.entered == Some(false) => {
            text.push_str(&kept_by(summary.kept_by.as_deref(), &summary.others));
        }
        None => {}
    }
    text + &doubts(reasons)
}

/// That a tick came back.
fn back(cpu: Cpu, summary: &NohzTestSummary) -> String {
    let timer = summary.observed.as_ref().and_then(|observed| observed.timer_hz);
    let often = number::known(timer, number::bare_rate);
    format!("So the tick of CPU {cpu} came back: {often} timer interrupts a second.")
}

/// All of `nohz stress`.
pub(crate) fn nohz_stress_text(
    spec: &NohzSpec,
    series: &NohzSeries,
    reasons: &[Doubt],
) -> String {
    let summary = NohzStressSummary::of(spec, series);
    let (cpu, time) = (summary.cpu, number::duration(summary.elapsed_ns));
    let tries = often(summary.tries);
    let outcome = match (summary.failures, summary.tries) {
        (_, 0) => format!("Ended before the first try on CPU {cpu} did."),
        (0, _) => {
            format!("The tick of CPU {cpu} was to stop {tries}, and did, in {time}.")
        }
        _ => format!(
            "The tick of CPU {cpu} did not stop at try {}, after {time}.",
            number::count(summary.tries)
        ),
    };
    let mut text = paragraph("", &outcome);
    if let Some(wait) = summary.wait_ns {
        let columns = ["", "shortest", "half", "99 %", "longest"];
        let columns = columns.map(|name| (name, Side::Right));
        let mut table = Table::new(1, &columns);
        let lengths = [wait.min, wait.p50, wait.p99, wait.max]
            .map(|wait| number::any(wait, number::duration));
        table.row(std::iter::once("it stopped after".to_owned()).chain(lengths));
        text.push('\n');
        text.push_str(&table.text());
    }
    if summary.failures > 0 {
        text.push_str(&kept_by(summary.kept_by.as_deref(), &summary.others));
    }
    text + &doubts(reasons)
}

/// How often, in words.
pub(crate) fn often(times: u64) -> String {
    match times {
        1 => "once".to_owned(),
        times => format!("{} times", number::count(times)),
    }
}

/// What came after the tick had stopped.
fn stayed(observed: &MeanwhileSummary) -> String {
    let time = number::duration(observed.span_ns);
    let Some(lines) = &observed.interrupts else {
        let text = format!("What came in {time} after that could not be read.");
        return paragraph("", &text);
    };
    let all = observed.interrupts_all();
    if all == 0 {
        return paragraph("", &format!("In {time} after that, nothing interrupted it."));
    }
    let came = format!("In {time} after that, it was interrupted {}:", often(all));
    let columns = [("", Side::Left), ("times", Side::Right), ("a second", Side::Right)];
    let mut table = Table::new(1, &columns);
    for line in lines {
        table.row([
            format!("{} {}", line.line, line.name),
            number::count(line.count),
            number::known(line.rate_hz, number::bare_rate),
        ]);
    }
    paragraph("", &came) + &table.text()
}

fn kept_by(kept_by: Option<&[KeptBy]>, others: &[WaitingThread]) -> String {
    let reasons = match kept_by {
        None => String::new(),
        Some([]) => {
            let text = "The kernel did not try to stop it while it was watched, so it did not \
                        say what keeps it.";
            format!("\n{}", paragraph("", text))
        }
        Some(all) => {
            let line =
                |kept: &KeptBy| paragraph("  ", &reason(&kept.dependency, kept.times));
            let lines = all.iter().map(line);
            let head = "What keeps it, in the kernel's words, asked for 25 ticks\n";
            format!("\n{head}{}", lines.collect::<String>())
        }
    };
    reasons + &runnable(others)
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
    let text = format!("Other threads that were runnable there: {}", list.join(", "));
    format!("\n{}", paragraph("", &text))
}

/// A dependency, how often it kept the tick, and what would help.
pub(crate) fn reason(dependency: &str, times: u64) -> String {
    let known = REASONS.iter().find(|(name, _)| *name == dependency);
    let why = known.map_or("a reason that is not known here", |(_, why)| why);
    format!("{dependency}, {}: {why}", often(times))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{
        KeptBy, LineCount, Meanwhile, NohzTry, SoftirqCount, TickReturn, TimerCount,
        WaitingThread,
    };
    use units::Nanos;

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
        let kept = |name: &str, times| KeptBy { dependency: name.to_owned(), times };
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
            kept_by: Some(vec![kept("POSIX_TIMER", 24), kept("RCU", 1)]),
            others: vec![other("stress", 0), other("irq/31-virtio1", 50)],
            observed: Some(Meanwhile {
                span_ns: Nanos::from_secs(1),
                interrupts: Some(vec![timer]),
                ..Meanwhile::default()
            }),
            back: None,
        }
    }

    /// Check a tick that stopped.
    #[test]
    fn stopped() {
        let text = nohz_test_text(&spec(false), &series(&[(true, 512)]), &[]);
        assert_snapshot!(text, @r#"
    The tick of CPU 1 stopped after 512 µs.
    In 1 s after that, it was interrupted once:
                                 times  a second
     LOC Local timer interrupts      1         1
    "#);
    }

    /// Check a tick that stopped and came back, with what the kernel then said.
    #[test]
    fn came_back() {
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
        let text = nohz_test_text(&spec(false), &series, &[]);
        assert_snapshot!(text, @r#"
    The tick of CPU 1 stopped after 512 µs.
    In 1 s after that, it was interrupted 227 times:
                                 times  a second
     LOC Local timer interrupts    227       227
    So the tick of CPU 1 came back: 227 timer interrupts a second.

    What brought it back: watched once more for 5 s, with 1020 timer interrupts
      softirq TIMER, 994 times: raised but never run, and the kernel keeps the tick
      until it is: ktimers/1 (SCHED_FIFO 1) runs it and waits for the CPU; give the
      measured thread a lower priority, or that one a higher (chrt -f -p). Due:
      process_timeout
      hrtimer hrtimer_wakeup, 200 times: a high-resolution timer on that CPU: its
      interrupts are counted with the ticks
    "#);
    }

    /// Check a tick that did not.
    #[test]
    fn kept() {
        let failed = NohzSeries { observed: None, ..series(&[(false, 5_000_000)]) };
        assert_snapshot!(nohz_test_text(&spec(true), &failed, &[]), @r#"
    The tick of CPU 1 did not stop in 5 s, having left the CPU 3 times.

    What keeps it, in the kernel's words, asked for 25 ticks
      POSIX_TIMER, 24 times: a timer of CPU time is armed for a thread on that
      CPU or its process: timer_create(2) or timer_settime(2) on a CPU clock,
      setitimer(2) with ITIMER_PROF or ITIMER_VIRTUAL, or a limit on CPU time
      (ulimit -t)
      RCU, once: RCU waits for that CPU, or its callbacks run there: rcu_nocbs=
      moves them

    Other threads that were runnable there: stress (27), irq/31-virtio1 (27,
    real-time priority 50)
    "#);
    }

    /// Check a stress that failed.
    #[test]
    fn stress() {
        let series = series(&[(true, 512), (true, 480), (false, 5_000_000)]);
        assert_snapshot!(nohz_stress_text(&spec(false), &series, &[]), @r#"
    The tick of CPU 1 did not stop at try 3, after 70 s.

                       shortest    half    99 %  longest
     it stopped after    480 µs  480 µs  512 µs   512 µs

    What keeps it, in the kernel's words, asked for 25 ticks
      POSIX_TIMER, 24 times: a timer of CPU time is armed for a thread on that
      CPU or its process: timer_create(2) or timer_settime(2) on a CPU clock,
      setitimer(2) with ITIMER_PROF or ITIMER_VIRTUAL, or a limit on CPU time
      (ulimit -t)
      RCU, once: RCU waits for that CPU, or its callbacks run there: rcu_nocbs=
      moves them

    Other threads that were runnable there: stress (27), irq/31-virtio1 (27,
    real-time priority 50)
    "#);
    }

    /// Check that every reason that the kernel knows is explained.
    #[test]
    fn unseen() {
        let mut series = series(&[(false, 9)]);
        (series.observed, series.kept_by) = (None, None);
        assert_snapshot!(nohz_test_text(&spec(false), &series, &[]), @r#"
    The tick of CPU 1 did not stop in 9 µs.

    Other threads that were runnable there: stress (27), irq/31-virtio1 (27,
    real-time priority 50)
    "#);
        series.kept_by = Some(Vec::new());
        assert_snapshot!(nohz_test_text(&spec(false), &series, &[]), @r#"
    The tick of CPU 1 did not stop in 9 µs.

    The kernel did not try to stop it while it was watched, so it did not say what
    keeps it.

    Other threads that were runnable there: stress (27), irq/31-virtio1 (27,
    real-time priority 50)
    "#);
    }
}
