//! Repeated runs of a measurement, with different settings in turn.
//!
//! ```text
//! measurement   the command line that is repeated
//! child         its process, and the recordings that it saves
//! orders        the orders to a process that makes several runs
//! messages      what it prints
//! folder        the files of a set of runs
//! options       the options of `repeat` and `try`
//! duet          two programs in pairs
//! ```
//!
//! The order of the variants is balanced and random ([`stats::balanced_order`]). Settings are changed
//! through the journal before each run, and restored after it.

pub(crate) mod child;
pub(crate) mod duet;
pub(crate) mod folder;
pub(crate) mod measurement;
pub(crate) mod messages;
pub(crate) mod options;
pub(crate) mod orders;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ::facts::{Facts, Root};
use isolate::{Tuning, TuningLease};
use recording::{Body, Code, Doubt, Ended, Recording, Repeat, StepSetting};
use stats::balanced_order;
use summary::RunSet;
use units::Nanos;

use crate::forwarding::Forwarding;
use crate::outcome::{Failure, Outcome};
use crate::printing::say;
use crate::progress_line::ProgressLine;
use crate::repeating::child::{Finished, Runner};
use crate::repeating::folder::SetFolder;
use crate::repeating::measurement::Measurement;

/// What is repeated, and how.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) measurement: Measurement,
    /// At least one.
    pub(crate) variants: Vec<Variant>,
    pub(crate) schedule: Schedule,
}

/// How often something is run, and under which conditions.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) rounds: Rounds,
    /// The number of runs of each variant before the first that is recorded.
    pub(crate) warmup: u32,
    /// A command for the shell before each run.
    pub(crate) prepare: Option<OsString>,
    /// The time between two runs.
    pub(crate) pause: Duration,
    /// The longest time that a run may take.
    pub(crate) timeout: Option<Duration>,
    pub(crate) seed: u32,
    /// Whether the output of programs is shown.
    pub(crate) shows_output: bool,
    /// Whether programs may fail.
    pub(crate) ignores_failures: bool,
    pub(crate) quiet: bool,
}

/// Settings that are changed for some of the runs.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    pub(crate) settings: Vec<StepSetting>,
    tunings: Vec<Tuning>,
}

/// How many rounds there are: in each, every variant has one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) min: u32,
    /// More follow until the runs of a variant have taken this long together.
    pub(crate) time: Nanos,
}

/// The runs of all variants.
#[derive(Debug)]
pub(crate) struct Repeated {
    /// The runs of each variant.
    pub(crate) sets: Vec<RunSet>,
    /// Reasons not to trust them.
    pub(crate) doubts: Vec<Doubt>,
    /// The outcome of the worst run.
    pub(crate) outcome: Outcome,
}

/// What follows a run.
enum Next {
    Continue,
    /// A signal has arrived.
    Interrupted,
    Failed(Failure),
}

impl Variant {
    /// The settings as they are.
    pub(crate) fn current() -> Self {
        Self { settings: Vec::new(), tunings: Vec::new() }
    }

    /// Settings that are changed.
    ///
    /// # Errors
    /// This machine does not have one of them, or this process may not change it.
    pub(crate) fn of(settings: &[StepSetting], facts: &Facts) -> Result<Self, Failure> {
        let tuning = |one: &StepSetting| Tuning::parse(&one.name, &one.value);
        let tunings = settings.iter().map(tuning).collect::<Result<Vec<_>, _>>()?;
        isolate::may_tune(&tunings, facts)?;
        Ok(Self { settings: settings.to_vec(), tunings })
    }

    /// Changes the settings until the next boot.
    ///
    /// # Errors
    /// They cannot be changed; those that were are then restored.
    pub(crate) fn leave_in_place(&self, facts: &Facts) -> Result<(), Failure> {
        Ok(TuningLease::begin(&self.tunings, facts)?.leave()?)
    }

    /// Changes the settings and restores them, so that one which the kernel refuses is known before it is measured.
    ///
    /// # Errors
    /// They cannot be changed, or not be restored.
    pub(crate) fn change_and_restore(&self, facts: &Facts) -> Result<(), Failure> {
        let is_restored = |one: &isolate::RestoredSetting| {
            matches!(one.outcome, isolate::RestoreOutcome::Restored)
        };
        let restored = TuningLease::begin(&self.tunings, facts)?.end()?;
        match restored.iter().find(|one| !is_restored(one)) {
            Some(left) => Err(Failure::refused(crate::remarks::line(left))),
            None => Ok(()),
        }
    }

    /// `current`, or `NAME=VALUE,...`.
    pub(crate) fn name(&self) -> String {
        let name = |one: &StepSetting| format!("{}={}", one.name, one.value);
        match self.settings.as_slice() {
            [] => "current".to_owned(),
            settings => settings.iter().map(name).collect::<Vec<_>>().join(","),
        }
    }
}

impl Rounds {
    fn continues(self, done: u32, time: Nanos) -> bool {
        done < self.min || time < self.time
    }
}

