//! Builds the files that `noisefloor lab` needs: the agent, which is the only program of a guest,
//! and the instruction counter, a plugin of QEMU; and the agent of guests of another architecture.
//!
//! They are copied to `lab/` below the target directory. A guest has no shared libraries, so the
//! agent is linked statically, by profile `guest`. A file that did not change is not written
//! again, so that its modification time stays.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::architecture::Architecture;
use crate::command;
use crate::program::{self, Program};
use crate::reproducible::{self, Linking};
use crate::workspace::Workspace;

/// The architecture of guests that need no emulation of another processor, and of the counter.
pub(crate) const ARCHITECTURE: Architecture = Architecture::X86_64;

/// Builds both; returns a report.
pub(crate) fn run(workspace: &Workspace) -> Result<String, String> {
    if env::consts::ARCH != ARCHITECTURE.name() {
        let (here, needed) = (env::consts::ARCH, ARCHITECTURE.name());
        return Err(format!("guests need {needed}; this machine is {here}"));
    }
    put_all(workspace, parts(workspace)?)
}

/// Builds the agent of guests of that architecture; returns a report.
pub(crate) fn agent_of(
    workspace: &Workspace,
    architecture: Architecture,
) -> Result<String, String> {
    let name = named("agent", architecture);
    put_all(workspace, vec![(name, agent(workspace, architecture)?)])
}

/// The name of a program in `lab/`: another architecture than the usual one is part of it.
fn named(program: &str, architecture: Architecture) -> String {
    match architecture {
        Architecture::X86_64 => format!("noisefloor-{program}"),
        Architecture::Aarch64 => {
            format!("noisefloor-{program}-{}", architecture.debian())
        }
    }
}

/// Builds both; returns their names in `lab/` and their paths.
pub(crate) fn parts(workspace: &Workspace) -> Result<Vec<(String, PathBuf)>, String> {
    let (agent, counter) =
        at_once(|| agent(workspace, ARCHITECTURE), || counter(workspace));
    Ok(vec![
        (named("agent", ARCHITECTURE), agent?),
        ("noisefloor-counter.so".to_owned(), counter?),
    ])
}

/// Runs both builds in parallel: cargo builds each profile in a separate folder, and the linker
/// uses one thread.
pub(crate) fn at_once<A: Send, B>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B,
) -> (A, B) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|why| resume_unwind(why)), other)
    })
}

fn put_all(
    workspace: &Workspace,
    built: Vec<(String, PathBuf)>,
) -> Result<String, String> {
    let lab = workspace.target.join("lab");
    let put = built.iter().map(|(name, from)| put(from, &lab.join(name)));
    Ok(put.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

/// The tests that also run in guests.
const TESTS: [&str; 2] = ["truth", "isolation"];
/// The program that they call.
const TOOL: &str = "noisefloor";

/// Builds the tests that also run in guests, and the program that they call; returns a report.
pub(crate) fn tests(workspace: &Workspace) -> Result<String, String> {
    let programs = program::build(&mut program::all_tests(workspace))?;
    put_tests(workspace, ARCHITECTURE, &programs)
}

/// The same for guests of that architecture, whose libraries this machine may not have: all is static.
pub(crate) fn tests_of(
    workspace: &Workspace,
    architecture: Architecture,
) -> Result<String, String> {
    let mut cargo = reproducible::cargo(workspace, architecture, Linking::Static, &[])?;
    cargo.args(["--package", "blame", "--package", "cli", "--features", "cli/static"]);
    cargo.args(["--bin", TOOL]).args(TESTS.map(|test| format!("--test={test}")));
    put_tests(workspace, architecture, &program::build(&mut cargo)?)
}

/// Copies the tests that also run in guests, and the program that they call, without symbols: a
/// guest unpacks every byte under emulation.
pub(crate) fn put_tests(
    workspace: &Workspace,
    architecture: Architecture,
    programs: &[Program],
) -> Result<String, String> {
    let is_wanted = |program: &&Program| match program.is_test {
        true => TESTS.contains(&program.name.as_str()),
        false => program.name == TOOL,
    };
    let small = workspace.target.join("lab/small");
    let mut stripped = Vec::new();
    for program in programs.iter().filter(is_wanted) {
        let name = named(&program.name.replace(TOOL, "tool"), architecture);
        let file = small.join(&name);
        fs::create_dir_all(&small)
            .map_err(|error| format!("{}: {error}", small.display()))?;
        let mut strip = Command::new(architecture.tool("strip"));
        command::run(strip.arg("-o").arg(&file).arg(&program.file))?;
        stripped.push((name, file));
    }
    put_all(workspace, stripped)
}

fn agent(workspace: &Workspace, architecture: Architecture) -> Result<PathBuf, String> {
    let mut cargo = reproducible::cargo(workspace, architecture, Linking::Static, &[])?;
    cargo.args(["--package", "agent", "--bin", "noisefloor-agent"]);
    cargo.args(["--features", "static", "--profile", "guest"]);
    command::run(&mut cargo)?;
    Ok(workspace.target.join(architecture.triple()).join("guest/noisefloor-agent"))
}

fn counter(workspace: &Workspace) -> Result<PathBuf, String> {
    let stripped = [reproducible::STRIPPED];
    let mut cargo =
        reproducible::cargo(workspace, ARCHITECTURE, Linking::Dynamic, &stripped)?;
    cargo.args(["--package", "counter", "--lib", "--release"]);
    command::run(&mut cargo)?;
    Ok(workspace.target.join(ARCHITECTURE.triple()).join("release/libcounter.so"))
}

/// Copies a file if the copy differs; returns a report with its length. The copy is renamed into
/// place, so that a starting guest reads either the old file or the new one.
pub(crate) fn put(from: &Path, to: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", to.display());
    let new = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
    let report = |what: &str| format!("{}: {} bytes, {what}", to.display(), new.len());
    match fs::read(to) {
        Ok(old) if old == new => return Ok(report("unchanged")),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let beside = to.with_extension(format!("{}.new", std::process::id()));
    fs::copy(from, &beside).and_then(|_| fs::rename(&beside, to)).map_err(failed)?;
    Ok(report("new"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a file is copied with its folder, and not written again while it is the same.
    #[test]
    fn copies_what_changed() {
        let place = env::temp_dir().join(format!("xtask-guest-{}", std::process::id()));
        let (from, to) = (place.join("from"), place.join("lab/to"));
        fs::create_dir_all(&place).unwrap();
        let mut written = |text: &str| {
            fs::write(&from, text).unwrap();
            let report = put(&from, &to).unwrap();
            assert_eq!(fs::read_to_string(&to).unwrap(), text);
            report.rsplit(' ').next().unwrap() == "new"
        };
        assert_eq!(["a", "a", "b"].map(&mut written), [true, false, true]);
        assert_eq!(fs::read_dir(place.join("lab")).unwrap().count(), 1);
        fs::remove_dir_all(place).unwrap();
    }
}
