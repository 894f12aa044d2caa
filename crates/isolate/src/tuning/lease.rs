//! A lease of changed scheduler settings: either all of the requested ones are changed, or none.
//!
//! They are recorded in the journal ([`Lease`]) and restored at the end. Each value is read back
//! after the write, since the kernel uses only the lower 32 bits of a number in plain debugfs files
//! (`debugfs_create_u32`).
//!
//! Changes by others in the meantime are not detected until the end; they are then reported and
//! left alone.

use facts::Facts;
use units::Cause;

use crate::error::{Error, Kind};
use crate::settings::change::Change;
use crate::settings::lease::{Lease, RestoredSetting, state_path};
use crate::tuning::Tuning;
use crate::tuning::tunables::settings;

/// Changed scheduler settings, until this is dropped.
#[derive(Debug)]
pub struct TuningLease {
    lease: Lease,
    left: Vec<RestoredSetting>,
}

impl TuningLease {
    /// Changes the settings in order.
    ///
    /// # Errors
    /// Those of [`crate::may_tune`]; `Kind::Journal` if the change cannot be recorded;
    /// `Kind::System` if the kernel rejects a value or changes it. All settings are then restored.
    pub fn begin(tunings: &[Tuning], facts: &Facts) -> Result<Self, Error> {
        let settings = settings(tunings, facts)?;
        let (mut lease, left) = Lease::begin(&state_path()?)?;
        let pairs = settings.iter().zip(tunings);
        let changes = pairs.map(|(setting, to)| Change::new(setting.clone(), to.value()));
        // If one is rejected, dropping the lease restores those before it.
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

    /// Settings left behind by a killed run, with their restore outcomes.
    pub fn left(&self) -> &[RestoredSetting] {
        &self.left
    }

    /// Restores all settings that no other run needs; returns their outcomes.
    ///
    /// # Errors
    /// `Kind::Journal` if the journal can no longer be read.
    pub fn end(self) -> Result<Vec<RestoredSetting>, Error> {
        self.lease.end()
    }
}
