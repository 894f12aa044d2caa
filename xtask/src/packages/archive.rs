//! Archives for systems without these packages: their folders are copied to a prefix, or used where they are.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command;
use crate::workspace::Workspace;

use super::stage::{Layout, Tree};
use super::{Built, Plan, failed};

/// Files that are beside `bin/` and `lib/`.
const DOCUMENTS: [&str; 4] =
    ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Builds both; returns their files.
pub(super) fn packages(
    workspace: &Workspace,
    plan: &Plan,
    built: &Built,
    scratch: &Path,
    out: &Path,
) -> Result<Vec<PathBuf>, String> {
    let made = [("noisefloor", "install-tool"), ("libnoisefloor", "install-libraries")];
    let made = made.map(|(name, target)| {
        let (version, architecture) = (&plan.version, plan.architecture.name());
        let name = format!("{name}-{version}-linux-{architecture}");
        package(workspace, plan, built, &scratch.join(target), &out.join(name), target)
    });
    made.into_iter().collect()
}

/// Builds the archive of a folder; `out` is its file without the ending.
fn package(
    workspace: &Workspace,
    plan: &Plan,
    built: &Built,
    scratch: &Path,
    out: &Path,
    target: &str,
) -> Result<PathBuf, String> {
    // In the folder itself there is no prefix; units name the usual one.
    let layout = Layout { prefix: "/usr/local", libraries: "/usr/local/lib".to_owned() };
    let tree = Tree::new(workspace, plan, built, scratch.join("root"), &layout, target)?;
    let name = out.file_name().unwrap_or_default();
    let folder = scratch.join(name);
    let from = tree.root.join("usr/local");
    fs::rename(&from, &folder).map_err(|error| failed(&from, &error))?;
    for document in DOCUMENTS {
        let from = workspace.root.join(document);
        fs::copy(&from, folder.join(document)).map_err(|error| failed(&from, &error))?;
    }
    let mut file = out.as_os_str().to_owned();
    file.push(".tar.xz");
    let mut tar = plan.tool("tar");
    // More context than usual (lc) saves 0.3 %. A filter for x86 would save 6 %, and BusyBox cannot read it.
    tar.env("XZ_OPT", "-T1 --lzma2=preset=9e,lc=4").args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ]);
    tar.args(["--format=ustar", "--mode=u=rwX,go=rX"]);
    tar.arg(format!("--mtime=@{}", plan.epoch));
    tar.arg("-C").arg(scratch).arg("-cJf").arg(&file).arg(name);
    command::run(&mut tar)?;
    Ok(file.into())
}
