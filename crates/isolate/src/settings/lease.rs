//! What one run changes on this machine, and puts back.
//!
//! A setting is changed only after that was written down ([`crate::settings::journal`]). Several runs
//! may need the same one: the last that ends puts back what was there before the first. What
//! somebody else changed meanwhile stays as they want it.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind};
use crate::settings::change::{Change, To};
use crate::settings::holder::{self, Holder};
use crate::settings::journal::{self, Entry, Journal};
use crate::settings::setting::Setting;
use crate::settings::state::{self, State};

/// How the kernel shows a partition that it could not make: `isolated invalid (reason)`.
const INVALID: &str = " invalid";

/// A setting that was to be put back, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Returned {
    /// The setting.
    pub setting: Setting,
    /// What it was before it was changed.
    pub old: String,
    /// What became of it.
    pub outcome: RestoreOutcome,
}

/// What became of a setting that was to be put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// It is as it was.
    Restored,
    /// Somebody else changed it meanwhile, to this: so it stays.
    LeftAlone(String),
    /// It does not exist any more: the machine was booted, a thread ended, a device went.
    Gone,
    /// The kernel refused, for this reason; it stays in the journal.
    Refused(String),
    /// Runs of these processes still need it changed; it stays in the journal.
    Needed(Vec<u32>),
}

/// The settings that one run changed; they are restored when it is dropped.
#[derive(Debug)]
pub struct Lease {
    holder: Holder,
    state: State,
    returned: bool,
}

impl Lease {
    /// Begins; what killed runs left behind is put back first.
    pub(crate) fn begin(path: &Path) -> Result<(Self, Vec<Returned>), Error> {
        let failed = |error: io::Error| journal::refused(path, error);
        let state = State::create(path).map_err(failed)?;
        let mut journal = Journal::open(&state)?;
        let mut left = put_back(&mut journal, None)?;
        left.retain(|one| !matches!(one.outcome, RestoreOutcome::Needed(_)));
        let holder = Holder::new(&state).map_err(failed)?;
        drop(journal);
        Ok((Self { holder, state, returned: false }, left))
    }

    /// Changes settings in that order, after that was written down; what became of each.
    ///
    /// # Errors
    /// `Kind::Journal` where it could not be written down: nothing was changed that was not.
    /// Of each: `Kind::Privilege`, `Kind::NoSetting` or `Kind::System` where the kernel
    /// refuses; it is as it was then.
    pub(crate) fn set(
        &mut self,
        changes: &[Change],
    ) -> Result<Vec<Result<(), Error>>, Error> {
        let mut journal = Journal::open(&self.state)?;
        let before = journal.entries.clone();
        // What is not there yet may be once the changes before it are made; what comes after
        // it is put back before it, and so is written down after it.
        let known = changes.iter().map_while(|change| change.setting.read().ok());
        let known: Vec<String> = known.collect();
        for (change, now) in changes.iter().zip(&known) {
            self.note(&mut journal, change, now);
        }
        journal.save()?;
        let mut done = Vec::new();
        for (number, change) in changes.iter().enumerate() {
            let is_noted = number < known.len();
            done.push(match self.carry_out(&mut journal, change, is_noted) {
                Err(why) if why.kind() == Kind::Journal => return Err(why),
                Err(why) => {
                    strike(&mut journal, &before, &change.setting);
                    Err(why)
                }
                Ok(()) => Ok(()),
            });
        }
        journal.save()?;
        Ok(done)
    }

    /// Makes one change that is written down, or that could not be until now.
    fn carry_out(
        &self,
        journal: &mut Journal<'_>,
        change: &Change,
        is_noted: bool,
    ) -> Result<(), Error> {
        let Change { setting, to } = change;
        let (To::Value(value) | To::Within(value)) = to else { return Ok(()) };
        let failed = |error: io::Error| refused(setting, value, error);
        let now = setting.read().map_err(failed)?;
        if !is_noted && matches!(to, To::Value(_)) {
            self.note(journal, change, &now);
            journal.save()?;
        }
        if now == *value {
            return Ok(());
        }
        let shown = setting.write(value).and_then(|()| setting.read()).map_err(failed)?;
        if shown.starts_with(value) && shown.contains(INVALID) {
            // It is there in name only.
            let _ = setting.write(&now);
            return Err(failed(io::Error::other(shown)));
        }
        let noted = journal.entries.iter_mut().find(|entry| entry.setting == *setting);
        let Some(entry) = noted.filter(|_| shown != *value) else { return Ok(()) };
        // The kernel shows it in other words than it was told.
        entry.new.push(shown);
        journal.save()
    }

