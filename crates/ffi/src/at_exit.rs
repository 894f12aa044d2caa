//! Restoring at the end of the process: on `exit(3)`, on return from `main`, or when the library
//! is unloaded. After any other end, the journal is used (`isolate`).

use std::sync::OnceLock;

use crate::code::{Failure, NF_SYSTEM};

/// A function to be called at the end of the process.
///
/// Each library has a static of its own: a program that links both statically shares this
/// crate's code, but has to register two functions.
#[derive(Debug)]
pub struct AtExit {
    function: extern "C" fn(),
    registered: OnceLock<bool>,
}

impl AtExit {
    /// The function must not unwind.
    pub const fn new(function: extern "C" fn()) -> Self {
        Self { function, registered: OnceLock::new() }
    }

    /// Registers the function; once, however often this is called.
    ///
    /// # Errors
    /// `NF_SYSTEM` if `atexit(3)` fails.
    pub fn register(&self) -> Result<(), Failure> {
        // SAFETY: the function exists as long as the library is loaded, and takes no argument.
        let register = || unsafe { libc::atexit(self.function) } == 0;
        if *self.registered.get_or_init(register) {
            return Ok(());
        }
        Err(Failure::new(NF_SYSTEM, "failed to register an exit handler with atexit(3)"))
    }
}
