//! The first step: the CPUs are claimed, and nothing has been changed.

use std::thread::sleep;
use std::time::{Duration, Instant};

use isolate::{AvoidedCpus, Claim, Kind};
use measure::Control;
use recording::{Recording, Spec};
use units::CpuSet;

use crate::error::Error;
use crate::event::{Event, Observer};
use crate::isolated::Isolated;
use crate::plan::{Access, Plan};
use crate::prepared::Prepared;
use crate::tracer::{ReusedTrace, Tracer};

/// Interval between two attempts to claim CPUs.
const TRY: Duration = Duration::from_millis(100);
/// Time after which a wait is reported.
const REPORT: Duration = Duration::from_secs(1);

/// A plan whose CPUs are claimed.
#[derive(Debug)]
pub struct Claimed {
    plan: Plan,
    claim: Claim,
}

impl Plan {
    /// Claims the CPUs.
    ///
    /// # Errors
    /// Another noisefloor measures on one of them, or a real-time task occupies it.
    pub fn claim(self, observer: &mut dyn Observer) -> Result<Claimed, Error> {
        let claim = match self.access {
            Access::Exclusive { waits } => claim(&self.spec.cpus(), waits, observer)?,
            Access::Shared | Access::Unchecked => Claim::default(),
        };
        if self.access != Access::Unchecked {
            measure::refuse_occupied(&self.spec)?;
        }
        Ok(Claimed { plan: self, claim })
    }
}

fn claim(
    cpus: &CpuSet,
    waits: bool,
    observer: &mut dyn Observer,
) -> Result<Claim, Error> {
    let (began, mut is_reported) = (Instant::now(), false);
    loop {
        match isolate::claim(cpus) {
            Err(why) if waits && why.kind() == Kind::Taken => {
                if !is_reported && began.elapsed() >= REPORT {
                    is_reported = true;
                    observer.event(Event::Waiting { cpus, why: &why });
                }
                sleep(TRY);
            }
            claim => return Ok(claim?),
        }
    }
}

impl Claimed {
    /// Isolates the CPUs, for another process that measures on them.
    ///
    /// # Errors
    /// The CPUs are not available.
    pub fn isolate(&self, observer: &mut dyn Observer) -> Result<Isolated, Error> {
        let Plan { spec, facts, isolation, .. } = &self.plan;
        Isolated::begin(isolation.as_ref(), spec.cpus(), facts, observer)
    }

    /// Locks memory, isolates the CPUs, and begins to trace them.
    ///
    /// # Errors
    /// The CPUs, or the event source that was requested, are not available; all settings are
    /// restored.
    pub fn prepare(self, observer: &mut dyn Observer) -> Result<Prepared, Error> {
        self.prepare_with(&mut ReusedTrace::default(), observer)
    }

    fn prepare_with(
        self,
        reused: &mut ReusedTrace,
        observer: &mut dyn Observer,
    ) -> Result<Prepared, Error> {
        let (spec, facts) = (&self.plan.spec, &self.plan.facts);
        let locked = spec.cpus().first().filter(|_| self.plan.locks_memory);
        let memory = locked.and_then(|cpu| {
            let locked = isolate::lock_memory(cpu, facts);
            locked.map_err(|why| observer.event(Event::Refused(&why))).ok()
        });
        let isolated = self.isolate(observer)?;
        let Self { mut plan, claim } = self;
        // Noise is measured under the settings that were changed for it, so the facts are read
        // again.
        if plan.isolation.is_some() && matches!(plan.spec, Spec::Noise(_)) {
            plan.facts = facts::Facts::read(&facts::Root::live());
        }
        // The threads of noisefloor stay off a program's CPUs, if there are others.
        let is_program = matches!(plan.spec, Spec::Run(_));
        let elsewhere = is_program.then(|| AvoidedCpus::new(plan.spec.cpus()));
        match Tracer::open(&plan, reused, observer) {
            Ok(tracer) => {
                Ok(Prepared { plan, claim, memory, isolated, elsewhere, tracer })
            }
            Err(why) => {
                drop(elsewhere);
                isolated.end(observer);
                Err(why)
            }
        }
    }

    /// Prepares and measures, one right after the other.
    ///
    /// # Errors
    /// Those of [`Claimed::prepare`] and [`Prepared::measure`].
    pub fn run(
        self,
        control: &Control,
        observer: &mut dyn Observer,
    ) -> Result<Recording, Error> {
        self.run_with(&mut ReusedTrace::default(), control, observer)
    }

    /// The same with the trace of the measurement before, which the next one can reuse.
    ///
    /// # Errors
    /// Those of [`Claimed::run`].
    pub fn run_with(
        self,
        reused: &mut ReusedTrace,
        control: &Control,
        observer: &mut dyn Observer,
    ) -> Result<Recording, Error> {
        self.prepare_with(reused, observer)?.measure_with(reused, control, observer)
    }
}
