//! Why a kernel is not available, with hints.
//!
//! An error's own text does not contain that of its source: [`units::chain`] prints both.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use units::chain;

use crate::build_error::BuildError;
use crate::options::MissingOptions;
use crate::spec::NameError;

/// The variable that names another cache.
pub const CACHE_VARIABLE: &str = "NOISEFLOOR_CACHE";

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name that no kernel can have: a usage error.
    Name,
    /// The named kernel is none that a guest can boot.
    Kernel,
    /// The archive or this machine does not have the kernel.
    Unavailable,
    /// The kernel does not build.
    Build,
    /// The cache cannot be read or written.
    Cache,
    /// The user stopped it.
    Interrupted,
}

/// Why a kernel is not available.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No kernel can have that name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A file that is no usable image.
    #[error("failed to use {} as a kernel", .0.display())]
    Image(PathBuf, #[source] ImageError),
    /// A kernel's configuration that cannot be parsed, and why.
    #[error("failed to read the configuration of kernel {0}: {1}")]
    Config(String, String),
    /// A kernel without a build option that guests need.
    #[error("failed to use kernel {0} in a guest")]
    Options(String, #[source] MissingOptions),
    /// The image of this machine's kernel is in none of those usual places.
    #[error(
        "failed to find the running kernel: no {0}, as is usual in containers and \
         virtual machines; hint: name another kernel"
    )]
    NoRunningImage(String),
    /// A file of this machine that cannot be read.
    #[error("failed to read {}", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A kernel of Debian's that is not available.
    #[error("failed to get kernel {0}")]
    Debian(String, #[source] Unavailable),
    /// Debian's archive has no such kernel, or does not answer.
    #[error("{0}")]
    Archive(String),
    /// A package without a kernel image in it.
    #[error("there is no vmlinuz in package {0}")]
    EmptyPackage(String),
    /// A kernel that cannot be built.
    #[error("failed to build kernel {0}")]
    Build(String, #[source] BuildError),
    /// A program of the system's package client failed.
    #[error("failed to run {0}")]
    Client(String, #[source] ClientError),
    /// The cache cannot be read or written.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A kernel's folder in the cache whose image cannot be read, or has another checksum.
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf, #[source] Option<io::Error>),
    /// The user stopped it.
    #[error("interrupted while getting a kernel")]
    Interrupted,
}

/// Why a file is no kernel image that a guest can boot.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It does not exist: a mistake in its name.
    #[error(
        "there is no such file; a kernel is 'running', a path, debian:VERSION, or build:SOURCE"
    )]
    Missing,
    /// It may not be read.
    #[error("permission denied; hint: let root copy it to where you can read it")]
    Denied,
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(io::Error),
    /// It is a directory.
    #[error("it is a directory, and a kernel is one file")]
    Directory,
    /// It is a device, a pipe or a socket.
    #[error("it is no regular file")]
    NotRegular,
    /// It is longer than any kernel.
    #[error("it is too long for a kernel")]
    TooLong,
    /// It has another format.
    #[error("it is not a kernel image, but {0}")]
    Other(String),
    /// Its boot protocol has that major and minor version.
    #[error(
        "it is a kernel older than Linux 3.8 (boot protocol {0}.{1:02}), which does not \
         state whether it is a 64-bit one"
    )]
    Old(u16, u16),
    /// It is for 32-bit processors.
    #[error("it is a 32-bit x86 kernel, and guests are x86-64 or arm64")]
    Not64Bit,
    /// Its end is missing: its length, and the length in its header.
    #[error("it is cut short: {0} bytes of a kernel of {1}")]
    CutShort(usize, usize),
    /// Its header is incomplete.
    #[error("it is cut short: its header is not all there")]
    Header,
    /// Its release is not where it should be.
    #[error("it is a kernel without a version")]
    NoRelease,
}

impl From<io::Error> for ImageError {
    fn from(error: io::Error) -> Self {
        #[expect(clippy::wildcard_enum_match_arm, reason = "a large enum of std")]
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Self::Missing,
            ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Unreadable(error),
        }
    }
}

/// The reason why a kernel of Debian's is unavailable, and what works without packages.
#[derive(Debug, thiserror::Error)]
#[error("{}; hint: the path of a kernel image works without packages", chain(.0.as_ref()))]
pub struct Unavailable(pub(crate) Box<Error>);

/// Why a program of the package client failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// It is not installed.
    #[error("it is not installed")]
    Missing,
    /// It cannot be started or awaited.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It failed, with that message.
    #[error("{0}")]
    Failed(String),
    /// It failed because the disk is full.
    #[error("{0}; hint: free some space, or set {CACHE_VARIABLE} to another directory")]
    Full(String),
}

