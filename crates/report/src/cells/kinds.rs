//! The sections of kinds of measurements: titles, and what the columns mean.

use summary::CellSummary;

use crate::cells::table::{Line, Row, section, table_of};
use crate::cells::{beside, measured, nohz, programs, ticks, traced};
use crate::document::text::Text;
use crate::document::{Document, Importance};
use crate::measurements::latency::causes;

/// A table of one kind of measurement.
struct Kind {
    title: &'static str,
    /// The lines of a cell; none of another kind.
    lines: fn(&Row<'_>) -> Vec<Line>,
    legend: &'static str,
    /// More about the columns, with `--full`.
    more: &'static str,
    note: fn() -> Text,
    shown: Importance,
    /// Whether names are without what all have in common at their end.
    is_short: bool,
}

/// A table that is always shown.
const SHOWN: Kind = Kind {
    title: "",
    lines: |_| Vec::new(),
    legend: "",
    more: "",
    note: Text::default,
    shown: Importance::Screen,
    is_short: false,
};

/// The ticks of busy CPUs, and those of idle ones beside them.
const TICKS: [Kind; 2] = [
    Kind {
        title: "Cost of a tick, in instructions",
        lines: ticks::costs,
        legend: "\"gap\": median gap in the guest's busy loop. \"in kernel\": median number of kernel \
                 instructions of a tick; \"mean\": their mean; \"±\": its deviation by phase.",
        more: "A gap includes one pass of the loop. The kernel's instructions are counted from the \
               timer interrupt to its return. \"±\" is the largest difference between the mean of a \
               single phase of the measurement and \"mean\". \"max\" is the longest gap, or on idle \
               CPUs the most expensive tick.",
        ..SHOWN
    },
    Kind {
        title: "Kinds of tick, in kernel instructions",
        lines: ticks::kinds,
        legend: "First: the cheapest kind with at least 10 % of the ticks; the others: the function \
                 that differs most from it.",
        more: "Ticks of one kind executed the same number of instructions in the same functions. \
               noisefloor lab explain shows the first kind by function, with --kind N the Nth.",
        shown: Importance::Full,
        ..SHOWN
    },
];

const REST: [Kind; 17] = [
    Kind {
        title: "Instructions of idle CPUs",
        lines: ticks::idle_costs,
        legend: "\"ticks/s\": timer interrupts in /proc/interrupts; \"counted/s\": the same, counted by \
                 the lab. \"one tick\": median number of kernel instructions of a tick.",
        ..SHOWN
    },
    Kind {
        title: "Idle stretches, and the idle states that they allow",
        lines: ticks::stretches,
        legend: "Guest time from a halt to the CPU's next instruction; then shares of idle time in \
                 stretches of at least the target residency of an idle state.",
        more: "A shorter stay in an idle state costs more energy than it saves.",
        note: ticks::idle_states,
        shown: Importance::Full,
        ..SHOWN
    },
    Kind {
        title: "Cost of requests to the kernel, in instructions",
        lines: measured::call_costs,
        legend: "Median instructions of program and kernel for a request. \"*\": fewer than 90 % of the \
                 repeats executed exactly that number.",
        more: "A request lasts from the start of one repeat to the start of the next.",
        is_short: true,
        ..SHOWN
    },
    Kind {
        title: "OS noise of busy CPUs",
        lines: measured::noise,
        legend: "\"noise\": share of time in which the busy loop did not run; \"median\", \"longest\": of \
                 the gaps.",
        ..SHOWN
    },
    Kind {
        title: "Timer interrupts on idle CPUs",
        lines: measured::idle_ticks,
        legend: "\"ticks/s\": timer interrupts in /proc/interrupts; \"busy\": time not idle; \"host\": CPU \
                 time of the guest's process, as a share of one CPU of the host.",
        more: "\"host\" is the time while the agent prepared and measured.",
        ..SHOWN
    },
    Kind {
        title: "Duration of requests to the kernel",
        lines: measured::call_times,
        legend: "Median time from the start of one repeat to the start of the next.",
        is_short: true,
        ..SHOWN
    },
    Kind {
        title: "Wake-up latency of sleeping threads",
        lines: measured::latency,
        legend: "Time from a timer's expiry until the sleeping thread has read the clock after it.",
        more: "An ordinary thread's timer may also be late by its slack of 50 µs; a SCHED_FIFO thread \
               has none.",
        ..SHOWN
    },
    Kind {
        title: "Tick of a CPU with one running thread, in instructions",
        lines: nohz::costs,
        legend: "\"stops after\": instructions of all CPUs until the kernel reported the tick as \
                 stopped, median of all tries; \"in kernel\": kernel instructions of that CPU.",
        more: "\"±\" is the largest difference of a single try from the median. Timer interrupts \
               while the thread continued: \"ticks/s\" in /proc/interrupts, \"counted/s\" counted by \
               the lab. \"reason\" is the tick dependency that prevented the stop. \"back\": the tick \
               stopped and came back, with more than ten timer interrupts per second; \"reason\" is \
               then the cause in a second, traced observation, and with fewer interrupts the most \
               frequent timer.",
        ..SHOWN
    },
    Kind {
        title: "Tick of a CPU with one running thread, in time",
        lines: nohz::tests,
        legend: "\"ticks/s\": timer interrupts while the thread continued. \"reason\": the tick \
                 dependency that prevented the stop.",
        more: "\"back\": the tick stopped and came back, with more than ten timer interrupts per \
               second; \"reason\" is then the cause in a second, traced observation, and with fewer \
               interrupts the most frequent timer.",
        ..SHOWN
    },
    Kind {
        title: "Timers of the interrupts after the tick has stopped",
        lines: nohz::timers,
        legend: "All timer interrupts of a second, traced observation, by the timers that expired in \
                 them.",
        ..SHOWN
    },
    Kind {
        title: "Time slices, in guest time",
        lines: measured::slices_costs,
        legend: "\"procs\": number of spinners and sleepers. A slice is what a spinner executes between \
                 two involuntary switches: 1 ms is a million instructions.",
        more: "\"±\" is the largest difference of the mean of a single phase of the measurement. \
               \"passes/s\" are those of all spinners' loops. \"user\" and \"kernel\" are instructions of \
               all CPUs, counted by the lab.",
        ..SHOWN
    },
    Kind {
        title: "Time slices",
        lines: measured::slices,
        legend: "\"procs\": number of spinners and sleepers. A slice is the CPU time of a spinner \
                 between two involuntary switches.",
        ..SHOWN
    },
    Kind {
        title: "Time slices beside a simulation",
        lines: beside::simulations,
        legend: "\"slice\": the mean, in the guest and in a simulation with the rules of its kernel's version; \
                 \"off\": their difference. \"wakes/s\": wake-ups of each sleeper.",
        more: "The means are those of a cell's variations, and of as many simulations, in which tasks start \
               otherwise; \"±\": the difference of as many others is within it in 19 of 20 cases. The \
               kernel's own work takes the time that was measured in Debian's kernels.",
        ..SHOWN
    },
    Kind {
        title: "Cost of sleepers for the spinners",
        lines: traced::sleepers,
        legend: "Compared with the same cell without sleepers. \"work lost\": share of the spinners' \
                 passes; \"each wake-up\": in instructions, both switches included.",
        more: "\"work lost\" is the share of the passes of the spinners' loops that were not made, \
               \"each wake-up\" the same in instructions for each wake-up of a sleeper.",
        ..SHOWN
    },
    Kind {
        title: "Cost of tracing, in instructions",
        lines: traced::added,
        legend: "Cost of one event without and with tracing, and the difference: of ticks the \
                 cheapest frequent kind, of calls the median.",
        more: "A repeat of \"switch\" is two switches.",
        ..SHOWN
    },
    Kind {
        title: "Causes of gaps",
        lines: traced::causes,
        legend: "\"time\" is guest time: in exact cells an instruction takes 1 ns. \"noise\": share of \
                 the time of all gaps.",
        more: "A gap may have several causes. On an idle CPU a gap is a period of work.",
        shown: Importance::Full,
        ..SHOWN
    },
    Kind {
        title: "Causes of late wake-ups",
        lines: measured::late_causes,
        legend: causes::LEGEND,
        more: "In exact cells an instruction takes 1 ns; the time includes that of tracing.",
        shown: Importance::Full,
        ..SHOWN
    },
];

/// The tables of all rows.
pub(crate) fn sections(rows: &[Row<'_>]) -> Document {
    let is_busy = |row: &Row<'_>| matches!(row.summary, CellSummary::TickCost(_));
    let ticks = if rows.iter().any(is_busy) { &TICKS[..] } else { &[] };
    let add = |sections: Document, kind: &Kind| {
        let table = table_of(rows, kind.is_short, kind.lines).legend(kind.legend);
        let more = Text::join([kind.more.into(), (kind.note)()], " ");
        let section = section(kind.title, table, more);
        match kind.shown {
            Importance::Screen => sections.add(section),
            Importance::Full => sections.add_full(section),
        }
    };
    let sections = ticks.iter().chain(&REST).fold(Document::default(), add);
    sections.add(programs::programs(rows))
}
