//! Files that make advice last, in the formats of other programs.
//!
//! From advised changes to texts: nothing is read or written here. Each format has the settings that its
//! consumer can apply; what it cannot express is listed in its files and in the result. A manifest beside them
//! has what was chosen, for [`crate::verify()`]. What makes a setting last is known to [`crate::lasting()`].

mod ansible;
mod grub;
mod irqbalance;
mod kernel_cmdline;
mod kubernetes;
pub(crate) mod manifest;
mod parameter;
mod script;
mod shell;
mod sysctl;
mod systemd;
mod text;
mod tuned;
mod udev;
pub(crate) mod wanted;

use crate::advice::Advice;
use crate::emit::manifest::{Entry, Manifest};
use crate::emit::wanted::Wanted;
use crate::machine::Machine;

/// The name of the file that has what was chosen.
pub const MANIFEST: &str = "manifest.json";

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `sysctl.d(5)`.
    Sysctl,
    /// A profile of tuned.
    Tuned,
    /// `sysctl.d(5)`, `tmpfiles.d(5)`, and a service for the rest.
    Systemd,
    /// Boot parameters, for any boot loader.
    KernelCmdline,
    /// A file of `/etc/default/grub.d`.
    Grub,
    /// `udev(7)` rules.
    Udev,
    /// The environment of irqbalance.
    Irqbalance,
    /// Playbooks.
    Ansible,
    /// A part of a kubelet's configuration.
    Kubernetes,
    /// A shell script.
    Script,
}

impl Format {
    /// All formats, in the order of the documentation.
    pub const ALL: [Self; 10] = [
        Self::Sysctl,
        Self::Tuned,
        Self::Systemd,
        Self::KernelCmdline,
        Self::Grub,
        Self::Udev,
        Self::Irqbalance,
        Self::Ansible,
        Self::Kubernetes,
        Self::Script,
    ];

    /// Its name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sysctl => "sysctl",
            Self::Tuned => "tuned",
            Self::Systemd => "systemd",
            Self::KernelCmdline => "kernel-cmdline",
            Self::Grub => "grub",
            Self::Udev => "udev",
            Self::Irqbalance => "irqbalance",
            Self::Ansible => "ansible",
            Self::Kubernetes => "kubernetes",
            Self::Script => "script",
        }
    }

    /// The format of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    fn make(self, job: &Job) -> Made {
        match self {
            Self::Sysctl => sysctl::make(job),
            Self::Tuned => tuned::make(job),
            Self::Systemd => systemd::make(job),
            Self::KernelCmdline => kernel_cmdline::make(job),
            Self::Grub => grub::make(job),
            Self::Udev => udev::make(job),
            Self::Irqbalance => irqbalance::make(job),
            Self::Ansible => ansible::make(job),
            Self::Kubernetes => kubernetes::make(job),
            Self::Script => script::make(job),
        }
    }
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmittedFile {
    /// Its path in the folder.
    pub path: String,
    /// Its content.
    pub text: String,
    /// Its mode.
    pub mode: u32,
}

impl EmittedFile {
    fn new(path: &str, text: String) -> Self {
        Self { path: path.trim_start_matches('/').to_owned(), text, mode: 0o644 }
    }

    fn executable(path: &str, text: String) -> Self {
        Self { mode: 0o755, ..Self::new(path, text) }
    }
}

/// A chosen rule that is not in the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub rule: String,
    /// Why.
    pub why: String,
}

/// The files of a format, and what they lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// The files, without two of the same path.
    pub files: Vec<EmittedFile>,
    /// The names of the rules that they apply.
    pub rules: Vec<String>,
    /// What the format cannot express.
    pub left_out: Vec<LeftOut>,
}

/// Where files come from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The program and its version.
    pub tool: &'a str,
    /// When the files were made: RFC 3339, UTC.
    pub taken: &'a str,
    /// The same in seconds since 1970.
    pub taken_s: u64,
}

/// What each format gets.
struct Job {
    wanted: Vec<Wanted>,
    /// What no format has.
    left: Vec<LeftOut>,
    about: String,
    online: Option<units::CpuSet>,
    quiet: Option<units::CpuSet>,
}

