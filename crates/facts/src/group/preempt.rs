//! Preemption: when a task in the kernel may be interrupted, and who decided that.
//!
//! From the kernel's configuration; with `PREEMPT_DYNAMIC` (since 5.12) also from
//! `/sys/kernel/debug/sched/preempt`, which needs root and no lockdown, else from what
//! the kernel said at boot, else from `preempt=`.
//!
//! Cannot see, without debugfs and the kernel's messages, a change since boot.

use serde::{Deserialize, Serialize};

use crate::fact::{Fact, Unknown, Why, group};
use crate::format::command_line;
use crate::format::kernel_log;
use crate::group::kernel;
use crate::parameters;
use crate::sources::Sources;

/// When a task in the kernel may be preempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Not at all, until it returns or sleeps.
    None,
    /// At points where it says so.
    Voluntary,
    /// At once by real-time tasks, by others at the next tick.
    Lazy,
    /// At once.
    Full,
    /// At once, interrupt handlers and most locks included (`PREEMPT_RT`).
    Rt,
}

/// Who decided on the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    /// The configuration, once and for all.
    Static,
    /// The configuration, and nobody changed it since.
    Default,
    /// `preempt=` on the command line.
    Boot,
    /// A write to debugfs since.
    RunTime,
}

group! {
    /// Preemption.
    "preempt" Preempt {
        /// The model in force.
        model: Model,
        /// Who decided on it.
        chosen: Chosen,
        /// Whether another one can be chosen at boot (`PREEMPT_DYNAMIC`).
        dynamic: bool,
    }
}

/// Where the model in force can be read and changed, the one in force in parentheses
/// (since 5.12, with `PREEMPT_DYNAMIC`).
const DEBUGFS: &str = "/sys/kernel/debug/sched/preempt";
/// What the kernel says when the model changes, at boot or later.
pub(crate) const SAID: &str = "Dynamic Preempt: ";
/// What it says instead when it does not know the model it is asked for.
pub(crate) const REFUSED: &str = "Dynamic Preempt: unsupported mode: ";

impl Preempt {
    pub(crate) fn read(sources: &Sources) -> Self {
        let version = sources.root.text("/proc/sys/kernel/version").unwrap_or_default();
        let dynamic = dynamic(sources, &version);
        let (model, chosen) = if is_rt(sources, &version) {
            let source = format!("{}, /proc/sys/kernel/version", sources.config_file());
            (Fact::known(Model::Rt, &*source), Fact::known(Chosen::Static, source))
        } else if dynamic.get() == Some(&true) {
            chosen_model(sources)
        } else {
            let file = sources.config_file();
            let model = Fact::of(built_in(sources), file);
            let chosen = model.value().map(|_| Chosen::Static).map_err(Clone::clone);
            (model, Fact::of(chosen, file))
        };
        Self { model, chosen, dynamic }
    }
}

/// Whether interrupt handlers and most locks can be preempted; `PREEMPT_RT_FULL` and
/// `PREEMPT RT` are how the patch spelt it before it was merged.
fn is_rt(sources: &Sources, version: &str) -> bool {
    ["PREEMPT_RT", "PREEMPT_RT_FULL"]
        .iter()
        .any(|name| sources.is_set(name) == Some(true))
        || kernel::says_rt(version)
}

fn dynamic(sources: &Sources, version: &str) -> Fact<bool> {
    match &sources.config {
        Ok(config) => Fact::known(config.is_set("PREEMPT_DYNAMIC"), config.file()),
        Err(_) if version.contains("PREEMPT_DYNAMIC") => {
            Fact::known(true, "/proc/sys/kernel/version")
        }
        Err(unknown) => Fact::unknown(unknown.clone(), sources.config_file()),
    }
}

