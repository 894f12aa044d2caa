//! Programs of this workspace in guests: tests that also run there, and the program that they
//! call, with their libraries.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::site::{TOOL, text};

/// A program, and the files that the dynamic linker needs for it.
#[derive(Debug, Clone)]
pub(crate) struct GuestProgram {
    pub(crate) program: Vec<u8>,
    /// By their paths without the first slash; the linker is one of them.
    pub(crate) libraries: Vec<(String, Vec<u8>)>,
}

impl GuestProgram {
    /// The program `noisefloor-NAME` that `cargo xtask guest --tests` built.
    pub(crate) fn find(name: &str) -> Option<Self> {
        let file = Path::new(TOOL).with_file_name(format!("../lab/noisefloor-{name}"));
        let program = fs::read(&file).ok()?;
        let listed = Command::new("ldd").arg(&file).output().unwrap();
        assert!(listed.status.success(), "ldd: {}", text(&listed.stderr));
        let listed = text(&listed.stdout);
        let libraries = listed.lines().filter_map(path).map(|path| {
            let name = path.trim_start_matches('/').to_owned();
            (name, fs::read(path).unwrap())
        });
        Some(Self { program, libraries: libraries.collect() })
    }
}

/// The path in a line of ldd(1): `NAME => PATH (ADDRESS)`, or `PATH (ADDRESS)` for the linker.
fn path(line: &str) -> Option<&str> {
    line.split_whitespace().find(|word| word.starts_with('/'))
}
