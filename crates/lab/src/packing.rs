//! The files of a program's guest: the program, and what it needs of this machine.
//!
//! They are a second archive for the kernel (`initramfs`), which follows that of the agent: the
//! program, its services and their interpreters as a shell would find them, their shared
//! libraries as the dynamic linker would (ld.so(8)), the experiment's own files, and a few
//! generated ones (`base`). If the command is observed, it is run once here (`observing`), and what it
//! used is packed, too (`observed`). The bytes depend only on the contents of the files, their paths in
//! the guest and, for observed files of the system, the times of their last changes: owners, inode
//! numbers and other times are fixed.
//!
//! Cannot see, unless the command is observed: what a program opens by itself while it runs (`dlopen(3)`,
//! modules of an interpreter, configuration). The experiment must list it.

mod base;
mod elf;
mod folder;
mod host;
mod libraries;
mod links;
mod mapping;
mod observed;
mod observing;
pub(crate) mod packages;
mod packer;
mod remarks;
mod script;
mod secrets;
mod tree;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::{env, fs};

use experiments::{FileContents, GuestFile, Machine, ProgramFiles};
use kernels::checksum;
use recording::ProgramSpec;

use crate::guest::initramfs;
use crate::pack_error::PackError;
pub(crate) use crate::packing::libraries::LINKED as LIBRARIES;
use crate::packing::observed::Adder;
use crate::packing::observing::Observed;
use crate::packing::packages::Look;
use crate::packing::packer::Packer;
use crate::packing::tree::refuse_size;

/// The largest guest, in MiB.
const MEMORY_MAX: u64 = Machine::MEMORY_MAX_MIB as u64;
/// What a guest needs beside the files, in MiB: the smallest kernels boot with 80, and a guest
/// that can grow has what others have.
const LEAST: u64 = 80;
const USUAL: u64 = 256;
/// The kernel's first file system may fill half of the memory that remains beside the archive and
/// what the kernel itself uses, of which a part is proportional to the memory
/// (`shmem_default_max_blocks` in mm/shmem.c).
const SHARE: u64 = 2;
const OWN_SHARE: u64 = 32;
/// The most that all files may have, in MiB: they are in the archive, too.
const FILES_MAX: u64 = (MEMORY_MAX - MEMORY_MAX / OWN_SHARE - LEAST) / (1 + SHARE);
/// A guest grows by a multiple of this, in MiB, so that few bytes more do not change it.
const STEP: u64 = 64;

/// The environment variable with libraries for all programs.
const PRELOAD: &str = "LD_PRELOAD";
/// The one with the folders of programs.
pub(crate) const PATH: &str = "PATH";

/// The packed files of a program.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    /// The archive, in the format of an initramfs.
    pub(crate) archive: Arc<Vec<u8>>,
    /// What the files fill in the guest, in bytes.
    unpacked: u64,
    /// Its SHA-256, in hexadecimal.
    pub(crate) sha256: String,
    /// The guest's `PATH`, if it is not that of the specification: with the folders in which a program
    /// was found in this machine's `PATH` only.
    pub(crate) path: Option<String>,
    /// The guest's working directory, if it is not that of the specification.
    pub(crate) directory: Option<String>,
    /// What a user has to know of a command that ran here.
    pub(crate) remarks: Vec<String>,
}

/// What this machine offers to find files.
pub(crate) struct Host<'a> {
    /// Finds the packages of what is missing.
    pub(crate) look: Look<'a>,
    /// Prints a line.
    pub(crate) say: &'a mut dyn FnMut(&str),
    /// Set by another thread to stop early.
    pub(crate) stop: &'a AtomicBool,
}

/// Packs what a program needs.
///
/// # Errors
/// What is missing, and which package has it, or what cannot run in a guest.
pub(crate) fn pack(
    spec: &ProgramSpec,
    files: &ProgramFiles,
    host: &mut Host<'_>,
) -> Result<Packed, PackError> {
    if !files.is_observed {
        let mut packer = named(spec, files, host.look)?;
        programs(&mut packer, spec, files)?;
        return finish(packer);
    }
    let missing = match refuse(spec, files, host) {
        // This machine's linker may know more folders.
        Err(missing @ PackError::NoLibrary { .. }) => Some(missing),
        refused => refused.map(|()| None)?,
    };
    match (observing::run(spec, files, host)?, missing) {
        (Some(Observed { has_failed: true, .. }), Some(missing)) => Err(missing),
        (Some(observed), _) => pack_observed(spec, files, observed, host),
        (None, _) => {
            let packed =
                pack(spec, &ProgramFiles { is_observed: false, ..files.clone() }, host)?;
            let remarks = vec![NOT_HERE.to_owned()];
            Ok(Packed { remarks, ..packed })
        }
    }
}

/// The remark on a command that only the guest has.
const NOT_HERE: &str = "the command is not observed: this machine has no such program";

/// Refuses a command that cannot run in a guest, before it runs here.
fn refuse(
    spec: &ProgramSpec,
    files: &ProgramFiles,
    host: &mut Host<'_>,
) -> Result<(), PackError> {
    let here = with_path(spec, observing::path_here(spec));
    let mut packer = named(&here, files, host.look)?;
    programs(&mut packer, &here, files)
}

