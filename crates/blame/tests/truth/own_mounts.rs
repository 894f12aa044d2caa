//! File systems independent of this machine's: in a mount namespace of one thread and those that it
//! starts, which ends with them.

use std::ffi::CStr;
use std::io;

/// Runs `act` in a thread with tracefs at its usual place.
pub(crate) fn with_tracefs<T: Send>(
    run: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    with_mounted(c"tracefs", &[c"/sys/kernel/tracing"], run)
}

/// Runs `act` in a thread with file systems of that kind at these places.
pub(crate) fn with_mounted<T: Send>(
    kind: &CStr,
    places: &[&CStr],
    run: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mounted = unshare()
                .and_then(|()| places.iter().try_for_each(|place| mount(kind, place)));
            mounted
                .map_err(|error| format!("mount {}: {error}", kind.to_string_lossy()))?;
            run()
        });
        thread.join().unwrap()
    })
}

fn unshare() -> io::Result<()> {
    let own = libc::MS_REC | libc::MS_PRIVATE;
    let nothing = std::ptr::null();
    // SAFETY: the calls take numbers and strings that end in a zero, and affect this thread only.
    unsafe {
        is_done(libc::unshare(libc::CLONE_NEWNS))?;
        is_done(libc::mount(nothing, c"/".as_ptr(), nothing, own, nothing.cast()))
    }
}

fn mount(kind: &CStr, place: &CStr) -> io::Result<()> {
    let kind = kind.as_ptr();
    // SAFETY: the call takes strings that end in a zero, and no options.
    let done =
        is_done(unsafe { libc::mount(kind, place.as_ptr(), kind, 0, std::ptr::null()) });
    match done {
        // It is mounted there already.
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(()),
        done => done,
    }
}

fn is_done(code: libc::c_int) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
