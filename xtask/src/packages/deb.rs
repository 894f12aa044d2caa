//! Debian packages, by dpkg-deb(1), from the files in `packaging/deb`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::workspace::Workspace;

use super::stage::{Layout, Tree};
use super::template::filled;
use super::{Built, MAINTAINER, Plan, failed};

const TOOL: &str = "noisefloor";
const LIBRARIES: &str = "libnoisefloor-dev";

/// Builds both packages; returns their files.
pub(super) fn packages(
    workspace: &Workspace,
    plan: &Plan,
    built: &Built,
    scratch: &Path,
    out: &Path,
) -> Result<Vec<PathBuf>, String> {
    let libraries = format!("/usr/lib/{}", plan.architecture.gnu());
    let layout = Layout { prefix: "/usr", libraries };
    let made = [(TOOL, "install-tool"), (LIBRARIES, "install-libraries")];
    let made = made.map(|(name, target)| {
        let root = scratch.join("deb").join(name);
        let tree = Tree::new(workspace, plan, built, root, &layout, target)?;
        Package { name, folder: workspace.root.join("packaging/deb").join(name), plan }
            .build(workspace, &tree, out)
    });
    made.into_iter().collect()
}

struct Package<'a> {
    name: &'a str,
    /// Its folder below `packaging/deb`.
    folder: PathBuf,
    plan: &'a Plan,
}

impl Package<'_> {
    fn build(
        &self,
        workspace: &Workspace,
        tree: &Tree,
        out: &Path,
    ) -> Result<PathBuf, String> {
        self.document(workspace, tree)?;
        let sums = self.checksums(tree)?;
        let depends = self.depends(tree)?;
        let size = kilobytes(tree)?.to_string();
        let values = [
            ("VERSION", self.plan.version.as_str()),
            ("ARCHITECTURE", self.plan.architecture.debian()),
            ("MAINTAINER", MAINTAINER),
            ("SIZE", &size),
            ("DEPENDS", &depends),
            ("QEMU", self.qemu()),
        ];
        tree.add(
            "DEBIAN/control",
            filled(&self.folder.join("control"), &values)?.as_bytes(),
        )?;
        tree.add("DEBIAN/md5sums", sums.as_bytes())?;
        self.scripts(tree)?;
        self.shared_libraries(tree)?;
        let name = self.name;
        let (version, architecture) =
            (&self.plan.version, self.plan.architecture.debian());
        let file = out.join(format!("{name}_{version}_{architecture}.deb"));
        let mut dpkg = self.plan.tool("dpkg-deb");
        dpkg.args(["--root-owner-group", "-Zxz", "-z9", "-Sextreme", "--build"])
            .arg(&tree.root)
            .arg(&file);
        command::output(&mut dpkg)?;
        Ok(file)
    }

    /// The files that Debian's policy asks for: the licence, the changes, and reasons for what lintian(1)
    /// reports.
    fn document(&self, workspace: &Workspace, tree: &Tree) -> Result<(), String> {
        let licence = workspace.root.join("LICENSE-MIT");
        let licence =
            fs::read_to_string(&licence).map_err(|error| failed(&licence, &error))?;
        let licence = indented(&licence);
        let copyright = workspace.root.join("packaging/copyright");
        let copyright = filled(&copyright, &[("MIT", &licence)])?;
        let folder = format!("usr/share/doc/{}", self.name);
        tree.add(&format!("{folder}/copyright"), copyright.as_bytes())?;
        let changes =
            tree.add(&format!("{folder}/changelog"), self.changes()?.as_bytes())?;
        command::run(self.plan.tool("gzip").arg("-9n").arg(changes))?;
        let overrides = self.folder.join("overrides");
        if overrides.exists() {
            let text =
                fs::read(&overrides).map_err(|error| failed(&overrides, &error))?;
            tree.add(&format!("usr/share/lintian/overrides/{}", self.name), &text)?;
        }
        Ok(())
    }

    /// Debian's form of a changelog.
    fn changes(&self) -> Result<String, String> {
        let mut date = self.plan.tool("date");
        date.args(["-R", "-d"]).arg(format!("@{}", self.plan.epoch));
        let date = command::output(&mut date)?;
        let version = &self.plan.version;
        Ok(format!(
            "{TOOL} ({version}) unstable; urgency=medium\n\n  * The changes are in CHANGELOG.md of the \
             sources.\n\n -- {MAINTAINER}  {}\n",
            date.trim()
        ))
    }

    /// Triggers, and scripts, which are executable.
    fn scripts(&self, tree: &Tree) -> Result<(), String> {
        for name in ["triggers", "postinst", "prerm", "postrm"] {
            let from = self.folder.join(name);
            if !from.exists() {
                continue;
            }
            let text = fs::read(&from).map_err(|error| failed(&from, &error))?;
            let file = tree.add(&format!("DEBIAN/{name}"), &text)?;
            set_mode(&file, if name == "triggers" { 0o644 } else { 0o755 })?;
        }
        Ok(())
    }

    /// The package that programs need which are linked with a shared library, and the modes that Debian
    /// has for them.
    fn shared_libraries(&self, tree: &Tree) -> Result<(), String> {
        let mut lines = String::new();
        for file in shared_libraries(tree)? {
            set_mode(&file, 0o644)?;
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            // Of libtif.so.0.1.0: the name, and the number of its interface.
            let parts = name.split_once(".so.");
            let Some((library, version)) = parts else { continue };
            let number = version.split('.').next().unwrap_or_default();
            lines +=
                &format!("{library} {number} {} (>= {})\n", self.name, self.plan.version);
        }
        if lines.is_empty() {
            Ok(())
        } else {
            tree.add("DEBIAN/shlibs", lines.as_bytes()).map(drop)
        }
    }

    fn checksums(&self, tree: &Tree) -> Result<String, String> {
        let mut md5sum = self.plan.tool("md5sum");
        md5sum.current_dir(&tree.root);
        let is_regular = |file: &&PathBuf| !file.is_symlink();
        for file in tree.files()?.iter().filter(is_regular) {
            md5sum.arg(tree.installed(file).trim_start_matches('/'));
        }
        command::output(&mut md5sum)
    }

    /// The versions of the C library that the shared libraries of a tree need.
    fn depends(&self, tree: &Tree) -> Result<String, String> {
        let libraries = tree
            .files()?
            .into_iter()
            .filter(|file| !file.is_symlink() && file.to_string_lossy().contains(".so."));
        let mut needed = (2, 17);
        for library in libraries {
            let mut objdump = Command::new(self.plan.architecture.tool("objdump"));
            let symbols = command::output(objdump.arg("-T").arg(library))?;
            needed = needed.max(newest_glibc(&symbols));
        }
        Ok(format!("libc6 (>= {}.{}), libgcc-s1", needed.0, needed.1))
    }

    const fn qemu(&self) -> &'static str {
        use crate::architecture::Architecture;
        match self.plan.architecture {
            Architecture::X86_64 => "qemu-system-x86 (>= 1:7.2)",
            Architecture::Aarch64 => "qemu-system-arm (>= 1:7.2)",
        }
    }
}

