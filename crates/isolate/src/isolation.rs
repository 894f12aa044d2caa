//! CPUs that are reserved for one program.
//!
//! All changes are to machine-wide settings. They are recorded in the journal ([`Lease`]) first,
//! and restored at the end. A thread's own affinity and priority are handled by
//! [`crate::thread::pinned`].

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
use crate::settings::lease::{Lease, state_path};
use crate::settings::restoration::RestoredSetting;
use crate::thread::affinities::Affinities;
use crate::thread::current_cpu;
use crate::tick::nohz_cpus;

/// Isolation options. By default, nothing is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IsolationOptions {
    /// The CPUs; if `None`, the best one.
    pub cpus: Option<CpuSet>,
    /// Switch off the throttling of real-time tasks on the CPUs.
    pub unthrottled: bool,
    /// Move device interrupts off the CPUs.
    pub irqs: bool,
    /// Move unbound workqueues off the CPUs.
    pub workqueues: bool,
    /// Move movable kernel threads off the CPUs.
    pub kthreads: bool,
    /// Move this process into an isolated cpuset partition with these CPUs.
    pub partition: bool,
    /// The maximum exit latency of idle states on all CPUs, in microseconds.
    pub dma_latency_us: Option<u32>,
}

/// Reserved CPUs, until this is dropped.
#[derive(Debug)]
pub struct Isolation {
    pick: Pick,
    lease: Option<Lease>,
    // Dropped after the lease: restoring a partition resets affinities, which this sets again.
    _affinities: Option<Affinities>,
    _dma_latency: Option<File>,
    done: usize,
    refused: Vec<Error>,
    left: Vec<RestoredSetting>,
}

impl Isolation {
    /// Isolates the CPUs as far as privileges allow; [`Self::refused`] has the failures.
    ///
    /// # Errors
    /// Those of [`pick`]: there is no such CPU, or it cannot be used.
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

    /// Switches off the throttling of real-time tasks on each `nohz_full` CPU, or on the best CPU
    /// if there is none: for programs that do not specify their CPUs.
    ///
    /// # Errors
    /// Those of [`pick`], if the calling thread's CPU cannot be used either.
    pub fn unthrottled(facts: &Facts) -> Result<Self, Error> {
        // A process that is restricted to CPU 0 runs there although `pick` never selects it.
        let own_cpu = |why| current_cpu().map_or(Err(why), |cpu| pick(Some(cpu), facts));
        let mut own = Self::of(pick(None, facts).or_else(own_cpu)?);
        let mut cpus = nohz_cpus(facts);
        if cpus.is_empty() {
            cpus = own.pick.cpus.clone();
        }
        let changes = throttling::switch_off(&cpus, &own.pick.others, facts);
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
        let no_others = (moves && others.is_empty()).then(|| {
            let text = format!("nothing is moved off CPU {cpus}: no other CPU is left");
            vec![Err(Error::new(Kind::Unsafe, text))]
        });
        let changes = [
            no_others,
            options.unthrottled.then(|| throttling::switch_off(cpus, others, facts)),
            options.irqs.then(|| irqs::move_off(cpus, others)),
            options.workqueues.then(|| workqueues::move_off(cpus, others)),
            options.kthreads.then(|| kthreads::move_off(cpus, others)),
            options.partition.then(|| partition::of(cpus, facts)),
        ];
        changes.into_iter().flatten().flatten().collect()
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
                let cpus = &self.pick.cpus;
                let failed =
                    changes.iter().zip(outcomes).filter_map(|(change, outcome)| {
                        outcome.err().filter(|why| !irqs::is_elsewhere(change, why, cpus))
                    });
                self.refused.extend(failed);
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

    /// The selected CPUs, and why they were selected.
    pub fn pick(&self) -> &Pick {
        &self.pick
    }

    /// The number of settings that were changed.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Changes that failed, with hints.
    pub fn refused(&self) -> &[Error] {
        &self.refused
    }

    /// Settings left behind by a killed run, with their restore outcomes.
    pub fn left(&self) -> &[RestoredSetting] {
        &self.left
    }

    /// Restores all settings that no other run needs; returns their outcomes.
    ///
    /// # Errors
    /// `Kind::Journal` if the journal can no longer be read.
    pub fn end(mut self) -> Result<Vec<RestoredSetting>, Error> {
        self.lease.take().map_or_else(|| Ok(Vec::new()), Lease::end)
    }
}
