//! Which CPUs may be used, and why another may not.
//!
//! The process's affinity and its cpuset both bound where it may run, and the kernel
//! answers "invalid argument" to either. Affinity may be widened by anyone up to the
//! cpuset, so a thread of ours tries: where that works, only affinity stood in the way.
//! Isolated CPUs are outside every process's first affinity; who names one means it.

use std::sync::mpsc::channel;

use facts::Facts;
use rustix::thread::gettid;
use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::thread::{affinity_of, keep_on, pin};

/// The CPUs to use: the ones asked for, where this process may use them all, else all
/// that it may use.
///
/// # Errors
/// `Kind::NoSuchCpu`, `Offline`, `Cpuset` or `Affinity` for the first CPU asked for that
/// cannot be had; `Kind::System` where the kernel does not say which CPUs there are.
pub fn choose(asked: Option<&CpuSet>, facts: &Facts) -> Result<CpuSet, Error> {
    let allowed = facts.cpus.allowed.value().map_err(unreadable)?;
    let online = facts.cpus.online.value().map_err(unreadable)?;
    let Some(asked) = asked else { return Ok(allowed.and(online)) };
    if asked.is_empty() {
        return Err(Error::new(Kind::NoSuchCpu, "no CPU is named"));
    }
    for cpu in asked.iter() {
        if !online.contains(cpu) {
            return Err(absent(cpu, facts, online));
        }
        if !allowed.contains(cpu) {
            outside(cpu, allowed, facts)?;
        }
    }
    Ok(asked.clone())
}

/// The CPUs to look at without running on them: the ones asked for, else all that run.
///
/// # Errors
/// `Kind::NoSuchCpu` or `Offline` for the first CPU asked for that does not run;
/// `Kind::System` where the kernel does not say which CPUs there are.
pub fn watch(asked: Option<&CpuSet>, facts: &Facts) -> Result<CpuSet, Error> {
    let online = facts.cpus.online.value();
    let online = online.map_err(unreadable)?;
    let asked = asked.unwrap_or(online);
    match asked.without(online).first() {
        Some(cpu) => Err(absent(cpu, facts, online)),
        None => Ok(asked.clone()),
    }
}

/// Makes sure that real-time threads that never sleep on those CPUs leave room for the
/// rest of the machine: another online CPU, or the share that the kernel keeps for
/// ordinary tasks (RT throttling until 6.11, the fair server since 6.12).
///
/// # Errors
/// `Kind::Unsafe` where they would take every CPU and nothing is kept.
pub fn leave_room(cpus: &CpuSet, facts: &Facts) -> Result<(), Error> {
    let others = facts.cpus.online.get().map(|online| online.without(cpus));
    if others.is_some_and(|others| !others.is_empty()) {
        return Ok(());
    }
    let nothing_kept = match facts.sched.fair_server_runtime_ns.get() {
        Some(runtimes) => runtimes.iter().all(|runtime| runtime.is_zero()),
        None => facts.sched.rt_runtime_us.get().is_some_and(|&runtime| runtime < 0),
    };
    if !nothing_kept {
        return Ok(());
    }
    let text = "SCHED_FIFO on every CPU would stop this machine for as long as it lasts: the \
                share that the kernel keeps for ordinary tasks is switched off; leave one CPU \
                out, or switch it on (sysctl kernel.sched_rt_runtime_us=950000)";
    Err(Error::new(Kind::Unsafe, text))
}

fn unreadable(why: &facts::Unknown) -> Error {
    Error::new(Kind::System, "failed to read which CPUs there are").caused_by(why.clone())
}

/// Why a CPU that is not online is not.
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

/// Whether affinity or cpuset keeps this process off a CPU; affinity is no reason on a
/// CPU that is set apart.
fn outside(cpu: Cpu, allowed: &CpuSet, facts: &Facts) -> Result<(), Error> {
    let can_be_had = may_run_on(cpu) || may_enter(cpu);
    if can_be_had && facts.set_apart().contains(cpu) {
        return Ok(());
    }
    if can_be_had {
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

/// Whether a thread of this process may be put on that CPU: one that sleeps, because a real-time
/// task there may keep one that is awake from ever coming back.
fn may_run_on(cpu: Cpu) -> bool {
    let (tell, told) = channel();
    let (keep, is_over) = channel::<()>();
    let thread = std::thread::spawn(move || {
        let number = u32::try_from(gettid().as_raw_nonzero().get()).ok();
        if tell.send(number).is_ok() {
            let _ = is_over.recv();
        }
    });
    let may = told.recv().ok().flatten().is_some_and(|tid| {
        let before = affinity_of(tid);
        let is_there = keep_on(tid, &[cpu].into_iter().collect()).is_ok();
        is_there && before.and_then(|before| keep_on(tid, &before)).is_ok()
    });
    drop(keep);
    thread.join().is_ok() && may
}

/// Whether one gets there by itself, into a partition that was made for this process.
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

    fn refusal(asked: &str, facts: &Facts) -> (Kind, String) {
        let error = choose(Some(&asked.parse().unwrap()), facts).unwrap_err();
        (error.kind(), error.to_string())
    }

    /// Check that all that may be used is used where nothing is asked.
    #[test]
    fn all_by_default() {
        let facts = machine("0-7", "0-3,5", "2-5");
        assert_eq!(choose(None, &facts).unwrap().to_string(), "2,3,5");
    }

    /// Check that a CPU that is not there, is off, or is not ours is refused as such.
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

    /// Check that the whole machine is taken over only where the kernel keeps a share.
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
        assert_eq!(leave_room(&all, &off).unwrap_err().kind(), Kind::Unsafe);
        assert!(leave_room(&"0-2".parse().unwrap(), &off).is_ok());
        let on = with(serde_json::json!({"rt_runtime_us": 950_000}));
        assert!(leave_room(&all, &on).is_ok());
        let fair = serde_json::json!({
            "rt_runtime_us": -1, "fair_server_runtime_ns": [50_000_000],
        });
        assert!(leave_room(&all, &with(fair)).is_ok());
    }

    /// Check that a CPU this process could widen to is named as a matter of affinity.
    #[test]
    fn affinity_is_told_from_cpuset() {
        let real = Facts::read(&facts::Root::live());
        let mine = real.cpus.allowed.get().unwrap().first().unwrap();
        let mut facts = machine("0-9", "0-9", "");
        assert_eq!(refusal(&mine.to_string(), &facts).0, Kind::Affinity);

        // A CPU that is set apart is outside every process's affinity.
        let asked: CpuSet = [mine].into_iter().collect();
        facts.cpus.isolated = facts::Fact::known(asked.clone(), "test");
        assert_eq!(choose(Some(&asked), &facts).unwrap(), asked);
    }

    /// Check that any CPU that runs can be watched, whatever this process may use.
    #[test]
    fn watching_needs_no_affinity() {
        let facts = machine("0-9", "0-6", "2");
        assert_eq!(watch(None, &facts).unwrap().to_string(), "0-6");
        let kind = |cpus: &str| {
            watch(Some(&cpus.parse().unwrap()), &facts).map_err(|e| e.kind())
        };
        assert_eq!(kind("5,6"), Ok("5,6".parse().unwrap()));
        assert_eq!(kind("5-7"), Err(Kind::Offline));
        assert_eq!(kind("11"), Err(Kind::NoSuchCpu));
    }
}
