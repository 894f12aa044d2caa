//! The eBPF source: programs at raw tracepoints, the cheapest kind (since Linux 5.10, to run one of
//! them by hand; BTF has the offsets of fields).
//!
//! Records every interrupt with a tracepoint, and the time that a hypervisor took from the CPU, if
//! it exports that. Cannot see the edges of an interruption, nor system management mode. The
//! programs are removed with the process, however that ends.

pub(crate) mod attached;
pub(crate) mod mapped;
pub(crate) mod refusal;
pub(crate) mod ring;
pub(crate) mod skeleton;
pub(crate) mod switch_programs;
pub(crate) mod verifier_log;
pub(crate) mod wake_programs;

use std::mem::MaybeUninit;

use facts::Facts;
use libbpf_rs::libbpf_sys::BPF_FUNC_get_current_task_btf;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{ProgramInput, ProgramMut, ProgramType, TracepointCategory};
use units::CpuSet;

use crate::bpf::attached::{Attached, failed, too_many};
use crate::bpf::refusal::Needs;
use crate::bpf::ring::Rings;
use crate::bpf::skeleton::events::{
    EventsProgs, EventsSkelBuilder, OpenEventsSkel, types,
};
use crate::error::Error;
use crate::level::Level;
use crate::records::Lane;
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

/// How a program reads the running task.
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

/// The prefix of the classic programs' names.
const CLASSIC: &str = "classic_";
/// The program that is not attached, and is run to find the PID of this process.
const HELLO: &str = "hello";
/// The programs that track child processes, and mark their threads.
const MARKING: [&str; 3] = ["forked", "freed", "switched_marked"];
/// Those at `sched_switch` without marks, of which one is loaded: they differ in how they read the
/// running task.
const SWITCHED: [&str; 4] =
    ["switched", "switched_copied", "classic_switched", "classic_switched_copied"];
/// The programs' requirements; marks require more.
const NEEDS: Needs = Needs { version: (5, 10), why: "it lets a program be run by hand" };
const NEEDS_MARKING: Needs = Needs { version: (5, 18), why: refusal::STATE };
/// The most concurrent children; those beyond are taken for other processes.
const CHILDREN: u32 = 1 << 16;

/// The attached programs, and their data.
pub(crate) struct Programs {
    attached: Attached,
    rings: Rings,
}

impl EventSource for Programs {
    fn read(&mut self, lanes: &mut [Lane]) {
        for (place, lane) in lanes.iter_mut().enumerate() {
            for level in Level::ALL {
                self.rings.drain(place, level, |record| lane.push(level, record));
            }
            self.rings.drain_steal(place, |stolen| lane.push_stolen(stolen));
            lane.has_steal_clock = self.rings.has_steal_clock(place);
        }
    }

    fn stop(&mut self) -> Vec<String> {
        self.attached.links.clear();
        self.attached.missing.iter().map(|name| (*name).to_owned()).collect()
    }
}

