//! The counters of `/proc` for a CPU during the measurement, as counts and rates.
//!
//! They are the differences of two readings, just before the loop and just after it, so they cannot
//! attribute single gaps.

use recording::ProcCounts;
use serde::Serialize;
use units::{Nanos, PerSecond};

/// The interrupts of one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LineSummary {
    /// The line's label in `/proc/interrupts`.
    pub line: String,
    /// Its description there.
    pub name: String,
    /// The number of interrupts.
    pub count: u64,
    /// That per second.
    pub rate_hz: Option<PerSecond>,
    /// Whether it is this architecture's timer interrupt.
    pub timer: bool,
}

impl LineSummary {
    /// Whether it is a device's IRQ, which has a number.
    pub fn is_device(&self) -> bool {
        self.line.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// The runs of one softirq.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SoftirqSummary {
    /// The name in `/proc/softirqs`.
    pub name: String,
    /// The number of runs.
    pub count: u64,
    /// That per second.
    pub rate_hz: Option<PerSecond>,
}

/// The counters of `/proc` for one CPU during the measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcSummary {
    /// The time between the two readings.
    pub span_ns: Nanos,
    /// The lines with at least one interrupt; null if they could not be read.
    pub interrupts: Option<Vec<LineSummary>>,
    /// The softirqs that ran at least once; null if they could not be read.
    pub softirqs: Option<Vec<SoftirqSummary>>,
    /// Timer interrupts per second; null if interrupts could not be read.
    pub timer_hz: Option<PerSecond>,
    /// Involuntary context switches of the loop's thread.
    pub preempted: u64,
    /// The time that this thread was runnable while another task ran.
    pub waited_ns: Option<Nanos>,
    /// Steal time.
    pub steal_ns: Option<Nanos>,
}

impl ProcSummary {
    /// The interrupts of all lines; zero if they could not be read.
    pub fn interrupts_all(&self) -> u64 {
        self.interrupts.iter().flatten().map(|line| line.count).sum()
    }

    /// Computes the rates.
    pub fn of(proc: &ProcCounts) -> Self {
        let span = proc.span_ns;
        let timer_hz = proc.interrupts.as_ref().and_then(|lines| {
            let timers = lines.iter().filter(|line| line.timer);
            PerSecond::of(timers.map(|line| line.count).sum(), span)
        });
        let interrupts = proc.interrupts.as_ref().map(|lines| {
            let lines = lines.iter().map(|line| LineSummary {
                line: line.line.clone(),
                name: line.name.clone(),
                count: line.count,
                rate_hz: PerSecond::of(line.count, span),
                timer: line.timer,
            });
            lines.collect()
        });
        let softirqs = proc.softirqs.as_ref().map(|softirqs| {
            let softirqs = softirqs.iter().map(|softirq| SoftirqSummary {
                name: softirq.name.clone(),
                count: softirq.count,
                rate_hz: PerSecond::of(softirq.count, span),
            });
            softirqs.collect()
        });
        Self {
            span_ns: span,
            interrupts,
            softirqs,
            timer_hz,
            preempted: proc.preempted,
            waited_ns: proc.waited_ns,
            steal_ns: proc.steal_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use recording::LineCount;

    use super::*;

    fn line(line: &str, count: u64, timer: bool) -> LineCount {
        LineCount { line: line.to_owned(), name: "a name".to_owned(), count, timer }
    }

    /// Check that the timer's rate is that of all timer lines and no other.
    #[test]
    fn timer_lines_add_up() {
        let lines =
            vec![line("11", 400, true), line("12", 100, true), line("36", 7, false)];
        let input = ProcCounts {
            span_ns: Nanos::from_secs(2),
            interrupts: Some(lines),
            ..ProcCounts::default()
        };
        let found = ProcSummary::of(&input);
        assert_eq!(found.timer_hz, Some(PerSecond::new(250.0)));
        let lines = found.interrupts.unwrap();
        assert_eq!(lines[2].rate_hz, Some(PerSecond::new(3.5)));
        assert_eq!(lines[2].count, 7);
    }

    /// Check that the rate is zero without timer interrupts, and null if they could not be read.
    #[test]
    fn unknown_is_not_zero() {
        let mut input =
            ProcCounts { span_ns: Nanos::from_secs(1), ..ProcCounts::default() };
        let unread = ProcSummary::of(&input);
        assert_eq!((unread.timer_hz, unread.softirqs), (None, None));
        input.interrupts = Some(Vec::new());
        assert_eq!(ProcSummary::of(&input).timer_hz, Some(PerSecond::new(0.0)));
    }

    /// Check that there is no rate if no time passed.
    #[test]
    fn no_time_has_no_rate() {
        let input = ProcCounts {
            interrupts: Some(vec![line("LOC", 5, true)]),
            ..ProcCounts::default()
        };
        let found = ProcSummary::of(&input);
        assert_eq!(found.timer_hz, None);
        assert_eq!(found.interrupts.unwrap()[0].rate_hz, None);
    }
}
