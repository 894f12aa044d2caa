//! Runs other programs; a failure becomes an error text.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// The cargo that runs this program, so that one toolchain does everything.
pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// Runs a program to its end; its output is not captured.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let name = name(command);
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
}

/// The standard output of a program.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = name(command);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{name}: output is not UTF-8"))
}

/// Whether a program is installed: whether `--version` succeeds.
pub(crate) fn exists(command: &mut Command) -> bool {
    let quiet = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn name(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let file = program.rsplit('/').next().unwrap_or(&program).to_owned();
    match command.get_args().next() {
        Some(first) => format!("{file} {}", first.to_string_lossy()),
        None => file,
    }
}
