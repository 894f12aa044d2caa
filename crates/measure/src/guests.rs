//! The CPU time and the context switches of this host's guests: the difference of two readings of
//! `/proc` (`facts::Guest`).
//!
//! A guest is identified by its PID and its start time, and so is each thread: a PID that is used
//! again is another guest. A reading takes longer the more threads there are, so each guest has its
//! own time between its two readings.
//!
//! Cannot see: guests that start after the first reading and end before the second.

use std::collections::BTreeMap;

use facts::{Facts, Guest, GuestThread, Root, Unknown, Vcpu};
use recording::{
    Code, Doubt, GuestProcess, GuestUsage, GuestsSeries, GuestsSpec, ThreadUsage,
    VcpuUsage,
};
use units::Nanos;

use crate::control::observer::Watch;
use crate::time::counter;
use crate::{Error, Kind, check_length};

/// The number of guests that a doubt names.
const NAMED: usize = 3;

/// The guests at one moment.
struct Reading {
    /// `CLOCK_MONOTONIC_RAW` at its beginning.
    at: Nanos,
    /// By PID and start time, and when each was read.
    guests: BTreeMap<(u32, u64), (Nanos, Guest)>,
    hidden: u64,
}

/// Reads the guests twice.
pub(crate) fn run(
    spec: &GuestsSpec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<GuestsSeries, Error> {
    refuse(spec)?;
    let before = Reading::now(&Root::live())?;
    if before.guests.is_empty() {
        return Err(no_guests(&before, facts));
    }
    let until = before.at.saturating_add(spec.duration_ns);
    watch.sleep("observing guests", before.at, until);
    let after = Reading::now(&Root::live())?;
    let series = series(&before, &after);
    doubts.extend(invisible(series.hidden, facts));
    doubts.extend(changed(&series));
    doubts.extend(of_threads(&before, &after, &series));
    Ok(series)
}

/// Refuses an invalid duration.
pub(crate) fn refuse(spec: &GuestsSpec) -> Result<(), Error> {
    check_length("the duration", spec.duration_ns)
}

impl Reading {
    fn now(root: &Root) -> Result<Self, Error> {
        let now = || counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        let failed = |why: Unknown| Error::system("failed to list processes", why);
        let at = now();
        let mut reading = Self { at, guests: BTreeMap::new(), hidden: 0 };
        for pid in Guest::processes(root).map_err(failed)? {
            let read_at = now();
            match Guest::read(root, pid) {
                Ok(Some(guest)) => {
                    reading.guests.insert((pid, guest.start), (read_at, guest));
                }
                Ok(None) => {}
                Err(_) => reading.hidden += 1,
            }
        }
        Ok(reading)
    }

    /// The guests that another reading does not have.
    fn without(&self, other: &Self) -> Vec<GuestProcess> {
        let others =
            self.guests.iter().filter(|(key, _)| !other.guests.contains_key(key));
        others.map(|(_, (_, guest))| process(guest)).collect()
    }
}

fn series(before: &Reading, after: &Reading) -> GuestsSeries {
    let both = after.guests.iter().filter_map(|(key, later)| {
        let earlier = before.guests.get(key)?;
        Some(usage(earlier, later))
    });
    GuestsSeries {
        elapsed_ns: after.at.saturating_sub(before.at),
        guests: both.collect(),
        started: after.without(before),
        ended: before.without(after),
        hidden: before.hidden.max(after.hidden),
    }
}

fn process(guest: &Guest) -> GuestProcess {
    GuestProcess {
        pid: guest.pid,
        name: guest.name.clone(),
        process: guest.process.clone(),
        monitor: guest.monitor,
    }
}

fn usage(earlier: &(Nanos, Guest), later: &(Nanos, Guest)) -> GuestUsage {
    let ((began, earlier), (ended, later)) = (earlier, later);
    let mut before: BTreeMap<(u32, u64), &GuestThread> = earlier
        .threads
        .iter()
        .map(|thread| ((thread.tid, thread.start), thread))
        .collect();
    let mut found = GuestUsage {
        guest: process(later),
        accelerator: later.accelerator.clone().or_else(|| earlier.accelerator.clone()),
        vcpus: later.vcpus.or(earlier.vcpus),
        elapsed_ns: ended.saturating_sub(*began),
        vcpu_threads: Vec::new(),
        others: ThreadUsage { waited_ns: Some(Nanos::ZERO), ..ThreadUsage::default() },
        others_cpu_ns_max: Nanos::ZERO,
        ended_threads: 0,
    };
    for thread in &later.threads {
        let old = before.remove(&(thread.tid, thread.start));
        let used = difference(old, thread);
        // A thread may be renamed.
        match thread.vcpu.or(old.and_then(|old| old.vcpu)) {
            Some(vcpu) => found.vcpu_threads.push(VcpuUsage {
                tid: thread.tid,
                vcpu: match vcpu {
                    Vcpu::Number(number) => Some(number),
                    Vcpu::All | Vcpu::Unnamed => None,
                },
                usage: used,
            }),
            None => {
                found.others_cpu_ns_max = found.others_cpu_ns_max.max(used.cpu_ns);
                add(&mut found.others, &used);
            }
        }
    }
    found.ended_threads = u32::try_from(before.len()).unwrap_or(u32::MAX);
    found
}

/// What a thread used since an earlier reading, or since its start.
fn difference(earlier: Option<&GuestThread>, later: &GuestThread) -> ThreadUsage {
    let cpu = match earlier {
        None => Nanos::ZERO,
        Some(thread) if thread.is_coarse == later.is_coarse => thread.cpu,
        // Two sources have no difference: one file could not be read, as of a thread that ends.
        Some(_) => later.cpu,
    };
    let waited = earlier.map_or(Some(Nanos::ZERO), |thread| thread.waited);
    let switches = earlier.map(|thread| thread.switches).unwrap_or_default();
    ThreadUsage {
        cpu_ns: later.cpu.saturating_sub(cpu),
        waited_ns: later.waited.zip(waited).map(|(now, then)| now.saturating_sub(then)),
        voluntary: later.switches.voluntary.saturating_sub(switches.voluntary),
        involuntary: later.switches.involuntary.saturating_sub(switches.involuntary),
    }
}

fn add(sum: &mut ThreadUsage, used: &ThreadUsage) {
    sum.cpu_ns = sum.cpu_ns.saturating_add(used.cpu_ns);
    sum.waited_ns =
        sum.waited_ns.zip(used.waited_ns).map(|(sum, waited)| sum.saturating_add(waited));
    sum.voluntary = sum.voluntary.saturating_add(used.voluntary);
    sum.involuntary = sum.involuntary.saturating_add(used.involuntary);
}

/// There is nothing to measure, and the reasons why guests may be invisible.
fn no_guests(reading: &Reading, facts: &Facts) -> Error {
    let mut text =
        "found no guests: no process of QEMU, Firecracker or cloud-hypervisor \
                    is visible"
            .to_owned();
    for doubt in invisible(reading.hidden, facts) {
        text.push_str("; ");
        text.push_str(&doubt.text);
    }
    Error::new(Kind::System, text)
}

/// Doubts about processes that cannot be seen.
fn invisible(hidden: u64, facts: &Facts) -> Vec<Doubt> {
    let mut texts = Vec::new();
    let option = Guest::hidepid(&Root::live());
    // The first process is always there, and visible to all who may see all.
    let is_hiding = option.is_some() && Root::live().text("/proc/1/comm").is_err();
    let because =
        option.map_or_else(String::new, |option| format!(" ({option} of /proc)"));
    if hidden > 0 {
        texts.push(format!(
            "{hidden} processes may not be examined{because}, and guests among them are \
             missing; hint: run it as root"
        ));
    } else if is_hiding {
        texts.push(format!(
            "processes of other users are not visible{because}, and guests among them are \
             missing; hint: run it as root"
        ));
    } else if let Some(Some(container)) = facts.virt.container.get() {
        texts.push(format!(
            "noisefloor runs in a container ({container}): guests outside of it are not \
             visible"
        ));
    }
    texts.into_iter().map(|text| Doubt::new(Code::Unreadable, text)).collect()
}

/// Doubts about guests that were not there all the time.
fn changed(series: &GuestsSeries) -> Vec<Doubt> {
    let sets = [("started", &series.started), ("ended", &series.ended)];
    let doubt = |(what, guests): (&str, &Vec<GuestProcess>)| {
        let names = listed(guests.iter().map(label))?;
        let text = format!(
            "{what} during the measurement, and therefore not in the numbers: {names}"
        );
        Some(Doubt::new(Code::Unequal, text))
    };
    sets.into_iter().filter_map(doubt).collect()
}

/// Doubts about single guests.
fn of_threads(before: &Reading, after: &Reading, series: &GuestsSeries) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let mut doubt = |code, text: &str, of: &dyn Fn(&GuestUsage) -> bool| {
        let those = series.guests.iter().filter(|guest| of(guest));
        if let Some(names) = listed(those.map(|guest| label(&guest.guest))) {
            doubts.push(Doubt::new(code, format!("{names}: {text}")));
        }
    };
    let text = "the threads of the vCPUs are unknown, because QEMU did not name them; hint: \
                -name NAME,debug-threads=on";
    doubt(Code::ThreadsUnnamed, text, &|guest| guest.vcpu_threads.is_empty());
    let text = "the number of vCPUs is unknown";
    doubt(Code::ThreadsUnnamed, text, &|guest| guest.vcpus.is_none());
    let all = || before.guests.values().chain(after.guests.values());
    let has_pid = |pid: u32, of: &dyn Fn(&Guest) -> bool| {
        all().any(|(_, guest)| guest.pid == pid && of(guest))
    };
    let text = "CPU time is in steps of 10 ms: this kernel is built without \
                CONFIG_SCHED_INFO";
    doubt(Code::CoarseClock, text, &|guest| {
        has_pid(guest.guest.pid, &|guest| guest.threads.iter().any(|one| one.is_coarse))
    });
    let text = "vCPUs were added or removed during the measurement";
    doubt(Code::Unequal, text, &|guest| {
        has_pid(guest.guest.pid, &|one| one.vcpus != guest.vcpus)
    });
    doubts
}

