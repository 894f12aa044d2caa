//! The report of `nohz test` and `nohz stress`: whether the tick stopped, how long that took, the
//! remaining interrupts, and the kernel's reasons not to stop it.

mod dependency;
pub(crate) mod remaining;
pub(crate) mod tick_back;
pub(crate) mod timer_functions;

use recording::{KeptBy, WaitingThread};
use summary::{NohzStressSummary, NohzTestSummary, ProcSummary};

use crate::document::Document;
use crate::document::list::List;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::measurements::nohz::dependency::{dependency, times};
use crate::measurements::nohz::remaining::remaining_timers;
use crate::measurements::nohz::tick_back::restart_causes;
use crate::measurements::noise::proc_counters::interrupt_table;
use crate::number;

pub(crate) fn nohz_test(summary: &NohzTestSummary) -> Document {
    let is_back = summary.came_back == Some(true);
    let restarted = is_back.then(|| restarted(summary));
    let is_kept = is_back || summary.entered == Some(false);
    let why = match &summary.brought_back {
        Some(back) => restart_causes(back),
        None => is_kept
            .then(|| dependencies(summary.kept_by.as_deref(), &summary.others))
            .into(),
    };
    Document::default()
        .lines([stopped(summary)].into_iter().chain(restarted))
        .add(summary.observed.as_ref().map(remaining))
        .add(timers(summary))
        .add(why)
}

/// The timers of the remaining timer interrupts, or that they are unknown.
fn timers(summary: &NohzTestSummary) -> Document {
    let untraced = "Timers of the remaining interrupts unknown: tracing requires root, or \
                    CAP_PERFMON and a readable tracefs.";
    let observed = summary.observed.as_ref().and_then(|observed| observed.timer_hz);
    let has_timers = observed.is_some_and(|hz| hz.get() > 0.0);
    match &summary.remaining {
        Some(remaining) => remaining_timers(remaining),
        None => {
            (has_timers && summary.came_back == Some(false)).then_some(untraced).into()
        }
    }
}

fn stopped(summary: &NohzTestSummary) -> Text {
    let (cpu, wait) = (summary.cpu, number::known(summary.wait_ns));
    let left = summary.forced.then(|| times(summary.left.into()));
    let left = left.map(|times| text!("; the thread left the CPU {}", times));
    match summary.entered {
        Some(true) => text!("The tick of CPU {} stopped after {}{}.", cpu, wait, left),
        Some(false) => text!("The tick of CPU {} did not stop in {}{}.", cpu, wait, left),
        None => text!("Ended before it was clear whether the tick of CPU {} stops.", cpu),
    }
}

fn restarted(summary: &NohzTestSummary) -> Text {
    let rate = summary.observed.as_ref().and_then(|counters| counters.timer_hz);
    let rate = number::known(rate);
    text!(
        "The tick of CPU {} restarted: {} timer interrupts per second.",
        summary.cpu,
        rate
    )
}

pub(crate) fn nohz_stress(summary: &NohzStressSummary) -> Document {
    let (cpu, time, tries) = (summary.cpu, summary.elapsed_ns, summary.tries);
    let result = match (summary.failures, tries) {
        (_, 0) => text!("Ended before the first try on CPU {} was complete.", cpu),
        (0, _) => text!(
            "The tick of CPU {} stopped in {} of {} tries, in {}.",
            cpu,
            tries,
            tries,
            time
        ),
        _ => {
            text!(
                "The tick of CPU {} did not stop at try {}, after {}.",
                cpu,
                tries,
                time
            )
        }
    };
    let waits = summary.wait_ns.map(|wait| {
        Table::of(&[wait])
            .column(Column::words(""), |_| "time until it stopped")
            .numbers(["min", "median", "p99", "max"], |wait| {
                [wait.min, wait.p50, wait.p99, wait.max].map(number::any)
            })
            .table
    });
    let why = (summary.failures > 0)
        .then(|| dependencies(summary.kept_by.as_deref(), &summary.others));
    Document::from(result).add(waits).add(why)
}

/// The interrupts after the tick stopped.
fn remaining(counters: &ProcSummary) -> Document {
    let lines = counters.interrupts.as_deref();
    let count = match lines.map(|_| counters.interrupts_all()) {
        None => "unknown".into(),
        Some(0) => "none".into(),
        Some(count) => Text::from(count),
    };
    Document::default()
        .heading(text!(
            "Remaining interrupts in the next {}: {}",
            counters.span_ns,
            count
        ))
        .add(lines.map(interrupt_table))
}

