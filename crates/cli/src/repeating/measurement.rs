//! A measurement as a command line: `noise -c 1 -d 10`, `run ./bench`.
//!
//! Each run is a process of its own, noisefloor started again: so all options mean the same as they do
//! alone, and a run that crashes or is killed is one run.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process;

use crate::command::Command;
use crate::command::nohz::NohzCommand;
use crate::command_line;
use crate::outcome::Failure;

/// The commands whose recordings can be repeated.
const EXPECTED: &str = "check, noise, ticks, latency, jitter, slices, wakers, guests, nohz test, \
                        nohz stress or run";

/// A measurement to repeat.
#[derive(Debug)]
pub(crate) struct Measurement {
    words: Vec<OsString>,
    /// The number of words of the command's name.
    name: usize,
    parsed: Command,
}

impl Measurement {
    /// Parses the words of a measurement; on an invalid option, prints the error and exits.
    ///
    /// # Errors
    /// A usage error: the command is no measurement, or has an option that `repeat` has.
    pub(crate) fn parse(words: &[OsString]) -> Result<Self, Failure> {
        let name = words.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        if name.starts_with('-') {
            let text = format!("expected a measurement ({EXPECTED}) before '{name}'");
            return Err(Failure::usage(text));
        }
        let parsed = command_line::parse_words(words);
        let Some(is_saved) = is_saved(&parsed.command) else {
            let text = format!("'{name}' cannot be repeated: expected {EXPECTED}");
            return Err(Failure::usage(text));
        };
        let output = parsed.output;
        let conflict = match (is_saved, output.json || output.series) {
            (true, _) => Some("-o"),
            (false, true) => Some("--json"),
            (false, false) => None,
        };
        if let Some(option) = conflict {
            let text = format!("{option} belongs before '{name}': it is of all runs");
            return Err(Failure::usage(text));
        }
        let is_nohz = matches!(parsed.command, Command::Nohz(_));
        let name = if is_nohz { 2 } else { 1 };
        Ok(Self { words: words.to_vec(), name, parsed: parsed.command })
    }

    /// Whether it runs a program of the user.
    pub(crate) fn is_run(&self) -> bool {
        matches!(self.parsed, Command::Run(_))
    }

    /// The measurement with its options.
    pub(crate) fn parsed(&self) -> &Command {
        &self.parsed
    }

    /// The words, as the user wrote them.
    pub(crate) fn text(&self) -> String {
        let words = self.words.iter().map(|word| word.to_string_lossy());
        words.collect::<Vec<_>>().join(" ")
    }

    /// The process of one run, which saves its recording to that file.
    pub(crate) fn command(&self, saved_to: &Path) -> process::Command {
        let (name, options) = self.words.split_at(self.name);
        // The link refers to this program even if its file was replaced.
        let mut command = process::Command::new("/proc/self/exe");
        command.arg0("noisefloor").arg("--quiet").args(name);
        command.arg("-o").arg(saved_to).args(options);
        command
    }
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
