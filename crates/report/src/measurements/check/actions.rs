//! What to do about lost time, first what gains most; and the same about what was found.

use advise::{Action, Finding, Step, When, steps};
use facts::Facts;
use summary::{CheckSummary, Verdict};
use units::Nanos;

use crate::document::Document;
use crate::document::list::{Item, List};
use crate::document::text::{Text, text};
use crate::measurements::ticks::words::cpus;
use crate::number;

/// Replaces the actions if there are none.
const NONE: &str =
    "No setting of this machine avoids a hundredth of the lost time or more.";
/// The same if other programs took most of the time.
const NO_PARTITION: &str = "Other programs took most of the lost time, and no setting of this \
    machine is known to keep them off: end them.";

/// The actions, first what gains most.
pub(crate) fn actions(
    facts: &Facts,
    summary: &CheckSummary,
    found: &[Finding],
) -> Vec<Item> {
    let tool = facts.boot.changed_with.get().map_or("", String::as_str);
    steps(facts, summary, found).iter().map(|step| item(step, tool)).collect()
}

/// A list of these; or a sentence that there are none.
pub(crate) fn to_do(summary: &CheckSummary, actions: &[Item]) -> Document {
    match actions.is_empty() {
        false => List::numbered(actions.iter().cloned()).into(),
        true if is_busy(&summary.verdict) => NO_PARTITION.into(),
        true => NONE.into(),
    }
}

/// Whether other programs took most of the lost time.
fn is_busy(verdict: &Verdict) -> bool {
    let programs = verdict.split.as_ref().map(|split| split.programs);
    let programs = programs.or(verdict.threads).map_or(Nanos::ZERO, |part| part.ns);
    programs.saturating_mul(2) > verdict.lost.ns
}

fn item(step: &Step, tool: &str) -> Item {
    match step {
        Step::Trace => {
            Item::new("Trace the causes: as root, or with CAP_BPF and CAP_PERFMON.")
                .command("sudo noisefloor check")
        }
        Step::Avoid { action, gain } => {
            let gain = gain.map(|gain| text!(" ({} of the lost time)", gain));
            let own = command(action).into_iter();
            let boot = parameter(action)
                .map(|parameter| advise::boot_commands(tool, &parameter));
            let commands = own.chain(boot.into_iter().flatten()).collect();
            Item { commands, ..Item::new(text!("{}{}.", words(action), gain)) }
        }
    }
}

/// The boot parameter that it sets.
fn parameter(action: &Action) -> Option<String> {
    match action {
        Action::SetNohzFull(cpus) => Some(format!("nohz_full={cpus}")),
        Action::Isolcpus(cpus) => Some(format!("isolcpus={cpus}")),
        Action::UseNohzFull(_)
        | Action::Partition(_)
        | Action::MoveIrqs(_)
        | Action::TryToMoveIrqs(_)
        | Action::RemoveParameter
        | Action::NoNohzFull
        | Action::OnlyCpu
        | Action::FixedIrq
        | Action::Host => None,
    }
}

/// An action in a sentence, with its command.
pub(crate) fn sentence(action: &Action) -> Text {
    let cannot = (action.when() == When::Never).then_some("Cannot be set: ");
    let command = command(action).map(|run| text!(": {}", Text::command(run)));
    text!("{}{}{}.", cannot, words(action), command)
}

/// What an action is, or why there is none.
fn words(action: &Action) -> Text {
    match action {
        Action::UseNohzFull(full) => text!(
            "Use CPU {}, whose tick stops for one task",
            number::known(full.iter().next())
        ),
        Action::SetNohzFull(others) => text!(
            "Boot with {}, which stops the tick of {} while one task runs there",
            parameter(action).map(Text::command),
            cpus(others)
        ),
        Action::Isolcpus(others) => text!(
            "Boot with {}, to keep programs off {}",
            parameter(action).map(Text::command),
            cpus(others)
        ),
        Action::Partition(cpu) => text!("Keep other programs off CPU {}", *cpu),
        Action::MoveIrqs(cpu) => {
            text!("Move the interrupts of devices off CPU {}", *cpu)
        }
        Action::TryToMoveIrqs(cpu) => text!(
            "Move the interrupts of devices off CPU {}, if the kernel allows it",
            *cpu
        ),
        Action::RemoveParameter => {
            "Remove it from the kernel command line, or set what is named in its place"
                .into()
        }
        Action::NoNohzFull => {
            "this kernel is built without CONFIG_NO_HZ_FULL, which stops the \
                               tick while one task runs"
                .into()
        }
        Action::OnlyCpu => "there is one CPU only, which must run everything".into(),
        Action::FixedIrq => {
            "the kernel sets the affinity of this IRQ itself (a managed or per-CPU IRQ)"
                .into()
        }
        Action::Host => {
            "steal time depends on the host, not on settings of the guest".into()
        }
    }
}

/// The command that does it until the next boot, if one does.
fn command(action: &Action) -> Option<String> {
    match action {
        Action::UseNohzFull(full) => {
            full.iter().next().map(|cpu| format!("noisefloor run -c {cpu} COMMAND"))
        }
        Action::Partition(cpu) => {
            Some(format!("sudo noisefloor run -c {cpu} --partition --require COMMAND"))
        }
        Action::MoveIrqs(cpu) | Action::TryToMoveIrqs(cpu) => {
            Some(format!("sudo noisefloor run -c {cpu} --irqs COMMAND"))
        }
        Action::SetNohzFull(_)
        | Action::Isolcpus(_)
        | Action::RemoveParameter
        | Action::NoNohzFull
        | Action::OnlyCpu
        | Action::FixedIrq
        | Action::Host => None,
    }
}
