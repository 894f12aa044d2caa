//! A program that is run on a CPU of its own, while the kernel's counters are read before and
//! after.
//!
//! What it used is told by `wait4(2)`: of all its threads, and of the processes that it started
//! and waited for. It is not touched while it runs. Signals that somebody sends to this process
//! meanwhile are passed on to it; what is typed at the terminal it gets itself. It is killed
//! where this process is.
//!
//! Cannot see: processes that are left when it ends; why it waited.

use std::io;
use std::mem::MaybeUninit;
use std::process::{Child, Command};

use facts::Facts;
use recording::{Doubt, Ended, Meanwhile, RunSeries, RunSpec, Usage};
use units::{CpuSet, Nanos};

use crate::alarms::now;
use crate::meanwhile::Counters;
use crate::relay::{Came, Relay};
use crate::watch::Watch;
use crate::{Error, Kind, sensible_priority};

/// Runs the program, and waits until it has ended.
pub(crate) fn run(
    spec: &RunSpec,
    facts: &Facts,
    watch: &dyn Watch,
    doubts: &mut Vec<Doubt>,
) -> Result<RunSeries, Error> {
    let mut command = prepare(spec, facts)?;
    let own;
    let relay = match watch.relay() {
        Some(relay) => relay,
        None => {
            own = Relay::begin().map_err(|error| system("sigaction(2)", &error))?;
            &own
        }
    };
    let before = Counters::now();
    let began_ns = now();
    let child = command.spawn().map_err(|error| not_started(spec, &error))?;
    let (ended, usage) =
        until_ended(&child, relay).map_err(|error| system("wait4(2)", &error))?;
    let elapsed_ns = now().saturating_sub(began_ns);
    let after = Counters::now();
    doubts.extend(after.doubts());
    let counted = after.since(&before, spec.cpu, facts);
    let meanwhile = Meanwhile { preempted: usage.involuntary, ..counted };
    let (source, interruptions) = (None, None);
    Ok(RunSeries { began_ns, elapsed_ns, ended, usage, source, interruptions, meanwhile })
}

/// The command, refused where it could not be isolated.
fn prepare(spec: &RunSpec, facts: &Facts) -> Result<Command, Error> {
    let Some(program) = spec.command.program() else {
        return Err(Error::new(Kind::Spec, "no program to run"));
    };
    isolate::may_have(spec.cpu)?;
    sensible_priority(spec.fifo, &CpuSet::from_iter([spec.cpu]), facts)?;
    spec.fifo.map_or(Ok(()), isolate::may_outrank)?;
    let mut command = Command::new(program);
    command.args(spec.command.arguments());
    isolate::settle(&mut command, spec.cpu, spec.fifo);
    Ok(command)
}

/// Passes signals on until the program has ended.
fn until_ended(child: &Child, relay: &Relay) -> io::Result<(Ended, Usage)> {
    let pid = libc::pid_t::try_from(child.id()).unwrap_or(libc::pid_t::MAX);
    loop {
        match relay.next()? {
            Came { signal: libc::SIGCHLD, .. } => {
                if let Some(ended) = reaped(pid)? {
                    return Ok(ended);
                }
            }
            Came { signal, was_sent: true } => {
                // SAFETY: takes numbers only; the program was not waited for, so that the
                // number is still its own.
                unsafe { libc::kill(pid, signal) };
            }
            Came { was_sent: false, .. } => {}
        }
    }
}

/// How the program ended, if it has; it is gone then.
fn reaped(pid: libc::pid_t) -> io::Result<Option<(Ended, Usage)>> {
    let (mut status, mut usage) = (0, MaybeUninit::zeroed());
    // SAFETY: both places outlive the call, which fills them.
    let waited =
        unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match waited {
        0 => Ok(None),
        waited if waited == pid => {
            // SAFETY: all zero is a valid rusage, and the kernel fills the whole of it.
            Ok(Some((ended(status), used(&unsafe { usage.assume_init() }))))
        }
        _ => Err(io::Error::last_os_error()),
    }
}

