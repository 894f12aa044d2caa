//! The reports of `advise --emit` and `advise --verify`: which files were written and what they lack, and which
//! of their settings are in force.

use advise::{Emitted, Format, Manifest, SettingState, Verified};
use serde::Serialize;

use crate::document::Document;
use crate::document::list::{Item, List};
use crate::document::text::{Text, text};
use crate::json::object;
use crate::number;

/// The files that were written to a folder.
pub fn emitted_document(emitted: &Emitted, format: Format, dir: &str) -> Document {
    let path = |path: &str| format!("{}/{path}", dir.trim_end_matches('/'));
    let files =
        emitted.files.iter().map(|file| Item::from(Text::name(file.path.as_str())));
    let first = ["install.sh", "apply.sh", "playbook.yml"];
    let first =
        first.into_iter().find(|name| emitted.files.iter().any(|it| it.path == *name));
    let left = emitted.left_out.iter();
    let left =
        left.map(|one| text!("{}: {}", Text::name(one.rule.as_str()), one.why.as_str()));
    let quoted = |name: &str| format!("'{}'", path(name).replace('\'', r"'\''"));
    let apply = match first {
        Some("playbook.yml") => {
            Some(format!("ansible-playbook -i INVENTORY {}", quoted("playbook.yml")))
        }
        Some(name) => Some(format!("sudo sh {}", quoted(name))),
        None => None,
    };
    let verify = format!("noisefloor advise --verify '{}'", dir.replace('\'', r"'\''"));
    let next = Item::new("Apply them, and see afterwards which settings are in force:")
        .all_commands(apply.into_iter().chain([verify]).collect());
    Document::from(text!(
        "{} files for {} in {}; rules that they apply: {}.",
        emitted.files.len().to_string(),
        format.name(),
        Text::name(dir),
        emitted.rules.len().to_string(),
    ))
    .add(List::bullets(files))
    .add(Document::section(
        text!("Chosen, but not expressible as {}", format.name()),
        List::bullets(left),
    ))
    .add(List::lines([next]))
    .titled("noisefloor advise --emit")
}

/// The same as JSON.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn emitted_json(
    emitted: &Emitted,
    format: Format,
    dir: &str,
) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Files<'a> {
        emitted: &'static str,
        folder: &'a str,
        files: Vec<&'a str>,
        rules: &'a [String],
        left_out: Vec<Missing<'a>>,
    }
    #[derive(Serialize)]
    struct Missing<'a> {
        rule: &'a str,
        why: &'a str,
    }
    let left = emitted.left_out.iter();
    object(
        "emitted",
        Files {
            emitted: format.name(),
            folder: dir,
            files: emitted.files.iter().map(|file| &*file.path).collect(),
            rules: &emitted.rules,
            left_out: left
                .map(|one| Missing { rule: &one.rule, why: &one.why })
                .collect(),
        },
    )
}

/// Which settings of a folder are in force.
pub fn verified_document(manifest: &Manifest, verified: &[Verified]) -> Document {
    let in_force =
        verified.iter().filter(|one| one.state == SettingState::InForce).count();
    let left = manifest.left_out.len();
    let also = (left > 0).then(|| {
        let rules = number::counted(left as u64, "rule");
        text!("; the files do not have the changes of {} that were chosen, too", rules)
    });
    Document::from(text!(
        "{} of {} settings are in force ({}, made {} for --goal {}){}.",
        in_force.to_string(),
        verified.len().to_string(),
        manifest.emitted.as_str(),
        manifest.taken.as_str(),
        manifest.goal.as_str(),
        also,
    ))
    .add(List::bullets(verified.iter().map(setting)))
    .titled("noisefloor advise --verify")
}

fn setting(one: &Verified) -> Text {
    let entry = &one.entry;
    let what = match (&entry.name, &entry.value, &entry.boot, &entry.unboot) {
        (_, _, _, Some(name)) => text!("no boot parameter {}", Text::name(name.as_str())),
        (Some(name), Some(value), _, _) => {
            text!("{} = {}", Text::name(name.as_str()), Text::name(value.as_str()))
        }
        (_, _, boot, _) => {
            text!("boot parameter {}", Text::name(boot.as_deref().unwrap_or_default()))
        }
    };
    let state = match &one.state {
        SettingState::InForce => Text::from("in force"),
        SettingState::NeedsReboot => "needs a reboot".into(),
        SettingState::Differs { now, by } => {
            let now = match now.as_deref() {
                None => Text::from("not set"),
                Some("") => "set".into(),
                Some(now) => text!("now {}", Text::name(now)),
            };
            let by = (!by.is_empty())
                .then(|| text!("; {} could have changed it", Text::name(by.join(", "))));
            text!("not in force: {}{}", now, by)
        }
        SettingState::Unknown { why } => text!("unknown: {}", why.as_str()),
    };
    text!("{}: {} ({})", what, state, Text::name(entry.rule.as_str()))
}

/// The same as JSON.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn verified_json(
    manifest: &Manifest,
    verified: &[Verified],
) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct States<'a> {
        taken: &'a str,
        emitted: &'a str,
        goal: &'a str,
        settings: &'a [Verified],
    }
    let Manifest { taken, emitted, goal, .. } = manifest;
    object("verified", States { taken, emitted, goal, settings: verified })
}

#[cfg(test)]
mod tests {
    use advise::{Entry, LeftOut};
    use insta::assert_snapshot;

    use super::*;
    use crate::terminal::screen_text;

    fn entry(name: &str, boot: Option<&str>) -> Entry {
        Entry {
            rule: "some-rule".into(),
            name: boot.is_none().then(|| name.to_owned()),
            value: boot.is_none().then(|| "10".to_owned()),
            boot: boot.map(str::to_owned),
            unboot: None,
            before: None,
        }
    }

    /// Check the lines of each state, and that a value cannot begin a line of its own.
    #[test]
    fn states() {
        let manifest = r#"{"format": 1, "kind": "advice_files", "tool": "noisefloor 0",
            "taken": "2026-01-01T00:00:00Z", "taken_s": 0, "emitted": "sysctl",
            "goal": "latency", "settings": [],
            "left_out": [{"rule": "other", "why": "a boot parameter"}]}"#;
        let manifest = Manifest::parse(manifest).unwrap();
        let undone = SettingState::Differs {
            now: Some("5\n\u{1b}[31m".into()),
            by: vec!["tuned".into(), "/etc/sysctl.d/99-other.conf".into()],
        };
        let unset = SettingState::Differs { now: None, by: Vec::new() };
        let unknown = SettingState::Unknown { why: "no kubelet runs here".into() };
        let verified = [
            (entry("vm.stat_interval", None), SettingState::InForce),
            (entry("", Some("nohz_full=1-3")), SettingState::NeedsReboot),
            (entry("", Some("skew_tick=1")), unset),
            (entry("vm.swappiness", None), undone),
            (entry("kubelet", None), unknown),
        ]
        .map(|(entry, state)| Verified { entry, state });
        assert_snapshot!(screen_text(&verified_document(&manifest, &verified)));
    }

    /// Check that a report names what is left out, and quotes the folder in commands.
    #[test]
    fn what_is_left_out() {
        let emitted = Emitted {
            files: Vec::new(),
            rules: vec!["one".into()],
            left_out: vec![LeftOut { rule: "two".into(), why: "by hand".into() }],
        };
        let document = emitted_document(&emitted, Format::Sysctl, "it's/");
        assert_snapshot!(screen_text(&document));
    }
}
