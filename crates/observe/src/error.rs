//! Why a program cannot be observed.

use std::io;
use std::path::PathBuf;

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This machine does not permit it.
    NotPermitted,
    /// The program cannot be started.
    Program,
    /// The tracer failed.
    Tracer,
    /// The user stopped it.
    Interrupted,
}

/// Why a program cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel permits no tracing.
    #[error(
        "this machine does not permit the tracing of programs (ptrace(2); \
         /proc/sys/kernel/yama/ptrace_scope, or the rules of a container)"
    )]
    NotPermitted(#[source] io::Error),
    /// The kernel does not execute the program.
    #[error("failed to execute {}", .0.display())]
    Execute(PathBuf, #[source] io::Error),
    /// There is no further process.
    #[error("failed to start a process")]
    Start(#[source] io::Error),
    /// The tracer lost the program.
    #[error("failed to trace the program")]
    Trace(#[source] io::Error),
    /// The thread of the tracer panicked.
    #[error("the tracer failed")]
    Tracer,
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        match self {
            Self::NotPermitted(_) => Kind::NotPermitted,
            Self::Execute(..) => Kind::Program,
            Self::Start(_) | Self::Trace(_) | Self::Tracer => Kind::Tracer,
            Self::Interrupted => Kind::Interrupted,
        }
    }
}
