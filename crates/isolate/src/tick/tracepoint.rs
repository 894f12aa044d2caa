//! Tracing tracepoints on one CPU with `perf_event_open(2)`, in the order of their records.
//!
//! All of them write into one ring buffer. The events end with their file descriptors, so that
//! nothing has to be restored, and do not themselves keep the tick. Requires root or `CAP_PERFMON`,
//! and a mounted tracefs, whose `format` files have the offsets of the fields.
//!
//! Records that do not fit into the ring buffer between two readings are lost; the kernel counts
//! them.

use std::fs;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
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
/// `_IO('$', 5)`: writes the records of an event into the ring buffer of another one.
const PERF_EVENT_IOC_SET_OUTPUT: libc::Ioctl = 0x2405;
const PERF_RECORD_LOST: u32 = 2;
const PERF_RECORD_SAMPLE: u32 = 9;
/// The offsets of the producer's and consumer's positions in `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

/// A tracepoint to open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point<K> {
    /// What its records are.
    pub(crate) kind: K,
    /// Its name in tracefs, such as `timer/tick_stop`.
    pub(crate) name: &'static str,
    /// The fields that are read.
    pub(crate) fields: &'static [&'static str],
}

/// The records of tracepoints on one CPU.
#[derive(Debug)]
pub(crate) struct Tracepoints<K> {
    _counters: Vec<OwnedFd>,
    ring: NonNull<u8>,
    formats: Vec<Format<K>>,
    lost: u64,
}

impl<K: Copy> Tracepoints<K> {
    /// Opens all of them.
    ///
    /// # Errors
    /// `Kind::Privilege` if tracefs or a tracepoint cannot be used.
    pub(crate) fn open(points: &[Point<K>], cpu: Cpu) -> Result<Self, Error> {
        let formats = points.iter().map(Format::read).collect::<Result<Vec<_>, _>>()?;
        let open = |format: &Format<K>| perf_event(format.id.into(), cpu);
        let counters = formats.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let (first, others) = counters.split_first().ok_or_else(|| failed("none"))?;
        let ring = map(first)?;
        let redirected = others.iter().try_for_each(|other| redirect(other, first));
        let all = Self { ring, formats, lost: 0, _counters: counters };
        redirected.map(|()| all)
    }

    /// The records since the last call, in order.
    pub(crate) fn take(&mut self) -> Vec<Record<K>> {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut at = self.position(TAIL).load(Ordering::Relaxed);
        let mut found = Vec::new();
        while at < head {
            let header = self.bytes(at, 8);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let length = u64::from(u16::from_ne_bytes([header[6], header[7]]));
            match kind {
                // The record's header, the length of the raw data, and the raw data.
                PERF_RECORD_SAMPLE => {
                    let data = self.bytes(at + 12, length.saturating_sub(12));
                    found.extend(self.formats.iter().find_map(|one| one.record(&data)));
                }
                // The record's header, the event, and the number.
                PERF_RECORD_LOST => {
                    let lost = Field { offset: 0, size: 8 };
                    self.lost += lost.number(&self.bytes(at + 16, 8));
                }
                _ => (),
            }
            // A length of zero would never end the loop.
            at += length.max(8);
        }
        self.position(TAIL).store(head, Ordering::Release);
        found
    }

    /// The number of records lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
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

impl<K> Drop for Tracepoints<K> {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and not used any more.
        let _ = unsafe { munmap(self.ring.as_ptr().cast(), (PAGES + 1) * PAGE) };
    }
}

/// A record of a tracepoint: the bytes of each requested field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record<K> {
    /// What it is.
    pub(crate) kind: K,
    fields: Vec<Vec<u8>>,
}

impl<K> Record<K> {
    /// A record with these bytes of its fields.
    #[cfg(test)]
    pub(crate) fn of(kind: K, fields: &[&[u8]]) -> Self {
        Self { kind, fields: fields.iter().map(|field| field.to_vec()).collect() }
    }

    /// The number in a field of at most eight bytes.
    pub(crate) fn number(&self, field: usize) -> u64 {
        let bytes = self.fields.get(field).map_or(&[][..], Vec::as_slice);
        Field { offset: 0, size: bytes.len() }.number(bytes)
    }

