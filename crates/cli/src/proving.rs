//! `advise --prove`: each advised change is tried, within a budget of time, and the list has what was measured.
//!
//! ```text
//! settings   settings that are changed at run time: as `try` does it, several in turn
//! guests     boot parameters, and options of the kernel's configuration: in guests
//! ```
//!
//! All runs, and the check before them, are child processes: this one handles signals from before the first change
//! of a setting, and settings change through the journal only. What a signal interrupts has its result if there were
//! enough runs, and all that follows states that it was not measured.

mod guests;
mod program;
mod settings;

use std::ffi::OsString;
use std::time::{Duration, Instant};

use ::advise::{
    Advice, AdviceItem, Barrier, Change, Machine, Method, Proof, ProofOutcome,
};
use recording::{Code, Doubt, Recording, StepSetting};
use units::{CpuSet, Nanos, Ppm};

use crate::args::{Output, some_seconds};
use crate::forwarding::Forwarding;
use crate::outcome::{Failure, Outcome};
use crate::progress_line::ProgressLine;
use crate::proving::guests::{Case, GuestChange, Guests};
use crate::proving::settings::{Candidate, Trials};
use crate::repeating::child::{Finished, Runner};
use crate::repeating::measurement::Measurement;
use crate::repeating::{Plan, Rounds, Schedule, Variant};

/// Smaller differences are of no interest, as for `try`.
const SMALLEST: Ppm = Ppm::new(100_000.0);
/// The part of the budget that guests have if there is anything for them.
const GUESTS_PART: u64 = 3;

#[derive(Debug, clap::Args)]
pub(crate) struct ProveArgs {
    /// Try each setting in runs that alternate with the current settings (root), and each boot parameter and
    /// option of the kernel's configuration in guests; the list then has measured gains, and settings are restored.
    #[arg(long, conflicts_with_all = ["from", "root", "config"])]
    prove: bool,
    /// Time that --prove takes, for the first changes of the list first; in seconds or with a unit (10m).
    #[arg(long, value_name = "TIME", value_parser = some_seconds)]
    #[arg(default_value = "10m")]
    budget: Nanos,
    /// Kernel of the guests, as for `lab run` [default: that of this machine].
    #[arg(long, value_name = "KERNEL", requires = "prove")]
    guest_kernel: Option<String>,
    /// Accept a COMMAND that fails.
    #[arg(long, requires = "program")]
    ignore_failure: bool,
    /// Show the output of COMMAND.
    #[arg(long, requires = "program")]
    show_output: bool,
    /// Program to advise: it is repeated, and what could help is tried with it (root).
    #[arg(last = true, value_name = "COMMAND")]
    #[arg(conflicts_with_all = ["prove", "from", "root", "config", "no_measure", "isolate", "verify"])]
    program: Vec<OsString>,
}

impl ProveArgs {
    /// The program to advise; empty if none is.
    pub(crate) fn program(&self) -> &[OsString] {
        &self.program
    }

    /// The proof that is requested, if any. From here on, signals do not end this process.
    ///
    /// # Errors
    /// This process may not change settings.
    pub(crate) fn begin(&self, output: Output) -> Result<Option<Prover>, Failure> {
        if !self.prove && self.program.is_empty() {
            return Ok(None);
        }
        if !rustix::process::geteuid().is_root() {
            return Err(Failure::refused(
                "failed to prove advice: settings are changed for it, as root only; hint: sudo \
                 noisefloor advise --prove",
            ));
        }
        Ok(Some(Prover {
            forwarding: Forwarding::new().map_err(Failure::refused)?,
            clock: Clock { began: Instant::now(), budget: self.budget },
            guest_kernel: self.guest_kernel.clone(),
            ignores_failures: self.ignore_failure,
            shows_output: self.show_output,
            output,
        }))
    }
}

/// The time that a proof has.
#[derive(Debug, Clone, Copy)]
struct Clock {
    began: Instant,
    budget: Nanos,
}

impl Clock {
    /// The rest of the budget, without a part for what follows.
    fn rest(self, reserved: Nanos) -> Nanos {
        let elapsed = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let used = elapsed.saturating_add(reserved.get());
        Nanos::from_nanos(self.budget.get().saturating_sub(used))
    }
}

