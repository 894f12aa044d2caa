//! The cost of the virtual machines on a host: parameters and measured values.

use facts::Monitor;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// The parameters of `guests`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestsSpec {
    /// The time between the two readings of `/proc`.
    pub duration_ns: Nanos,
    /// A guest is busy if one of its threads used more CPU time than this share of the duration, in
    /// parts per million.
    pub busy_above_ppm: u32,
    /// The number of guests, and of vCPU threads, to list in the report; JSON has all.
    pub top: u32,
}

/// The measured values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestsSeries {
    /// The time between the two readings, the first process of each.
    pub elapsed_ns: Nanos,
    /// The guests that both readings found, in ascending order of their PIDs.
    pub guests: Vec<GuestUsage>,
    /// The guests that started during the measurement.
    pub started: Vec<GuestProcess>,
    /// The guests that ended during the measurement.
    pub ended: Vec<GuestProcess>,
    /// The number of processes that could not be examined in either reading.
    pub hidden: u64,
}

/// A guest: a process of a virtual machine monitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestProcess {
    /// The PID.
    pub pid: u32,
    /// The name of the guest; `None` if the monitor was not given one.
    pub name: Option<String>,
    /// The name of the process.
    pub process: String,
    /// The monitor.
    pub monitor: Monitor,
}

/// What a guest used between the two readings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestUsage {
    /// The guest.
    #[serde(flatten)]
    pub guest: GuestProcess,
    /// What executes the vCPUs, as QEMU names it (`KVM`, `TCG`); `None`: unknown.
    pub accelerator: Option<String>,
    /// The number of vCPUs; `None`: unknown.
    pub vcpus: Option<u32>,
    /// The time between the two readings of this guest.
    pub elapsed_ns: Nanos,
    /// The threads of the vCPUs, in ascending order of their TIDs; empty if they are unknown.
    pub vcpu_threads: Vec<VcpuUsage>,
    /// All other threads together, those that started during the measurement included.
    pub others: ThreadUsage,
    /// The largest CPU time of one of these other threads.
    pub others_cpu_ns_max: Nanos,
    /// The number of threads that ended during the measurement: their last values are unknown.
    pub ended_threads: u32,
}

/// What a vCPU thread used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VcpuUsage {
    /// The TID.
    pub tid: u32,
    /// The number of the vCPU; `None` if it is unknown, or if the thread runs all of them.
    pub vcpu: Option<u32>,
    /// What it used.
    #[serde(flatten)]
    pub usage: ThreadUsage,
}

/// What threads used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// CPU time, of a vCPU's thread with the guest's own.
    pub cpu_ns: Nanos,
    /// Time ready to run, but not running; `None`: unknown.
    pub waited_ns: Option<Nanos>,
    /// Voluntary context switches: each is a sleep, and so a wake-up.
    pub voluntary: u64,
    /// Involuntary context switches.
    pub involuntary: u64,
}
