//! The rows of the tables of rules (`rules/*.toml`), and how they are read.
//!
//! A rule is data: the conditions under which it holds, one change, and what a reader needs to judge it. It
//! has no code of its own, so that a table can be read, and generated into a document, without this program.

pub(crate) mod condition;
pub(crate) mod kernels;
pub(crate) mod noise_source;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::rule::condition::Condition;
use crate::rule::kernels::Kernels;
use crate::rule::noise_source::NoiseSource;

/// The rules about one subject.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// What they are about.
    pub subject: String,
    /// The rules, in the order of the table.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// One rule.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Row")]
pub struct Rule {
    /// Its stable name.
    pub name: String,
    /// Whether something could be better, or is wrong.
    pub kind: Kind,
    /// The goals for which it is advised; empty for all.
    pub goals: Vec<Goal>,
    /// The kernel versions for which it holds.
    pub kernels: Kernels,
    /// The conditions, all of which must hold.
    pub when: Vec<Condition>,
    /// What is to be changed.
    pub change: Change,
    /// The measured noise on which it acts.
    pub acts_on: Option<NoiseSource>,
    /// Its rank if nothing was measured.
    pub importance: Importance,
    /// Why.
    pub reason: String,
    /// What becomes better.
    pub gain: String,
    /// What becomes worse, and which safety is lost.
    pub price: String,
    /// Where that is documented: files of the kernel's source, manual pages.
    pub source: String,
    /// How its effect can be shown.
    pub proof: Proof,
    /// A machine on which it holds, as `SUBJECT = VALUE`, and one on which it does not.
    pub fires: Vec<String>,
    /// The latter.
    pub silent: Vec<String>,
}

/// The kind of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A setting is wrong, contradicts another one, or has no effect.
    Mistake,
    /// A setting could be better.
    Advice,
}

/// What a machine is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Short delays of ordinary programs.
    Latency,
    /// Bounded delays of real-time threads.
    Realtime,
    /// Much work per time.
    Throughput,
    /// Parallel programs that wait for their slowest thread.
    Hpc,
    /// Run times that repeat.
    Benchmark,
    /// A virtual machine.
    VmGuest,
    /// A host of virtual machines.
    VmHost,
    /// A host of containers.
    ContainerHost,
    /// Little work while idle.
    Idle,
}

impl Goal {
    /// All goals, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Latency,
        Self::Realtime,
        Self::Throughput,
        Self::Hpc,
        Self::Benchmark,
        Self::VmGuest,
        Self::VmHost,
        Self::ContainerHost,
        Self::Idle,
    ];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Realtime => "realtime",
            Self::Throughput => "throughput",
            Self::Hpc => "hpc",
            Self::Benchmark => "benchmark",
            Self::VmGuest => "vm-guest",
            Self::VmHost => "vm-host",
            Self::ContainerHost => "container-host",
            Self::Idle => "idle",
        }
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let goal = Self::ALL.into_iter().find(|goal| goal.name() == name);
        goal.ok_or_else(|| format!("unknown goal '{name}'"))
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How much a rule matters for its goals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Importance {
    /// A wrong or dangerous setting, or a large effect.
    Important,
    /// A known effect.
    Useful,
    /// A small effect, or only in special cases.
    Minor,
}

impl Importance {
    /// All of them, from the greatest.
    pub const ALL: [Self; 3] = [Self::Important, Self::Useful, Self::Minor];

    /// Its name, as in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Important => "important",
            Self::Useful => "useful",
            Self::Minor => "minor",
        }
    }
}

impl FromStr for Importance {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let importance = Self::ALL.into_iter().find(|one| one.name() == name);
        importance.ok_or_else(|| format!("unknown importance '{name}'"))
    }
}

/// How the effect of a change can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// By trying it on the machine.
    Try,
    /// In guests of the same kernel.
    Guest,
    /// Not by this program.
    None,
}

/// A change. Values may have the placeholders `{isolated}` and `{housekeeping}`, for CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Change {
    /// At run time.
    Set {
        /// A sysctl, a file, or a name that `try` knows.
        name: String,
        /// The value.
        to: String,
    },
    /// A parameter is added to the kernel's command line, or replaces the one with its name.
    Boot {
        /// `name=value`, or a name.
        parameter: String,
    },
    /// A parameter is removed from it.
    Unboot {
        /// Its name.
        parameter: String,
    },
    /// An option of the kernel's configuration.
    Build {
        /// Its name, without `CONFIG_`.
        option: String,
        /// Its value.
        to: String,
    },
    /// Anything else.
    Action {
        /// What to do, as an imperative without a period.
        text: String,
    },
}

/// A rule as the table has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    kind: Kind,
    goals: Vec<String>,
    kernels: Kernels,
    when: Vec<Condition>,
    set: Option<String>,
    boot: Option<String>,
    build: Option<String>,
    action: Option<String>,
    acts_on: Option<NoiseSource>,
    importance: Importance,
    reason: String,
    gain: String,
    price: String,
    source: String,
    proof: Proof,
    fires: Vec<String>,
    silent: Vec<String>,
}

/// The word for all goals.
const ANY: &str = "any";

impl TryFrom<Row> for Rule {
    type Error = String;

    fn try_from(row: Row) -> Result<Self, String> {
        let changes = [
            row.set.as_deref().map(set),
            row.boot.as_deref().map(boot),
            row.build.as_deref().map(build),
            row.action.map(|text| Ok(Change::Action { text })),
        ];
        let changes: Vec<Change> =
            changes.into_iter().flatten().collect::<Result<_, _>>()?;
        let [change] = <[Change; 1]>::try_from(changes)
            .map_err(|_| format!("{}: not exactly one change", row.name))?;
        let goals = row.goals.iter().filter(|goal| *goal != ANY);
        let goals = goals.map(|name| name.parse());
        Ok(Self {
            goals: goals.collect::<Result<_, _>>()?,
            name: row.name,
            kind: row.kind,
            kernels: row.kernels,
            when: row.when,
            change,
            acts_on: row.acts_on,
            importance: row.importance,
            reason: row.reason,
            gain: row.gain,
            price: row.price,
            source: row.source,
            proof: row.proof,
            fires: row.fires,
            silent: row.silent,
        })
    }
}

/// `NAME = VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    let parts =
        text.split_once(" = ").ok_or_else(|| format!("no NAME = VALUE: '{text}'"))?;
    Ok((parts.0.trim().to_owned(), parts.1.trim().to_owned()))
}

fn set(text: &str) -> Result<Change, String> {
    pair(text).map(|(name, to)| Change::Set { name, to })
}

fn boot(text: &str) -> Result<Change, String> {
    Ok(match text.strip_prefix('!') {
        Some(name) => Change::Unboot { parameter: name.to_owned() },
        None => Change::Boot { parameter: text.to_owned() },
    })
}

fn build(text: &str) -> Result<Change, String> {
    let (name, to) = pair(text)?;
    let option =
        name.strip_prefix("CONFIG_").ok_or_else(|| format!("no option: '{name}'"))?;
    Ok(Change::Build { option: option.to_owned(), to })
}
