//! Advice for a machine: the rules that hold there, in the order of what they gain.

pub(crate) mod goals;

use std::cmp::Reverse;

use serde::{Serialize, Serializer};
use units::Ppm;

use crate::advice::goals::{Contradiction, Goals};
use crate::machine::Machine;
use crate::machine::losses::{LargestPart, Taken};
use crate::proof::ProofOutcome;
use crate::rule::condition::Answer;
use crate::rule::{Change, Goal, Importance, Kind, Proof, Rule};
use crate::tables::tables;

/// What takes less of the lost time is not worth a change: the difference would not be noticed beside the
/// variation between two runs.
const WORTH: Ppm = Ppm::new(10_000.0);

/// What stands for a name in the text of an action, up to a brace.
const FILE_OF: &str = "{file of ";
const LARGEST_OF: &str = "{largest of ";

/// The advice for a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The goals.
    pub goals: Goals,
    /// The number of rules for them and this kernel.
    pub rules: usize,
    /// What is advised, the most useful first.
    pub items: Vec<AdviceItem>,
    /// What is not advised, as it was tried here and does not help.
    pub not_advised: Vec<AdviceItem>,
    /// What is not advised, as it contradicts a goal that is named before its own.
    pub contradictions: Vec<Contradiction>,
    /// The rules that could not be judged, and the first unknown subject of each.
    pub undecided: Vec<Undecided>,
    /// Whether the noise was measured, with its sources.
    pub measured: bool,
}

/// One advised change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdviceItem {
    /// The rule.
    #[serde(flatten)]
    pub rule: RuleText,
    /// The goal that it is for, the first of those that are named.
    pub goal: Goal,
    /// What is to be changed, with the CPUs of this machine.
    pub change: Change,
    /// The current value of what is changed; null if it has none, or it is unknown.
    pub from: Option<String>,
    /// Other rules that advise the same change.
    pub also: Vec<&'static str>,
    /// What took the time on which the rule acts; null if that was not measured.
    pub taken: Option<Taken>,
    /// The largest part of that; null if it was not measured, or if the source cannot have several.
    pub largest: Option<LargestPart>,
    /// What a proof has shown; null if none was requested.
    pub proof: Option<ProofOutcome>,
}

/// What a reader needs of a rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleText {
    /// Its name.
    pub name: &'static str,
    /// The subject of its table.
    pub subject: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its importance.
    pub importance: Importance,
    /// Why.
    pub reason: &'static str,
    /// What becomes better.
    pub gain: &'static str,
    /// What becomes worse.
    pub price: &'static str,
    /// The kernels for which it holds.
    #[serde(serialize_with = "as_string")]
    pub kernels: crate::rule::kernels::Kernels,
    /// Where it is documented.
    pub source: &'static str,
    /// How its effect can be shown.
    #[serde(rename = "shown_by")]
    pub proof: Proof,
    /// The noise on which it acts; null if it is no noise.
    pub acts_on: Option<&'static str>,
}

/// A rule that could not be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Undecided {
    /// Its name.
    pub name: &'static str,
    /// What is unknown.
    pub unknown: &'static str,
}

fn as_string<T: ToString, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}

/// Whether a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds<'a> {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// That is not known, as this subject is not.
    Unknown(&'a str),
}

impl AdviceItem {
    /// Whether what it acts on took a part of the lost time that is worth a change.
    pub fn is_worth_it(&self) -> bool {
        self.taken.is_some_and(is_worth_it)
    }
}

impl Rule {
    /// Whether it holds where this is known of subjects, apart from its goals and its kernels.
    pub fn holds(&self, answer: impl Fn(&str) -> Answer) -> Holds<'_> {
        let mut unknown = None;
        for condition in &self.when {
            match condition.holds(&answer(&condition.subject)) {
                Some(true) => {}
                Some(false) => return Holds::No,
                None => unknown = unknown.or(Some(condition.subject.as_str())),
            }
        }
        unknown.map_or(Holds::Yes, Holds::Unknown)
    }

    /// Whether it is for a goal.
    pub fn is_for(&self, goal: Goal) -> bool {
        self.goals.is_empty() || self.goals.contains(&goal)
    }

    pub(crate) fn text(&'static self, subject: &'static str) -> RuleText {
        RuleText {
            name: &self.name,
            subject,
            kind: self.kind,
            importance: self.importance,
            reason: &self.reason,
            gain: &self.gain,
            price: &self.price,
            kernels: self.kernels,
            source: &self.source,
            proof: self.proof,
            acts_on: self.acts_on.as_ref().map(|source| source.name()),
        }
    }
}