/// The shared libraries of a tree, without their links.
fn shared_libraries(tree: &Tree) -> Result<Vec<PathBuf>, String> {
    let is_library =
        |file: &PathBuf| !file.is_symlink() && file.to_string_lossy().contains(".so.");
    Ok(tree.files()?.into_iter().filter(is_library).collect())
}

fn set_mode(file: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(file, fs::Permissions::from_mode(mode))
        .map_err(|error| failed(file, &error))
}

/// The newest version of glibc among the symbols that objdump(1) prints.
fn newest_glibc(symbols: &str) -> (u32, u32) {
    let version = |text: &str| {
        let (major, rest) = text.split_once('.')?;
        let minor = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    symbols.split("GLIBC_").skip(1).filter_map(version).max().unwrap_or_default()
}

/// A licence as the value of a field: indented, empty lines as dots.
fn indented(text: &str) -> String {
    let line =
        |line: &str| if line.is_empty() { " .".to_owned() } else { format!(" {line}") };
    text.trim_end().lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The size of a tree's files, each rounded up as dpkg-gencontrol(1) does.
fn kilobytes(tree: &Tree) -> Result<u64, String> {
    let sizes = tree.files()?.into_iter().map(|file| {
        let data = file.symlink_metadata().map_err(|error| failed(&file, &error))?;
        Ok(data.len().div_ceil(1024).max(1))
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that versions of glibc are compared as numbers.
    #[test]
    fn glibc() {
        let symbols =
            "DF *UND* (GLIBC_2.2.5) memcpy\nDF *UND* (GLIBC_2.34) dlsym\n(GLIBC_2.4) x";
        assert_eq!(newest_glibc(symbols), (2, 34));
        assert_eq!(newest_glibc("none"), (0, 0));
    }

    /// Check that a licence becomes one field.
    #[test]
    fn fields() {
        assert_eq!(indented("MIT\n\nPermission\n"), " MIT\n .\n Permission");
    }
}
