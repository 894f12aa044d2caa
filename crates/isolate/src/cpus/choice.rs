//! The CPUs that this process may use, and why others are not allowed.
//!
//! Both the process's affinity and its cpuset restrict where it may run, and the kernel's error is
//! EINVAL in both cases. A process can extend its affinity up to the cpuset, so a thread tries
//! that: if it succeeds, only the affinity excluded the CPU. Isolated CPUs are not in the initial
//! affinity of any process, so a request for one is not an error.

use std::sync::mpsc::channel;

use facts::Facts;
use rustix::thread::gettid;
use units::{Cpu, CpuSet, Helped};

use crate::error::{Error, Kind};
use crate::thread::partition_entry::has_partition;
use crate::thread::{affinity_of, pin, restrict_thread};

/// The CPUs to measure: the requested ones if this process may use all of them, or all allowed
/// ones if none are requested.
///
/// # Errors
/// `Kind::NoSuchCpu`, `Offline`, `Cpuset` or `Affinity` for the first requested CPU that cannot be
/// used; `Kind::System` if the kernel's lists of CPUs cannot be read.
pub fn choose(requested: Option<&CpuSet>, facts: &Facts) -> Result<CpuSet, Error> {
    let allowed = facts.cpus.allowed.value().map_err(unreadable)?;
    let online = facts.cpus.online.value().map_err(unreadable)?;
    let Some(requested) = requested else { return Ok(allowed.and(online)) };
    if requested.is_empty() {
        return Err(Error::new(Kind::NoSuchCpu, "no CPU is named"));
    }
    for cpu in requested.iter() {
        if !online.contains(cpu) {
            return Err(absent(cpu, facts, online));
        }
        if !allowed.contains(cpu) {
            outside(cpu, allowed, facts)?;
        }
    }
    Ok(requested.clone())
}

/// The CPUs to observe without running on them: the requested ones, or all online ones.
///
/// # Errors
/// `Kind::NoSuchCpu` or `Offline` for the first requested CPU that is not online; `Kind::System`
/// if the kernel's lists of CPUs cannot be read.
pub fn choose_online(requested: Option<&CpuSet>, facts: &Facts) -> Result<CpuSet, Error> {
    let online = facts.cpus.online.value();
    let online = online.map_err(unreadable)?;
    let requested = requested.unwrap_or(online);
    match requested.without(online).first() {
        Some(cpu) => Err(absent(cpu, facts, online)),
        None => Ok(requested.clone()),
    }
}

/// Checks that real-time threads that never sleep on these CPUs leave CPU time for ordinary tasks:
/// another online CPU, or the share of RT throttling (until 6.11) or of the fair server (since
/// 6.12).
///
/// # Errors
/// `Kind::Unsafe` if the threads would use all the time of all CPUs.
pub fn require_ordinary_share(cpus: &CpuSet, facts: &Facts) -> Result<(), Error> {
    let others = facts.cpus.online.get().map(|online| online.without(cpus));
    if others.is_some_and(|others| !others.is_empty()) {
        return Ok(());
    }
    let is_unlimited = match facts.sched.fair_server_runtime_ns.get() {
        Some(runtimes) => runtimes.iter().all(|runtime| runtime.is_zero()),
        None => facts.sched.rt_runtime_us.get().is_some_and(|&runtime| runtime < 0),
    };
    if !is_unlimited {
        return Ok(());
    }
    let text = "SCHED_FIFO threads on every CPU would stall this machine, because RT throttling \
                and the fair server are switched off; hint: leave out one CPU, or enable RT \
                throttling (sysctl kernel.sched_rt_runtime_us=950000)";
    Err(Error::new(Kind::Unsafe, text))
}

fn unreadable(why: &facts::Unknown) -> Error {
    let hint = "hint: mount /proc and /sys";
    Error::new(Kind::System, "failed to read the kernel's lists of CPUs")
        .caused_by(Helped::new(why.clone(), hint))
}

/// Why a CPU is not online.
fn absent(cpu: Cpu, facts: &Facts, online: &CpuSet) -> Error {
    if facts.cpus.present.get().is_some_and(|present| present.contains(cpu)) {
        let text = format!(
            "CPU {cpu} is offline: as root, echo 1 > /sys/devices/system/cpu/cpu{cpu}/online"
        );
        return Error::new(Kind::Offline, text);
    }
    let text = format!("this machine has no CPU {cpu}: its CPUs are {online}");
    Error::new(Kind::NoSuchCpu, text)
}

/// Whether the affinity or the cpuset excludes this process from a CPU; the affinity does not
/// matter for isolated CPUs, and for those in a partition of noisefloor (`try partition=1`).
fn outside(cpu: Cpu, allowed: &CpuSet, facts: &Facts) -> Result<(), Error> {
    let is_possible = may_run_on(cpu) || may_enter(cpu);
    let is_apart = facts.set_apart().contains(cpu) || has_partition(&cpu.into());
    if is_possible && is_apart {
        return Ok(());
    }
    if is_possible {
        let text = format!(
            "CPU {cpu} is outside this process's affinity ({allowed}): start it without \
             taskset, or with taskset -c {cpu}"
        );
        return Err(Error::new(Kind::Affinity, text));
    }
    let text = format!(
        "CPU {cpu} is outside this process's cpuset ({allowed}): run it in a control group \
         or container that owns the CPU (cpuset.cpus)"
    );
    Err(Error::new(Kind::Cpuset, text))
}

