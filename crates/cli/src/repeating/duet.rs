//! Two programs in pairs of runs: at once on two CPUs, which they swap in balanced random order, or one after the
//! other on one CPU.
//!
//! ```text
//! command_line  from two commands as text to the words of both
//! side          the process of a program, and what it is doing
//! step          both programs: ready, started, ended, saved
//! ```

pub(crate) mod command_line;
mod side;
mod step;

use std::ffi::OsString;
use std::fs::File;

use recording::{Doubt, Duet, DuetProgram, Recording, Repeat, Words};
use stats::balanced_order;
use summary::{DuetPair, RunSet};
use tempfile::TempDir;
use units::{CpuSet, Nanos};

use crate::forwarding::Forwarding;
use crate::outcome::{Failure, Outcome};
use crate::progress_line::ProgressLine;
use crate::repeating::child::{remove_left_behind, temporary_folder};
use crate::repeating::duet::side::Side;
use crate::repeating::duet::step::{Finished, run_at_once, run_in_turn};
use crate::repeating::folder::SetFolder;
use crate::repeating::{Next, Schedule, time_of};

/// The programs, in order.
const PROGRAMS: [DuetProgram; 2] = [DuetProgram::A, DuetProgram::B];

/// Two programs to run in pairs.
#[derive(Debug)]
pub(crate) struct DuetPlan {
    /// The words of both command lines.
    pub(crate) commands: [Vec<OsString>; 2],
    /// Two CPUs, or one if both run in turn.
    pub(crate) cpus: CpuSet,
    pub(crate) at_once: bool,
    pub(crate) schedule: Schedule,
}

/// The runs of both programs.
#[derive(Debug)]
pub(crate) struct DuetRuns {
    /// The runs of each program.
    pub(crate) sets: [RunSet; 2],
    pub(crate) pairs: Vec<DuetPair>,
    /// Reasons not to trust them.
    pub(crate) doubts: Vec<Doubt>,
    pub(crate) outcome: Outcome,
}

/// Runs all pairs. The recordings are saved in two folders, one for each program, if there are any.
///
/// # Errors
/// The first pair failed. A failure after that is printed, and the pairs before it are returned.
pub(crate) fn run_pairs(
    plan: &DuetPlan,
    folders: &mut [SetFolder],
) -> Result<DuetRuns, Failure> {
    let mut forwarding = Forwarding::new().map_err(Failure::refused)?;
    let mut duet = Pairs::new(plan, folders, &mut forwarding)?;
    let next = duet.all();
    duet.line.clear();
    let mut runs = duet.runs;
    if let Some(ended) = next.ended_early(runs.pairs.len(), "pair")? {
        runs.doubts.push(ended.doubt);
        runs.outcome = ended.outcome;
    }
    Ok(runs)
}

/// Pairs that have begun.
struct Pairs<'a> {
    plan: &'a DuetPlan,
    folders: &'a mut [SetFolder],
    sides: [Side<'a>; 2],
    forwarding: &'a mut Forwarding,
    line: ProgressLine,
    runs: DuetRuns,
    /// The time that the runs of the first program have taken.
    time: Nanos,
    is_first: bool,
    /// Holds the recordings of the last pair; locked as long as this process lives.
    _folder: (TempDir, Option<File>),
}

impl<'a> Pairs<'a> {
    fn new(
        plan: &'a DuetPlan,
        folders: &'a mut [SetFolder],
        forwarding: &'a mut Forwarding,
    ) -> Result<Self, Failure> {
        let places = folders.iter().map(|folder| Some(folder.path()));
        places.chain([None]).for_each(remove_left_behind);
        let folder = temporary_folder(folders.first().map(SetFolder::path))?;
        let side = |at: usize| {
            let file = folder.0.path().join(["a.json", "b.json"][at]);
            Side::new(PROGRAMS[at], &plan.commands[at], plan, file)
        };
        Ok(Self {
            plan,
            folders,
            sides: [side(0), side(1)],
            forwarding,
            line: ProgressLine::new(plan.schedule.quiet),
            runs: DuetRuns {
                sets: Default::default(),
                pairs: Vec::new(),
                doubts: Vec::new(),
                outcome: Outcome::Done,
            },
            time: Nanos::ZERO,
            is_first: true,
            _folder: folder,
        })
    }

    /// The pairs that are not recorded, then all others.
    fn all(&mut self) -> Next {
        let schedule = &self.plan.schedule;
        let mut order = balanced_order(2, schedule.seed);
        for _ in 0..schedule.warmup {
            self.line.draw("warm-up");
            let next = self.pair(&[0, 1], None);
            if !matches!(next, Next::Continue) {
                return next;
            }
        }
        for round in 1.. {
            if !schedule.rounds.continues(round - 1, self.time) {
                break;
            }
            let places = order.next().unwrap_or_default();
            self.line.draw(&schedule.rounds.label(round));
            let next = self.pair(&places, Some(round));
            if !matches!(next, Next::Continue) {
                return next;
            }
        }
        Next::Continue
    }

    /// One pair: which program has the first place, and which one the second. Without `round` it is not recorded.
    fn pair(&mut self, places: &[usize], round: Option<u32>) -> Next {
        self.try_pair(places, round).unwrap_or_else(Next::Failed)
    }

    fn try_pair(
        &mut self,
        places: &[usize],
        round: Option<u32>,
    ) -> Result<Next, Failure> {
        let schedule = &self.plan.schedule;
        if !schedule.begins(std::mem::take(&mut self.is_first), self.forwarding)? {
            return Ok(Next::Interrupted);
        }
        let is_swapped = places.first() == Some(&1);
        let run_pair = if self.plan.at_once { run_at_once } else { run_in_turn };
        let finished = run_pair(&mut self.sides, is_swapped, schedule, self.forwarding)?;
        match finished {
            Finished::Interrupted => Ok(Next::Interrupted),
            Finished::Failed(why) => Err(why),
            Finished::Saved(recordings) => {
                if let Some(round) = round {
                    self.add(recordings, round, is_swapped)?;
                }
                Ok(Next::Continue)
            }
        }
    }

    /// Adds a pair to the sets, and saves it.
    fn add(
        &mut self,
        mut recordings: [Box<Recording>; 2],
        round: u32,
        is_swapped: bool,
    ) -> Result<(), Failure> {
        for (at, recording) in recordings.iter_mut().enumerate() {
            let duet = Duet {
                program: PROGRAMS[at],
                other: Words::new(self.plan.commands[1 - at].iter().cloned()),
                at_once: self.plan.at_once,
            };
            let place = if (at == 1) == is_swapped { 1 } else { 2 };
            recording.repeat = Some(Repeat {
                settings: Vec::new(),
                round,
                place,
                seed: self.plan.schedule.seed,
                duet: Some(duet),
            });
            if let Some(folder) = self.folders.get_mut(at) {
                folder.save(recording)?;
            }
            self.runs.sets[at].add(recording);
        }
        let [a, b] = &recordings;
        self.time = self.time + time_of(a);
        self.runs.pairs.extend(DuetPair::of([a, b]));
        Ok(())
    }
}

/// The folders of the sets of both programs.
pub(crate) fn folder_names() -> Vec<String> {
    vec!["a".to_owned(), "b".to_owned()]
}
