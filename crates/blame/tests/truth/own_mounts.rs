//! A tracefs where this machine has none mounted: in a mount namespace of one thread, which
//! goes with it.

use std::ffi::CStr;
use std::io;

const PLACE: &CStr = c"/sys/kernel/tracing";

/// Does something in a thread that has tracefs where it belongs.
pub(crate) fn with_tracefs<T: Send>(
    run: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            mount().map_err(|error| format!("mount tracefs: {error}"))?;
            run()
        });
        thread.join().unwrap()
    })
}

fn mount() -> io::Result<()> {
    let own = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: the calls take numbers and strings that end in a zero, and change what this
    // thread alone sees.
    unsafe {
        is_done(libc::unshare(libc::CLONE_NEWNS))?;
        let nothing = std::ptr::null();
        is_done(libc::mount(nothing, c"/".as_ptr(), nothing, own, nothing.cast()))?;
        let kind = c"tracefs".as_ptr();
        is_done(libc::mount(kind, PLACE.as_ptr(), kind, 0, nothing.cast()))
    }
}

fn is_done(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
