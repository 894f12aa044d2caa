//! The measurement that `repeat` and `try` repeat: parsed, and refused if it cannot be.

use std::ffi::OsString;

use crate::command::{Args, Command, MEASUREMENTS};
use crate::outcome::Failure;
use crate::repeating::measurement::Measurement;
use crate::usage::parse_arguments;

/// Parses the words of a measurement; on an invalid option, prints the error and exits.
///
/// # Errors
/// A usage error: the command is no measurement, or has an option that `repeat` has.
pub(crate) fn parse(words: &[OsString]) -> Result<(Measurement, Command), Failure> {
    let name = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
    if name.starts_with('-') {
        let text = format!("expected a measurement ({MEASUREMENTS}) before '{name}'");
        return Err(Failure::usage(text));
    }
    let program = [OsString::from("noisefloor")];
    let arguments: Vec<OsString> = program.iter().chain(words).cloned().collect();
    let Args { command, output } = parse_arguments(&arguments);
    let Some((is_saved, _)) = command.is_saved() else {
        let text = format!("'{name}' cannot be repeated: expected {MEASUREMENTS}");
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
