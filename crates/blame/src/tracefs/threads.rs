//! The processes of threads, which a trace identifies by their number only: `/proc/TID/status`,
//! read while the thread exists, at the next reading of the buffers.
//!
//! A spinner is a thread of this process with the name `spin/CPU`. One that started and ended
//! between two lookups is recognised by that name alone, unless its number is now another
//! process's. A thread that ended before the first lookup is reported as a process of its own; in a
//! container the kernel's numbers are not those of `/proc`, and all are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::{fs, io};

use units::Cpu;

use crate::tracefs::events::Task;

/// The threads so far, and their properties.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// This process; `None` if `/proc` numbers threads differently from the kernel.
    own: Option<u32>,
    processes: BTreeMap<(u32, [u8; 16]), Option<u32>>,
    spinners: BTreeSet<u32>,
    /// Other threads of this process, and how often they were looked at.
    others: BTreeMap<u32, u32>,
}

/// Threads are looked at this often: a spinner names itself when it starts.
const LOOKS: u32 = 2;

/// `/proc/self/ns/pid` if threads have the kernel's own numbers (`PROC_PID_INIT_INO`).
const OUTERMOST: &str = "pid:[4026531836]";

impl Threads {
    /// The threads of this machine.
    pub(crate) fn live() -> Self {
        let is_outermost = is_outermost(fs::read_link("/proc/self/ns/pid"));
        let own = is_outermost.then(std::process::id);
        Self { own, ..Self::default() }
    }

    /// Looks for threads of this process that have become spinners.
    pub(crate) fn look(&mut self) {
        if self.own.is_none() {
            return;
        }
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let tids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
        for tid in tids.filter(|tid| !self.spinners.contains(tid)).collect::<Vec<u32>>() {
            let looks = self.others.entry(tid).or_default();
            if *looks < LOOKS && is_named(tid) {
                self.spinners.insert(tid);
            }
            *looks = looks.saturating_add(1);
        }
    }

    /// Whether a thread that was switched to or from on that CPU is a spinner.
    pub(crate) fn is_spinner(&mut self, task: &Task, cpu: Cpu) -> bool {
        if self.is_known_spinner(task.tid) {
            return true;
        }
        let name = format!("spin/{cpu}");
        let is_named = task.comm.iter().copied().eq(padded(&name));
        let is_ours =
            is_named && self.known(task).is_none_or(|process| Some(process) == self.own);
        if is_ours {
            self.spinners.insert(task.tid);
        }
        is_ours
    }

    /// Whether that thread was found to be a spinner.
    pub(crate) fn is_known_spinner(&self, tid: u32) -> bool {
        self.spinners.contains(&tid)
    }

    /// A thread's process.
    pub(crate) fn process(&mut self, task: &Task) -> u32 {
        self.known(task).unwrap_or(task.tid)
    }

    /// Whether it is this process.
    pub(crate) fn is_own(&self, process: u32) -> bool {
        self.own == Some(process)
    }

    /// A thread's process, if it is this one, or if the thread still existed at the first lookup.
    fn known(&mut self, task: &Task) -> Option<u32> {
        let own = self.own?;
        if self.is_known_spinner(task.tid) || self.others.contains_key(&task.tid) {
            return Some(own);
        }
        let process = || status(task.tid, "Tgid:")?.parse().ok();
        *self.processes.entry((task.tid, task.comm)).or_insert_with(process)
    }
}

/// Whether threads have the kernel's own numbers in this namespace, of which that is the link. A kernel
/// without namespaces (`CONFIG_PID_NS`) has no such file, and no other numbers.
fn is_outermost(namespace: io::Result<PathBuf>) -> bool {
    match namespace {
        Ok(link) => link.as_os_str() == OUTERMOST,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The name as the kernel stores it: at most 15 characters, and zeros.
fn padded(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().take(15).chain(std::iter::repeat(0)).take(16)
}

fn is_named(tid: u32) -> bool {
    let comm = fs::read(format!("/proc/self/task/{tid}/comm"));
    comm.is_ok_and(|comm| comm.starts_with(b"spin/"))
}

/// One line of the status of a thread.
fn status(tid: u32, key: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tid: u32, name: &str) -> Task {
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        Task { tid, prio: 120, comm }
    }

    /// Check that a kernel without namespaces has no other numbers of threads, and a container has.
    #[test]
    fn outermost_namespace() {
        let error = |kind: io::ErrorKind| Err(io::Error::from(kind));
        assert!(is_outermost(Ok(OUTERMOST.into())));
        assert!(is_outermost(error(io::ErrorKind::NotFound)));
        assert!(!is_outermost(Ok("pid:[4026532201]".into())));
        assert!(!is_outermost(error(io::ErrorKind::PermissionDenied)));
    }

    /// Check that a thread of this process is recognised as a spinner by its name in `/proc`, even
    /// if a switch had an older one, and that others are not.
    #[test]
    fn finds_spinners() {
        if Threads::live().own.is_none() {
            println!("skipped: finds_spinners: this is a container");
            return;
        }
        for (name, is_spinner) in [("spin/1", true), ("other", false)] {
            let mut threads = Threads::live();
            let thread = std::thread::Builder::new().name(name.to_owned());
            let looked = thread.spawn(move || {
                let tid = rustix::thread::gettid().as_raw_pid().try_into().unwrap();
                threads.look();
                let process = threads.known(&task(tid, "any")).unwrap();
                assert!(threads.is_own(process));
                let older = task(tid, "older");
                assert_eq!(threads.is_spinner(&older, Cpu::new(1)), is_spinner);
                assert_eq!(threads.process(&older), std::process::id());
            });
            looked.unwrap().join().unwrap();
        }
    }

    /// Check that a spinner that has ended is recognised by its name, but only on its CPU, and only
    /// if the number is not another process's now.
    #[test]
    fn knows_spinners_by_name() {
        let gone = u32::MAX;
        let mut threads = Threads { own: Some(std::process::id()), ..Threads::default() };
        assert!(!threads.is_spinner(&task(gone, "spin/11"), Cpu::new(1)));
        assert!(!threads.is_spinner(&task(gone, "spin/"), Cpu::new(1)));
        assert!(!threads.is_spinner(&task(1, "spin/1"), Cpu::new(1)));
        assert!(threads.is_spinner(&task(gone, "spin/1"), Cpu::new(1)));
        assert!(threads.is_known_spinner(gone));
        assert_eq!(threads.process(&task(gone, "spin/1")), std::process::id());
    }
}
