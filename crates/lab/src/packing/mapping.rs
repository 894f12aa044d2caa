//! Where files of this machine are in the guest: what is in the current folder is in the guest's working
//! directory, whatever the folder's name is; everything else has the same path.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use experiments::guest_path;
use observe::without_dots;

use crate::pack_error::PackError;

/// The system's folders: they and what is in them keep their paths, also if one is the current folder.
const SYSTEM: [&str; 12] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc",
    "/sbin", "/sys", "/usr",
];
/// Folders that are above the files of users, and keep their paths if one is the current folder.
const SHARED: [&str; 8] =
    ["/", "/home", "/media", "/mnt", "/opt", "/srv", "/tmp", "/var"];

/// The two paths of each file.
#[derive(Debug, Clone)]
pub(super) struct Mapping {
    /// The current folder, without links.
    folder: PathBuf,
    /// The guest's working directory.
    directory: String,
    /// What is reached through `..` of the folder, and where it is in the guest.
    above: Vec<(PathBuf, String)>,
}

impl Mapping {
    /// That of a folder, empty: the current one, and of the guest's working directory. A folder of the
    /// system is itself the working directory.
    pub(super) fn new(folder: &Path, directory: &str) -> io::Result<Self> {
        let folder = match folder.as_os_str().is_empty() {
            true => env::current_dir()?,
            false => folder.to_owned(),
        };
        let folder = fs::canonicalize(folder)?;
        let directory = match folder.to_str() {
            Some(folder) if is_of_system(Path::new(folder)) => folder,
            Some(_) | None => directory,
        };
        let directory = directory.to_owned();
        Ok(Self { folder, directory, above: Vec::new() })
    }

    /// The same for a program that reaches these through `..` of the folder: in the guest they are above
    /// its working directory.
    pub(super) fn with_above<'a>(self, above: impl Iterator<Item = &'a PathBuf>) -> Self {
        let place = |host: &PathBuf| {
            let guest = format!("/{}", host.file_name()?.to_str()?);
            (!is_of_system(Path::new(&guest))).then(|| (host.clone(), guest))
        };
        let above = match self.keeps_paths() {
            true => Vec::new(),
            false => above.filter_map(place).collect(),
        };
        Self { above, ..self }
    }

    /// The folder of this machine.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The guest's working directory.
    pub(super) fn directory(&self) -> &str {
        &self.directory
    }

    /// Whether all paths are the same in the guest.
    pub(super) fn keeps_paths(&self) -> bool {
        self.folder.as_os_str() == self.directory.as_str()
    }

    /// Whether a path is in the folder, so that it is another one in the guest.
    pub(super) fn is_inside(&self, host: &Path) -> bool {
        !is_of_system(&self.folder) && host.starts_with(&self.folder)
    }

    /// The path in the guest.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub(super) fn guest(&self, host: &Path) -> Result<String, PackError> {
        let own = (self.folder.as_path(), self.directory.as_str());
        let above =
            self.above.iter().map(|(host, guest)| (host.as_path(), guest.as_str()));
        let place = std::iter::once(own).chain(above).find_map(|(from, to)| {
            host.strip_prefix(from).ok().map(|rest| Path::new(to).join(rest))
        });
        let path = place.unwrap_or_else(|| host.to_owned());
        match path.to_str() {
            Some(path) => Ok(guest_path("/", path)),
            None => Err(PackError::Name(host.into())),
        }
    }

    /// The path on this machine of what is in the working directory.
    pub(super) fn host(&self, guest: &str) -> PathBuf {
        let rest = Path::new(guest).strip_prefix(&self.directory);
        match rest {
            Ok(rest) if self.directory != "/" => self.folder.join(rest),
            Ok(_) | Err(_) => guest.into(),
        }
    }

    /// The target in the guest of a link of this machine: one that leaves the folder, or comes from
    /// outside into it, is a path from the root.
    pub(super) fn target(&self, link: &Path, target: &Path) -> Result<String, PackError> {
        let from = link.parent().unwrap_or(link);
        let full = without_dots(&from.join(target));
        let is_same = self.is_inside(link) == self.is_inside(&full);
        if target.is_relative() && is_same
            || !target.is_relative() && !self.is_moved(&full)
        {
            let text = target.to_str().ok_or_else(|| PackError::Name(target.into()))?;
            return Ok(text.to_owned());
        }
        self.guest(&full)
    }

    /// Whether a path is another one in the guest.
    fn is_moved(&self, host: &Path) -> bool {
        self.is_inside(host)
            || self.above.iter().any(|(above, _)| host.starts_with(above))
    }
}

fn is_of_system(folder: &Path) -> bool {
    SHARED.iter().any(|shared| folder == Path::new(shared))
        || SYSTEM.iter().any(|system| folder.starts_with(system))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(folder: &str) -> Mapping {
        let directory = if is_of_system(Path::new(folder)) { folder } else { "/root" };
        Mapping {
            folder: folder.into(),
            directory: directory.to_owned(),
            above: Vec::new(),
        }
    }

    /// Check that what is in the folder has the same path in the guest, whatever the folder's name is,
    /// and that folders of the system keep theirs.
    #[test]
    fn paths() {
        let own = mapping("/home/me/project");
        let guest =
            |mapping: &Mapping, path: &str| mapping.guest(Path::new(path)).unwrap();
        assert_eq!(guest(&own, "/home/me/project/a/b"), "/root/a/b");
        assert_eq!(guest(&own, "/home/me/project"), "/root");
        assert_eq!(guest(&own, "/home/me/projects"), "/home/me/projects");
        assert_eq!(own.host("/root/a"), Path::new("/home/me/project/a"));
        assert_eq!(own.host("/opt/a"), Path::new("/opt/a"));
        let above = [PathBuf::from("/home/me/data"), "/home/me/usr".into()];
        let own = own.with_above(above.iter());
        assert_eq!(guest(&own, "/home/me/data/x"), "/data/x");
        assert_eq!(guest(&own, "/home/me/usr/x"), "/home/me/usr/x");
        let system = mapping("/usr/share");
        assert_eq!(guest(&system, "/usr/share/x"), "/usr/share/x");
        assert!(system.keeps_paths() && !system.is_inside(Path::new("/usr/share/x")));
    }

    /// Check that links lead to the same files as on this machine.
    #[test]
    fn targets() {
        let own = mapping("/home/me/project");
        let target = |link: &str, target: &str| {
            own.target(Path::new(link), Path::new(target)).unwrap()
        };
        assert_eq!(target("/home/me/project/a/l", "../b"), "../b");
        assert_eq!(target("/home/me/project/l", "../data"), "/home/me/data");
        assert_eq!(target("/home/me/project/l", "/home/me/project/x"), "/root/x");
        assert_eq!(target("/home/me/project/l", "/usr/bin/x"), "/usr/bin/x");
        assert_eq!(target("/usr/bin/l", "/etc/alternatives/l"), "/etc/alternatives/l");
        assert_eq!(target("/home/me/l", "project/x"), "/root/x");
    }
}
