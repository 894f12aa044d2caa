//! RPM packages, by rpmbuild(8), from `packaging/rpm`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::architecture::Architecture;
use crate::command;
use crate::workspace::Workspace;

use super::stage::{Layout, Tree};
use super::template::filled;
use super::{Built, Plan, emptied, failed};

/// Builds both packages; returns their files.
pub(super) fn packages(
    workspace: &Workspace,
    plan: &Plan,
    built: &Built,
    scratch: &Path,
    out: &Path,
) -> Result<Vec<PathBuf>, String> {
    let scratch = scratch.join("rpm");
    // Where Fedora and its relatives look for libraries of 64 bits.
    let layout = Layout { prefix: "/usr", libraries: "/usr/lib64".to_owned() };
    let tree = |name: &str, target: &str| {
        Tree::new(workspace, plan, built, scratch.join(name), &layout, target)
    };
    let tool = tree("tool", "install-tool")?;
    let libraries = tree("libraries", "install-libraries")?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let from = workspace.root.join(file);
        let text = fs::read(&from).map_err(|error| failed(&from, &error))?;
        tool.add(&format!("usr/share/licenses/noisefloor/{file}"), &text)?;
        libraries
            .add(&format!("usr/share/licenses/libnoisefloor-devel/{file}"), &text)?;
    }
    let spec = specification(workspace, plan, &scratch, [&tool, &libraries])?;
    emptied(&scratch.join("top"))?;
    build(plan, &scratch, &spec)?;
    let names = ["noisefloor", "libnoisefloor-devel"].map(|name| {
        format!("{name}-{}-1.{}.rpm", plan.version, plan.architecture.name())
    });
    let made = names.map(|name| {
        let (from, to) = (scratch.join("top/RPMS").join(&name), out.join(name));
        fs::rename(&from, &to).map_err(|error| failed(&from, &error))?;
        Ok(to)
    });
    made.into_iter().collect()
}

/// Writes the specification, and the lists of files that it names.
fn specification(
    workspace: &Workspace,
    plan: &Plan,
    scratch: &Path,
    trees: [&Tree; 2],
) -> Result<PathBuf, String> {
    let write = |name: &str, text: String| {
        let file = scratch.join(name);
        fs::write(&file, text).map_err(|error| failed(&file, &error))?;
        Ok::<_, String>(file)
    };
    let list = |name: &str, tree: &Tree| {
        let lines = tree.files()?.into_iter().map(|file| line(&tree.installed(&file)));
        write(name, lines.collect())
    };
    let [tool, libraries] = trees;
    let lists = [list("tool.files", tool)?, list("libraries.files", libraries)?];
    let paths = [&tool.root, &libraries.root, &lists[0], &lists[1]];
    let [tool, libraries, tool_files, library_files] =
        paths.map(|path| path.display().to_string());
    let values = [
        ("VERSION", plan.version.as_str()),
        ("TREE", &tool),
        ("LIBRARIES", &libraries),
        ("FILES", &tool_files),
        ("LIBRARY_FILES", &library_files),
        ("QEMU", qemu(plan.architecture)),
    ];
    write(
        "noisefloor.spec",
        filled(&workspace.root.join("packaging/rpm/noisefloor.spec"), &values)?,
    )
}

/// The line of an installed file in a list of files.
fn line(file: &str) -> String {
    let kind = if file.starts_with("/usr/share/licenses/") {
        "%license "
    } else if file.starts_with("/usr/share/man/") {
        "%doc "
    } else {
        ""
    };
    format!("{kind}\"{file}\"\n")
}

const fn qemu(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "qemu-system-x86-core",
        Architecture::Aarch64 => "qemu-system-aarch64-core",
    }
}

/// The times, the name of the machine and the compression do not depend on the machine.
fn build(plan: &Plan, scratch: &Path, spec: &Path) -> Result<(), String> {
    let name = plan.architecture.name();
    let definitions = [
        format!("_topdir {}", scratch.join("top").display()),
        "_rpmdir %{_topdir}/RPMS".to_owned(),
        "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm".to_owned(),
        "_buildhost reproducible".to_owned(),
        "_binary_payload w9.xzdio".to_owned(),
        "use_source_date_epoch_as_buildtime 1".to_owned(),
        "clamp_mtime_to_source_date_epoch 1".to_owned(),
        "source_date_epoch_from_changelog 0".to_owned(),
        // Only what is in the files: Debian's rpmbuild looks for a compiler's settings.
        "_enable_debug_packages 0".to_owned(),
        format!("__strip {}", plan.architecture.tool("strip")),
    ];
    let mut rpmbuild = plan.tool("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target", &format!("{name}-linux")]);
    for definition in definitions {
        rpmbuild.args(["--define", &definition]);
    }
    command::run(rpmbuild.arg(spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that licences and man pages are marked.
    #[test]
    fn kinds_of_files() {
        assert_eq!(line("/usr/bin/noisefloor"), "\"/usr/bin/noisefloor\"\n");
        assert_eq!(
            line("/usr/share/man/man1/a.1.gz"),
            "%doc \"/usr/share/man/man1/a.1.gz\"\n"
        );
    }
}
