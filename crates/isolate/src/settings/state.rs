//! The state directory: where the journal, its lock and the locks of runs are.
//!
//! It is opened once, and every file in it by that descriptor (`openat(2)`), without following
//! symbolic links: whatever becomes of its path meanwhile, no other file is read or written. It
//! is this user's alone (mode 0700, files 0600), since a lock can be taken by each user who can
//! open its file (`flock(2)`), and what stands in the journal is written to the kernel.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, open, openat, renameat, unlinkat};

const ROOT: &str = "/run/noisefloor";
const VARIABLE: &str = "NOISEFLOOR_STATE";
/// No journal is longer; each change takes about 300 bytes.
const LENGTH_MAX: u64 = 64 << 20;
const DIRECTORY: u32 = 0o700;
const FILE: u32 = 0o600;
/// What group and others may do.
const OF_OTHERS: u32 = 0o077;
/// Which of it would let them change something.
const WRITABLE: u32 = 0o022;

/// The state directory, or one in it.
#[derive(Debug)]
pub(crate) struct State {
    path: PathBuf,
    directory: OwnedFd,
}

impl State {
    /// Opens the directory, which is created where it does not exist.
    ///
    /// # Errors
    /// It cannot be created or opened, or belongs to another user or is writable by others.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        // Those above it are others' too: in a guest there may be no /run yet.
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
    /// As [`Self::create`]; `NotFound` where it does not exist.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let directory = open(path, DIRECTORY_FLAGS, Mode::empty())?;
        Self::checked(path.to_owned(), directory)
    }

    /// A directory in this one, which is created where it does not exist.
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
        trusted(&directory, &path)?;
        // An earlier version let all users read it, and so take its locks.
        if directory.metadata()?.mode() & OF_OTHERS != 0 {
            directory.set_permissions(Permissions::from_mode(DIRECTORY))?;
        }
        Ok(Self { path, directory: directory.into() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file in it to lock it, and creates it where it does not exist.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        // For reading: a file system may become read-only meanwhile.
        self.file(name, OFlags::RDONLY | OFlags::CREATE)
    }

    /// Opens a file in it to read or lock it.
    pub(crate) fn open_file(&self, name: &str) -> io::Result<File> {
        self.file(name, OFlags::RDONLY)
    }

    fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(openat(&self.directory, name, flags, Mode::from(FILE))?);
        let path = self.path.join(name);
        trusted(&file, &path)?;
        if !file.metadata()?.is_file() {
            return Err(refused(&path, "is not a regular file"));
        }
        Ok(file)
    }

    /// The contents of a file.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = self.open_file(name)?;
        let mut contents = Vec::new();
        let length = file.take(LENGTH_MAX + 1).read_to_end(&mut contents)?;
        match length as u64 > LENGTH_MAX {
            true => Err(refused(&self.path.join(name), "is longer than any journal")),
            false => Ok(contents),
        }
    }

    /// Replaces a file as a whole, on disk: written beside it, synced, renamed, and the directory
    /// synced. `beside` is the name that it has until then.
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

    /// Removes a file, if there is one.
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

/// Refuses what another user could have written.
fn trusted(file: &File, path: &Path) -> io::Result<()> {
    let about = file.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    if about.uid() != own {
        let why = format!("belongs to user {}, not to user {own}", about.uid());
        return Err(refused(path, &why));
    }
    if about.mode() & WRITABLE != 0 {
        return Err(refused(path, &format!("can be written by others than user {own}")));
    }
    Ok(())
}

fn refused(path: &Path, why: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("{} {why}", path.display()))
}

/// The path of this user's state directory: `NOISEFLOOR_STATE`, for root `/run/noisefloor`, for
/// others `noisefloor` in `XDG_STATE_HOME` or `~/.local/state`. Settings do not outlive a boot, and
/// neither does `/run`.
///
/// The variable is ignored where the process has more privileges than the user who started it
/// (`AT_SECURE` in `getauxval(3)`: set-user-ID programs and file capabilities).
///
/// # Errors
/// `NotFound` where none of them is set.
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

/// Where root's runs keep theirs, if this user is another one and it exists: what is in it only
/// root can read.
pub fn of_root() -> Option<&'static Path> {
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

    /// Check that the directory and what is in it are this user's alone, also where an earlier
    /// version let others read it.
    #[test]
    fn closed_to_others() {
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

    /// Check that symbolic links are not followed, neither to the directory nor in it, and that
    /// what lies at the path meanwhile does not matter.
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

    /// Check that what others could have written is refused: the directory, a file of it, a file
    /// of another user, and what is no regular file.
    #[test]
    fn others_are_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::create(dir.path()).unwrap();
        let said = |name| state.read(name).unwrap_err().to_string();
        fs::write(dir.path().join("open"), "").unwrap();
        let open = Permissions::from_mode(0o662);
        fs::set_permissions(dir.path().join("open"), open).unwrap();
        assert!(said("open").contains("by others"), "{}", said("open"));
        fs::create_dir(dir.path().join("directory")).unwrap();
        assert!(said("directory").contains("regular"), "{}", said("directory"));
        if rustix::process::geteuid().is_root() {
            fs::write(dir.path().join("strange"), "").unwrap();
            std::os::unix::fs::chown(dir.path().join("strange"), Some(65_534), None)
                .unwrap();
            assert!(said("strange").contains("user 65534"), "{}", said("strange"));
        }
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let refused = State::open(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("by others"), "{refused}");
    }
}
