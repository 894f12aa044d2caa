//! What keeps the tick of a `nohz_full` CPU: the kernel says so each time that it tries to
//! stop it and may not.
//!
//! The tracepoint `timer:tick_stop` (since 4.5) has `success` and the first `dependency` that
//! was found, one of the bits of `enum tick_dep_bits` in `include/linux/tick.h`. It is read
//! through `perf_event_open(2)`: a counter of that tracepoint on that CPU, which ends with its
//! file, so that nothing has to be put back, and which keeps no tick itself. Needs root or
//! `CAP_PERFMON`, and tracefs to be mounted.
//!
//! Cannot see dependencies behind the first one, nor CPUs that are not `nohz_full`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use units::Cpu;

use crate::error::{Error, Kind};

/// Where tracefs is mounted; the second by debugfs itself.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PAGE: usize = 4096;
/// Pages of samples; a power of two. A tick tries once, and they are taken out meanwhile.
const PAGES: usize = 16;
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_SAMPLE_RAW: u64 = 1 << 10;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
const PERF_RECORD_SAMPLE: u32 = 9;
/// Where `struct perf_event_mmap_page` has the producer's and the consumer's position.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// Why the kernel keeps a CPU's tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Dependency {
    /// A POSIX timer of CPU time is armed.
    PosixTimer,
    /// Perf events take turns, or sample by frequency.
    PerfEvents,
    /// The scheduler wants it: more than one task, a deadline task, a bandwidth limit.
    Sched,
    /// The kernel does not trust its clock.
    ClockUnstable,
    /// RCU waits for this CPU.
    Rcu,
    /// RCU waits for this CPU, in a hurry.
    RcuExp,
    /// What no kernel known here says.
    Other(u32),
}

impl Dependency {
    fn of(bits: u32) -> Self {
        match bits {
            0x01 => Self::PosixTimer,
            0x02 => Self::PerfEvents,
            0x04 => Self::Sched,
            0x08 => Self::ClockUnstable,
            0x10 => Self::Rcu,
            0x20 => Self::RcuExp,
            other => Self::Other(other),
        }
    }
}

/// As the kernel's own trace shows it.
impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PosixTimer => "POSIX_TIMER",
            Self::PerfEvents => "PERF_EVENTS",
            Self::Sched => "SCHED",
            Self::ClockUnstable => "CLOCK_UNSTABLE",
            Self::Rcu => "RCU",
            Self::RcuExp => "RCU_EXP",
            Self::Other(bits) => return write!(f, "0x{bits:x}"),
        })
    }
}

/// How often the kernel tried to stop the tick and each dependency kept it.
pub type KeptBy = BTreeMap<Dependency, u64>;

/// The attempts to stop one CPU's tick, from now on.
#[derive(Debug)]
pub(crate) struct Attempts {
    _counter: OwnedFd,
    ring: NonNull<u8>,
    fields: Fields,
    seen: KeptBy,
}

impl Attempts {
    /// Begins to watch.
    pub(crate) fn watch(cpu: Cpu) -> Result<Self, Error> {
        let folder = folder()?;
        let read = |name: &str| {
            let file = format!("{folder}/{name}");
            fs::read_to_string(&file).map_err(|error| unseen(&format!("{file}: {error}")))
        };
        let garbage = || unseen(&format!("{folder}: not understood"));
        let id = read("id")?.trim().parse().map_err(|_| garbage())?;
        let fields = Fields::of(&read("format")?).ok_or_else(garbage)?;
        let counter = open(id, cpu)?;
        let ring = map(&counter)?;
        Ok(Self { _counter: counter, ring, fields, seen: KeptBy::new() })
    }

    /// What kept the tick since the beginning.
    pub(crate) fn kept_by(&mut self) -> KeptBy {
        self.take();
        self.seen.clone()
    }

    /// Takes out what the kernel put into the ring.
    fn take(&mut self) {
        let (head, tail) = (self.position(HEAD), self.position(TAIL));
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        let mut found = Vec::new();
        while at < end {
            let header = self.bytes(at, 8);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let length = u64::from(u16::from_ne_bytes([header[6], header[7]]));
            if kind == PERF_RECORD_SAMPLE {
                // The header, then the length of what the tracepoint wrote, then that.
                found.push(self.bytes(at + 12, length.saturating_sub(12)));
            }
            // A record of no length would be read for ever.
            at += length.max(8);
        }
        tail.store(end, Ordering::Release);
        for record in found {
            if let Some(kept) = self.fields.kept(&record) {
                *self.seen.entry(kept).or_default() += 1;
            }
        }
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the mapped page is aligned, longer than that, and lives as long as `self`;
        // kernel and process both use these words as atomics.
        unsafe { self.ring.add(offset).cast().as_ref() }
    }

