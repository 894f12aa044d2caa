//! What the kernel says about itself.
//!
//! [`Facts::read`] asks a [`Root`] - the live machine or a recorded tree - and never
//! fails: a fact that cannot be read is a value with the reason. Each module is one
//! group of facts, or one file format that several groups share.
//!
//! Cannot see: what the kernel does not say. Nothing here measures or judges.
#![forbid(unsafe_code)]

mod absence;
mod boot;
mod cgroup;
mod clock;
mod command_line;
mod config;
mod contradictions;
mod cpu_times;
mod cpuinfo;
mod cpus;
mod divider;
mod error;
mod fact;
mod file_locks;
mod idle;
mod inert;
mod interrupts;
mod irq;
mod kernel;
mod kernel_log;
mod mounts;
mod parameters;
mod per_cpu;
mod power;
mod preempt;
mod record;
mod release;
mod root;
mod sched;
mod sched_debug;
mod sched_features;
mod security;
mod softirqs;
mod sources;
mod task_stat;
#[cfg(test)]
mod test_tree;
mod tick;
mod timer_list;
mod tracing;
mod tree;
mod virt;

pub use absence::unmounted;
pub use boot::Boot;
pub use cgroup::Cgroup;
pub use clock::Clock;
pub use command_line::{CommandLine, Parameter};
pub use config::Config;
pub use cpu_times::{CpuTime, CpuTimes};
pub use cpus::{Cpus, Smt};
pub use divider::Divider;
pub use error::{Error, Kind};
pub use fact::{Entry, Fact, Page, Unknown, Why};
pub use file_locks::{acquire_lock, has_no_locks};
pub use idle::{IdleCount, IdleState, idle_counts, resume_limit_us};
pub use inert::{Inert, WhyInert};
pub use interrupts::{InterruptLine, Interrupts};
pub use irq::Irq;
pub use kernel::{Flavour, Kernel};
pub use power::Power;
pub use preempt::{Chosen, Model, Preempt};
pub use record::record;
pub use root::Root;
pub use sched::Sched;
pub use security::Security;
pub use softirqs::Softirqs;
pub use task_stat::TaskStat;
pub use tick::{Tick, TickMode};
pub use timer_list::TimerList;
pub use tracing::Tracing;
pub use virt::Virt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::CpuSet;

use crate::fact::Written;
use crate::sources::Sources;

/// Declares [`Facts`] and everything that must name each of its groups once.
macro_rules! facts {
    ($($(#[$doc:meta])* $field:ident: $group:ident,)*) => {
        /// Everything the kernel says about itself, group by group.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Facts {
            $($(#[$doc])* pub $field: $group,)*
        }

        impl Facts {
            /// Every fact in the order in which it is told, for readers that do not
            /// care which fact it is.
            pub fn page(&self) -> Page {
                let mut page = Page::default();
                $(self.$field.put(&mut page);)*
                page
            }

            fn ask(sources: &Sources) -> Self {
                Self { $($field: $group::read(sources),)* }
            }

            fn take(mut page: Written) -> Result<Self, serde_json::Error> {
                Ok(Self { $($field: $group::take(&mut page)?,)* })
            }
        }
    };
}

facts! {
    /// Which kernel runs.
    kernel: Kernel,
    /// The tick.
    tick: Tick,
    /// CPUs.
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
    /// Control groups.
    cgroup: Cgroup,
    /// What this process may do.
    security: Security,
    /// Tracing.
    tracing: Tracing,
    /// Boot parameters.
    boot: Boot,
}

impl Facts {
    /// Reads everything. Never fails: what cannot be read says why.
    pub fn read(root: &Root) -> Self {
        Self::ask(&Sources::read(root))
    }

    /// The same with the scheduler's facts read again: what a measurement changes for itself.
    pub fn with_sched_of(self, root: &Root) -> Self {
        Self { sched: Sched::read(&Sources::read(root)), ..self }
    }

    /// The CPUs that ordinary tasks are kept off, as far as is known: isolated ones, and
    /// those of `nohz_full=`.
    pub fn set_apart(&self) -> CpuSet {
        let groups = [self.cpus.isolated.get(), self.tick.nohz_full.get()];
        groups.into_iter().flatten().flat_map(CpuSet::iter).collect()
    }

    /// The facts whose files hold something that makes no sense: a tree with one of
    /// them was damaged, or is none.
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
        Self::take(Written::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
