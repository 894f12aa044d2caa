//! The report of `calls`: durations of single requests to the kernel, and a description of each.

use recording::{Call, CallsSeries};
use summary::CallsSummary;

use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::number;

pub(crate) fn calls(series: &CallsSeries, summary: &CallsSummary) -> Document {
    let mut document = Document::default()
.add(text!(
        "Duration of requests to the kernel on CPU {}, from the start of one repeat to the start \
         of the next",
        summary.cpu
    ))
.add(durations(summary));
    let calls = series.calls.iter().map(|times| times.call);
    document = document
        .add_full(Table::terms(calls.map(|call| [call.name(), description(call)])));
    document
}

fn durations(summary: &CallsSummary) -> Table {
    Table::of(&summary.calls)
        .column(Column::words("request"), |call| Text::name(&call.name))
        .number("repeats", |call| call.repeats)
        .numbers(["min", "median", "p99", "max"], |call| {
            let step = call.step_ns;
            [step.min, step.p50, step.p99, step.max].map(number::any)
        })
        .table
        .legend("Each duration includes reading the clock.")
}

/// One repeat of a request.
fn description(call: Call) -> &'static str {
    match call {
        Call::Getpid => "getpid(2): kernel entry and exit only",
        Call::ClockGettime => "clock_gettime(2) as a system call, without the vDSO",
        Call::Futex => {
            "wakes a thread on the same CPU, and waits for its wake-up: futex(2)"
        }
        Call::Pipe => "one byte to a thread on the same CPU, and one back: pipe(2)",
        Call::Switch => {
            "to another thread on the same CPU and back (sched_yield(2), SCHED_FIFO): two \
             context switches"
        }
        Call::PageFault => "first access to a new page of anonymous memory",
        Call::Fork => "fork(2), the child's exit, and the parent's wait for it",
        Call::Timer => "sets a timerfd to expire in 100 µs, and sleeps until then",
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::example::{self, GUEST};
    use crate::measurements::text_of;

    /// Check `calls`: one row and one description for each.
    #[test]
    fn calls_of_all_kinds() {
        assert_snapshot!(text_of(&example::calls(GUEST)));
    }
}
