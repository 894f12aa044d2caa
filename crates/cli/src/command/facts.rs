//! `facts`: kernel settings, each with the file it was read from.

use std::path::PathBuf;

use ::facts::{Facts, Root};
use recording::Recording;
use units::printable;

use crate::args::Output;
use crate::destination::create_folder;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print, print_json, say};

#[derive(Debug, clap::Args)]
pub(crate) struct FactsArgs {
    /// Read a directory written by --record instead of this machine.
    #[arg(long, value_name = "DIR", conflicts_with = "record")]
    pub(crate) root: Option<PathBuf>,
    /// Copy the files that facts are read from to DIR, without secrets.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
}

pub(crate) fn run(args: &FactsArgs, output: Output) -> Result<Outcome, Failure> {
    let root = match &args.root {
        Some(dir) => Root::tree(dir)?,
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
    if output.json {
        let (taken, tool) = (Recording::moment(), Recording::TOOL);
        let json = report::facts_json(&facts, &taken, tool).map_err(Failure::bug)?;
        print_json(&json)?;
    } else {
        print(&report::facts_text(&facts))?;
    }
    Ok(Outcome::Done)
}

/// On this machine, a malformed file makes one fact unknown; in a recorded tree it is an error.
fn refuse_garbage(facts: &Facts) -> Result<(), Failure> {
    let garbage = facts.garbage();
    let reasons = garbage.iter().filter_map(|entry| entry.value.as_ref().err());
    let mut reasons: Vec<String> =
        reasons.map(|why| printable(&why.to_string()).into_owned()).collect();
    // Several facts can come from one file.
    reasons.dedup();
    if reasons.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(reasons.join("\n")))
}
