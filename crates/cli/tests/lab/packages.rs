//! Packages from Debian's other suites, and QEMU from two of them, in addition to this machine's.
//!
//! apt downloads packages with all libraries, from this machine's mirror, with separate
//! lists; they are unpacked and not installed, once, into cargo's folder for tests. Such a QEMU
//! runs with the loader and libraries of its suite.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::install::install;
use crate::site::{FOLDER, text};

/// apt's options that differ from this machine's: no file of the machine is written.
const CONFIGURATION: &str = r#"
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architecture "amd64";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "20";
Debug::NoLocking "true";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::status "/dev/null";
"#;
const PACKAGE: &str = "qemu-system-x86";
/// Runs the QEMU in the folder of this script, without files of this machine.
const SCRIPT: &str = r#"#!/bin/sh
root=${0%/*}/root
libraries=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu
export QEMU_MODULE_DIR="$root/usr/lib/x86_64-linux-gnu/qemu"
for loader in "$root"/lib/x86_64-linux-gnu "$root"/usr/lib/x86_64-linux-gnu; do
    loader=$loader/ld-linux-x86-64.so.2
    [ ! -e "$loader" ] || exec "$loader" --library-path "$libraries" \
        "$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" \
        -L "$root/usr/share/seabios" "$@"
done
exit 127
"#;

/// The QEMUs of two other suites, the oldest and the newest that are supported, or why they are
/// not available.
pub(crate) fn qemus() -> &'static Result<[PathBuf; 2], String> {
    static QEMUS: OnceLock<Result<[PathBuf; 2], String>> = OnceLock::new();
    QEMUS.get_or_init(|| {
        Ok([qemu("bookworm", &[])?, qemu("trixie", &["trixie-backports"])?])
    })
}

/// The QEMU of the last of these suites; downloaded if necessary.
fn qemu(release: &str, more: &[&str]) -> Result<PathBuf, String> {
    let suite = more.last().copied().unwrap_or(release);
    let folder = unpacked(&format!("qemu-{suite}"), release, more, &[PACKAGE])?;
    let program = folder.join("qemu");
    if !program.exists() {
        fs::write(folder.join("qemu.sh"), SCRIPT).unwrap();
        install(folder.join("qemu.sh"), &program);
    }
    Ok(program)
}

/// A folder of that name whose folder `root` has these packages of the last of these suites, and those that
/// they need; downloaded if necessary.
pub(crate) fn unpacked(
    name: &str,
    release: &str,
    more: &[&str],
    packages: &[&str],
) -> Result<PathBuf, String> {
    let folder = Path::new(FOLDER).join("lab").join(name);
    if folder.exists() {
        return Ok(folder);
    }
    fs::create_dir_all(Path::new(FOLDER).join("lab")).unwrap();
    let scratch = tempfile::tempdir_in(FOLDER).unwrap();
    let archives = download(scratch.path(), release, more, packages)?;
    let made = scratch.path().join("made");
    unpack(&archives, &made.join("root"))?;
    // Another run of the tests may have been faster.
    let _ = fs::rename(&made, &folder);
    Ok(folder)
}

/// Unpacks the packages in a folder to `root`.
pub(crate) fn unpack(archives: &Path, root: &Path) -> Result<(), String> {
    for entry in fs::read_dir(archives).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|end| end == "deb") {
            run(Command::new("dpkg-deb").arg("-x").arg(&file).arg(root))?;
        }
    }
    Ok(())
}

/// Downloads packages of the last of these suites, and their dependencies; returns their folder.
fn download(
    folder: &Path,
    release: &str,
    more: &[&str],
    packages: &[&str],
) -> Result<PathBuf, String> {
    let suite = more.last().copied().unwrap_or(release);
    for name in ["lists/partial", "cache/archives/partial", "made/root"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    let address = address()?;
    let source = |suite: &&str| format!("deb {address} {suite} main\n");
    let sources: String = [release].iter().chain(more).map(source).collect();
    fs::write(folder.join("sources.list"), sources).unwrap();
    let place = |name: &str| folder.join(name).display().to_string();
    let own = format!(
        "Dir::Etc::sourcelist \"{}\";\nDir::State::lists \"{}\";\nDir::Cache \"{}\";\n",
        place("sources.list"),
        place("lists"),
        place("cache"),
    );
    fs::write(folder.join("apt.conf"), CONFIGURATION.to_owned() + &own).unwrap();
    let client = || {
        let mut client = Command::new("apt-get");
        client.arg("-qq").arg("-c").arg(folder.join("apt.conf"));
        client
    };
    run(client().arg("update"))?;
    let install = ["--yes", "--download-only", "-t", suite, "install"];
    run(client().args(install).args(packages))?;
    Ok(folder.join("cache/archives"))
}

/// The addresses of this machine's Debian mirror.
fn address() -> Result<String, String> {
    let format = "$(ORIGIN) $(COMPONENT) $(REPO_URI)";
    let mut client = Command::new("apt-get");
    client.args(["indextargets", "--format", format, "Created-By: Packages"]);
    let lists = run(&mut client)?;
    let found = lists.lines().find_map(|line| line.strip_prefix("Debian main "));
    let found = found.filter(|address| !address.contains("security"));
    found.map(str::to_owned).ok_or_else(|| "apt has no archive of Debian's".to_owned())
}

/// Runs a program; returns its output, or its first error message.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C").output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let said = text(&output.stderr);
    let first = said.lines().find(|line| line.starts_with("E: "));
    Err(format!("{program}: {}", first.or(said.lines().next()).unwrap_or("failed")))
}
