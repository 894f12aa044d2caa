//! The threads to watch: processes, or the cgroups of a systemd unit or a container.
//!
//! A cgroup's number in the kernel is the inode of its directory. Units and containers have cgroups
//! named after them in every hierarchy with controllers; the one of v2 is preferred.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use facts::{CgroupMount, Root};
use recording::WatchTarget;

use crate::bpf::watch_programs::{Cgroups, PROCESSES, Target};
use crate::error::{Error, Kind};

/// The suffixes that the name of a unit may be given without.
const SUFFIXES: [&str; 3] = [".service", ".scope", ".slice"];
/// The fewest digits of a container's ID that identify it.
const ID_MIN: usize = 12;

/// A target that exists.
pub(crate) struct Selected {
    /// As the programs identify it.
    pub(crate) target: Target,
    /// The directory of its cgroup.
    pub(crate) directory: PathBuf,
}

/// Finds a target.
///
/// # Errors
/// `Kind::Spec`: it does not exist, or several match.
pub(crate) fn resolve(target: &WatchTarget, root: &Root) -> Result<Selected, Error> {
    refuse_target(target)?;
    match target {
        WatchTarget::Processes(processes) => {
            processes.iter().try_for_each(|pid| refuse_no_process(root, *pid))?;
            let target = Target::Processes(processes.clone());
            Ok(Selected { target, directory: PathBuf::new() })
        }
        WatchTarget::Unit(name) => {
            let mounts = mounts(root)?;
            let found = mounts.iter().find_map(|mount| {
                let found = named(Path::new(&mount.directory), name);
                (!found.is_empty()).then_some((mount, found))
            });
            let Some((mount, mut found)) = found else {
                return refuse(format!("no cgroup of a unit or container '{name}'"));
            };
            match (found.pop_first(), found.pop_first()) {
                (Some(one), None) => cgroups(mount, &one),
                (one, other) => {
                    let names: Vec<String> = [one, other]
                        .into_iter()
                        .flatten()
                        .map(|path| path.display().to_string())
                        .collect();
                    refuse(format!("'{name}' is ambiguous: {}", names.join(", ")))
                }
            }
        }
        WatchTarget::Cgroup(path) => {
            let mounts = mounts(root)?;
            let (mount, directory) = directory(&mounts, path)?;
            cgroups(mount, &directory)
        }
    }
}

/// Checks a target as far as possible without the machine.
///
/// # Errors
/// `Kind::Spec`: no process, or too many.
fn refuse_target(target: &WatchTarget) -> Result<(), Error> {
    let refuse = |text: String| Err(Error::new(Kind::Spec, text));
    match target {
        WatchTarget::Processes(processes) if processes.is_empty() => {
            refuse("no process is named".to_owned())
        }
        WatchTarget::Processes(processes) if processes.len() > PROCESSES => {
            refuse(format!(
                "at most {PROCESSES} processes can be watched; hint: watch their cgroup"
            ))
        }
        WatchTarget::Processes(_) | WatchTarget::Unit(_) | WatchTarget::Cgroup(_) => {
            Ok(())
        }
    }
}

/// Refuses a process that does not exist, whose counts would be empty without an explanation.
pub(crate) fn refuse_no_process(root: &Root, pid: u32) -> Result<(), Error> {
    let Ok(status) = root.text(&format!("/proc/{pid}/status")) else {
        return refuse(format!("there is no process {pid}"));
    };
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    match process.and_then(|process| process.trim().parse::<u32>().ok()) {
        Some(process) if process != pid => {
            refuse(format!("{pid} is a thread of process {process}: name that one"))
        }
        _ => Ok(()),
    }
}

fn refuse<T>(text: String) -> Result<T, Error> {
    Err(Error::new(Kind::Spec, text))
}

/// The hierarchies that the programs can use, that of v2 first.
fn mounts(root: &Root) -> Result<Vec<CgroupMount>, Error> {
    let mounts = CgroupMount::read(root);
    mounts.map_err(|why| Error::new(Kind::Missing, why.to_string()))
}

