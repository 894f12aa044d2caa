//! All instructions of a measured phase, by entry into the kernel and by function: tables, with
//! sums, and JSON.

use std::ops::RangeInclusive;

use recording::FORMAT;
use serde::Serialize;
use summary::{EntryKind, PROGRAM, PhaseExplanation, WholePhase};

use crate::number;
use crate::text::cells::kernel_label::full_name;
use crate::text::explain::titles::on_kernel;
use crate::text::explain::{count, functions};
use crate::text::layout::fit::fitted;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};

/// The minimum and maximum width of a name.
const NAMES: RangeInclusive<usize> = 12..=60;

/// The phase in words: `the whole phase of getpid on CPU 1`.
pub(crate) fn subject(whole: &WholePhase<'_>) -> String {
    let of = whole.call.map_or_else(String::new, |call| format!(" of {call}"));
    let plural = if whole.cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("the whole phase{of} on {plural} {}", whole.cpus)
}

fn title(whole: &WholePhase<'_>) -> String {
    format!("{}, {}", subject(whole), on_kernel(&whole.cell.name, &full_name(whole.cell)))
}

/// The instructions of a whole phase by entry and by function, as tables.
pub fn phase_text(phase: &WholePhase<'_>) -> String {
    let explanation = phase.explanation();
    let entries = fitted(NAMES, |name| entries(&explanation, name));
    let functions = fitted(NAMES, |name| functions(&explanation.explanation, name));
    let totals = match phase.has_callers() {
        true => "\"total\": including all functions that it called.",
        false => "Callers are not recorded in a program's cell.",
    };
    let words = format!(
        "In instructions. Interrupts are listed apart from the code that they interrupted. \
         \"self\": in the function itself; these add up. {totals}"
    );
    let cell = on_kernel(&phase.cell.name, &full_name(phase.cell));
    let headline = headline(phase, &explanation);
    let [cell, headline, words] =
        [cell, headline, words].map(|words| paragraph("", &words));
    format!("{cell}\n{headline}\n{entries}\n{functions}\n{words}")
}

fn headline(phase: &WholePhase<'_>, explanation: &PhaseExplanation) -> String {
    let subject = subject(phase).replacen("the", "The", 1);
    let all = count(explanation.explanation.total_instructions);
    let rate = explanation.instructions_hz.map(number::rate);
    let rate = rate.map_or_else(String::new, |rate| format!(", {rate}"));
    let [user, kernel] =
        [explanation.user_instructions, explanation.kernel_instructions].map(count);
    let mut words = format!(
        "{subject}: {all} instructions{rate}; programs executed {user}, the kernel {kernel}."
    );
    if let Some(most) = explanation.entries.first() {
        let share = number::any(explanation.share(most.instructions), number::share);
        let named = format!("{} {}", kind(most.kind), entry_name(&most.name));
        words += &format!(" Largest entry, {share}: {}.", named.trim_end());
    }
    words
}

fn entries(explanation: &PhaseExplanation, name: usize) -> String {
    let columns = [("instructions", Side::Right), ("share", Side::Right)];
    let rest = [("per second", Side::Right), ("entry", Side::Left), ("", Side::Left)];
    let mut table = Table::new(2, &[&columns[..], &rest[..]].concat());
    let mut row = |all, hz, kind: &str, name| {
        let share = number::any(explanation.share(all), number::share);
        let rate = number::any(hz, number::bare_rate);
        table.row([count(all), share, rate, kind.to_owned(), name]);
    };
    let names = explanation.entries.iter().map(|entry| entry_name(&entry.name));
    for (entry, name) in explanation.entries.iter().zip(cut_labels(names, name)) {
        let (all, hz) = (entry.instructions, entry.instructions_hz);
        row(all, hz, kind(entry.kind), name);
    }
    let all = explanation.explanation.total_instructions;
    row(all, explanation.instructions_hz, "all", String::new());
    table.text()
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
    let prefixes = ["asm_sysvec_", "asm_exc_"];
    let rest = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix));
    if [PROGRAM, "tick", "do_idle"].contains(&name) { "" } else { rest.unwrap_or(name) }
}

