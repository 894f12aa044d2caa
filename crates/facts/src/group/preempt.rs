//! The preemption model, and where it was selected.
//!
//! From the kernel's configuration; with `PREEMPT_DYNAMIC` (since 5.12) also from
//! `/sys/kernel/debug/sched/preempt`, which requires root and no lockdown, or else from the
//! kernel's messages, or else from `preempt=`.
//!
//! Without debugfs and messages, a change since boot is not detected.

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
    /// Not until it returns to user space or sleeps.
    None,
    /// At explicit preemption points.
    Voluntary,
    /// Immediately by real-time tasks, by others at the next tick.
    Lazy,
    /// Immediately.
    Full,
    /// Immediately, also in interrupt handlers and most locks (`PREEMPT_RT`).
    Rt,
}

/// Where the preemption model was selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    /// In the configuration; it cannot be changed.
    Static,
    /// In the configuration, without a later change.
    Default,
    /// By `preempt=` on the command line.
    Boot,
    /// By a write to debugfs.
    RunTime,
}

group! {
    /// Preemption.
    "preempt" Preempt {
        /// The current model.
        model: Model,
        /// Where it was selected.
        chosen: Chosen,
        /// Whether it can be selected at boot (`PREEMPT_DYNAMIC`).
        dynamic: bool,
    }
}

/// The file to read and change the model, with the current one in parentheses (since 5.12, with
/// `PREEMPT_DYNAMIC`).
const DEBUGFS: &str = "/sys/kernel/debug/sched/preempt";
/// The kernel's message when the model is set, at boot or later.
pub(crate) const MODEL_MESSAGE: &str = "Dynamic Preempt: ";
/// The kernel's message for an unknown model.
pub(crate) const REFUSAL_MESSAGE: &str = "Dynamic Preempt: unsupported mode: ";

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

/// Whether the kernel is a `PREEMPT_RT` kernel; `PREEMPT_RT_FULL` and `PREEMPT RT` are the
/// spellings of the patch before it was merged.
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

/// The model in the configuration, which may be only the default.
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

/// The model of a `PREEMPT_DYNAMIC` kernel, and where it was selected: from debugfs, or else from
/// the kernel's messages, or else from the configuration and the command line.
fn chosen_model(sources: &Sources) -> (Fact<Model>, Fact<Chosen>) {
    let built = built_in(sources);
    let requested = requested(sources);
    let start = match &requested {
        Some(model) => Ok(*model),
        None => built.clone(),
    };
    let chosen_by = |model: Model| match (&requested, &built) {
        (Some(requested), _) if *requested == model => Ok(Chosen::Boot),
        (None, Ok(built)) if *built == model => Ok(Chosen::Default),
        (None, Err(unknown)) => Err(unknown.clone()),
        _ => Ok(Chosen::RunTime),
    };
    let boot_files = format!("{}, {}", command_line::FILE, sources.config_file());
    if let Ok(text) = sources.root.text(DEBUGFS) {
        let model = marked(&text);
        let chosen = model.clone().and_then(chosen_by);
        let source = format!("{DEBUGFS}, {boot_files}");
        return (Fact::of(model, DEBUGFS), Fact::of(chosen, source));
    }
    if let Some(model) = last_logged(sources) {
        let files = format!("{}, {boot_files}", kernel_log::FILE);
        return (Fact::known(model, kernel_log::FILE), Fact::of(chosen_by(model), files));
    }
    let source = format!("{boot_files}; a change since boot is not detected");
    let chosen = start.clone().and_then(chosen_by);
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

/// The model in the kernel's last message.
fn last_logged(sources: &Sources) -> Option<Model> {
    let log = sources.log.as_ref().ok()?;
    log.all(MODEL_MESSAGE)
        .filter_map(|message| named(message.strip_prefix(MODEL_MESSAGE)?.trim()))
        .last()
}

/// The model of `preempt=`, if this kernel accepts it.
fn requested(sources: &Sources) -> Option<Model> {
    let line = sources.command_line.as_ref().ok()?;
    let given = line.all("preempt").filter(|given| {
        let value = given.value.as_deref().unwrap_or_default();
        named(value).is_some() && !refuses(sources, value)
    });
    given.last().and_then(|given| named(given.value.as_deref()?))
}

/// Whether this kernel is known to reject a value of `preempt=`.
fn refuses(sources: &Sources, value: &str) -> bool {
    has_logged_refusal(sources, value)
        || parameters::find_rule("preempt", value, sources).is_some()
}

/// Whether the kernel has logged that it rejects a value of `preempt=`.
pub(crate) fn has_logged_refusal(sources: &Sources, value: &str) -> bool {
    let is_refusal = |message: &str| {
        message.strip_prefix(REFUSAL_MESSAGE).is_some_and(|mode| mode.trim() == value)
    };
    sources.log.as_ref().is_ok_and(|log| log.all(REFUSAL_MESSAGE).any(is_refusal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    /// Check that the current model is found in the formats of all kernels.
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

    /// Check where the model was selected, by the best available source.
    #[test]
    fn selection() {
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

    /// Check that the source has a note if debugfs and messages are missing.
    #[test]
    fn limits_are_in_the_source() {
        let source = on("", &[]).model.source().to_owned();
        assert!(source.contains("a change since boot is not detected"), "{source}");
    }

    /// Check that `PREEMPT_RT` is detected by configuration and version, also in the spelling of
    /// the patch, and that other models are unknown without the configuration.
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
