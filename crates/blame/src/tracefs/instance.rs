//! A trace of our own: an instance below `tracefs/instances` (since Linux 3.10), with its own
//! buffers, clock and events. Nothing outside of it is written to.
//!
//! It is removed at the end. Of a process that was killed it stays, but the kernel has ended it
//! and freed its buffers (`free_buffer`), and the lock on its folder is gone: so the next one
//! to look knows that its owner has ended ([`crate::tracefs::leftovers`]), whoever has that
//! process's number by then.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use facts::Root;
use rustix::fs::statfs;

use crate::error::{Error, Kind};

/// Instances are called so, the process behind it, and where that has several, their number.
pub(crate) const PREFIX: &str = "noisefloor-";
/// So many of one process.
const TRIES: u32 = 64;
/// The file that says which tracer a trace uses.
const TRACER: &str = "current_tracer";
/// More than the longest file that is read.
const FILE_MAX: usize = 64 << 10;
/// `TRACEFS_MAGIC` in `include/uapi/linux/magic.h`.
const MAGIC: i64 = 0x7472_6163;
/// Where it is mounted; the second by debugfs itself, when somebody looks.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The file systems that the kernel has, mounted or not.
const FILESYSTEMS: &str = "/proc/filesystems";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// Where tracefs is mounted.
///
/// # Errors
/// It is nowhere; the message says how to mount it.
pub(crate) fn tracefs() -> Result<PathBuf, Error> {
    let is_tracefs =
        |place: &&&str| statfs(**place).is_ok_and(|about| about.f_type == MAGIC);
    if let Some(place) = PLACES.iter().find(is_tracefs) {
        return Ok(PathBuf::from(place));
    }
    if Path::new(PLACES[0]).is_dir() {
        let help = format!("; as root: mount -t tracefs nodev {}", PLACES[0]);
        return Err(Error::new(Kind::Missing, format!("tracefs is not mounted{help}")));
    }
    Err(Error::new(Kind::Missing, no_mount_point(fs::read_to_string(FILESYSTEMS))))
}

/// Why there is not even a folder to mount it on, by what file systems the kernel has.
fn no_mount_point(filesystems: io::Result<String>) -> String {
    let has_tracefs =
        |text: &String| text.split_whitespace().any(|name| name == "tracefs");
    match filesystems.as_ref().map(has_tracefs) {
        Ok(false) => "this kernel has no tracefs (CONFIG_TRACING, Linux 4.1)".to_owned(),
        Ok(true) => {
            let of_sysfs = facts::unmounted(&Root::live(), "sysfs");
            let why = of_sysfs.map_or_else(String::new, |why| format!(": {}", why.text));
            format!("tracefs is not mounted, and there is no {}{why}", PLACES[0])
        }
        Err(error) => {
            format!(
                "whether this kernel has tracefs is not known: {FILESYSTEMS}: {error}"
            )
        }
    }
}

/// A trace of our own; it ends with this.
#[derive(Debug)]
pub(crate) struct Instance {
    folder: PathBuf,
    /// Holds the lock.
    _lock: File,
    /// Ends the trace when it is closed, by the kernel if need be.
    end: Option<File>,
    /// Whether it has a tracer beside its events.
    has_tracer: bool,
}

impl Instance {
    /// Makes one.
    ///
    /// # Errors
    /// It is not allowed, or there is no room; the message says what would help.
    pub(crate) fn make(tracefs: &Path) -> Result<Self, Error> {
        let mut instance = Self::claim(tracefs)?;
        // Without an end of its own (before Linux 3.10) a killed run's trace would go on.
        instance.write("options/disable_on_free", "1")?;
        let end = instance.folder.join("free_buffer");
        let end = OpenOptions::new().write(true).open(&end);
        instance.end = Some(end.map_err(|error| refused(&instance.folder, error))?);
        Ok(instance)
    }

    /// Makes and locks a folder. Who removes what nobody holds may be quicker than the lock.
    fn claim(tracefs: &Path) -> Result<Self, Error> {
        let own = format!("{PREFIX}{}", std::process::id());
        let others = (2..=TRIES).map(|number| format!("{own}-{number}"));
        for name in std::iter::once(own.clone()).chain(others) {
            let folder = tracefs.join("instances").join(name);
            match fs::create_dir(&folder) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(refused(&folder, error)),
            }
            match lock(&folder) {
                Ok(Some(lock)) => {
                    return Ok(Self {
                        folder,
                        _lock: lock,
                        end: None,
                        has_tracer: false,
                    });
                }
                Ok(None) => {}
                Err(error) => {
                    let _ = fs::remove_dir(&folder);
                    return Err(refused(&folder, error));
                }
            }
        }
        let text =
            format!("there are too many traces {}/instances/{own}", tracefs.display());
        Err(Error::new(Kind::System, text))
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a setting of this trace.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub(crate) fn write(&self, file: &str, value: &str) -> Result<(), Error> {
        let failed = |error| refused(&self.folder.join(file), error);
        self.try_write(file, value).map_err(failed)
    }

