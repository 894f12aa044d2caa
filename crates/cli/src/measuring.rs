//! What the measuring commands share: which CPUs, where to save, how to tell.

use std::path::Path;

use facts::{Facts, Root};
use measure::{Spec, Watch};
use recording::Recording;
use rustix::fs::{Access, access};
use stats::Limits;
use units::CpuSet;

use crate::args::{Output, Where};
use crate::outcome::{Failure, Outcome};
use crate::terminal::{Terminal, print};

/// `isolate::choose` for CPUs to run on, `isolate::watch` for CPUs to look at.
type Choose = fn(Option<&CpuSet>, &Facts) -> Result<CpuSet, isolate::Error>;

/// What a measuring command begins with: this machine's facts and the CPUs to measure.
pub(crate) struct Place {
    pub(crate) facts: Facts,
    pub(crate) cpus: CpuSet,
}

impl Place {
    /// Reads the facts, and refuses CPUs and files that cannot be had before anything is
    /// measured. `choose` says which CPUs those asked for are.
    pub(crate) fn find(asked: &Where, choose: Choose) -> Result<Self, Failure> {
        if let Some(file) = &asked.output {
            refuse_unwritable("-o", file)?;
        }
        let facts = Facts::read(&Root::live());
        let cpus = choose(asked.cpus.as_ref(), &facts)?;
        Ok(Self { facts, cpus })
    }

    /// Measures, and takes the progress line away.
    pub(crate) fn measure(
        &self,
        spec: &Spec,
        terminal: &mut Terminal,
    ) -> Result<Recording, Failure> {
        let recording = measure::run(spec, &self.facts, terminal as &mut dyn Watch);
        terminal.clear();
        Ok(recording?)
    }
}

/// A run of an hour must not end with "permission denied".
pub(crate) fn refuse_unwritable(option: &str, file: &Path) -> Result<(), Failure> {
    let refuse = |why: &dyn std::fmt::Display| {
        Err(Failure::usage(format!("{option} {}: {why}", file.display())))
    };
    if file.is_dir() {
        return refuse(&"is a directory");
    }
    let parent = recording::folder(file);
    match access(parent, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Ok(()),
        Err(error) => refuse(&format_args!("{}: {error}", parent.display())),
    }
}

/// The same for a file that is written as it is, not replaced: it may be one that is there,
/// or a device.
pub(crate) fn refuse_unwritable_in_place(
    option: &str,
    file: &Path,
) -> Result<(), Failure> {
    if !file.exists() || file.is_dir() {
        return refuse_unwritable(option, file);
    }
    access(file, Access::WRITE_OK)
        .map_err(|why| Failure::usage(format!("{option} {}: {why}", file.display())))
}

/// Saves what was measured where that was asked, tells it, and says how it ended. What
/// cannot be saved is told all the same.
pub(crate) fn finish(
    recording: &Recording,
    asked: &Where,
    output: Output,
    text: impl FnOnce() -> String,
) -> Result<Outcome, Failure> {
    let saved = asked.output.as_deref().map(|file| recording.save(file));
    show(recording, output, text)?;
    saved.transpose()?;
    let grave = recording.doubts.iter().any(recording::Doubt::is_grave);
    Ok(if grave { Outcome::Doubtful } else { Outcome::Done })
}

/// Prints a recording as JSON, or the text given.
pub(crate) fn show(
    recording: &Recording,
    output: Output,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if output.json {
        let json = ::report::json(recording, output.series).map_err(Failure::bug)?;
        print(&(json + "\n"))?;
    } else {
        print(&text())?;
    }
    Ok(())
}

/// Holds what was measured against the limits given, unless it ended badly already.
pub(crate) fn judge(outcome: Outcome, recording: &Recording, limits: Limits) -> Outcome {
    let exceeded = ::report::exceeded(recording, &limits);
    for line in &exceeded {
        eprintln!("noisefloor: {line}");
    }
    match outcome {
        Outcome::Done if !exceeded.is_empty() => Outcome::Exceeded,
        other => other,
    }
}
