//! Instructions by privilege level, and the types of episodes.

use crate::symbols::Function;

/// Instructions executed so far on one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) user: u64,
    pub(crate) kernel: u64,
}

impl Count {
    /// The instructions executed since an earlier count.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { user: self.user - earlier.user, kernel: self.kernel - earlier.kernel }
    }

    /// The sum of both levels.
    pub(crate) fn all(self) -> u64 {
        self.user + self.kernel
    }
}

/// The interrupted privilege level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    User,
    Kernel,
}

/// The type of an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// From one step mark to the next.
    Step,
    /// From an entry into the kernel, at this entry point, to the exit.
    Interruption(Function, Level),
}
