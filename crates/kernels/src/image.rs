//! The header of a kernel image, and whether a guest can boot it.
//!
//! The header of an x86 image is described in the kernel's `Documentation/arch/x86/boot.rst`:
//! `HdrS` at 0x202, the release behind a pointer at 0x20e, and since protocol 2.12 (Linux 3.8)
//! whether the kernel is a 64-bit one. That of an arm64 image is described in
//! `Documentation/arch/arm64/booting.rst`: `ARM\x64` at 0x38, the length with all that the kernel
//! needs at 0x10; it does not have the release, which is in the kernel's banner. The magic numbers of other files are only used for error
//! messages. Cannot see what the kernel supports: that is in its configuration.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::architecture::Architecture;
use crate::error::{Error, ImageError};

/// Several times the size of any kernel image.
const SIZE_MAX: u64 = 512 << 20;
/// A sector: the unit of the size of an image's first part.
const SECTOR: usize = 512;
/// The first protocol with a flag for 64-bit kernels.
const PROTOCOL_MIN: u16 = 0x020c;
const KERNEL_64: u16 = 1;
/// The magic number of an arm64 image, and its place.
const ARM64: (usize, &[u8]) = (0x38, b"ARM\x64");
/// What is before the release in a kernel's banner (init/version-timestamp.c).
const BANNER: &[u8] = b"Linux version ";

/// Other file formats: offset, magic, description.
const OTHERS: &[(usize, &[u8], &str)] = &[
    (0, b"\x1f\x8b", "compressed with gzip: decompress it first"),
    (0, b"\x28\xb5\x2f\xfd", "compressed with zstd: decompress it first"),
    (0, b"\xfd7zXZ\0", "compressed with xz: decompress it first"),
    (0, b"!<arch>\n", "an archive: give the vmlinuz that is in the package"),
    (0, b"07070", "a cpio archive, as initial RAM disks are"),
    (0x38, b"RSC\x05", "a kernel for RISC-V, and guests are x86-64 or arm64"),
    (0x38, b"\x38\x3e\x08\x0a", "a kernel for LoongArch, and guests are x86-64 or arm64"),
    (4, b"zimg", "a packed EFI kernel (zboot): give the Image that was packed"),
    (0, b"MZ", "an EFI program without a Linux kernel's header"),
];

/// A kernel image that a guest can boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// The kernel's release.
    pub(crate) release: String,
    /// Its architecture.
    pub(crate) architecture: Architecture,
    /// The checksum of the whole file, in hexadecimal.
    pub(crate) sha256: String,
    /// The length of the file in bytes.
    pub(crate) size: usize,
}

impl Image {
    /// Reads an image.
    ///
    /// # Errors
    /// `Error::Image` if there is no such file, it cannot be read, or it is no kernel for
    /// 64-bit x86 or arm64, with its actual format.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        Self::read_file(path).map_err(|cause| Error::Image(path.to_owned(), cause))
    }

    fn read_file(path: &Path) -> Result<Self, ImageError> {
        let bytes = read_bytes(path)?;
        let architecture = architecture(&bytes);
        let release = match architecture {
            Architecture::X86_64 => release(&bytes)?,
            Architecture::Arm64 => arm64_release(&bytes)?,
        };
        Ok(Self { release, architecture, sha256: checksum(&bytes), size: bytes.len() })
    }
}

