//! Locking this process's memory on the node of a CPU, so that timed loops have no page faults.
//!
//! `mlockall(2)` with `MCL_FUTURE`: existing pages are made resident immediately, new ones when
//! they are mapped. `set_mempolicy(2)` prefers the node for new pages, `migrate_pages(2)` moves
//! existing ones. Limited by `RLIMIT_MEMLOCK` without `CAP_IPC_LOCK`.
//!
//! The lock is an attribute of the process, and is released with its last user here. It is unknown
//! which pages were locked before (`VmLck`): if there were any, all pages remain locked.

use std::io;
use std::sync::{Mutex, PoisonError};

use facts::Facts;
use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::thread::{Pid, gettid};
use units::{Cpu, Helped};

use crate::error::{Error, Kind};

/// The size of stack to touch: more than any loop uses.
const STACK: usize = 128 << 10;
const PAGE: usize = 4096;
/// The length of node masks in words.
const NODE_WORDS: usize = 16;
const BITS: usize = 64;

/// The users of the memory lock of this process.
static HELD: Mutex<Held> = Mutex::new(Held { holders: 0, stays: false });

#[derive(Debug)]
struct Held {
    holders: u32,
    /// Whether some memory was locked before the first of them.
    stays: bool,
}

impl Held {
    fn lock(&mut self) -> io::Result<()> {
        if self.holders == 0 {
            self.stays = is_locked();
        }
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?;
        self.holders += 1;
        Ok(())
    }

    fn unlock(&mut self) {
        self.holders -= 1;
        if self.holders == 0 && !self.stays {
            let _ = munlockall();
        }
    }
}

/// LockedMemory memory; it is unlocked when the last of these is dropped.
#[derive(Debug)]
pub struct LockedMemory {
    _near: Option<Near>,
}

/// Locks this process's current and future memory, and moves it to the node of a CPU.
///
/// # Errors
/// `Kind::Privilege` if the limit on locked memory is too low.
pub fn lock_memory(cpu: Cpu, facts: &Facts) -> Result<LockedMemory, Error> {
    touch_stack();
    let near = node(cpu, facts).and_then(|(node, others)| Near::bring(node, &others));
    let locked = HELD.lock().unwrap_or_else(PoisonError::into_inner).lock();
    locked.map(|()| LockedMemory { _near: near }).map_err(|error| {
        let help = "it needs root, CAP_IPC_LOCK, or a higher RLIMIT_MEMLOCK (ulimit -l)";
        Error::new(Kind::Privilege, "failed to lock memory")
            .caused_by(Helped::new(error, help))
    })
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).unlock();
    }
}

/// Whether any memory of this process is locked.
fn is_locked() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    locked.is_some_and(|size| size.trim() != "0 kB")
}

/// The node of a CPU, and all others; `None` if there is only one, or the node is unknown.
fn node(cpu: Cpu, facts: &Facts) -> Option<(usize, Vec<usize>)> {
    let nodes = facts.cpus.nodes.get()?;
    let own = nodes.iter().position(|cpus| cpus.contains(cpu))?;
    let others: Vec<usize> = (0..nodes.len()).filter(|&node| node != own).collect();
    (!others.is_empty()).then_some((own, others))
}

/// A thread whose memory policy prefers the node of its CPU.
#[derive(Debug)]
struct Near {
    thread: Pid,
}

impl Near {
    /// Sets the memory policy of the calling thread, and migrates existing pages.
    fn bring(node: usize, others: &[usize]) -> Option<Self> {
        let (to, from) = (node_mask(&[node]), node_mask(others));
        let bits = NODE_WORDS * BITS;
        // SAFETY: the masks are `bits` long, outlive the calls, and are only read.
        let set = unsafe {
            let policy = libc::MPOL_PREFERRED;
            let set = libc::syscall(libc::SYS_set_mempolicy, policy, to.as_ptr(), bits);
            libc::syscall(libc::SYS_migrate_pages, 0, bits, from.as_ptr(), to.as_ptr());
            set
        };
        (set == 0).then(|| Self { thread: gettid() })
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        // The policy is an attribute of the thread; no other thread can reset it.
        if self.thread == gettid() {
            // SAFETY: without a mask, the default policy is set for the calling thread.
            unsafe { libc::syscall(libc::SYS_set_mempolicy, libc::MPOL_DEFAULT, 0, 0) };
        }
    }
}

fn node_mask(nodes: &[usize]) -> [u64; NODE_WORDS] {
    let mut mask = [0; NODE_WORDS];
    for node in nodes.iter().filter(|&&node| node < NODE_WORDS * BITS) {
        mask[node / BITS] |= 1 << (node % BITS);
    }
    mask
}

/// Makes the stack below the current frame resident.
#[inline(never)]
fn touch_stack() {
    let mut stack = [0_u8; STACK];
    for byte in stack.iter_mut().step_by(PAGE) {
        // SAFETY: a valid reference; the write is volatile so that it is not optimized away.
        unsafe { std::ptr::write_volatile(byte, 1) };
    }
    std::hint::black_box(&stack);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that memory is locked, by the kernel's count, until the last lock is dropped.
    #[test]
    fn locked_while_held() {
        let facts = Facts::read(&facts::Root::live());
        let locked = || {
            let text = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = text.lines().find(|line| line.starts_with("VmLck:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        match lock_memory(Cpu::new(0), &facts) {
            Err(why) => println!("skipped: locked_while_held: {why}"),
            Ok(held) => {
                let second = lock_memory(Cpu::new(0), &facts).unwrap();
                drop(held);
                assert!(is_locked() && locked() > 0);
                drop(second);
                assert_eq!(locked(), 0);
            }
        }
    }

    /// Check that the CPU's node is distinguished from other nodes.
    #[test]
    fn nodes_of_cpus() {
        let page = |nodes: &[&str]| -> Facts {
            let cpus = serde_json::json!({"cpus": {"nodes": nodes}, "sources": {}, "unknown": {}});
            serde_json::from_value(cpus).unwrap()
        };
        assert_eq!(node(Cpu::new(3), &page(&["0-1", "2-3", "4"])), Some((1, vec![0, 2])));
        assert_eq!(node(Cpu::new(3), &page(&["0-3"])), None);
        assert_eq!(node_mask(&[1, 64])[..2], [2, 1]);
    }
}
