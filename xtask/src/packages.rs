//! Builds packages that need no compiler: `cargo xtask packages`.
//!
//! ```text
//! builds ──▶ stage (make install-tool, install-libraries) ──▶ deb, rpm, archive
//! ```
//!
//! The program is static (profile `dist`), so that one binary runs on every distribution, in an empty root
//! and on kernels since 3.2, which is the oldest for glibc. The C libraries are shared and static. The
//! same sources, compiler and libraries give the same bytes: all times are those of the last commit, or
//! `SOURCE_DATE_EPOCH`.

mod archive;
mod deb;
mod rpm;
mod stage;
mod template;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::architecture::Architecture;
use crate::reproducible::{self, Linking, STRIPPED};
use crate::workspace::Workspace;
use crate::{command, guest};

/// What packages are made of and named by.
pub(crate) struct Plan {
    architecture: Architecture,
    /// The version of the packages.
    version: String,
    /// The time of all files, in seconds since 1970.
    epoch: String,
}

/// Who is named in the packages.
const MAINTAINER: &str = "noisefloor contributors <noisefloor@users.noreply.github.com>";

impl Plan {
    /// Parses the options of the command.
    pub(crate) fn parse(options: &[&str], workspace: &Workspace) -> Result<Self, String> {
        let mut architecture = Architecture::of_this_machine()?;
        let mut version = env!("CARGO_PKG_VERSION").to_owned();
        let mut rest = options;
        while let [name, value, others @ ..] = rest {
            match *name {
                "--arch" => architecture = Architecture::named(value)?,
                "--version" => version = checked_version(value)?,
                _ => break,
            }
            rest = others;
        }
        match rest {
            [] => Ok(Self { architecture, version, epoch: epoch(workspace)? }),
            [other, ..] => Err(format!(
                "unknown option '{other}', or one without a value; packages has --arch amd64|arm64 and \
                 --version VERSION"
            )),
        }
    }

    /// Calls a tool with the time that its files get.
    fn tool(&self, name: &str) -> Command {
        let mut tool = Command::new(name);
        tool.env("SOURCE_DATE_EPOCH", &self.epoch).env("LC_ALL", "C").env("TZ", "UTC");
        tool
    }
}

/// Builds all packages; returns a report of their names and lengths.
pub(crate) fn run(workspace: &Workspace, plan: &Plan) -> Result<String, String> {
    let built = Built::new(workspace, plan.architecture)?;
    let out = workspace.target.join("packages");
    let scratch = out.join(format!("staged-{}", plan.architecture.debian()));
    emptied(&scratch)?;
    let made = [
        deb::packages(workspace, plan, &built, &scratch, &out)?,
        rpm::packages(workspace, plan, &built, &scratch, &out)?,
        archive::packages(workspace, plan, &built, &scratch, &out)?,
    ]
    .concat();
    fs::remove_dir_all(&scratch).map_err(|error| failed(&scratch, &error))?;
    made.iter()
        .map(|file| described(file))
        .collect::<Result<Vec<_>, _>>()
        .map(|lines| lines.join("\n"))
}

/// The programs and libraries that are packaged.
struct Built {
    program: PathBuf,
    /// A program for this machine, which writes the man pages.
    generator: PathBuf,
    /// The folder of the C libraries.
    libraries: PathBuf,
    /// The folder of the lab's parts; empty where guests cannot run.
    lab: PathBuf,
}

impl Built {
    fn new(workspace: &Workspace, architecture: Architecture) -> Result<Self, String> {
        let folder = dist(workspace, architecture);
        build_tool(workspace, architecture)?;
        let mut cargo =
            reproducible::cargo(workspace, architecture, Linking::Dynamic, &[STRIPPED])?;
        cargo.args(["--profile", "dist", "--package", "capi", "--package", "tif"]);
        command::run(&mut cargo)?;
        // The lab's folder may have the parts of this machine's guests, which are no part of a package
        // for another architecture.
        let lab = if architecture == guest::ARCHITECTURE && !architecture.is_foreign() {
            guest::run(workspace)?;
            workspace.target.join("lab")
        } else {
            PathBuf::new()
        };
        let program = folder.join("noisefloor");
        let generator = match architecture.is_foreign() {
            true => build_generator(workspace)?,
            false => program.clone(),
        };
        Ok(Self { program, generator, libraries: folder, lab })
    }
}

/// Builds the program for this machine, in the short way.
fn build_generator(workspace: &Workspace) -> Result<PathBuf, String> {
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args(["build", "--release", "--locked"]);
    cargo.args(["--quiet", "--package", "cli", "--target-dir"]).arg(&workspace.target);
    command::run(&mut cargo)?;
    Ok(workspace.target.join("release/noisefloor"))
}

/// The folder of an architecture's output.
fn dist(workspace: &Workspace, architecture: Architecture) -> PathBuf {
    workspace.target.join(architecture.triple()).join("dist")
}

fn build_tool(workspace: &Workspace, architecture: Architecture) -> Result<(), String> {
    let mut cargo =
        reproducible::cargo(workspace, architecture, Linking::Static, &[STRIPPED])?;
    cargo.args(["--profile", "dist", "--package", "cli", "--features", "static"]);
    command::run(&mut cargo)
}

/// A version that both formats accept: a digit, then digits, letters, dots, pluses and tildes.
fn checked_version(version: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || ".+~".contains(c);
    match version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(is_allowed)
    {
        true => Ok(version.to_owned()),
        false => Err(format!(
            "'{version}' is not a version such as 0.1.0 or 0.1.0~git20260131"
        )),
    }
}

/// The variable for reproducible builds, else the time of the last commit.
fn epoch(workspace: &Workspace) -> Result<String, String> {
    if let Ok(epoch) = env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let mut git = Command::new("git");
    git.current_dir(&workspace.root).args(["log", "-1", "--format=%ct"]);
    let help = "no git clone: set SOURCE_DATE_EPOCH to the seconds since 1970 of the packages' files";
    command::output(&mut git)
        .map(|text| text.trim().to_owned())
        .map_err(|_| help.to_owned())
}

/// Creates a folder without files.
fn emptied(folder: &Path) -> Result<(), String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| failed(folder, &error))?;
    }
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

fn described(file: &Path) -> Result<String, String> {
    let data = fs::metadata(file).map_err(|error| failed(file, &error))?;
    Ok(format!("{}: {} bytes", file.display(), data.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a version is one in Debian and in RPM.
    #[test]
    fn versions() {
        for good in ["0.1.0", "1.2~rc1", "0.1.0+git20260131"] {
            assert_eq!(checked_version(good), Ok(good.to_owned()));
        }
        for bad in ["", "v1", "1-2", "1 2", "1:2", "1\n"] {
            assert!(checked_version(bad).is_err(), "{bad}");
        }
    }
}