    /// Writes down what this run needs a setting to be, or foresees that the kernel makes of
    /// it. What was so before any run is nobody's to put back.
    fn note(&self, journal: &mut Journal<'_>, change: &Change, now: &str) {
        let Change { setting, to } = change;
        let values = match to {
            // It is no setting of the machine's, and gone with its group.
            To::Within(_) => return,
            To::Value(value) => std::slice::from_ref(value),
            To::Foreseen(values) => values,
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
            // Somebody else changed it meanwhile: that is what they will want back.
            now.clone_into(&mut entry.old);
            entry.new.clear();
        }
        entry.new.retain(|known| !values.contains(known));
        entry.new.extend_from_slice(values);
        entry.holders.retain(|known| *known != self.holder.name);
        entry.holders.push(self.holder.name.clone());
    }

    /// Puts everything back that no other run needs, the last change first.
    ///
    /// # Errors
    /// `Kind::Journal` where the journal cannot be read any more.
    pub fn end(mut self) -> Result<Vec<Returned>, Error> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<Vec<Returned>, Error> {
        if std::mem::replace(&mut self.returned, true) || !self.holder.is_own() {
            return Ok(Vec::new());
        }
        let mut journal = Journal::open(&self.state)?;
        let mut returned = put_back(&mut journal, Some(&self.holder.name))?;
        returned.retain(|one| !matches!(one.outcome, RestoreOutcome::Needed(_)));
        Ok(returned)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // On a panic's way out there is nobody to tell; what stays, stays in the journal.
        let _ = self.put_back();
    }
}

/// Puts back what killed runs left behind; what became of each setting that was changed. Nothing
/// is done, and no lock is waited for, where nothing is changed.
///
/// # Errors
/// `Kind::Journal` where the journal cannot be read or written, `Kind::Privilege` where this user
/// may not.
pub fn restore() -> Result<Vec<Returned>, Error> {
    let path = state_path()?;
    let state = match State::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let text = format!("failed to open {}", path.display());
            return Err(Error::new(Kind::Privilege, text).caused_by(error));
        }
        opened => opened.map_err(|error| journal::refused(&path, error))?,
    };
    match Journal::exists(&state)? {
        true => put_back(&mut Journal::open(&state)?, None),
        false => Ok(Vec::new()),
    }
}

/// The path of this user's state directory.
pub(crate) fn state_path() -> Result<PathBuf, Error> {
    let text = "failed to find the state directory";
    state::path().map_err(|error| Error::new(Kind::Journal, text).caused_by(error))
}

/// Puts back, the last change first, what only `leaving` and runs that have ended needed.
fn put_back(
    journal: &mut Journal<'_>,
    leaving: Option<&str>,
) -> Result<Vec<Returned>, Error> {
    let (boot, state) = (journal::boot_id(), journal.state());
    let mut returned = Vec::new();
    let mut kept = Vec::new();
    for mut entry in std::mem::take(&mut journal.entries).into_iter().rev() {
        let stays =
            |name: &String| Some(name.as_str()) != leaving && holder::lives(state, name);
        entry.holders.retain(stays);
        let outcome = match entry.boot_id == boot {
            false => RestoreOutcome::Gone,
            true if entry.holders.is_empty() => give_back(&entry),
            true => RestoreOutcome::Needed(
                entry.holders.iter().filter_map(|name| holder::process(name)).collect(),
            ),
        };
        let (setting, old) = (entry.setting.clone(), entry.old.clone());
        if matches!(outcome, RestoreOutcome::Refused(_) | RestoreOutcome::Needed(_)) {
            kept.push(entry);
        }
        returned.push(Returned { setting, old, outcome });
    }
    kept.reverse();
    journal.entries = kept;
    // Settings first, then the journal: cut off in between, it is found as it was before.
    journal.save()?;
    Ok(returned)
}

/// Takes back what was written down of a change that was not made.
fn strike(journal: &mut Journal<'_>, before: &[Entry], setting: &Setting) {
    let at = journal.entries.iter().position(|entry| entry.setting == *setting);
    let Some(at) = at else { return };
    match before.iter().find(|entry| entry.setting == *setting) {
        Some(entry) => journal.entries[at] = entry.clone(),
        None => {
            journal.entries.remove(at);
        }
    }
}

fn give_back(entry: &Entry) -> RestoreOutcome {
    let now = match entry.setting.read() {
        Err(error) => return lost(&error),
        Ok(now) => now,
    };
    if now == entry.old {
        return RestoreOutcome::Restored;
    }
    if !entry.new.contains(&now) {
        return RestoreOutcome::LeftAlone(now);
    }
    match entry.setting.write(&entry.old) {
        Ok(()) => RestoreOutcome::Restored,
        Err(error) => lost(&error),
    }
}

