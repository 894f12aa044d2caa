//! Tracing one tracepoint on one CPU with `perf_event_open(2)`.
//!
//! The event does not itself keep the tick. Requires root or `CAP_PERFMON`, and a mounted tracefs, whose `format` files have
//! the offsets of the fields.
//!
//! Records that do not fit into the ring buffer between two readings are lost and not counted.

use std::fs;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use units::{Cause, Cpu, Helped};

use crate::error::{Error, Kind};
use crate::perf_event::{self, Attributes};

/// The mount points of tracefs; the second is mounted by debugfs automatically.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const PAGE: usize = 4096;
/// The size of the ring buffer in pages; a power of two.
const PAGES: usize = 64;
/// `watermark`, the 15th bit of the attributes' flags: `wakeup_events` is a number of bytes. It is
/// larger than the ring, so the kernel never wakes the reader, which polls: a wake-up would be work
/// on the traced CPU, with PREEMPT_RT for a thread that may not run.
const WATERMARK: u64 = 1 << 14;
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_SAMPLE_RAW: u64 = 1 << 10;
const PERF_RECORD_SAMPLE: u32 = 9;
/// The offsets of the producer's and consumer's positions in `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// The records of one tracepoint on one CPU, with `N` fields of each.
#[derive(Debug)]
pub(crate) struct Tracepoint<const N: usize> {
    _counter: OwnedFd,
    ring: NonNull<u8>,
    fields: [Field; N],
}

impl<const N: usize> Tracepoint<N> {
    /// Opens a tracepoint, such as `timer/tick_stop`, with these fields.
    ///
    /// # Errors
    /// `Kind::Privilege` if tracefs or the tracepoint cannot be used.
    pub(crate) fn open(point: &str, fields: [&str; N], cpu: Cpu) -> Result<Self, Error> {
        let folder = folder(point)?;
        let read = |name: &str| {
            let file = format!("{folder}/{name}");
            fs::read_to_string(&file).map_err(|error| {
                let text = format!("failed to read {file}");
                failed(Error::new(Kind::Privilege, text).caused_by(error))
            })
        };
        let invalid = || failed(format!("{folder}: unknown format"));
        let id = read("id")?.trim().parse().map_err(|_| invalid())?;
        let fields = Field::all(&read("format")?, fields).ok_or_else(invalid)?;
        let counter = perf_event(id, cpu)?;
        let ring = map(&counter)?;
        Ok(Self { _counter: counter, ring, fields })
    }

    /// The records since the last call, in order.
    pub(crate) fn take(&mut self) -> Vec<[u64; N]> {
        let (head, tail) = (self.position(HEAD), self.position(TAIL));
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        let mut found = Vec::new();
        while at < end {
            let header = self.bytes(at, 8);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let length = u64::from(u16::from_ne_bytes([header[6], header[7]]));
            if kind == PERF_RECORD_SAMPLE {
                // The record's header, the length of the raw data, and the raw data.
                let record = self.bytes(at + 12, length.saturating_sub(12));
                found.extend(Field::values(&self.fields, &record));
            }
            // A length of zero would never end the loop.
            at += length.max(8);
        }
        tail.store(end, Ordering::Release);
        found
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the mapped page is aligned, longer than that, and lives as long as `self`;
        // kernel and process both access these words as atomics.
        unsafe { self.ring.add(offset).cast().as_ref() }
    }

    /// Copies bytes of the ring buffer, with wrap-around.
    fn bytes(&self, at: u64, length: u64) -> Vec<u8> {
        let size = (PAGES * PAGE) as u64;
        let byte = |place: u64| {
            let offset = usize::try_from(place % size).unwrap_or(0);
            // SAFETY: below the size of the data pages, which are mapped after the first page.
            unsafe { self.ring.add(PAGE + offset).read_volatile() }
        };
        (at..at + length).map(byte).collect()
    }
}

