//! Programs and libraries in the format ELF: their architecture, interpreter and libraries
//! (elf(5); the dynamic section as in the System V ABI, chapter 5).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use goblin::elf::header::{
    EM_386, EM_AARCH64, EM_ARM, EM_PPC64, EM_RISCV, EM_S390, EM_X86_64,
};
use goblin::elf::header::{ET_DYN, ET_EXEC};
use goblin::elf::{Elf, Header};

/// The length of the header, in bytes.
const HEADER: u64 = 64;
const MAGIC: &[u8] = b"\x7fELF";
/// The architectures that this machine's users are likely to have programs for.
const ARCHITECTURES: [(u16, &str); 7] = [
    (EM_386, "32-bit x86"),
    (EM_AARCH64, "64-bit ARM"),
    (EM_ARM, "32-bit ARM"),
    (EM_PPC64, "64-bit PowerPC"),
    (EM_RISCV, "RISC-V"),
    (EM_S390, "IBM Z"),
    (EM_X86_64, "x86-64 with 32-bit pointers (x32)"),
];

/// What a program or a library needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// The program that loads it.
    pub(super) interpreter: Option<String>,
    /// The names of its libraries.
    pub(super) libraries: Vec<String>,
    /// Where they are looked for, before (`DT_RPATH`) and after (`DT_RUNPATH`) the environment.
    pub(super) rpath: Vec<String>,
    pub(super) runpath: Vec<String>,
}

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Format {
    /// A program or a library for the guest.
    Elf(Needs),
    /// One for another architecture: its name.
    Foreign(String),
    /// A program or a library that cannot be read, and why.
    Damaged(String),
    /// Anything else.
    Other,
}

/// What these bytes are.
pub(super) fn format(bytes: &[u8]) -> Format {
    if !bytes.starts_with(MAGIC) {
        return Format::Other;
    }
    // The class is checked first: the header of another one has another length.
    let header = match Elf::parse_header(bytes) {
        Ok(header) => header,
        Err(why) => return Format::Damaged(why.to_string()),
    };
    if let Some(name) = foreign(&header) {
        return Format::Foreign(name);
    }
    if !matches!(header.e_type, ET_EXEC | ET_DYN) {
        return Format::Other;
    }
    match Elf::parse(bytes) {
        Ok(elf) => Format::Elf(needs(&elf)),
        Err(why) => Format::Damaged(why.to_string()),
    }
}

/// The format of a program or a library by its first bytes only; `None` if it is neither.
pub(super) fn header_of(path: &Path) -> Option<Format> {
    if !path.is_file() {
        return None; // a pipe would wait for a writer
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(HEADER).read_to_end(&mut bytes).ok()?;
    let header = bytes.starts_with(MAGIC).then(|| Elf::parse_header(&bytes).ok())??;
    Some(match foreign(&header) {
        Some(name) => Format::Foreign(name),
        None => Format::Elf(Needs::default()),
    })
}

/// The name of another architecture than x86-64.
fn foreign(header: &Header) -> Option<String> {
    const CLASS: usize = 4;
    const CLASS_64: u8 = 2;
    let is_64 = header.e_ident[CLASS] == CLASS_64;
    if header.e_machine == EM_X86_64 && is_64 {
        return None;
    }
    let known = ARCHITECTURES.iter().find(|(machine, _)| *machine == header.e_machine);
    Some(match known {
        Some((_, name)) => (*name).to_owned(),
        None => format!("machine {} (elf.h)", header.e_machine),
    })
}

fn needs(elf: &Elf<'_>) -> Needs {
    let paths = |all: &[&str]| {
        let paths = all.iter().flat_map(|list| list.split(':'));
        paths.filter(|path| !path.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    let runpath = paths(&elf.runpaths);
    // The linker ignores DT_RPATH if there is a DT_RUNPATH.
    let rpath = if runpath.is_empty() { paths(&elf.rpaths) } else { Vec::new() };
    Needs {
        interpreter: elf.interpreter.map(str::to_owned),
        libraries: elf.libraries.iter().map(|&name| name.to_owned()).collect(),
        rpath,
        runpath,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header of 64 bytes.
    fn header(class: u8, machine: u16) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
        bytes[16..18].copy_from_slice(&ET_EXEC.to_le_bytes());
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[20] = 1;
        bytes
    }

    /// Check that a pipe without a writer is not read.
    #[test]
    fn pipes() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert_eq!(header_of(&pipe), None);
        assert!(crate::packing::packer::read(&pipe).is_err());
    }

    /// Check that programs for other architectures are named, that damaged ones are not
    /// something else, and that this test's own program has its libraries.
    #[test]
    fn formats() {
        let foreign = |class, machine| format(&header(class, machine));
        assert_eq!(foreign(2, EM_AARCH64), Format::Foreign("64-bit ARM".to_owned()));
        assert_eq!(foreign(1, EM_386), Format::Foreign("32-bit x86".to_owned()));
        assert_eq!(foreign(2, 999), Format::Foreign("machine 999 (elf.h)".to_owned()));
        assert!(matches!(format(b"\x7fELF"), Format::Damaged(_)));
        assert_eq!(format(b"#!/bin/sh\n"), Format::Other);
        assert_eq!(format(b""), Format::Other);
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let Format::Elf(needs) = format(&own) else { panic!("not read") };
        assert!(
            needs.libraries.iter().any(|name| name.starts_with("libc.")),
            "{needs:?}"
        );
        assert!(needs.interpreter.is_some_and(|path| path.starts_with("/lib")));
    }
}
