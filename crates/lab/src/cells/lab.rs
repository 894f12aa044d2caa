//! The lab: the parts that run cells, and the cache of their results.

use std::path::Path;
use std::sync::OnceLock;

use kernels::{Architecture, Kernels, checksum};
use recording::{Ending, MadeWith, MadeWithArm64};

use crate::cache::Cache;
use crate::cells::cache::CellCache;
use crate::error::Error;
use crate::guest::qemu::Qemu;
use crate::guest::thread_ordering::ThreadOrdering;
use crate::parts::Parts;

/// A lab: the parts that run cells, and the cache of their results.
pub struct Lab {
    pub(crate) cache: Cache,
    pub(crate) kernels: Kernels,
    x86_64: Emulator,
    /// It is searched for when it is needed.
    arm64: OnceLock<Emulator>,
    pub(crate) parts: Parts,
    pub(crate) cell_cache: CellCache,
    pub(crate) thread_ordering: ThreadOrdering,
}

/// The QEMU of an architecture.
pub(crate) struct Emulator {
    pub(crate) qemu: Qemu,
    pub(crate) counting: OnceLock<Counting>,
}

impl Emulator {
    fn new(qemu: Qemu) -> Self {
        Self { qemu, counting: OnceLock::new() }
    }
}

/// Whether QEMU loads the counter.
pub(crate) enum Counting {
    Loaded,
    /// It does not, for that reason.
    Refused(String),
}

impl Lab {
    /// The lab of this machine and user.
    ///
    /// # Errors
    /// `Kind::Qemu`, `Kind::Parts` or `Kind::Cache`, each with a hint.
    pub fn open(cache: Cache) -> Result<Self, Error> {
        let Found { parts, qemu } = Found::new()?;
        cache.sweep();
        let cell_cache = CellCache::new(&cache)?;
        let kernels = Kernels::new(&cache.folder);
        let thread_ordering = ThreadOrdering::find();
        let (x86_64, arm64) = (Emulator::new(qemu), OnceLock::new());
        Ok(Self { cache, kernels, x86_64, arm64, parts, cell_cache, thread_ordering })
    }

    /// The QEMU of guests of that architecture.
    ///
    /// # Errors
    /// `Kind::Qemu` if it is not installed, with the package.
    pub(crate) fn emulator(
        &self,
        architecture: Architecture,
    ) -> Result<&Emulator, Error> {
        match architecture {
            Architecture::X86_64 => Ok(&self.x86_64),
            Architecture::Arm64 => match self.arm64.get() {
                Some(emulator) => Ok(emulator),
                None => {
                    let found = Emulator::new(Qemu::find(architecture)?);
                    Ok(self.arm64.get_or_init(|| found))
                }
            },
        }
    }

    /// The identities of the parts of cells other than their kernels; those of arm64 cells if such have
    /// been run.
    pub fn made_with(&self) -> MadeWith {
        let arm64 = self.arm64.get().and_then(|emulator| self.made_with_arm64(emulator));
        MadeWith { arm64, ..made_with(&self.x86_64.qemu, &self.parts) }
    }

    fn made_with_arm64(&self, emulator: &Emulator) -> Option<MadeWithArm64> {
        let agent = self.parts.agent(Architecture::Arm64).ok()?;
        let qemu = emulator.qemu.version.clone();
        Some(MadeWithArm64 { agent_sha256: checksum(agent), qemu })
    }

    /// The same, of the lab that `open` would give; nothing is created or run.
    ///
    /// # Errors
    /// `Kind::Qemu` or `Kind::Parts`, with a hint.
    pub fn find_made_with() -> Result<MadeWith, Error> {
        let Found { parts, qemu } = Found::new()?;
        Ok(made_with(&qemu, &parts))
    }

    /// The QEMU that runs x86-64 cells.
    pub fn qemu(&self) -> &Qemu {
        &self.x86_64.qemu
    }

    /// The ending of a cell that was lost in a boot in `folder`.
    pub(crate) fn lost(
        &self,
        key: &str,
        folder: &Path,
        why: String,
    ) -> Result<Ending, Error> {
        let console = self.cell_cache.store_console(key, folder, "")?;
        Ok(Ending::Lost { why, console })
    }
}

/// What a lab needs on this machine. `make lab` provides both in a clone, so that the error that
/// names it comes first.
struct Found {
    parts: Parts,
    qemu: Qemu,
}

impl Found {
    fn new() -> Result<Self, Error> {
        Ok(Self { parts: Parts::find()?, qemu: Qemu::find(Architecture::X86_64)? })
    }
}

fn made_with(qemu: &Qemu, parts: &Parts) -> MadeWith {
    MadeWith {
        agent_sha256: checksum(&parts.agent),
        counter_sha256: parts.counter_sha256.clone(),
        qemu: qemu.version.clone(),
        arm64: None,
    }
}
