//! Clippy's lints, checked while the tests are compiled: a separate run of clippy would read and
//! analyse all code a second time.
//!
//! cargo calls `clippy-driver` instead of rustc for the crates of this workspace, as `cargo clippy`
//! does, which compiles nothing. It forwards its options in the variable that is used here.

use std::process::Command;

use crate::command;

/// The compiler that also checks lints.
const DRIVER: &str = "clippy-driver";
/// Its options, each followed by this text (`src/driver.rs` of clippy).
const OPTIONS: &str = "CLIPPY_ARGS";
const SEPARATOR: &str = "__CLIPPY_HACKERY__";

/// Makes a build fail at every warning of clippy; whether that is installed.
pub(crate) fn deny_warnings(cargo: &mut Command) -> bool {
    if !command::exists(&mut Command::new(DRIVER)) {
        return false;
    }
    let options = ["-D", "warnings"].map(|option| format!("{option}{SEPARATOR}"));
    cargo.env("RUSTC_WORKSPACE_WRAPPER", DRIVER).env(OPTIONS, options.concat());
    true
}
