//! The words for what brought a tick back.

use stats::{TickCause, TickCauseKind, TickReturnSummary, TickThread};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::nohz::{often, reason};

/// What brought the tick back: a heading, and a paragraph for each cause.
pub(crate) fn brought_back(back: &TickReturnSummary) -> String {
    let span = number::duration(back.span_ns);
    let ticks = number::count(back.ticks);
    let again = if back.stopped { "" } else { ", the tick not having stopped again," };
    let head = format!(
        "What brought it back: watched once more for {span}{again}, with {ticks} timer \
         interrupts"
    );
    let causes: String = match back.causes.as_slice() {
        [] => paragraph("  ", "no cause was seen for even a tenth of these"),
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
    let why = match cause.kind {
        TickCauseKind::Dependency => return reason(&cause.name, cause.times),
        TickCauseKind::Softirq => softirq(cause),
        TickCauseKind::Timer => {
            "a kernel timer on that CPU that is due again within a tick".to_owned()
        }
        TickCauseKind::Hrtimer => {
            "a high-resolution timer on that CPU: its interrupts are counted with the ticks"
                .to_owned()
        }
    };
    format!("{}, {}: {why}", short(cause), often(cause.times))
}

/// Why the softirq waits, for which timers, and what would help.
fn softirq(cause: &TickCause) -> String {
    let threads: Vec<String> = cause.threads.iter().map(thread).collect();
    let waits = match threads.as_slice() {
        [] => "the thread that runs it is not known".to_owned(),
        threads => format!(
            "{} runs it and waits for the CPU; give the measured thread a lower priority, or \
             that one a higher (chrt -f -p)",
            threads.join(" or ")
        ),
    };
    let timers = match cause.timers.as_slice() {
        [] => String::new(),
        timers => format!(". Due: {}", timers.join(", ")),
    };
    format!(
        "raised but never run, and the kernel keeps the tick until it is: {waits}{timers}"
    )
}

fn thread(thread: &TickThread) -> String {
    match thread.rt_priority {
        0 => thread.name.clone(),
        priority => format!("{} (SCHED_FIFO {priority})", thread.name),
    }
}
