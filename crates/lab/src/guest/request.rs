//! The request for one boot of a guest: a cell's measurement, or a task of the lab itself.

use agent::Task;
use experiments::{CellPlan, Machine};
use recording::{BackgroundLoad, GuestSetting, Mode, Source};

/// The request for one guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) machine: Machine,
    /// Boot parameters that are added to the lab's own; may be empty.
    pub(crate) params: String,
    /// Kernel settings, in the order in which they are written.
    pub(crate) settings: Vec<GuestSetting>,
    /// The background load.
    pub(crate) background: Vec<BackgroundLoad>,
    pub(crate) task: Task,
    /// The event source, if events are traced.
    pub(crate) trace: Option<Source>,
    /// The mode of guest time.
    pub(crate) mode: Mode,
}

impl Request {
    /// An exact boot for that task, on the default machine.
    pub(crate) fn new(task: Task) -> Self {
        Self {
            machine: Machine::default(),
            params: String::new(),
            settings: Vec::new(),
            background: Vec::new(),
            task,
            trace: None,
            mode: Mode::Exact,
        }
    }
}

impl From<&CellPlan> for Request {
    fn from(plan: &CellPlan) -> Self {
        Self {
            machine: plan.machine.clone(),
            params: plan.params.clone(),
            settings: plan.settings.clone(),
            background: plan.background.clone(),
            task: Task::Measure(plan.spec.clone()),
            trace: plan.watch,
            mode: plan.mode,
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
