//! A lease of changed settings: either all of the requested ones are changed, or none. Of the affinities
//! of all interrupts, those are changed that the kernel permits to be.
//!
//! They are recorded in the journal ([`Lease`]) and restored at the end. Each value is read back
//! after the write, since the kernel uses only the lower 32 bits of a number in plain debugfs files
//! (`debugfs_create_u32`), and sysctls may round or limit it.
//!
//! Changes by others in the meantime are not detected until the end; they are then reported and
//! left alone.

use facts::Facts;
use units::Cause;

use crate::error::{Error, Kind};
use crate::settings::change::{Change, To};
use crate::settings::lease::{Lease, state_path};
use crate::settings::restoration::RestoredSetting;
use crate::thread::affinities::Affinities;
use crate::tuning::Tuning;
use crate::tuning::tunables::{Request, requests};

/// Changed settings, until this is dropped.
#[derive(Debug)]
pub struct TuningLease {
    lease: Lease,
    // Dropped after the lease: restoring a partition resets affinities, which this sets again.
    _affinities: Option<Affinities>,
    left: Vec<RestoredSetting>,
}

impl TuningLease {
    /// Changes the settings in order.
    ///
    /// # Errors
    /// Those of [`crate::may_tune`]; `Kind::Journal` if the change cannot be recorded; `Kind::Taken`
    /// if another run has changed one of the settings;
    /// `Kind::System` if the kernel rejects a value or changes it. All settings are then restored.
    pub fn begin(tunings: &[Tuning], facts: &Facts) -> Result<Self, Error> {
        let requests = requests(tunings, facts)?;
        let makes_partition = requests.iter().any(Request::makes_group);
        let _affinities = makes_partition.then(Affinities::now);
        let (mut lease, left) = Lease::begin(&state_path()?)?;
        // If one is rejected, dropping the lease restores those before it.
        for request in &requests {
            carry_out(&mut lease, request)?;
        }
        requests.iter().try_for_each(check)?;
        Ok(Self { lease, _affinities, left })
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

    /// Leaves the settings as they are, until the next boot.
    ///
    /// # Errors
    /// `Kind::Journal` if the journal cannot be read or written; the settings are then restored.
    pub fn leave(self) -> Result<(), Error> {
        self.lease.leave()
    }
}

/// Makes the changes of a request.
fn carry_out(lease: &mut Lease, request: &Request) -> Result<(), Error> {
    let outcomes = lease.set_alone(&request.changes)?;
    let is_any_made = outcomes.iter().any(Result::is_ok);
    match outcomes.into_iter().find_map(Result::err) {
        Some(why) if !(request.may_be_partial && is_any_made) => Err(why),
        _ => Ok(()),
    }
}

/// Checks whether the kernel has made the changes.
fn check(request: &Request) -> Result<(), Error> {
    if request.may_be_partial {
        return Ok(());
    }
    for Change { setting, to } in &request.changes {
        // Of a cgroup, the calls that change it have succeeded.
        let To::Value(value) = to else { continue };
        if !setting.is_file() {
            continue;
        }
        let why: Cause = match setting.read() {
            Ok(shown) if is_same(&shown, value) => continue,
            Ok(shown) => format!("the kernel made it {shown}").into(),
            Err(error) => error.into(),
        };
        let text = format!("failed to set {setting} = {value}");
        return Err(Error::new(Kind::System, text).caused_by(why));
    }
    Ok(())
}

/// Whether two values are the same, except for the spaces between their words.
fn is_same(shown: &str, value: &str) -> bool {
    shown.split_whitespace().eq(value.split_whitespace())
}
