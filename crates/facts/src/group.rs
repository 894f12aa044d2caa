//! The groups of facts.

pub(crate) mod boot;
pub(crate) mod cgroup;
pub(crate) mod clock;
pub(crate) mod contradictions;
pub(crate) mod cpu_lists;
pub(crate) mod cpus;
pub(crate) mod hardware;
pub(crate) mod irq;
pub(crate) mod kernel;
pub(crate) mod power;
pub(crate) mod preempt;
pub(crate) mod pressure;
pub(crate) mod sched;
pub(crate) mod sched_debug;
pub(crate) mod sched_ext;
pub(crate) mod sched_features;
pub(crate) mod security;
pub(crate) mod setting_files;
pub(crate) mod setting_names;
pub(crate) mod settings;
pub(crate) mod tick;
pub(crate) mod tracing;
pub(crate) mod virt;
