//! A program that runs on isolated CPUs, while the kernel's counters are read before and after it.
//!
//! Its resource usage is that of `wait4(2)`: of all its threads, and of the child processes that it
//! waited for. Signals that another process sends to this one are forwarded to it; it receives
//! those typed at the terminal itself. It is killed with this process, and so are all its
//! descendants ([`isolate::Program`]). With a real-time policy a watchdog checks once a second
//! whether it starves a task ([`isolate::Watchdog`]); without, nothing else runs during the
//! program, unless a CPU goes offline (`control::hotplug`).
//!
//! An interruption above the limit of the parameters ends the program with SIGTERM, as `timeout(1)`
//! does; which one that is, the reader of events finds out.
//!
//! Its time is from just before its exec to its end. Without traced events, a program that chose other
//! CPUs for itself is known by the affinity of its first thread at the end, and by more CPU time than
//! its CPUs were busy ([`ran_elsewhere`]).
//!
//! Cannot see: the usage of processes that outlive it; why it waited; threads that ran on other CPUs for
//! less than the steps of `/proc/stat`.

use std::io;
use std::process::Command;
use std::time::Duration;

use facts::Facts;
use isolate::{CHECK_INTERVAL, Ending, PinnedThread, Program, Watchdog};
use recording::{
    Code, Doubt, Ended, ProcCounts, RunSeries, RunSpec, Stopped, StoppedBy, Trigger,
    Usage,
};
use units::{CpuSet, Nanos, Span};

use crate::control::moments::check_trigger;
use crate::control::observer::{Listener, Notice, Watch};
use crate::control::relay::Relay;
use crate::control::stop::Stop;
use crate::doubts::label;
use crate::latency::timers::now;
use crate::proc_counters::{ProcCounters, both};
use crate::{Error, Kind, check_priority};

/// How often the stop request is looked for, if an interruption can make it.
const STOP_CHECK: Duration = Duration::from_millis(100);
/// The highest priority that another one can exceed.
const HIGHEST_BUT_ONE: u8 = 98;

/// The steps of the CPU times in `/proc/stat`, at the beginning and at the end.
const STEPS: Nanos = Nanos::from_millis(20);

/// Runs the program until it ends.
pub(crate) fn run(
    spec: &RunSpec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<RunSeries, Error> {
    let mut command = prepare(spec, facts)?;
    let own;
    let relay = match &watch.control.relay {
        Some(relay) => relay,
        None => {
            own = Relay::begin()
                .map_err(|error| Error::system("failed to forward signals", error))?;
            &own
        }
    };
    let before = ProcCounters::now();
    let gate = watch.control.gate.as_ref();
    let mut program = Program::start_behind(gate, &mut command, &spec.cpus, spec.fifo)
        .map_err(|error| not_started(spec, error))?;
    let _above = above(spec.fifo);
    let ending = Waiting::of(spec, relay, &watch.control.stop, watch.listener, doubts)
        .until_ended(&mut program);
    let ending =
        ending.map_err(|error| Error::system("failed to wait for the program", error))?;
    doubts.extend(ending.is_survived.then(|| survivors(spec, program, gate.is_some())));
    if let Some(gate) = gate {
        gate.pass_after(ended(ending.status) == Ended::Exited(0));
    }
    let after = ProcCounters::now();
    doubts.extend(after.doubts());
    let usage = used(&ending.usage);
    let stopped = (ending.stops > 0).then_some(Stopped {
        by: StoppedBy::Signal,
        ns: ending.stopped,
        count: ending.stops,
    });
    doubts.extend(ran_elsewhere(spec, &ending, busy_ns(&before, &after, &spec.cpus)));
    let counted = counts_of(&after, &before, &spec.cpus, facts);
    let Span { start: began_ns, length: elapsed_ns } = ending.ran;
    Ok(RunSeries {
        began_ns,
        elapsed_ns,
        stopped: stopped.into_iter().collect(),
        elsewhere: Vec::new(),
        ended: ended(ending.status),
        usage,
        source: None,
        interruptions: None,
        proc: ProcCounts { preempted: usage.involuntary, ..counted },
    })
}

/// Refuses an invalid limit; whether a program can be executed is known only when it is.
pub(crate) fn refuse(spec: &RunSpec) -> Result<(), Error> {
    check_trigger("interruption", spec.trigger)
}

/// The command; an error if it cannot be isolated.
fn prepare(spec: &RunSpec, facts: &Facts) -> Result<Command, Error> {
    let Some(program) = spec.command.program() else {
        return Err(Error::new(Kind::Spec, "no program to run"));
    };
    isolate::may_have(&spec.cpus)?;
    check_priority(spec.fifo, &spec.cpus, facts)?;
    spec.fifo.map_or(Ok(()), isolate::may_outrank)?;
    let mut command = Command::new(program);
    command.args(spec.command.arguments());
    Ok(command)
}

/// Lets the calling thread preempt a real-time program on the same CPU.
fn above(fifo: Option<u8>) -> Option<PinnedThread> {
    let fifo = fifo.filter(|&priority| priority <= HIGHEST_BUT_ONE)?;
    // Without the privilege for one more, the share that the kernel reserves has to suffice.
    PinnedThread::raise_priority(fifo + 1).ok()
}

/// Waits for the program's end.
struct Waiting<'a> {
    cpus: &'a CpuSet,
    is_real_time: bool,
    relay: &'a Relay,
    stop: &'a Stop,
    /// Whether an interruption above a limit makes the stop request, which ends the program.
    stops: bool,
    listener: &'a mut Listener<'a>,
    doubts: &'a mut Vec<Doubt>,
}

