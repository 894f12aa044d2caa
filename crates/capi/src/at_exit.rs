//! What is given back when the process ends and nobody has: by `exit(3)`, by returning from
//! `main`, or when the library is unloaded. Whatever else ends it is the journal's business.

use std::sync::OnceLock;

use crate::code::{Failure, NF_SYSTEM};
use crate::guard::caught;
use crate::isolation::ISOLATIONS;
use crate::tif;

/// Sees to it, once.
pub(crate) fn register() -> Result<(), Failure> {
    static DONE: OnceLock<bool> = OnceLock::new();
    // SAFETY: the function is there as long as the library is, and lets no panic out.
    let register = || unsafe { libc::atexit(give_back) } == 0;
    if *DONE.get_or_init(register) {
        return Ok(());
    }
    Err(Failure::new(NF_SYSTEM, "the C library has no room for atexit(3)"))
}

extern "C" fn give_back() {
    // Nobody is there to be told; what stays, stays in the journal.
    let _ = caught(|| {
        drop(ISOLATIONS.take_all());
        tif::end();
        Ok(())
    });
}
