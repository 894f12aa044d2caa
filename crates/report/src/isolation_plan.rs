//! The report of `advise --isolate`: which CPUs, why not the others, what to set, and how to prove it.
//!
//! One screen has what has to be done; `--full` also each line's reason, price and source, what this machine
//! cannot do, and the settings at run time that stand in for the boot parameters.

mod choice;

use advise::{
    Impossible, IsolationPlan, LineState, LineTime, NotPossible, PlanLine, Rule, Subject,
};
use facts::Facts;
use recording::Doubt;
use serde::Serialize;
use units::CpuSet;

use crate::document::list::{Item, List};
use crate::document::text::{Text, text};
use crate::document::{Content, Document};
use crate::doubt_line::doubt_line;
use crate::isolation_plan::choice::{rejected, remarks, why_not};
use crate::json::object;

/// The last line of one screen, after the option.
const MORE: &str = " shows reasons, prices, sources, and each command";
/// The levels of one screen, from all to the least.
const LEVELS: [usize; 4] = [0, 1, 2, 3];

/// A plan, and the machine that it is for.
#[derive(Debug)]
pub struct PlannedMachine<'a> {
    /// Its facts.
    pub facts: &'a Facts,
    /// The plan.
    pub plan: &'a IsolationPlan,
    /// Reasons not to trust it.
    pub doubts: &'a [Doubt],
}

/// The report.
pub fn isolation_plan_document(machine: &PlannedMachine<'_>) -> Document {
    let screens = LEVELS.map(|level| screen(machine, level));
    Document::default()
        .add_or(full(machine), Content::Fitted(screens.into()))
        .titled("noisefloor advise --isolate")
}

/// The plan as one JSON object; `taken` and `tool` are those of a recording made now.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn isolation_plan_json(
    machine: &PlannedMachine<'_>,
    taken: &str,
    tool: &str,
) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Planned<'a> {
        taken: &'a str,
        tool: &'a str,
        facts: &'a Facts,
        summary: &'a IsolationPlan,
        doubts: &'a [Doubt],
    }
    let PlannedMachine { facts, plan, doubts } = *machine;
    object("isolation_plan", Planned { taken, tool, facts, summary: plan, doubts })
}

/// One screen; higher levels have less.
fn screen(machine: &PlannedMachine<'_>, level: usize) -> Document {
    let plan = machine.plan;
    let Some(choice) = &plan.choice else { return impossible(machine) };
    let boot = plan.boot.iter().filter(|line| line.state != LineState::InForce);
    let boot = Text::join(boot.flat_map(|line| &line.text).map(Text::command), " ");
    let boot = (!boot.is_empty()).then(|| text!("Boot with {}{}.", boot, replaced(plan)));
    let after = at(plan, LineTime::AfterBoot)
        .filter(|line| line.state != LineState::InForce)
        .flat_map(|line| line.text.clone());
    let after = match level < 3 {
        true => commands("After each boot, as root:", after),
        false => (after.count() > 0).then(|| Item::new("After each boot: see --full.")),
    };
    let most = if level < 2 { usize::MAX } else { 2 };
    let left_out = plan.left_out.iter().filter(|_| level < 1).map(not_possible);
    let doubt = doubt_line(machine.doubts).filter(|_| level < 3).map(Text::from);
    let remarks = remarks(plan, choice).into_iter().take(if level < 3 { 8 } else { 2 });
    let commands = [
        Some(boot.unwrap_or_else(|| in_force(plan)).into()),
        after,
        commands("Or for one program only, restored after it:", plan.program.clone()),
        commands("Proof:", plan.proof.clone()),
    ];
    Document::from(lead(machine))
        .lines(remarks.chain([rejected(&choice.rejected, most)]))
        .add(List::lines(commands.into_iter().flatten()))
        .lines(left_out.chain(doubt))
        .add(Content::Footer(text!("{}{}", Text::command("--full"), MORE)))
}

fn full(machine: &PlannedMachine<'_>) -> Document {
    let plan = machine.plan;
    let Some(choice) = &plan.choice else { return impossible(machine) };
    let others = choice.rejected.iter();
    let others = others.map(|one| text!("CPU {}: {}", &one.cpus, why_not(&one.why)));
    let not_possible = plan.left_out.iter().map(left_out);
    let lines = |title: &str, when| {
        Document::section(title, List::numbered(at(plan, when).map(full_line)))
    };
    let typed = |title: &str, lines: Vec<String>| {
        let lines = lines.into_iter().map(|line| Item::default().command(line));
        Document::section(title, List::lines(lines))
    };
    let instead = "In place of the boot parameters, as root, until the next boot";
    let program = plan.program.clone().into_iter().collect();
    Document::from(lead(machine))
        .lines(remarks(plan, choice))
        .add(Document::section("CPUs that were not chosen", List::bullets(others)))
        .add(lines("Boot parameters", LineTime::Boot))
        .add(how_to_boot(machine))
        .add(lines("After each boot, as root", LineTime::AfterBoot))
        .add(lines(instead, LineTime::Instead))
        .add(Document::section(
            "What this machine cannot do",
            List::bullets(not_possible),
        ))
        .add(typed("For one program, restored after it", program))
        .add(typed("Proof", plan.proof.clone()))
        .doubts(machine.doubts)
}