/// Runs all rounds. The recordings are saved in the folders, one for each variant, if there are any.
///
/// # Errors
/// The first run failed. A failure after that is printed, and the runs before it are returned.
pub(crate) fn repeat(
    plan: &Plan,
    folders: &mut [SetFolder],
) -> Result<Repeated, Failure> {
    // From before the first change of a setting.
    let mut forwarding = Forwarding::new().map_err(Failure::refused)?;
    repeat_with(plan, folders, &mut forwarding)
}

/// The same for a process that handles signals already.
///
/// # Errors
/// Those of [`repeat`].
pub(crate) fn repeat_with(
    plan: &Plan,
    folders: &mut [SetFolder],
    forwarding: &mut Forwarding,
) -> Result<Repeated, Failure> {
    let mut repetition = Repetition::new(plan, folders, forwarding)?;
    let next = repetition.all_rounds();
    repetition.line.clear();
    let Repetition { sets, mut doubts, mut outcome, .. } = repetition;
    let runs = sets.iter().map(RunSet::runs).sum();
    if let Some(ended) = next.ended_early(runs, "run")? {
        doubts.push(ended.doubt);
        outcome = ended.outcome;
    }
    Ok(Repeated { sets, doubts, outcome })
}

/// What follows if not all runs were made.
struct EndedEarly {
    doubt: Doubt,
    outcome: Outcome,
}

impl Next {
    /// What follows if this ended the runs, or pairs of them (`what`), before they were complete.
    ///
    /// # Errors
    /// The first one failed.
    fn ended_early(
        self,
        count: usize,
        what: &str,
    ) -> Result<Option<EndedEarly>, Failure> {
        match self {
            Self::Continue => Ok(None),
            Self::Interrupted => {
                let end = if count == 1 { "" } else { "s" };
                let text = format!("ended early, after {count} {what}{end}");
                let doubt = Doubt::new(Code::Interrupted, text);
                Ok(Some(EndedEarly { doubt, outcome: Outcome::Doubtful }))
            }
            Self::Failed(why) if count == 0 => Err(why),
            Self::Failed(why) => {
                say(&why);
                let doubt = Doubt::new(Code::Interrupted, "ended early: a run failed");
                Ok(Some(EndedEarly { doubt, outcome: why.outcome() }))
            }
        }
    }
}

/// A repetition that has begun.
struct Repetition<'a> {
    plan: &'a Plan,
    folders: &'a mut [SetFolder],
    runner: Runner<'a>,
    facts: Facts,
    forwarding: &'a mut Forwarding,
    line: ProgressLine,
    sets: Vec<RunSet>,
    /// The time that the runs of the first variant have taken.
    time: Nanos,
    doubts: Vec<Doubt>,
    outcome: Outcome,
    is_first: bool,
}

impl<'a> Repetition<'a> {
    fn new(
        plan: &'a Plan,
        folders: &'a mut [SetFolder],
        forwarding: &'a mut Forwarding,
    ) -> Result<Self, Failure> {
        let places = folders.iter().map(|folder| Some(folder.path()));
        places.chain([None]).for_each(child::remove_left_behind);
        let runner = Runner::new(plan, folders.first().map(SetFolder::path))?;
        Ok(Self {
            plan,
            folders,
            runner,
            facts: Facts::read(&Root::live()),
            forwarding,
            line: ProgressLine::new(plan.schedule.quiet),
            sets: vec![RunSet::default(); plan.variants.len()],
            time: Nanos::ZERO,
            doubts: Vec::new(),
            outcome: Outcome::Done,
            is_first: true,
        })
    }

    /// The runs that are not recorded, then all rounds.
    fn all_rounds(&mut self) -> Next {
        let plan = self.plan;
        for _ in 0..plan.schedule.warmup {
            for variant in 0..plan.variants.len() {
                self.draw("warm-up", variant);
                let next = self.run(variant, None);
                if !matches!(next, Next::Continue) {
                    return next;
                }
            }
        }
        let seed = plan.schedule.seed;
        let mut order = balanced_order(plan.variants.len(), seed);
        for round in 1.. {
            if !plan.schedule.rounds.continues(round - 1, self.time) {
                break;
            }
            for (place, variant) in (1..).zip(order.next().into_iter().flatten()) {
                let settings = plan.variants[variant].settings.clone();
                let repeat = Repeat { settings, round, place, seed, duet: None };
                self.draw(&self.plan.schedule.rounds.label(round), variant);
                let next = self.run(variant, Some(repeat));
                if !matches!(next, Next::Continue) {
                    return next;
                }
            }
        }
        Next::Continue
    }

    fn draw(&mut self, what: &str, variant: usize) {
        let text = match self.plan.variants.as_slice() {
            [_] => what.to_owned(),
            variants => format!("{what}, {}", variants[variant].name()),
        };
        self.line.draw(&text);
    }

    /// One run, after a pause and the command that prepares it. Without `repeat` it is not recorded.
    fn run(&mut self, variant: usize, repeat: Option<Repeat>) -> Next {
        self.try_run(variant, repeat).unwrap_or_else(Next::Failed)
    }

