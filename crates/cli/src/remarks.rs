//! What a session reports, as messages on standard error.

use isolate::{RestoreOutcome, RestoredSetting};
use session::{Event, Observer};
use units::chain;

use crate::printing::say;

/// Prints what a session reports, but no progress.
pub(crate) struct Remarks {
    /// Whether nothing is printed but that settings are not restored.
    pub(crate) quiet: bool,
}

impl Observer for Remarks {
    fn event(&mut self, event: Event<'_>) {
        if !self.quiet || matches!(event, Event::NotRestored(_)) {
            text(event).iter().for_each(say);
        }
    }
}

/// The message about an event, if it has one.
pub(crate) fn text(event: Event<'_>) -> Option<String> {
    match event {
        Event::Waiting { cpus, why } => {
            Some(format!("waiting for CPU {cpus}: {}", chain(why)))
        }
        Event::LeftBehind(left) => {
            Some(format!("left behind by a killed run: {}", line(left)))
        }
        Event::TraceLeftBehind(folder) => {
            Some(format!("removed {}, left behind by a killed run", folder.display()))
        }
        Event::Refused(why) => Some(chain(why)),
        Event::NotRestored(why) => {
            Some(format!("{}; hint: noisefloor restore", chain(why)))
        }
        Event::Returned(returned) => match returned.outcome {
            RestoreOutcome::Restored
            | RestoreOutcome::Gone
            | RestoreOutcome::Needed(_) => None,
            RestoreOutcome::LeftAlone(_) | RestoreOutcome::Refused(_) => {
                Some(line(returned))
            }
        },
        Event::Measurement(measure::Notice::Doubt(doubt)) => Some(doubt.to_string()),
        Event::Measurement(_)
        | Event::Started
        | Event::Delay(_)
        | Event::Interval(_)
        | Event::Finished => None,
    }
}

/// What became of one setting, as a line.
pub(crate) fn line(returned: &RestoredSetting) -> String {
    let RestoredSetting { setting, old, outcome } = returned;
    match outcome {
        RestoreOutcome::Restored => format!("{setting}: restored to {old}"),
        RestoreOutcome::Gone => format!("{setting}: no longer exists; was {old}"),
        RestoreOutcome::LeftAlone(now) => format!(
            "{setting}: not restored to {old}: another program changed it to {now}"
        ),
        RestoreOutcome::Refused(why) => {
            format!("{setting}: failed to restore {old}: {why}")
        }
        RestoreOutcome::Needed(processes) => {
            let processes: Vec<String> =
                processes.iter().copied().map(isolate::describe_process).collect();
            format!(
                "{setting}: not restored to {old}: still needed by {}",
                processes.join(", ")
            )
        }
    }
}
