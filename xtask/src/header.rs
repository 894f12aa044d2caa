//! The C headers: made of the functions of room `capi`, committed, and checked.
//!
//! The program that makes them is an example of that room, so that what it needs is built for
//! tests only.

use std::process::Command;

use crate::workspace::Workspace;
use crate::{command, program};

/// Writes the headers, or with `--check` only says whether they are what would be written.
pub(crate) fn run(workspace: &Workspace, options: &[&str]) -> Result<(), String> {
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args(["build", "--locked", "--quiet"]);
    // All packages, whose features together are those of the tests: nothing is built twice.
    let built = program::build(cargo.args(["--workspace", "--examples"]))?;
    let header = built.into_iter().find(|program| program.name == "header");
    let header = header.ok_or("cargo did not build the example header")?;
    command::run(Command::new(header.file).args(options))
}
