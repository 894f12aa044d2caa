//! Settings that are changed for a session, and restored at its end.

use facts::Facts;
use isolate::{Isolation, IsolationOptions, Kind, RestoreOutcome};
use recording::{Code, Doubt};
use units::{CpuSet, chain};

use crate::error::Error;
use crate::event::{Event, Observer};
use crate::plan::IsolationPlan;

/// The number of failures that an error or a doubt describes.
const LISTED: usize = 3;

/// CPUs that are isolated until [`Isolated::end`], or until this is dropped, which is then not
/// reported. Signals must be handled until then: if one ends the process, the next run restores the
/// settings.
#[derive(Debug)]
pub struct Isolated {
    cpus: CpuSet,
    isolation: Option<Isolation>,
}

impl Isolated {
    /// Changes the requested settings, and reports refused ones.
    ///
    /// # Errors
    /// The CPUs are not available; `NotIsolated` if isolation is required and a setting was refused:
    /// all settings are restored.
    pub(crate) fn begin(
        plan: Option<&IsolationPlan>,
        cpus: CpuSet,
        facts: &Facts,
        observer: &mut dyn Observer,
    ) -> Result<Self, Error> {
        let Some(plan) = plan else { return Ok(Self { cpus, isolation: None }) };
        let options =
            IsolationOptions { cpus: Some(cpus.clone()), ..plan.options.clone() };
        let isolation = Isolation::begin(&options, facts)?;
        for left in isolation.left() {
            observer.event(Event::LeftBehind(left));
        }
        if plan.is_required && !isolation.refused().is_empty() {
            let failures = isolation.refused();
            let needs_root = failures.iter().any(|why| why.kind() == Kind::Privilege);
            let why = list(failures);
            Self { cpus: cpus.clone(), isolation: Some(isolation) }.end(observer);
            return Err(Error::NotIsolated { cpus, why, needs_root });
        }
        for why in isolation.refused() {
            observer.event(Event::Refused(why));
        }
        Ok(Self { cpus, isolation: Some(isolation) })
    }

    /// The doubt about a measurement whose CPUs are not isolated as requested.
    pub fn doubt(&self) -> Option<Doubt> {
        let failures = self.isolation.as_ref()?.refused();
        let text = format!(
            "CPU {} was not isolated as requested: {}; hint: --require makes that an error",
            self.cpus,
            list(failures)
        );
        (!failures.is_empty()).then(|| Doubt::new(Code::NotIsolated, text))
    }

    /// Restores all settings, and reports the outcome of each.
    pub fn end(self, observer: &mut dyn Observer) {
        match self.isolation.map(Isolation::end) {
            Some(Ok(returned)) => {
                returned.iter().for_each(|one| observer.event(Event::Returned(one)));
            }
            Some(Err(why)) => observer.event(Event::NotRestored(&why)),
            None => {}
        }
    }
}

/// The first failures as text, and the number of the others.
fn list(failures: &[isolate::Error]) -> String {
    let shown = failures.iter().take(LISTED).map(|why| chain(why));
    let more = failures.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("and {more} more"));
    shown.chain(more).collect::<Vec<_>>().join("; ")
}

/// Restores settings that were left behind by killed runs, and reports them.
pub fn restore_left_behind(observer: &mut dyn Observer) {
    match isolate::restore() {
        Ok(returned) => {
            let left = returned
                .iter()
                .filter(|one| !matches!(one.outcome, RestoreOutcome::Needed(_)));
            left.for_each(|left| observer.event(Event::LeftBehind(left)));
        }
        // Another user's home (`sudo -u` preserves HOME) has no journal of this user.
        Err(why) if why.kind() == Kind::Privilege => {}
        Err(why) => observer.event(Event::Refused(&why)),
    }
}