impl Advice {
    /// The advice for a machine. Without a kernel's version, only rules for all kernels are judged.
    pub fn of(machine: &Machine<'_>, goals: &Goals) -> Self {
        let version = machine.version();
        let (mut rules, mut items, mut undecided) = (0, Vec::new(), Vec::new());
        for table in tables() {
            for rule in table.rules.iter().filter(|rule| rule.kernels.hold_for(version)) {
                let Some(goal) = goals.of(rule) else { continue };
                rules += 1;
                match rule.holds(|subject| machine.answer(subject)) {
                    Holds::Yes => items.extend(item(rule, goal, &table.subject, machine)),
                    Holds::No => {}
                    Holds::Unknown(unknown) => {
                        undecided.push(Undecided { name: &rule.name, unknown });
                    }
                }
            }
        }
        items.sort_by_key(rank);
        let (items, contradictions) = goals.settle(each_change_once(items), machine);
        let measured = machine.losses.as_ref().is_some_and(|losses| losses.are_traced());
        Self {
            goals: goals.clone(),
            rules,
            items,
            not_advised: Vec::new(),
            contradictions,
            undecided,
            measured,
        }
    }
}

/// The first item of each change, with the names of the others.
fn each_change_once(items: Vec<AdviceItem>) -> Vec<AdviceItem> {
    let mut first_ones: Vec<AdviceItem> = Vec::new();
    for item in items {
        match first_ones.iter_mut().find(|other| other.change == item.change) {
            Some(first) => first.also.push(item.rule.name),
            None => first_ones.push(item),
        }
    }
    first_ones
}

/// The order: what took most of the lost time, then by importance, mistakes first.
fn rank(item: &AdviceItem) -> (Reverse<u64>, Importance, Kind) {
    let taken = item.taken.filter(|taken| is_worth_it(*taken));
    (
        Reverse(taken.map_or(0, |taken| taken.ns.get())),
        item.rule.importance,
        item.rule.kind,
    )
}

fn is_worth_it(taken: Taken) -> bool {
    taken.lost_ppm.is_some_and(|share| share >= WORTH)
}

/// The item of a rule that holds; `None` if what it acts on took hardly any time here, or if there are no CPUs for its
/// value.
fn item(
    rule: &'static Rule,
    goal: Goal,
    subject: &'static str,
    machine: &Machine<'_>,
) -> Option<AdviceItem> {
    let source = rule.acts_on.as_ref();
    let taken = source
        .zip(machine.losses.as_ref())
        .and_then(|(source, losses)| losses.taken_by(source));
    let is_negligible = taken.is_some_and(|taken| !is_worth_it(taken));
    if is_negligible && rule.kind == Kind::Advice {
        return None;
    }
    let change = rule.change.with_cpus(machine)?;
    let from = change.current(machine);
    Some(AdviceItem {
        rule: rule.text(subject),
        goal,
        change,
        from,
        also: Vec::new(),
        taken,
        largest: source
            .zip(machine.losses.as_ref())
            .and_then(|(source, losses)| losses.largest_of(source)),
        proof: None,
    })
}

/// The text of an action, with names of a machine: of `{file of NAME}` the file that sets NAME at boot, and of
/// `{largest of SOURCE}` the program or event that took most of the time of that source. `None` if it has no such name.
fn named(text: &str, machine: &Machine<'_>) -> Option<String> {
    let file = |name: &str| {
        let files = machine.facts().settings.configured.get()?;
        Some(files.get(name)?.file.clone())
    };
    let largest = |source: &str| {
        let losses = machine.losses.as_ref()?;
        Some(losses.largest_of(&source.to_owned().try_into().ok()?)?.to_string())
    };
    replaced(&replaced(text, FILE_OF, file)?, LARGEST_OF, largest)
}

