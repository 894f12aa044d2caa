//! The eBPF source: programs at raw tracepoints, the cheapest kind (since Linux 5.10, to run one of
//! them by hand; BTF has the offsets of fields).
//!
//! Records every interrupt with a tracepoint, and the time that a hypervisor took from the CPU, if
//! it exports that. Cannot see the edges of an interruption, nor system management mode. The
//! programs are removed with the process, however that ends.

pub(crate) mod alarm;
pub(crate) mod attached;
pub(crate) mod mapped;
pub(crate) mod nesting;
pub(crate) mod object;
pub(crate) mod outside;
pub(crate) mod refusal;
pub(crate) mod ring;
pub(crate) mod switch_programs;
pub(crate) mod threads;
pub(crate) mod top_programs;
pub(crate) mod verifier_log;
pub(crate) mod wake_programs;
pub(crate) mod watch_programs;
pub(crate) mod watch_tables;

use std::os::fd::BorrowedFd;
use std::time::Duration;

use facts::Facts;
use libbpf_rs::libbpf_sys::BPF_FUNC_get_current_task_btf;
use libbpf_rs::{MapHandle, ProgramInput, ProgramType, TracepointCategory};
use units::CpuSet;

use crate::bpf::alarm::Alarm;
use crate::bpf::attached::{Attached, failed, too_many};
use crate::bpf::object::{Loaded, Opened};
use crate::bpf::outside::OutsideQueue;
use crate::bpf::refusal::Needs;
use crate::bpf::ring::{Amount, Comm, Record, Rings, begin_lanes};
use crate::error::{Error, Kind};
use crate::level::Level;
use crate::records::{Lane, Outside};
use crate::ring_sizes::RingSizes;
use crate::source::{EventSource, Threads};

/// The architecture's own interrupts, by the names of x86's tracepoints
/// (`arch/x86/include/asm/trace/irq_vectors.h`): entry and exit.
#[cfg(target_arch = "x86_64")]
pub(crate) const VECTORS: &[(&str, &str)] = &[
    ("local_timer_entry", "local_timer_exit"),
    ("reschedule_entry", "reschedule_exit"),
    ("call_function_entry", "call_function_exit"),
    ("call_function_single_entry", "call_function_single_exit"),
    ("irq_work_entry", "irq_work_exit"),
    ("x86_platform_ipi_entry", "x86_platform_ipi_exit"),
    ("spurious_apic_entry", "spurious_apic_exit"),
    ("error_apic_entry", "error_apic_exit"),
    ("threshold_apic_entry", "threshold_apic_exit"),
    ("deferred_error_apic_entry", "deferred_error_apic_exit"),
    ("thermal_apic_entry", "thermal_apic_exit"),
];

/// Other architectures have one for all inter-processor interrupts (`include/trace/events/ipi.h`),
/// and their timers are devices.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const VECTORS: &[(&str, &str)] = &[];
const IPI: Option<(&str, &str)> =
    if cfg!(target_arch = "x86_64") { None } else { Some(("ipi_entry", "ipi_exit")) };

/// The kind of tracepoint that programs are attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Points {
    /// The programs get the arguments that the kernel passes.
    Raw,
    /// Perf first writes a record of them.
    Classic,
}

/// How a program at a classic tracepoint reads the running task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Directly: since Linux 5.11 a helper returns it with its type.
    Direct,
    /// With helpers that copy its fields.
    Copied,
}

impl Access {
    /// The cheaper way that this kernel supports. If the kernel does not report that, loading finds
    /// out.
    fn detect() -> Self {
        let program = ProgramType::RawTracepoint;
        match program.is_helper_supported(BPF_FUNC_get_current_task_btf) {
            Ok(false) => Self::Copied,
            Ok(true) | Err(_) => Self::Direct,
        }
    }
}

/// The compiled `events.bpf.c`.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/events.o"));
/// The prefix of the classic programs' names.
const CLASSIC: &str = "classic_";
/// The program that is not attached, and is run to find the PID of this process.
const HELLO: &str = "hello";
/// No process has this number.
const NO_PROCESS: u32 = u32::MAX;
/// The programs that track child processes, and mark their threads.
const MARKING: [&str; 3] = ["forked", "freed", "switched_marked"];
/// Those at `sched_switch` without marks, of which one is loaded: they differ in how they read the
/// running task.
const SWITCHED: [&str; 3] = ["switched", "classic_switched", "classic_switched_copied"];
/// The programs' requirements; marks require more.
const NEEDS: Needs = Needs { version: (5, 10), why: "it lets a program be run by hand" };
const NEEDS_MARKING: Needs = Needs { version: (5, 18), why: refusal::STATE };
/// The most CPUs, in each of the BPF programs.
pub(crate) const CPUS: usize = 4096;
/// The most concurrent children; those beyond are taken for other processes.
const CHILDREN: u32 = 1 << 16;

