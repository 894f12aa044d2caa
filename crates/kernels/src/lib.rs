//! From a kernel's name to an image that a guest can boot: this machine's kernel, a file, a stock
//! kernel of Debian's, downloaded through the system's package client, or one that is built from
//! its source.
#![forbid(unsafe_code)]

mod apt;
mod architecture;
mod build;
mod build_error;
mod build_name;
mod build_option;
mod client;
mod debian;
mod debian_version;
mod error;
mod image;
mod kernel;
mod lock;
mod options;
mod package;
mod resolve;
mod sources;
mod spec;
mod store;
#[cfg(test)]
mod test_archive;
#[cfg(test)]
mod test_tree;
mod wanted;

pub use architecture::Architecture;
pub use build::Configuration;
pub use build::difference::{ConfigDifference, OptionDifference};
pub use build_error::BuildError;
pub use build_name::{Base, BuildNameError, BuildSpec, SourceSpec};
pub use build_option::{OptionError, OptionValue};
pub use client::{Written, run_or_stop};
pub use debian::{Fetch, SuiteKernels};
pub use error::{
    CACHE_VARIABLE, CacheError, ClientError, Error, ImageError, Kind, Unavailable,
};
pub use image::checksum;
pub use kernel::{Build, Kernel};
pub use lock::lock_or_stop;
pub use options::MissingOptions;
pub use resolve::Kernels;
pub use spec::{NameError, check_name};
pub use wanted::{Source, Wanted};
