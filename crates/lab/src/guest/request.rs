//! The request for one boot of a guest: a cell's measurement, or a task of the lab itself.

use agent::{Setting, Task};
use experiments::{Machine, Measurement, Plan};
use recording::{Mode, Source};

/// The request for one guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) machine: Machine,
    /// Boot parameters that are added to the lab's own; may be empty.
    pub(crate) params: String,
    /// Kernel settings, in the order in which they are written.
    pub(crate) settings: Vec<Setting>,
    /// The background load.
    pub(crate) background: Vec<agent::BackgroundLoad>,
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

impl From<&Plan> for Request {
    fn from(plan: &Plan) -> Self {
        Self {
            machine: plan.machine.clone(),
            params: plan.params.clone(),
            settings: plan.settings.iter().map(setting).collect(),
            background: plan.background.iter().map(background).collect(),
            task: task(&plan.measurement),
            trace: plan.watch,
            mode: plan.mode,
        }
    }
}

fn setting(setting: &experiments::Setting) -> Setting {
    let experiments::Setting { path, value } = setting.clone();
    Setting { path, value }
}

fn background(load: &experiments::BackgroundLoad) -> agent::BackgroundLoad {
    let experiments::BackgroundLoad { cpu, spinners } = *load;
    agent::BackgroundLoad { cpu, spinners }
}

fn task(measurement: &Measurement) -> Task {
    match measurement.clone() {
        Measurement::Noise(spec) => Task::Noise(spec),
        Measurement::Ticks(spec) => Task::Ticks(spec),
        Measurement::Calls(spec) => Task::Calls(spec),
        Measurement::Nohz(spec) => Task::Nohz(spec),
        Measurement::Slices(spec) => Task::Slices(spec),
    }
}

/// The plan of a cell named `p idle`, for tests of refusals.
#[cfg(test)]
pub(crate) fn plan(mode: Mode, cpus: u32) -> Plan {
    let text = "name = 'x'\nkernels = ['any']\n[[boot]]\nname = 'p'\n[[workload]]\n\
                name = 'idle'\nticks = { cpu = 0, duration = '1s' }\n";
    let experiment = experiments::Experiment::parse(text, "x.toml").unwrap();
    let mut plan = experiment.cells()[0].clone();
    (plan.mode, plan.machine.cpus) = (mode, cpus);
    plan
}