fn lost(error: &io::Error) -> RestoreOutcome {
    match error.kind() {
        io::ErrorKind::NotFound => RestoreOutcome::Gone,
        _ if error.raw_os_error() == Some(libc::ESRCH) => RestoreOutcome::Gone,
        _ => RestoreOutcome::Refused(error.to_string()),
    }
}

fn refused(setting: &Setting, value: &str, error: io::Error) -> Error {
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

    /// A setting that is nobody else's: the affinity of a process that sleeps.
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

        /// What somebody else does.
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

    /// A sleeper that may use two CPUs, and those two: one of each, then both.
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

    fn outcomes(returned: Vec<Returned>) -> Vec<RestoreOutcome> {
        returned.into_iter().map(|returned| returned.outcome).collect()
    }

    /// A run that is killed: its lock is gone, its journal stays.
    fn kill(mut lease: Lease) {
        lease.returned = true;
    }

    /// Check that what was changed is as it was when a run ends, also where it panics.
    #[test]
    fn ends_as_it_began() {
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
            // As a panic does, but it writes nothing: a reader of the tests' output looks for that
            // of failures.
            if sleeper.now() == one {
                std::panic::resume_unwind(Box::new("on purpose"));
            }
        });
        assert!(panicking.is_err());
        assert_eq!(sleeper.now(), both);
        assert!(!is_changed(dir.path()));
    }

    /// Check that what a killed run changed is put back by the next one.
    #[test]
    fn killed_runs_are_cleaned_up_after() {
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

    /// Check that a process that was forked puts nothing back that its parent still needs.
    #[test]
    fn forks_put_nothing_back() {
        let Some((sleeper, [one, _, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        let mut lease = begin(dir.path());
        set(&mut lease, &sleeper.setting, &one).unwrap();
        lease.holder.process = 0;
        drop(lease);
        assert_eq!(sleeper.now(), one);
        assert!(is_changed(dir.path()));
        // Its lock went with it, as a killed run's does.
        assert_eq!(
            outcomes(Lease::begin(dir.path()).unwrap().1),
            [RestoreOutcome::Restored]
        );
        assert_eq!(sleeper.now(), both);
    }

    /// Check that it is put back by the last of those that need it, whichever began.
    #[test]
    fn the_last_one_puts_back() {
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

    /// Check that what somebody else changed stays, and is told.
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
        // Changed by somebody between two runs that share it, theirs is put back.
        let mut leases = [begin(dir.path()), begin(dir.path())];
        set(&mut leases[0], &sleeper.setting, &one).unwrap();
        sleeper.change(&both);
        set(&mut leases[1], &sleeper.setting, &one).unwrap();
        leases.into_iter().for_each(drop);
        assert_eq!(sleeper.now(), both);
    }

    /// Check that nothing is put back that was so already, and nothing where it is gone.
    #[test]
    fn nothing_to_put_back() {
        let Some((sleeper, [one, _, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        let mut lease = begin(dir.path());
        set(&mut lease, &sleeper.setting, &both).unwrap();
        assert!(!is_changed(dir.path()));
        set(&mut lease, &sleeper.setting, &one).unwrap();
        drop(sleeper);
        assert_eq!(outcomes(lease.end().unwrap()), [RestoreOutcome::Gone]);
    }

    /// Check that what the kernel refuses is not in the journal, and is told as what it is.
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

    /// Check that what the kernel is foreseen to do by itself is undone, and what nobody
    /// foresaw stays.
    #[test]
    fn what_is_foreseen_is_undone() {
        let Some((sleeper, [one, two, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        for (then, outcome) in [
            (&one, RestoreOutcome::Restored),
            (&two, RestoreOutcome::LeftAlone(two.clone())),
        ] {
            sleeper.change(&both);
            let mut lease = begin(dir.path());
            let to = To::Foreseen(vec![one.clone()]);
            let change = Change { setting: sleeper.setting.clone(), to };
            lease.set(&[change]).unwrap();
            assert_eq!(sleeper.now(), both);
            sleeper.change(then);
            assert_eq!(outcomes(lease.end().unwrap()), [outcome]);
        }
    }

    /// Check that entries of another boot are dropped: there is nothing to put back.
    #[test]
    fn boots_put_back() {
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

    /// Check that nothing is changed that cannot be written down: on a file system that may
    /// only be read, and on a full one.
    #[test]
    fn written_down_or_not_done() {
        let Some((sleeper, [one, _, both])) = sleeper() else { return };
        let dir = tempfile::tempdir().unwrap();
        let mount = |options: &str| {
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir.path());
            mount.stderr(std::process::Stdio::null());
            mount.status().is_ok_and(|status| status.success())
        };
        if !mount("size=16k,mode=755") {
            println!("skipped: written_down_or_not_done: no file system can be mounted");
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