/// The model the kernel was built with, or built to start with.
fn built_in(sources: &Sources) -> Result<Model, Unknown> {
    let config = sources.config.as_ref().map_err(Clone::clone)?;
    let models = [
        ("PREEMPT_NONE", Model::None),
        ("PREEMPT_VOLUNTARY", Model::Voluntary),
        ("PREEMPT_LAZY", Model::Lazy),
        ("PREEMPT", Model::Full),
    ];
    let found = models.iter().find(|(name, _)| config.is_set(name));
    found.map(|&(_, model)| model).ok_or_else(|| {
        let text = format!("{} names no preemption model", config.file());
        Unknown::new(Why::Absent, text)
    })
}

/// Model and chooser of a kernel whose model can be chosen: from debugfs, else from
/// what the kernel said, else from what it was built with and asked for.
fn chosen_model(sources: &Sources) -> (Fact<Model>, Fact<Chosen>) {
    let built = built_in(sources);
    let asked = asked(sources);
    let start = match &asked {
        Some(model) => Ok(*model),
        None => built.clone(),
    };
    let by_whom = |model: Model| match (&asked, &built) {
        (Some(asked), _) if *asked == model => Ok(Chosen::Boot),
        (None, Ok(built)) if *built == model => Ok(Chosen::Default),
        (None, Err(unknown)) => Err(unknown.clone()),
        _ => Ok(Chosen::RunTime),
    };
    let boot_files = format!("{}, {}", command_line::FILE, sources.config_file());
    if let Ok(text) = sources.root.text(DEBUGFS) {
        let model = marked(&text);
        let chosen = model.clone().and_then(by_whom);
        let source = format!("{DEBUGFS}, {boot_files}");
        return (Fact::of(model, DEBUGFS), Fact::of(chosen, source));
    }
    if let Some(model) = last_said(sources) {
        let files = format!("{}, {boot_files}", kernel_log::FILE);
        return (Fact::known(model, kernel_log::FILE), Fact::of(by_whom(model), files));
    }
    let source = format!("{boot_files}; a change since boot is not seen");
    let chosen = start.clone().and_then(by_whom);
    (Fact::of(start, &*source), Fact::of(chosen, source))
}

/// The model in parentheses.
fn marked(text: &str) -> Result<Model, Unknown> {
    let garbage = || Unknown::garbage(DEBUGFS, 1, text, "a list of models, one in ( )");
    let mark = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix('(').and_then(|word| word.strip_suffix(')')));
    mark.and_then(named).ok_or_else(garbage)
}

pub(crate) fn named(name: &str) -> Option<Model> {
    match name {
        "none" => Some(Model::None),
        "voluntary" => Some(Model::Voluntary),
        "lazy" | "laziest" => Some(Model::Lazy),
        "full" => Some(Model::Full),
        _ => None,
    }
}

/// The model the kernel last said it uses.
fn last_said(sources: &Sources) -> Option<Model> {
    let log = sources.log.as_ref().ok()?;
    log.all(SAID).filter_map(|message| named(message.strip_prefix(SAID)?.trim())).last()
}

/// The model `preempt=` asks for, where this kernel takes it.
fn asked(sources: &Sources) -> Option<Model> {
    let line = sources.command_line.as_ref().ok()?;
    let given = line.all("preempt").filter(|given| {
        let value = given.value.as_deref().unwrap_or_default();
        named(value).is_some() && !refuses(sources, value)
    });
    given.last().and_then(|given| named(given.value.as_deref()?))
}

/// Whether this kernel is known to refuse that value of `preempt=`.
fn refuses(sources: &Sources, value: &str) -> bool {
    said_refused(sources, value)
        || parameters::applying("preempt", value, sources).is_some()
}