impl<const N: usize> Drop for Tracepoint<N> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and not used any more.
        let _ = unsafe { munmap(self.ring.as_ptr().cast(), (PAGES + 1) * PAGE) };
    }
}

/// The offset and size of a field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// Parses the tracepoint's `format`: `field:int success; offset:8; size:4; signed:1;`.
    pub(crate) fn all<const N: usize>(
        format: &str,
        names: [&str; N],
    ) -> Option<[Self; N]> {
        let mut fields = [Self::default(); N];
        for (field, name) in fields.iter_mut().zip(names) {
            let line = format.lines().find(|line| line.contains(&format!(" {name};")))?;
            let number = |key: &str| {
                let (number, _) = line.split_once(key)?.1.split_once(';')?;
                number.trim().parse().ok()
            };
            *field = Self { offset: number("offset:")?, size: number("size:")? };
        }
        Some(fields)
    }

    /// The fields of one record; `None` if it is too short.
    pub(crate) fn values<const N: usize>(
        fields: &[Self; N],
        record: &[u8],
    ) -> Option<[u64; N]> {
        let mut values = [0; N];
        for (value, Self { offset, size }) in values.iter_mut().zip(fields) {
            let bytes = record.get(*offset..*offset + *size)?;
            let mut whole = [0; 8];
            whole.get_mut(..*size)?.copy_from_slice(bytes);
            *value = u64::from_le_bytes(whole);
        }
        Some(values)
    }
}

/// The directory of a tracepoint.
fn folder(point: &str) -> Result<String, Error> {
    let folders = MOUNTS.map(|place| format!("{place}/events/{point}"));
    let found = folders.into_iter().find(|folder| fs::metadata(folder).is_ok());
    found.ok_or_else(|| {
        let point = point.replace('/', ":");
        let why = format!("tracefs cannot be read, or this kernel has no {point}");
        failed(format!("{why} (as root: mount -t tracefs nodev {})", MOUNTS[0]))
    })
}

fn failed(why: impl Into<Cause>) -> Error {
    Error::new(Kind::Privilege, "failed to trace what keeps the tick").caused_by(why)
}

fn perf_event(tracepoint: u64, cpu: Cpu) -> Result<OwnedFd, Error> {
    let attributes = Attributes {
        kind: PERF_TYPE_TRACEPOINT,
        config: tracepoint,
        sample_period: 1,
        sample_type: PERF_SAMPLE_RAW,
        flags: WATERMARK,
        wakeup_events: u32::MAX,
        ..Attributes::default()
    };
    perf_event::open(attributes, cpu).map_err(|error| {
        let help = "it needs root, or CAP_PERFMON and a readable tracefs";
        let refused = Error::new(Kind::Privilege, "failed to open the tracepoint");
        failed(refused.caused_by(Helped::new(error, help)))
    })
}

fn map(counter: &OwnedFd) -> Result<NonNull<u8>, Error> {
    let length = (PAGES + 1) * PAGE;
    let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping at an address that the kernel chooses.
    let place = unsafe { mmap(std::ptr::null_mut(), length, access, shared, counter, 0) };
    NonNull::new(place.map_err(failed)?.cast()).ok_or_else(|| failed(Errno::NOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: timer_expire_entry\nID: 454\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:void * function;\toffset:16;\tsize:8;\tsigned:0;\n";

    /// Check that fields are found by name, and read with their size.
    #[test]
    fn fields_by_name() {
        let fields = Field::all(FORMAT, ["function", "vec"]).unwrap();
        let place = |offset, size| Field { offset, size };
        assert_eq!(fields, [place(16, 8), place(8, 4)]);
        let record: Vec<u8> = (0..24).collect();
        let function = 0x1716_1514_1312_1110;
        assert_eq!(Field::values(&fields, &record), Some([function, 0x0b0a_0908]));
        assert_eq!(Field::values(&fields, &record[..20]), None);
        assert_eq!(Field::all(FORMAT, ["vec", "success"]), None);
    }
}
