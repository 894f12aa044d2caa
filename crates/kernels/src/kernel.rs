//! A kernel that a guest can boot: its image, and its properties.

use std::fs;
use std::path::PathBuf;

use facts::Config;
use serde::{Deserialize, Serialize};

use crate::architecture::Architecture;
use crate::error::Error;
use crate::options::{self, MissingOptions};

/// A kernel that a guest can boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// The name that it was found by: `running`, a path, `debian:6.1-cloud`.
    pub spec: String,
    /// Its architecture, from its image.
    pub architecture: Architecture,
    /// The image.
    pub image: PathBuf,
    /// Its configuration, if there is one.
    pub config: Option<PathBuf>,
    /// The image's SHA-256, in hexadecimal.
    pub sha256: String,
    /// Its release, from its image: `6.1.0-56-cloud-amd64`.
    pub release: String,
    /// The package it is from, if it is from one.
    pub package: Option<String>,
    /// That package's version: `6.1.192-2`.
    pub package_version: Option<String>,
    /// How it was built, if it was.
    pub build: Option<Build>,
}

/// How a kernel was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// The name by which it was first built.
    pub name: String,
    /// What identifies its source: a package and its version, a checksum, the hash of a git tree.
    pub source: String,
    /// The versions of the compiler and the linker.
    pub compiler: String,
    /// The CPU time of all processes of the build, user and system, in milliseconds.
    pub cpu_ms: u64,
}

impl Kernel {
    /// Its configuration; `None` if there is none that is readable.
    ///
    /// # Errors
    /// `Error::Config` if it is no configuration.
    pub fn configuration(&self) -> Result<Option<Config>, Error> {
        let Some(file) = &self.config else { return Ok(None) };
        let Ok(bytes) = fs::read(file) else { return Ok(None) };
        let config = Config::parse(&bytes, &file.display().to_string());
        config.map(Some).map_err(|why| Error::Config(self.spec.clone(), why.to_string()))
    }

    /// The build options that it lacks and every guest needs; `None` if there are none, or its
    /// configuration is unknown.
    ///
    /// # Errors
    /// As [`Self::configuration`].
    pub fn missing_options(&self) -> Result<Option<MissingOptions>, Error> {
        let config = self.configuration()?;
        Ok(config.and_then(|config| options::check(&config, self.architecture).err()))
    }
}