/// The commands that set the boot parameters, if it is known what the distribution has for that.
fn how_to_boot(machine: &PlannedMachine<'_>) -> Document {
    let tool = machine.facts.boot.changed_with.get().map_or("", String::as_str);
    let boot = machine.plan.boot.iter();
    let new = boot.filter(|line| line.state != LineState::InForce);
    let new: Vec<&str> = new.flat_map(|line| &line.text).map(String::as_str).collect();
    let commands_of = |parameter: &str| advise::boot_commands(tool, parameter);
    // Only this program has all of them in quotes.
    let how: Vec<String> = match tool {
        "update-grub" if !new.is_empty() => commands_of(&new.join(" ")),
        _ => new.into_iter().flat_map(commands_of).collect(),
    };
    let remove = old(machine.plan)
        .map(|old| text!("Remove {} first: the two values contradict each other.", old));
    Document::default().lines(remove).add(List::lines(commands("To set them:", how)))
}

/// What is planned.
fn lead(machine: &PlannedMachine<'_>) -> Text {
    let plan = machine.plan;
    let release = machine.facts.kernel.release.get().map(String::as_str);
    let release = release.map_or_else(|| Text::from("unknown"), Text::name);
    let Some(choice) = &plan.choice else { return Text::default() };
    let measured = if plan.measured { ", and by their measured noise" } else { "" };
    text!(
        "To isolate: CPU {} of {}, kernel {}, chosen by topology{}. CPU {} {} all other work.",
        &choice.cpus,
        &plan.online,
        release,
        measured,
        &choice.housekeeping,
        if choice.housekeeping.len() == 1 { "does" } else { "do" },
    )
}

/// The parameters that the new ones replace.
fn old(plan: &IsolationPlan) -> Option<Text> {
    let old = plan.boot.iter().filter_map(|line| match &line.state {
        LineState::Replaces(old) => Some(Text::command(old.as_str())),
        LineState::New | LineState::InForce => None,
    });
    Some(Text::join(old, " ")).filter(|old| !old.is_empty())
}

fn replaced(plan: &IsolationPlan) -> Option<Text> {
    old(plan).map(|old| text!(" in place of {}", old))
}

fn in_force(plan: &IsolationPlan) -> Text {
    match plan.boot.is_empty() {
        true => "No boot parameter of this kernel isolates CPUs.".into(),
        false => "The boot parameters are in force.".into(),
    }
}

/// The lines at a time.
fn at(plan: &IsolationPlan, when: LineTime) -> impl Iterator<Item = &PlanLine> {
    let all = plan.boot.iter().chain(&plan.run_time);
    all.filter(move |line| line.when == when)
}

fn commands(title: &str, lines: impl IntoIterator<Item = String>) -> Option<Item> {
    let lines: Vec<String> = lines.into_iter().collect();
    (!lines.is_empty()).then(|| Item::new(title).all_commands(lines))
}

fn subject(subject: Subject) -> &'static str {
    match subject {
        Subject::Tick => "tick",
        Subject::Tasks => "tasks",
        Subject::Partition => "cpuset partition",
        Subject::Interrupts => "interrupts",
        Subject::Rcu => "RCU",
        Subject::Workqueues => "workqueues",
        Subject::KernelThreads => "kernel threads",
        Subject::Timers => "timers",
        Subject::Watchdog => "lockup detectors",
        Subject::FairServers => "fair servers",
        Subject::Statistics => "memory statistics",
    }
}

/// What cannot be done, in a list of that.
fn left_out(one: &NotPossible) -> Text {
    text!("{}: {}.", capitalized(subject(one.subject)), one.reason)
}

/// The same in a line of its own.
fn not_possible(one: &NotPossible) -> Text {
    text!("Not possible ({}): {}.", subject(one.subject), one.reason)
}

/// A line with its reason, and the price and source of its rule.
fn full_line(line: &PlanLine) -> Item {
    let rule = line.rule.and_then(rule);
    let price = rule.map(|rule| text!("Price: {}", rule.price.as_str()));
    let source = rule.map(|rule| {
        text!("{}; source: {}", Text::name(rule.name.as_str()), rule.source.as_str())
    });
    let state = match &line.state {
        LineState::InForce => " (in force)",
        LineState::New | LineState::Replaces(_) => "",
    };
    let is_boot = line.when == LineTime::Boot;
    let parameter = line.text.iter().filter(|_| is_boot).map(Text::command);
    let first = match is_boot {
        true => text!("{}{}: {}", Text::join(parameter, " "), state, line.reason),
        false => text!("{}{}", line.reason, state),
    };
    let item = Item::new(text!("{}: {}.", capitalized(subject(line.subject)), first));
    item.and(price).and(source).all_commands(if is_boot {
        Vec::new()
    } else {
        line.text.clone()
    })
}

fn capitalized(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A rule of the tables.
fn rule(name: &str) -> Option<&'static Rule> {
    advise::tables().iter().flat_map(|table| &table.rules).find(|rule| rule.name == name)
}

