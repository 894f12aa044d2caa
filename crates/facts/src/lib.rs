//! Properties and settings of the kernel and the machine ("facts").
//!
//! [`Facts::read`] reads them from a [`Root`], the live machine or a recorded tree, and never
//! fails: a fact that cannot be read is unknown, with the reason. Each module has one group of
//! facts, or one file format that several groups use.
//!
//! This crate only reads what the kernel exports; it neither measures nor evaluates.
//!
//! ```
//! use facts::{Facts, Root};
//!
//! match Facts::read(&Root::live()).tick.hz.value() {
//!     Ok(hz) => println!("CONFIG_HZ is {}", hz.get()),
//!     Err(unknown) => println!("CONFIG_HZ is not known: {unknown}"),
//! }
//! ```
#![forbid(unsafe_code)]

mod absence;
mod configuration;
mod error;
mod fact;
mod format;
mod group;
mod guest;
mod must_gather;
mod near;
mod parameters;
mod record;
mod sources;
#[cfg(test)]
mod test_tree;
mod tree;

pub use absence::unmounted;
pub use error::{Error, Kind};
pub use fact::{Entry, Fact, Page, Unknown, Why};
pub use format::cgroup_mount::CgroupMount;
pub use format::command_line::{CommandLine, Parameter};
pub use format::config::Config;
pub use format::context_switches::ContextSwitches;
pub use format::cpu_quota::{CpuQuota, Throttling};
pub use format::cpu_times::{CpuTime, CpuTimes};
pub use format::energy::{EnergyZone, energy_zones};
pub use format::idle::{IdleCount, IdleState, idle_counts, resume_limit_us};
pub use format::interrupts::{InterruptLine, Interrupts};
pub use format::pmu::PmuEvent;
pub use format::pressure::{Stall, Stalls};
pub use format::schedstat::SchedStat;
pub use format::softirqs::Softirqs;
pub use format::task_stat::TaskStat;
pub use format::throttling::{SlowDowns, current_khz};
pub use format::timer_list::TimerList;
pub use format::unit::{Unit, UnitKind};
pub use group::boot::Boot;
pub use group::cgroup::Cgroup;
pub use group::clock::Clock;
pub use group::cpus::{Cpus, Smt};
pub use group::hardware::{Hardware, frequency_events, smi_event};
pub use group::irq::{BoundIrq, Irq};
pub use group::kernel::{Flavour, Kernel};
pub use group::power::Power;
pub use group::preempt::{Chosen, Model, Preempt};
pub use group::pressure::Pressure;
pub use group::sched::Sched;
pub use group::sched_ext::ExtState;
pub use group::security::Security;
pub use group::setting_files::{FileSetting, sysctl_assignments};
pub use group::settings::Settings;
pub use group::tick::{Tick, TickMode};
pub use group::tracing::Tracing;
pub use group::virt::Virt;
pub use guest::{Guest, GuestThread, Monitor, Vcpu};
pub use near::{Near, near};
pub use parameters::divider::Divider;
pub use parameters::inert::{Inert, WhyInert};
pub use record::record;
pub use tree::file_locks::{acquire_lock, has_no_locks};
pub use tree::root::Root;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use units::CpuSet;

use crate::fact::SerializedPage;
use crate::sources::Sources;

/// Declares [`Facts`] and the functions that handle each of its groups.
macro_rules! facts {
    ($($(#[$doc:meta])* $field:ident: $group:ident,)*) => {
        /// All facts by group.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Facts {
            $($(#[$doc])* pub $field: $group,)*
        }

        impl Facts {
            /// All facts in the order of output, in their serialized form.
            pub fn page(&self) -> Page {
                let mut page = Page::default();
                $(self.$field.put(&mut page);)*
                page
            }

            fn read_groups(sources: &Sources) -> Self {
                Self { $($field: $group::read(sources),)* }
            }

            fn take(mut page: SerializedPage) -> Result<Self, serde_json::Error> {
                Ok(Self { $($field: $group::take(&mut page)?,)* })
            }
        }
    };
}

facts! {
    /// The running kernel.
    kernel: Kernel,
    /// The tick.
    tick: Tick,
    /// The CPUs.
    cpus: Cpus,
    /// Preemption.
    preempt: Preempt,
    /// The scheduler.
    sched: Sched,
    /// Device interrupts.
    irq: Irq,
    /// Clocks.
    clock: Clock,
    /// Virtualisation.
    virt: Virt,
    /// Power.
    power: Power,
    /// Below the kernel.
    hardware: Hardware,
    /// Control groups.
    cgroup: Cgroup,
    /// Pressure stall information.
    pressure: Pressure,
    /// The privileges of this process.
    security: Security,
    /// Tracing.
    tracing: Tracing,
    /// Boot parameters.
    boot: Boot,
    /// Settings by name.
    settings: Settings,
}

impl Facts {
    /// Reads all facts. Never fails: facts that cannot be read have a reason.
    pub fn read(root: &Root) -> Self {
        Self::read_groups(&Sources::read(root))
    }

    /// Facts of which only these are known, by key (`kernel.release`): of a file of another tool, or of
    /// a simulated machine. A value of another type than the fact's makes all of them unknown.
    pub fn of_known(known: Vec<(&'static str, Value)>) -> Self {
        let mut page = json!({"sources": {}, "unknown": {}});
        for (key, value) in known {
            let (group, name) = key.split_once('.').unwrap_or((key, ""));
            let group = &mut page[group];
            if group.is_null() {
                *group = Value::Object(Map::new());
            }
            group[name] = value;
        }
        serde_json::from_value(page).unwrap_or_else(|_| Self::of_known(Vec::new()))
    }

    /// Reads the scheduler's facts again, which a measurement may change itself.
    pub fn with_sched_of(self, root: &Root) -> Self {
        Self { sched: Sched::read(&Sources::read(root)), ..self }
    }

    /// The CPUs that are not for ordinary tasks, as far as known: isolated ones, and those of
    /// `nohz_full=`.
    pub fn set_apart(&self) -> CpuSet {
        let groups = [self.cpus.isolated.get(), self.tick.nohz_full.get()];
        groups.into_iter().flatten().flat_map(CpuSet::iter).collect()
    }

    /// Whether an isolated cpuset partition can be created: since 6.1, and before 6.15 only if no
    /// worker of the kernel is restricted to some CPUs.
    pub fn can_partition(&self) -> bool {
        let has_group = self.cgroup.partitions.get().is_some();
        let is_unrestricted = || self.set_apart().is_empty();
        let since = |minor| self.kernel_at_least(6, minor) == Some(true);
        has_group && since(1) && (since(15) || is_unrestricted())
    }

    /// The facts with invalid file contents: a tree that has any is damaged, or not a recorded
    /// tree.
    pub fn garbage(&self) -> Vec<Entry> {
        let mut entries = self.page().into_entries();
        let garbage = |unknown: &Unknown| unknown.code == Why::Garbage;
        entries.retain(|entry| entry.value.as_ref().is_err_and(garbage));
        entries
    }
}

impl Serialize for Facts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.page().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Facts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::take(SerializedPage::deserialize(deserializer)?)
            .map_err(serde::de::Error::custom)
    }
}