impl Programs {
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
        let mut object = MaybeUninit::uninit();
        let mut open = EventsSkelBuilder::default().open(&mut object).map_err(failed)?;
        let (record, comm) = (size_of::<types::record>(), size_of::<types::comm>());
        let sizes = RingSizes::for_cpus(cpus.len(), record, comm);
        assign_lanes(&mut open, cpus, sizes)?;
        if threads == Threads::Marked {
            open.maps.children.set_max_entries(CHILDREN).map_err(failed)?;
        }
        let access = Access::detect();
        if let Some(data) = &mut open.maps.rodata_data {
            data.has_task = u8::from(access == Access::Direct);
        }
        choose(&mut open, points, threads, access);
        let loaded = open.load().map_err(failed)?;
        if threads != Threads::All {
            loaded.progs.hello.test_run(ProgramInput::default()).map_err(failed)?;
        }
        let maps = &loaded.maps;
        let rings = Rings::new(&maps.lanes, &maps.rings, &maps.comms, cpus.len(), sizes)?;
        let mut program = Self { attached: Attached::default(), rings };
        match points {
            Points::Raw => program.attach_raw(&loaded.progs, threads, access)?,
            Points::Classic => program.attach_classic(&loaded.progs, access)?,
        }
        Ok(program)
    }

    /// Exits first: an event without its beginning is omitted, one without its end would not end.
    fn attach_raw(
        &mut self,
        programs: &EventsProgs<'_>,
        threads: Threads,
        access: Access,
    ) -> Result<(), Error> {
        for (entry, exit) in VECTORS {
            self.attached.raw(exit, &programs.vector_exit)?;
            self.attached.raw(entry, &programs.vector_entry)?;
        }
        if let Some((entry, exit)) = IPI {
            self.attached.raw(exit, &programs.ipi_exit)?;
            self.attached.raw(entry, &programs.vector_entry)?;
        }
        self.attached.raw("irq_handler_exit", &programs.handler_exit)?;
        self.attached.raw("irq_handler_entry", &programs.handler_entry)?;
        self.attached.raw("softirq_exit", &programs.softirq_exit)?;
        self.attached.raw("softirq_entry", &programs.softirq_entry)?;
        self.attached.raw("hrtimer_expire_entry", &programs.timer_expired)?;
        self.attached.raw("nmi_handler", &programs.nmi)?;
        if threads != Threads::Marked {
            let switched = match access {
                Access::Direct => &programs.switched,
                Access::Copied => &programs.switched_copied,
            };
            return self.attached.raw("sched_switch", switched);
        }
        self.attached.raw("sched_process_free", &programs.freed)?;
        self.attached.raw("sched_process_fork", &programs.forked)?;
        self.attached.raw("sched_switch", &programs.switched_marked)
    }

    fn attach_classic(
        &mut self,
        programs: &EventsProgs<'_>,
        access: Access,
    ) -> Result<(), Error> {
        use TracepointCategory::{Irq, Nmi, Sched, Timer};
        let vectors = || TracepointCategory::Custom("irq_vectors".to_owned());
        for (entry, exit) in VECTORS {
            self.classic(vectors(), exit, &programs.classic_vector_exit)?;
            self.classic(vectors(), entry, &programs.classic_vector_entry)?;
        }
        self.classic(Irq, "irq_handler_exit", &programs.classic_handler_exit)?;
        self.classic(Irq, "irq_handler_entry", &programs.classic_handler_entry)?;
        self.classic(Irq, "softirq_exit", &programs.classic_softirq_exit)?;
        self.classic(Irq, "softirq_entry", &programs.classic_softirq_entry)?;
        self.classic(Timer, "hrtimer_expire_entry", &programs.classic_timer_expired)?;
        self.classic(Nmi, "nmi_handler", &programs.classic_nmi)?;
        let switched = match access {
            Access::Direct => &programs.classic_switched,
            Access::Copied => &programs.classic_switched_copied,
        };
        self.classic(Sched, "sched_switch", switched)
    }

    fn classic(
        &mut self,
        group: TracepointCategory,
        point: &'static str,
        program: &ProgramMut<'_>,
    ) -> Result<(), Error> {
        self.attached.keep(point, program.attach_tracepoint(group, point))
    }
}

/// Disables the programs that are not needed.
fn choose(
    open: &mut OpenEventsSkel<'_>,
    points: Points,
    threads: Threads,
    access: Access,
) {
    let marks = threads == Threads::Marked;
    let at_switch = (!marks).then(|| switched(points, access));
    for mut program in open.open_object_mut().progs_mut() {
        let name = program.name().to_string_lossy();
        let is_meant = if MARKING.iter().any(|marking| name == *marking) {
            marks
        } else if SWITCHED.iter().any(|switched| name == *switched) {
            at_switch.is_some_and(|switched| name == switched)
        } else {
            name == HELLO || name.starts_with(CLASSIC) == (points == Points::Classic)
        };
        program.set_autoload(is_meant);
    }
}

/// Which of `SWITCHED` is loaded.
fn switched(points: Points, access: Access) -> &'static str {
    let [raw, raw_copied, classic, classic_copied] = SWITCHED;
    match (points, access) {
        (Points::Raw, Access::Direct) => raw,
        (Points::Raw, Access::Copied) => raw_copied,
        (Points::Classic, Access::Direct) => classic,
        (Points::Classic, Access::Copied) => classic_copied,
    }
}

/// Assigns each CPU its lane.
fn assign_lanes(
    open: &mut OpenEventsSkel<'_>,
    cpus: &CpuSet,
    sizes: RingSizes,
) -> Result<(), Error> {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let cpus_count = count(cpus.len());
    let of_lane = count(sizes.of_lane());
    let depths = sizes.depths();
    let comms = cpus_count.saturating_mul(depths[Level::Thread as usize]);
    open.maps.lanes.set_max_entries(cpus_count).map_err(failed)?;
    open.maps
        .rings
        .set_max_entries(cpus_count.saturating_mul(of_lane))
        .map_err(failed)?;
    open.maps.comms.set_max_entries(comms).map_err(failed)?;
    let Some(data) = &mut open.maps.rodata_data else { return Ok(()) };
    (data.depths, data.offsets, data.room) = (depths, sizes.offsets(), of_lane);
    for (place, cpu) in (1..).zip(cpus.iter()) {
        let slot = data.places.get_mut(cpu.index());
        *slot.ok_or_else(|| too_many(cpu))? = place;
    }
    Ok(())
}