/// The interval in which the rings are read: without an alarm it limits how long they are unread (see
/// [`crate::ring_sizes`]); with one it is not needed.
const PERIOD: Duration = Duration::from_millis(50);
const PERIOD_WITH_ALARM: Duration = Duration::from_secs(60);

/// The interval between slices, after an alarm.
const PERIOD_OF_SLICES: Duration = Duration::from_millis(20);

/// The attached programs, and their data.
pub(crate) struct Programs {
    attached: Attached,
    rings: Rings,
    /// Only with marks.
    outside_queue: Option<OutsideQueue>,
    outside: Outside,
    alarm: Option<Alarm>,
    has_stopped: bool,
}

impl EventSource for Programs {
    fn read(&mut self, lanes: &mut [Lane]) {
        let is_slice = self.alarm.is_some() && !self.has_stopped;
        self.read_amount(lanes, if is_slice { Amount::Slice } else { Amount::All });
    }

    fn read_all(&mut self, lanes: &mut [Lane]) -> bool {
        self.read_amount(lanes, Amount::All);
        true
    }

    fn take_outside(&mut self) -> Outside {
        self.outside.take()
    }

    fn alarms(&self) -> Vec<BorrowedFd<'_>> {
        self.alarm.iter().map(Alarm::fd).collect()
    }

    fn period(&self) -> Duration {
        match self.alarm {
            None => PERIOD,
            Some(_) if self.rings.has_rest() => PERIOD_OF_SLICES,
            Some(_) => PERIOD_WITH_ALARM,
        }
    }

    fn stop(&mut self) {
        self.has_stopped = true;
        self.attached.links.clear();
    }

    fn missing(&self) -> Vec<String> {
        self.attached.missing.iter().map(|name| (*name).to_owned()).collect()
    }
}

impl Programs {
    fn read_amount(&mut self, lanes: &mut [Lane], amount: Amount) {
        // First: an alarm that comes while the rings are read is not lost.
        if let Some(alarm) = &self.alarm {
            alarm.reset();
        }
        self.rings.begin(amount);
        for (place, lane) in lanes.iter_mut().enumerate() {
            for level in Level::ALL {
                self.rings.drain(place, level, |record| lane.push(level, record));
            }
            self.rings.drain_steal(place, |stolen| lane.push_stolen(stolen));
            lane.has_steal_clock = self.rings.has_steal_clock(place);
        }
        if let Some(queue) = &self.outside_queue {
            queue.drain(&mut self.outside);
        }
    }

    /// Loads and attaches them.
    ///
    /// # Errors
    /// They cannot be loaded; nothing is attached.
    pub(crate) fn load(
        cpus: &CpuSet,
        points: Points,
        threads: Threads,
        facts: &Facts,
    ) -> Result<Self, Error> {
        let needs = if threads == Threads::Marked { NEEDS_MARKING } else { NEEDS };
        refusal::explained(facts, needs, || Self::try_load(cpus, points, threads))
    }

    fn try_load(cpus: &CpuSet, points: Points, threads: Threads) -> Result<Self, Error> {
        let mut opened = Opened::open("events", OBJECT)?;
        let (record, comm) = (size_of::<Record>(), size_of::<Comm>());
        let sizes = RingSizes::for_cpus(cpus.len(), record, comm);
        assign_lanes(&mut opened, cpus, sizes)?;
        if threads == Threads::Marked {
            opened.set_capacity("children", CHILDREN)?;
            OutsideQueue::size(&mut opened)?;
        }
        let access = Access::detect();
        choose(&mut opened, points, threads, access);
        let loaded = opened.load()?;
        let mut own = NO_PROCESS;
        if threads != Threads::All {
            let hello = loaded.program(HELLO)?;
            own = hello.test_run(ProgramInput::default()).map_err(failed)?.return_value;
        }
        begin_lanes(&loaded, cpus, sizes, own)?;
        let rings = Rings::new(&loaded, cpus, sizes)?;
        let alarms = MapHandle::try_from(&loaded.map("alarms")?);
        let alarm = alarms.ok().and_then(Alarm::open);
        let outside_queue = (threads == Threads::Marked)
            .then(|| OutsideQueue::new(&loaded))
            .transpose()?;
        let mut program = Self {
            attached: Attached::default(),
            rings,
            outside_queue,
            outside: Outside::default(),
            alarm,
            has_stopped: false,
        };
        match points {
            Points::Raw => program.attach_raw(&loaded, threads)?,
            Points::Classic => program.attach_classic(&loaded, access)?,
        }
        Ok(program)
    }

