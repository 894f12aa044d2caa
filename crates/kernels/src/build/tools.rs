//! The programs that build a kernel, and the identity of the compiler.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use facts::Config;

use crate::build_error::BuildError;
use crate::client;
use crate::error::Error;

/// Programs, and the packages of Debian's that have them (`Documentation/process/changes.rst` of
/// the kernel).
const PROGRAMS: [(&str, &str); 9] = [
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("perl", "perl"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];
/// Headers that a configuration needs: the option, the header, the package.
const HEADERS: [(&str, &str, &str); 2] = [
    ("OBJTOOL", "gelf.h", "libelf-dev"),
    ("SYSTEM_TRUSTED_KEYRING", "openssl/opensslv.h", "libssl-dev"),
];
/// Compressors of the image: the option, the program, the package.
const COMPRESSORS: [(&str, &str, &str); 5] = [
    ("KERNEL_BZIP2", "bzip2", "bzip2"),
    ("KERNEL_LZMA", "lzma", "xz-utils"),
    ("KERNEL_LZ4", "lz4", "lz4"),
    ("KERNEL_ZSTD", "zstd", "zstd"),
    ("KERNEL_LZO", "lzop", "lzop"),
];

/// Checks that all programs are installed.
///
/// # Errors
/// `BuildError::Tools` with those that are not.
pub(crate) fn check() -> Result<(), BuildError> {
    let missing = PROGRAMS.into_iter().filter(|(program, _)| !is_on_path(program));
    refuse(missing.collect())
}

/// Checks that what a configuration needs is installed.
///
/// # Errors
/// `BuildError::Tools` with what is not.
pub(crate) fn check_for(config: &Config) -> Result<(), BuildError> {
    let needed = |option: &str| config.is_set(option);
    let headers = HEADERS
        .into_iter()
        .filter(|(option, header, _)| needed(option) && !has_header(header))
        .map(|(_, header, package)| (header, package));
    let programs = COMPRESSORS
        .into_iter()
        .filter(|(option, program, _)| needed(option) && !is_on_path(program))
        .map(|(_, program, package)| (program, package));
    refuse(headers.chain(programs).collect())
}

fn refuse(missing: Vec<(&'static str, &'static str)>) -> Result<(), BuildError> {
    let (names, packages): (Vec<&str>, Vec<&str>) = missing.into_iter().unzip();
    match names.as_slice() {
        [] => Ok(()),
        [one] => Err(BuildError::Tools(format!("{one} is"), packages.join(" "))),
        [all @ .., last] => {
            let names = format!("{} and {last} are", all.join(", "));
            Err(BuildError::Tools(names, packages.join(" ")))
        }
    }
}

/// The versions of the compiler and the linker.
///
/// # Errors
/// `Kind::Unavailable` if one cannot be run, `Kind::Interrupted`.
pub(crate) fn compiler(stop: &AtomicBool) -> Result<String, Error> {
    let mut versions = String::new();
    for program in ["gcc", "ld"] {
        let text = client::output(Command::new(program).arg("--version"), stop)?;
        versions += text.lines().next().unwrap_or_default();
        versions.push('\n');
    }
    Ok(versions)
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder: PathBuf| folder.join(program).is_file())
}

/// Whether the compiler finds a header.
fn has_header(header: &str) -> bool {
    let mut compiler = Command::new("gcc");
    compiler.args(["-E", "-x", "c", "-include", header, "/dev/null"]);
    compiler.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    compiler.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that everything missing is in the message, with its packages.
    #[test]
    fn names_all() {
        assert!(refuse(Vec::new()).is_ok());
        let one = refuse(vec![("gelf.h", "libelf-dev")]).unwrap_err().to_string();
        assert_eq!(one, "gelf.h is not installed; hint: apt install libelf-dev");
        let all = [("ld", "binutils"), ("flex", "flex"), ("bc", "bc")];
        assert_eq!(
            refuse(all.to_vec()).unwrap_err().to_string(),
            "ld, flex and bc are not installed; hint: apt install binutils flex bc"
        );
    }
}