/// A proof that has begun.
pub(crate) struct Prover {
    forwarding: Forwarding,
    clock: Clock,
    guest_kernel: Option<String>,
    /// Of the program that is advised.
    ignores_failures: bool,
    shows_output: bool,
    output: Output,
}

/// How a change is tried.
enum Way {
    Setting(StepSetting),
    Guest(GuestChange),
    Not(Barrier),
}

impl Prover {
    /// A check of this machine, by a child process.
    ///
    /// # Errors
    /// It has saved no recording.
    pub(crate) fn check(
        &mut self,
        idle: Nanos,
        busy: Nanos,
    ) -> Result<Recording, Failure> {
        let mut line = ProgressLine::new(self.output.quiet);
        line.draw("check");
        let (idle, busy) = (millis(idle), millis(busy));
        let measurement = measurement(&["check", "--rest", &idle, "-d", &busy]);
        let plan = plan(measurement, vec![Variant::current()], 1, self.output);
        let finished = Runner::new(&plan, None)?.run(false, &mut self.forwarding);
        line.clear();
        match finished? {
            Finished::Saved { recording, .. } => Ok(*recording),
            Finished::Failed(why) => Err(why),
        }
    }

    /// Tries what can be tried. Doubts about the runs are added.
    ///
    /// # Errors
    /// The facts of this machine lack what is needed to measure.
    pub(crate) fn prove(
        mut self,
        advice: Advice,
        machine: &Machine<'_>,
        doubts: &mut Vec<Doubt>,
    ) -> Result<(Advice, Outcome), Failure> {
        let cpus = measured_cpus(machine)?;
        if self.forwarding.is_interrupted() {
            return Ok(self.unproven(advice, doubts));
        }
        let mut sorted = Sorted::of(&advice, machine, |item| {
            let method = Method::of(item.goal, item.rule.acts_on);
            (method, way(item))
        });
        let mut guests = Guests::new(self.guest_kernel.take(), machine, &cpus);
        let (clock, output) = (self.clock, self.output);
        let mut cases = std::mem::take(&mut sorted.cases);
        // Kernels take the longest to build.
        cases.sort_by_key(Case::is_build);
        let needed = guests.find(&cases, clock, &mut self.forwarding, output);
        let reserved = needed.min(Nanos::from_nanos(clock.budget.get() / GUESTS_PART));
        let trials = Trials { reserved, ..self.trials(&cpus) };
        sorted.try_settings(trials, &mut self.forwarding, doubts);
        for case in cases {
            sorted.outcomes[case.place] =
                guests.try_case(&case, clock, &mut self.forwarding, output);
        }
        Ok(self.finish(advice, sorted.outcomes, doubts))
    }

    /// Trials that have the whole budget, of what fits each setting.
    fn trials<'a>(&self, cpus: &'a CpuSet) -> Trials<'a> {
        Trials {
            program: None,
            cpus,
            clock: self.clock,
            reserved: Nanos::ZERO,
            output: self.output,
            doubts: Vec::new(),
        }
    }

    /// The advice if a signal came before anything was tried: no setting is changed any more.
    fn unproven(self, advice: Advice, doubts: &mut Vec<Doubt>) -> (Advice, Outcome) {
        let none = ProofOutcome::NotProven(Barrier::Interrupted);
        let outcomes = vec![none; advice.items.len()];
        self.finish(advice, outcomes, doubts)
    }

    /// The advice after the proof.
    fn finish(
        mut self,
        advice: Advice,
        outcomes: Vec<ProofOutcome>,
        doubts: &mut Vec<Doubt>,
    ) -> (Advice, Outcome) {
        let outcome = self.outcome(doubts);
        (advice.with_proofs(outcomes, SMALLEST), outcome)
    }

    fn outcome(&mut self, doubts: &mut Vec<Doubt>) -> Outcome {
        if !self.forwarding.is_interrupted() {
            return Outcome::Done;
        }
        if doubts.iter().all(|doubt| doubt.code != Code::Interrupted) {
            doubts.push(Doubt::new(Code::Interrupted, "the proof ended early"));
        }
        Outcome::Doubtful
    }
}

/// The items of advice, by how they are tried.
struct Sorted {
    /// What is known of each so far.
    outcomes: Vec<ProofOutcome>,
    candidates: Vec<Candidate>,
    cases: Vec<Case>,
}