    /// Exits first: an event without its beginning is omitted, one without its end would not end.
    fn attach_raw(&mut self, loaded: &Loaded, threads: Threads) -> Result<(), Error> {
        for (entry, exit) in VECTORS {
            self.raw(loaded, exit, "vector_exit")?;
            self.raw(loaded, entry, "vector_entry")?;
        }
        if let Some((entry, exit)) = IPI {
            self.raw(loaded, exit, "ipi_exit")?;
            self.raw(loaded, entry, "vector_entry")?;
        }
        self.raw(loaded, "irq_handler_exit", "handler_exit")?;
        self.raw(loaded, "irq_handler_entry", "handler_entry")?;
        self.raw(loaded, "softirq_exit", "softirq_exit")?;
        self.raw(loaded, "softirq_entry", "softirq_entry")?;
        self.typed(loaded, "timer_expired")?;
        self.raw(loaded, "nmi_handler", "nmi")?;
        if threads != Threads::Marked {
            return self.typed(loaded, switched(Points::Raw, Access::Direct));
        }
        self.raw(loaded, "sched_process_free", "freed")?;
        self.raw(loaded, "sched_process_fork", "forked")?;
        self.typed(loaded, "switched_marked")
    }

    /// Attaches a program whose tracepoint is in its section: its arguments have types, and are read
    /// without a helper.
    fn typed(&mut self, loaded: &Loaded, program: &str) -> Result<(), Error> {
        let link = loaded.program(program)?.attach_trace().map_err(failed)?;
        self.attached.links.push(link);
        Ok(())
    }

    fn raw(
        &mut self,
        loaded: &Loaded,
        point: &'static str,
        program: &str,
    ) -> Result<(), Error> {
        self.attached.raw(point, &loaded.program(program)?)
    }

    fn attach_classic(&mut self, loaded: &Loaded, access: Access) -> Result<(), Error> {
        use TracepointCategory::{Irq, Nmi, Sched, Timer};
        let vectors = || TracepointCategory::Custom("irq_vectors".to_owned());
        let mut attach = |group, point, program| -> Result<(), Error> {
            let program = loaded.program(program)?;
            self.attached.keep(point, program.attach_tracepoint(group, point))
        };
        for (entry, exit) in VECTORS {
            attach(vectors(), exit, "classic_vector_exit")?;
            attach(vectors(), entry, "classic_vector_entry")?;
        }
        attach(Irq, "irq_handler_exit", "classic_handler_exit")?;
        attach(Irq, "irq_handler_entry", "classic_handler_entry")?;
        attach(Irq, "softirq_exit", "classic_softirq_exit")?;
        attach(Irq, "softirq_entry", "classic_softirq_entry")?;
        attach(Timer, "hrtimer_expire_entry", "classic_timer_expired")?;
        attach(Nmi, "nmi_handler", "classic_nmi")?;
        attach(Sched, "sched_switch", switched(Points::Classic, access))
    }
}

/// Disables the programs that are not needed.
fn choose(opened: &mut Opened, points: Points, threads: Threads, access: Access) {
    let marks = threads == Threads::Marked;
    let at_switch = (!marks).then(|| switched(points, access));
    opened.choose(|name| {
        if MARKING.contains(&name) {
            marks
        } else if SWITCHED.contains(&name) {
            at_switch == Some(name)
        } else {
            name == HELLO || name.starts_with(CLASSIC) == (points == Points::Classic)
        }
    });
}

/// Which of `SWITCHED` is loaded.
fn switched(points: Points, access: Access) -> &'static str {
    let [raw, classic, classic_copied] = SWITCHED;
    match (points, access) {
        (Points::Raw, Access::Direct | Access::Copied) => raw,
        (Points::Classic, Access::Direct) => classic,
        (Points::Classic, Access::Copied) => classic_copied,
    }
}

/// Assigns each CPU its lane.
fn assign_lanes(
    opened: &mut Opened,
    cpus: &CpuSet,
    sizes: RingSizes,
) -> Result<(), Error> {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let cpus_count = count(cpus.len());
    let of_lane = count(sizes.of_lane());
    let depths = sizes.depths();
    let comms = cpus_count.saturating_mul(depths[Level::Thread as usize]);
    let last = cpus.iter().last().ok_or_else(|| Error::new(Kind::System, "no CPU"))?;
    if last.index() >= CPUS {
        return Err(too_many(last));
    }
    opened.set_capacity("lanes", count(last.index() + 1))?;
    opened.set_capacity("rings", cpus_count.saturating_mul(of_lane))?;
    opened.set_capacity("comms", comms)
}

/// For each CPU up to the last one of the set: its index in the set plus one, or 0.
///
/// # Errors
/// A number is above those that the programs support.
pub(crate) fn places(cpus: &CpuSet) -> Result<Vec<u16>, Error> {
    let mut places = vec![0; cpus.iter().last().map_or(0, |last| last.index() + 1)];
    for (place, cpu) in (1..).zip(cpus.iter()) {
        places[cpu.index()] = place;
    }
    match cpus.iter().last() {
        Some(last) if last.index() >= CPUS => Err(too_many(last)),
        _ => Ok(places),
    }
}
