//! Several goals of one machine, and advice for one that contradicts another.

use std::fmt;

use serde::Serialize;

use crate::advice::{AdviceItem, Holds};
use crate::machine::Machine;
use crate::rule::condition::Answer;
use crate::rule::{Change, Goal, Rule};
use crate::tables::tables;

/// The goals of a machine, at least one; the first is the most important.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Goals(Vec<Goal>);

/// A change for a goal that would be wrong for another one, which is named before it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contradiction {
    /// The item, which is not advised.
    pub item: AdviceItem,
    /// The other goal.
    pub goal: Goal,
    /// The name of a rule for it.
    pub rule: &'static str,
}

impl Goals {
    /// These goals, each once; `default` if there are none.
    pub fn new(goals: &[Goal], default: Goal) -> Self {
        let mut all: Vec<Goal> = Vec::new();
        for goal in goals {
            if !all.contains(goal) {
                all.push(*goal);
            }
        }
        if all.is_empty() {
            all.push(default);
        }
        Self(all)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Goal> {
        self.0.iter().copied()
    }

    /// The first of them that a rule is for.
    pub(crate) fn of(&self, rule: &Rule) -> Option<Goal> {
        self.iter().find(|goal| rule.is_for(*goal))
    }

    /// Those that are named before a goal.
    fn before(&self, goal: Goal) -> &[Goal] {
        let place = self.0.iter().position(|one| *one == goal);
        place.and_then(|place| self.0.get(..place)).unwrap_or_default()
    }

    /// Divides items into those that no goal contradicts which is named before that of the item, and the others.
    pub(crate) fn settle(
        &self,
        items: Vec<AdviceItem>,
        machine: &Machine<'_>,
    ) -> (Vec<AdviceItem>, Vec<Contradiction>) {
        let contradiction = |item| self.contradiction(item, &items, machine);
        let found: Vec<_> = items.iter().map(contradiction).collect();
        let (mut settled, mut contradictions) = (Vec::new(), Vec::new());
        for (item, found) in items.into_iter().zip(found) {
            match found {
                Some((goal, rule)) => {
                    contradictions.push(Contradiction { item, goal, rule });
                }
                None => settled.push(item),
            }
        }
        (settled, contradictions)
    }

    /// The rule for a goal before that of the item that advises another value, or would after the change.
    fn contradiction(
        &self,
        item: &AdviceItem,
        all: &[AdviceItem],
        machine: &Machine<'_>,
    ) -> Option<(Goal, &'static str)> {
        let before = self.before(item.goal);
        let (subject, value) = item.change.outcome().filter(|_| !before.is_empty())?;
        let is_against = |change: &Change| {
            *change != item.change
                && change.outcome().is_some_and(|(other, _)| other == subject)
        };
        let advised =
            all.iter().find(|one| before.contains(&one.goal) && is_against(&one.change));
        if let Some(other) = advised {
            return Some((other.goal, other.rule.name));
        }
        let answer = |asked: &str| match asked == subject {
            true => value.clone(),
            false => machine.answer(asked),
        };
        let version = machine.version();
        let rules = tables().iter().flat_map(|table| &table.rules);
        rules.filter(|rule| rule.kernels.hold_for(version)).find_map(|rule| {
            let goal = before.iter().find(|goal| rule.is_for(**goal))?;
            let would_hold = is_against(&rule.change) && rule.holds(answer) == Holds::Yes;
            would_hold.then_some((*goal, rule.name.as_str()))
        })
    }
}

impl Change {
    /// What it changes, as the subject of a condition, and the answer after it; `None` if it is no setting.
    fn outcome(&self) -> Option<(String, Answer)> {
        let after = match self {
            Self::Action { .. } => return None,
            Self::Unboot { .. } => Answer::Absent,
            Self::Set { to, .. } | Self::Build { to, .. } => Answer::Is(to.clone()),
            Self::Boot { parameter } => {
                let value = parameter.split_once('=').map_or("", |(_, value)| value);
                Answer::Is(value.to_owned())
            }
        };
        Some((self.subject()?, after))
    }
}

impl From<Goal> for Goals {
    fn from(goal: Goal) -> Self {
        Self(vec![goal])
    }
}

impl fmt::Display for Goals {
    /// As on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Goal::name).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use facts::{Facts, Root};

    use super::*;
    use crate::Advice;

    const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

    fn advice(goals: &[Goal], thp: &str) -> Advice {
        let files = [
            ("/proc/sys/kernel/osrelease", "6.12.0\n"),
            ("/proc/sys/vm/swappiness", "60\n"),
            (THP, thp),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.into()));
        let facts = Facts::read(&Root::files(files));
        let machine = Machine::new(&facts, None, None);
        Advice::of(&machine, &Goals::new(goals, Goal::Latency))
    }

    fn of_thp(items: &[AdviceItem]) -> Vec<&str> {
        let items =
            items.iter().filter(|item| item.change.subject().as_deref() == Some(THP));
        items.map(|item| item.rule.name).collect()
    }

    /// Check that the goal that is named first decides, whether its rule holds before or only after the change of the
    /// other, and that a goal alone has no contradictions.
    #[test]
    fn first_goal_decides() {
        let (chosen, madvise) = ("[always] madvise never\n", "always [madvise] never\n");
        let both = advice(&[Goal::Latency, Goal::Hpc], madvise);
        assert!(of_thp(&both.items).is_empty());
        let [one] = &both.contradictions[..] else { panic!("{:?}", both.contradictions) };
        assert_eq!((one.item.goal, one.goal), (Goal::Hpc, Goal::Latency));
        assert_eq!(
            (one.item.rule.name, one.rule),
            ("thp-always-hpc", "thp-always-latency")
        );
        let other = advice(&[Goal::Hpc, Goal::Latency], madvise);
        assert_eq!(of_thp(&other.items), ["thp-always-hpc"]);
        let other = advice(&[Goal::Hpc, Goal::Latency], chosen);
        assert!(of_thp(&other.items).is_empty());
        assert_eq!(other.contradictions[0].rule, "thp-always-hpc");
        for goal in Goal::ALL {
            assert!(advice(&[goal], chosen).contradictions.is_empty());
        }
    }

    /// Check that goals are named once, in their order, and that there is a default.
    #[test]
    fn names() {
        let goals = [Goal::Realtime, Goal::VmGuest, Goal::Realtime];
        assert_eq!(Goals::new(&goals, Goal::Latency).to_string(), "realtime,vm-guest");
        assert_eq!(Goals::new(&[], Goal::Latency).to_string(), "latency");
    }
}
