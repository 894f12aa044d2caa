//! What is wanted: the chosen changes without those that no format has, and without contradictions.
//!
//! Of two changes of the same setting to different values, the first remains: advice ranks it higher.

use units::CpuSet;

use crate::advice::AdviceItem;
use crate::emit::LeftOut;
use crate::lasting::{Lasting, RunTime, lasting, run_time};
use crate::machine::Machine;
use crate::rule::Change;
use crate::rule::condition::Answer;

/// A chosen change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The rule.
    pub(crate) rule: String,
    /// Why, and what becomes worse.
    pub(crate) reason: String,
    /// The change.
    pub(crate) what: What,
    /// The value when the files were made.
    pub(crate) before: Option<String>,
}

/// A change that some format has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A setting at run time.
    Set {
        /// Its name, as rules have it.
        name: String,
        /// Its value.
        to: String,
        /// Its files.
        files: RunTime,
    },
    /// A boot parameter.
    Boot(String),
    /// The name of one that is removed.
    Unboot(String),
    /// CPUs that irqbalance uses for no interrupt.
    Banned(CpuSet),
    /// The housekeeping CPUs of a kubelet with static CPU assignment.
    Kubelet(CpuSet),
}

impl Wanted {
    /// The comment of its line.
    pub(crate) fn comment(&self) -> String {
        format!("{}: {}", self.rule, self.reason)
    }

    /// Why a format does not have it: what it is, and the formats that do.
    pub(super) fn elsewhere(&self) -> String {
        match &self.what {
            What::Set { name, files, .. } => match files {
                RunTime::Files { path, .. } if path.starts_with("/proc/sys/") => {
                    format!("{name} is a sysctl (--emit sysctl)")
                }
                RunTime::Files { .. } => {
                    format!("{name} is a file of /sys (--emit systemd or script)")
                }
                RunTime::Irqs(_) => "irqs are the affinities of all interrupts (--emit \
                                     irqbalance, systemd or script)"
                    .to_owned(),
                RunTime::IdleLatency(_) => {
                    format!("{name} is a limit of idle states (--emit systemd or tuned)")
                }
                RunTime::Partition(_) => {
                    "partition is a cpuset, or a boot parameter (--emit kernel-cmdline \
                     or grub)"
                        .to_owned()
                }
            },
            What::Boot(parameter) => {
                format!("{parameter} is a boot parameter (--emit kernel-cmdline or grub)")
            }
            What::Unboot(name) => format!(
                "{name} is to be removed from the boot parameters (--emit kernel-cmdline \
                 or grub)"
            ),
            What::Banned(_) => {
                "the environment of irqbalance (--emit irqbalance)".to_owned()
            }
            What::Kubelet(_) => {
                "the kubelet's configuration (--emit kubernetes)".to_owned()
            }
        }
    }

    /// What it changes, and to what: the same key with another value is a contradiction.
    fn keys(&self) -> Vec<(String, String)> {
        let boot = |parameter: &str| {
            let (name, _) = parameter.split_once('=').unwrap_or((parameter, ""));
            (format!("boot parameter {}", name.replace('-', "_")), parameter.to_owned())
        };
        match &self.what {
            What::Set { name, to, files } => {
                let key = match files {
                    RunTime::Files { path, .. } if path.ends_with("/features") => {
                        (name.clone(), to.clone())
                    }
                    RunTime::Files { path, value } => (path.clone(), value.clone()),
                    RunTime::Irqs(_)
                    | RunTime::IdleLatency(_)
                    | RunTime::Partition(_) => (name.clone(), to.clone()),
                };
                let parameter = lasting(name, to).into_iter().find_map(|way| match way {
                    Lasting::KernelParameter(parameter) => Some(boot(&parameter)),
                    Lasting::Sysctl(_) | Lasting::Tmpfile(_) | Lasting::TunedCpu(_) => {
                        None
                    }
                });
                [key].into_iter().chain(parameter).collect()
            }
            What::Boot(parameter) => vec![boot(parameter)],
            What::Unboot(name) => vec![(boot(name).0, "none".to_owned())],
            What::Banned(_) | What::Kubelet(_) => Vec::new(),
        }
    }
}

/// The changes of these items, and the items that no format has.
pub(super) fn wanted<'a>(
    items: impl Iterator<Item = &'a AdviceItem>,
    machine: &Machine<'_>,
) -> (Vec<Wanted>, Vec<LeftOut>) {
    let (mut all, mut left) = (Vec::<Wanted>::new(), Vec::new());
    for item in items {
        let added = one(item, machine).and_then(|new| match contradiction(&all, &new) {
            Some(why) => Err(why),
            None => Ok(new),
        });
        match added {
            Ok(new) => all.push(new),
            Err(why) => left.push(LeftOut { rule: item.rule.name.to_owned(), why }),
        }
    }
    (all, left)
}

fn contradiction(all: &[Wanted], new: &Wanted) -> Option<String> {
    new.keys().into_iter().find_map(|(key, value)| {
        let is_other = |(other, of): &(String, String)| *other == key && *of != value;
        let first = all.iter().find(|one| one.keys().iter().any(is_other))?;
        Some(format!("{} changes {key} in another way; choose with --only", first.rule))
    })
}

/// The change of an item.
fn one(item: &AdviceItem, machine: &Machine<'_>) -> Result<Wanted, String> {
    let mut before = item.from.clone();
    let what = match &item.change {
        Change::Set { name, to } => {
            let files = run_time(name, to)
                .ok_or_else(|| format!("{name} cannot have the value '{to}'"))?;
            if let (None, RunTime::Files { path, .. }) = (&before, &files) {
                before = match machine.answer(path) {
                    Answer::Is(now) => Some(now),
                    Answer::Exists | Answer::Absent | Answer::Unknown => None,
                };
            }
            What::Set { name: name.clone(), to: to.clone(), files }
        }
        Change::Boot { parameter } => What::Boot(parameter.clone()),
        Change::Unboot { parameter } => What::Unboot(parameter.clone()),
        Change::Build { option, to } => {
            return Err(format!("needs a kernel with CONFIG_{option}={to}"));
        }
        Change::Action { text } => of_action(text, machine)
            .ok_or_else(|| format!("to be done by hand: {text}"))?,
    };
    let wanted = Wanted {
        rule: item.rule.name.to_owned(),
        reason: format!("{} Price: {}", item.rule.reason, item.rule.price),
        what,
        before: before.filter(|text| !text.chars().any(|c| c.is_control() && c != '\t')),
    };
    match wanted.keys().iter().any(|(key, value)| has_control(key) || has_control(value))
    {
        true => Err("its name or value has a control character".to_owned()),
        false => Ok(wanted),
    }
}

fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

/// The actions that are settings of a program.
fn of_action(text: &str, machine: &Machine<'_>) -> Option<What> {
    let quiet = machine.cpus()?;
    if text.contains("IRQBALANCE_BANNED_CPULIST") {
        return Some(What::Banned(quiet.clone()));
    }
    if text.contains("reservedSystemCPUs") {
        let others = machine.facts().cpus.online.get()?.without(quiet);
        return Some(What::Kubelet(others)).filter(|_| !quiet.is_empty());
    }
    None
}
