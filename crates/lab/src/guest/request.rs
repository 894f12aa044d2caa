//! The request for one boot of a guest: a cell's measurement, or a task of the lab itself.

use agent::Task;
use experiments::{CellPlan, Machine, MachineKind, usual_environment};
use recording::{BackgroundLoad, GuestSetting, Mode, ServiceSpec, Source};
use serde::{Deserialize, Serialize};

/// The number of the first variation of a cell, and its seed.
pub(crate) const FIRST: u32 = 1;
/// How much more memory variations have than the first one, in MiB. Small differences shift the
/// addresses and the times of events; large ones, the sizes of the kernel's tables, too.
const MORE_MEMORY_MIB: [u32; 6] = [1, 3, 9, 27, 81, 243];

/// The request for one guest. As JSON, it is what another machine needs to boot the same guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    #[serde(with = "MachineJson")]
    pub(crate) machine: Machine,
    /// Boot parameters that are added to the lab's own; may be empty.
    pub(crate) params: String,
    /// Kernel settings, in the order in which they are written.
    pub(crate) settings: Vec<GuestSetting>,
    /// Services that run beside the task, in the order in which they are started.
    pub(crate) services: Vec<ServiceSpec>,
    /// The environment of the services.
    pub(crate) environment: Vec<(String, String)>,
    /// The background load.
    pub(crate) background: Vec<BackgroundLoad>,
    pub(crate) task: Task,
    /// The event source, if events are traced.
    pub(crate) trace: Option<Source>,
    /// The mode of guest time.
    pub(crate) mode: Mode,
    /// The seed of the guest's random numbers, in exact mode.
    pub(crate) seed: u32,
}

/// A machine as JSON. That of an experiment has fewer boards (`experiments`).
#[derive(Serialize, Deserialize)]
#[serde(remote = "Machine")]
struct MachineJson {
    #[serde(with = "MachineKindJson")]
    kind: MachineKind,
    cpu: String,
    cpus: u32,
    memory_mib: u32,
}

/// A board as JSON.
#[derive(Serialize, Deserialize)]
#[serde(remote = "MachineKind", rename_all = "snake_case")]
enum MachineKindJson {
    Pc,
    Microvm,
    Virt,
}

impl Request {
    /// An exact boot for that task, on the default machine.
    pub(crate) fn new(task: Task) -> Self {
        Self {
            machine: Machine::default(),
            params: String::new(),
            settings: Vec::new(),
            services: Vec::new(),
            environment: Vec::new(),
            background: Vec::new(),
            task,
            trace: None,
            mode: Mode::Exact,
            seed: FIRST,
        }
    }

    /// The same with other inputs that should not matter: the variation of that number, of which the
    /// first is the request itself. Another size of memory moves everything in it, and with the length of
    /// the boot the time of each later event relative to the tick; another seed changes the keys of hash
    /// tables, sequence numbers, and the random bytes that programs get.
    pub(crate) fn varied(&self, number: u32) -> Self {
        let steps = number.saturating_sub(FIRST);
        let mut varied = Self { seed: self.seed.saturating_add(steps), ..self.clone() };
        let memory = &mut varied.machine.memory_mib;
        *memory =
            memory.saturating_add(more_memory_mib(steps)).min(Machine::MEMORY_MAX_MIB);
        varied
    }
}

/// How much more memory the variation has that is so many after the first one, in MiB: different for
/// any two of the first 13, so that they differ although nothing depends on the seed.
fn more_memory_mib(steps: u32) -> u32 {
    let varied = (0..).flat_map(|round| MORE_MEMORY_MIB.map(|more| more + round));
    std::iter::once(0).chain(varied).nth(steps as usize).unwrap_or_default()
}

impl From<&CellPlan> for Request {
    fn from(plan: &CellPlan) -> Self {
        Self {
            machine: plan.machine.clone(),
            params: plan.params.clone(),
            settings: plan.settings.clone(),
            services: plan.services.clone(),
            environment: match plan.services.is_empty() {
                true => Vec::new(),
                false => usual_environment(),
            },
            background: plan.background.clone(),
            task: Task::Measure(plan.spec.clone()),
            trace: plan.watch,
            mode: plan.mode,
            seed: FIRST,
        }
    }
}

/// The plan of a cell named `p idle`, for tests of refusals.
#[cfg(test)]
pub(crate) fn plan(mode: Mode, cpus: u32) -> CellPlan {
    let text = "name = 'x'\nkernels = ['any']\n[[boot]]\nname = 'p'\n[[workload]]\n\
                name = 'idle'\nticks = { cpu = 0, duration = '1s' }\n";
    let experiment = experiments::Experiment::parse(text, "x.toml").unwrap();
    let mut plan = experiment.cells()[0].clone();
    (plan.mode, plan.machine.cpus) = (mode, cpus);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the first variation of a request is the request, and that others differ in nothing but
    /// memory and seed, which is limited.
    #[test]
    fn variations() {
        let request = Request::new(Task::Symbols);
        assert_eq!(request.varied(FIRST), request);
        let more = (FIRST..FIRST + 9)
            .map(|number| request.varied(number).machine.memory_mib - 256);
        assert_eq!(more.collect::<Vec<_>>(), [0, 1, 3, 9, 27, 81, 243, 2, 4]);
        let third = request.varied(3);
        assert_eq!((third.machine.memory_mib, third.seed), (259, 3));
        let mut same = third.clone();
        (same.machine.memory_mib, same.seed) = (256, FIRST);
        assert_eq!(same, request);
        let mut large = request;
        large.machine.memory_mib = Machine::MEMORY_MAX_MIB - 1;
        assert_eq!(large.varied(64).machine.memory_mib, Machine::MEMORY_MAX_MIB);
    }
}
