//! Advice after a proof: the list, changed by what was measured.

use units::Ppm;

use crate::advice::{Advice, AdviceItem};
use crate::proof::method::Method;
use crate::proof::{Effect, ProofOutcome, Proven};
use crate::rule::{Importance, Kind};

impl AdviceItem {
    /// What was measured of it.
    pub fn proven(&self) -> Option<&Proven> {
        match &self.proof {
            Some(ProofOutcome::Proven(proven)) => Some(proven),
            Some(ProofOutcome::NotProven(_)) | None => None,
        }
    }

    /// Whether it is no longer advised: it makes the metric worse, or it does not change here what it is to avoid by more
    /// than `smallest`. A mistake is one even if no number shows it; and a guest has no other work, so that it does not
    /// show the delays that a change is to avoid, but only what the change itself costs.
    fn is_refuted(&self, smallest: Ppm) -> bool {
        let acts_on_it = self.rule.acts_on.is_some()
            && self.rule.kind == Kind::Advice
            && self.rule.importance != Importance::Important
            && self.proven().is_some_and(|proven| proven.kernel.is_none());
        let is_cost_only = self.proven().is_some_and(|proven| {
            proven.kernel.is_some() && proven.method == Method::Latency
        });
        match self.proven().map(|proven| proven.conclusion) {
            Some(Effect::Worse) => !is_cost_only,
            Some(Effect::NoLargerDifference(Some(largest))) => {
                acts_on_it && largest <= smallest
            }
            Some(Effect::Better | Effect::NoLargerDifference(None) | Effect::Unclear)
            | None => false,
        }
    }

    /// The size of a gain that was shown, in ppm; one from nothing is the largest.
    fn gain(&self) -> Option<f64> {
        let proven = self.proven().filter(|one| one.conclusion == Effect::Better)?;
        Some(proven.measured.difference_ppm.map_or(f64::INFINITY, |ppm| ppm.get().abs()))
    }
}

impl Advice {
    /// The advice after a proof, with the outcome of each item in its order: first what was shown to help, the largest gain
    /// first; then what was not measured or not decided, in the order of before. What does not help is no longer
    /// advised: a difference of at most `smallest` is none.
    #[must_use]
    pub fn with_proofs(self, outcomes: Vec<ProofOutcome>, smallest: Ppm) -> Self {
        let mut proofs = outcomes.into_iter();
        let items = self.items.into_iter();
        let items = items.map(|item| AdviceItem { proof: proofs.next(), ..item });
        let (not_advised, mut items): (Vec<_>, Vec<_>) =
            items.partition(|item| item.is_refuted(smallest));
        let gain = |item: &AdviceItem| item.gain().unwrap_or(-1.0);
        // Stable: the others keep their order.
        items.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
        Self { items, not_advised, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Barrier;
    use crate::proof::tests::proven;
    use crate::rule::{Change, Goal};

    const SMALLEST: Ppm = Ppm::new(1e5);

    /// Advice with an item for each name, which acts on the timer.
    fn advice(names: &[&'static str]) -> Advice {
        let item = |name: &&'static str| {
            let rule = crate::tables().iter().flat_map(|table| &table.rules).next();
            let mut text = rule.unwrap().text("subject");
            (text.name, text.kind, text.importance) =
                (name, Kind::Advice, Importance::Useful);
            text.acts_on = Some("timer");
            let change = Change::Action { text: "do it".to_owned() };
            AdviceItem {
                rule: text,
                goal: Goal::Latency,
                change,
                from: None,
                also: Vec::new(),
                taken: None,
                largest: None,
                proof: None,
            }
        };
        Advice {
            goals: Goal::Latency.into(),
            rules: names.len(),
            items: names.iter().map(item).collect(),
            not_advised: Vec::new(),
            contradictions: Vec::new(),
            undecided: Vec::new(),
            measured: true,
        }
    }

    fn names(items: &[AdviceItem]) -> Vec<&str> {
        items.iter().map(|item| item.rule.name).collect()
    }

    /// Check that what helps most is first, that what was not decided keeps its order, and that what makes it worse or
    /// makes no difference of interest is not advised.
    #[test]
    fn order() {
        let advice = advice(&["late", "wide", "small", "large", "worse", "none"]);
        let outcomes = vec![
            ProofOutcome::NotProven(Barrier::Budget),
            proven(-50.0, [-300.0, 200.0]),
            proven(-100.0, [-150.0, -50.0]),
            proven(-400.0, [-500.0, -300.0]),
            proven(31.0, [10.0, 52.0]),
            proven(-3.0, [-40.0, 34.0]),
        ];
        let proven = advice.with_proofs(outcomes, SMALLEST);
        assert_eq!(names(&proven.items), ["large", "small", "late", "wide"]);
        assert_eq!(names(&proven.not_advised), ["worse", "none"]);
        let conclusion =
            |item: &AdviceItem| item.proven().map(|proven| proven.conclusion);
        let wide = Effect::NoLargerDifference(Some(Ppm::new(3e5)));
        assert_eq!(conclusion(&proven.items[3]), Some(wide));
        assert_eq!(conclusion(&proven.not_advised[0]), Some(Effect::Worse));
    }

    /// Check that a mistake, an important rule, and one that acts on no noise stay without a difference, but not if they
    /// make it worse.
    #[test]
    fn what_no_number_shows() {
        let stays = |change: fn(&mut AdviceItem), outcome: ProofOutcome| {
            let mut advice = advice(&["one"]);
            change(&mut advice.items[0]);
            !advice.with_proofs(vec![outcome], SMALLEST).items.is_empty()
        };
        let changes: [fn(&mut AdviceItem); 3] = [
            |item| item.rule.kind = Kind::Mistake,
            |item| item.rule.importance = Importance::Important,
            |item| item.rule.acts_on = None,
        ];
        for change in changes {
            assert!(stays(change, proven(1.0, [-9.0, 9.0])));
            assert!(!stays(change, proven(9.0, [5.0, 12.0])));
        }
        assert!(!stays(|_| (), proven(1.0, [-9.0, 9.0])));
    }

    /// Check that longer delays in a guest, which has no other work, refute nothing, and that more ticks do.
    #[test]
    fn worse_in_guests() {
        let stays = |method| {
            let ProofOutcome::Proven(proven) = proven(9.0, [5.0, 12.0]) else { panic!() };
            let kernel = Some("6.12".to_owned());
            let outcome = ProofOutcome::Proven(Proven { method, kernel, ..proven });
            !advice(&["one"]).with_proofs(vec![outcome], SMALLEST).items.is_empty()
        };
        assert!(stays(Method::Latency) && !stays(Method::Ticks) && !stays(Method::Noise));
    }
}
