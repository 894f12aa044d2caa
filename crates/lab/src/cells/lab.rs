//! The lab: the parts that run cells, and the cache of their results.

use std::path::Path;
use std::sync::OnceLock;

use kernels::{Kernels, checksum};
use recording::{Ending, MadeWith};

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
    pub(crate) qemu: Qemu,
    pub(crate) counting: OnceLock<Counting>,
    pub(crate) parts: Parts,
    pub(crate) cell_cache: CellCache,
    pub(crate) thread_ordering: ThreadOrdering,
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
        let counting = OnceLock::new();
        Ok(Self { cache, kernels, qemu, counting, parts, cell_cache, thread_ordering })
    }

    /// The identities of the parts of cells other than their kernels.
    pub fn made_with(&self) -> MadeWith {
        made_with(&self.qemu, &self.parts)
    }

    /// The same, of the lab that `open` would give; nothing is created or run.
    ///
    /// # Errors
    /// `Kind::Qemu` or `Kind::Parts`, with a hint.
    pub fn find_made_with() -> Result<MadeWith, Error> {
        let Found { parts, qemu } = Found::new()?;
        Ok(made_with(&qemu, &parts))
    }

    /// The QEMU that runs the cells.
    pub fn qemu(&self) -> &Qemu {
        &self.qemu
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
        Ok(Self { parts: Parts::find()?, qemu: Qemu::find()? })
    }
}

fn made_with(qemu: &Qemu, parts: &Parts) -> MadeWith {
    MadeWith {
        agent_sha256: checksum(&parts.agent),
        counter_sha256: parts.counter_sha256.clone(),
        qemu: qemu.version.clone(),
    }
}
