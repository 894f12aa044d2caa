//! Parsers of files in `/proc`, `/sys` and `/dev`.

pub(crate) mod cgroup_mount;
pub(crate) mod command_line;
pub(crate) mod config;
pub(crate) mod context_switches;
pub(crate) mod cpu_quota;
pub(crate) mod cpu_times;
pub(crate) mod cpuinfo;
pub(crate) mod energy;
pub(crate) mod hierarchy;
pub(crate) mod idle;
pub(crate) mod interrupts;
pub(crate) mod kernel_log;
pub(crate) mod mounts;
pub(crate) mod per_cpu;
pub(crate) mod pmu;
pub(crate) mod pressure;
pub(crate) mod release;
pub(crate) mod schedstat;
pub(crate) mod softirqs;
pub(crate) mod task_stat;
pub(crate) mod throttling;
pub(crate) mod timer_lines;
pub(crate) mod timer_list;
pub(crate) mod unit;