/// The cache cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("failed to use the cache {}", .path.display())]
pub struct CacheError {
    path: PathBuf,
    #[source]
    cause: CacheCause,
}

/// Why the cache cannot be used, and what would help.
#[derive(Debug, thiserror::Error)]
enum CacheCause {
    #[error("{0}; hint: free some space, or set {CACHE_VARIABLE} to another directory")]
    Full(io::Error),
    #[error("{0}; hint: set {CACHE_VARIABLE} to a directory that you can write to")]
    Denied(io::Error),
    #[error("{0}")]
    NoLocks(io::Error),
    #[error("{0}; hint: set {CACHE_VARIABLE} to another directory")]
    Other(io::Error),
}

impl CacheError {
    /// A failure to read or write a path in the cache.
    pub fn new(path: &Path, error: io::Error) -> Self {
        #[expect(clippy::wildcard_enum_match_arm, reason = "a large enum of std")]
        let cause = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => CacheCause::Full(error),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                CacheCause::Denied(error)
            }
            _ if facts::has_no_locks(&error) => CacheCause::NoLocks(error),
            _ => CacheCause::Other(error),
        };
        Self { path: path.to_owned(), cause }
    }
}

impl Error {
    /// Whether a source that was built, or was to be built, is the reason: another commit of it
    /// may work.
    pub fn is_of_source(&self) -> bool {
        match self {
            Self::Build(_, cause) => cause.is_of_source(),
            Self::Image(..) | Self::Options(..) | Self::Config(..) => true,
            Self::Name(_)
            | Self::NoRunningImage(_)
            | Self::Read(..)
            | Self::Debian(..)
            | Self::Archive(_)
            | Self::EmptyPackage(_)
            | Self::Client(..)
            | Self::Cache(_)
            | Self::Damaged(..)
            | Self::Interrupted => false,
        }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Name(_) => Kind::Name,
            Self::Image(_, ImageError::Denied | ImageError::Unreadable(_)) => {
                Kind::Unavailable
            }
            Self::Image(..) | Self::Config(..) | Self::Options(..) => Kind::Kernel,
            Self::Client(_, ClientError::Full(_))
            | Self::Cache(_)
            | Self::Damaged(..) => Kind::Cache,
            Self::NoRunningImage(_)
            | Self::Read(..)
            | Self::Debian(..)
            | Self::Archive(_)
            | Self::EmptyPackage(_)
            | Self::Client(..) => Kind::Unavailable,
            Self::Build(_, cause) => build_kind(cause),
            Self::Interrupted => Kind::Interrupted,
        }
    }
}

/// The kind of failure to build a kernel.
fn build_kind(cause: &BuildError) -> Kind {
    match cause {
        BuildError::NotKernel { .. }
        | BuildError::BuiltInPlace(_)
        | BuildError::Read(..)
        | BuildError::NotText(_)
        | BuildError::Line { .. }
        | BuildError::Module(..)
        | BuildError::NoOption(..)
        | BuildError::Value(..)
        | BuildError::Dropped(_)
        | BuildError::Hz(..) => Kind::Kernel,
        BuildError::Tools(..) | BuildError::Run(..) | BuildError::Changed(_) => {
            Kind::Unavailable
        }
        BuildError::Failed { .. } => Kind::Build,
        BuildError::Full(_) | BuildError::Write(..) | BuildError::Spaces(_) => {
            Kind::Cache
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each failure of the cache names the variable, and what would help.
    #[test]
    fn failures() {
        let text = |errno: rustix::io::Errno| {
            let error = Error::from(CacheError::new(Path::new("/x"), errno.into()));
            assert_eq!(error.kind(), Kind::Cache);
            chain(&error)
        };
        let denied = "failed to use the cache /x: Permission denied (os error 13); \
                      hint: set NOISEFLOOR_CACHE to a directory that you can write to";
        assert_eq!(text(rustix::io::Errno::ACCESS), denied);
        let full = "failed to use the cache /x: No space left on device (os error 28); \
                    hint: free some space, or set NOISEFLOOR_CACHE to another directory";
        assert_eq!(text(rustix::io::Errno::NOSPC), full);
        let other = "failed to use the cache /x: File exists (os error 17); \
                     hint: set NOISEFLOOR_CACHE to another directory";
        assert_eq!(text(rustix::io::Errno::EXIST), other);
    }
}
