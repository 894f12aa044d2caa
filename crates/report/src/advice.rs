//! The report of `advise`: what to change for a goal, the most useful first; with `--full` also why, at what
//! price, for which kernels, and where that is documented.

mod proof;
pub(crate) mod reference;

use advise::{
    Advice, AdviceItem, Change, Contradiction, Effect, Goal, Goals, Kind, Lasting,
    lasting,
};
use facts::Facts;
use recording::Doubt;
use summary::{MainMetric, Summary};
use units::CpuSet;

use crate::comparisons::main_metric;
use crate::document::list::{Item, List};
use crate::document::text::{Text, text};
use crate::document::{Content, Document};
use crate::doubt_line::doubt_line;
use crate::measurements::ticks::words;
use crate::number;

/// The numbers of items on one screen, of which the first that has room is shown.
const ON_SCREEN: [usize; 6] = [10, 8, 6, 5, 4, 3];
/// The last line of one screen, after the option.
const MORE: &str = " shows reasons, prices, commands, sources";

/// The advice for a machine, and what it is based on.
#[derive(Debug)]
pub struct AdvisedMachine<'a> {
    /// Its facts.
    pub facts: &'a Facts,
    /// What was measured there; `None` if only facts are known.
    pub summary: Option<&'a Summary>,
    /// The program that it is about; `None` if it is about the machine.
    pub program: Option<AdvisedProgram<'a>>,
    /// The advice.
    pub advice: &'a Advice,
    /// Reasons not to trust it.
    pub doubts: &'a [Doubt],
}

/// A program that was repeated, and with which the advice was tried.
#[derive(Debug, Clone, Copy)]
pub struct AdvisedProgram<'a> {
    /// The command line of a run.
    pub command: &'a str,
    /// Its main metric; `None` if it has none.
    pub main: Option<&'a MainMetric>,
}

/// The report.
pub fn advice_document(machine: &AdvisedMachine<'_>) -> Document {
    let items: Vec<&AdviceItem> = machine.advice.items.iter().collect();
    let lead = lead(machine);
    let full = Document::from(lead.clone()).add(match items.is_empty() {
        true => none(machine.advice).into(),
        false => Document::from(List::numbered(
            items.iter().map(|item| full_item(item, machine.facts)),
        )),
    });
    let full = full
        .lines(proof::counts(machine.advice))
        .add(proof::not_advised(machine.advice, usize::MAX, change))
        .lines(contradictions(machine.advice))
        .add(proof::not_proven(machine.advice))
        .add(undecided(machine.advice))
        .doubts(machine.doubts);
    let screens = ON_SCREEN.map(|most| screen(machine, &lead, most));
    Document::default()
        .add_or(full, Content::Fitted(screens.into()))
        .titled("noisefloor advise")
}

fn screen(machine: &AdvisedMachine<'_>, lead: &Text, most: usize) -> Document {
    let advice = machine.advice;
    let listed = advice.items.iter().take(most).map(short_item);
    let others = advice.items.len().saturating_sub(most);
    let others = (others > 0).then(|| format!("{others} more, "));
    let unknown = advice.undecided.len() as u64;
    let unknown = (unknown > 0)
        .then(|| text!("; {} could not be judged", number::counted(unknown, "rule")));
    let more = text!("{}{}{}{}", others, Text::command("--full"), MORE, unknown);
    let document = Document::from(lead.clone());
    let document = match advice.items.is_empty() {
        true => document.add(none(advice)),
        false => document.add(List::numbered(listed)),
    };
    document
        .lines(proof::counts(advice))
        .lines(proof::barriers(advice))
        .add(proof::not_advised(advice, most, change))
        .lines(contradictions(advice))
        .lines(doubt_line(machine.doubts).map(Text::from))
        .add(Content::Footer(more))
}

/// What the advice is for, and what it is based on.
fn lead(machine: &AdvisedMachine<'_>) -> Text {
    if let Some(program) = &machine.program {
        return of_program(machine, program);
    }
    let release = machine.facts.kernel.release.get().map(String::as_str);
    let noise = machine.summary.and_then(Summary::noise);
    let based_on = match noise {
        Some(noise) => {
            let share = number::known(units::Ppm::of(noise.lost(), noise.elapsed()));
            match machine.advice.measured {
                true => text!("; its CPUs lost {} of their time", share),
                false => {
                    text!("; its CPUs lost {} of their time, to unknown causes", share)
                }
            }
        }
        None => "; nothing was measured".into(),
    };
    text!(
        "Advice for {} (--goal {}), kernel {}{}: {} of {} rules hold.",
        goals_in_words(&machine.advice.goals),
        machine.advice.goals.to_string(),
        release.map_or_else(|| Text::from("unknown"), Text::name),
        based_on,
        machine.advice.items.len().to_string(),
        machine.advice.rules.to_string(),
    )
}

