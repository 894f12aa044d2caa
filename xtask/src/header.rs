//! The C headers: generated from the functions of `capi` and `tif`, committed, and checked.
//!
//! The generator is an example of `capi`, so that its dependencies are built for tests only.

use std::process::Command;

use crate::workspace::Workspace;
use crate::{command, program};

/// Writes the headers, or with `--check` compares them with the generated text.
pub(crate) fn run(workspace: &Workspace, options: &[&str]) -> Result<(), String> {
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args(["build", "--locked", "--quiet"]);
    // All packages, so that features are those of the tests and nothing is built twice.
    let built = program::build(cargo.args(["--workspace", "--examples"]))?;
    let header = built.into_iter().find(|program| program.name == "header");
    let header = header.ok_or("cargo did not build the example header")?;
    command::run(Command::new(header.file).args(options))
}
