//! A program that runs on CPUs of its own and ends with this process, including all of its
//! descendants, even those that change their session or outlive their parent.
//!
//! Between this process and the program is a process of [`crate::program::supervisor`], which starts the
//! program and is controlled by signals. It needs no privileges. It cannot kill processes of
//! another user (set-user-ID programs if this process is not root) and processes started on the
//! program's behalf by others (systemd, a container daemon). If the supervisor itself is killed,
//! only the program's first process is killed.

pub(crate) mod child;
pub(crate) mod gate;
pub(crate) mod launch;
pub(crate) mod supervisor;
pub(crate) mod watchdog;

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use units::{CpuSet, Nanos, Span};

use crate::numeric_entries::numeric_entries;
use crate::program::gate::Gate;
use crate::program::launch::{BeforeExec, Launch};
use crate::program::supervisor::{END, LEAVE, Report, supervise};
use crate::program::watchdog::{Watchdog, make_ordinary};

/// A running program; it is killed when this is dropped.
#[derive(Debug)]
pub struct Program {
    supervisor: Child,
    reports: File,
}

/// How a program ended.
#[derive(Debug)]
pub struct Ending {
    /// From just before its exec to its end, on `CLOCK_MONOTONIC`.
    pub ran: Span,
    /// How long its first process was stopped by signals,
    pub stopped: Nanos,
    /// and how often.
    pub stops: u64,
    /// Whether its first thread may run on other CPUs at the end than at the start.
    pub has_more_cpus: bool,
    /// The status of `wait4(2)`.
    pub status: libc::c_int,
    /// The resource usage of `wait4(2)`, without that before exec.
    pub usage: libc::rusage,
    /// Whether descendants of the program are still running.
    pub is_survived: bool,
}

impl Program {
    /// Starts the program on these CPUs, to which its descendants are also restricted. If `fifo` is
    /// set, all of its threads are `SCHED_FIFO` with that priority. The program is killed when the
    /// calling thread ends for any reason. The command's environment is that of this process with its
    /// changes: `Command::env_clear` has no effect.
    ///
    /// # Errors
    /// Those of `exec(2)`; [`crate::may_outrank`] and [`crate::may_have`] check for others in
    /// advance.
    pub fn start(
        command: &mut Command,
        cpus: &CpuSet,
        fifo: Option<u8>,
    ) -> io::Result<Self> {
        Self::start_behind(None, command, cpus, fifo)
    }

