//! The trace events that are enabled, and their decoding.
//!
//! Source: `include/trace/events/` (irq, sched, timer, nmi, ipi) and, for x86's own interrupts,
//! `arch/x86/include/asm/trace/irq_vectors.h`. Cannot see a thread's process: a switch contains
//! only threads. The numbers of events differ from boot to boot.

use std::collections::BTreeMap;

use crate::level::Level;
use crate::tracefs::format::{Field, Format};

/// The meaning of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventKind {
    Begin(Level),
    End(Level),
    Expired,
    Nmi,
    WholeNmi,
    Switch,
}

/// The events to enable: their systems, their names, their meaning, and the fields that are read.
pub(crate) const EVENTS: &[(&str, &str, EventKind, &[&str])] = &[
    ("irq_vectors", "local_timer_entry", BEGIN, &[]),
    ("irq_vectors", "local_timer_exit", END, VECTOR),
    ("irq_vectors", "reschedule_entry", BEGIN, &[]),
    ("irq_vectors", "reschedule_exit", END, VECTOR),
    ("irq_vectors", "call_function_entry", BEGIN, &[]),
    ("irq_vectors", "call_function_exit", END, VECTOR),
    ("irq_vectors", "call_function_single_entry", BEGIN, &[]),
    ("irq_vectors", "call_function_single_exit", END, VECTOR),
    ("irq_vectors", "irq_work_entry", BEGIN, &[]),
    ("irq_vectors", "irq_work_exit", END, VECTOR),
    ("irq_vectors", "x86_platform_ipi_entry", BEGIN, &[]),
    ("irq_vectors", "x86_platform_ipi_exit", END, VECTOR),
    ("irq_vectors", "spurious_apic_entry", BEGIN, &[]),
    ("irq_vectors", "spurious_apic_exit", END, VECTOR),
    ("irq_vectors", "error_apic_entry", BEGIN, &[]),
    ("irq_vectors", "error_apic_exit", END, VECTOR),
    ("irq_vectors", "threshold_apic_entry", BEGIN, &[]),
    ("irq_vectors", "threshold_apic_exit", END, VECTOR),
    ("irq_vectors", "deferred_error_apic_entry", BEGIN, &[]),
    ("irq_vectors", "deferred_error_apic_exit", END, VECTOR),
    ("irq_vectors", "thermal_apic_entry", BEGIN, &[]),
    ("irq_vectors", "thermal_apic_exit", END, VECTOR),
    ("ipi", "ipi_entry", BEGIN, &[]),
    ("ipi", "ipi_exit", END, &["reason"]),
    ("irq", "irq_handler_entry", EventKind::Begin(Level::Handler), &[]),
    ("irq", "irq_handler_exit", EventKind::End(Level::Handler), &["irq"]),
    ("irq", "softirq_entry", EventKind::Begin(Level::Softirq), &[]),
    ("irq", "softirq_exit", EventKind::End(Level::Softirq), &["vec"]),
    ("timer", "hrtimer_expire_entry", EventKind::Expired, &["function"]),
    ("nmi", "nmi_handler", EventKind::Nmi, &["delta_ns", "handler"]),
    ("sched", "sched_switch", EventKind::Switch, SWITCH),
];

/// The osnoise tracer's event, which is only written with that tracer. Its `start` is on a clock of
/// its own.
pub(crate) const WHOLE_NMI: (&str, &str, EventKind, &[&str]) =
    ("osnoise", "nmi_noise", EventKind::WholeNmi, &["duration"]);

const BEGIN: EventKind = EventKind::Begin(Level::Vector);
const END: EventKind = EventKind::End(Level::Vector);
const VECTOR: &[&str] = &["vector"];
const SWITCH: &[&str] =
    &["prev_pid", "prev_prio", "prev_comm", "next_pid", "next_prio", "next_comm"];

/// Every event begins with its number, and also has the running thread.
const NUMBER: Field = Field { offset: 0, size: 2 };
const RUNNING: &str = "common_pid";

/// A thread in a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) tid: u32,
    pub(crate) prio: u32,
    pub(crate) comm: [u8; 16],
}