#[derive(Serialize)]
struct PhaseJson {
    format: u32,
    kind: &'static str,
    title: String,
    cpus: String,
    summary: PhaseExplanation,
}

/// The instructions of a whole phase, as a JSON object.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn phase_json(phase: &WholePhase<'_>) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&PhaseJson {
        format: FORMAT,
        kind: "explain_phase",
        title: title(phase),
        cpus: phase.cpus.to_string(),
        summary: phase.explanation(),
    })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Called, Cell, Ending, PhaseCalls};
    use serde_json::{Value, json};
    use units::{Cpu, Instructions};

    use super::*;
    use crate::example::cell::{OLD, cell, idle_cost, lost, with_profile};
    use crate::picture::phase::phase_svg;
    use crate::picture::xml::checked::check_xml;

    /// An idle CPU with one busy kernel thread.
    fn busy_idle() -> Cell {
        let mut cell = with_profile(cell("idle", OLD, idle_cost(2, &[(2_571, 1)])));
        let Ending::Done(answer) = &mut cell.ending else { panic!() };
        let profile = answer.profile.as_mut().unwrap();
        let names =
            ["kdamond_fn", "usleep", "do_idle", "asm_sysvec_apic_timer_interrupt"];
        profile.names = names.map(str::to_owned).to_vec();
        let called =
            |name, caller, own| Called { name, caller, own: Instructions::new(own) };
        let calls = vec![
            called(0, None, 40_000),
            called(1, Some(0), 2_000),
            called(2, None, 600),
            called(3, None, 2_571),
        ];
        profile.phases = vec![PhaseCalls { phase: 0, cpu: Cpu::new(0), calls }];
        let phases = &mut answer.counts.as_mut().unwrap().phases;
        phases[0].cpus[0].kernel = Instructions::new(45_171);
        phases[1].cpus[0].kernel = Instructions::ZERO;
        cell
    }

    /// Check the tables and their sums.
    #[test]
    fn idle() {
        let cell = busy_idle();
        assert_snapshot!(phase_text(&WholePhase::of(&cell, None, None).unwrap()), @r#"
    idle on 6.1.0-56-cloud-amd64 (6.1.192-2)

    The whole phase on CPU 0: 47,171 instructions, 23,586/s; programs executed 2000,
    the kernel 45,171. Largest entry, 89.0 %: kernel thread kdamond_fn.

      instructions   share  per second  entry
            42,000  89.0 %      21,000  kernel thread  kdamond_fn
              2571  5.45 %        1286  interrupt      apic_timer_interrupt
              2000  4.24 %        1000  programs
               600  1.27 %         300  idle
            47,171   100 %      23,586  all

        self   share   total  function
      40,000  84.8 %  42,000  kdamond_fn
        2571  5.45 %    2571  asm_sysvec_apic_timer_interrupt
        2000  4.24 %    2000  [program]
        2000  4.24 %    2000  usleep
         600  1.27 %     600  do_idle
      47,171   100 %  47,171  all

    In instructions. Interrupts are listed apart from the code that they
    interrupted. "self": in the function itself; these add up. "total": including
    all functions that it called.
    "#);
    }

    /// Check the keys: this is the JSON contract.
    #[test]
    fn contract() {
        let cell = busy_idle();
        let object = phase_json(&WholePhase::of(&cell, None, None).unwrap()).unwrap();
        let object: Value = serde_json::from_str(&object).unwrap();
        assert_eq!(object["kind"], "explain_phase");
        assert_eq!(object["cpus"], "0");
        assert_eq!(object["title"], format!("the whole phase on CPU 0, idle on {OLD}"));
        let first = json!({
            "kind": "thread", "name": "kdamond_fn", "instructions": 42_000,
            "instructions_hz": 21_000.0,
        });
        assert_eq!(object["summary"]["entries"][0], first);
        assert_eq!(object["summary"]["functions"][0]["name"], "kdamond_fn");
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
        check_xml(&phase_svg(&WholePhase::of(&busy, None, None).unwrap()));
    }
}