/// What a format made.
struct Made {
    files: Vec<EmittedFile>,
    entries: Vec<Entry>,
    left: Vec<LeftOut>,
}

/// One setting as a format has it.
#[derive(Clone)]
struct Line<'a> {
    wanted: &'a Wanted,
    text: String,
    /// The boot parameter by which it is set, if it is.
    boot: Option<String>,
}

/// The files that apply the advice; of these rules only, if any are named.
///
/// # Errors
/// The names of `only` that are none of advised rules.
pub fn emit(
    format: Format,
    advice: &Advice,
    machine: &Machine<'_>,
    only: Option<&[String]>,
    origin: Origin<'_>,
) -> Result<Emitted, Vec<String>> {
    let is_advised = |name: &String| advice.items.iter().any(|it| it.rule.name == name);
    let unknown = only.into_iter().flatten().filter(|name| !is_advised(name));
    let unknown: Vec<String> = unknown.cloned().collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let is_chosen = |name: &str| only.is_none_or(|only| only.iter().any(|it| it == name));
    let items = advice.items.iter().filter(|item| is_chosen(item.rule.name));
    let (wanted, left) = wanted::wanted(items, machine);
    let facts = machine.facts();
    let kernel = facts.kernel.release.get().map_or("unknown", String::as_str);
    let job = Job {
        wanted,
        left,
        about: format!(
            "Made by {} advise --goal {} --emit {} on {}, for kernel {kernel}.",
            origin.tool,
            advice.goals,
            format.name(),
            origin.taken
        ),
        online: facts.cpus.online.get().cloned(),
        quiet: machine.cpus().cloned(),
    };
    let Made { mut files, entries, left } = format.make(&job);
    let mut rules: Vec<String> = entries.iter().map(|it| it.rule.clone()).collect();
    rules.dedup();
    let manifest = Manifest::new(format, &advice.goals, origin, entries, &left);
    files.push(EmittedFile::new(MANIFEST, manifest.to_json()));
    Ok(Emitted { files, rules, left_out: left })
}

impl Job {
    /// The settings that a format has as lines, and those that it has not, with the reasons.
    fn split(
        &self,
        line: impl Fn(&Wanted) -> Result<(String, Option<String>), String>,
    ) -> (Vec<Line<'_>>, Vec<LeftOut>) {
        let (mut lines, mut left) = (Vec::<Line<'_>>::new(), self.left.clone());
        for wanted in &self.wanted {
            match line(wanted) {
                Ok((text, boot)) => lines.push(Line { wanted, text, boot }),
                Err(why) => left.push(LeftOut { rule: wanted.rule.clone(), why }),
            }
        }
        (lines, left)
    }

    /// The comment at the top of a file: what it is, how it is removed, and what it lacks.
    fn header(&self, what: &str, left: &[LeftOut]) -> String {
        let mut header = text::comment(what)
            + &text::comment(&self.about)
            + &text::comment(
                "To remove what it sets: the file uninstall that was made with it.",
            );
        if !left.is_empty() {
            header += &text::comment("Chosen, but not expressible in this format:");
        }
        for one in left {
            header += &text::comment(&format!("- {}: {}", one.rule, one.why));
        }
        header + "\n"
    }
}

impl Line<'_> {
    /// The line below its reason.
    fn with_reason(&self) -> String {
        format!("{}{}\n", text::comment(&self.wanted.comment()), self.text)
    }

    fn entry(&self) -> Entry {
        Entry::new(self.wanted, self.boot.clone())
    }
}

/// The lines of a file, each below its reason; one that several rules have stands once.
fn body(lines: &[Line<'_>]) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        let is_known = lines[..at].iter().any(|other| other.text == line.text);
        match is_known {
            true => {
                text += &text::comment(&format!(
                    "{} (The line is above.)",
                    line.wanted.comment()
                ))
            }
            false => text += &line.with_reason(),
        }
    }
    text
}

fn entries(lines: &[Line<'_>]) -> Vec<Entry> {
    lines.iter().map(Line::entry).collect()
}

#[cfg(test)]
mod consumers;
#[cfg(test)]
pub(crate) mod tests;
