//! The lab in a clone in which only `make run` has run.

use std::fs;
use std::process::Command;

use crate::tool::TOOL;

/// Check that commands that need the programs of guests end at once, with exit code 3 and the one
/// command that builds them, also if QEMU is missing.
#[test]
fn not_built() {
    let clone = tempfile::tempdir().unwrap();
    let program = clone.path().join("target/release/noisefloor");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::copy(TOOL, &program).unwrap();
    let commands: [&[&str]; 2] =
        [&["lab", "run", "tick-cost"], &["lab", "cost", "--", "true"]];
    for words in commands {
        let mut command = Command::new(&program);
        command.args(words).env_remove("NOISEFLOOR_PARTS").env("PATH", clone.path());
        let output = command.env("XDG_CACHE_HOME", clone.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{words:?}: {said}");
        assert!(said.contains("`make lab`"), "{words:?}: {said}");
    }
}
