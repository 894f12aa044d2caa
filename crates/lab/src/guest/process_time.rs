//! The CPU time and the time asleep of a process: the clock of guests' deadlines.
//!
//! On a busy host a guest waits for the CPU, which is not its fault. So CPU time counts, and
//! besides it only the time in which no thread of the process is runnable: a guest that sleeps
//! forever uses no CPU time.
//!
//! `/proc/PID/stat` (`proc_pid_stat(5)`): the 3rd field is the state, the 14th and 15th are the CPU
//! time of all threads, those that have ended included, in clock ticks; `/proc/PID/task/TID/stat`
//! has the same of each thread. A reading every 50 ms misses what a thread did in between, except
//! for its CPU time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use facts::TaskStat;

/// The most that one reading counts as sleep: if readings are further apart, this process did
/// not run itself, and does not know what the other one did in between.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// A clock tick of `/proc`, in milliseconds: `USER_HZ` is 100 wherever the lab runs.
const TICK_MS: u64 = 10;

/// The time that a process has used since this was created or reset.
#[derive(Debug)]
pub(crate) struct ProcessTime {
    process: PathBuf,
    /// The CPU time and the wall time of the last reading.
    last: (Duration, Instant),
    begin: Instant,
    ran: Duration,
    slept: Duration,
}

impl ProcessTime {
    /// Starts counting for that process.
    pub(crate) fn new(pid: u32) -> Self {
        let (process, now) = (PathBuf::from(format!("/proc/{pid}")), Instant::now());
        let cpu = usage(&process).map_or(Duration::ZERO, |usage| usage.cpu);
        let zero = Duration::ZERO;
        Self { process, last: (cpu, now), begin: now, ran: zero, slept: zero }
    }

    /// Starts again from zero.
    pub(crate) fn reset(&mut self) {
        (self.ran, self.slept) = (Duration::ZERO, Duration::ZERO);
        self.begin = Instant::now();
    }

    /// Reads the process's time. One that has ended uses no more.
    pub(crate) fn look(&mut self) {
        let Some(usage) = usage(&self.process) else { return };
        let (cpu, then) = self.last;
        let now = Instant::now();
        let ran = usage.cpu.saturating_sub(cpu);
        self.last = (usage.cpu, now);
        self.ran += ran;
        if ran.is_zero() && self.sleeps(usage.state) {
            self.slept += now.duration_since(then).min(SLEEP_MAX);
        }
    }

    /// Whether every thread sleeps, waiting for neither a CPU nor a disk; `first` is the state
    /// of the first one, which is most often enough.
    fn sleeps(&self, first: char) -> bool {
        let asleep = |state| matches!(state, 'S' | 'I');
        if !asleep(first) {
            return false;
        }
        let tasks = fs::read_dir(self.process.join("task")).into_iter().flatten();
        tasks.flatten().all(|task| usage(&task.path()).is_none_or(|u| asleep(u.state)))
    }

    /// The CPU time that it used, and the time that all of it slept.
    pub(crate) fn ran_and_slept(&self) -> (Duration, Duration) {
        (self.ran, self.slept)
    }

    /// The wall time.
    pub(crate) fn wall(&self) -> Duration {
        self.begin.elapsed()
    }
}

/// The fields of a process's or a thread's `stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Usage {
    state: char,
    cpu: Duration,
}

/// Reads it from the folder of a process or a thread; `None` if it has ended.
fn usage(folder: &Path) -> Option<Usage> {
    parse(&fs::read_to_string(folder.join("stat")).ok()?)
}

fn parse(text: &str) -> Option<Usage> {
    let stat = TaskStat::parse(text)?;
    let state = stat.word(3)?.chars().next()?;
    let ticks = stat.number::<u64>(14)?.saturating_add(stat.number(15)?);
    Some(Usage { state, cpu: Duration::from_millis(ticks.saturating_mul(TICK_MS)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
    use std::thread;

    const LOOK: Duration = Duration::from_millis(5);

    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).spawn().unwrap()
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn look_until(time: &mut ProcessTime, done: impl Fn(&ProcessTime) -> bool) {
        while !done(time) {
            thread::sleep(LOOK);
            time.look();
        }
    }

    /// Check that the fields are found after any name.
    #[test]
    fn fields() {
        let text = "12 (a) b (c)) R 2 0 0 0 -1 64 0 0 0 0 150 250 0 0 20 0 1 0 77 0";
        let usage = parse(text).unwrap();
        assert_eq!(usage.state, 'R');
        assert_eq!(usage.cpu, Duration::from_secs(4));
        assert_eq!(parse("12 (a"), None);
    }

    /// Check that a process that spins has only its CPU time, however long it waits for a CPU, and
    /// that a reset starts from 0.
    #[test]
    fn spinning() {
        let child = shell("while :; do :; done");
        // Until it spins it reads its program from a disk, or waits for a lock.
        let mut time = ProcessTime::new(child.id());
        look_until(&mut time, |time| time.ran > Duration::from_millis(50));
        time.reset();
        let before = usage(&time.process).unwrap().cpu;
        look_until(&mut time, |time| time.ran >= Duration::from_millis(200));
        let after = usage(&time.process).unwrap().cpu;
        assert_eq!(time.slept, Duration::ZERO);
        assert!(time.ran <= after - before + Duration::from_millis(50), "{time:?}");
        end(child);
    }

    /// Check that the time of a process that sleeps passes, so that one that sleeps forever reaches
    /// any deadline.
    #[test]
    fn sleeping() {
        let child = shell("exec sleep 1000");
        let mut time = ProcessTime::new(child.id());
        look_until(&mut time, |time| time.slept >= Duration::from_millis(200));
        assert!(time.slept <= time.wall(), "{time:?}");
        end(child);
    }

    /// Check that a process that was stopped uses no time until it continues.
    #[test]
    fn stopped() {
        let child = shell("while :; do :; done");
        let signal = |name: &str| {
            let pid = child.id().to_string();
            assert!(
                Command::new("kill")
                    .args([name, pid.as_str()])
                    .status()
                    .unwrap()
                    .success()
            );
        };
        let state = |pid| usage(&PathBuf::from(format!("/proc/{pid}"))).unwrap().state;
        signal("-STOP");
        while state(child.id()) != 'T' {
            thread::sleep(LOOK);
        }
        let mut time = ProcessTime::new(child.id());
        (0..40).for_each(|_| {
            thread::sleep(LOOK);
            time.look();
        });
        assert_eq!(time.ran_and_slept(), (Duration::ZERO, Duration::ZERO));
        assert!(time.wall() >= LOOK * 40);
        signal("-CONT");
        look_until(&mut time, |time| !time.ran.is_zero());
        end(child);
    }
}
