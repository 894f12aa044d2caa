//! The compiler of the tests' build, which also checks lints and documentation: separate runs of
//! clippy and of `cargo doc` would read and analyse all code a second and a third time.
//!
//! cargo calls this program instead of rustc for the crates of this workspace. It calls
//! `clippy-driver`, as `cargo clippy` does, which compiles nothing; and then rustdoc, with the same
//! crates and options.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::workspace::Workspace;
use crate::{command, guest};

/// The compiler that also checks lints.
const CLIPPY: &str = "clippy-driver";
/// Its options, each followed by this text (`src/driver.rs` of clippy).
const OPTIONS: &str = "CLIPPY_ARGS";
const SEPARATOR: &str = "__CLIPPY_HACKERY__";
/// The arguments of rustc that rustdoc does not have, or that mean something else there.
const OF_RUSTC: [&str; 4] = ["-C", "--emit=", "--json=", "--test"];
/// Set if cargo calls this program, to the folder for documentation.
const VARIABLE: &str = "NOISEFLOOR_XTASK_DOCUMENTS";

/// Makes a build fail at every warning of clippy, if that is installed, and of rustdoc.
pub(crate) fn check_all(
    cargo: &mut Command,
    workspace: &Workspace,
) -> Result<(), String> {
    // The build may replace this program.
    let copy = workspace.target.join("tmp/compiler");
    let own = env::current_exe().map_err(|error| format!("xtask: {error}"))?;
    guest::put(&own, &copy)?;
    cargo.env("RUSTC_WORKSPACE_WRAPPER", copy);
    cargo.env(VARIABLE, workspace.target.join("tmp/documentation"));
    if has_clippy() {
        let options = ["-D", "warnings"].map(|option| format!("{option}{SEPARATOR}"));
        cargo.env(OPTIONS, options.concat());
    }
    Ok(())
}

/// Whether clippy is installed.
pub(crate) fn has_clippy() -> bool {
    command::exists(&mut Command::new(CLIPPY))
}

/// Whether cargo called this program instead of rustc.
pub(crate) fn is_asked_for() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Compiles as cargo's arguments say, and documents the result.
pub(crate) fn run() -> ExitCode {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let Some((rustc, arguments)) = words.split_first() else {
        eprintln!("xtask: {VARIABLE} is set, but no compiler is named");
        return ExitCode::FAILURE;
    };
    let mut compiler = match env::var_os(OPTIONS) {
        Some(_) => Command::new(CLIPPY),
        None => Command::new(rustc),
    };
    compiler.args(env::var_os(OPTIONS).and(Some(rustc))).args(arguments);
    let folder = env::var_os(VARIABLE).unwrap_or_default();
    let rustdoc = rustdoc(arguments, Path::new(&folder));
    let failed = [Some(compiler), rustdoc].into_iter().flatten().find_map(failure);
    failed.unwrap_or(ExitCode::SUCCESS)
}

/// Runs a program; its exit code if it fails.
fn failure(mut command: Command) -> Option<ExitCode> {
    match command.status() {
        Ok(status) => {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            (!status.success()).then(|| code.map_or(ExitCode::FAILURE, ExitCode::from))
        }
        Err(error) => {
            let program = Path::new(command.get_program()).display();
            eprintln!("xtask: {program}: {error}");
            Some(ExitCode::FAILURE)
        }
    }
}

/// The command that documents a crate or program, if rustc compiles its unit tests with these
/// arguments: each of them has those, while itself it may be compiled for guests only.
fn rustdoc(arguments: &[OsString], folder: &Path) -> Option<Command> {
    let is_test = arguments.iter().any(|word| word == "--test");
    let of = |root: &str| arguments.iter().any(|word| Path::new(word).ends_with(root));
    let mut command = Command::new("rustdoc");
    match (of("src/lib.rs"), of("src/main.rs")) {
        (true, _) if is_test => command.arg("--out-dir").arg(folder.join("crates")),
        // As cargo does. A crate may have the same name.
        (_, true) if is_test => {
            command.arg("--document-private-items");
            command.arg("--out-dir").arg(folder.join("programs"))
        }
        _ => return None,
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.to_string_lossy();
        if text == "-C" || text == "--out-dir" {
            rest.next();
        } else if !OF_RUSTC.iter().any(|own| text.starts_with(own)) {
            command.arg(argument);
        }
    }
    command.args(["-D", "warnings"]);
    Some(command)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    /// Check that the options of code generation are left out, and that crates are documented as their
    /// users see them, but programs completely.
    #[test]
    fn arguments_of_rustdoc() {
        let of = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let command = rustdoc(&words, Path::new("/d"))?;
            let words: Vec<&OsStr> = command.get_args().collect();
            Some(words.join(OsStr::new(" ")).into_string().unwrap())
        };
        let line = "--crate-name units crates/units/src/lib.rs --json=artifacts \
                    --emit=dep-info,link -C opt-level=1 -Cmetadata=1f --out-dir /t --extern a=/t/a";
        let kept = "--out-dir /d/crates --crate-name units crates/units/src/lib.rs \
                    --extern a=/t/a -D warnings";
        assert_eq!(of(&format!("{line} --test")).as_deref(), Some(kept));
        assert_eq!(of(line), None);
        let program = "--document-private-items --out-dir /d/programs xtask/src/main.rs -D warnings";
        assert_eq!(of("xtask/src/main.rs --test").as_deref(), Some(program));
        for other in
            ["crates/blame/build.rs", "crates/cli/tests/lab/main.rs --test", "-vV"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
