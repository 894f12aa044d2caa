//! The last step: everything is ready for the measurement.

use isolate::{AvoidedCpus, Claim, ForeignClaim, LockedMemory};
use measure::Control;
use recording::{Code, Doubt, Recording};

use crate::error::Error;
use crate::event::Observer;
use crate::isolated::Isolated;
use crate::plan::Plan;
use crate::tracer::{ReusedTrace, Tracer};

/// A session that is ready to measure.
pub struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) tracer: Tracer,
    pub(crate) elsewhere: Option<AvoidedCpus>,
    pub(crate) isolated: Isolated,
    pub(crate) memory: Option<LockedMemory>,
    pub(crate) claim: Claim,
}

impl Prepared {
    /// Measures, attributes the result to the traced events, and restores all settings, even if the
    /// measurement fails.
    ///
    /// # Errors
    /// The measurement failed, or switches cannot be read.
    pub fn measure(
        self,
        control: &Control,
        observer: &mut dyn Observer,
    ) -> Result<Recording, Error> {
        self.measure_with(&mut ReusedTrace::default(), control, observer)
    }

    pub(crate) fn measure_with(
        self,
        reused: &mut ReusedTrace,
        control: &Control,
        observer: &mut dyn Observer,
    ) -> Result<Recording, Error> {
        let Self { plan, tracer, elsewhere, isolated, memory, claim } = self;
        let measured = tracer.measure(&plan, reused, control, observer);
        drop(elsewhere);
        let not_isolated = isolated.doubt();
        isolated.end(observer);
        drop(memory);
        let mut recording = measured?;
        recording.doubts.extend(not_isolated);
        recording.doubts.extend(strangers(&claim));
        Ok(recording)
    }
}

/// A doubt for each process of another user that claims one of the CPUs.
fn strangers(claim: &Claim) -> impl Iterator<Item = Doubt> {
    let text = |stranger: &ForeignClaim| {
        format!("{stranger}: if it measures there, each run disturbs the other")
    };
    let texts = claim.foreign().iter().map(text);
    texts.map(|text| Doubt::new(Code::ClaimedByOther, text))
}
