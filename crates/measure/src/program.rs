//! A program in a guest, and the services that it needs.
//!
//! Each process begins a group of threads (`mark::join`), so that the lab's counter separates the
//! instructions of the command from those of the services: first the services, in their order,
//! then the command. The phase is from the command's start to its end. A failure is part of the
//! result, so that the output explains it.
//!
//! Cannot see: children of the command that outlive it.

mod process;
pub mod readiness;

use std::fs;

use recording::{Ended, ProgramSeries, ProgramSpec, ServiceSpec};
use units::Nanos;

use crate::control::observer::Watch;
use crate::latency::timers::now;
use crate::program::process::{OUTPUT_MAX, Process, wait};
use crate::program::readiness::{end_text, is_ready, lack};
use crate::time::mark;
use crate::{Error, Kind};

/// The interval at which a service is checked.
const LOOK: Nanos = Nanos::from_millis(10);

pub(crate) fn refuse(spec: &ProgramSpec) -> Result<(), Error> {
    let services = spec.services.iter().map(|service| &service.command);
    let mut commands = std::iter::once(&spec.command).chain(services);
    match commands.any(|command| command.program().is_none()) {
        true => Err(Error::new(Kind::Spec, "no program to run")),
        false => Ok(()),
    }
}

/// Starts the services, and runs the command until it ends.
pub(crate) fn run(
    spec: &ProgramSpec,
    watch: &mut Watch<'_>,
) -> Result<ProgramSeries, Error> {
    let mut run = Run { spec, services: Vec::new(), killed_before: oom_kills() };
    let stop = &watch.control.stop;
    let is_stopped = || stop.is_requested();
    for service in &spec.services {
        if let Some(why) = run.start_service(service, &is_stopped)? {
            return Ok(run.failed(why));
        }
    }
    mark::begin();
    let measured = run.command(&is_stopped);
    mark::end();
    measured
}

/// A run, and the services that have been started.
struct Run<'a> {
    spec: &'a ProgramSpec,
    services: Vec<Process>,
    /// The number of processes killed for lack of memory before.
    killed_before: Option<u64>,
}

impl Run<'_> {
    /// Starts a service, and waits until it is ready. Returns why it is not.
    fn start_service(
        &mut self,
        service: &ServiceSpec,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<String>, Error> {
        let name = format!("the service '{}'", service.name);
        match Process::start(self.spec, &service.command) {
            Ok(process) => self.services.push(process),
            Err(why) => return Ok(Some(format!("{name} cannot be started: {why}"))),
        }
        let Some(ready) = &service.ready else { return Ok(None) };
        let until = now() + self.spec.limit_ns;
        while !is_ready(ready) {
            self.wait(None, now() + LOOK)?;
            let ended = self.services.last().and_then(|process| process.ended);
            let failed = ended.filter(|(ended, _)| *ended != Ended::Exited(0));
            if let Some((ended, _)) = failed {
                let why = format!("{name} {} before it was ready", end_text(ended));
                return Ok(Some(why));
            }
            if now() >= until || is_stopped() {
                let limit = self.spec.limit_ns.as_secs_f64();
                let what = lack(ready);
                return Ok(Some(format!("{name} was not ready in {limit} s: {what}")));
            }
        }
        Ok(None)
    }

    /// Runs the command.
    fn command(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<ProgramSeries, Error> {
        let began = now();
        let mut command = match Process::start(self.spec, &self.spec.command) {
            Ok(command) => command,
            Err(why) => {
                return Ok(self.failed(format!("the command cannot be started: {why}")));
            }
        };
        let until = began + self.spec.limit_ns;
        while command.ended.is_none()
            && now() < until
            && !is_stopped()
            && !self.has_overflow(&command)
        {
            self.wait(Some(&mut command), until)?;
        }
        let elapsed_ns = now().saturating_sub(began);
        let failure = self.failure(&command);
        let (ended, usage) = match command.ended {
            Some((ended, usage)) => (Some(ended), usage),
            None => (None, recording::Usage::default()),
        };
        let services = self.services.iter().map(Process::output).collect();
        let output = command.output();
        Ok(ProgramSeries { elapsed_ns, ended, usage, output, services, failure })
    }

    fn wait(&mut self, command: Option<&mut Process>, until: Nanos) -> Result<(), Error> {
        wait(self.services.iter_mut().chain(command), until)
            .map_err(|why| Error::system("failed to wait for a program", why))
    }

    fn has_overflow(&self, command: &Process) -> bool {
        self.services.iter().any(Process::has_overflow) || command.has_overflow()
    }

    /// Why the run is not valid, if it is not.
    fn failure(&self, command: &Process) -> Option<String> {
        let too_long = || {
            let limit = OUTPUT_MAX >> 20;
            self.has_overflow(command).then(|| {
                format!("a program wrote more than {limit} MiB to standard output")
            })
        };
        let why = match command.ended {
            None => too_long().unwrap_or_else(|| {
                let limit = self.spec.limit_ns.as_secs_f64();
                format!("the command did not end in {limit} s of guest time")
            }),
            Some((Ended::Exited(code), _)) if self.spec.exit_codes.contains(&code) => {
                self.ended_service()?
            }
            Some((ended, _)) => format!("the command {}", end_text(ended)),
        };
        Some(why + &self.memory_text())
    }

    /// The first service that has failed.
    fn ended_service(&self) -> Option<String> {
        let mut services = self.spec.services.iter().zip(&self.services);
        services.find_map(|(service, process)| match process.ended {
            None | Some((Ended::Exited(0), _)) => None,
            Some((ended, _)) => {
                let (name, ended) = (&service.name, end_text(ended));
                Some(format!("the service '{name}' {ended} before the command ended"))
            }
        })
    }

    /// What the kernel did for lack of memory, if anything.
    fn memory_text(&self) -> String {
        match oom_kills().zip(self.killed_before).map(|(now, then)| now - then) {
            None | Some(0) => String::new(),
            Some(killed) => format!(
                "; the guest ran out of memory, and its kernel killed {killed} of its \
                 processes: give it more (--memory, or memory_mib in an experiment)"
            ),
        }
    }

    /// A run whose command was not started.
    fn failed(&self, why: String) -> ProgramSeries {
        ProgramSeries {
            elapsed_ns: Nanos::ZERO,
            ended: None,
            usage: recording::Usage::default(),
            output: recording::KeptOutput::default(),
            services: self.services.iter().map(Process::output).collect(),
            failure: Some(why + &self.memory_text()),
        }
    }
}

/// The number of processes that the kernel has killed for lack of memory (since Linux 4.13).
fn oom_kills() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok())
}
