//! The measurement that `repeat` and `try` repeat: parsed, and refused if it cannot be.

use std::ffi::OsString;

use crate::command::check::CheckArgs;
use crate::command::latency::LatencyArgs;
use crate::command::nohz::NohzCommand;
use crate::command::noise::NoiseArgs;
use crate::command::ticks::TicksArgs;
use crate::command::{Args, Command};
use crate::outcome::Failure;
use crate::repeating::measurement::Measurement;
use crate::usage::parse_arguments;

/// The commands whose recordings can be repeated.
const EXPECTED: &str = "check, noise, ticks, latency, jitter, slices, wakers, guests, nohz test, \
                        nohz stress or run";

/// Parses the words of a measurement; on an invalid option, prints the error and exits.
///
/// # Errors
/// A usage error: the command is no measurement, or has an option that `repeat` has.
pub(crate) fn parse(words: &[OsString]) -> Result<(Measurement, Command), Failure> {
    let name = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    if name.starts_with('-') {
        let text = format!("expected a measurement ({EXPECTED}) before '{name}'");
        return Err(Failure::usage(text));
    }
    let program = [OsString::from("noisefloor")];
    let arguments: Vec<OsString> = program.iter().chain(words).cloned().collect();
    let Args { command, output } = parse_arguments(&arguments);
    let Some((is_saved, _)) = is_saved(&command) else {
        let text = format!("'{name}' cannot be repeated: expected {EXPECTED}");
        return Err(Failure::usage(text));
    };
    let conflict = match (is_saved, output.json || output.series) {
        (true, _) => Some("-o"),
        (false, true) => Some("--json"),
        (false, false) => None,
    };
    if let Some(option) = conflict {
        let text = format!("{option} belongs before '{name}': it is of all runs");
        return Err(Failure::usage(text));
    }
    let name = if matches!(command, Command::Nohz(_)) { 2 } else { 1 };
    let is_run = matches!(command, Command::Run(_));
    Ok((Measurement { words: words.to_vec(), name, is_run }, command))
}

/// Whether a measurement is saved with -o, and appended to the history; `None` for other commands.
pub(crate) fn is_saved(command: &Command) -> Option<(bool, bool)> {
    let (output, saving) = match command {
        Command::Check(CheckArgs { place, .. })
        | Command::Ticks(TicksArgs { place, .. })
        | Command::Noise(NoiseArgs { place, .. })
        | Command::Latency(LatencyArgs { place, .. }) => (&place.output, place.saving),
        Command::Jitter(jitter) => (&jitter.output, jitter.saving),
        Command::Wakers(wakers) => (&wakers.output, wakers.saving),
        Command::Guests(guests) => (&guests.output, guests.saving),
        Command::Run(run) => (&run.output, run.saving),
        Command::Nohz(NohzCommand::Test(test)) => (&test.place.output, test.place.saving),
        Command::Nohz(NohzCommand::Stress(stress)) => {
            (&stress.place.output, stress.place.saving)
        }
        Command::Slices(slices) => {
            return Some((!slices.output.is_empty(), slices.saving.save));
        }
        Command::Facts(_)
        | Command::Restore
        | Command::Report(_)
        | Command::Compare(_)
        | Command::History(_)
        | Command::Repeat(_)
        | Command::Try(_)
        | Command::Lab(_)
        | Command::Generate(_) => return None,
    };
    Some((output.is_some(), saving.save))
}
