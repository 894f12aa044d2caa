//! The eBPF source: programs at raw tracepoints, which cost least (since Linux 5.8, for
//! the helpers and mapped arrays that they use; BTF says where the fields are).
//!
//! Sees every interrupt that has a tracepoint. Cannot see the edges of an interruption, nor
//! system management mode, nor the hypervisor. The programs go with the process, however
//! that ends.

use std::mem::MaybeUninit;

use facts::Facts;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{ErrorKind, Link, ProgramInput, ProgramMut};
use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::level::Level;
use crate::refusal;
use crate::ring::Rings;
use crate::seen::Lane;
use crate::watcher::EventSource;
use skeleton::{EventsProgs, EventsSkelBuilder};

#[expect(
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    unreachable_pub,
    reason = "it is generated"
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/events.skel.rs"));
}

pub(crate) use skeleton::types;

/// The architecture's own interrupts, as x86 names their tracepoints
/// (`arch/x86/include/asm/trace/irq_vectors.h`): entry and exit.
const VECTORS: [(&str, &str); 11] = [
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

/// The programs at their tracepoints, and what they write.
pub(crate) struct Programs {
    links: Vec<Link>,
    missing: Vec<&'static str>,
    rings: Rings,
}

impl EventSource for Programs {
    fn read(&mut self, lanes: &mut [Lane]) {
        for (place, lane) in lanes.iter_mut().enumerate() {
            for level in Level::ALL {
                self.rings.drain(place, level, |record| lane.take(level, record));
            }
        }
    }

    fn stop(&mut self) -> Vec<String> {
        self.links.clear();
        self.missing.iter().map(|name| (*name).to_owned()).collect()
    }
}

impl Programs {
    /// Loads and attaches them.
    ///
    /// # Errors
    /// They cannot be loaded; nothing is watched.
    pub(crate) fn load(cpus: &CpuSet, facts: &Facts) -> Result<Self, Error> {
        if facts.tracing.btf.get() == Some(&false) {
            return Err(no_btf());
        }
        Self::try_load(cpus).map_err(|error| match error.kind() {
            Kind::Privilege => error.with(&refusal::of_bpf(facts)),
            _ => error,
        })
    }

    fn try_load(cpus: &CpuSet) -> Result<Self, Error> {
        libbpf_rs::set_print(None);
        let mut object = MaybeUninit::uninit();
        let mut open = EventsSkelBuilder::default().open(&mut object).map_err(failed)?;
        let count = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
        let depth = open.maps.comms.max_entries();
        let each = open.maps.rings.max_entries();
        open.maps.lanes.set_max_entries(count).map_err(failed)?;
        open.maps.rings.set_max_entries(count.saturating_mul(each)).map_err(failed)?;
        open.maps.comms.set_max_entries(count.saturating_mul(depth)).map_err(failed)?;
        if let Some(data) = &mut open.maps.rodata_data {
            for (place, cpu) in (1..).zip(cpus.iter()) {
                let known = Some(cpu.index());
                let slot = known.and_then(|cpu| data.places.get_mut(cpu));
                *slot.ok_or_else(|| too_many(cpu))? = place;
            }
        }
        let loaded = open.load().map_err(failed)?;
        loaded.progs.hello.test_run(ProgramInput::default()).map_err(failed)?;
        let maps = &loaded.maps;
        let depth = usize::try_from(depth).unwrap_or(0);
        let rings = Rings::new(&maps.lanes, &maps.rings, &maps.comms, cpus.len(), depth)?;
        let mut program = Self { links: Vec::new(), missing: Vec::new(), rings };
        program.attach(&loaded.progs)?;
        Ok(program)
    }

    /// Ends come first: an event whose beginning was not seen is left out, one whose end
    /// is not seen would not end.
    fn attach(&mut self, programs: &EventsProgs<'_>) -> Result<(), Error> {
        for (entry, exit) in VECTORS {
            self.at(exit, &programs.vector_exit)?;
            self.at(entry, &programs.vector_entry)?;
        }
        self.at("irq_handler_exit", &programs.handler_exit)?;
        self.at("irq_handler_entry", &programs.handler_entry)?;
        self.at("softirq_exit", &programs.softirq_exit)?;
        self.at("softirq_entry", &programs.softirq_entry)?;
        self.at("hrtimer_expire_entry", &programs.timer_expired)?;
        self.at("nmi_handler", &programs.nmi)?;
        self.at("sched_switch", &programs.switched)
    }

    fn at(
        &mut self,
        tracepoint: &'static str,
        program: &ProgramMut<'_>,
    ) -> Result<(), Error> {
        match program.attach_raw_tracepoint(tracepoint) {
            Ok(link) => self.links.push(link),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.missing.push(tracepoint);
            }
            Err(error) => return Err(failed(error)),
        }
        Ok(())
    }
}

fn failed(error: libbpf_rs::Error) -> Error {
    let kind = match error.kind() {
        ErrorKind::PermissionDenied => Kind::Privilege,
        ErrorKind::NotFound | ErrorKind::Unsupported => Kind::Missing,
        _ => Kind::System,
    };
    Error::new(kind, format!("load the eBPF programs: {error}"))
}

fn no_btf() -> Error {
    let text = "load the eBPF programs: the kernel does not describe its types \
                (/sys/kernel/btf/vmlinux): it needs one with CONFIG_DEBUG_INFO_BTF";
    Error::new(Kind::Missing, text)
}

fn too_many(cpu: Cpu) -> Error {
    Error::new(Kind::System, format!("CPU {cpu} is beyond those that can be watched"))
}
