//! The events of the processor's and the kernel's performance monitoring units (PMUs), as
//! perf_event_open(2) takes them.
//!
//! From `/sys/bus/event_source/devices/PMU`: `type`, and `events/NAME` (`event=0x04`), whose value is
//! the low byte of `config`. The PMU `msr` (x86, since 4.3) counts model-specific registers, `smi`,
//! `aperf` and `mperf` among them: it lists those that this processor, or its hypervisor, has.

use crate::fact::{Unknown, Why};
use crate::tree::root::Root;

const PERF_TYPE_HARDWARE: u32 = 0;
const DEVICES: &str = "/sys/bus/event_source/devices";

/// An event of a PMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PmuEvent {
    /// `msr/smi/`, as perf(1) takes it.
    pub name: String,
    /// The PMU: `type` of `perf_event_attr`.
    pub pmu: u32,
    /// The event: `config` of `perf_event_attr`.
    pub config: u64,
}

impl PmuEvent {
    /// The event of that name.
    ///
    /// # Errors
    /// `Why::Absent` without the PMU or the event.
    pub fn find(root: &Root, pmu: &str, event: &str) -> Result<Self, Unknown> {
        let number = pmu_number(root, pmu)?;
        let file = format!("{DEVICES}/{pmu}/events/{event}");
        let none = format!("no event {event} in the {pmu} PMU");
        let line = root.line(&file).map_err(|unknown| unknown.if_absent(none))?;
        let code = line.strip_prefix("event=0x").map(|hex| u64::from_str_radix(hex, 16));
        let Some(Ok(config)) = code else {
            return Err(Unknown::garbage(&file, 1, &line, "an event (event=0x00)"));
        };
        Ok(Self { name: format!("{pmu}/{event}/"), pmu: number, config })
    }

    /// A generic event of the processor (`PERF_TYPE_HARDWARE`), if its PMU lists it by that name.
    ///
    /// # Errors
    /// `Why::Absent` without the PMU or the event.
    pub(crate) fn generic(
        root: &Root,
        event: &str,
        config: u64,
    ) -> Result<Self, Unknown> {
        let pmu = "cpu";
        pmu_number(root, pmu)?;
        let none =
            || Unknown::new(Why::Absent, format!("no event {event} in the {pmu} PMU"));
        let is_listed = root.exists(&format!("{DEVICES}/{pmu}/events/{event}"))?;
        let name = is_listed.then(|| format!("{pmu}/{event}/")).ok_or_else(none)?;
        Ok(Self { name, pmu: PERF_TYPE_HARDWARE, config })
    }

    /// The event with that code, which the PMU need not list.
    ///
    /// # Errors
    /// `Why::Absent` without the PMU.
    pub fn raw(root: &Root, pmu: &str, config: u64) -> Result<Self, Unknown> {
        let number = pmu_number(root, pmu)?;
        Ok(Self { name: format!("{pmu}/event={config:#x}/"), pmu: number, config })
    }
}

fn pmu_number(root: &Root, pmu: &str) -> Result<u32, Unknown> {
    let file = format!("{DEVICES}/{pmu}/type");
    let none = |unknown: Unknown| unknown.if_absent(format!("no {pmu} PMU"));
    root.parsed(&file, "a number").map_err(none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    /// Check an event of a PMU, and the reasons without one.
    #[test]
    fn events() {
        let tree = tree(&[
            ("/sys/bus/event_source/devices/msr/type", "9\n"),
            ("/sys/bus/event_source/devices/msr/events/smi", "event=0x04\n"),
            ("/sys/bus/event_source/devices/msr/events/tsc", "0\n"),
        ]);
        let find = |pmu, event| PmuEvent::find(&tree.root, pmu, event);
        let smi = PmuEvent { name: "msr/smi/".to_owned(), pmu: 9, config: 4 };
        assert_eq!(find("msr", "smi"), Ok(smi));
        let text = |pmu, event| find(pmu, event).unwrap_err().text;
        assert_eq!(text("msr", "aperf"), "no event aperf in the msr PMU");
        assert_eq!(text("cpu", "cycles"), "no cpu PMU");
        assert_eq!(find("msr", "tsc").unwrap_err().code, Why::Garbage);
        let raw = PmuEvent::raw(&tree.root, "msr", 0x2b).unwrap();
        assert_eq!(
            (raw.name.as_str(), raw.pmu, raw.config),
            ("msr/event=0x2b/", 9, 0x2b)
        );
    }
}
