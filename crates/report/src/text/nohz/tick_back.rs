//! The causes of a restarted tick, as sentences.

use summary::{TickCause, TickCauseKind, TickReturnSummary, TickThread};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::nohz::{dependency, times};

/// A title, and a paragraph for each cause.
pub(crate) fn restart_causes(back: &TickReturnSummary) -> String {
    let span = number::duration(back.span_ns);
    let ticks = number::count(back.ticks);
    let again = if back.stopped { "" } else { ", in which the tick did not stop again" };
    let head = format!(
        "Causes of the restart, traced for another {span} with {ticks} timer interrupts{again}"
    );
    let causes: String = match back.causes.as_slice() {
        [] => paragraph("  ", "no cause accounts for a tenth of them or more"),
        causes => causes.iter().map(|cause| paragraph("  ", &sentence(cause))).collect(),
    };
    format!("\n{}{causes}", paragraph("", &head))
}

/// A cause in a table's cell.
pub(crate) fn short(cause: &TickCause) -> String {
    match cause.kind {
        TickCauseKind::Dependency => cause.name.clone(),
        TickCauseKind::Softirq => format!("softirq {}", cause.name),
        TickCauseKind::Timer => format!("timer {}", cause.name),
        TickCauseKind::Hrtimer => format!("hrtimer {}", cause.name),
    }
}

fn sentence(cause: &TickCause) -> String {
    let text = match cause.kind {
        TickCauseKind::Dependency => return dependency(&cause.name, cause.times),
        TickCauseKind::Softirq => softirq(cause),
        TickCauseKind::Timer => {
            "a kernel timer on this CPU that expires again within a tick".to_owned()
        }
        TickCauseKind::Hrtimer => {
            "a high-resolution timer on this CPU: its interrupts are counted as ticks"
                .to_owned()
        }
    };
    format!("{}, {}: {text}", short(cause), times(cause.times))
}

/// The reason why the softirq is pending, its timers, and the remedy.
fn softirq(cause: &TickCause) -> String {
    let threads: Vec<String> = cause.threads.iter().map(thread).collect();
    let waiting = match threads.as_slice() {
        [] => "the thread that runs it is unknown".to_owned(),
        threads => format!(
            "{} runs it and waits for the CPU; lower the priority of the measured thread, or \
             raise that of the waiting one (chrt -f -p)",
            threads.join(" or ")
        ),
    };
    let timers = match cause.timers.as_slice() {
        [] => String::new(),
        timers => format!(". Timers due: {}", timers.join(", ")),
    };
    format!(
        "raised but not run, and the tick does not stop until it is: {waiting}{timers}"
    )
}

fn thread(thread: &TickThread) -> String {
    match thread.rt_priority {
        0 => thread.name.clone(),
        priority => format!("{} (SCHED_FIFO {priority})", thread.name),
    }
}
