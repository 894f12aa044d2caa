//! Runs cells side by side, in the order in which they were planned, and tells how far
//! they are.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use recording::{Cell, Code, Doubt, Ending, Mode};

use crate::cell::Ready;
use crate::error::{Error, Kind};
use crate::lab::Lab;
use crate::plan::Plan;

/// How often progress is told while nothing happens.
const TELL: Duration = Duration::from_secs(1);

/// How to run cells.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// How many cells side by side, at least one.
    pub jobs: usize,
    /// Whether to run cells whose result is kept, too, to confirm it.
    pub fresh: bool,
    /// How long a guest may boot, may take beyond what it measures, and may power off;
    /// whoever takes longer hangs.
    pub deadline: Duration,
    /// The order to end early.
    pub stop: &'a AtomicBool,
}

/// How far an experiment is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// All cells.
    pub cells: usize,
    /// Cells that were run now.
    pub ran: usize,
    /// Cells whose result was there.
    pub cached: usize,
    /// Cells that gave no result.
    pub lost: usize,
    /// Cells that are being run.
    pub running: usize,
    /// How long the rest will take, where that can be guessed.
    pub left: Option<Duration>,
}

/// Who is told what goes on.
pub trait Audience {
    /// Something that takes a while, in words.
    fn say(&mut self, text: &str);
    /// How far it is.
    fn progress(&mut self, progress: Progress);
}

/// What a worker tells.
enum News {
    Began,
    Ended { index: usize, cell: Box<Result<Option<Cell>, Error>>, took: Duration },
}

impl Lab {
    /// Runs all plans, or takes their results from the shelf. Where it is ended early,
    /// gives the cells that ended before.
    ///
    /// # Errors
    /// Of finding kernels and of the cache; a guest that gives no result is a lost cell.
    pub fn run(
        &self,
        plans: &[Plan],
        run: Run<'_>,
        audience: &mut dyn Audience,
    ) -> Result<Vec<Cell>, Error> {
        let ready = self.ready(plans, &run, &mut |text| audience.say(text))?;
        let mut cells = self.work(&ready, run, audience)?;
        doubt_repeats(&mut cells);
        Ok(cells)
    }

    fn work(
        &self,
        ready: &[Ready],
        run: Run<'_>,
        audience: &mut dyn Audience,
    ) -> Result<Vec<Cell>, Error> {
        let next = AtomicUsize::new(0);
        // Ends the others where one finds that there is no going on.
        let give_up = Mutex::new(None);
        let mut tally = Tally::new(ready.len(), run.jobs);
        let mut cells: Vec<Option<Cell>> = ready.iter().map(|_| None).collect();
        thread::scope(|scope| {
            let (news, heard) = channel();
            for _ in 0..run.jobs.clamp(1, ready.len().max(1)) {
                let (news, next) = (news.clone(), &next);
                scope.spawn(move || {
                    while !run.stop.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(cell) = ready.get(index) else { return };
                        let began = Instant::now();
                        let _ = news.send(News::Began);
                        let cell = Box::new(self.cell(cell, &run));
                        let took = began.elapsed();
                        let _ = news.send(News::Ended { index, cell, took });
                    }
                });
            }
            drop(news);
            loop {
                match heard.recv_timeout(TELL) {
                    Ok(News::Began) => tally.running += 1,
                    Ok(News::Ended { index, cell, took }) => match *cell {
                        Ok(cell) => {
                            tally.add(cell.as_ref(), took);
                            cells[index] = cell;
                        }
                        Err(error) => {
                            next.store(ready.len(), Ordering::Relaxed);
                            tally.running -= 1;
                            let mut why =
                                give_up.lock().unwrap_or_else(PoisonError::into_inner);
                            why.get_or_insert(error);
                        }
                    },
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
                audience.progress(tally.progress());
            }
        });
        match give_up.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None if cells.iter().all(Option::is_none) && !cells.is_empty() => {
                Err(Error::new(Kind::Interrupted, "ended before the first cell was done"))
            }
            None => Ok(cells.into_iter().flatten().collect()),
        }
    }
}

/// What has happened so far.
struct Tally {
    cells: usize,
    jobs: usize,
    running: usize,
    ran: usize,
    cached: usize,
    lost: usize,
    took: Duration,
}

impl Tally {
    fn new(cells: usize, jobs: usize) -> Self {
        let (running, ran, cached, lost) = (0, 0, 0, 0);
        Self {
            cells,
            jobs: jobs.max(1),
            running,
            ran,
            cached,
            lost,
            took: Duration::ZERO,
        }
    }

    fn add(&mut self, cell: Option<&Cell>, took: Duration) {
        self.running -= 1;
        match cell.map(|cell| (&cell.ending, cell.cached)) {
            None => {}
            Some((_, true)) => self.cached += 1,
            Some((ending, false)) => {
                self.ran += 1;
                self.took += took;
                self.lost += usize::from(matches!(ending, Ending::Lost { .. }));
            }
        }
    }

    fn progress(&self) -> Progress {
        let Self { cells, running, ran, cached, lost, .. } = *self;
        let to_do = cells.saturating_sub(ran + cached);
        let rounds = u32::try_from(to_do.div_ceil(self.jobs)).unwrap_or(u32::MAX);
        let mean = u32::try_from(ran).ok().and_then(|ran| self.took.checked_div(ran));
        let left = mean.map(|mean| mean.saturating_mul(rounds));
        Progress { cells, ran, cached, lost, running, left }
    }
}

/// Adds a doubt to exact cells whose repeats do not all agree.
fn doubt_repeats(cells: &mut [Cell]) {
    let firsts: Vec<Cell> =
        cells.iter().filter(|cell| cell.repeat == 1).cloned().collect();
    for cell in cells.iter_mut().filter(|cell| cell.mode == Mode::Exact) {
        let Some(first) = firsts.iter().find(|first| first.identity == cell.identity)
        else {
            continue;
        };
        let repeat = cell.repeat;
        if let (Ending::Done(answer), Ending::Done(before)) =
            (&mut cell.ending, &first.ending)
        {
            let same = answer.recording.body == before.recording.body
                && answer.counts == before.counts
                && answer.profile == before.profile;
            if !same {
                let text = format!("repeat {repeat} gave another result than the first");
                answer.recording.doubts.push(Doubt::new(Code::NotRepeated, text));
            }
        }
    }
}