/// The same about a program: why its runs differ.
fn of_program(machine: &AdvisedMachine<'_>, program: &AdvisedProgram<'_>) -> Text {
    let why = program.main.and_then(main_metric::words);
    text!(
        "Advice for {} (--goal {}), {} runs: {} of {} rules hold. {}",
        Text::command(program.command),
        machine.advice.goals.to_string(),
        program.main.map_or(0, |main| main.runs).to_string(),
        machine.advice.items.len().to_string(),
        machine.advice.rules.to_string(),
        why.unwrap_or_else(|| "Its runs do not differ.".into()),
    )
}

/// What several goals are, in words.
fn goals_in_words(goals: &Goals) -> String {
    let mut words: Vec<&str> = goals.iter().map(goal_in_words).collect();
    match (words.pop(), words.is_empty()) {
        (Some(last), false) => format!("{} and {last}", words.join(", ")),
        (last, _) => last.unwrap_or_default().to_owned(),
    }
}

/// What a goal is, in words.
pub fn goal_in_words(goal: Goal) -> &'static str {
    match goal {
        Goal::Latency => "short delays",
        Goal::Realtime => "bounded delays of real-time threads",
        Goal::Throughput => "throughput",
        Goal::Hpc => "parallel programs",
        Goal::Benchmark => "run times that repeat",
        Goal::VmGuest => "a virtual machine",
        Goal::VmHost => "a host of virtual machines",
        Goal::ContainerHost => "a host of containers",
        Goal::Idle => "little work while idle",
    }
}

/// What is not advised, as it contradicts a goal.
fn contradictions(advice: &Advice) -> Option<Text> {
    let one = |one: &Contradiction| {
        let (change, rule) = (change(&one.item), Text::name(one.rule));
        text!("{} ({}; for {}: {})", change, one.item.goal.name(), one.goal.name(), rule)
    };
    let all = advice.contradictions.iter().map(one);
    let all = all.reduce(|all, next| text!("{}; {}", all, next))?;
    Some(text!("Not advised, as the goals contradict each other: {}.", all))
}

fn none(advice: &Advice) -> Text {
    match advice.measured {
        true => "No rule holds that acts on a hundredth of the lost time or more.".into(),
        false => "No rule holds.".into(),
    }
}

/// The change, what it acts on, and what it gains.
fn short_item(item: &AdviceItem) -> Item {
    let item_text = text!("{}{}. {}", change(item), acts_on(item), proof::gain(item));
    let helps = item.proven().is_some_and(|proven| proven.conclusion == Effect::Better);
    Item::new(item_text).and(helps.then(|| lasts(item)).flatten().unwrap_or_default())
}

fn full_item(item: &AdviceItem, facts: &Facts) -> Item {
    let kind = match item.rule.kind {
        Kind::Mistake => "mistake",
        Kind::Advice => "advice",
    };
    Item::new(text!("{}{}.", change(item), acts_on(item)))
        .and(item.rule.reason)
        .and(text!("{} Price: {}", proof::full_gain(item), item.rule.price))
        .and(text!(
            "{}{} ({}, {}); {}; source: {}",
            Text::name(item.rule.name),
            (!item.also.is_empty()).then(|| format!(", {}", item.also.join(", "))),
            item.rule.importance.name(),
            kind,
            item.rule.kernels.to_string(),
            item.rule.source,
        ))
        .and(lasts(item).unwrap_or_default())
        .all_commands(trial(item, facts))
}

/// What is to be changed, and from what.
pub(crate) fn change(item: &AdviceItem) -> Text {
    let now = item.from.as_deref().filter(|from| !from.is_empty());
    let now = now.map(|now| text!(" (now {})", Text::name(now)));
    match &item.change {
        Change::Set { name, to } => text!("{}{}", setting(name, to), now),
        Change::Boot { parameter } => {
            text!("Boot with {}{}", Text::command(parameter.as_str()), now)
        }
        Change::Unboot { parameter } => text!(
            "Remove {} from the boot parameters",
            Text::command(match item.from.as_deref() {
                Some("") | None => parameter.clone(),
                Some(value) => format!("{parameter}={value}"),
            })
        ),
        Change::Build { option, to } => {
            let option = Text::command(format!("CONFIG_{option}={to}"));
            text!("Use a kernel with {}{}", option, now)
        }
        Change::Action { text } => Text::from(text.as_str()),
    }
}