/// The directory of a cgroup, named as a whole or below a mount point.
fn directory<'a>(
    mounts: &'a [CgroupMount],
    path: &str,
) -> Result<(&'a CgroupMount, PathBuf), Error> {
    let is_whole = |mount: &&CgroupMount| Path::new(path).starts_with(&mount.directory);
    let whole = mounts.iter().find(is_whole).map(|mount| (mount, PathBuf::from(path)));
    let below = || {
        let below = path.trim_start_matches('/');
        let all =
            mounts.iter().map(|mount| (mount, Path::new(&mount.directory).join(below)));
        all.into_iter().find(|(_, directory)| directory.is_dir())
    };
    let found = whole.or_else(below).filter(|(_, directory)| directory.is_dir());
    found.map_or_else(|| refuse(format!("there is no cgroup {path}")), Ok)
}

/// A cgroup and all below it.
fn cgroups(mount: &CgroupMount, directory: &Path) -> Result<Selected, Error> {
    let mut ids = Vec::new();
    let mut add =
        |path: &Path| ids.extend(fs::symlink_metadata(path).map(|data| data.ino()));
    add(directory);
    each_below(directory, &mut |path| add(path));
    let (hierarchy, controller) = (mount.hierarchy, mount.controller.clone());
    let target = Target::Cgroups(Cgroups { ids, hierarchy, controller });
    Ok(Selected { target, directory: directory.to_owned() })
}

/// Calls `found` with each directory below.
pub(crate) fn each_below(directory: &Path, found: &mut dyn FnMut(&Path)) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    {
        found(&entry.path());
        each_below(&entry.path(), found);
    }
}

/// The cgroups of a unit or a container: the name as it is, with the suffix of a unit, or the
/// beginning of a container's ID.
fn named(top: &Path, name: &str) -> BTreeSet<PathBuf> {
    let (mut exact, mut others) = (BTreeSet::new(), BTreeSet::new());
    each_below(top, &mut |path| {
        let Some(base) = path.file_name().and_then(|base| base.to_str()) else { return };
        if base == name {
            exact.insert(path.to_owned());
        } else if is_short_for(name, base) {
            others.insert(path.to_owned());
        }
    });
    if exact.is_empty() { others } else { exact }
}

fn is_short_for(name: &str, base: &str) -> bool {
    let stem = SUFFIXES.iter().find_map(|suffix| base.strip_suffix(suffix));
    let stem = stem.unwrap_or(base);
    // docker-ID.scope, cri-containerd-ID.scope, libpod-ID.scope, ID
    let id = stem.rsplit('-').next().unwrap_or(stem);
    let is_id = id.len() >= 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    stem == name || is_id && name.len() >= ID_MIN && id.starts_with(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the short forms of the names of units and containers.
    #[test]
    fn short_names() {
        let id = "4f5a".repeat(16);
        assert!(is_short_for("nginx", "nginx.service"));
        assert!(!is_short_for("ngin", "nginx.service"));
        assert!(is_short_for("4f5a4f5a4f5a", &format!("docker-{id}.scope")));
        assert!(is_short_for(&id, &id));
        assert!(!is_short_for("4f5a4f5a", &format!("docker-{id}.scope")));
        assert!(!is_short_for("0f5a4f5a4f5a", &id));
    }

    /// Check that a process that does not exist is refused, and a thread of one.
    #[test]
    fn no_process() {
        let root = Root::live();
        let kind = |pid| refuse_no_process(&root, pid).map_err(|error| error.to_string());
        assert_eq!(kind(std::process::id()), Ok(()));
        assert!(kind(u32::MAX).unwrap_err().contains("no process"));
        let thread = std::thread::spawn(|| {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            refuse_no_process(&Root::live(), tid.unsigned_abs())
                .map_err(|e| e.to_string())
        });
        let own = format!("a thread of process {}", std::process::id());
        assert!(thread.join().unwrap().unwrap_err().contains(&own));
    }
}