/// An event at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Begin(Level),
    /// With the vector, IRQ or softirq, or the address of its name.
    End(Level, u64),
    /// A timer's function, about to be called.
    Expired(u64),
    /// The duration of an NMI's handler, and the handler.
    Nmi(u64, u64),
    /// The duration of a whole NMI, after those of its handlers.
    WholeNmi(u64),
    Switch {
        previous: Task,
        next: Task,
    },
}

#[derive(Debug)]
struct Known {
    sort: EventKind,
    running: Field,
    fields: Vec<Field>,
}

/// The events of this kernel, by number.
#[derive(Debug, Default)]
pub(crate) struct EventFormats(BTreeMap<u16, Known>);

impl EventFormats {
    /// Adds an event by its `format`; whether it has all the fields that are read.
    pub(crate) fn add(&mut self, sort: EventKind, names: &[&str], text: &str) -> bool {
        let format = Format::parse(text);
        let fields = names.iter().map(|name| format.field(name)).collect();
        let (Some(id), Some(running), Some(fields)) =
            (format.id, format.field(RUNNING), fields)
        else {
            return false;
        };
        self.0.insert(id, Known { sort, running, fields });
        true
    }

    /// Decodes an event, and the thread that was running; `None` if it is another one, or
    /// truncated.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Option<(u32, Moment)> {
        let id = u16::try_from(NUMBER.number(bytes)?).ok()?;
        let Known { sort, running, fields } = self.0.get(&id)?;
        let number = |place: usize| fields.get(place)?.number(bytes);
        let task = |first: usize| -> Option<Task> {
            let word = |place: usize| fields.get(place)?.word(bytes);
            let comm = fields.get(first + 2)?.bytes(bytes)?.first_chunk()?;
            Some(Task { tid: word(first)?, prio: word(first + 1)?, comm: *comm })
        };
        let moment = match sort {
            EventKind::Begin(level) => Moment::Begin(*level),
            EventKind::End(level) => Moment::End(*level, number(0)?),
            EventKind::Expired => Moment::Expired(number(0)?),
            EventKind::Nmi => Moment::Nmi(number(0)?, number(1)?),
            EventKind::WholeNmi => Moment::WholeNmi(number(0)?),
            EventKind::Switch => Moment::Switch { previous: task(0)?, next: task(3)? },
        };
        Some((running.word(bytes)?, moment))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The formats of a real kernel (Linux 6.18; of `nmi_noise`, that of 6.12 for real time), all
    /// events in one text.
    pub(crate) fn recorded() -> EventFormats {
        let mut formats = EventFormats::default();
        for (_, name, sort, fields) in EVENTS.iter().chain([&WHOLE_NMI]) {
            if let Some(text) = format_of(name) {
                assert!(formats.add(*sort, fields, text), "{name}");
            }
        }
        formats
    }

    pub(crate) fn format_of(name: &str) -> Option<&'static str> {
        let all = include_str!("../../tests/trace/formats").split("name: ");
        let mut named = all.filter(|text| text.lines().next() == Some(name));
        named.next()
    }

    /// Check that a kernel's events are recognised, and that one without the fields that are read
    /// is not.
    #[test]
    fn learns_a_kernel() {
        // The machine has neither AMD's two vectors nor arm64's interrupts.
        assert_eq!(recorded().0.len(), EVENTS.len() - 6 + 1);
        let mut formats = EventFormats::default();
        let text = format_of("softirq_exit").unwrap();
        assert!(!formats.add(EventKind::Expired, &["function"], text));
        assert!(formats.decode(&[0; 64]).is_none());
    }

    proptest! {
        /// Check that a truncated or invalid event causes no panic.
        #[test]
        fn never_panics(
            place in 0..EVENTS.len(),
            bytes in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let formats = recorded();
            let id = formats.0.keys().nth(place).copied().unwrap_or_default();
            let mut event = id.to_le_bytes().to_vec();
            event.extend(bytes);
            let _ = formats.decode(&event);
        }
    }
}
