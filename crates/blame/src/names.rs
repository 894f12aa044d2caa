//! Names of events, by the kernel's numbers.

pub(crate) mod of_sums;
pub(crate) mod owners;
pub(crate) mod symbols;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use facts::{Interrupts, Root, Softirqs, Unit};
use recording::{Culprit, CulpritKind, Thread, ThreadOwner};

use crate::level::Level;
use crate::names::owners::owners;
use crate::names::symbols::each_symbol;
use crate::records::{Lane, NAMED, Record};

/// The vectors of x86, the same since Linux 5.8 (`arch/x86/include/asm/irq_vectors.h`).
const VECTORS: [(u32, &str); 11] = [
    (0xec, "local timer"),
    (0xf4, "deferred error"),
    (0xf6, "IRQ work"),
    (0xf7, "platform"),
    (0xf9, "threshold"),
    (0xfa, "thermal"),
    (0xfb, "call function single"),
    (0xfc, "call function"),
    (0xfd, "reschedule"),
    (0xfe, "APIC error"),
    (0xff, "spurious"),
];

/// The name of a CPU quota.
const QUOTA: &str = "CPU quota";

/// The vector of the local timer.
const TIMER: u32 = 0xec;

/// Strings that trace events refer to by address: `0x... : "..."`, one per line.
const TRACE_STRINGS: [&str; 2] =
    ["/sys/kernel/tracing/printk_formats", "/sys/kernel/debug/tracing/printk_formats"];

/// The prefix of the names of kernel worker threads.
const WORKER: &str = "kworker/";
/// The maximum length of a name in events.
const NAME_MAX: usize = 15;

/// The handler of an interrupt (`/proc/interrupts`).
struct Device {
    name: String,
    /// Whether it is the timer, as on arm64 and RISC-V; on x86 the timer has a vector.
    is_timer: bool,
}

/// The names on this kernel and machine.
pub(crate) struct Names {
    /// By address; of expired timers.
    functions: BTreeMap<u64, String>,
    /// By IRQ.
    devices: BTreeMap<u32, Device>,
    /// By address; of interrupts without a number.
    trace_strings: BTreeMap<u64, String>,
    /// By thread; if events have only a part of the name.
    threads: BTreeMap<u32, String>,
    /// By process.
    owners: BTreeMap<u32, ThreadOwner>,
    /// By process; of running ones.
    units: BTreeMap<u32, Unit>,
}

impl Names {
    /// The names of the recorded events: `/proc/kallsyms`, `/proc/interrupts`, `/proc/PID/comm`.
    /// Names that are hidden (`kernel.kptr_restrict`), or of threads that have ended, are missing.
    pub(crate) fn read(root: &Root, lanes: &[Lane]) -> Self {
        let records = || lanes.iter().flat_map(|lane| &lane.records);
        let text = root.text(Interrupts::FILE);
        let lines = text.and_then(|text| Interrupts::parse(&text, Interrupts::FILE));
        Self {
            functions: functions(records()),
            devices: lines.map_or_else(|_| BTreeMap::new(), |found| devices(&found)),
            trace_strings: trace_strings(root, records()),
            threads: full_names(root, records()),
            owners: owners(root, records()),
            units: units(root, records()),
        }
    }

    /// The culprit of a record.
    pub(crate) fn culprit(&self, record: &Record) -> Culprit {
        let named = |kind, name: String| Culprit { kind, name, thread: None };
        match record.level {
            Level::Thread => self.thread(record),
            Level::Softirq => {
                named(CulpritKind::Softirq, Softirqs::name(record.id.into()))
            }
            Level::Handler => match self.devices.get(&record.id) {
                Some(Device { name, is_timer: true }) => {
                    named(CulpritKind::Timer, self.timer(record.detail, name))
                }
                Some(Device { name, is_timer: false }) => {
                    named(CulpritKind::Irq, name.clone())
                }
                None => named(CulpritKind::Irq, format!("IRQ {}", record.id)),
            },
            Level::Vector if record.id == TIMER => {
                named(CulpritKind::Timer, self.timer(record.detail, &vector(TIMER)))
            }
            Level::Vector if record.id == NAMED => {
                let name = self.trace_strings.get(&record.detail).cloned();
                named(CulpritKind::Ipi, name.unwrap_or_else(|| "IPI".to_owned()))
            }
            Level::Vector => named(CulpritKind::Ipi, vector(record.id)),
            Level::Nmi => named(CulpritKind::Nmi, "NMI".to_owned()),
            Level::Quota => named(CulpritKind::Quota, QUOTA.to_owned()),
        }
    }