/// Whether a thread of this process can have this affinity. The thread sleeps meanwhile: if it were
/// runnable, a real-time task on that CPU could keep it there forever.
fn may_run_on(cpu: Cpu) -> bool {
    let (sender, receiver) = channel();
    let (end, is_ended) = channel::<()>();
    let thread = std::thread::spawn(move || {
        let number = u32::try_from(gettid().as_raw_nonzero().get()).ok();
        if sender.send(number).is_ok() {
            let _ = is_ended.recv();
        }
    });
    let may = receiver.recv().ok().flatten().is_some_and(|tid| {
        let before = affinity_of(tid);
        let is_there = restrict_thread(tid, &cpu.into()).is_ok();
        is_there && before.and_then(|before| restrict_thread(tid, &before)).is_ok()
    });
    drop(end);
    thread.join().is_ok() && may
}

/// Whether a thread can enter the CPU through a partition that was made for this process.
fn may_enter(cpu: Cpu) -> bool {
    matches!(std::thread::spawn(move || pin(cpu)).join(), Ok(Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(present: &str, online: &str, allowed: &str) -> Facts {
        let page = serde_json::json!({
            "cpus": {"present": present, "online": online, "allowed": allowed},
            "sources": {}, "unknown": {},
        });
        serde_json::from_value(page).unwrap()
    }

    fn refusal(requested: &str, facts: &Facts) -> (Kind, String) {
        let error = choose(Some(&requested.parse().unwrap()), facts).unwrap_err();
        (error.kind(), error.to_string())
    }

    /// Check that all allowed online CPUs are used by default.
    #[test]
    fn all_by_default() {
        let facts = machine("0-7", "0-3,5", "2-5");
        assert_eq!(choose(None, &facts).unwrap().to_string(), "2,3,5");
    }

    /// Check that CPUs that do not exist, are offline or are not allowed are rejected as such.
    #[test]
    fn refusals_say_which() {
        let facts = machine("0-40000", "0-6,40000", "0-3");
        assert_eq!(refusal("40001", &facts).0, Kind::NoSuchCpu);
        assert_eq!(refusal("7", &facts).0, Kind::Offline);
        assert_eq!(refusal("", &facts).0, Kind::NoSuchCpu);
        let (kind, text) = refusal("40000", &facts);
        assert_eq!(kind, Kind::Cpuset, "{text}");
        assert!(text.contains("0-3"), "{text}");
    }

    /// Check that all CPUs are allowed only if ordinary tasks have a guaranteed share.
    #[test]
    fn room_is_left() {
        let all = "0-3".parse().unwrap();
        let with = |sched: serde_json::Value| -> Facts {
            serde_json::from_value(serde_json::json!({
                "cpus": {"online": "0-3"}, "sched": sched, "sources": {}, "unknown": {},
            }))
            .unwrap()
        };
        let off = with(serde_json::json!({"rt_runtime_us": -1}));
        assert_eq!(require_ordinary_share(&all, &off).unwrap_err().kind(), Kind::Unsafe);
        assert!(require_ordinary_share(&"0-2".parse().unwrap(), &off).is_ok());
        let on = with(serde_json::json!({"rt_runtime_us": 950_000}));
        assert!(require_ordinary_share(&all, &on).is_ok());
        let fair = serde_json::json!({
            "rt_runtime_us": -1, "fair_server_runtime_ns": [50_000_000],
        });
        assert!(require_ordinary_share(&all, &with(fair)).is_ok());
    }

    /// Check that a CPU to which the affinity can be extended is reported as excluded by affinity.
    #[test]
    fn affinity_or_cpuset() {
        let real = Facts::read(&facts::Root::live());
        let allowed = real.cpus.allowed.get().unwrap().first().unwrap();
        let mut facts = machine("0-9", "0-9", "");
        assert_eq!(refusal(&allowed.to_string(), &facts).0, Kind::Affinity);

        // Isolated CPUs are not in the affinity of any process.
        let requested: CpuSet = allowed.into();
        facts.cpus.isolated = facts::Fact::known(requested.clone(), "test");
        assert_eq!(choose(Some(&requested), &facts).unwrap(), requested);
    }

    /// Check that any online CPU can be observed, regardless of the affinity.
    #[test]
    fn observing_needs_no_affinity() {
        let facts = machine("0-9", "0-6", "2");
        assert_eq!(choose_online(None, &facts).unwrap().to_string(), "0-6");
        let kind = |cpus: &str| {
            choose_online(Some(&cpus.parse().unwrap()), &facts).map_err(|e| e.kind())
        };
        assert_eq!(kind("5,6"), Ok("5,6".parse().unwrap()));
        assert_eq!(kind("5-7"), Err(Kind::Offline));
        assert_eq!(kind("11"), Err(Kind::NoSuchCpu));
    }
}
