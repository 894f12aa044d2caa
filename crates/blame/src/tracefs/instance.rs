//! A trace instance below `tracefs/instances` (since Linux 3.10), with its own buffers, clock and
//! events. Nothing outside of it is written to.
//!
//! It is removed at the end. If the process is killed, the kernel ends the trace and frees its
//! buffers (`free_buffer`), and the lock on its folder is released, but the folder remains: the
//! next run recognises by the free lock that its owner has ended ([`crate::tracefs::leftovers`]),
//! even if the PID has been reused.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use facts::Root;
use rustix::fs::statfs;

use crate::error::{Error, Kind};

/// The prefix of instance names; the PID follows, and a number if a process has several.
pub(crate) const PREFIX: &str = "noisefloor-";
/// The most instances of one process.
const TRIES: u32 = 64;
/// The file that selects the tracer of a trace.
const TRACER: &str = "current_tracer";
/// More than the longest file that is read.
const FILE_MAX: usize = 64 << 10;
/// `TRACEFS_MAGIC` in `include/uapi/linux/magic.h`.
const MAGIC: i64 = 0x7472_6163;
/// The mount points; debugfs mounts the second by itself on access.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The file systems of the kernel, mounted or not.
const FILESYSTEMS: &str = "/proc/filesystems";
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

/// The mount point of tracefs.
///
/// # Errors
/// It is not mounted; the message explains how to mount it.
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

/// Why there is no folder to mount it on, by the kernel's file systems.
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
            format!("whether this kernel has tracefs is unknown: {FILESYSTEMS}: {error}")
        }
    }
}

/// A trace instance, removed when dropped.
#[derive(Debug)]
pub(crate) struct Instance {
    folder: PathBuf,
    /// Holds the lock.
    _lock: File,
    /// Ends the trace when it is closed, if necessary by the kernel.
    end: Option<File>,
    /// Whether it uses a tracer in addition to events.
    has_tracer: bool,
}

impl Instance {
    /// Creates one.
    ///
    /// # Errors
    /// It is not permitted, or there is no memory; the message names a remedy.
    pub(crate) fn make(tracefs: &Path) -> Result<Self, Error> {
        let mut instance = Self::claim(tracefs)?;
        // Without this (before Linux 3.10) the trace of a killed run would continue.
        instance.write("options/disable_on_free", "1")?;
        let end = instance.folder.join("free_buffer");
        let end = OpenOptions::new().write(true).open(&end);
        instance.end = Some(end.map_err(|error| refused(&instance.folder, error))?);
        Ok(instance)
    }

    /// Creates and locks a folder. Another run may remove it before it is locked.
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

    /// Its folder.
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

    /// Selects a tracer, until the trace ends.
    ///
    /// # Errors
    /// The kernel refuses it: another one is in use, or the trace is being read.
    pub(crate) fn select_tracer(&mut self, tracer: &str) -> Result<(), Error> {
        self.write(TRACER, tracer)?;
        self.has_tracer = true;
        Ok(())
    }

    /// Deselects the tracer; the trace must not be read any more.
    pub(crate) fn deselect_tracer(&mut self) {
        // Removing the trace would deselect it as well.
        if self.has_tracer && self.write(TRACER, "nop").is_ok() {
            self.has_tracer = false;
        }
    }

    /// Enables an event; whether this kernel has it.
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

/// The text of a file of tracefs, in one read: some are empty in a second one, others refuse short
/// reads.
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
        self.deselect_tracer();
        // A trace with open files cannot be removed.
        self.end = None;
        // If another process has a file of it open, the next run removes it.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The lock on a trace's folder, if no other run holds it and the folder still exists.
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

/// Why the kernel refuses, as far as it can be determined. Under lockdown it returns other errors,
/// too: EINVAL for an instance whose files it may not create.
pub(crate) fn refused(file: &Path, error: io::Error) -> Error {
    let lockdown = fs::read_to_string(LOCKDOWN).unwrap_or_default();
    #[expect(clippy::wildcard_enum_match_arm, reason = "a large enum of std")]
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

    /// Check that a kernel is reported to lack tracefs only if that is certain.
    #[test]
    fn why_it_is_nowhere() {
        let why = |text: &str| no_mount_point(Ok(text.to_owned()));
        assert!(why("nodev\tsysfs\n\text4\n").contains("CONFIG_TRACING"));
        assert!(why("nodev\tsysfs\nnodev\ttracefs\n").contains("is not mounted"));
        let unknown = no_mount_point(Err(io::Error::from_raw_os_error(libc::EACCES)));
        assert!(unknown.contains("is unknown: /proc/filesystems"), "{unknown}");
    }
}
