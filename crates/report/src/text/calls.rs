//! The table of `calls`: durations of single requests to the kernel, and a description of each.

use recording::{Call, CallsSeries};
use stats::CallsSummary;

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, aligned};

/// The width of the column of names.
const NAME: usize = 13;

pub(crate) fn calls_text(series: &CallsSeries, summary: &CallsSummary) -> String {
    let title = format!(
        "Duration of requests to the kernel on CPU {}, from the start of one repeat to the \
         start of the next",
        summary.cpu
    );
    let mut text = paragraph("", &title) + "\n";
    text.push_str(&durations(summary));
    text.push('\n');
    for call in series.calls.iter().map(|times| times.call) {
        let name = aligned(call.name(), NAME, Side::Left);
        text.push_str(&paragraph(&format!("  {name}  "), description(call)));
    }
    text + "\nEach duration includes reading the clock.\n"
}

fn durations(summary: &CallsSummary) -> String {
    let mut columns = vec![("request", Side::Left)];
    let heads = ["repeats", "min", "median", "p99", "max"];
    columns.extend(heads.map(|head| (head, Side::Right)));
    let mut table = Table::new(2, &columns);
    for call in &summary.calls {
        let steps = call.step_ns;
        let lengths = [steps.min, steps.p50, steps.p99, steps.max];
        let lengths = lengths.map(|length| number::any(length, number::duration));
        let head = [aligned(&call.name, NAME, Side::Left), number::count(call.repeats)];
        table.row(head.into_iter().chain(lengths));
    }
    table.text()
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
