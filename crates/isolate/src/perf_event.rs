//! Events of one CPU with `perf_event_open(2)`: any task's, counted or sampled.
//!
//! An event ends with its file descriptor, so that nothing has to be restored. Opening or reading one
//! interrupts its CPU. Requires root or `CAP_PERFMON` (`kernel.perf_event_paranoid`).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use units::Cpu;

const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
/// `pinned`, the third bit of the flags: the event is always counted, or reading it fails.
const PINNED: u64 = 1 << 2;

/// `struct perf_event_attr` in its first version (`PERF_ATTR_SIZE_VER0`), which all kernels
/// support.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup_events: u32,
    pub(crate) bp_type: u32,
    pub(crate) config1: u64,
}

/// Opens an event of all tasks on a CPU.
pub(crate) fn open(attributes: Attributes, cpu: Cpu) -> io::Result<OwnedFd> {
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or(0);
    let attributes = Attributes { size, ..attributes };
    let (every_task, no_group) = (-1, -1);
    let cpu = i32::try_from(cpu.index()).unwrap_or(i32::MAX);
    // SAFETY: `attributes` has its size, outlives the call, and is only read.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            every_task,
            cpu,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    match i32::try_from(opened) {
        // SAFETY: a new descriptor without another owner.
        Ok(file) if file >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(file) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The count of an event on one CPU, since it was opened.
#[derive(Debug)]
pub struct PerfCounter(OwnedFd);

impl PerfCounter {
    /// Starts counting the event `config` of the PMU `kind` (`type` and `config` of `perf_event_attr`).
    ///
    /// # Errors
    /// Those of `perf_event_open(2)`.
    pub fn open(kind: u32, config: u64, cpu: Cpu) -> io::Result<Self> {
        let attributes =
            Attributes { kind, config, flags: PINNED, ..Attributes::default() };
        open(attributes, cpu).map(Self)
    }

    /// The count; `None` if it was not counted all the time: the CPU went offline, or other events had
    /// all its counters.
    pub fn read(&self) -> Option<u64> {
        let mut count = [0; 8];
        let bytes = rustix::io::read(&self.0, &mut count).ok()?;
        (bytes == count.len()).then(|| u64::from_ne_bytes(count))
    }
}
