//! Gives real-time tasks all of each CPU's time, if a real-time task is measured.
//!
//! Otherwise RT throttling (`sched_rt_runtime_us`) or, since 6.12, the fair server stops the
//! measuring loop for tens of milliseconds of each second. Nothing is restored, and there is no
//! journal: the guest ends afterwards. If the kernel refuses, the recording has a doubt about the
//! long gaps. Sources: Documentation/scheduler/sched-rt-group.rst; kernel/sched/debug.c of 6.12,
//! which refuses a runtime of 0 (EBUSY) before the first setting is -1.

use std::fs;

use recording::{GuestSetting, Spec};

use crate::guest::settings;

const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const SERVERS: [&str; 2] =
    ["/sys/kernel/debug/sched/fair_server", "/sys/kernel/debug/sched/ext_server"];

/// Disables both, if the measurement runs as a real-time task; whether it does.
pub(crate) fn disable_throttling(spec: &Spec) -> bool {
    let Spec::Noise(noise) = spec else { return false };
    if noise.fifo.is_none() {
        return false;
    }
    // A kernel without a setting has nothing to disable, and one that refuses causes a doubt.
    let write = |path: &str, value: &str| {
        let setting = GuestSetting { path: path.to_owned(), value: value.to_owned() };
        drop(settings::write(&[setting]));
    };
    write(RT_RUNTIME, "-1");
    for server in SERVERS {
        for cpu in fs::read_dir(server).into_iter().flatten().flatten() {
            write(&cpu.path().join("runtime").to_string_lossy(), "0");
        }
    }
    true
}
