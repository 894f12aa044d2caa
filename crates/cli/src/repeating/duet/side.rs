//! One of two programs: noisefloor as a child process that runs it on order, behind a gate.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};

use recording::{Body, DuetProgram, Recording};
use rustix::event::epoll;
use rustix::process::Signal;

use crate::forwarding::{Forwarding, own_program, send};
use crate::outcome::Failure;
use crate::printing::say_lines;
use crate::repeating::child::{Process, end, failure};
use crate::repeating::duet::DuetPlan;
use crate::repeating::orders::{Answer, PairCpu};

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// It is ordered.
    Ordered,
    /// Its program is ready to start.
    Ready,
    /// Its program has ended.
    Ended,
    /// Its recording is saved.
    Saved,
}

/// A program of a pair, and the process of its runs, started with the first of them.
pub(super) struct Side<'a> {
    program: DuetProgram,
    command: &'a [OsString],
    plan: &'a DuetPlan,
    file: PathBuf,
    process: Option<Process>,
    pub(super) stage: Stage,
    pub(super) has_failed: bool,
}

impl<'a> Side<'a> {
    /// The program of that command line, whose recordings are first saved in that file.
    pub(super) fn new(
        program: DuetProgram,
        command: &'a [OsString],
        plan: &'a DuetPlan,
        file: PathBuf,
    ) -> Self {
        let (stage, has_failed) = (Stage::Saved, false);
        Self { program, command, plan, file, process: None, stage, has_failed }
    }

    /// Orders a run on this CPU.
    pub(super) fn order(&mut self, cpu: PairCpu) -> Result<(), Failure> {
        // That of the last run.
        let _ = fs::remove_file(&self.file);
        let mut process = self.process.take().map_or_else(|| self.start(), Ok)?;
        if let Some(answers) = &mut process.answers {
            answers.order_on(cpu).map_err(Failure::refused)?;
        }
        self.process = Some(process);
        (self.stage, self.has_failed) = (Stage::Ordered, false);
        Ok(())
    }

    fn start(&self) -> Result<Process, Failure> {
        let mut command: Command = own_program();
        let cpus = self.plan.cpus.to_string();
        command.args(["--quiet", "run", "--again", "--gated", "-c", &cpus]);
        command.args(["--source", "proc", "-o"]).arg(&self.file);
        command.arg("--").args(self.command);
        Process::start(command, true, self.plan.schedule.shows_output)
    }

    /// Reads its answers since the last call.
    pub(super) fn update(&mut self) -> io::Result<()> {
        let answers = self.process.as_mut().and_then(|process| process.answers.as_mut());
        let Some(answers) = answers else { return Ok(()) };
        while let Some(answer) = answers.next()? {
            self.stage = match answer {
                Answer::Ready => Stage::Ready,
                Answer::Succeeded | Answer::Failed => Stage::Ended,
                Answer::Saved => Stage::Saved,
            };
            self.has_failed |= answer == Answer::Failed;
        }
        Ok(())
    }

    /// The status of its process, if that has ended.
    pub(super) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.as_mut().map_or(Ok(None), |process| process.child.try_wait())
    }

    /// Opens the gate of its program.
    pub(super) fn open_gate(&mut self) {
        let answers = self.process.as_mut().and_then(|process| process.answers.as_mut());
        // That of a process that has ended cannot be opened, and its end is noticed.
        let _ = answers.map(|answers| answers.open_gate());
    }

    /// Its process.
    pub(super) fn child(&self) -> Option<&Child> {
        self.process.as_ref().map(|process| &process.child)
    }

    /// Adds its answers to what is waited for.
    pub(super) fn add_to(&self, wanted: &impl AsFd) -> io::Result<()> {
        let answers = self.process.as_ref().and_then(|process| process.answers.as_ref());
        let Some(answers) = answers else { return Ok(()) };
        let (data, flags) = (epoll::EventData::new_u64(0), epoll::EventFlags::IN);
        Ok(epoll::add(wanted, answers.stream(), data, flags)?)
    }

    /// Asks its program to end, and ends the wait at its gate.
    pub(super) fn ask_to_end(&mut self) {
        if let Some(process) = &mut self.process {
            process.answers = None;
            send(&process.child, Signal::TERM);
        }
    }

    /// Ends it with all processes of its program; those that do not end when they are asked to are killed.
    pub(super) fn end(&mut self, forwarding: &mut Forwarding) -> Result<(), Failure> {
        self.ask_to_end();
        let Some(mut process) = self.process.take() else { return Ok(()) };
        end(&mut process.child, forwarding).map_err(Failure::refused)
    }

    /// Why its process has ended with this status.
    pub(super) fn failure(&mut self, status: ExitStatus) -> Failure {
        let messages = self.process.take().map(|it| it.messages()).unwrap_or_default();
        failure(status, &messages)
    }

    /// The recording of its last run. What a program that failed has printed is repeated.
    pub(super) fn recording(
        &self,
        forwarding: &mut Forwarding,
    ) -> Result<Box<Recording>, Failure> {
        let recording = Box::new(Recording::load(&self.file)?);
        let messages = self.process.as_ref().map(Process::messages).unwrap_or_default();
        let Body::Run { series, .. } = &recording.body else { return Ok(recording) };
        if series.ended.code() != 0 && !forwarding.is_interrupted() {
            say_lines(&messages);
        }
        Ok(recording)
    }

    /// What an error calls its program.
    pub(super) fn name(&self) -> &'static str {
        match self.program {
            DuetProgram::A => "program A",
            DuetProgram::B => "program B",
        }
    }
}
