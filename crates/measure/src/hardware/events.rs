//! The perf events that are counted on each measured CPU: SMIs, and the cycles that the frequency
//! follows from.

use std::io;

use facts::{PmuEvent, Root, Unknown, Why, frequency_events, smi_event};
use isolate::PerfCounter;
use rustix::process::{Resource, getrlimit};
use units::{Cpu, CpuSet};

use crate::hardware::OfCpus;

/// Descriptors that remain for everything else that a measurement opens.
const OTHER_FILES: u64 = 512;

/// An event on each CPU.
type Counters = Result<Vec<(Cpu, PerfCounter)>, Unknown>;

/// The open events.
pub(super) struct Events {
    smis: Counters,
    /// The cycles at the actual frequency, and at the base frequency.
    cycles: Result<[Vec<(Cpu, PerfCounter)>; 2], Unknown>,
}

impl Events {
    /// Opens all events that the processor has and this process may count.
    pub(super) fn open(root: &Root, cpus: &CpuSet) -> Self {
        let on_all = |event: PmuEvent| counters(&event, cpus);
        let smis = smi_event(root).and_then(on_all);
        let cycles = frequency_events(root)
            .and_then(|[actual, base]| Ok([on_all(actual)?, on_all(base)?]));
        Self { smis, cycles }
    }

    /// Events of a machine without any.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        let why = || Unknown::new(Why::Absent, "none");
        Self { smis: Err(why()), cycles: Err(why()) }
    }

    /// The SMIs of each CPU since the events were opened.
    pub(super) fn smis(&self) -> OfCpus<u64> {
        let counters = self.smis.as_ref().map_err(Clone::clone)?;
        Ok(counters.iter().filter_map(|(cpu, it)| Some((*cpu, it.read()?))).collect())
    }

    /// The average frequency of each CPU while it was not idle since then.
    pub(super) fn mean_khz(&self, base_khz: Option<u64>) -> OfCpus<u64> {
        let [actual, base] = self.cycles.as_ref().map_err(Clone::clone)?;
        let base_khz = base_khz.ok_or_else(|| {
            Unknown::new(Why::Absent, "neither base frequency nor TSC frequency is known")
        })?;
        let mean =
            |((cpu, actual), (_, base)): (&(Cpu, PerfCounter), &(Cpu, PerfCounter))| {
                Some((*cpu, scaled(base_khz, actual.read()?, base.read()?)?))
            };
        Ok(actual.iter().zip(base).filter_map(mean).collect())
    }
}

/// `khz * actual / base`.
pub(super) fn scaled(khz: u64, actual: u64, base: u64) -> Option<u64> {
    let product = u128::from(khz) * u128::from(actual);
    u64::try_from(product.checked_div(u128::from(base))?).ok()
}

fn counters(event: &PmuEvent, cpus: &CpuSet) -> Counters {
    refuse_many(cpus)?;
    let open = |cpu| match PerfCounter::open(event.pmu, event.config, cpu) {
        Ok(counter) => Ok((cpu, counter)),
        Err(error) => Err(refusal(event, &error)),
    };
    cpus.iter().map(open).collect()
}

/// Three events of each CPU must leave enough of the files that this process may open.
fn refuse_many(cpus: &CpuSet) -> Result<(), Unknown> {
    let needed = u64::try_from(cpus.len()).unwrap_or(u64::MAX).saturating_mul(3);
    match getrlimit(Resource::Nofile).current {
        Some(limit) if needed.saturating_add(OTHER_FILES) > limit => {
            let text = format!(
                "{} CPUs need {needed} perf events, and this process may open {limit} files \
                 (ulimit -n)",
                cpus.len()
            );
            Err(Unknown::new(Why::Absent, text))
        }
        _ => Ok(()),
    }
}

/// Why an event cannot be counted.
fn refusal(event: &PmuEvent, error: &io::Error) -> Unknown {
    let name = &event.name;
    if error.kind() == io::ErrorKind::PermissionDenied {
        let text = format!(
            "the perf event {name} needs root or CAP_PERFMON, and a container that permits \
             perf_event_open(2)"
        );
        return Unknown::new(Why::NeedsRoot, text);
    }
    Unknown::new(
        Why::NotExported,
        format!("the perf event {name} cannot be opened: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the ratio, also of numbers whose product is larger than 64 bits, and without a base.
    #[test]
    fn ratio() {
        assert_eq!(scaled(2_600_000, 3, 2), Some(3_900_000));
        assert_eq!(scaled(2_600_000, u64::MAX, u64::MAX), Some(2_600_000));
        assert_eq!(scaled(2_600_000, 3, 0), None);
    }

    /// Check the reasons of refused events.
    #[test]
    fn refusals() {
        let event = PmuEvent { name: "msr/smi/".to_owned(), pmu: 9, config: 4 };
        let why = |errno| refusal(&event, &io::Error::from_raw_os_error(errno));
        assert_eq!(why(libc::EACCES).code, Why::NeedsRoot);
        assert!(why(libc::EPERM).text.contains("CAP_PERFMON"));
        assert!(
            why(libc::ENOENT)
                .text
                .starts_with("the perf event msr/smi/ cannot be opened")
        );
    }

    /// Check that the time stamp counter of this machine counts as an event of the same PMU, at a
    /// constant rate on all CPUs, and that events that it has not are unknown with a reason.
    #[test]
    fn of_this_machine() {
        let root = Root::live();
        let cpus = isolate::allowed().unwrap();
        let events = Events::open(&root, &cpus);
        match (smi_event(&root), events.smis()) {
            (Ok(_), Ok(smis)) => assert_eq!(smis.len(), cpus.len()),
            (Ok(_), Err(why)) => println!("skipped: SMIs of this machine: {why}"),
            (Err(why), smis) => assert_eq!(smis, Err(why)),
        }
        let counted =
            PmuEvent::find(&root, "msr", "tsc").and_then(|tsc| counters(&tsc, &cpus));
        match counted {
            Err(why) => println!("skipped: the msr PMU of this machine: {why}"),
            Ok(counted) => {
                let read = || counted.iter().map(|(_, counter)| counter.read().unwrap());
                let before: Vec<u64> = read().collect();
                assert!(read().zip(before).all(|(now, before)| now > before));
            }
        }
    }
}
