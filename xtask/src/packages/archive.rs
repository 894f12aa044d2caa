//! An archive for systems without these packages: its folder is copied to a prefix, or used where it is.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command;
use crate::workspace::Workspace;

use super::stage::{Layout, Tree};
use super::{Built, Plan, failed};

/// Files that are beside `bin/` and `lib/`.
const DOCUMENTS: [&str; 4] =
    ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Builds it; returns its file.
pub(super) fn package(
    workspace: &Workspace,
    plan: &Plan,
    built: &Built,
    scratch: &Path,
    out: &Path,
) -> Result<PathBuf, String> {
    let name = format!("noisefloor-{}-linux-{}", plan.version, plan.architecture.name());
    // In the folder itself there is no prefix; units name the usual one.
    let layout = Layout { prefix: "/usr/local", libraries: "/usr/local/lib".to_owned() };
    let root = scratch.join("archive/root");
    let targets = ["install-tool", "install-libraries"];
    let tree = Tree::new(workspace, plan, built, root, &layout, &targets)?;
    let folder = scratch.join("archive").join(&name);
    let from = tree.root.join("usr/local");
    fs::rename(&from, &folder).map_err(|error| failed(&from, &error))?;
    for document in DOCUMENTS {
        let from = workspace.root.join(document);
        fs::copy(&from, folder.join(document)).map_err(|error| failed(&from, &error))?;
    }
    let file = out.join(format!("{name}.tar.xz"));
    let mut tar = plan.tool("tar");
    tar.env("XZ_OPT", "-9 -T1").args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ]);
    tar.args(["--format=ustar", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{}", plan.epoch));
    tar.arg("-C").arg(scratch.join("archive")).arg("-cJf").arg(&file).arg(&name);
    command::run(&mut tar)?;
    Ok(file)
}
