//! The C headers: made of the functions of room `capi`, committed, and checked.
//!
//! The making is an example of that room, so that what it needs is built for nobody else.

use crate::command;
use crate::workspace::Workspace;

/// Writes the headers, or with `--check` only says whether they are what would be written.
pub(crate) fn run(workspace: &Workspace, options: &[&str]) -> Result<(), String> {
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args(["run", "--locked", "--quiet"]);
    cargo.args(["--package", "capi", "--example", "header", "--"]).args(options);
    command::run(&mut cargo)
}
