//! Every chore of this workspace: `cargo xtask COMMAND`.
#![forbid(unsafe_code)]

mod bytes;
mod ci;
mod circles;
mod command;
mod fuzz;
mod guest;
mod header;
mod layers;
mod priority;
mod program;
mod reasons;
mod rustc;
mod sources;
mod suite;
mod workspace;

use std::process::ExitCode;

use crate::workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask COMMAND
  ci        every check there is; what `make test` runs
  guest     build what the lab needs beside itself, into lab/ of the target directory:
            noisefloor-agent (static) and noisefloor-counter.so
            --tests       instead, the tests that also run in guests
  bytes     build what guests execute in another folder too, and compare
  header    write the C headers in crates/capi/include, from room capi
            --check       instead, fail where they are not what would be written
  layers    the house rules: who may know whom, sources, reasons for dependencies
  fuzz      build the fuzz targets and run each briefly
            --runs N      inputs for each target (default 300000)
            --seconds N   and at most so long (default 2)
            --target NAME only this one; again for another
            --seed N      other inputs than last time; 0 for any (default 1)
            --keep        learn: start from fuzz/corpus, and keep what is found there";

fn main() -> ExitCode {
    if rustc::is_asked_for() {
        return rustc::run();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("xtask: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result<(), String> {
    match words {
        ["ci"] => ci::run(&Workspace::read()?),
        ["guest"] => guest::run(&Workspace::read()?).map(|built| println!("{built}")),
        ["guest", "--tests"] => {
            guest::tests(&Workspace::read()?).map(|built| println!("{built}"))
        }
        ["bytes"] => {
            let workspace = Workspace::read()?;
            guest::run(&workspace)?;
            bytes::run(&workspace).map(|told| println!("{told}"))
        }
        ["header"] => header::run(&Workspace::read()?, &[]),
        ["header", "--check"] => header::run(&Workspace::read()?, &["--check"]),
        ["layers"] => {
            layers::run(&Workspace::read()?).map(|checked| println!("{checked}"))
        }
        ["fuzz", options @ ..] => {
            let plan = fuzz::Plan::parse(options)?;
            fuzz::run(&Workspace::read()?, &plan).map(|_| ())
        }
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("not a chore: '{}'\n{USAGE}", words.join(" "))),
    }
}
