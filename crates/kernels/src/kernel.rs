//! A kernel that a guest can boot: its image, and its properties.

use std::fs;
use std::path::PathBuf;

use facts::Config;

use crate::error::Error;

/// A kernel that a guest can boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name that it was found by: `running`, a path, `debian:6.1-cloud`.
    pub spec: String,
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
}