impl Sorted {
    /// By this method and way of each item.
    fn of(
        advice: &Advice,
        machine: &Machine<'_>,
        way: impl Fn(&AdviceItem) -> (Method, Way),
    ) -> Self {
        let mut sorted =
            Self { outcomes: Vec::new(), candidates: Vec::new(), cases: Vec::new() };
        for (place, item) in advice.items.iter().enumerate() {
            let rule = item.rule.name;
            let (method, way) = way(item);
            let barrier = match way {
                Way::Setting(setting) => {
                    match settings::variant(setting, machine.facts()) {
                        Ok(variant) => {
                            let candidate = Candidate { place, rule, method, variant };
                            sorted.candidates.push(candidate);
                            Barrier::Interrupted
                        }
                        Err(why) => Barrier::Refused(why.to_string()),
                    }
                }
                Way::Guest(change) => {
                    sorted.cases.push(Case { place, rule, method, change });
                    Barrier::Interrupted
                }
                Way::Not(why) => why,
            };
            sorted.outcomes.push(ProofOutcome::NotProven(barrier));
        }
        sorted
    }

    /// Tries the settings, and stores what was shown of each.
    fn try_settings(
        &mut self,
        mut trials: Trials<'_>,
        forwarding: &mut Forwarding,
        doubts: &mut Vec<Doubt>,
    ) {
        for (place, outcome) in trials.run(&self.candidates, forwarding) {
            self.outcomes[place] = outcome;
        }
        doubts.append(&mut trials.doubts);
    }
}

/// The CPUs of the advice, or else all.
fn measured_cpus(machine: &Machine<'_>) -> Result<CpuSet, Failure> {
    let online = machine.facts().cpus.online.get();
    let cpus = machine.cpus().or(online).cloned();
    cpus.ok_or_else(|| Failure::refused("failed to prove advice: no CPU is known"))
}

/// How an item is tried.
fn way(item: &AdviceItem) -> Way {
    let set = |parameter: &str, value: Option<&str>| match value {
        Some("") | None => parameter.to_owned(),
        Some(value) => format!("{parameter}={value}"),
    };
    match (&item.change, item.rule.proof) {
        (Change::Action { .. }, _) => Way::Not(Barrier::Action),
        (_, Proof::None) => Way::Not(Barrier::NoMeasurement),
        (Change::Set { name, to }, Proof::Try | Proof::Guest) => {
            Way::Setting(StepSetting { name: name.clone(), value: to.clone() })
        }
        (Change::Boot { parameter }, Proof::Try | Proof::Guest) => {
            let name = parameter.split('=').next().unwrap_or(parameter);
            let now = item.from.as_deref().map(|value| set(name, Some(value)));
            Way::Guest(GuestChange::Boot([now, Some(parameter.clone())]))
        }
        (Change::Unboot { parameter }, Proof::Try | Proof::Guest) => {
            let now = set(parameter, item.from.as_deref());
            Way::Guest(GuestChange::Boot([Some(now), None]))
        }
        (Change::Build { option, to }, Proof::Try | Proof::Guest) => {
            let (option, values) =
                (option.clone(), [item.from.clone(), Some(to.clone())]);
            Way::Guest(GuestChange::Build { option, values })
        }
    }
}

/// A measurement that is repeated.
fn measurement(words: &[&str]) -> Measurement {
    Measurement {
        words: words.iter().map(OsString::from).collect(),
        name: 1,
        is_run: false,
    }
}

/// So many rounds of it.
fn plan(
    measurement: Measurement,
    variants: Vec<Variant>,
    rounds: u32,
    output: Output,
) -> Plan {
    let schedule = Schedule {
        rounds: Rounds { min: rounds, time: Nanos::ZERO },
        warmup: 0,
        prepare: None,
        pause: Duration::ZERO,
        timeout: None,
        seed: crate::repeating::options::random_seed(),
        shows_output: false,
        ignores_failures: false,
        quiet: output.quiet,
    };
    Plan { measurement, variants, schedule }
}

/// A duration as an option.
fn millis(time: Nanos) -> String {
    format!("{}ms", time.get() / Nanos::from_millis(1).get())
}
