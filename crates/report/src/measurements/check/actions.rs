//! What to do about the lost time on this machine, first what gains most.

use advise::{Action, Step, steps};
use facts::Facts;
use summary::{CheckSummary, Verdict};
use units::{Cpu, Nanos, Ppm};

use crate::document::Content;
use crate::document::list::{Item, List};
use crate::document::text::{Text, text};
use crate::measurements::ticks::words::cpus;

/// Replaces the actions if there are none.
const NONE: &str =
    "No setting of this machine avoids a hundredth of the lost time or more.";
/// The same if other programs took most of the time.
const NO_PARTITION: &str = "Other programs took most of the lost time, and no setting of this \
    machine is known to keep them off: end them.";

/// The actions, first what gains most.
pub(crate) fn actions(facts: &Facts, summary: &CheckSummary) -> Vec<Item> {
    steps(facts, summary).iter().filter_map(item).collect()
}

/// A list of these; or a sentence that there are none.
pub(crate) fn to_do(summary: &CheckSummary, actions: Vec<Item>) -> Content {
    match actions.is_empty() {
        false => List::numbered(actions).into(),
        true if is_busy(&summary.verdict) => Content::Paragraph(NO_PARTITION.into()),
        true => Content::Paragraph(NONE.into()),
    }
}

/// Whether other programs took most of the lost time.
fn is_busy(verdict: &Verdict) -> bool {
    let programs = verdict.split.as_ref().map(|split| split.programs);
    let programs = programs.or(verdict.threads).map_or(Nanos::ZERO, |part| part.ns);
    programs.saturating_mul(2) > verdict.lost.ns
}

fn item(step: &Step) -> Option<Item> {
    let (action, gain) = match step {
        Step::Trace => {
            let text = "Trace the causes: as root, or with CAP_BPF and CAP_PERFMON.";
            return Some(Item::new(text).command("sudo noisefloor check"));
        }
        Step::Avoid { action, gain } => (action, *gain),
    };
    Some(match action {
        Action::Partition(cpu) => {
            let text =
                text!("Keep other programs off CPU {}{}.", *cpu, took("they", gain));
            let run =
                format!("sudo noisefloor run -c {cpu} --partition --require COMMAND");
            Item::new(text).command(run)
        }
        Action::Isolcpus(others) => Item::new(text!(
            "Boot with {}, to keep programs off {}{}.",
            Text::command(format!("isolcpus={others}")),
            cpus(others),
            took("they", gain)
        )),
        Action::UseNohzFull(full) => {
            let cpu = full.iter().next()?;
            let text = text!(
                "Use CPU {}, whose tick stops for one task{}.",
                cpu,
                took("it", gain)
            );
            Item::new(text).command(format!("noisefloor run -c {cpu} COMMAND"))
        }
        Action::SetNohzFull(others) => Item::new(text!(
            "Boot with {}, which stops the tick of {} while one task runs there{}.",
            Text::command(format!("nohz_full={others}")),
            cpus(others),
            took("it", gain)
        )),
        Action::MoveIrqs(cpu) => irqs(*cpu, "", gain),
        Action::TryToMoveIrqs(cpu) => irqs(*cpu, ", if the kernel allows it", gain),
        Action::NoNohzFull
        | Action::OnlyCpu
        | Action::RemoveParameter
        | Action::FixedIrq
        | Action::Host => return None,
    })
}

fn irqs(cpu: Cpu, condition: &str, gain: Option<Ppm>) -> Item {
    let text = text!(
        "Move the interrupts of devices off CPU {}{}{}.",
        cpu,
        condition,
        took("they", gain)
    );
    Item::new(text).command(format!("sudo noisefloor run -c {cpu} --irqs COMMAND"))
}

/// What it gains, as the end of a sentence.
fn took(what: &str, gain: Option<Ppm>) -> Text {
    let words = |gain| text!(": {} took {} of the lost time", what, gain);
    gain.map(words).into()
}
