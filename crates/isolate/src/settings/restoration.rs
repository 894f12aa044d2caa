//! Restoring settings: those of a run that ends, and those left behind by killed runs.

use std::io;

use crate::error::{Error, Kind};
use crate::settings::journal::{self, Entry, Journal};
use crate::settings::lease::state_path;
use crate::settings::run_lock;
use crate::settings::setting::Setting;
use crate::settings::state::State;

/// A setting to restore, and the outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredSetting {
    /// The setting.
    pub setting: Setting,
    /// The original value.
    pub old: String,
    /// The outcome.
    pub outcome: RestoreOutcome,
}

/// The outcome of restoring a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// The setting has its original value.
    Restored,
    /// Another process has set this value in the meantime; it was not changed.
    LeftAlone(String),
    /// The setting no longer exists: the machine was rebooted, a thread ended, a device was
    /// removed.
    Gone,
    /// The kernel rejected the write with this error; the setting remains in the journal.
    Refused(String),
    /// Runs of these processes still need the change; the setting remains in the journal.
    Needed(Vec<u32>),
}

/// Restores settings left behind by killed runs; returns the outcome of each changed setting. Does
/// not wait for a lock if no setting is changed.
///
/// # Errors
/// `Kind::Journal` if the journal cannot be read or written, `Kind::Privilege` if this user may not
/// access it.
pub fn restore() -> Result<Vec<RestoredSetting>, Error> {
    let Some(state) = existing_state()? else { return Ok(Vec::new()) };
    match Journal::exists(&state)? {
        true => restore_entries(&mut Journal::open(&state)?, None),
        false => Ok(Vec::new()),
    }
}

/// The settings that runs of this process have changed and not restored, with their original values.
/// Does not wait for a lock.
///
/// # Errors
/// Those of [`restore`].
pub fn unrestored() -> Result<Vec<(Setting, String)>, Error> {
    let Some(state) = existing_state()? else { return Ok(Vec::new()) };
    let is_own = |name: &String| run_lock::process(name) == Some(std::process::id());
    let mut entries = journal::entries(&state)?;
    entries.retain(|entry| entry.holders.iter().any(is_own));
    Ok(entries.into_iter().map(|entry| (entry.setting, entry.old)).collect())
}

/// The state directory; `None` without one.
fn existing_state() -> Result<Option<State>, Error> {
    let path = state_path()?;
    match State::open(&path) {
        Ok(state) => Ok(Some(state)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let text = format!("failed to open {}", path.display());
            Err(Error::new(Kind::Privilege, text).caused_by(error))
        }
        Err(error) => Err(journal::refused(&path, error)),
    }
}

/// Restores, in reverse order, settings that are needed only by `leaving` and by ended runs.
pub(crate) fn restore_entries(
    journal: &mut Journal<'_>,
    leaving: Option<&str>,
) -> Result<Vec<RestoredSetting>, Error> {
    let (boot, state) = (journal::boot_id(), journal.state());
    let mut restored = Vec::new();
    let mut remaining = Vec::new();
    for mut entry in std::mem::take(&mut journal.entries).into_iter().rev() {
        let stays = |name: &String| {
            Some(name.as_str()) != leaving && run_lock::is_active(state, name)
        };
        entry.holders.retain(stays);
        let outcome = match entry.boot_id == boot {
            false => RestoreOutcome::Gone,
            true if entry.holders.is_empty() => restore_entry(&entry),
            true => RestoreOutcome::Needed(
                entry.holders.iter().filter_map(|name| run_lock::process(name)).collect(),
            ),
        };
        let (setting, old) = (entry.setting.clone(), entry.old.clone());
        if matches!(outcome, RestoreOutcome::Refused(_) | RestoreOutcome::Needed(_)) {
            remaining.push(entry);
        }
        restored.push(RestoredSetting { setting, old, outcome });
    }
    remaining.reverse();
    journal.entries = remaining;
    // The journal is written after the settings are restored: if this process is killed in between,
    // the next run restores them again, which has no effect.
    journal.save()?;
    Ok(restored)
}

fn restore_entry(entry: &Entry) -> RestoreOutcome {
    let now = match entry.setting.read() {
        Err(error) => return outcome_of(&error),
        Ok(now) => now,
    };
    if now == entry.old {
        return RestoreOutcome::Restored;
    }
    if !entry.new.contains(&now) {
        return RestoreOutcome::LeftAlone(now);
    }
    // The kernel may accept a value and ignore it.
    match entry.setting.write(&entry.old).and_then(|()| entry.setting.read()) {
        Ok(now) if now == entry.old || !entry.setting.is_file() => {
            RestoreOutcome::Restored
        }
        Ok(now) => RestoreOutcome::Refused(format!("the kernel made it {now}")),
        Err(error) => outcome_of(&error),
    }
}

fn outcome_of(error: &io::Error) -> RestoreOutcome {
    let has_ended = error.raw_os_error() == Some(libc::ESRCH);
    match has_ended || error.kind() == io::ErrorKind::NotFound {
        true => RestoreOutcome::Gone,
        false => RestoreOutcome::Refused(error.to_string()),
    }
}