fn dependencies(traced: Option<&[KeptBy]>, others: &[WaitingThread]) -> Document {
    let traced: Document = match traced {
        None => Document::default(),
        Some([]) => {
            "Tick dependencies unknown: the kernel did not try to stop the tick while it \
                     was traced."
                .into()
        }
        Some(all) => {
            let all = all.iter().map(|one| dependency(&one.dependency, one.times));
            let title = "Tick dependencies that prevented the tick from stopping, traced for 25 ticks";
            Document::section(title, List::bullets(all))
        }
    };
    let others = Text::join(others.iter().map(waiting), ", ");
    let others =
        (!others.is_empty()).then(|| text!("Other runnable threads: {}", others));
    traced.add(others)
}

/// A thread that shares the CPU.
fn waiting(thread: &WaitingThread) -> Text {
    let priority = Some(thread.rt_priority).filter(|priority| *priority > 0);
    let class = priority.map(|priority| format!(", real-time priority {priority}"));
    text!("{} ({}{})", Text::name(&thread.name), thread.tid.to_string(), class)
}

#[cfg(test)]
mod tests {
    use crate::terminal::full_text;
    use insta::assert_snapshot;
    use recording::{
        ExpiredTimer, KeptBy, LineCount, NohzSeries, NohzSpec, NohzTry, ProcCounts,
        RemainingTimers, SoftirqCount, TickReturn, TimerCount, TimerInterrupts,
        TimerKind, TimerReason, WaitingThread,
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
            remaining: None,
        }
    }

    fn test_text(forced: bool, series: &NohzSeries) -> String {
        let document = nohz_test(&NohzTestSummary::of(&spec(forced), series));
        full_text(&document)
    }

    /// Check a tick that stopped.
    #[test]
    fn stopped() {
        assert_snapshot!(test_text(false, &series(&[(true, 512)])), @r#"
    The tick of CPU 1 stopped after 512 µs.

    Remaining interrupts in the next 1 s: 1

                                 count  per second
     LOC Local timer interrupts      1           1

    Timers of the remaining interrupts unknown: tracing requires root, or
    CAP_PERFMON and a readable tracefs.
    "#);
    }

    fn timer(
        kind: TimerKind,
        function: &str,
        reason: Option<TimerReason>,
    ) -> ExpiredTimer {
        ExpiredTimer { kind, function: function.to_owned(), reason }
    }

    /// Check the timers of remaining interrupts: that all of an interrupt are listed, each is
    /// explained once, and the counts add up.
    #[test]
    fn remaining() {
        let (hrtimer, wheel) = (TimerKind::Hrtimer, TimerKind::Timer);
        let thread =
            |name: &str, tid| Some(TimerReason::Thread { tid, name: name.to_owned() });
        let work = Some(TimerReason::Work("vmstat_update".to_owned()));
        let server = timer(hrtimer, "dl_task_timer", Some(TimerReason::FairServer));
        let wakeup = timer(hrtimer, "hrtimer_wakeup", thread("cyclictest", 412));
        let other = timer(hrtimer, "hrtimer_wakeup", thread("pmd/1", 77));
        let tick = timer(hrtimer, "tick_nohz_handler", None);
        let update = timer(wheel, "delayed_work_timer_fn", work);
        let restarted =
            timer(hrtimer, "tick_nohz_handler", Some(TimerReason::FairServer));
        let interrupts = [
            (Vec::new(), 5),
            (vec![restarted], 4),
            (vec![server], 1),
            (vec![wakeup.clone()], 2),
            (vec![tick, update], 1),
            (vec![wakeup, other], 1),
        ];
        let interrupts =
            interrupts.map(|(timers, times)| TimerInterrupts { timers, times });
        let (span_ns, interrupts) = (Nanos::from_secs(5), interrupts.to_vec());
        let mut series = series(&[(true, 512)]);
        series.remaining =
            Some(RemainingTimers { span_ns, count: 15, interrupts, lost: 0 });
        assert_snapshot!(test_text(false, &series));
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
        assert_snapshot!(test_text(false, &series));
    }

    /// Check a tick that did not stop.
    #[test]
    fn did_not_stop() {
        let failed = NohzSeries { observed: None, ..series(&[(false, 5_000_000)]) };
        assert_snapshot!(test_text(true, &failed));
    }

    /// Check a stress that failed.
    #[test]
    fn stress() {
        let series = series(&[(true, 512), (true, 480), (false, 5_000_000)]);
        let summary = NohzStressSummary::of(&spec(false), &series);
        assert_snapshot!(full_text(&nohz_stress(&summary)));
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
