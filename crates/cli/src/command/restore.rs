//! `restore`: restores settings left behind by a killed run.
//!
//! Only root can read the journal of root's runs: for another user, it is unknown whether it has
//! settings to restore.

use std::path::Path;

use isolate::{RestoreOutcome, RestoredSetting};
use serde_json::{Value, json};
use units::printable;

use crate::args::Output;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print, print_json};
use crate::remarks::line;

pub(crate) fn run(output: Output) -> Result<Outcome, Failure> {
    let returned = isolate::restore()?;
    let root_state_path = isolate::root_state_path();
    if output.json {
        let settings: Vec<Value> = returned.iter().map(value).collect();
        let object = json!({"format": 1, "kind": "restore", "settings": settings});
        print_json(&format!("{object:#}"))?;
    } else {
        print(&text(&returned, root_state_path.is_some()))?;
    }
    let refused = returned
        .iter()
        .filter(|one| matches!(one.outcome, RestoreOutcome::Refused(_)))
        .count();
    if refused > 0 {
        return Err(Failure::refused(stays(refused, returned.len())));
    }
    match root_state_path {
        Some(path) => Err(Failure::refused(unseen(path))),
        None => Ok(Outcome::Done),
    }
}

/// One line per setting. `is_part`: there may be settings of root's runs, too.
fn text(returned: &[RestoredSetting], is_part: bool) -> String {
    match (returned, is_part) {
        ([], false) => "Nothing to restore.\n".to_owned(),
        ([], true) => "Nothing to restore from runs of this user.\n".to_owned(),
        (returned, _) => {
            returned.iter().map(|one| printable(&line(one)).into_owned() + "\n").collect()
        }
    }
}

/// How many settings were not restored, and a hint for users who are not root. The reason of each
/// is in its line.
fn stays(refused: usize, all: usize) -> String {
    let hint = match rustix::process::geteuid().is_root() {
        true => "",
        false => "; hint: run it as root",
    };
    format!("failed to restore {refused} of {all} settings{hint}")
}

/// The message about root's journal for other users.
fn unseen(path: &Path) -> String {
    format!(
        "settings changed by runs of root are not listed: only root can read {}; hint: sudo \
         noisefloor restore",
        path.display()
    )
}

fn value(returned: &RestoredSetting) -> Value {
    let (outcome, more) = match &returned.outcome {
        RestoreOutcome::Restored => ("restored", None),
        RestoreOutcome::Gone => ("gone", None),
        RestoreOutcome::LeftAlone(now) => ("left_alone", Some(("now", json!(now)))),
        RestoreOutcome::Refused(why) => ("refused", Some(("why", json!(why)))),
        RestoreOutcome::Needed(processes) => {
            ("needed", Some(("processes", json!(processes))))
        }
    };
    let setting = returned.setting.to_string();
    let mut value = json!({"setting": setting, "old": returned.old, "fate": outcome});
    if let (Some((key, more)), Value::Object(fields)) = (more, &mut value) {
        fields.insert(key.to_owned(), more);
    }
    value
}