    fn thread(&self, record: &Record) -> Culprit {
        let name = self.threads.get(&record.id).cloned();
        let name = name.unwrap_or_else(|| record.name());
        let thread = Some(self.who(record));
        Culprit { kind: CulpritKind::Thread, name, thread }
    }

    fn who(&self, record: &Record) -> Thread {
        let prio = u32::try_from(record.detail & u64::from(u32::MAX)).unwrap_or(0);
        let process = record.process();
        Thread {
            tid: record.id,
            pid: process,
            prio: i32::from_ne_bytes(prio.to_ne_bytes()),
            owner: self.owners.get(&process).cloned(),
            unit: self.units.get(&process).cloned(),
            own: record.mark.is_self,
        }
    }

    fn timer(&self, function: u64, else_called: &str) -> String {
        self.functions.get(&function).map_or(else_called, String::as_str).to_owned()
    }
}

fn functions<'a>(records: impl Iterator<Item = &'a Record>) -> BTreeMap<u64, String> {
    let interrupts = [Level::Vector, Level::Handler];
    let timers = records.filter(|record| interrupts.contains(&record.level));
    let mut names: BTreeMap<u64, String> =
        timers.map(|record| (record.detail, String::new())).collect();
    names.remove(&0);
    if !names.is_empty() {
        name_functions(&mut names);
    }
    names.retain(|_, name| !name.is_empty());
    names
}

/// Inserts the names; of several names of one address, the last.
fn name_functions(functions: &mut BTreeMap<u64, String>) {
    // The kernel's own functions stay where they are. To read the symbols again for each of several
    // measurements would take milliseconds between them, and the caches from what is measured.
    static KNOWN: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    for (address, name) in functions.iter_mut() {
        *name = known.get(address).cloned().unwrap_or_default();
    }
    let mut unnamed = functions.values().filter(|name| name.is_empty()).count();
    if unnamed == 0 {
        return;
    }
    let _ = each_symbol(|symbol| match functions.get_mut(&symbol.address) {
        Some(slot) => {
            unnamed -= usize::from(slot.is_empty());
            *slot = String::from_utf8_lossy(symbol.name).into_owned();
            if !symbol.is_of_module {
                known.insert(symbol.address, slot.clone());
            }
            ControlFlow::Continue(())
        }
        None if unnamed == 0 => ControlFlow::Break(()),
        None => ControlFlow::Continue(()),
    });
}

/// The kernel's names of interrupts without a number.
fn trace_strings<'a>(
    root: &Root,
    mut records: impl Iterator<Item = &'a Record>,
) -> BTreeMap<u64, String> {
    if !records.any(|record| record.id == NAMED && record.level == Level::Vector) {
        return BTreeMap::new();
    }
    let text =
        TRACE_STRINGS.iter().find_map(|file| root.text(file).ok()).unwrap_or_default();
    text.lines().filter_map(phrase).collect()
}

fn phrase(line: &str) -> Option<(u64, String)> {
    let (address, text) = line.split_once(" : ")?;
    let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    Some((address, text.to_owned()))
}

/// Names of threads that are truncated in events. In a container a number may be another thread's.
fn full_names<'a>(
    root: &Root,
    records: impl Iterator<Item = &'a Record>,
) -> BTreeMap<u32, String> {
    let threads = records.filter(|record| record.level == Level::Thread);
    let named = threads.map(|record| (record.id, record.name()));
    let cut: BTreeMap<u32, String> = named.filter(|(_, name)| may_be_cut(name)).collect();
    let full = |(tid, name): (u32, String)| Some((tid, full_name(root, tid, &name)?));
    cut.into_iter().filter_map(full).collect()
}