    /// Has it use a tracer, until it ends.
    ///
    /// # Errors
    /// The kernel refuses it: another one is in use, or somebody reads the trace.
    pub(crate) fn take_tracer(&mut self, tracer: &str) -> Result<(), Error> {
        self.write(TRACER, tracer)?;
        self.has_tracer = true;
        Ok(())
    }

    /// Ends its use of a tracer; nobody may be reading the trace any more.
    pub(crate) fn leave_tracer(&mut self) {
        // It would be left with the trace as well.
        if self.has_tracer && self.write(TRACER, "nop").is_ok() {
            self.has_tracer = false;
        }
    }

    /// Lets an event be written; whether this kernel has it.
    ///
    /// # Errors
    /// The kernel has it, but refuses.
    pub(crate) fn enable(&self, system: &str, event: &str) -> Result<bool, Error> {
        let file = format!("events/{system}/{event}/enable");
        match self.try_write(&file, "1") {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(refused(&self.folder.join(file), error)),
        }
    }

    fn try_write(&self, file: &str, value: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(self.folder.join(file))?;
        file.write_all(value.as_bytes())
    }

    /// Reads a file of this trace.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(&self, file: &str) -> Result<String, Error> {
        let file = self.folder.join(file);
        read_whole(&file).map_err(|error| refused(&file, error))
    }
}

/// The text of a file of tracefs. Some have nothing to say to who reads them a second time,
/// others refuse who asks for less than all.
pub(crate) fn read_whole(file: &Path) -> io::Result<String> {
    let mut text = Vec::new();
    let mut file = File::open(file)?;
    let mut part = vec![0; FILE_MAX];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            length => text.extend_from_slice(&part[..length]),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.leave_tracer();
        // A trace whose files are open cannot be removed.
        self.end = None;
        // Nothing is left to do if somebody looks into it now: the next run removes it.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The lock on a trace's folder, if no other run holds it and the folder is still there.
///
/// # Errors
/// The kernel has no such locks.
pub(crate) fn lock(folder: &Path) -> io::Result<Option<File>> {
    let Ok(file) = File::open(folder) else { return Ok(None) };
    match facts::acquire_lock(&file) {
        Ok(true) => {}
        Err(error) if facts::has_no_locks(&error) => return Err(error),
        Ok(false) | Err(_) => return Ok(None),
    }
    let [held, there] = [file.metadata(), fs::metadata(folder)]
        .map(|found| found.map(|about| (about.dev(), about.ino())));
    Ok(held.ok().filter(|held| there.is_ok_and(|there| *held == there)).map(|_| file))
}

/// Why the kernel does not let us, as far as it can be known. One that is locked down gives
/// other reasons, too: an instance whose files it may not make is then an invalid argument.
pub(crate) fn refused(file: &Path, error: io::Error) -> Error {
    let lockdown = fs::read_to_string(LOCKDOWN).unwrap_or_default();
    let (kind, help) = match error.kind() {
        _ if lockdown.contains("[confidentiality]") => {
            (Kind::Privilege, "this kernel is locked down (lockdown=confidentiality)")
        }
        ErrorKind::PermissionDenied => (Kind::Privilege, "it needs root"),
        ErrorKind::NotFound => (Kind::Missing, "this kernel does not have it"),
        ErrorKind::ReadOnlyFilesystem => {
            (Kind::System, "tracefs must be mounted so that it can be written to")
        }
        ErrorKind::OutOfMemory => (Kind::System, "it needs memory for its buffers"),
        _ => (Kind::System, ""),
    };
    let text = format!("failed to set up a trace: {}", file.display());
    let error = Error::new(kind, text).caused_by(error);
    if help.is_empty() { error } else { error.with(help) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a kernel is said to lack tracefs only where that is known.
    #[test]
    fn why_it_is_nowhere() {
        let why = |text: &str| no_mount_point(Ok(text.to_owned()));
        assert!(why("nodev\tsysfs\n\text4\n").contains("CONFIG_TRACING"));
        assert!(why("nodev\tsysfs\nnodev\ttracefs\n").contains("is not mounted"));
        let unknown = no_mount_point(Err(io::Error::from_raw_os_error(libc::EACCES)));
        assert!(unknown.contains("is not known: /proc/filesystems"), "{unknown}");
    }
}
