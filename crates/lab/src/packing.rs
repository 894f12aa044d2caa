//! The files of a program's guest: the program, and what it needs of this machine.
//!
//! They are a second archive for the kernel (`initramfs`), which follows that of the agent: the
//! program, its services and their interpreters as a shell would find them, their shared
//! libraries as the dynamic linker would (ld.so(8)), the experiment's own files, and a few
//! generated ones (`base`). No program is run to find these. The bytes depend only on the contents
//! of the files and their paths in the guest: times, owners and inode numbers are fixed.
//!
//! Cannot see: what a program opens by itself while it runs (`dlopen(3)`, modules of an
//! interpreter, configuration). The experiment must list it.

mod base;
mod elf;
mod folder;
mod host;
mod libraries;
mod links;
pub(crate) mod packages;
mod packer;
mod script;
mod tree;

use std::sync::Arc;

use experiments::{FileContents, GuestFile, Machine, ProgramFiles};
use kernels::checksum;
use recording::ProgramSpec;

use crate::guest::initramfs;
use crate::pack_error::PackError;
pub(crate) use crate::packing::libraries::LINKED as LIBRARIES;
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

/// The packed files of a program.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    /// The archive, in the format of an initramfs.
    pub(crate) archive: Arc<Vec<u8>>,
    /// What the files fill in the guest, in bytes.
    unpacked: u64,
    /// Its SHA-256, in hexadecimal.
    pub(crate) sha256: String,
    /// The guest's `PATH`: that of the specification, and the folders in which a program was found
    /// in this machine's `PATH` only.
    pub(crate) path: Option<String>,
}

/// Packs what a program needs; `look` finds the packages of what is missing.
///
/// # Errors
/// What is missing, and which package has it, or what cannot run in a guest.
pub(crate) fn pack(
    spec: &ProgramSpec,
    files: &ProgramFiles,
    look: Look<'_>,
) -> Result<Packed, PackError> {
    let mut packer = Packer::new(spec, &files.folder, look);
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
    packer.tree().directory(&spec.directory, None)?;
    let (tree, path) = packer.finish();
    let unpacked = tree.unpacked();
    let archive = tree.archive()?;
    let sha256 = checksum(&archive);
    Ok(Packed { archive: Arc::new(archive), unpacked, sha256, path })
}

impl Packed {
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
