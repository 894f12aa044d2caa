//! The causes of a restarted tick, as sentences.

use summary::{TickCause, TickCauseKind, TickReturnSummary, TickThread};

use crate::document::Document;
use crate::document::list::List;
use crate::document::text::{Text, text};
use crate::measurements::nohz::dependency::{dependency, times};

/// A title, and an item for each cause.
pub(crate) fn restart_causes(back: &TickReturnSummary) -> Document {
    let title = text!(
        "Causes of the restart, traced for another {} with {} timer interrupts{}",
        back.span_ns,
        back.ticks,
        (!back.stopped).then_some(", in which the tick did not stop again")
    );
    let causes = match back.causes.is_empty() {
        true => vec!["no cause accounts for a tenth of them or more".into()],
        false => back.causes.iter().map(sentence).collect(),
    };
    Document::section(title, List::bullets(causes))
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

fn sentence(cause: &TickCause) -> Text {
    let words = match cause.kind {
        TickCauseKind::Dependency => return dependency(&cause.name, cause.times),
        TickCauseKind::Softirq => softirq(cause),
        TickCauseKind::Timer => {
            "a kernel timer on this CPU that expires again within a tick".into()
        }
        TickCauseKind::Hrtimer => {
            "a high-resolution timer on this CPU: its interrupts are counted as ticks"
                .into()
        }
    };
    text!("{}, {}: {}", Text::name(short(cause)), times(cause.times), words)
}

/// The reason why the softirq is pending, its timers, and the remedy.
fn softirq(cause: &TickCause) -> Text {
    let threads = Text::join(cause.threads.iter().map(thread), " or ");
    let waiting = match threads.is_empty() {
        true => "the thread that runs it is unknown".into(),
        false => text!(
            "{} runs it and waits for the CPU; lower the priority of the measured thread, or \
             raise that of the waiting one ({})",
            threads,
            Text::command("chrt -f -p")
        ),
    };
    let timers = Text::join(cause.timers.iter().map(Text::name), ", ");
    let timers = (!timers.is_empty()).then(|| text!(". Timers due: {}", timers));
    text!(
        "raised but not run, and the tick does not stop until it is: {}{}",
        waiting,
        timers
    )
}

fn thread(thread: &TickThread) -> Text {
    let priority = Some(thread.rt_priority).filter(|priority| *priority > 0);
    let class = priority.map(|priority| format!(" (SCHED_FIFO {priority})"));
    text!("{}{}", Text::name(&thread.name), class)
}