/// The complete name of a kernel thread (since Linux 5.17); of a worker (`kworker/1:1`) with its
/// last queue (`kworker/1:1-events`). `None` if the name was complete, or the thread has ended.
pub(crate) fn full_name(root: &Root, tid: u32, name: &str) -> Option<String> {
    if !may_be_cut(name) {
        return None;
    }
    let complete = root.text(&format!("/proc/{tid}/comm")).ok()?;
    let complete = complete.trim_end();
    complete.starts_with(name).then(|| complete.to_owned())
}

fn may_be_cut(name: &str) -> bool {
    name.starts_with(WORKER) || name.len() == NAME_MAX
}

fn devices(interrupts: &Interrupts) -> BTreeMap<u32, Device> {
    let numbered = interrupts.lines().iter().filter_map(|line| {
        let device = Device { name: line.name.clone(), is_timer: line.timer };
        Some((line.label.parse().ok()?, device))
    });
    numbered.collect()
}

fn vector(number: u32) -> String {
    let known = VECTORS.iter().find(|(vector, _)| *vector == number);
    known.map_or_else(|| format!("vector {number:#x}"), |(_, name)| (*name).to_owned())
}

/// The units and containers of running processes (`/proc/PID/cgroup`). Kernel threads have none.
fn units<'a>(
    root: &Root,
    records: impl Iterator<Item = &'a Record>,
) -> BTreeMap<u32, Unit> {
    let threads = records.filter(|record| record.level == Level::Thread);
    let programs = threads.filter(|record| !record.is_idle() && !record.mark.is_kernel);
    let processes: BTreeSet<u32> = programs.map(Record::process).collect();
    let unit = |process: u32| {
        let groups = root.text(&format!("/proc/{process}/cgroup")).ok()?;
        Some((process, Unit::of_process(&groups)?))
    };
    processes.into_iter().filter_map(unit).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::records::Mark;

    /// A record of 1 ns without a cause.
    pub(crate) fn record(level: Level, id: u32, end: u64) -> Record {
        let (start, comm, mark) = (end - 1, [0; 16], Mark::default());
        Record { level, start, end, detail: 0, id, comm, mark }
    }

    /// Check the names of interrupts without vectors, as on arm64: the timer by the function of the
    /// expired timer, and those without a number by the kernel's string.
    #[test]
    fn names_without_vectors() {
        let text = "0xffff800001 : \"Rescheduling interrupts\"\nnonsense\n";
        let names = Names {
            functions: BTreeMap::from([(0xf, "tick_nohz_handler".to_owned())]),
            devices: devices(
                &Interrupts::parse(
                    "CPU0\n 11: 5 GICv3  27 Level     arch_timer\n 13: 5 GICv3  9 Edge   eth0\n",
                    Interrupts::FILE,
                )
                .unwrap(),
            ),
            trace_strings: text.lines().filter_map(phrase).collect(),
            threads: BTreeMap::new(),
            owners: BTreeMap::new(),
            units: BTreeMap::new(),
        };
        let culprit = |level, id, detail| {
            let record = Record { detail, ..record(level, id, 1) };
            let culprit = names.culprit(&record);
            (culprit.kind, culprit.name)
        };
        let named = |kind, name: &str| (kind, name.to_owned());
        let (ipi, timer) = (CulpritKind::Ipi, CulpritKind::Timer);
        let reschedule = culprit(Level::Vector, NAMED, 0x00ff_ff80_0001);
        assert_eq!(reschedule, named(ipi, "Rescheduling interrupts"));
        assert_eq!(culprit(Level::Vector, NAMED, 5), named(ipi, "IPI"));
        assert_eq!(culprit(Level::Handler, 11, 0xf), named(timer, "tick_nohz_handler"));
        assert_eq!(culprit(Level::Handler, 11, 0), named(timer, "arch_timer"));
        assert_eq!(culprit(Level::Handler, 13, 0xf), named(CulpritKind::Irq, "eth0"));
        assert_eq!(culprit(Level::Handler, 12, 0xf), named(CulpritKind::Irq, "IRQ 12"));
    }
}