impl<'a> Waiting<'a> {
    fn of(
        spec: &'a RunSpec,
        relay: &'a Relay,
        stop: &'a Stop,
        listener: &'a mut Listener<'a>,
        doubts: &'a mut Vec<Doubt>,
    ) -> Self {
        let (cpus, is_real_time) = (&spec.cpus, spec.fifo.is_some());
        let Trigger { stop_above_ns, keep } = spec.trigger;
        let stops = stop_above_ns.is_some() && keep.is_none();
        Self { cpus, is_real_time, relay, stop, stops, listener, doubts }
    }

    /// Forwards signals until the program has ended, ensures that it starves no task, and ends it
    /// (SIGTERM) when an interruption was above the limit.
    fn until_ended(&mut self, program: &mut Program) -> io::Result<Ending> {
        let mut watchdog = self.is_real_time.then(|| program.watchdog(self.cpus));
        let (mut last_look, mut is_told) = (now(), false);
        loop {
            if let Some(ending) = program.ended()? {
                return Ok(ending);
            }
            if self.stop.is_requested() && !is_told {
                program.signal(libc::SIGTERM);
                is_told = true;
            }
            let stop_check = self.stops.then_some(STOP_CHECK);
            let every = stop_check.or(watchdog.as_ref().map(|_| CHECK_INTERVAL));
            match self.relay.next_or(program.end(), every)? {
                Some(received) if received.was_sent && !received.is_of_child() => {
                    program.signal(received.signal);
                }
                _ => {}
            }
            if let Some(watchdog) = &mut watchdog {
                let now = now();
                if now.saturating_sub(last_look)
                    >= Nanos::from_secs(CHECK_INTERVAL.as_secs())
                {
                    last_look = now;
                    self.look(watchdog, program);
                }
            }
        }
    }

    /// Gives the program an ordinary policy if it starves a task.
    fn look(&mut self, watchdog: &mut Watchdog, program: &Program) {
        let Some(starved) = watchdog.check() else { return };
        let text = match program.make_ordinary() {
            0 => format!("{starved}; the program could not be made ordinary"),
            1 => format!("{starved}: that thread was made ordinary (SCHED_OTHER)"),
            all => {
                format!("{starved}: its {all} threads were made ordinary (SCHED_OTHER)")
            }
        };
        let doubt = Doubt::new(Code::MadeOrdinary, text);
        (self.listener)(Notice::Doubt(&doubt));
        self.doubts.push(doubt);
    }
}

/// Detaches processes that outlive the program, with an ordinary policy: no watchdog runs for them. Beside the
/// next programs of a pair, they are killed.
fn survivors(spec: &RunSpec, program: Program, is_killed: bool) -> Doubt {
    if is_killed {
        drop(program);
        let text = "processes that the program started were still running when it ended, and were \
                    killed: they would run beside the next programs";
        return Doubt::new(Code::Survivors, text);
    }
    let made = if spec.fifo.is_some() && program.make_ordinary() > 0 {
        ", and were made ordinary (SCHED_OTHER)"
    } else {
        ""
    };
    program.leave();
    let text = format!(
        "processes that the program started were still running when it ended{made}; they \
         stay on CPU {}, and their usage is not counted",
        spec.cpus
    );
    Doubt::new(Code::Survivors, text)
}

/// How long these CPUs were busy between two readings, in steps of 10 ms; `None` if unknown.
fn busy_ns(before: &ProcCounters, after: &ProcCounters, cpus: &CpuSet) -> Option<Nanos> {
    let (before, after) = both(&before.times, &after.times)?;
    cpus.iter().map(|cpu| Some(after.since(before, cpu)?.busy)).sum()
}

