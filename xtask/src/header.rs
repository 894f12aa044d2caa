//! The C headers: generated from the functions of `capi` and `tif`, committed, and checked.
//!
//! The generator is an example of `capi`, so that its dependencies are built for tests only.

use std::process::Command;

use crate::program::Program;
use crate::workspace::Workspace;
use crate::{command, program};

/// The option with which the headers are compared and not written.
const CHECK: &str = "--check";

/// Builds the generator, and writes the headers, or with `--check` compares them with the generated
/// text.
pub(crate) fn run(workspace: &Workspace, options: &[&str]) -> Result<(), String> {
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args(["build", "--locked", "--quiet"]);
    let built = program::build(cargo.args(["--package", "capi", "--examples"]))?;
    command::run(Command::new(&generator(&built)?.file).args(options))
}

/// Compares the headers by the generator, which is one of these programs.
pub(crate) fn check(built: &[Program]) -> Result<(), String> {
    command::run(Command::new(&generator(built)?.file).arg(CHECK))
}

fn generator(built: &[Program]) -> Result<&Program, String> {
    let header = built.iter().find(|program| program.name == "header");
    header.ok_or_else(|| "cargo did not build the example header".to_owned())
}