/// Why no CPU can be isolated, and what remains.
fn impossible(machine: &PlannedMachine<'_>) -> Document {
    let wanted = machine.plan.wanted.to_string();
    let online: &CpuSet = &machine.plan.online;
    let why = match machine.plan.impossible {
        None | Some(Impossible::UnknownCpus) => {
            "The online CPUs of this machine are unknown.".into()
        }
        Some(Impossible::OneCpu) => {
            text!(
                "No CPU can be isolated: CPU {} is the only one, and does all work.",
                online
            )
        }
        Some(Impossible::OneCore) => text!(
            "No CPU can be isolated: CPU {} are threads of one core, which slow each other down.",
            online
        ),
        Some(Impossible::TooFew { most }) => text!(
            "{} CPUs cannot be isolated: at most {}, as the core of the boot CPU stays for timekeeping and all other work.",
            wanted,
            most.to_string()
        ),
    };
    let remains = match machine.plan.impossible {
        Some(Impossible::OneCpu | Impossible::OneCore) => Some(
            Item::new(
                "What remains is less noise, and a higher priority for the program:",
            )
            .command("sudo noisefloor advise --goal realtime")
            .command("sudo chrt -f 50 PROGRAM"),
        ),
        None | Some(Impossible::UnknownCpus | Impossible::TooFew { .. }) => None,
    };
    Document::from(why).add(List::lines(remains)).doubts(machine.doubts)
}

#[cfg(test)]
mod tests {
    use advise::NearDevice;
    use facts::Near;
    use insta::assert_snapshot;
    use serde_json::{Value, json};

    use super::*;
    use crate::terminal::{full_text, screen_text};

    fn machine(online: &str, cores: &[&str]) -> Value {
        json!({
            "kernel": {"release": "6.12.1"},
            "cpus": {"present": online, "online": online, "cores": cores, "isolated": "",
                "nodes": ["0-7,16-23", "8-15,24-31"], "memory_nodes": ["0-7,16-23", "8-15,24-31"],
                "caches": ["0-7,16-23", "8-15,24-31"], "isolcpus": true},
            "tick": {"nohz_full": ""},
            "irq": {"bound": [{"number": 36, "name": "nvme0q5", "cpus": "4"}]},
            "settings": {"options": {"NO_HZ_FULL": "y"}, "unread": [], "services": ["irqbalance"],
                "values": {"kernel.watchdog": "1", "kernel.watchdog_cpumask": online,
                    "kernel.timer_migration": "0", "/sys/kernel/rcu_normal": "0"}},
            "boot": {"parameters": ["quiet", "nohz_full=1"], "changed_with": "grubby"},
            "cgroup": {"partitions": "/sys/fs/cgroup"},
            "security": {"lockdown": "none"},
            "sched": {"fair_server_runtime_ns": [50_000_000]},
            "sources": {}, "unknown": {},
        })
    }

    /// The plan for CPUs of a machine, near a device on its first node.
    fn report(page: Value, wanted: usize, render: fn(&Document) -> String) -> String {
        let facts: Facts = serde_json::from_value(page).unwrap();
        let near = Near { node: 0, cpus: "0-7,16-23".parse().unwrap() };
        let near = NearDevice::new("eth0", Some(near));
        let plan = IsolationPlan::of(&facts, None, wanted, Some(near));
        let doubts = [];
        render(&isolation_plan_document(&PlannedMachine {
            facts: &facts,
            plan: &plan,
            doubts: &doubts,
        }))
    }

    fn large() -> Value {
        let cores: Vec<String> =
            (0..16).map(|cpu| format!("{cpu},{}", cpu + 16)).collect();
        machine("0-31", &cores.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Check that one screen has at most 24 lines of 80 columns, also for many CPUs.
    #[test]
    fn fits_one_screen() {
        for wanted in [1, 3, 13, 30] {
            let text = report(large(), wanted, screen_text);
            assert!(text.lines().count() <= 24, "{text}");
            let long = text.lines().filter(|line| line.chars().count() > 80);
            // Commands are not folded.
            assert!(long.clone().all(|line| line.contains("; do ")), "{text}");
        }
    }

    /// Check the report of an odd number of CPUs near a device.
    #[test]
    fn one_screen() {
        assert_snapshot!(report(large(), 3, screen_text));
    }

    /// Check the whole report.
    #[test]
    fn whole_report() {
        assert_snapshot!(report(large(), 3, full_text));
    }

    /// Check what is said if nothing can be isolated.
    #[test]
    fn impossible_ones() {
        let first_line = |text: String| text.lines().next().unwrap().to_owned();
        let one = report(machine("0", &[]), 1, screen_text);
        assert!(
            first_line(one).starts_with("No CPU can be isolated: CPU 0 is the only one")
        );
        let core = report(machine("0-1", &["0-1"]), 1, screen_text);
        assert!(core.contains("threads of one core") && core.contains("chrt"), "{core}");
        let few = report(machine("0-3", &[]), 4, screen_text);
        assert!(first_line(few).starts_with("4 CPUs cannot be isolated: at most 3"));
    }
}