    /// The same behind a gate: this returns after that was opened.
    ///
    /// # Errors
    /// Those of [`Self::start`]; `ECANCELED` if the other side of the gate was closed.
    pub fn start_behind(
        gate: Option<&Gate>,
        command: &mut Command,
        cpus: &CpuSet,
        fifo: Option<u8>,
    ) -> io::Result<Self> {
        let (reports, reporting) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&reports, true)?;
        let (parent, report_to) = (std::process::id(), reporting.as_raw_fd());
        let first = Launch::before_another(cpus, fifo)?;
        let launch = Launch::of(command, cpus, fifo)?.behind(gate);
        let begin = move || supervise(&first, &launch, parent, report_to);
        // SAFETY: between fork and exec, only async-signal-safe calls are made, and no memory is
        // allocated.
        unsafe { command.pre_exec(begin) };
        let supervisor = command.spawn()?;
        Ok(Self { supervisor, reports: reports.into() })
    }

    /// Sends the program a signal, unless it has ended. SIGPWR and SIGSTKFLT are not sent: they
    /// control the supervisor.
    pub fn signal(&self, signal: libc::c_int) {
        if signal != END && signal != LEAVE {
            self.control(signal);
        }
    }

    /// Sends the supervisor a signal.
    fn control(&self, signal: libc::c_int) {
        let supervisor = libc::pid_t::try_from(self.supervisor.id());
        if let Ok(supervisor) = supervisor {
            // SAFETY: takes numbers only; the supervisor was not waited for, so its PID cannot have
            // been reused.
            unsafe { libc::kill(supervisor, signal) };
        }
    }

    /// Sends each process of the program's process group a signal once, as a terminal does on Ctrl-C;
    /// only if the command was given a group of its own (`CommandExt::process_group`). Processes
    /// that start meanwhile are left out.
    pub fn signal_group(&self, signal: Signal) {
        let supervisor = Pid::from_child(&self.supervisor);
        let pids = numeric_entries("/proc").into_iter();
        let pids = pids.filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        for pid in pids.filter(|pid| *pid != supervisor) {
            // rustix panics for kernel threads, whose group is 0.
            // SAFETY: takes a number only.
            let group = unsafe { libc::getpgid(pid.as_raw_nonzero().get()) };
            if group == supervisor.as_raw_nonzero().get() {
                let _ = kill_process(pid, signal); // it may have ended
            }
        }
    }

    /// A file descriptor that becomes readable when the program has ended.
    pub fn end(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }

    /// The status of the program if it has ended; it is reported once.
    ///
    /// # Errors
    /// `UnexpectedEof` if the supervisor was killed, or if all descendants have ended, too.
    pub fn ended(&mut self) -> io::Result<Option<Ending>> {
        let mut bytes = [0; size_of::<Report>()];
        match self.reports.read_exact(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            other => other.map(|()| Some(Report::from_bytes(&bytes).into())),
        }
    }

    /// A watchdog for tasks that are starved by the program's real-time threads.
    pub fn watchdog(&self, cpus: &CpuSet) -> Watchdog {
        Watchdog::new(self.supervisor.id(), cpus.clone())
    }

    /// Sets all real-time threads of the program to `SCHED_OTHER`; returns their number.
    pub fn make_ordinary(&self) -> usize {
        make_ordinary(self.supervisor.id())
    }

    /// Lets the program's remaining processes continue to run without this process.
    pub fn leave(mut self) {
        self.control(LEAVE);
        let _ = self.supervisor.wait();
    }
}

impl From<Report> for Ending {
    fn from(report: Report) -> Self {
        let BeforeExec { began, usage } = report.before;
        let [start, end, stopped] =
            [began, report.ended, report.stopped].map(Nanos::from_nanos);
        Self {
            ran: Span { start, length: end.saturating_sub(start) },
            stopped,
            stops: report.stops,
            has_more_cpus: report.has_more_cpus != 0,
            status: report.status,
            usage: without(report.usage, usage),
            is_survived: report.survivors != 0,
        }
    }
}

/// A resource usage without an earlier one of the same process.
fn without(all: libc::rusage, before: libc::rusage) -> libc::rusage {
    let time = |all: libc::timeval, before: libc::timeval| {
        let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
        let rest = (micros(all) - micros(before)).max(0);
        libc::timeval { tv_sec: rest / 1_000_000, tv_usec: rest % 1_000_000 }
    };
    libc::rusage {
        ru_utime: time(all.ru_utime, before.ru_utime),
        ru_stime: time(all.ru_stime, before.ru_stime),
        ru_minflt: all.ru_minflt - before.ru_minflt,
        ru_majflt: all.ru_majflt - before.ru_majflt,
        ru_nvcsw: all.ru_nvcsw - before.ru_nvcsw,
        ru_nivcsw: all.ru_nivcsw - before.ru_nivcsw,
        ..all
    }
}

/// Makes a command end on SIGINT by default even if this process ignores it, as the background jobs
/// of a shell do.
pub fn receive_interrupts(command: &mut Command) {
    let receive = || {
        // SAFETY: takes numbers only, and no handler is given.
        match unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) } {
            libc::SIG_ERR => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec, one async-signal-safe call is made.
    unsafe { command.pre_exec(receive) };
}

