//! The programs that cargo builds, as it reports them (`--message-format json`).

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command;
use crate::workspace::Workspace;

/// A program that cargo built.
pub(crate) struct Program {
    /// The name of its target: that of a file in `tests/` or `examples/`, or of its package.
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    /// The folder of its package.
    pub(crate) package: PathBuf,
    /// Whether it runs tests.
    pub(crate) is_test: bool,
}

/// The kind of targets that cargo builds like tests, and that do not run any.
const BENCH: &str = "bench";

/// The command that builds all tests, examples, and programs that tests run. It is one for all uses,
/// so that features are the same and nothing is built twice.
pub(crate) fn all_tests(workspace: &Workspace) -> Command {
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args(["test", "--workspace", "--no-run"]);
    cargo.args(["--locked", "--quiet"]);
    cargo
}

/// Runs a build; returns the programs that it built.
pub(crate) fn build(cargo: &mut Command) -> Result<Vec<Program>, String> {
    let output = command::output(cargo.args(["--message-format", "json"]))?;
    let lines =
        output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(lines.filter_map(|line| Program::read(&line)).collect())
}

impl Program {
    /// Parses one message of cargo, if it is about a program.
    fn read(line: &Value) -> Option<Self> {
        let manifest = Path::new(line["manifest_path"].as_str()?);
        let is_bench =
            line["target"]["kind"].as_array()?.iter().any(|kind| kind == BENCH);
        Some(Self {
            name: line["target"]["name"].as_str()?.to_owned(),
            file: line["executable"].as_str()?.into(),
            package: manifest.parent()?.to_owned(),
            is_test: line["profile"]["test"] == true && !is_bench,
        })
    }

    /// Its crate and its name: programs of several crates may have the same name.
    pub(crate) fn full_name(&self) -> String {
        let room = self.package.file_name().unwrap_or_default().to_string_lossy();
        format!("{room}/{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that programs, libraries and tests are distinguished, with their package.
    #[test]
    fn reads_messages() {
        let of_kind = |kind: &str, test: bool, executable: Option<&str>| {
            serde_json::json!({
                "profile": { "test": test },
                "executable": executable,
                "manifest_path": "/w/crates/cli/Cargo.toml",
                "target": { "name": "lab", "kind": [kind] },
            })
        };
        let line = |test, executable| of_kind("test", test, executable);
        let bench = of_kind("bench", true, Some("/t/debug/deps/lab-2f"));
        assert!(!Program::read(&bench).unwrap().is_test);
        let program = Program::read(&line(true, Some("/t/debug/deps/lab-1f"))).unwrap();
        assert_eq!((program.full_name().as_str(), program.is_test), ("cli/lab", true));
        assert_eq!(program.package, Path::new("/w/crates/cli"));
        let program = Program::read(&line(false, Some("/t/debug/lab"))).unwrap();
        assert!(!program.is_test);
        assert!(Program::read(&line(true, None)).is_none());
    }
}
