//! The state directory, which holds the journal, its lock and the locks of runs.
//!
//! It is opened once, and its files are opened relative to that descriptor (`openat(2)`), without
//! following symbolic links: so a later change of the path has no effect. Only this user can access
//! it (mode 0700, files 0600), since any user who can open a file can lock it (`flock(2)`), and
//! since the values in the journal are written to the kernel.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, renameat, unlinkat};

const ROOT: &str = "/run/noisefloor";
const VARIABLE: &str = "NOISEFLOOR_STATE";
/// The maximum size of the journal; each change takes metadata 300 bytes.
const LENGTH_MAX: u64 = 64 << 20;
const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;
/// The permission bits of group and others.
const GROUP_AND_OTHERS: u32 = 0o077;
/// The write permissions among these.
const WRITABLE: u32 = 0o022;

/// The state directory or a subdirectory.
#[derive(Debug)]
pub(crate) struct State {
    path: PathBuf,
    directory: OwnedFd,
}

impl State {
    /// Opens the directory, which is created if needed.
    ///
    /// # Errors
    /// It cannot be created or opened, or belongs to another user or is writable by others.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        // Its parents have default permissions: in a guest there may be no /run yet.
        let above = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let created = above.and_then(|()| DirBuilder::new().mode(DIRECTORY).create(path));
        match created {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Self::open(path),
        }
    }

    /// Opens the directory.
    ///
    /// # Errors
    /// As [`Self::create`]; `NotFound` if it does not exist.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let directory = open(path, DIRECTORY_FLAGS, Mode::empty())?;
        Self::checked(path.to_owned(), directory)
    }

    /// Opens a subdirectory, which is created if needed.
    pub(crate) fn subdirectory(&self, name: &str) -> io::Result<Self> {
        match mkdirat(&self.directory, name, Mode::from(DIRECTORY)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error.into());
            }
            _ => {}
        }
        let directory = openat(&self.directory, name, DIRECTORY_FLAGS, Mode::empty())?;
        Self::checked(self.path.join(name), directory)
    }

    fn checked(path: PathBuf, directory: OwnedFd) -> io::Result<Self> {
        let directory = File::from(directory);
        require_trusted(&directory, &path)?;
        // Earlier versions made it readable for all users, who could then lock its files.
        if directory.metadata()?.mode() & GROUP_AND_OTHERS != 0 {
            directory.set_permissions(Permissions::from_mode(DIRECTORY))?;
        }
        Ok(Self { path, directory: directory.into() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file for locking, which is created if needed.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        // Read-only access: the file system may become read-only later.
        self.file(name, OFlags::RDONLY | OFlags::CREATE)
    }

    /// Opens a file for reading or locking.
    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        self.file(name, OFlags::RDONLY)
    }

    fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(openat(&self.directory, name, flags, Mode::from(FILE))?);
        let path = self.path.join(name);
        require_trusted(&file, &path)?;
        if !file.metadata()?.is_file() {
            return Err(refused(&path, "is not a regular file"));
        }
        Ok(file)
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = self.open_file(name)?;
        let mut contents = Vec::new();
        let length = file.take(LENGTH_MAX + 1).read_to_end(&mut contents)?;
        match length as u64 > LENGTH_MAX {
            true => Err(refused(&self.path.join(name), "is longer than any journal")),
            false => Ok(contents),
        }
    }

    /// Replaces a file atomically and syncs it: the contents are written to the file `beside`,
    /// which is then renamed.
    pub(crate) fn replace(
        &self,
        name: &str,
        beside: &str,
        contents: &[u8],
    ) -> io::Result<()> {
        self.remove(beside)?;
        let mut file =
            self.file(beside, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        file.write_all(contents)?;
        file.sync_all()?;
        renameat(&self.directory, beside, &self.directory, name)?;
        self.sync()
    }

    /// Removes a file if it exists.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.directory, name, AtFlags::empty()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.directory)?)
    }
}

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Rejects files and directories that another user could have written.
fn require_trusted(file: &File, path: &Path) -> io::Result<()> {
    let metadata = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if metadata.uid() != own {
        let why = format!("belongs to user {}, not to user {own}", metadata.uid());
        return Err(refused(path, &why));
    }
    if metadata.mode() & WRITABLE != 0 {
        return Err(refused(path, &format!("can be written by others than user {own}")));
    }
    Ok(())
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("{} {why}", path.display()))
}

