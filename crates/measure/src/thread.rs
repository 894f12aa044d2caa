//! A thread of a measurement: named, so that it can be found in `ps -eL`, and never left
//! behind.

use std::mem::MaybeUninit;
use std::ptr;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::{Error, Kind};

/// Starts a thread of that name (15 bytes of it are kept).
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    life: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, life).map_err(|error| {
        Error::new(Kind::System, format!("no thread for {name}: {error}"))
    })
}

/// Lets no signal be handled by the calling thread, nor by those it starts.
pub(crate) fn block_signals() {
    let mut all = MaybeUninit::uninit();
    // SAFETY: `all` is room for a set, which the first call fills and the second reads.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut());
    }
}

/// Why a thread did not tell what it was there to tell.
pub(crate) fn died(name: &str) -> Error {
    Error::new(Kind::System, format!("the thread {name} died"))
}