    fn try_run(
        &mut self,
        variant: usize,
        repeat: Option<Repeat>,
    ) -> Result<Next, Failure> {
        let is_first = std::mem::take(&mut self.is_first);
        if !self.plan.schedule.begins(is_first, self.forwarding)? {
            return Ok(Next::Interrupted);
        }
        let tunings = &self.plan.variants[variant].tunings;
        let lease = match tunings.is_empty() {
            true => None,
            false => match TuningLease::begin(tunings, &self.facts) {
                // The wait for the journal has ended.
                Err(_) if self.forwarding.is_interrupted() => {
                    return Ok(Next::Interrupted);
                }
                lease => Some(lease?),
            },
        };
        let has_variants = self.plan.variants.len() > 1;
        let finished = self.runner.run(has_variants, self.forwarding);
        self.restore(lease)?;
        let finished = finished?;
        if self.forwarding.is_interrupted() {
            return Ok(Next::Interrupted);
        }
        match finished {
            Finished::Failed(why) => Err(why),
            Finished::Saved { recording, outcome } => {
                self.add(variant, repeat, recording, outcome)?;
                Ok(Next::Continue)
            }
        }
    }

    /// Restores the settings; what is not restored is reported.
    fn restore(&mut self, lease: Option<TuningLease>) -> Result<(), Failure> {
        let Some(lease) = lease else { return Ok(()) };
        for returned in lease.end()? {
            if !matches!(returned.outcome, isolate::RestoreOutcome::Restored) {
                let text = crate::remarks::line(&returned);
                self.line.clear();
                say(&text);
                self.doubts.push(Doubt::new(Code::SettingChanged, text));
            }
        }
        Ok(())
    }

    /// Adds a run to its set, and saves it.
    fn add(
        &mut self,
        variant: usize,
        repeat: Option<Repeat>,
        mut recording: Box<Recording>,
        outcome: Outcome,
    ) -> Result<(), Failure> {
        let failure = self.plan.schedule.failure("the program", &recording);
        failure.map_or(Ok(()), Err)?;
        if repeat.is_none() {
            return Ok(());
        }
        recording.repeat = repeat;
        if let Some(folder) = self.folders.get_mut(variant) {
            folder.save(&recording)?;
        }
        if variant == 0 {
            self.time = self.time + time_of(&recording);
        }
        self.sets[variant].add(&recording);
        if self.outcome == Outcome::Done {
            self.outcome = outcome;
        }
        Ok(())
    }
}

impl Schedule {
    /// Pauses before every run but the first, and prepares it; `false` if a signal has ended the runs.
    ///
    /// # Errors
    /// The command that prepares it failed.
    fn begins(
        &self,
        is_first: bool,
        forwarding: &mut Forwarding,
    ) -> Result<bool, Failure> {
        if !is_first {
            forwarding.pause(self.pause).map_err(Failure::refused)?;
        }
        if forwarding.is_interrupted() {
            return Ok(false);
        }
        let Some(command) = &self.prepare else { return Ok(true) };
        let prepared = prepare(command, self.shows_output, forwarding);
        if forwarding.is_interrupted() {
            return Ok(false);
        }
        prepared.map(|()| true)
    }

    /// Why the program of a run failed, if that matters.
    fn failure(&self, program: &str, recording: &Recording) -> Option<Failure> {
        let Body::Run { series, .. } = &recording.body else { return None };
        let how = match series.ended {
            Ended::Exited(0) => return None,
            Ended::Exited(code) => format!("ended with exit code {code}"),
            Ended::Killed(signal) => format!("was killed by signal {signal}"),
        };
        let help = match self.shows_output {
            true => "--ignore-failure",
            false => "--ignore-failure, or --show-output to see why",
        };
        let text = format!("{program} {how}; hint: {help}");
        (!self.ignores_failures).then(|| Failure::exceeded(text))
    }
}

impl Rounds {
    fn label(self, round: u32) -> String {
        match self.time.is_zero() {
            true => format!("round {round} of {}", self.min),
            false => format!("round {round}"),
        }
    }
}

/// The run time of a program; of other measurements none.
fn time_of(recording: &Recording) -> Nanos {
    if let Body::Run { series, .. } = &recording.body {
        series.elapsed_ns
    } else {
        Nanos::ZERO
    }
}

/// Runs a command of the user in a shell, which can ask at the terminal (`sudo`).
fn prepare(
    command: &OsString,
    shows_output: bool,
    forwarding: &mut Forwarding,
) -> Result<(), Failure> {
    let output = || if shows_output { Stdio::inherit() } else { Stdio::null() };
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(output()).stderr(output());
    let ended = shell.spawn().and_then(|mut it| forwarding.until_ended(&mut it, None));
    let shown = || Path::new(command).display();
    match ended {
        Ok(status) if status.is_none_or(|status| status.success()) => Ok(()),
        Ok(status) => {
            let status = status.map_or(String::new(), |status| format!(" ({status})"));
            let text = format!("--prepare: '{}' failed{status}", shown());
            Err(Failure::exceeded(text))
        }
        Err(error) => {
            let text = format!("--prepare: failed to run '{}': {error}", shown());
            Err(Failure::refused(text))
        }
    }
}
