//! CPUs that are kept free for one program: what was asked, what was done, what could not be.
//!
//! Everything that this changes is the machine's, goes through the journal ([`Lease`]) and is
//! given back at the end. What a thread does to itself is [`crate::thread::seat`]'s.

pub(crate) mod dma_latency;
pub(crate) mod irqs;
pub(crate) mod kthreads;
pub(crate) mod partition;
pub(crate) mod throttling;
pub(crate) mod workqueues;

use std::fs::File;

use facts::Facts;
use units::CpuSet;

use crate::cpus::pick::{Pick, pick, pick_all};
use crate::error::{Error, Kind};
use crate::settings::change::{Change, Changes};
use crate::settings::lease::{Lease, Returned, state_path};
use crate::thread::affinities::Affinities;
use crate::thread::current_cpu;
use crate::tick::nohz_cpus;

/// What is to be done for a program that is to run undisturbed. Nothing, by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IsolationOptions {
    /// The CPUs; the best one, if none are named.
    pub cpus: Option<CpuSet>,
    /// Let real-time tasks have all of the CPUs' time.
    pub unthrottled: bool,
    /// Move device interrupts off the CPUs.
    pub irqs: bool,
    /// Move unbound workqueues off the CPUs.
    pub workqueues: bool,
    /// Move the kernel's movable threads off the CPUs.
    pub kthreads: bool,
    /// Put this process into an isolated partition of these CPUs.
    pub partition: bool,
    /// Let no CPU sleep so deep that it takes longer to wake, in microseconds.
    pub dma_latency_us: Option<u32>,
}

/// CPUs that are kept free, until this is dropped.
#[derive(Debug)]
pub struct Isolation {
    pick: Pick,
    lease: Option<Lease>,
    // After the settings: a thread that comes back is where it may be, not where it was.
    _affinities: Option<Affinities>,
    _dma_latency: Option<File>,
    done: usize,
    refused: Vec<Error>,
    left: Vec<Returned>,
}

impl Isolation {
    /// Keeps the CPUs free as far as this process may; [`Self::refused`] says what it may not.
    ///
    /// # Errors
    /// Those of [`pick`]: there is no such CPU, or it cannot be had.
    pub fn begin(options: &IsolationOptions, facts: &Facts) -> Result<Self, Error> {
        let mut own = Self::of(pick_all(options.cpus.as_ref(), facts)?);
        own._affinities = options.partition.then(Affinities::now);
        let changes = own.plan(options, facts);
        own.carry_out(changes);
        if let Some(microseconds) = options.dma_latency_us {
            match dma_latency::hold(microseconds) {
                Ok(held) => own._dma_latency = Some(held),
                Err(why) => own.refused.push(why),
            }
        }
        Ok(own)
    }

    /// Lets real-time tasks have all the time of each CPU whose tick can stop, or of the best
    /// one where there is none such: for programs that do not say where they are going to run.
    ///
    /// # Errors
    /// Those of [`pick`], where not even the calling thread's CPU can be had.
    pub fn unthrottled(facts: &Facts) -> Result<Self, Error> {
        // A process that has only CPU 0 runs there, asked or not.
        let here = |why| current_cpu().map_or(Err(why), |cpu| pick(Some(cpu), facts));
        let mut own = Self::of(pick(None, facts).or_else(here)?);
        let mut cpus = nohz_cpus(facts);
        if cpus.is_empty() {
            cpus = own.pick.cpus.clone();
        }
        let changes = throttling::off(&cpus, &own.pick.others, facts);
        own.carry_out(changes);
        Ok(own)
    }

    fn of(pick: Pick) -> Self {
        let (refused, left) = (Vec::new(), Vec::new());
        let (lease, _affinities, _dma_latency) = (None, None, None);
        Self { pick, lease, _affinities, _dma_latency, done: 0, refused, left }
    }

    fn plan(&self, options: &IsolationOptions, facts: &Facts) -> Changes {
        let (cpus, others) = (&self.pick.cpus, &self.pick.others);
        let moves = options.irqs || options.workqueues || options.kthreads;
        let nowhere = (moves && others.is_empty()).then(|| {
            let text = format!("nothing is moved off CPU {cpus}: no other CPU is left");
            vec![Err(Error::new(Kind::Unsafe, text))]
        });
        let wanted = [
            nowhere,
            options.unthrottled.then(|| throttling::off(cpus, others, facts)),
            options.irqs.then(|| irqs::away(cpus, others)),
            options.workqueues.then(|| workqueues::away(cpus, others)),
            options.kthreads.then(|| kthreads::away(cpus, others)),
            options.partition.then(|| partition::of(cpus, facts)),
        ];
        wanted.into_iter().flatten().flatten().collect()
    }

    fn carry_out(&mut self, changes: Changes) {
        let (changes, refused): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(Result::is_ok);
        self.refused.extend(refused.into_iter().filter_map(Result::err));
        let changes: Vec<Change> = changes.into_iter().flatten().collect();
        if changes.is_empty() {
            return;
        }
        match self.lease().and_then(|lease| lease.set(&changes)) {
            Ok(outcomes) => {
                self.done += outcomes.iter().filter(|outcome| outcome.is_ok()).count();
                self.refused.extend(outcomes.into_iter().filter_map(Result::err));
            }
            Err(why) => self.refused.push(why),
        }
    }

    fn lease(&mut self) -> Result<&mut Lease, Error> {
        match &mut self.lease {
            Some(lease) => Ok(lease),
            none => {
                let (lease, left) = Lease::begin(&state_path()?)?;
                self.left = left;
                Ok(none.insert(lease))
            }
        }
    }

    /// The CPUs, and why these.
    pub fn pick(&self) -> &Pick {
        &self.pick
    }

    /// How many settings were changed.
    pub fn done(&self) -> usize {
        self.done
    }

    /// What could not be done, and what would help.
    pub fn refused(&self) -> &[Error] {
        &self.refused
    }

    /// What a killed run had left, and what became of it.
    pub fn left(&self) -> &[Returned] {
        &self.left
    }

    /// Puts everything back that no other run needs; what became of it.
    ///
    /// # Errors
    /// `Kind::Journal` where the journal cannot be read any more.
    pub fn end(mut self) -> Result<Vec<Returned>, Error> {
        self.lease.take().map_or_else(|| Ok(Vec::new()), Lease::end)
    }
}