impl Drop for Program {
    fn drop(&mut self) {
        if matches!(self.supervisor.try_wait(), Ok(None)) {
            self.control(END);
            let _ = self.supervisor.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;

    use super::*;
    use crate::may_outrank;

    fn last_cpu() -> CpuSet {
        let facts = facts::Facts::read(&facts::Root::live());
        facts.cpus.allowed.get().unwrap().iter().last().unwrap().into()
    }

    fn start(
        script: &str,
        fifo: Option<u8>,
    ) -> (Program, io::BufReader<impl Read + use<>>) {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdout(std::process::Stdio::piped());
        let mut program = Program::start(&mut shell, &last_cpu(), fifo).unwrap();
        let output = program.supervisor.stdout.take().unwrap();
        (program, io::BufReader::new(output))
    }

    fn ending(program: &mut Program) -> Ending {
        let timeout = rustix::event::Timespec { tv_sec: 60, tv_nsec: 0 };
        let end = program.end();
        let flags = rustix::event::PollFlags::IN;
        let mut wanted = [rustix::event::PollFd::new(&end, flags)];
        assert_eq!(rustix::event::poll(&mut wanted, Some(&timeout)), Ok(1));
        program.ended().unwrap().unwrap()
    }

    /// Check the affinity and policy of a program and of its children, and its exit status.
    #[test]
    fn affinity_and_policy() {
        let fifo = may_outrank(7).is_ok().then_some(7);
        let script = "cut -d' ' -f40,41 /proc/$$/stat; cut -d' ' -f40,41 /proc/self/stat; \
                      sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status; exit 5";
        let (mut program, output) = start(script, fifo);
        let lines: Vec<String> = output.lines().map(Result::unwrap).collect();
        let policy = if fifo.is_some() { "7 1" } else { "0 0" };
        assert_eq!(lines, [policy, policy, &last_cpu().to_string()]);
        let ending = ending(&mut program);
        assert_eq!(libc::WEXITSTATUS(ending.status), 5);
        assert!(!ending.is_survived && ending.usage.ru_minflt > 0);
    }

    /// Check that a signal reaches the program.
    #[test]
    fn signals_are_forwarded() {
        let script = "trap 'exit 9' USR1; echo ready; while :; do sleep 0.01; done";
        let (mut program, mut output) = start(script, None);
        output.read_line(&mut String::new()).unwrap();
        program.signal(libc::SIGUSR1);
        assert_eq!(libc::WEXITSTATUS(ending(&mut program).status), 9);
    }

    /// Check that a signal reaches all processes of the program's group, and that their end is
    /// noticed.
    #[test]
    fn groups() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sh -c 'echo ready; sleep 1000; true'; true"]);
        shell.stdout(std::process::Stdio::piped()).process_group(0);
        receive_interrupts(&mut shell);
        let mut program = Program::start(&mut shell, &last_cpu(), None).unwrap();
        let output = program.supervisor.stdout.take().unwrap();
        let mut output = io::BufReader::new(output);
        output.read_line(&mut String::new()).unwrap();
        // A shell may lose the signal while it starts a program.
        let ending = loop {
            program.signal_group(Signal::INT);
            if let Some(ending) = program.ended().unwrap() {
                break ending;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        assert_eq!(libc::WTERMSIG(ending.status), libc::SIGINT);
        // The end of the last descendant closes the pipe of the output and of the reports.
        assert_eq!(output.read_line(&mut String::new()).unwrap(), 0);
        while program.ended().is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Check that processes that left the program's session are killed with it, and survive
    /// `leave`.
    #[test]
    fn survivors() {
        let script = "setsid sh -c 'sleep 1000 & echo $!; exit' & wait; exit 0";
        let is_there = |pid: &str| {
            std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
                .is_ok_and(|stat| !stat.contains(") Z "))
        };
        for stays in [true, false] {
            let (mut program, mut output) = start(script, None);
            let mut pid = String::new();
            output.read_line(&mut pid).unwrap();
            assert!(ending(&mut program).is_survived);
            assert!(is_there(&pid));
            if stays {
                program.leave();
                assert!(is_there(&pid));
                // SAFETY: takes numbers only.
                unsafe { libc::kill(pid.trim().parse().unwrap(), libc::SIGKILL) };
            } else {
                // The supervisor ends after them.
                drop(program);
                assert!(!is_there(&pid));
            }
        }
    }

    /// Check that a program that cannot be executed is an error of its kind.
    #[test]
    fn refused() {
        let mut missing = Command::new("/no/such/program");
        let refused = Program::start(&mut missing, &last_cpu(), None).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
    }
}
