//! The option that concerns CPUs on which another noisefloor measures.

use session::Access;

/// What to do if another noisefloor measures on one of the CPUs.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Claiming {
    /// Wait until no other noisefloor measures on these CPUs, instead of failing.
    #[arg(long)]
    wait: bool,
}

impl Claiming {
    /// CPUs that no other noisefloor measures on.
    pub(crate) fn access(self) -> Access {
        Access::Exclusive { waits: self.wait }
    }
}
