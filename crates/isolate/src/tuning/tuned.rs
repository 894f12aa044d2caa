//! The scheduler's settings being other ones for a while: all that are asked for, or none.
//!
//! They go through the journal ([`Lease`]) and are given back at the end, however that is. What
//! the kernel then shows is what counts: it takes only the lower 32 bits of a number where its
//! file is one of debugfs's plain ones (`debugfs_create_u32`).
//!
//! Cannot see somebody else who changes one meanwhile; at the end that is told, and stays.

use facts::Facts;
use units::Cause;

use crate::error::{Error, Kind};
use crate::settings::change::Change;
use crate::settings::lease::{Lease, Returned, state_path};
use crate::tuning::Tuning;
use crate::tuning::tunables::settings;

/// Settings of the scheduler that are changed, until this is dropped.
#[derive(Debug)]
pub struct Tuned {
    lease: Lease,
    left: Vec<Returned>,
}

impl Tuned {
    /// Changes them in that order.
    ///
    /// # Errors
    /// Those of [`crate::may_tune`]; `Kind::Journal` where it could not be written down;
    /// `Kind::System` where the kernel does not take a value, or makes another one of it. All
    /// is as it was then.
    pub fn begin(tunings: &[Tuning], facts: &Facts) -> Result<Self, Error> {
        let settings = settings(tunings, facts)?;
        let (mut lease, left) = Lease::begin(&state_path()?)?;
        let pairs = settings.iter().zip(tunings);
        let changes = pairs.map(|(setting, to)| Change::new(setting.clone(), to.value()));
        // What was changed before one is refused is given back with the lease.
        lease
            .set(&changes.collect::<Vec<_>>())?
            .into_iter()
            .collect::<Result<(), _>>()?;
        for (setting, tuning) in settings.iter().zip(tunings) {
            let value = tuning.value();
            let why: Cause = match setting.read() {
                Ok(shown) if shown == value => continue,
                Ok(shown) => format!("the kernel made it {shown}").into(),
                Err(error) => error.into(),
            };
            let text = format!("failed to set {setting} = {value}");
            return Err(Error::new(Kind::System, text).caused_by(why));
        }
        Ok(Self { lease, left })
    }

    /// What a killed run had left, and what became of it.
    pub fn left(&self) -> &[Returned] {
        &self.left
    }

    /// Puts everything back that no other run needs; what became of it.
    ///
    /// # Errors
    /// `Kind::Journal` where the journal cannot be read any more.
    pub fn end(self) -> Result<Vec<Returned>, Error> {
        self.lease.end()
    }
}