    /// The text in a field, up to its terminating zero.
    pub(crate) fn text(&self, field: usize) -> String {
        let bytes = self.fields.get(field).map_or(&[][..], Vec::as_slice);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

/// Where the fields are in the records of a tracepoint.
#[derive(Debug)]
struct Format<K> {
    kind: K,
    /// The number of the tracepoint, the first field of its records.
    id: u16,
    fields: Vec<Field>,
}

impl<K: Copy> Format<K> {
    fn read(point: &Point<K>) -> Result<Self, Error> {
        let folder = folder(point.name)?;
        let read = |name: &str| {
            let file = format!("{folder}/{name}");
            fs::read_to_string(&file).map_err(|error| {
                let text = format!("failed to read {file}");
                failed(Error::new(Kind::Privilege, text).caused_by(error))
            })
        };
        let invalid = || failed(format!("{folder}: unknown format"));
        let id = read("id")?.trim().parse().map_err(|_| invalid())?;
        let fields = Field::all(&read("format")?, point.fields).ok_or_else(invalid)?;
        Ok(Self { kind: point.kind, id, fields })
    }

    /// A record; `None` if it is of another tracepoint, or too short.
    fn record(&self, data: &[u8]) -> Option<Record<K>> {
        let id = u16::from_ne_bytes([*data.first()?, *data.get(1)?]);
        if id != self.id {
            return None;
        }
        let field = |field: &Field| Some(data.get(field.place())?.to_vec());
        let fields = self.fields.iter().map(field).collect::<Option<_>>()?;
        Some(Record { kind: self.kind, fields })
    }
}

/// The offset and size of a field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// Parses the tracepoint's `format`: `field:int success; offset:8; size:4; signed:1;`. The name
    /// of an array is followed by its length.
    fn all(format: &str, names: &[&str]) -> Option<Vec<Self>> {
        let field = |name: &&str| {
            let ends = [format!(" {name};"), format!(" {name}[")];
            let is_field = |line: &&str| ends.iter().any(|end| line.contains(end));
            let line = format.lines().find(is_field)?;
            let number = |key: &str| {
                let (number, _) = line.split_once(key)?.1.split_once(';')?;
                number.trim().parse().ok()
            };
            Some(Self { offset: number("offset:")?, size: number("size:")? })
        };
        names.iter().map(field).collect()
    }

    fn place(self) -> Range<usize> {
        self.offset..self.offset + self.size
    }

    /// The number in that place; 0 if it is missing or has more than eight bytes.
    fn number(self, bytes: &[u8]) -> u64 {
        let mut whole = [0; 8];
        let found = bytes.get(self.place()).zip(whole.get_mut(..self.size));
        if let Some((bytes, whole)) = found {
            whole.copy_from_slice(bytes);
        }
        u64::from_ne_bytes(whole)
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

fn redirect(counter: &OwnedFd, to: &OwnedFd) -> Result<(), Error> {
    // SAFETY: both descriptors are open; the third argument is a number.
    let done = unsafe {
        libc::ioctl(counter.as_raw_fd(), PERF_EVENT_IOC_SET_OUTPUT, to.as_raw_fd())
    };
    match done {
        0 => Ok(()),
        _ => Err(failed(std::io::Error::last_os_error())),
    }
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

    /// Check that fields are found by name, and read with their size, texts too, and that records
    /// of other tracepoints are not read.
    #[test]
    fn fields_by_name() {
        let format = format!("{FORMAT}\tfield:char comm[16];\toffset:24;\tsize:16;\n");
        let fields = Field::all(&format, &["function", "vec", "comm"]).unwrap();
        let place = |offset, size| Field { offset, size };
        assert_eq!(fields, [place(16, 8), place(8, 4), place(24, 16)]);
        let mut data: Vec<u8> = (0..24).collect();
        data.extend_from_slice(b"timer-owner\0xyz\0");
        let format = Format { kind: (), id: u16::from_ne_bytes([0, 1]), fields };
        let record = format.record(&data).unwrap();
        let numbers = [0, 1].map(|field| record.number(field));
        assert_eq!(numbers, [0x1716_1514_1312_1110, 0x0b0a_0908]);
        assert_eq!((record.text(2), record.number(2)), ("timer-owner".to_owned(), 0));
        assert_eq!(format.record(&data[..39]), None);
        assert_eq!(Format { id: 7, ..format }.record(&data), None);
        assert_eq!(Field::all(FORMAT, &["vec", "success"]), None);
    }
}
