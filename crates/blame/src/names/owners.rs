//! The owner of each thread: the kernel, or a program, named after its process.
//!
//! Events mark kernel threads (`PF_KTHREAD`), those of tracefs do not. `/proc/PID/stat`
//! (`proc_pid_stat(5)`) has the name of a running process; the name of one that has ended is that
//! of its main thread, if that was seen.

use std::collections::BTreeMap;

use facts::{Root, TaskStat};
use recording::ThreadOwner;

use crate::level::Level;
use crate::records::Record;

/// A kernel thread (`include/linux/sched.h`).
pub(crate) const PF_KTHREAD: u64 = 0x0020_0000;

/// The owner of each process's threads, as far as it is known.
pub(crate) fn owners<'a>(
    root: &Root,
    records: impl Iterator<Item = &'a Record>,
) -> BTreeMap<u32, ThreadOwner> {
    // For each process, whether it is the kernel's, and its main thread's name.
    let mut found: BTreeMap<u32, (bool, Option<String>)> = BTreeMap::new();
    for record in records.filter(|record| record.level == Level::Thread) {
        let (is_kernel, first) = found.entry(record.process()).or_default();
        *is_kernel |= record.mark.is_kernel;
        if record.id == record.process() && first.is_none() {
            *first = Some(record.name());
        }
    }
    let owner = |(process, (is_kernel, first)): (u32, (bool, Option<String>))| {
        let owner = match is_kernel {
            true => Some(ThreadOwner::Kernel),
            false => of_process(root, process).or(first.map(ThreadOwner::Program)),
        };
        Some((process, owner?))
    };
    found.into_iter().filter_map(owner).collect()
}

/// The owner of a running process.
fn of_process(root: &Root, process: u32) -> Option<ThreadOwner> {
    parse(&root.text(&format!("/proc/{process}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<ThreadOwner> {
    let stat = TaskStat::parse(stat)?;
    Some(match stat.number::<u64>(9)? & PF_KTHREAD {
        0 => ThreadOwner::Program(stat.name.to_owned()),
        _ => ThreadOwner::Kernel,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::tests::record;
    use crate::records::Mark;

    fn thread(tid: u32, process: u32, name: &str, is_kernel: bool) -> Record {
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        let mark = Mark { is_kernel, ..Mark::default() };
        Record {
            detail: u64::from(process) << 32,
            comm,
            mark,
            ..record(Level::Thread, tid, 9)
        }
    }

    /// Check that a running process is named by `/proc`, one that has ended by its main thread, and
    /// one of which only another thread was seen not at all.
    #[test]
    fn programs_and_the_kernel() {
        let own = std::process::id();
        let gone = 4_100_000;
        let records = [
            thread(1, own, "anything", false),
            thread(gone, gone, "first", false),
            thread(gone + 1, gone, "second", false),
            thread(gone + 3, gone + 2, "third", false),
            thread(gone + 4, gone + 4, "kworker/0:1", true),
        ];
        let found = owners(&Root::live(), records.iter());
        let name = std::fs::read_to_string("/proc/self/comm").unwrap();
        let program = |name: &str| Some(ThreadOwner::Program(name.to_owned()));
        assert_eq!(found.get(&own).cloned(), program(name.trim_end()));
        assert_eq!(found.get(&gone).cloned(), program("first"));
        assert_eq!(found.get(&(gone + 2)), None);
        assert_eq!(found.get(&(gone + 4)), Some(&ThreadOwner::Kernel));
    }

    /// Check that a kernel thread is recognised by its flags, and that names may contain anything.
    #[test]
    fn stats() {
        let parsed = |flags: &str| parse(&format!("7 (a) (b) S 2 0 0 0 -1 {flags} 0 0"));
        assert_eq!(parsed("69238848"), Some(ThreadOwner::Kernel));
        assert_eq!(parsed("4194304"), Some(ThreadOwner::Program("a) (b".to_owned())));
        assert_eq!(parse("7 (a"), None);
    }
}