    /// Bytes of the ring, which ends where it begins.
    fn bytes(&self, at: u64, length: u64) -> Vec<u8> {
        let size = (PAGES * PAGE) as u64;
        let byte = |place: u64| {
            let offset = usize::try_from(place % size).unwrap_or(0);
            // SAFETY: below the size of what was mapped behind the first page.
            unsafe { self.ring.add(PAGE + offset).read_volatile() }
        };
        (at..at + length).map(byte).collect()
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` in that length, and not used any more.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), (PAGES + 1) * PAGE) };
    }
}

/// Where a record of the tracepoint has what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fields {
    success: usize,
    dependency: usize,
}

impl Fields {
    /// As the tracepoint's `format` says: `field:int success; offset:8; size:4; signed:1;`.
    fn of(format: &str) -> Option<Self> {
        let offset = |name: &str| {
            let line = format.lines().find(|line| line.contains(&format!(" {name};")))?;
            let rest = line.split_once("offset:")?.1;
            rest.split(';').next()?.trim().parse().ok()
        };
        Some(Self { success: offset("success")?, dependency: offset("dependency")? })
    }

    /// What kept the tick; `None` where nothing did.
    fn kept(self, record: &[u8]) -> Option<Dependency> {
        let word = |at: usize| {
            let bytes = record.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        (word(self.success)? == 0).then_some(Dependency::of(word(self.dependency)?))
    }
}

/// The tracepoint's folder.
fn folder() -> Result<String, Error> {
    let folders = PLACES.map(|place| format!("{place}/events/timer/tick_stop"));
    let found = folders.into_iter().find(|folder| fs::metadata(folder).is_ok());
    found.ok_or_else(|| {
        let why = "tracefs cannot be read, or this kernel has no timer:tick_stop";
        unseen(&format!("{why} (as root: mount -t tracefs nodev {})", PLACES[0]))
    })
}

fn unseen(why: &str) -> Error {
    Error::new(Kind::Privilege, format!("what keeps the tick is not seen: {why}"))
}

/// `struct perf_event_attr` as far as all kernels know it (`PERF_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

fn open(tracepoint: u64, cpu: Cpu) -> Result<OwnedFd, Error> {
    let asked = Attributes {
        kind: PERF_TYPE_TRACEPOINT,
        size: u32::try_from(size_of::<Attributes>()).unwrap_or(0),
        config: tracepoint,
        sample_period: 1,
        sample_type: PERF_SAMPLE_RAW,
        ..Attributes::default()
    };
    let (everybody, no_group) = (-1, -1);
    let cpu = i32::try_from(cpu.index()).unwrap_or(i32::MAX);
    // SAFETY: `asked` is as long as it says, outlives the call, and is only read.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const asked,
            everybody,
            cpu,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    match i32::try_from(opened) {
        // SAFETY: a new descriptor, nobody else's.
        Ok(file) if file >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(file) }),
        _ => {
            let error = std::io::Error::last_os_error();
            let help = "it needs root, or CAP_PERFMON and a readable tracefs";
            Err(unseen(&format!("perf_event_open: {error}: {help}")))
        }
    }
}

fn map(counter: &OwnedFd) -> Result<NonNull<u8>, Error> {
    let length = (PAGES + 1) * PAGE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let file = counter.as_raw_fd();
    // SAFETY: a new mapping, wherever the kernel wants it; checked below.
    let place = unsafe {
        libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, file, 0)
    };
    let failed = || unseen(&format!("its ring: {}", std::io::Error::last_os_error()));
    if place == libc::MAP_FAILED {
        return Err(failed());
    }
    NonNull::new(place.cast()).ok_or_else(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: tick_stop\nID: 454\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int success;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:int dependency;\toffset:12;\tsize:4;\tsigned:1;\n";

    /// Check that attempts that failed are named as the kernel does, and others are not told.
    #[test]
    fn attempts_are_named() {
        let fields = Fields::of(FORMAT).unwrap();
        assert_eq!(fields, Fields { success: 8, dependency: 12 });
        let record = |success: u32, dependency: u32| {
            let words = [7, 7, success, dependency].map(u32::to_ne_bytes);
            fields.kept(&words.concat()).map(|kept| kept.to_string())
        };
        assert_eq!(record(1, 0), None);
        let names = [1, 2, 4, 8, 0x10, 0x20, 0x40].map(|bits| record(0, bits).unwrap());
        let expected = [
            "POSIX_TIMER",
            "PERF_EVENTS",
            "SCHED",
            "CLOCK_UNSTABLE",
            "RCU",
            "RCU_EXP",
            "0x40",
        ];
        assert_eq!(names, expected);
        assert_eq!(fields.kept(&[0; 3]), None);
        assert_eq!(Fields::of("format:\n"), None);
    }

    /// Check that this machine's tracepoint can be watched; its CPUs keep no tick that way.
    #[test]
    fn this_machine() {
        match Attempts::watch(Cpu::new(0)) {
            Err(why) => println!("skipped: this_machine: {why}"),
            Ok(mut attempts) => {
                std::thread::sleep(std::time::Duration::from_millis(50));
                let nohz_full = facts::Facts::read(&facts::Root::live()).tick.nohz_full;
                if nohz_full.get().is_none_or(units::CpuSet::is_empty) {
                    assert_eq!(attempts.kept_by(), KeptBy::new());
                }
            }
        }
    }
}