/// Whether the kernel itself said that it refuses that value of `preempt=`.
pub(crate) fn said_refused(sources: &Sources, value: &str) -> bool {
    let is_refusal = |message: &str| {
        message.strip_prefix(REFUSED).is_some_and(|mode| mode.trim() == value)
    };
    sources.log.as_ref().is_ok_and(|log| log.all(REFUSED).any(is_refusal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    /// Check that the mark is found among each generation's models.
    #[test]
    fn finds_the_mark() {
        for (text, model) in [
            ("none (voluntary) full\n", Model::Voluntary),
            ("(none) voluntary full lazy\n", Model::None),
            ("full (lazy) \n", Model::Lazy),
        ] {
            assert_eq!(marked(text), Ok(model), "{text}");
        }
        for text in ["", "none full", "(none voluntary", "(fast)"] {
            assert_eq!(marked(text).unwrap_err().code, Why::Garbage, "{text}");
        }
    }

    const CONFIG: &str = "CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT_VOLUNTARY=y\n";

    fn on(line: &str, more: &[(&str, &str)]) -> Preempt {
        let mut files = vec![
            ("/proc/sys/kernel/osrelease", "6.8.0"),
            ("/boot/config-6.8.0", CONFIG),
            ("/proc/cmdline", line),
        ];
        files.extend_from_slice(more);
        Preempt::read(&tree(&files).sources())
    }

    /// Check who is said to have chosen the model, from the best evidence there is.
    #[test]
    fn who_chose() {
        let debugfs = |text| (DEBUGFS, text);
        let log = |text| (kernel_log::FILE, text);
        let said = "6,0,0,-;Dynamic Preempt: voluntary\n";
        let changed = "6,0,0,-;Dynamic Preempt: full\n6,9,0,-;Dynamic Preempt: none\n";
        let refused = "4,0,0,-;Dynamic Preempt: unsupported mode: full\n\
                       6,1,0,-;Dynamic Preempt: voluntary\n";
        let voluntary = "none (voluntary) full\n";
        for (line, more, model, chosen) in [
            ("", debugfs(voluntary), Model::Voluntary, Chosen::Default),
            ("preempt=full", debugfs("none voluntary (full)"), Model::Full, Chosen::Boot),
            ("preempt=full", debugfs(voluntary), Model::Voluntary, Chosen::RunTime),
            ("", debugfs("(none) voluntary full"), Model::None, Chosen::RunTime),
            ("", log(said), Model::Voluntary, Chosen::Default),
            ("preempt=full", log(changed), Model::None, Chosen::RunTime),
            ("preempt=full", log(refused), Model::Voluntary, Chosen::Default),
            ("preempt=none", log("6,9,0,-;x\n"), Model::None, Chosen::Boot),
            ("preempt=lazy", log("6,9,0,-;x\n"), Model::Voluntary, Chosen::Default),
            ("preempt=fast", debugfs(voluntary), Model::Voluntary, Chosen::Default),
        ] {
            let preempt = on(line, &[more]);
            assert_eq!(preempt.model.get(), Some(&model), "{line} {more:?}");
            assert_eq!(preempt.chosen.get(), Some(&chosen), "{line} {more:?}");
        }
    }

    /// Check that without debugfs and messages the source says what is not seen.
    #[test]
    fn says_what_it_does_not_see() {
        let source = on("", &[]).model.source().to_owned();
        assert!(source.contains("a change since boot is not seen"), "{source}");
    }

    /// Check that `PREEMPT_RT` is known by its configuration and by its version, in the
    /// spelling of the patch too, and that other models stay unknown without the first.
    #[test]
    fn real_time() {
        let release = ("/proc/sys/kernel/osrelease", "6.12.1-rt");
        let read = |file, text| {
            Preempt::read(&tree(&[release, (file, text)]).sources()).model.get().copied()
        };
        let version = "/proc/sys/kernel/version";
        assert_eq!(
            read("/boot/config-6.12.1-rt", "CONFIG_PREEMPT_RT=y\n"),
            Some(Model::Rt)
        );
        assert_eq!(read(version, "#1 SMP PREEMPT_RT Debian 6.12.1"), Some(Model::Rt));
        assert_eq!(read(version, "#1 SMP PREEMPT RT Debian 4.9"), Some(Model::Rt));
        assert_eq!(read(version, "#1 SMP PREEMPT Debian 6.12.1"), None);
        let patched = "CONFIG_PREEMPT=y\nCONFIG_PREEMPT_RT_FULL=y\n";
        assert_eq!(read("/boot/config-6.12.1-rt", patched), Some(Model::Rt));
    }
}