/// The path of this user's state directory: `NOISEFLOOR_STATE`; for root `/run/noisefloor`, for
/// others `noisefloor` in `XDG_STATE_HOME` or `~/.local/state`. Neither settings nor `/run` persist
/// across boots.
///
/// The variable is ignored in a process with more privileges than its user (`AT_SECURE` in
/// `getauxval(3)`: set-user-ID programs and file capabilities).
///
/// # Errors
/// `NotFound` if none of them is set.
pub(crate) fn path() -> io::Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(chosen) = variable(VARIABLE).filter(|_| !is_privileged()) {
        return Ok(PathBuf::from(chosen));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from(ROOT));
    }
    let in_home = || Some(PathBuf::from(variable("HOME")?).join(".local/state"));
    let state = variable("XDG_STATE_HOME").map(PathBuf::from).or_else(in_home);
    let text = "no state directory: set HOME or NOISEFLOOR_STATE";
    state
        .map(|state| state.join("noisefloor"))
        .ok_or_else(|| io::Error::new(ErrorKind::NotFound, text))
}

/// The state directory of root's runs, if this user is another one and it exists: only root can
/// read it.
pub fn root_state_path() -> Option<&'static Path> {
    let path = Path::new(ROOT);
    (!rustix::process::geteuid().is_root() && path.is_dir()).then_some(path)
}

/// Whether this process has privileges that its user does not have.
pub fn is_privileged() -> bool {
    // SAFETY: takes a number only.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    /// Check that other users cannot access the directory and its files, also if an earlier version
    /// created it with other permissions.
    #[test]
    fn inaccessible_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        DirBuilder::new().recursive(true).mode(0o755).create(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        let state = State::create(&path).unwrap();
        state.create_file("lock").unwrap();
        state.replace("journal", "new", b"text").unwrap();
        state.subdirectory("holders").unwrap();
        let modes = ["", "lock", "journal", "holders"].map(|name| mode(&path.join(name)));
        assert_eq!(modes, [0o700, 0o600, 0o600, 0o700]);
        assert_eq!(state.read("journal").unwrap(), b"text");
        assert!(!path.join("new").exists());
    }

    /// Check that symbolic links are not followed, neither to the directory nor in it, and that a
    /// later change of the path has no effect.
    #[test]
    fn links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let [own, link, moved] =
            ["own", "link", "moved"].map(|name| dir.path().join(name));
        let state = State::create(&own).unwrap();
        symlink(&own, &link).unwrap();
        assert!(State::open(&link).is_err());
        let victim = dir.path().join("victim");
        fs::write(&victim, "untouched").unwrap();
        for name in ["journal", "new", "lock"] {
            symlink(&victim, own.join(name)).unwrap();
        }
        assert!(state.read("journal").is_err() && state.create_file("lock").is_err());
        fs::rename(&own, &moved).unwrap();
        symlink(dir.path(), &own).unwrap();
        state.replace("journal", "new", b"text").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
        assert_eq!(fs::read(moved.join("journal")).unwrap(), b"text");
        assert!(!dir.path().join("journal").exists());
    }

    /// Check the rejection of a directory, a file and a file owner that other users could have
    /// written, and of a file that is not regular.
    #[test]
    fn files_of_others_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::create(dir.path()).unwrap();
        let error_of = |name| state.read(name).unwrap_err().to_string();
        fs::write(dir.path().join("open"), "").unwrap();
        let open = Permissions::from_mode(0o662);
        fs::set_permissions(dir.path().join("open"), open).unwrap();
        assert!(error_of("open").contains("by others"), "{}", error_of("open"));
        fs::create_dir(dir.path().join("directory")).unwrap();
        assert!(error_of("directory").contains("regular"), "{}", error_of("directory"));
        if rustix::process::geteuid().is_root() {
            fs::write(dir.path().join("strange"), "").unwrap();
            std::os::unix::fs::chown(dir.path().join("strange"), Some(65_534), None)
                .unwrap();
            assert!(
                error_of("strange").contains("user 65534"),
                "{}",
                error_of("strange")
            );
        }
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let refused = State::open(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("by others"), "{refused}");
    }
}