/// The same for all machines.
pub fn general_action(text: &str) -> String {
    let file = |_: &str| Some("the file that sets it".to_owned());
    let largest = |_: &str| Some("the program".to_owned());
    let text = replaced(text, FILE_OF, file).unwrap_or_default();
    replaced(&text, LARGEST_OF, largest).unwrap_or_default()
}

/// A text with a name in place of the first `{... WORD}` that begins so.
fn replaced(
    text: &str,
    start: &str,
    name: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let Some((before, rest)) = text.split_once(start) else {
        return Some(text.to_owned());
    };
    let (word, after) = rest.split_once('}')?;
    Some(format!("{before}{}{after}", name(word)?))
}

impl Change {
    /// The same with the CPUs of a machine; `None` if it has none for it.
    fn with_cpus(&self, machine: &Machine<'_>) -> Option<Self> {
        let fill = |text: &str| {
            if !text.contains('{') {
                return Some(text.to_owned());
            }
            let fill = |isolated: &str, others: &str| {
                let text = text.replace("{isolated}", isolated);
                Some(text.replace("{housekeeping}", others))
            };
            let Some(online) = machine.facts().cpus.online.get() else {
                return fill("LIST", "OTHERS");
            };
            let isolated = machine.cpus()?;
            let others = online.without(isolated);
            if others.is_empty() {
                return None;
            }
            fill(&isolated.to_string(), &others.to_string())
        };
        Some(match self {
            Self::Set { name, to } => Self::Set { name: name.clone(), to: fill(to)? },
            Self::Boot { parameter } => Self::Boot { parameter: fill(parameter)? },
            Self::Action { text } => Self::Action { text: fill(&named(text, machine)?)? },
            Self::Unboot { .. } | Self::Build { .. } => self.clone(),
        })
    }

    /// The current value of what it changes.
    fn current(&self, machine: &Machine<'_>) -> Option<String> {
        match machine.answer(&self.subject()?) {
            Answer::Is(value) => Some(value),
            Answer::Exists | Answer::Absent | Answer::Unknown => None,
        }
    }

    /// What it changes, as the subject of a condition; `None` if it is no setting.
    pub(crate) fn subject(&self) -> Option<String> {
        Some(match self {
            Self::Set { name, .. } => match name.as_str() {
                "thp" => "/sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
                "governor" => "facts.power.governor".to_owned(),
                _ => name.clone(),
            },
            Self::Boot { parameter } | Self::Unboot { parameter } => {
                format!("boot.{}", parameter.split('=').next().unwrap_or_default())
            }
            Self::Build { option, .. } => format!("CONFIG_{option}"),
            Self::Action { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use facts::{Facts, Root};

    use super::*;

    /// Check that an action names the file that sets a value, and without a machine says what that is.
    #[test]
    fn files_in_actions() {
        let files = [
            ("/proc/sys/kernel/osrelease", "6.12.0\n"),
            ("/etc/sysctl.d/90-old.conf", "kernel.sched_latency_ns = 1\n"),
            ("/run/sysctl.d/a.conf", ""),
            ("/usr/local/lib/sysctl.d/a.conf", ""),
            ("/usr/lib/sysctl.d/a.conf", ""),
            ("/lib/sysctl.d/a.conf", ""),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text.into()));
        let facts = Facts::read(&Root::files(files));
        let machine = Machine::new(&facts, None, None);
        let text = "Remove it from {file of kernel.sched_latency_ns}, {isolated}";
        assert_eq!(
            named(text, &machine).unwrap(),
            "Remove it from /etc/sysctl.d/90-old.conf, {isolated}"
        );
        assert_eq!(
            general_action(text),
            "Remove it from the file that sets it, {isolated}"
        );
        assert_eq!(named("Restart it", &machine).unwrap(), "Restart it");
        assert_eq!(named("Move {largest of programs}", &machine), None);
        assert_eq!(general_action("Move {largest of programs}"), "Move the program");
    }
}
