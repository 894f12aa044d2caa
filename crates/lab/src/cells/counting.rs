//! Whether this machine's QEMU loads the counter: tested once, before anything boots.
//!
//! That depends on the versions of the plugin interface that QEMU supports
//! (`crates/counter/src/qemu/interface.rs`), and on how it was built: without plugins the option does
//! not exist. So it is tested, with QEMU's empty machine, which takes a fraction of a second.

use std::fs;
use std::os::unix::fs::symlink;

use experiments::CellPlan;
use kernels::Architecture;
use recording::Mode;

use crate::cells::lab::{Counting, Emulator, Lab};
use crate::cells::run::Run;
use crate::error::{Error, failed};
use crate::guest::boot::{COMPLAINTS, Deadlines, End, Guest, NO_ANSWER};
use crate::guest::command_line::{self, COUNTER};

/// The counter's output when it is loaded as a test.
const LOADED: &str = "noisefloor-counter: can be loaded";

impl Lab {
    /// Determines whether the QEMU of that architecture loads the counter, if a plan is to be counted, and
    /// refuses plans that have no result without it. All are of that architecture.
    ///
    /// # Errors
    /// `Kind::Qemu` with the plan, QEMU's reason and a remedy; `Kind::Cache`; `Kind::Interrupted`.
    pub(crate) fn probe_counter(
        &self,
        plans: &[&CellPlan],
        architecture: Architecture,
        run: &Run<'_>,
    ) -> Result<(), Error> {
        if plans.is_empty() {
            return Ok(());
        }
        if plans.iter().any(|plan| plan.mode == Mode::Exact) {
            self.try_counter(architecture, run)?;
        }
        let emulator = self.emulator(architecture)?;
        let Some(reason) = emulator.uncounted() else { return Ok(()) };
        let version = &emulator.qemu.version;
        plans.iter().try_for_each(|plan| refuse(plan, version, reason))
    }

    /// Determines whether the QEMU of that architecture loads the counter, once.
    ///
    /// # Errors
    /// As [`Self::probe_counter`].
    pub(crate) fn try_counter(
        &self,
        architecture: Architecture,
        run: &Run<'_>,
    ) -> Result<(), Error> {
        let emulator = self.emulator(architecture)?;
        if emulator.counting.get().is_none() {
            let answer = self.load_counter(emulator, run)?;
            let _ = emulator.counting.set(answer); // else another thread has set the same
        }
        Ok(())
    }

    fn load_counter(
        &self,
        emulator: &Emulator,
        run: &Run<'_>,
    ) -> Result<Counting, Error> {
        let place = self.cache.workplace()?;
        let file = place.path().join(COUNTER);
        symlink(&self.parts.counter, &file).map_err(failed(&file))?;
        let each = run.deadline;
        let deadlines =
            Deadlines { boot: each, work: each, leave: each, missing: NO_ANSWER };
        let arguments = command_line::probe();
        let guest = Guest::start(&emulator.qemu, &arguments, place.path(), None)?;
        let ended = guest.run(deadlines, run.stop);
        let said = fs::read(place.path().join(COMPLAINTS)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        if said.lines().any(|line| line.contains(LOADED)) {
            return Ok(Counting::Loaded);
        }
        match ended {
            End::Stopped => Err(Error::Interrupted),
            End::Failed(why) if !said.trim().is_empty() => Ok(Counting::Refused(why)),
            // A QEMU that hangs, or fails without a message, has not refused the counter.
            End::Overdue(why) | End::Failed(why) => Err(Error::ProbeCounter(why)),
            End::Off(_) => {
                let reason = "QEMU ended as if there were no plugin";
                Ok(Counting::Refused(reason.to_owned()))
            }
        }
    }
}

impl Emulator {
    /// Why QEMU does not load the counter; `None` if it does.
    pub(crate) fn uncounted(&self) -> Option<&str> {
        match self.counting.get() {
            Some(Counting::Loaded) => None,
            Some(Counting::Refused(reason)) => Some(reason),
            None => Some("it was not tried"),
        }
    }
}

/// Refuses a plan that has no result without the counter: CPUs share one clock, so only the counter
/// separates their instructions.
fn refuse(plan: &CellPlan, version: &str, reason: &str) -> Result<(), Error> {
    let cpus = plan.machine.cpus;
    if plan.mode != Mode::Exact || cpus == 1 {
        return Ok(());
    }
    let (cell, version) = (plan.name.clone(), version.to_owned());
    Err(Error::NoCounter(cell, cpus, version, reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::guest::request::plan;

    /// Check that without the counter exact cells of several CPUs are refused, with QEMU's
    /// reason and both ways out, and no others.
    #[test]
    fn refusals() {
        let refused = |mode, cpus| refuse(&plan(mode, cpus), "12.0", "no such option");
        assert!(refused(Mode::Exact, 1).is_ok());
        assert!(refused(Mode::Timed, 2).is_ok());
        let error = refused(Mode::Exact, 2).unwrap_err();
        assert_eq!(error.kind(), Kind::Qemu);
        let text = error.to_string();
        assert!(text.starts_with("p idle needs 2 CPUs"), "{text}");
        assert!(text.contains("QEMU 12.0 does not load it (no such option)"), "{text}");
        assert!(text.contains("qemu-system-x86") && text.ends_with("cpus=1"), "{text}");
    }
}