/// Packs what a command used here, and what was named.
fn pack_observed(
    spec: &ProgramSpec,
    files: &ProgramFiles,
    observed: Observed,
    host: &mut Host<'_>,
) -> Result<Packed, PackError> {
    let Observed { observation, mapping, path, mut remarks, .. } = observed;
    let directory = mapping.directory().to_owned();
    let spec = ProgramSpec { directory, ..with_path(spec, path.clone()) };
    let mut packer = named(&spec, files, host.look)?;
    let words = std::iter::once(spec.command.program().unwrap_or_default())
        .chain(spec.command.arguments().iter().map(OsString::as_os_str))
        .filter_map(OsStr::to_str);
    let values = spec.environment.iter().map(|(_, value)| value.as_str());
    let words: Vec<&str> = words.chain(values).collect();
    let mut adder = Adder {
        packer: &mut packer,
        seen: &observation,
        mapping: &mapping,
        home: env::var_os("HOME").and_then(|home| fs::canonicalize(home).ok()),
        is_root: rustix::process::geteuid().is_root(),
        remarks: &mut remarks,
        secret: BTreeSet::new(),
    };
    adder.add(&words)?;
    programs(&mut packer, &spec, files)?;
    let packed = finish(packer)?;
    Ok(Packed {
        path: packed.path.or(Some(path)),
        directory: Some(spec.directory),
        remarks: remarks.lines(),
        ..packed
    })
}

/// The files that every guest has, and those of an experiment.
fn named<'a>(
    spec: &'a ProgramSpec,
    files: &'a ProgramFiles,
    look: Look<'a>,
) -> Result<Packer<'a>, PackError> {
    let mut packer = Packer::new(spec, files, look);
    base::add(packer.tree())?;
    for GuestFile { path, mode, contents } in &files.files {
        match contents {
            FileContents::Directory => packer.tree().directory(path, *mode)?,
            FileContents::Text(text) => {
                packer.file(path, *mode, text.clone().into_bytes())?;
            }
            FileContents::Size(bytes) => {
                refuse_size(*bytes)?;
                packer.file(path, *mode, generated(*bytes))?;
            }
            FileContents::Copy(from) => packer.copy(path, *mode, from)?,
        }
    }
    Ok(packer)
}

/// Adds the programs of a specification, and those that are named beside it.
fn programs(
    packer: &mut Packer<'_>,
    spec: &ProgramSpec,
    files: &ProgramFiles,
) -> Result<(), PackError> {
    let services = spec.services.iter().map(|service| &service.command);
    for command in std::iter::once(&spec.command).chain(services) {
        let program = command.program().unwrap_or_default();
        let name = program.to_str().ok_or_else(|| PackError::Name(program.into()))?;
        packer.program(name)?;
    }
    files.programs.iter().try_for_each(|name| packer.program(name))?;
    for (_, libraries) in spec.environment.iter().filter(|(name, _)| name == PRELOAD) {
        packer.preloaded(libraries)?;
    }
    packer.tree().directory(&spec.directory, None)
}

fn finish(packer: Packer<'_>) -> Result<Packed, PackError> {
    let (tree, path) = packer.finish();
    let unpacked = tree.unpacked();
    let archive = tree.archive()?;
    let sha256 = checksum(&archive);
    let archive = Arc::new(archive);
    Ok(Packed { archive, unpacked, sha256, path, directory: None, remarks: Vec::new() })
}

/// The same specification with another `PATH`.
fn with_path(spec: &ProgramSpec, path: String) -> ProgramSpec {
    let mut spec = spec.clone();
    spec.environment.retain(|(name, _)| name != PATH);
    spec.environment.insert(0, (PATH.to_owned(), path));
    spec
}

impl Packed {
    /// The files in an archive that was made elsewhere, for a guest whose memory is known.
    pub(crate) fn of_archive(archive: Vec<u8>) -> Self {
        Self {
            sha256: checksum(&archive),
            unpacked: archive.len() as u64, // unused: the memory is known
            archive: Arc::new(archive),
            path: None,
            directory: None,
            remarks: Vec::new(),
        }
    }

    /// The memory of a guest with these files, in MiB: the one that was specified, else one that is
    /// large enough.
    ///
    /// # Errors
    /// It is too small for the files.
    pub(crate) fn memory_mib(
        &self,
        specified: u32,
        grows: bool,
    ) -> Result<u32, PackError> {
        let files = (self.archive.len() as u64).div_ceil(1 << 20);
        let room = files + SHARE * self.unpacked.div_ceil(1 << 20);
        let with_own = |room: u64| (room * OWN_SHARE).div_ceil(OWN_SHARE - 1);
        let least = with_own(LEAST + room);
        let usual = match least <= USUAL {
            true => USUAL,
            false => with_own(USUAL + room).next_multiple_of(STEP),
        };
        let specified_mib = u64::from(specified);
        let has = match grows {
            true => usual.min(MEMORY_MAX).max(specified_mib),
            false => specified_mib,
        };
        if least > MEMORY_MAX {
            return Err(PackError::TooLarge(FILES_MAX));
        }
        if has < least {
            return Err(PackError::Memory { files, least, has: specified });
        }
        Ok(u32::try_from(has).unwrap_or(specified))
    }
}

/// The contents of a file of which only the size matters: lines of text.
fn generated(bytes: u64) -> Vec<u8> {
    const LINE: &[u8] =
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.\n";
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    LINE.iter().copied().cycle().take(length).collect()
}

/// The failure to make an archive.
impl From<std::io::Error> for PackError {
    fn from(error: std::io::Error) -> Self {
        Self::Archive(error)
    }
}

/// The archive's writer.
type Archive = initramfs::Archive;

#[cfg(test)]
mod tests;
