//! The measurement that `repeat` and `try` repeat: parsed, and refused if it cannot be.

use std::ffi::OsString;

use crate::command::nohz::NohzCommand;
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
    let Some(is_saved) = is_saved(&command) else {
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

/// Whether a measurement is saved by an option of its own; `None` for other commands.
fn is_saved(command: &Command) -> Option<bool> {
    Some(match command {
        Command::Check(check) => check.place.output.is_some(),
        Command::Ticks(ticks) => ticks.place.output.is_some(),
        Command::Noise(noise) => noise.place.output.is_some(),
        Command::Latency(latency) => latency.place.output.is_some(),
        Command::Jitter(jitter) => jitter.output.is_some(),
        Command::Wakers(wakers) => wakers.output.is_some(),
        Command::Guests(guests) => guests.output.is_some(),
        Command::Slices(slices) => !slices.output.is_empty(),
        Command::Run(run) => run.output.is_some(),
        Command::Nohz(NohzCommand::Test(test)) => test.place.output.is_some(),
        Command::Nohz(NohzCommand::Stress(stress)) => stress.place.output.is_some(),
        Command::Facts(_)
        | Command::Restore
        | Command::Report(_)
        | Command::Compare(_)
        | Command::Repeat(_)
        | Command::Try(_)
        | Command::Lab(_)
        | Command::Generate(_) => return None,
    })
}