/// The doubt if the program used CPUs that it was not given, by what is known without tracing.
fn ran_elsewhere(spec: &RunSpec, ending: &Ending, busy: Option<Nanos>) -> Option<Doubt> {
    let cpus = label(&spec.cpus);
    let usage = used(&ending.usage);
    let used = usage.user_ns + usage.system_ns;
    let beyond = used.saturating_sub(busy.unwrap_or(used));
    let seconds = |time: Nanos| format!("{:.2} s", time.as_secs_f64());
    let text = if beyond > STEPS.saturating_mul(2) && beyond.get() > used.get() / 20 {
        format!(
            "{cpus}: busy for {} while the program used {} of CPU time: at least {} of that was on \
             other CPUs",
            seconds(used.saturating_sub(beyond)),
            seconds(used),
            seconds(beyond)
        )
    } else if ending.has_more_cpus {
        format!(
            "{cpus}: the program was allowed other CPUs at its end (sched_setaffinity), and may have \
             run there"
        )
    } else {
        return None;
    };
    Some(Doubt::new(Code::RanElsewhere, text))
}

/// The counts of all of these CPUs together.
fn counts_of(
    after: &ProcCounters,
    before: &ProcCounters,
    cpus: &CpuSet,
    facts: &Facts,
) -> ProcCounts {
    let each = cpus.iter().map(|cpu| after.since(before, cpu, facts));
    let sum = each.reduce(|mut sum, cpu| {
        sum.add(cpu);
        sum
    });
    ProcCounts { span_ns: after.at.saturating_sub(before.at), ..sum.unwrap_or_default() }
}

/// How a process ended, from its status as `waitpid(2)` has it.
pub fn ended(status: libc::c_int) -> Ended {
    let byte = |number: libc::c_int| u8::try_from(number).unwrap_or(u8::MAX);
    if libc::WIFSIGNALED(status) {
        Ended::Killed(byte(libc::WTERMSIG(status)))
    } else {
        Ended::Exited(byte(libc::WEXITSTATUS(status)))
    }
}

pub(crate) fn used(usage: &libc::rusage) -> Usage {
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

/// As shells distinguish it: not found, or not executable.
fn not_started(spec: &RunSpec, error: io::Error) -> Error {
    let program = spec.command.program().unwrap_or_default().to_string_lossy();
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    let kind = if is_missing { Kind::NoProgram } else { Kind::NotExecutable };
    Error::caused(kind, format!("failed to run {program}"), error)
}

#[cfg(test)]
mod tests {
    use recording::{Picked, Words};
    use units::Cpu;

    use super::*;
    use crate::{Control, ignore};

    fn spec(facts: &Facts, words: &[&str]) -> RunSpec {
        RunSpec {
            command: Words::new(words.iter().map(Into::into)),
            cpus: facts.cpus.allowed.get().unwrap().iter().last().unwrap().into(),
            picked: Picked::Asked,
            fifo: None,
            top: 1,
            trigger: recording::Trigger::default(),
        }
    }

    /// Check that a program runs and is reported, that errors have the right kind, and that the
    /// signal handlers are removed afterwards.
    #[test]
    fn programs() {
        let _turn = crate::control::relay::tests::turn();
        let facts = Facts::read(&facts::Root::live());
        let control = Control::new().unwrap();
        let run = |spec: &RunSpec| {
            let mut watch = Watch { control: &control, listener: &mut ignore };
            run(spec, &facts, &mut watch, &mut Vec::new())
        };
        let seen = run(&spec(&facts, &["sh", "-c", "exit 3"])).unwrap();
        assert_eq!(seen.ended, Ended::Exited(3));
        assert!(seen.elapsed_ns > Nanos::ZERO && seen.usage.minor_faults > 0, "{seen:?}");
        let kind = |spec: &RunSpec| run(spec).map_err(|error| error.kind()).unwrap_err();
        assert_eq!(kind(&spec(&facts, &[])), Kind::Spec);
        assert_eq!(kind(&spec(&facts, &["/no/such/program"])), Kind::NoProgram);
        assert_eq!(kind(&spec(&facts, &["/"])), Kind::NotExecutable);
        let odd = RunSpec { fifo: Some(100), ..spec(&facts, &["true"]) };
        assert_eq!(kind(&odd), Kind::Spec);
        let nowhere =
            RunSpec { cpus: Cpu::new(60_000).into(), ..spec(&facts, &["true"]) };
        assert_eq!(kind(&nowhere), Kind::Isolate(isolate::Kind::Cpuset));
        assert!(Relay::begin().is_ok());
    }

    /// Check that exit codes, and signals with and without a core dump, are distinguished.
    #[test]
    fn ends() {
        let ends = [0, 3 << 8, 255 << 8, 9, 11 | 0x80].map(ended);
        let [exited, killed] = [Ended::Exited, Ended::Killed];
        assert_eq!(ends, [exited(0), exited(3), exited(255), killed(9), killed(11)]);
    }
}
