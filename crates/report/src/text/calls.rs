//! The table of `calls`: how long single requests to the kernel took, and below it what
//! one repeat of each consists of.

use recording::{Call, CallsSeries, CallsSpec, Doubt};
use stats::CallsSummary;

use crate::number;
use crate::text::layout::doubts::doubts;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, aligned};

/// The width of the column of names.
const NAME: usize = 13;

/// All of `calls`.
pub(crate) fn calls_text(
    spec: &CallsSpec,
    series: &CallsSeries,
    reasons: &[Doubt],
) -> String {
    let title = format!(
        "Requests to the kernel: how long one repeat of each took on CPU {}, from its \
         start to the next one's",
        spec.cpu
    );
    let mut text = paragraph("", &title) + "\n";
    text.push_str(&times(&CallsSummary::of(spec, series)));
    text.push('\n');
    for seen in &series.calls {
        let name = aligned(seen.call.name(), NAME, Side::Left);
        text.push_str(&paragraph(&format!("  {name}  "), words(seen.call)));
    }
    text.push('\n');
    text.push_str(&paragraph(
        "",
        "\"typical\": half of the repeats are not longer; \"p99\": 99 of 100. Reading the \
         clock is part of each.",
    ));
    text.push_str(&doubts(reasons));
    text
}

fn times(summary: &CallsSummary) -> String {
    let mut columns = vec![("request", Side::Left)];
    let numbers = ["repeats", "shortest", "typical", "p99", "longest"];
    columns.extend(numbers.map(|word| (word, Side::Right)));
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

/// What one repeat consists of.
fn words(call: Call) -> &'static str {
    match call {
        Call::Getpid => "into the kernel and out again, and nothing else",
        Call::ClockGettime => "the time, asked of the kernel itself, past the vDSO",
        Call::Futex => "a waiting thread of the same CPU is woken, and wakes in turn",
        Call::Pipe => "a byte to a thread of the same CPU, and one back",
        Call::Switch => {
            "to another thread of the same CPU and back (sched_yield, SCHED_FIFO): two \
             switches"
        }
        Call::PageFault => "a fresh page of anonymous memory is touched",
        Call::Fork => "a child is made, exits, and is waited for",
        Call::Timer => "a timer is set to expire soon, and slept for",
    }
}
