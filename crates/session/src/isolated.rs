//! Settings that are changed for a session, and restored at its end.

use facts::Facts;
use isolate::{Isolation, IsolationOptions, Kind, RestoreOutcome};
use units::CpuSet;

use crate::error::Error;
use crate::event::{Event, Observer};

/// CPUs that are isolated until [`Isolated::end`], or until this is dropped, which is then not
/// reported. Signals must be handled until then: if one ends the process, the next run restores the
/// settings.
#[derive(Debug)]
pub struct Isolated(Option<Isolation>);

impl Isolated {
    /// Changes the requested settings, and reports refused ones.
    pub(crate) fn begin(
        options: Option<&IsolationOptions>,
        cpus: CpuSet,
        facts: &Facts,
        observer: &mut dyn Observer,
    ) -> Result<Self, Error> {
        let Some(options) = options else { return Ok(Self(None)) };
        let options = IsolationOptions { cpus: Some(cpus), ..options.clone() };
        let isolation = Isolation::begin(&options, facts)?;
        for left in isolation.left() {
            observer.event(Event::LeftBehind(left));
        }
        for why in isolation.refused() {
            observer.event(Event::Refused(why));
        }
        Ok(Self(Some(isolation)))
    }

    /// Restores all settings, and reports the outcome of each.
    pub fn end(self, observer: &mut dyn Observer) {
        match self.0.map(Isolation::end) {
            Some(Ok(returned)) => {
                returned.iter().for_each(|one| observer.event(Event::Returned(one)));
            }
            Some(Err(why)) => observer.event(Event::NotRestored(&why)),
            None => {}
        }
    }
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
