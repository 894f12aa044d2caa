//! The table of `calls`: durations of single requests to the kernel, and a description of each.

use recording::{Call, CallsSeries};
use summary::CallsSummary;

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

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::example::{self, GUEST};
    use crate::text::text_of;

    /// Check `calls`: one row and one description for each.
    #[test]
    fn calls_of_all_kinds() {
        assert_snapshot!(text_of(&example::calls(GUEST)), @r#"
    Duration of requests to the kernel on CPU 1, from the start of one repeat to the
    start of the next

      request        repeats      min   median      p99      max
      getpid             100    73 ns    73 ns  3.39 µs  3.80 µs
      clock_gettime      100   140 ns   140 ns  3.46 µs  3.87 µs
      futex              100   2.9 µs   2.9 µs  6.22 µs  6.63 µs
      pipe               100   3.4 µs   3.4 µs  6.72 µs  7.13 µs
      switch             100   810 ns   810 ns  4.13 µs  4.54 µs
      page_fault         100   690 ns   690 ns  4.01 µs  4.42 µs
      fork               100    61 µs    61 µs  64.3 µs  64.7 µs
      timer              100  1.95 µs  1.95 µs  5.27 µs  5.68 µs

      getpid         getpid(2): kernel entry and exit only
      clock_gettime  clock_gettime(2) as a system call, without the vDSO
      futex          wakes a thread on the same CPU, and waits for its wake-up:
                     futex(2)
      pipe           one byte to a thread on the same CPU, and one back: pipe(2)
      switch         to another thread on the same CPU and back (sched_yield(2),
                     SCHED_FIFO): two context switches
      page_fault     first access to a new page of anonymous memory
      fork           fork(2), the child's exit, and the parent's wait for it
      timer          sets a timerfd to expire in 100 µs, and sleeps until then

    Each duration includes reading the clock.
    "#);
    }
}
