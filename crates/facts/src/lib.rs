//! What the kernel says about itself.
//!
//! [`Facts::read`] asks a [`Root`] - the live machine or a recorded tree - and never
//! fails: a fact that cannot be read is a value with the reason. Each module is one
//! group of facts, or one file format that several groups share.
//!
//! Cannot see: what the kernel does not say. Nothing here measures or judges.
#![forbid(unsafe_code)]

mod absence;
mod error;
mod fact;
mod format;
mod group;
mod parameters;
mod record;
mod sources;
#[cfg(test)]
mod test_tree;
mod tree;

pub use absence::unmounted;
pub use error::{Error, Kind};
pub use fact::{Entry, Fact, Page, Unknown, Why};
pub use format::command_line::{CommandLine, Parameter};
pub use format::config::Config;
pub use format::cpu_times::{CpuTime, CpuTimes};
pub use format::idle::{IdleCount, IdleState, idle_counts, resume_limit_us};
pub use format::interrupts::{InterruptLine, Interrupts};
pub use format::softirqs::Softirqs;
pub use format::task_stat::TaskStat;
pub use format::timer_list::TimerList;
pub use group::boot::Boot;
pub use group::cgroup::Cgroup;
pub use group::clock::Clock;
pub use group::cpus::{Cpus, Smt};
pub use group::irq::Irq;
pub use group::kernel::{Flavour, Kernel};
pub use group::power::Power;
pub use group::preempt::{Chosen, Model, Preempt};
pub use group::sched::Sched;
pub use group::security::Security;
pub use group::tick::{Tick, TickMode};
pub use group::tracing::Tracing;
pub use group::virt::Virt;
pub use parameters::divider::Divider;
pub use parameters::inert::{Inert, WhyInert};
pub use record::record;
pub use tree::file_locks::{acquire_lock, has_no_locks};
pub use tree::root::Root;

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
