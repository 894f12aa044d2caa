//! The parts of guests other than their kernels: the agent and the counter.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kernels::{Architecture, checksum};

use crate::error::Error;
use crate::installation::{
    AGENT, AGENT_ARM64, COUNTER, PARTS_VARIABLE, TIF, TIF_SONAME, variable,
};
use crate::packing::LIBRARIES;

/// The parts of a guest other than its kernel.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// The agent's program, of x86-64 guests.
    pub(crate) agent: Vec<u8>,
    /// That of arm64 guests, or where it is missing.
    arm64_agent: Result<Vec<u8>, PathBuf>,
    /// The counter's file.
    pub(crate) counter: PathBuf,
    /// Its SHA-256, in hexadecimal.
    pub(crate) counter_sha256: String,
}

impl Parts {
    /// Finds them in the folder that the variable names, else beside this program.
    pub(crate) fn find() -> Result<Self, Error> {
        let place = match variable(PARTS_VARIABLE).map(PathBuf::from) {
            Some(place) => named(place)?,
            None => beside(env::current_exe().ok().as_deref())?,
        };
        Self::read(&place).map_err(|cause| Error::Read(place, cause))
    }

    fn read(place: &Path) -> io::Result<Self> {
        let place = place.canonicalize()?;
        let agent = fs::read(place.join(AGENT))?;
        let arm64_agent = fs::read(place.join(AGENT_ARM64)).map_err(|_| place.clone());
        let counter = place.join(COUNTER);
        let counter_sha256 = checksum(&fs::read(&counter)?);
        Ok(Self { agent, arm64_agent, counter, counter_sha256 })
    }

    /// The agent's program for guests of that architecture.
    pub(crate) fn agent(&self, architecture: Architecture) -> Result<&[u8], Error> {
        match architecture {
            Architecture::X86_64 => Ok(&self.agent),
            Architecture::Arm64 => {
                let missing = |place: &PathBuf| Error::NoArm64Agent(place.clone());
                self.arm64_agent.as_deref().map_err(missing)
            }
        }
    }
}

/// The folder that the variable names, if the parts are in it.
fn named(place: PathBuf) -> Result<PathBuf, Error> {
    match [AGENT, COUNTER].into_iter().find(|part| !place.join(part).is_file()) {
        Some(part) => Err(Error::NoPart(place, part)),
        None => Ok(place),
    }
}

/// Where `make install` or `cargo` puts them beside this program.
fn beside(program: Option<&Path>) -> Result<PathBuf, Error> {
    let ways = ["../lib/noisefloor", "../lab", "../../lab"];
    let folder = program.and_then(Path::parent).into_iter();
    let mut places = folder.flat_map(|folder| ways.map(|way| folder.join(way)));
    let complete =
        |place: &PathBuf| [AGENT, COUNTER].iter().all(|part| place.join(part).is_file());
    places.find(complete).ok_or(Error::NoParts)
}

/// The library for programs written for Intel's TIF, where `make install` or `cargo` puts it beside this
/// program, and the path at which guests find it; `None` if it is not there.
pub fn tif_library() -> Option<(PathBuf, String)> {
    let program = env::current_exe().ok()?.canonicalize().ok()?;
    let mut places =
        ["../lib", "."].map(|way| program.with_file_name(way).join(TIF)).into_iter();
    Some((places.find(|place| place.is_file())?, format!("{LIBRARIES}/{TIF_SONAME}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;

    /// Check that a folder that is named for the parts and lacks one is refused, with the
    /// variable and the part.
    #[test]
    fn named_parts() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_owned();
        fs::write(place.join(AGENT), "agent").unwrap();
        let error = named(place.clone()).unwrap_err();
        assert_eq!(error.kind(), Kind::Parts);
        let text = error.to_string();
        assert!(text.starts_with("NOISEFLOOR_PARTS is ") && text.contains(COUNTER));
        fs::write(place.join(COUNTER), "counter").unwrap();
        assert_eq!(named(place.clone()).unwrap(), place);
        let parts = Parts::read(&place).unwrap();
        assert_eq!(parts.agent(Architecture::X86_64).unwrap(), b"agent");
        let why = parts.agent(Architecture::Arm64).unwrap_err().to_string();
        assert!(why.contains("noisefloor-agent-arm64"), "{why}");
        assert!(why.ends_with("cargo xtask guest --arch arm64"), "{why}");
        fs::write(place.join(AGENT_ARM64), "other").unwrap();
        let parts = Parts::read(&place).unwrap();
        assert_eq!(parts.agent(Architecture::Arm64).unwrap(), b"other");
    }

    /// Check that the parts are found where they are installed, and that the message names them
    /// otherwise.
    #[test]
    fn parts_beside_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bin/noisefloor");
        let parts = folder.path().join("lib/noisefloor");
        let error = beside(Some(&program)).unwrap_err().to_string();
        assert!(error.contains("`make lab`"), "{error}");
        assert!(error.contains("NOISEFLOOR_PARTS"), "{error}");
        fs::create_dir_all(&parts).unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        for part in [AGENT, COUNTER] {
            fs::write(parts.join(part), "").unwrap();
        }
        let place = beside(Some(&program)).unwrap().canonicalize().unwrap();
        assert_eq!(place, parts.canonicalize().unwrap());
    }
}
