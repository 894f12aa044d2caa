//! What the C libraries `libnoisefloor` (`capi`) and `libtif` (`tif`) share: panics are caught,
//! failures become a code and a text, waiting for a lock is bounded, and a function is
//! registered with `atexit(3)`.
//!
//! Nothing here may be `#[no_mangle]`. A shared library exports the unmangled functions of every
//! crate that is linked into it, and each of the two exports its own functions only
//! (`capi/tests/exports.rs`).

mod at_exit;
pub mod code;
mod guard;
mod lock;

use std::sync::OnceLock;

use facts::{Facts, Root};

pub use at_exit::AtExit;
pub use code::Failure;
pub use guard::{caught, guard, last_error, note};
pub use lock::{lock, patient_lock};

/// The kernel's facts, read once: reading takes some milliseconds, and what these libraries use
/// of them does not change while a process runs.
pub fn facts() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(|| Facts::read(&Root::live()))
}
