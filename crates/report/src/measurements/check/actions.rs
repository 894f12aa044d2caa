//! What to do about lost time, first what gains most.

use advise::{Advice, Goal, Losses, Machine, Step, steps};
use facts::Facts;
use summary::{CheckSummary, Verdict};
use units::Nanos;

use crate::advice::{change, trial};
use crate::document::Document;
use crate::document::list::{Item, List};
use crate::document::text::text;

/// Replaces the actions if there are none.
const NONE: &str =
    "No setting of this machine avoids a hundredth of the lost time or more.";
/// The same if other programs took most of the time.
const NO_PARTITION: &str = "Other programs took most of the lost time, and no setting of this \
    machine is known to keep them off: end them.";

/// The advice for short delays on the machine of a check.
pub(crate) fn advice(facts: &Facts, summary: &CheckSummary) -> Advice {
    let losses = Losses::of_check(summary);
    Advice::of(&Machine::new(facts, Some(losses), None), &Goal::Latency.into())
}

/// The actions, first what gains most.
pub(crate) fn actions(
    facts: &Facts,
    summary: &CheckSummary,
    advice: &Advice,
) -> Vec<Item> {
    steps(facts, summary, advice).iter().map(|step| item(step, facts)).collect()
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

fn item(step: &Step, facts: &Facts) -> Item {
    match step {
        Step::Trace => {
            Item::new("Trace the causes: as root, or with CAP_BPF and CAP_PERFMON.")
                .command("sudo noisefloor check")
        }
        Step::Change(item) => {
            let share = item.taken.and_then(|taken| taken.lost_ppm);
            let share = share.zip(item.rule.acts_on).map(|(share, source)| {
                text!(" ({}: {} of the lost time)", source, share)
            });
            Item::new(text!("{}{}.", change(item), share))
                .all_commands(trial(item, facts))
        }
    }
}
