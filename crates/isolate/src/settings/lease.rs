//! A lease of changed settings: what one run changes on this machine, and restores.
//!
//! A setting is changed only after the change was recorded ([`crate::settings::journal`]). Several
//! runs may need the same setting changed: the last of them restores the original value. A value
//! that another process has set in the meantime is not overwritten.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind};
use crate::settings::change::{Change, To};
use crate::settings::journal::{self, Entry, Journal};
use crate::settings::restoration::{RestoreOutcome, RestoredSetting, restore_entries};
use crate::settings::run_lock::{self, RunLock};
use crate::settings::setting::Setting;
use crate::settings::state::{self, State};
use crate::task::describe_process;

/// The kernel's form of a partition that is not valid: `isolated invalid (reason)`.
const INVALID: &str = " invalid";

/// Settings that one run has changed; restored when this is dropped.
#[derive(Debug)]
pub struct Lease {
    run: RunLock,
    state: State,
    is_restored: bool,
}

impl Lease {
    /// Begins a lease, after restoring the settings left behind by killed runs.
    pub(crate) fn begin(path: &Path) -> Result<(Self, Vec<RestoredSetting>), Error> {
        let failed = |error: io::Error| journal::refused(path, error);
        let state = State::create(path).map_err(failed)?;
        let mut journal = Journal::open(&state)?;
        let mut left = restore_entries(&mut journal, None)?;
        left.retain(|setting| !matches!(setting.outcome, RestoreOutcome::Needed(_)));
        let run = RunLock::new(&state).map_err(failed)?;
        drop(journal);
        Ok((Self { run, state, is_restored: false }, left))
    }

    /// Records changes, then makes them in order; returns the result of each.
    ///
    /// # Errors
    /// `Kind::Journal` if a change cannot be recorded; changes that are not recorded are not made.
    /// Of each change: `Kind::Privilege`, `Kind::NoSetting` or `Kind::System` if the kernel rejects
    /// it; the setting is then unchanged, or stays in the journal.
    pub(crate) fn set(
        &mut self,
        changes: &[Change],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        self.set_in(&mut Journal::open(&self.state)?, changes)
    }

    /// The same, unless another run has changed one of the settings: values would not be those that
    /// either of both measures with.
    ///
    /// # Errors
    /// Those of [`Self::set`]; `Kind::Taken` if another run needs a setting.
    pub(crate) fn set_alone(
        &mut self,
        changes: &[Change],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let mut journal = Journal::open(&self.state)?;
        for Change { setting, .. } in changes {
            let own = journal.entries.iter().filter(|entry| entry.setting == *setting);
            let mut holders = own.flat_map(|entry| &entry.holders);
            if let Some(other) = holders.find(|name| {
                **name != self.run.name && run_lock::is_active(&self.state, name)
            }) {
                let process = run_lock::process(other).map(describe_process);
                let process = process.unwrap_or_else(|| "another process".to_owned());
                let text =
                    format!("{process} has changed {setting}, and will restore it");
                return Err(Error::new(Kind::Taken, text));
            }
        }
        self.set_in(&mut journal, changes)
    }

    fn set_in(
        &self,
        journal: &mut Journal<'_>,
        changes: &[Change],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let before = journal.entries.clone();
        // A setting that does not exist yet may be created by an earlier change. Settings are
        // restored in reverse order of the journal, so everything from there on is recorded later,
        // one by one.
        let known = changes.iter().map_while(|change| change.setting.read().ok());
        let known: Vec<String> = known.collect();
        for (change, now) in changes.iter().zip(&known) {
            self.note(journal, change, now);
        }
        journal.save()?;
        let mut done = Vec::new();
        for (number, change) in changes.iter().enumerate() {
            let is_noted = number < known.len();
            done.push(match self.carry_out(journal, change, is_noted) {
                Err(why) if why.kind() == Kind::Journal => return Err(why),
                Err(why) => {
                    revert_change(journal, &before, &change.setting);
                    Err(why)
                }
                Ok(()) => Ok(()),
            });
        }
        journal.save()?;
        Ok(done)
    }

