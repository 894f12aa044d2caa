//! Programs at tracepoints, and why they cannot be attached. They are detached when this is
//! dropped.

use libbpf_rs::{ErrorKind, Link, ProgramMut};
use recording::{Code, Doubt};
use units::Cpu;

use crate::bpf::VECTORS;
use crate::bpf::object::Loaded;
use crate::error::{Error, Kind};

/// The tracepoints of the most frequent interrupts.
const NEEDED: [&str; 3] = ["local_timer_entry", "irq_handler_entry", "softirq_entry"];

/// The attached programs, and the tracepoints that this kernel lacks.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    pub(crate) links: Vec<Link>,
    pub(crate) missing: Vec<&'static str>,
}

impl Attached {
    /// Attaches a program to a raw tracepoint.
    ///
    /// # Errors
    /// The kernel has it, but refuses.
    pub(crate) fn raw(
        &mut self,
        point: &'static str,
        program: &ProgramMut<'_>,
    ) -> Result<(), Error> {
        self.keep(point, program.attach_raw_tracepoint(point))
    }

    /// Attaches programs of the usual names to the begin and the end of interrupts, handlers and
    /// softirqs; ends come first, so that no interrupt lasts forever.
    ///
    /// # Errors
    /// The kernel has one of them, but refuses.
    pub(crate) fn interrupts(&mut self, loaded: &Loaded) -> Result<(), Error> {
        let vectors = VECTORS
            .iter()
            .flat_map(|&(entry, exit)| [(exit, "vector_exit"), (entry, "vector_entry")]);
        let others = [
            ("irq_handler_exit", "handler_exit"),
            ("irq_handler_entry", "handler_entry"),
            ("softirq_exit", "softirq_exit"),
            ("softirq_entry", "softirq_entry"),
        ];
        for (point, program) in vectors.chain(others) {
            self.raw(point, &loaded.program(program)?)?;
        }
        Ok(())
    }

    /// Stores an attached program.
    ///
    /// # Errors
    /// The kernel has the tracepoint, but refuses.
    pub(crate) fn keep(
        &mut self,
        point: &'static str,
        attached: libbpf_rs::Result<Link>,
    ) -> Result<(), Error> {
        match attached {
            Ok(link) => self.links.push(link),
            Err(error) if error.kind() == ErrorKind::NotFound => self.missing.push(point),
            Err(error) => return Err(failed(error)),
        }
        Ok(())
    }
}

/// A doubt about interrupts that cannot be seen.
pub(crate) fn without_tracepoints(missing: &[&str]) -> Option<Doubt> {
    let missing: Vec<&str> =
        missing.iter().copied().filter(|name| NEEDED.contains(name)).collect();
    (!missing.is_empty()).then(|| {
        let text = format!(
            "this kernel has no tracepoint {}: these interrupts count as time of the thread that \
             was interrupted",
            missing.join(", ")
        );
        Doubt::new(Code::Untraced, text)
    })
}

pub(crate) fn failed(error: libbpf_rs::Error) -> Error {
    #[expect(clippy::wildcard_enum_match_arm, reason = "an enum of libbpf-rs")]
    let kind = match error.kind() {
        ErrorKind::PermissionDenied => Kind::Privilege,
        ErrorKind::NotFound | ErrorKind::Unsupported => Kind::Missing,
        _ => Kind::System,
    };
    Error::new(kind, "failed to load the eBPF programs").caused_by(error)
}

pub(crate) fn too_many(cpu: Cpu) -> Error {
    Error::new(
        Kind::System,
        format!("CPU {cpu} is above the highest one that can be traced"),
    )
}
