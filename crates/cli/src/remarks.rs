//! What a session reports, as messages on standard error.

use isolate::{Fate, Returned};
use session::{Event, Observer};
use units::chain;

use crate::printing::say;

/// Prints what a session reports, but no progress.
pub(crate) struct Remarks {
    /// Whether nothing is printed.
    pub(crate) quiet: bool,
}

impl Observer for Remarks {
    fn event(&mut self, event: Event<'_>) {
        if !self.quiet {
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
        Event::Returned(returned) => match returned.fate {
            Fate::Restored | Fate::Gone | Fate::Needed(_) => None,
            Fate::LeftAlone(_) | Fate::Refused(_) => Some(line(returned)),
        },
        Event::Measurement(measure::Event::Doubt(doubt)) => Some(doubt.to_string()),
        Event::Measurement(_) | Event::Started | Event::Finished => None,
    }
}

/// What became of one setting, as a line.
pub(crate) fn line(returned: &Returned) -> String {
    let Returned { setting, old, fate } = returned;
    match fate {
        Fate::Restored => format!("{setting}: restored to {old}"),
        Fate::Gone => format!("{setting}: no longer exists; was {old}"),
        Fate::LeftAlone(now) => format!(
            "{setting}: not restored to {old}: another program changed it to {now}"
        ),
        Fate::Refused(why) => {
            format!("{setting}: failed to restore {old}: {why}")
        }
        Fate::Needed(processes) => {
            let processes: Vec<String> =
                processes.iter().copied().map(isolate::described).collect();
            format!(
                "{setting}: not restored to {old}: still needed by {}",
                processes.join(", ")
            )
        }
    }
}
