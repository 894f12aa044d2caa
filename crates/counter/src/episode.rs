//! What is counted: instructions by privilege level, and what an episode of them is.

use crate::symbols::Function;

/// Instructions executed so far on one CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) user: u64,
    pub(crate) kernel: u64,
}

impl Count {
    /// What was executed since an earlier count.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { user: self.user - earlier.user, kernel: self.kernel - earlier.kernel }
    }

    /// User's and kernel's together.
    pub(crate) fn all(self) -> u64 {
        self.user + self.kernel
    }
}

/// What was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    User,
    Kernel,
}

/// What an episode is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// From one step mark to the next.
    Step,
    /// From entering the kernel there to leaving it.
    Interruption(Function, Level),
}