fn label(guest: &GuestProcess) -> String {
    let name = guest.name.as_ref().unwrap_or(&guest.process);
    format!("{name} ({})", guest.pid)
}

/// The first names, and the number of the others; `None` without a name.
fn listed(names: impl Iterator<Item = String>) -> Option<String> {
    let names: Vec<String> = names.collect();
    let (first, others) = names.split_at(names.len().min(NAMED));
    let more = match others.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    (!first.is_empty()).then(|| first.join(", ") + &more)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Duration;

    use facts::{ContextSwitches, Monitor};

    use super::*;

    fn thread(tid: u32, vcpu: Option<Vcpu>, cpu: u64, voluntary: u64) -> GuestThread {
        GuestThread {
            tid,
            start: 5,
            vcpu,
            cpu: Nanos::from_millis(cpu),
            is_coarse: false,
            waited: Some(Nanos::from_millis(cpu)),
            switches: ContextSwitches { voluntary, involuntary: voluntary / 2 },
        }
    }

    fn reading(at: u64, guests: &[(u32, u64, &[GuestThread])]) -> Reading {
        let at = Nanos::from_secs(at);
        let guest = |&(pid, start, threads): &(u32, u64, &[GuestThread])| {
            let vcpus = threads.iter().filter(|thread| thread.vcpu.is_some()).count();
            let guest = Guest {
                pid,
                start,
                name: Some("web".to_owned()),
                process: "qemu-kvm".to_owned(),
                monitor: Monitor::Qemu,
                accelerator: Some("KVM".to_owned()),
                vcpus: u32::try_from(vcpus).ok(),
                threads: threads.to_vec(),
            };
            ((pid, start), (at, guest))
        };
        Reading { at, guests: guests.iter().map(guest).collect(), hidden: 0 }
    }

    /// Check the differences of threads: one that stays, one that starts, one that ends, one that
    /// is renamed.
    #[test]
    fn threads_that_change() {
        let (zero, one) = (Some(Vcpu::Number(0)), Some(Vcpu::Number(1)));
        let earlier = [
            thread(1, None, 100, 10),
            thread(2, zero, 50, 1_000),
            thread(3, one, 50, 1_000),
            thread(4, None, 8, 80),
        ];
        let later = [
            thread(1, None, 103, 16),
            thread(2, zero, 60, 1_250),
            thread(3, None, 51, 1_010),
            thread(5, None, 7, 2),
        ];
        let found =
            series(&reading(3, &[(1, 5, &earlier)]), &reading(5, &[(1, 5, &later)]));
        let guest = &found.guests[0];
        assert_eq!(guest.elapsed_ns, Nanos::from_secs(2));
        let of = |at: usize| {
            let VcpuUsage { vcpu, usage, .. } = guest.vcpu_threads[at];
            (vcpu, usage.cpu_ns, usage.voluntary, usage.involuntary)
        };
        assert_eq!(of(0), (Some(0), Nanos::from_millis(10), 250, 125));
        assert_eq!(of(1), (Some(1), Nanos::from_millis(1), 10, 5));
        assert_eq!(guest.vcpu_threads.len(), 2);
        let others = &guest.others;
        assert_eq!((others.cpu_ns, others.voluntary), (Nanos::from_millis(10), 8));
        assert_eq!(others.waited_ns, Some(Nanos::from_millis(10)));
        assert_eq!(guest.others_cpu_ns_max, Nanos::from_millis(7));
        assert_eq!(guest.ended_threads, 1);
    }

    /// Check that a PID that is used again is another guest, and the doubts about guests that start
    /// or end.
    #[test]
    fn guests_that_change() {
        let one = [thread(9, None, 1, 1), thread(10, None, 1, 1)];
        let before = reading(1, &[(9, 5, &one), (12, 5, &one)]);
        let after = reading(2, &[(9, 77, &one), (12, 5, &one)]);
        let found = series(&before, &after);
        assert_eq!(
            (found.started.len(), found.ended.len(), found.guests.len()),
            (1, 1, 1)
        );
        let doubts = changed(&found);
        assert!(doubts[0].text.starts_with("started"), "{doubts:?}");
        assert!(doubts[1].text.ends_with("numbers: web (9)"), "{doubts:?}");
        let doubts = of_threads(&before, &after, &found);
        assert_eq!(doubts[0].code, Code::ThreadsUnnamed);
        assert!(doubts[0].text.starts_with("web (12): the threads"), "{doubts:?}");
    }

    /// Check that a doubt names three guests, and counts the others.
    #[test]
    fn names_in_doubts() {
        let names = |count: usize| listed((0..count).map(|at| at.to_string()));
        assert_eq!(names(0), None);
        assert_eq!(names(3).as_deref(), Some("0, 1, 2"));
        assert_eq!(names(5).as_deref(), Some("0, 1, 2 and 2 more"));
    }

    /// Check the counts of a real thread with the name of a vCPU: each sleep is a voluntary switch.
    #[test]
    fn real_threads() {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        let sleep = move || {
            while there.read_exact(&mut [0]).is_ok() {
                (0..200).for_each(|_| thread::sleep(Duration::from_micros(50)));
                there.write_all(&[0]).unwrap();
            }
        };
        let name = thread::Builder::new().name("vcpu3".to_owned());
        let vcpu = name.spawn(sleep).unwrap();
        let mut run = || {
            here.write_all(&[0]).unwrap();
            here.read_exact(&mut [0]).unwrap();
        };
        run();
        let before = Reading::now(&Root::live()).unwrap();
        run();
        let after = Reading::now(&Root::live()).unwrap();
        let found = series(&before, &after);
        let own = found.guests.iter().find(|guest| guest.guest.pid == std::process::id());
        let own = own.unwrap();
        assert_eq!((own.guest.monitor, own.vcpus), (Monitor::Other, Some(1)));
        let used = &own.vcpu_threads[0];
        assert_eq!(used.vcpu, Some(3));
        // The other sleeps are those of reading a message, and of page faults.
        assert!((200..=220).contains(&used.usage.voluntary), "{used:?}");
        assert!(used.usage.cpu_ns > Nanos::ZERO && used.usage.cpu_ns < own.elapsed_ns);
        drop(here);
        vcpu.join().unwrap();
    }
}