/// The SHA-256 of those bytes, in hexadecimal.
pub fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, ImageError> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(ImageError::Directory);
    }
    if !metadata.is_file() {
        return Err(ImageError::NotRegular);
    }
    if metadata.len() > SIZE_MAX {
        return Err(ImageError::TooLong);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(SIZE_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The architecture of an image; x86-64 unless it is known to be another one.
fn architecture(bytes: &[u8]) -> Architecture {
    let (place, magic) = ARM64;
    match bytes.get(place..).is_some_and(|rest| rest.starts_with(magic)) {
        true => Architecture::Arm64,
        false => Architecture::X86_64,
    }
}

/// The release of an arm64 kernel: the first word of its banner.
fn arm64_release(bytes: &[u8]) -> Result<String, ImageError> {
    let mut banners = memchr::memmem::find_iter(bytes, BANNER);
    let release = banners.find_map(|place| {
        let text = &bytes[place + BANNER.len()..];
        let end = text.iter().take(SECTOR).position(|byte| *byte == b' ')?;
        let text = std::str::from_utf8(&text[..end]).ok()?;
        let is_release = text.starts_with(|c: char| c.is_ascii_digit());
        (is_release && !text.contains(char::is_control)).then(|| text.to_owned())
    });
    release.ok_or(ImageError::NoRelease)
}

/// The release of an x86-64 kernel that a guest can boot.
fn release(bytes: &[u8]) -> Result<String, ImageError> {
    if !is_x86_kernel(bytes) {
        return Err(ImageError::Other(looks_like(bytes)));
    }
    let protocol = word(bytes, 0x206)?;
    if protocol < PROTOCOL_MIN {
        return Err(ImageError::Old(protocol >> 8, protocol & 0xff));
    }
    if word(bytes, 0x236)? & KERNEL_64 == 0 {
        return Err(ImageError::Not64Bit);
    }
    let (length, promised) = (bytes.len(), promised_length(bytes)?);
    if length < promised {
        return Err(ImageError::CutShort(length, promised));
    }
    release_text(bytes).ok_or(ImageError::NoRelease)
}

/// Whether the file begins as the kernel's own boot sector does.
fn is_x86_kernel(bytes: &[u8]) -> bool {
    bytes
        .get(0x1fe..0x206)
        .is_some_and(|magic| magic.starts_with(&[0x55, 0xaa]) && magic.ends_with(b"HdrS"))
}

/// The length of the image: the sectors of its first part, its boot sector, and the
/// protected-mode part in units of 16 bytes.
fn promised_length(bytes: &[u8]) -> Result<usize, ImageError> {
    let sectors = match bytes.get(0x1f1) {
        None | Some(0) => 4,
        Some(&sectors) => usize::from(sectors),
    };
    let (low, high) = (word(bytes, 0x1f4)?, word(bytes, 0x1f6)?);
    let paragraphs = usize::from(low) | usize::from(high) << 16;
    Ok((sectors + 1) * SECTOR + paragraphs * 16)
}

/// The first word of the version: `6.1.0-56-cloud-amd64 (debian-kernel@...) #1 SMP ...`.
fn release_text(bytes: &[u8]) -> Option<String> {
    let pointer = usize::from(word(bytes, 0x20e).ok()?);
    let text = bytes.get(pointer.checked_add(SECTOR)?..)?;
    let end = text.iter().take(SECTOR).position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&text[..end]).ok()?;
    let first = text.split_whitespace().next()?;
    (pointer > 0 && !first.contains(char::is_control)).then(|| first.to_owned())
}

fn word(bytes: &[u8], place: usize) -> Result<u16, ImageError> {
    match bytes.get(place..place + 2) {
        Some(&[low, high]) => Ok(u16::from_le_bytes([low, high])),
        _ => Err(ImageError::Header),
    }
}

/// The format of a file that is no x86 kernel.
fn looks_like(bytes: &[u8]) -> String {
    let begins = |&&(place, magic, _): &&(usize, &[u8], &str)| {
        bytes.get(place..).is_some_and(|rest| rest.starts_with(magic))
    };
    if bytes.is_empty() {
        "an empty file".to_owned()
    } else if bytes.starts_with(b"\x7fELF") {
        elf(bytes)
    } else if let Some((_, _, what)) = OTHERS.iter().find(begins) {
        (*what).to_owned()
    } else if is_text(bytes) {
        "a text".to_owned()
    } else if bytes.len() < 0x206 {
        format!("only {} bytes", bytes.len())
    } else {
        "an unknown format".to_owned()
    }
}

/// An ELF file may be the kernel before it is made into an image.
fn elf(bytes: &[u8]) -> String {
    const X86_64: u16 = 62;
    match word(bytes, 18) {
        Ok(X86_64) => {
            "an ELF file: if it is a kernel's vmlinux, give the bzImage that was \
                       made of it (arch/x86/boot/bzImage)"
                .to_owned()
        }
        _ => "an ELF file, and kernels are images".to_owned(),
    }
}

fn is_text(bytes: &[u8]) -> bool {
    let first = &bytes[..bytes.len().min(SECTOR)];
    first.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

/// A bootable header without content, for tests of functions that take an image.
#[cfg(test)]
pub(crate) fn synthetic(release: &str) -> Vec<u8> {
    let mut bytes = vec![0; 5 * SECTOR];
    bytes[0x1f1] = 3;
    bytes[0x1f4] = 32;
    bytes[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
    bytes[0x202..0x206].copy_from_slice(b"HdrS");
    bytes[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
    bytes[0x20e..0x210].copy_from_slice(&0x0100_u16.to_le_bytes());
    bytes[0x236] = 1;
    let text = format!("{release} (user@host) #1 SMP\0");
    bytes[0x300..0x300 + text.len()].copy_from_slice(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, ErrorKind};

    use units::chain;

    use crate::error::Kind;

    const RELEASE: &str = "6.1.0-56-cloud-amd64";

    /// An image with some bytes changed.
    fn with(place: usize, bytes: &[u8]) -> Vec<u8> {
        let mut image = synthetic(RELEASE);
        image[place..place + bytes.len()].copy_from_slice(bytes);
        image
    }

    /// Check that a kernel's release is read, also where a signature follows the image.
    #[test]
    fn reads_the_release() {
        let mut image = synthetic(RELEASE);
        assert_eq!(release(&image).unwrap(), RELEASE);
        image.extend_from_slice(&[7; 100]);
        assert_eq!(release(&image).unwrap(), RELEASE);
    }

    /// Check that the release of an arm64 kernel is read from its banner, and that an image without one is
    /// refused.
    #[test]
    fn arm64() {
        let mut image = vec![0; 2048];
        image[0x38..0x3c].copy_from_slice(b"ARM\x64");
        assert_eq!(architecture(&image), Architecture::Arm64);
        let why = arm64_release(&image).unwrap_err().to_string();
        assert!(why.contains("without a version"), "{why}");
        image.extend(
            b"Linux version %s\0Linux version 6.12.88+deb12-cloud-arm64 (x@y) #1",
        );
        assert_eq!(arm64_release(&image).unwrap(), "6.12.88+deb12-cloud-arm64");
    }

    /// Check that each broken or foreign header is refused for its own reason.
    #[test]
    fn refuses_other_kernels() {
        let mut short = synthetic(RELEASE);
        short.pop();
        for (image, why) in [
            (with(0x236, &[0]), "a 32-bit x86 kernel"),
            (with(0x206, &[0x0b, 2]), "(boot protocol 2.11)"),
            (with(0x20e, &[0, 0]), "without a version"),
            (with(0x20e, &[0xff, 0xff]), "without a version"),
            (short, "cut short: 2559 bytes of a kernel of 2560"),
            (synthetic(RELEASE)[..0x230].to_vec(), "its header is not all there"),
        ] {
            let error = release(&image).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    /// Check that the message names the format of a file that is no x86 kernel.
    #[test]
    fn says_what_it_is_instead() {
        let at = |place: usize, magic: &[u8]| {
            let mut bytes = vec![0; 2048];
            bytes[place..place + magic.len()].copy_from_slice(magic);
            bytes
        };
        let elf = |machine: u8| [b"\x7fELF".as_slice(), &[0; 14], &[machine, 0]].concat();
        for (bytes, what) in [
            (vec![], "an empty file"),
            (elf(62), "give the bzImage"),
            (elf(183), "an ELF file, and kernels are images"),
            (at(0, b"\x1f\x8b"), "compressed with gzip"),
            (at(0x38, b"RSC\x05"), "a kernel for RISC-V"),
            (at(0, b"MZ\0\0zimg"), "(zboot)"),
            (at(0, b"MZ"), "an EFI program"),
            (at(0x1fe, &[0x55, 0xaa]), "an unknown format"),
            (b"#!/bin/sh\necho hello\n".to_vec(), "a text"),
            (vec![1, 2, 3], "only 3 bytes"),
        ] {
            let error = release(&bytes).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    /// Check that a path that is not a readable file is refused with its name.
    #[test]
    fn refuses_what_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        for (path, why) in [
            (folder.path().to_owned(), "a directory"),
            (folder.path().join("none"), "there is no such file"),
            ("/dev/null/none".into(), "there is no such file"),
            ("/dev/zero".into(), "no regular file"),
        ] {
            let error = Image::read(&path).unwrap_err();
            assert_eq!(error.kind(), Kind::Kernel);
            let text = chain(&error);
            assert!(text.contains(&path.display().to_string()), "{text}");
            assert!(text.contains(why), "{text}");
        }
    }

    /// Check that an existing file without read permission is not reported as a wrong name.
    #[test]
    fn what_cannot_be_read() {
        let error = |kind: ErrorKind| {
            Error::Image("/x".into(), ImageError::from(io::Error::from(kind)))
        };
        let denied = error(ErrorKind::PermissionDenied);
        assert_eq!(denied.kind(), Kind::Unavailable);
        assert!(chain(&denied).contains("let root copy it"), "{denied:?}");
        assert_eq!(error(ErrorKind::NotFound).kind(), Kind::Kernel);
    }

    /// Check the checksum against FIPS 180's example.
    #[test]
    fn computes_the_checksum() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(checksum(b"abc"), expected);
    }

    /// Check that the running kernel passes, if it may be read.
    #[test]
    fn reads_a_real_image() {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let release = release.trim();
        let path = format!("/boot/vmlinuz-{release}");
        if !cfg!(target_arch = "x86_64") || File::open(&path).is_err() {
            println!("skipped: {path} cannot be read here, or is for another processor");
            return;
        }
        assert_eq!(Image::read(Path::new(&path)).unwrap().release, release);
    }
}