/// What a setting of `try` does, or its new value.
fn setting(name: &str, to: &str) -> Text {
    let cpus = || match to.parse::<CpuSet>() {
        Ok(cpus) => words::cpus(&cpus),
        Err(_) => Text::name(to),
    };
    match name {
        "partition" => text!("Keep other programs off {}", cpus()),
        "irqs" => text!("Move the interrupts of devices to {}", cpus()),
        "workqueues" => text!("Move unbound workqueues to {}", cpus()),
        _ => text!("Set {} to {}", Text::command(name), Text::command(to)),
    }
}

/// What it acts on, with the measured time.
fn acts_on(item: &AdviceItem) -> Option<Text> {
    let taken = item.taken.filter(|taken| !taken.ns.is_zero())?;
    let source = item.rule.acts_on?;
    let largest = item.largest.as_ref().map(|part| {
        let name = Text::name(part.to_string());
        text!(" (most of it {}: {})", name, number::known(part.lost_ppm))
    });
    Some(text!(
        ": {} took {} of the lost time{}",
        Text::name(source),
        number::known(taken.lost_ppm),
        largest
    ))
}

/// The commands that try or make the change.
pub(crate) fn trial(item: &AdviceItem, facts: &Facts) -> Vec<String> {
    match &item.change {
        Change::Set { name, to } if name == "partition" => {
            vec![format!("sudo noisefloor run -c {to} --partition --require COMMAND")]
        }
        Change::Set { name, to } => {
            vec![format!("sudo noisefloor try {name}={to} -- noise -d 5")]
        }
        Change::Boot { parameter } => {
            let tool = facts.boot.changed_with.get().map_or("", String::as_str);
            advise::boot_commands(tool, parameter)
        }
        Change::Unboot { .. } | Change::Build { .. } | Change::Action { .. } => {
            Vec::new()
        }
    }
}

/// What makes a run-time setting last, the simplest way; `None` for other changes.
fn lasts(item: &AdviceItem) -> Option<Text> {
    let Change::Set { name, to } = &item.change else { return None };
    let (line, file) = match lasting(name, to).into_iter().next()? {
        Lasting::Sysctl(line) => (line, "a file in /etc/sysctl.d"),
        Lasting::Tmpfile(line) => (line, "a file in /etc/tmpfiles.d"),
        Lasting::KernelParameter(parameter) => (parameter, "the boot parameters"),
        Lasting::TunedCpu(line) => (line, "section [cpu] of a profile of tuned"),
    };
    Some(text!("To make it last: {} in {}.", Text::command(line), file))
}

/// The rules that could not be judged, by what is unknown.
fn undecided(advice: &Advice) -> Document {
    let pairs = advice.undecided.iter().map(|one| (one.unknown, one.name.to_owned()));
    let lines = crate::grouped::grouped(pairs)
        .into_iter()
        .map(|(unknown, rules)| text!("{}: {}", Text::name(unknown), rules.join(", ")));
    Document::section("Not judged, as this is unknown", List::lines(lines))
}

#[cfg(test)]
pub(crate) mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::example::{self, GUEST};
    use crate::terminal::{full_text, screen_text};

    /// The report about a machine of which the noise was measured.
    fn report(render: fn(&Document) -> String) -> String {
        report_of(render, |advice| advice)
    }

    /// The same with other advice.
    pub(super) fn report_of(
        render: fn(&Document) -> String,
        change: impl FnOnce(Advice) -> Advice,
    ) -> String {
        let recording = example::blamed(example::check(GUEST, 2));
        let summary = Summary::of(&recording);
        let machine =
            advise::Machine::new(&recording.facts, advise::Losses::of(&summary), None);
        let advice = change(Advice::of(&machine, &Goal::Latency.into()));
        render(&advice_document(&AdvisedMachine {
            facts: &recording.facts,
            summary: Some(&summary),
            program: None,
            advice: &advice,
            doubts: &machine.doubts(),
        }))
    }

    /// Check that one screen has at most 24 lines of 80 columns.
    #[test]
    fn fits_one_screen() {
        let text = report(screen_text);
        assert!(text.lines().count() <= 24, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    /// Check the whole report, but for the rules that could not be judged.
    #[test]
    fn whole_report() {
        let text = report(full_text);
        assert_snapshot!(text.split("Not judged").next().unwrap());
    }
}
