//! `facts`: kernel settings, each with the file it was read from.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ::facts::{Facts, Root};
use recording::Recording;
use units::printable;

use crate::args::{Output, ReportFiles};
use crate::destination::create_folder;
use crate::outcome::{Failure, Outcome};
use crate::printing::say;
use crate::reporting::{none, show};

#[derive(Debug, clap::Args)]
pub(crate) struct FactsArgs {
    /// Read a directory written by --record instead of this machine.
    #[arg(long, value_name = "DIR", conflicts_with = "record")]
    pub(crate) root: Option<PathBuf>,
    /// Copy the files that facts are read from to DIR, without secrets.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) written: ReportFiles,
}

pub(crate) fn run(args: &FactsArgs, output: Output) -> Result<Outcome, Failure> {
    let files = args.written.files()?;
    let output = output.beside(files.clone())?;
    let root = match &args.root {
        Some(dir) => Root::directory(dir)?,
        None => Root::live(),
    };
    if let Some(dir) = &args.record {
        let files = ::facts::record(&root, dir, &create_folder(dir)?)?;
        if !output.quiet {
            say(format_args!("{files} files copied to {}", dir.display()));
        }
    }
    let facts = Facts::read(&root);
    if !root.is_live() {
        refuse_garbage(&facts)?;
    }
    let json = || report::facts_json(&facts, &Recording::moment(), Recording::TOOL);
    show(output, &files, json, || report::facts_document(&facts), none)?;
    Ok(Outcome::Done)
}

/// On this machine, a malformed file makes one fact unknown; in a recorded tree it is an error.
fn refuse_garbage(facts: &Facts) -> Result<(), Failure> {
    let garbage = facts.garbage();
    let reasons = garbage.iter().filter_map(|entry| entry.value.as_ref().err());
    let reasons = reasons.map(|why| printable(&why.to_string()).into_owned());
    // Several facts can come from one file.
    let mut seen = BTreeSet::new();
    let reasons: Vec<String> = reasons.filter(|why| seen.insert(why.clone())).collect();
    if reasons.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(reasons.join("\n")))
}