    /// Makes one change; records it first if this was not possible before.
    fn carry_out(
        &self,
        journal: &mut Journal<'_>,
        change: &Change,
        is_noted: bool,
    ) -> Result<(), Error> {
        let Change { setting, to } = change;
        let (To::Value(value) | To::Transient(value)) = to else { return Ok(()) };
        let failed = |error: io::Error| refused(setting, value, error);
        let now = setting.read().map_err(failed)?;
        if !is_noted && matches!(to, To::Value(_)) {
            self.note(journal, change, &now);
            journal.save()?;
        }
        if now == *value {
            return Ok(());
        }
        let written = setting.write(value).and_then(|()| setting.read());
        let shown = written.map_err(|error| {
            // Of a list of numbers the kernel has stored those before the one that it rejects.
            if setting.is_file() && setting.read().is_ok_and(|shown| shown != now) {
                let _ = setting.write(&now);
            }
            failed(error)
        })?;
        if shown.starts_with(value) && shown.contains(INVALID) {
            // The partition exists but is not effective.
            let _ = setting.write(&now);
            return Err(failed(io::Error::other(shown)));
        }
        let noted = journal.entries.iter_mut().find(|entry| entry.setting == *setting);
        let Some(entry) = noted.filter(|_| shown != *value) else { return Ok(()) };
        // The kernel's form of the value differs from the written one.
        entry.new.push(shown);
        journal.save()
    }

    /// Records the values to which this run, or the kernel as a side effect, sets a setting. A
    /// setting that already has the value, and is not in the journal, needs no entry.
    fn note(&self, journal: &mut Journal<'_>, change: &Change, now: &str) {
        let Change { setting, to } = change;
        let values = match to {
            // Not a setting of the machine: removed with its cgroup.
            To::Transient(_) => return,
            To::Value(value) => std::slice::from_ref(value),
            To::SideEffect(values) => values,
        };
        let known = journal.entries.iter().position(|entry| entry.setting == *setting);
        if known.is_none() && values.iter().all(|value| value == now) {
            return;
        }
        let at = known.unwrap_or_else(|| {
            journal.entries.push(Entry::of(setting, now));
            journal.entries.len() - 1
        });
        let entry = &mut journal.entries[at];
        if entry.old != now && !entry.new.iter().any(|new| new == now) {
            // Another process has changed it in the meantime: that value becomes the one to
            // restore.
            now.clone_into(&mut entry.old);
            entry.new.clear();
        }
        entry.new.retain(|known| !values.contains(known));
        entry.new.extend_from_slice(values);
        entry.holders.retain(|known| *known != self.run.name);
        entry.holders.push(self.run.name.clone());
    }

    /// Restores all settings that no other run needs, in reverse order.
    ///
    /// # Errors
    /// `Kind::Journal` if the journal can no longer be read.
    pub fn end(mut self) -> Result<Vec<RestoredSetting>, Error> {
        self.restore_entries()
    }

    /// Leaves the settings as they are: this run no longer needs them restored. One that another run
    /// needs, too, is restored by that run.
    ///
    /// # Errors
    /// `Kind::Journal` if the journal cannot be read or written; the settings are then restored.
    pub(crate) fn leave(mut self) -> Result<(), Error> {
        let mut journal = Journal::open(&self.state)?;
        for entry in &mut journal.entries {
            entry.holders.retain(|name| *name != self.run.name);
        }
        journal.entries.retain(|entry| !entry.holders.is_empty());
        journal.save()?;
        self.is_restored = true;
        Ok(())
    }

    fn restore_entries(&mut self) -> Result<Vec<RestoredSetting>, Error> {
        if std::mem::replace(&mut self.is_restored, true) || !self.run.is_own() {
            return Ok(Vec::new());
        }
        let mut journal = Journal::open_to_restore(&self.state)?;
        let mut restored = restore_entries(&mut journal, Some(&self.run.name))?;
        restored.retain(|setting| !matches!(setting.outcome, RestoreOutcome::Needed(_)));
        Ok(restored)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // After a panic, errors cannot be reported; settings that remain are in the journal.
        let _ = self.restore_entries();
    }
}