fn ended(status: libc::c_int) -> Ended {
    let byte = |number: libc::c_int| u8::try_from(number).unwrap_or(u8::MAX);
    if libc::WIFSIGNALED(status) {
        Ended::Killed(byte(libc::WTERMSIG(status)))
    } else {
        Ended::Exited(byte(libc::WEXITSTATUS(status)))
    }
}

fn used(usage: &libc::rusage) -> Usage {
    let count = |count: libc::c_long| u64::try_from(count).unwrap_or(0);
    let time = |time: libc::timeval| {
        let micros = u64::try_from(time.tv_usec).unwrap_or(0);
        Nanos::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
            + Nanos::from_micros(micros)
    };
    Usage {
        user_ns: time(usage.ru_utime),
        system_ns: time(usage.ru_stime),
        voluntary: count(usage.ru_nvcsw),
        involuntary: count(usage.ru_nivcsw),
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
    }
}

/// As shells tell it: it is not there, or cannot be run.
fn not_started(spec: &RunSpec, error: &io::Error) -> Error {
    let program = spec.command.program().unwrap_or_default().to_string_lossy();
    let kind = match error.kind() {
        io::ErrorKind::NotFound => Kind::NoProgram,
        _ => Kind::NotExecutable,
    };
    Error::new(kind, format!("{program}: {error}"))
}

fn system(what: &str, error: &io::Error) -> Error {
    Error::new(Kind::System, format!("{what} failed: {error}"))
}

#[cfg(test)]
mod tests {
    use recording::{Picked, Words};
    use units::Cpu;

    use super::*;
    use crate::Silent;

    fn spec(facts: &Facts, words: &[&str]) -> RunSpec {
        RunSpec {
            command: Words::new(words.iter().map(Into::into)),
            cpu: facts.cpus.allowed.get().unwrap().iter().last().unwrap(),
            picked: Picked::Asked,
            fifo: None,
            top: 1,
        }
    }

    /// Check that a program is run and told of, and that what cannot be run is refused as what
    /// it is; and that this process has its signals back afterwards.
    #[test]
    fn programs() {
        let facts = Facts::read(&facts::Root::live());
        let silent = Silent::new().unwrap();
        let run = |spec: &RunSpec| run(spec, &facts, &silent, &mut Vec::new());
        let seen = run(&spec(&facts, &["sh", "-c", "exit 3"])).unwrap();
        assert_eq!(seen.ended, Ended::Exited(3));
        assert!(seen.elapsed_ns > Nanos::ZERO && seen.usage.minor_faults > 0, "{seen:?}");
        let kind = |spec: &RunSpec| run(spec).map_err(|error| error.kind()).unwrap_err();
        assert_eq!(kind(&spec(&facts, &[])), Kind::Spec);
        assert_eq!(kind(&spec(&facts, &["/no/such/program"])), Kind::NoProgram);
        assert_eq!(kind(&spec(&facts, &["/"])), Kind::NotExecutable);
        let odd = RunSpec { fifo: Some(100), ..spec(&facts, &["true"]) };
        assert_eq!(kind(&odd), Kind::Spec);
        let nowhere = RunSpec { cpu: Cpu::new(60_000), ..spec(&facts, &["true"]) };
        assert_eq!(kind(&nowhere), Kind::Isolate(isolate::Kind::Cpuset));
        assert!(Relay::begin().is_ok());
    }

    /// Check that ends are told apart: codes, and signals with and without a core.
    #[test]
    fn ends() {
        let ends = [0, 3 << 8, 255 << 8, 9, 11 | 0x80].map(ended);
        let [exited, killed] = [Ended::Exited, Ended::Killed];
        assert_eq!(ends, [exited(0), exited(3), exited(255), killed(9), killed(11)]);
    }
}
