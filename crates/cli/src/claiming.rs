//! CPUs on which no other noisefloor measures at the same time.

use std::time::{Duration, Instant};

use isolate::{Claim, Kind};
use measure::Spec;
use recording::{Code, Doubt, Recording};
use units::{CpuSet, chain};

use crate::outcome::Failure;
use crate::printing::say;

/// Interval between two attempts.
const TRY: Duration = Duration::from_millis(100);
/// Time after which a wait is reported.
const REPORT: Duration = Duration::from_secs(1);

/// What to do if another noisefloor measures on one of the CPUs.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Claiming {
    /// Wait until no other noisefloor measures on these CPUs, instead of failing.
    #[arg(long)]
    wait: bool,
}

/// The CPUs that this process has claimed, and other claims on them.
pub(crate) struct Claimed(Claim);

impl Claimed {
    /// Adds a doubt for each process of another user that claims one of them.
    pub(crate) fn doubt(&self, recording: &mut Recording) {
        let text = |stranger: &isolate::Stranger| {
            format!("{stranger}: if it measures there, each run disturbs the other")
        };
        let doubts = self.0.strangers().iter().map(text);
        let doubts = doubts.map(|text| Doubt::new(Code::ClaimedByOther, text));
        recording.doubts.extend(doubts);
    }
}

impl Claiming {
    /// Claims CPUs.
    pub(crate) fn claim(self, cpus: &CpuSet, quiet: bool) -> Result<Claimed, Failure> {
        let (began, mut is_reported) = (Instant::now(), false);
        loop {
            match isolate::claim(cpus) {
                Err(why) if self.wait && why.kind() == Kind::Taken => {
                    if !is_reported && began.elapsed() >= REPORT {
                        is_reported = true;
                        report(quiet, cpus, &why);
                    }
                    std::thread::sleep(TRY);
                }
                claim => return Ok(Claimed(claim?)),
            }
        }
    }

    /// Claims the CPUs of a measurement; an error if its threads could not run on one of them.
    pub(crate) fn claim_for(
        self,
        spec: &Spec,
        cpus: &CpuSet,
        quiet: bool,
    ) -> Result<Claimed, Failure> {
        let claimed = self.claim(cpus, quiet)?;
        measure::refuse_occupied(spec)?;
        Ok(claimed)
    }
}

fn report(quiet: bool, cpus: &CpuSet, why: &isolate::Error) {
    if !quiet {
        say(format_args!("waiting for CPU {cpus}: {}", chain(why)));
    }
}
