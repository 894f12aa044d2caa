//! The pictures of documents: drawn by noisefloor from stored recordings, committed, and checked.

use std::fs;
use std::process::Command;

use crate::program::Program;
use crate::workspace::Workspace;
use crate::{command, program};

/// Recordings, and the pictures of them by name, each with its file; all below `docs/pictures/`.
const PICTURES: [(&str, &str, &str); 4] = [
    ("noise.json", "noise-over-time", "noise-over-time.svg"),
    ("noise.json", "lengths", "gap-lengths.svg"),
    ("slices-6.1.json", "slices", "slices-6.1.svg"),
    ("slices-6.12.json", "slices", "slices-6.12.svg"),
];
/// Their folder.
const FOLDER: &str = "docs/pictures";

/// Builds noisefloor, and draws all pictures.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args(["build", "--locked", "--quiet"]);
    let built = program::build(cargo.args(["--package", "cli"]))?;
    let folder = workspace.root.join(FOLDER);
    for (recording, name, file) in PICTURES {
        let svg = draw(workspace, &built, recording, name)?;
        fs::write(folder.join(file), svg).map_err(|why| format!("{file}: {why}"))?;
    }
    Ok(())
}

/// Compares all pictures with what noisefloor, one of these programs, draws.
pub(crate) fn check(workspace: &Workspace, built: &[Program]) -> Result<String, String> {
    let mut old = Vec::new();
    for (recording, name, file) in PICTURES {
        let stored = fs::read_to_string(workspace.root.join(FOLDER).join(file));
        let stored = stored.map_err(|why| format!("{file}: {why}"))?;
        if draw(workspace, built, recording, name)? != stored {
            old.push(file);
        }
    }
    match old.is_empty() {
        true => Ok(format!("{} pictures are as drawn now", PICTURES.len())),
        false => {
            Err(format!("out of date: {}; hint: cargo xtask pictures", old.join(", ")))
        }
    }
}

/// A picture of a recording, as noisefloor draws it.
fn draw(
    workspace: &Workspace,
    built: &[Program],
    recording: &str,
    name: &str,
) -> Result<String, String> {
    let tool = built.iter().find(|one| one.name == "noisefloor" && !one.is_test);
    let tool = tool.ok_or("cargo did not build noisefloor")?;
    let svg = workspace.target.join("tmp").join("picture.svg");
    let mut noisefloor = Command::new(&tool.file);
    noisefloor.arg("report").arg(workspace.root.join(FOLDER).join(recording));
    command::output(noisefloor.args(["--picture", name, "-o"]).arg(&svg))?;
    fs::read_to_string(&svg).map_err(|why| format!("{}: {why}", svg.display()))
}