/// The path of this user's state directory.
pub(crate) fn state_path() -> Result<PathBuf, Error> {
    let text = "failed to find the state directory";
    state::path().map_err(|error| Error::new(Kind::Journal, text).caused_by(error))
}

/// Reverts the journal entry of a change that was not made; one that was made in part stays.
fn revert_change(journal: &mut Journal<'_>, before: &[Entry], setting: &Setting) {
    let at = journal.entries.iter().position(|entry| entry.setting == *setting);
    let Some(at) = at else { return };
    let earlier = before.iter().find(|entry| entry.setting == *setting);
    let entry = &mut journal.entries[at];
    let is_known = |shown: &String| match earlier {
        Some(earlier) => earlier.old == *shown || earlier.new.contains(shown),
        None => entry.old == *shown,
    };
    match setting.read() {
        Ok(shown) if setting.is_file() && !is_known(&shown) => entry.new.push(shown),
        _ => match earlier {
            Some(earlier) => *entry = earlier.clone(),
            None => drop(journal.entries.remove(at)),
        },
    }
}

fn refused(setting: &Setting, value: &str, error: io::Error) -> Error {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a large enum of std")]
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => Kind::Privilege,
        io::ErrorKind::NotFound => Kind::NoSetting,
        _ => Kind::System,
    };
    Error::new(kind, format!("failed to set {setting} = {value}")).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Task;
    use crate::thread::{affinity_of, mask_of, set_affinity_of};
    use std::process::{Child, Command};
    use units::CpuSet;

    /// A setting that no other process changes: the affinity of a sleeping process.
    struct Sleeper {
        child: Child,
        setting: Setting,
    }

    impl Sleeper {
        fn new() -> Self {
            let child = Command::new("sleep").arg("1000").spawn().unwrap();
            let stat = crate::task::Stat::of(child.id()).unwrap();
            Self { child, setting: Setting::Affinity(Task { ..stat.task }) }
        }

        fn now(&self) -> String {
            affinity_of(self.child.id()).unwrap().to_string()
        }

        /// Changes the setting as another process would.
        fn change(&self, cpus: &str) {
            let cpus: CpuSet = cpus.parse().unwrap();
            set_affinity_of(self.child.id(), &mask_of(&cpus)).unwrap();
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }

    /// A sleeper that may use two CPUs, with three affinities: the first, the second, and both.
    fn sleeper() -> Option<(Sleeper, [String; 3])> {
        let sleeper = Sleeper::new();
        let cpus: CpuSet = sleeper.now().parse().unwrap();
        if cpus.len() < 2 {
            println!("skipped: lease: there is one CPU");
            return None;
        }
        let two: Vec<_> = cpus.iter().take(2).collect();
        let of =
            |cpus: &[units::Cpu]| cpus.iter().copied().collect::<CpuSet>().to_string();
        let names = [of(&two[..1]), of(&two[1..]), of(&two)];
        sleeper.change(&names[2]);
        Some((sleeper, names))
    }

    fn is_changed(path: &Path) -> bool {
        Journal::exists(&State::open(path).unwrap()).unwrap()
    }

    fn begin(folder: &Path) -> Lease {
        Lease::begin(folder).unwrap().0
    }

    fn set(lease: &mut Lease, setting: &Setting, value: &str) -> Result<(), Error> {
        lease.set(&[Change::new(setting.clone(), value)])?.remove(0)
    }

    fn outcomes(restored: Vec<RestoredSetting>) -> Vec<RestoreOutcome> {
        restored.into_iter().map(|restored| restored.outcome).collect()
    }

    /// Simulates a killed run: its lock is released, its journal remains.
    fn kill(mut lease: Lease) {
        lease.is_restored = true;
    }

    /// Check that settings are restored when a run ends, also by a panic.
    #[test]
    fn restored_at_the_end() {
        let Some((sleeper, [one, _, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        let mut lease = begin(dir.path());
        set(&mut lease, &sleeper.setting, &one).unwrap();
        assert_eq!(sleeper.now(), one);
        assert_eq!(outcomes(lease.end().unwrap()), [RestoreOutcome::Restored]);
        assert_eq!(sleeper.now(), both);
        let panicking = std::panic::catch_unwind(|| {
            let mut lease = begin(dir.path());
            set(&mut lease, &sleeper.setting, &one).unwrap();
            // Like a panic, but without its message, since readers of the tests' output search for
            // that.
            if sleeper.now() == one {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
        });
        assert!(panicking.is_err());
        assert_eq!(sleeper.now(), both);
        assert!(!is_changed(dir.path()));
    }

    /// Check that the settings of a killed run are restored by the next run.
    #[test]
    fn killed_runs_are_restored() {
        let Some((sleeper, [one, _, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        let mut lease = begin(dir.path());
        set(&mut lease, &sleeper.setting, &one).unwrap();
        kill(lease);
        assert_eq!(sleeper.now(), one);
        let (_next, left) = Lease::begin(dir.path()).unwrap();
        assert_eq!(outcomes(left), [RestoreOutcome::Restored]);
        assert_eq!(sleeper.now(), both);
    }

    /// Check that a forked process does not restore settings that its parent needs.
    #[test]
    fn forks_restore_nothing() {
        let Some((sleeper, [one, _, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        let mut lease = begin(dir.path());
        set(&mut lease, &sleeper.setting, &one).unwrap();
        lease.run.process = 0;
        drop(lease);
        assert_eq!(sleeper.now(), one);
        assert!(is_changed(dir.path()));
        // Here the lock was released too, as that of a killed run.
        assert_eq!(
            outcomes(Lease::begin(dir.path()).unwrap().1),
            [RestoreOutcome::Restored]
        );
        assert_eq!(sleeper.now(), both);
    }

    /// Check that a shared setting is restored by the last run that needs it, in any order.
    #[test]
    fn the_last_run_restores() {
        let Some((sleeper, [one, two, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        for first_ends_first in [true, false] {
            let mut leases = [begin(dir.path()), begin(dir.path())];
            set(&mut leases[0], &sleeper.setting, &one).unwrap();
            set(&mut leases[1], &sleeper.setting, &two).unwrap();
            let [first, second] = leases;
            let (leaving, last) =
                if first_ends_first { (first, second) } else { (second, first) };
            assert_eq!(leaving.end().unwrap(), []);
            assert_eq!(sleeper.now(), two);
            assert_eq!(outcomes(last.end().unwrap()), [RestoreOutcome::Restored]);
            assert_eq!(sleeper.now(), both);
        }
    }

    /// Check that a value set by another process is left alone and reported.
    #[test]
    fn others_changes_stay() {
        let Some((sleeper, [one, two, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        let mut lease = begin(dir.path());
        set(&mut lease, &sleeper.setting, &one).unwrap();
        sleeper.change(&two);
        assert_eq!(
            outcomes(lease.end().unwrap()),
            [RestoreOutcome::LeftAlone(two.clone())]
        );
        assert_eq!(sleeper.now(), two);
        // Changed by another process between two runs: its value is restored.
        let mut leases = [begin(dir.path()), begin(dir.path())];
        set(&mut leases[0], &sleeper.setting, &one).unwrap();
        sleeper.change(&both);
        set(&mut leases[1], &sleeper.setting, &one).unwrap();
        leases.into_iter().for_each(drop);
        assert_eq!(sleeper.now(), both);
    }

    /// Check that settings that are left in place are not in the journal, and not restored.
    #[test]
    fn left_in_place() {
        let Some((sleeper, [one, _, _])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        let mut lease = begin(dir.path());
        set(&mut lease, &sleeper.setting, &one).unwrap();
        lease.leave().unwrap();
        assert!(!is_changed(dir.path()));
        drop(begin(dir.path()));
        assert_eq!(sleeper.now(), one);
    }

    /// Check that an unchanged setting is not recorded, and one that no longer exists is reported.
    #[test]
    fn nothing_to_restore() {
        let Some((sleeper, [one, _, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        let mut lease = begin(dir.path());
        set(&mut lease, &sleeper.setting, &both).unwrap();
        assert!(!is_changed(dir.path()));
        set(&mut lease, &sleeper.setting, &one).unwrap();
        drop(sleeper);
        assert_eq!(outcomes(lease.end().unwrap()), [RestoreOutcome::Gone]);
    }

    /// Check that rejected changes are not in the journal, and have the right error.
    #[test]
    fn refusals_change_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut lease = begin(dir.path());
        let file = |path: &str| Setting::File(path.into());
        let runtime = file("/proc/sys/kernel/sched_rt_runtime_us");
        let refused = set(&mut lease, &runtime, "no number").unwrap_err();
        assert!(refused.to_string().contains("sched_rt_runtime_us"), "{refused}");
        let missing = file("/proc/irq/4000000/smp_affinity_list");
        let refused = set(&mut lease, &missing, "0").unwrap_err();
        assert_eq!(refused.kind(), Kind::NoSetting);
        let other = file("/proc/sys/kernel/core_pattern");
        let refused = set(&mut lease, &other, "core").unwrap_err();
        assert!(units::chain(&refused).contains("not a setting"), "{refused:?}");
        assert!(!is_changed(dir.path()));
    }

    /// Check that expected side effects of the kernel are undone, and other values are left alone.
    #[test]
    fn side_effects_are_undone() {
        let Some((sleeper, [one, two, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        for (then, outcome) in [
            (&one, RestoreOutcome::Restored),
            (&two, RestoreOutcome::LeftAlone(two.clone())),
        ] {
            sleeper.change(&both);
            let mut lease = begin(dir.path());
            let to = To::SideEffect(vec![one.clone()]);
            let change = Change { setting: sleeper.setting.clone(), to };
            lease.set(&[change]).unwrap();
            assert_eq!(sleeper.now(), both);
            sleeper.change(then);
            assert_eq!(outcomes(lease.end().unwrap()), [outcome]);
        }
    }

    /// Check that entries of another boot are dropped.
    #[test]
    fn other_boots() {
        let Some((sleeper, [one, _, _])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        let mut lease = begin(dir.path());
        set(&mut lease, &sleeper.setting, &one).unwrap();
        let state = State::open(dir.path()).unwrap();
        let mut journal = Journal::open(&state).unwrap();
        journal.entries[0].boot_id = "another".to_owned();
        journal.save().unwrap();
        drop(journal);
        assert_eq!(outcomes(lease.end().unwrap()), [RestoreOutcome::Gone]);
        assert_eq!(sleeper.now(), one);
    }

    /// Check that no setting is changed if the journal cannot be written: on a read-only file
    /// system, and on a full one.
    #[test]
    fn recorded_or_not_changed() {
        let Some((sleeper, [one, _, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        let mount = |options: &str| {
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir.path());
            mount.stderr(std::process::Stdio::null());
            mount.status().is_ok_and(|status| status.success())
        };
        if !mount("size=16k,mode=755") {
            println!("skipped: recorded_or_not_changed: no file system can be mounted");
            return;
        }
        let mounted = Unmount(dir.path());
        let mut lease = begin(dir.path());
        std::fs::write(dir.path().join("fill"), vec![0; 64 << 10]).unwrap_err();
        let refused = set(&mut lease, &sleeper.setting, &one).unwrap_err();
        assert_eq!((refused.kind(), sleeper.now()), (Kind::Journal, both.clone()));
        std::fs::remove_file(dir.path().join("fill")).unwrap();
        assert!(mount("remount,ro"));
        let refused = set(&mut lease, &sleeper.setting, &one).unwrap_err();
        assert_eq!((refused.kind(), sleeper.now()), (Kind::Journal, both));
        drop(mounted);
    }

    struct Unmount<'a>(&'a Path);

    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("-l").arg(self.0).status();
        }
    }
}
