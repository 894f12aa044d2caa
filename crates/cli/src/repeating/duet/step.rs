//! A pair of runs, step by step: both programs are ready, start at one moment, have ended, are saved.
//!
//! What noisefloor does for a run before the start and after the end of its program waits for the other program, so
//! that it does not disturb that.

use std::os::fd::AsFd;
use std::time::Instant;

use recording::Recording;
use rustix::event::epoll;

use crate::forwarding::{Forwarding, is_over};
use crate::outcome::Failure;
use crate::repeating::Schedule;
use crate::repeating::duet::side::{Side, Stage};
use crate::repeating::orders::PairCpu;

/// A pair of runs that has ended.
pub(super) enum Finished {
    /// Both have saved a recording.
    Saved([Box<Recording>; 2]),
    /// A signal has ended them.
    Interrupted,
    Failed(Failure),
}

/// What ended the wait for a stage.
enum Waited {
    /// All runs have reached it.
    Reached,
    /// A signal has arrived before the programs started.
    Interrupted,
    /// The program of this run has failed.
    ProgramFailed(usize),
    /// Its process has ended, which is the reason.
    Failed(Failure),
    TimedOut,
}

/// Runs both programs at once, the first one on the first CPU unless they are swapped. What is done for one after the
/// other follows the order of the CPUs, so that its effect is one of the place.
///
/// # Errors
/// A process could not be started or waited for.
pub(super) fn run_at_once(
    sides: &mut [Side<'_>; 2],
    is_swapped: bool,
    schedule: &Schedule,
    forwarding: &mut Forwarding,
) -> Result<Finished, Failure> {
    let cpus = [PairCpu::First, PairCpu::Second];
    let mut by_cpu = in_order(sides, is_swapped);
    if let Some(other) = run(&mut by_cpu, &cpus, schedule, forwarding)? {
        return Ok(other);
    }
    saved(sides, schedule, forwarding)
}

/// Runs one program after the other, the second one first if they are swapped.
///
/// # Errors
/// Those of [`run_at_once`].
pub(super) fn run_in_turn(
    sides: &mut [Side<'_>; 2],
    is_swapped: bool,
    schedule: &Schedule,
    forwarding: &mut Forwarding,
) -> Result<Finished, Failure> {
    for side in in_order(sides, is_swapped) {
        let finished = run(&mut [side], &[PairCpu::First], schedule, forwarding)?;
        if let Some(other) = finished {
            return Ok(other);
        }
    }
    saved(sides, schedule, forwarding)
}

/// Both programs in the order of their places.
fn in_order<'a, 'b>(
    sides: &'a mut [Side<'b>; 2],
    is_swapped: bool,
) -> [&'a mut Side<'b>; 2] {
    let [a, b] = sides;
    if is_swapped { [b, a] } else { [a, b] }
}

/// The recordings of both.
fn saved(
    sides: &[Side<'_>; 2],
    schedule: &Schedule,
    forwarding: &mut Forwarding,
) -> Result<Finished, Failure> {
    if forwarding.is_interrupted() {
        return Ok(Finished::Interrupted);
    }
    let [a, b] = sides;
    let recordings = [a.recording(forwarding)?, b.recording(forwarding)?];
    let mut each = sides.iter().zip(&recordings);
    let failed = each.find_map(|(side, run)| schedule.failure(side.name(), run));
    Ok(failed.map_or(Finished::Saved(recordings), Finished::Failed))
}

/// Makes a run of each of these programs at once; `None` if all are saved.
fn run(
    sides: &mut [&mut Side<'_>],
    cpus: &[PairCpu],
    schedule: &Schedule,
    forwarding: &mut Forwarding,
) -> Result<Option<Finished>, Failure> {
    for (side, cpu) in sides.iter_mut().zip(cpus) {
        side.order(*cpu)?;
    }
    let timeout = schedule.timeout;
    let deadline = timeout.and_then(|time| Instant::now().checked_add(time));
    for stage in [Stage::Ready, Stage::Ended, Stage::Saved] {
        let ignores = schedule.ignores_failures;
        let waited = wait(sides, stage, ignores, deadline, forwarding)?;
        let finished = match waited {
            Waited::Reached if stage == Stage::Saved => return Ok(None),
            Waited::Reached => {
                sides.iter_mut().for_each(|side| side.open_gate());
                continue;
            }
            Waited::Interrupted => Finished::Interrupted,
            Waited::Failed(why) => Finished::Failed(why),
            Waited::ProgramFailed(at) => {
                Finished::Failed(program_failure(sides, at, schedule, forwarding)?)
            }
            Waited::TimedOut => {
                let text = "a run did not end in time (--timeout)";
                Finished::Failed(Failure::exceeded(text))
            }
        };
        end_all(sides, forwarding)?;
        return Ok(Some(finished));
    }
    Ok(None)
}

/// Ends the other program at once, and saves the run that failed, which knows why.
fn program_failure(
    sides: &mut [&mut Side<'_>],
    at: usize,
    schedule: &Schedule,
    forwarding: &mut Forwarding,
) -> Result<Failure, Failure> {
    for (other, side) in sides.iter_mut().enumerate() {
        if other != at {
            side.end(forwarding)?;
        }
    }
    let one = &mut sides[at..=at];
    one.iter_mut().for_each(|side| side.open_gate());
    if let Waited::Failed(why) = wait(one, Stage::Saved, true, None, forwarding)? {
        return Ok(why);
    }
    let recording = one[0].recording(forwarding)?;
    let why = schedule.failure(one[0].name(), &recording);
    Ok(why.unwrap_or_else(|| Failure::exceeded("a program failed")))
}

/// Ends all of them.
fn end_all(
    sides: &mut [&mut Side<'_>],
    forwarding: &mut Forwarding,
) -> Result<(), Failure> {
    sides.iter_mut().for_each(|side| side.ask_to_end());
    sides.iter_mut().try_for_each(|side| side.end(forwarding))
}

/// Waits until all runs have reached a stage. Signals are forwarded to all of them.
fn wait(
    sides: &mut [&mut Side<'_>],
    stage: Stage,
    ignores_failures: bool,
    deadline: Option<Instant>,
    forwarding: &mut Forwarding,
) -> Result<Waited, Failure> {
    let wanted = epoll::create(epoll::CreateFlags::CLOEXEC);
    let wanted = wanted.map_err(Failure::refused)?;
    for side in sides.iter() {
        side.add_to(&wanted).map_err(Failure::refused)?;
    }
    loop {
        for side in &mut *sides {
            side.update().map_err(Failure::refused)?;
        }
        if let Some(waited) = reached(sides, stage, ignores_failures, forwarding)? {
            return Ok(waited);
        }
        if is_over(deadline) {
            return Ok(Waited::TimedOut);
        }
        let children: Vec<_> = sides.iter().filter_map(|side| side.child()).collect();
        let next = forwarding.forward_next_to_all(&children, wanted.as_fd(), deadline);
        next.map_err(Failure::refused)?;
    }
}

/// What has ended the wait, if anything has.
fn reached(
    sides: &mut [&mut Side<'_>],
    stage: Stage,
    ignores_failures: bool,
    forwarding: &mut Forwarding,
) -> Result<Option<Waited>, Failure> {
    // A program that a signal of the user has ended has not failed.
    let is_interrupted = forwarding.is_interrupted();
    if is_interrupted && stage == Stage::Ready {
        return Ok(Some(Waited::Interrupted));
    }
    if !ignores_failures && !is_interrupted {
        let failed = sides.iter().position(|side| side.has_failed);
        if let Some(at) = failed {
            return Ok(Some(Waited::ProgramFailed(at)));
        }
    }
    if sides.iter().all(|side| side.stage >= stage) {
        return Ok(Some(Waited::Reached));
    }
    for side in sides.iter_mut().filter(|side| side.stage < stage) {
        if let Some(status) = side.ended().map_err(Failure::refused)? {
            return Ok(Some(Waited::Failed(side.failure(status))));
        }
    }
    Ok(None)
}
