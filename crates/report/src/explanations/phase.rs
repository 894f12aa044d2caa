//! All instructions of a measured phase, by entry into the kernel and by function: tables with sums.

use summary::{EntryKind, PROGRAM, PhaseExplanation, WholePhase};

use crate::document::Document;
use crate::document::table::{Column, Table, cells};
use crate::document::text::{Text, text};
use crate::explanations::titles::on_kernel;
use crate::explanations::{NAMES, functions};
use crate::kernel_label::full_name;
use crate::number;

/// The phase in words: `the whole phase of getpid on CPU 1`.
pub(crate) fn subject(whole: &WholePhase<'_>) -> String {
    let of = whole.call.map_or_else(String::new, |call| format!(" of {call}"));
    let plural = if whole.cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("the whole phase{of} on {plural} {}", whole.cpus)
}

/// The cell and its kernel's full name.
fn cell(whole: &WholePhase<'_>) -> String {
    on_kernel(&whole.cell.name, &full_name(whole.cell))
}

/// Phase, cell and kernel.
pub(crate) fn title(whole: &WholePhase<'_>) -> String {
    format!("{}, {}", subject(whole), cell(whole))
}

/// The instructions of a whole phase by entry and by function.
pub fn phase_document(phase: &WholePhase<'_>) -> Document {
    let explanation = phase.explanation();
    let mut document = Document::default()
        .add(Text::name(cell(phase)))
        .add(headline(phase, &explanation));
    let legend = "In instructions. Interrupts are listed apart from the code that they \
                  interrupted.";
    document = document.add(entries(&explanation).legend(legend));
    let totals = match phase.has_callers() {
        true => "\"total\": including all functions that it called.",
        false => "Callers are not recorded in a program's cell.",
    };
    let legend = format!("\"self\": in the function itself; these add up. {totals}");
    document = document.add_full(functions(&explanation.explanation).legend(legend));
    document
}

fn headline(phase: &WholePhase<'_>, explanation: &PhaseExplanation) -> Text {
    let rate = explanation.instructions_hz.map(number::rate);
    let mut words = text!(
        "{}: {} instructions{}; programs executed {}, the kernel {}.",
        subject(phase).replacen("the", "The", 1),
        explanation.explanation.total_instructions,
        rate.map(|rate| text!(", {}", rate)),
        explanation.user_instructions,
        explanation.kernel_instructions
    );
    if let Some(most) = explanation.entries.first() {
        let share = number::any(explanation.share(most.instructions));
        let (kind, name) = (kind(most.kind), entry_name(&most.name));
        let named = [kind.into(), Text::name(name)].into_iter();
        let named = Text::join(named.filter(|part| !part.is_empty()), " ");
        words.push(text!(" Largest entry, {}: {}.", share, named));
    }
    words
}

fn entries(explanation: &PhaseExplanation) -> Table {
    let numbers = ["instructions", "share", "per second"].map(Column::number);
    let names = [Column::words("entry"), Column::name("", NAMES)];
    let mut table = Table::new(numbers.into_iter().chain(names));
    let mut row = |all, hz, kind: &str, name: &str| {
        let share = number::any(explanation.share(all));
        let rate = number::any(hz);
        table.row(cells![all, share, rate, kind, Text::name(name)]);
    };
    for entry in &explanation.entries {
        let (all, hz) = (entry.instructions, entry.instructions_hz);
        row(all, hz, kind(entry.kind), entry_name(&entry.name));
    }
    let all = explanation.explanation.total_instructions;
    row(all, explanation.instructions_hz, "all", "");
    table
}

/// What executed the instructions, in words.
pub(crate) fn kind(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Program => "programs",
        EntryKind::SystemCall => "system call",
        EntryKind::Interrupt => "interrupt",
        EntryKind::Exception => "exception",
        EntryKind::Thread => "kernel thread",
        EntryKind::NewTask => "new task",
        EntryKind::Tick => "tick",
        EntryKind::Softirq => "softirq",
        EntryKind::Idle => "idle",
    }
}

/// The name of an entry without common prefixes; programs, the tick and idle have no name.
pub(crate) fn entry_name(name: &str) -> &str {
    let prefixes = ["asm_sysvec_", "asm_exc_", "vector_"];
    let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
    if [PROGRAM, "tick", "do_idle"].contains(&name) { "" } else { rest.unwrap_or(name) }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Ending;
    use units::Cpu;

    use super::*;
    use crate::chart;
    use crate::chart::svg::checked::check_xml;
    use crate::charts::flame;
    use crate::example::cell::{OLD, busy_idle, cell, lost};
    use crate::terminal::full_text;

    /// Check the tables and their sums.
    #[test]
    fn idle() {
        let cell = busy_idle();
        assert_snapshot!(full_text(&phase_document(
            &WholePhase::of(&cell, None, None).unwrap()
        )));
    }

    /// Check that there is no phase for an absent CPU, for a call that the cell does not make,
    /// and for a lost cell; and that the picture is well-formed.
    #[test]
    fn absent() {
        let (busy, lost) = (busy_idle(), cell("idle", OLD, lost()));
        assert!(WholePhase::of(&busy, None, Some(Cpu::new(1))).is_none());
        assert!(WholePhase::of(&busy, Some("fork"), None).is_none());
        assert!(WholePhase::of(&lost, None, None).is_none());
        let mut part = busy.clone();
        let Ending::Done(answer) = &mut part.ending else { panic!() };
        answer.profile.as_mut().unwrap().phases.clear();
        assert!(WholePhase::of(&part, None, None).is_none());
        check_xml(&chart::file(&flame::of_cell(&busy).unwrap()));
    }
}
