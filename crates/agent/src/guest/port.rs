//! QEMU's debug console (`isa-debugcon`), which outputs each byte written to I/O port 0xe9. Kernels
//! write nothing there.

use crate::error::Error;

/// The port.
pub(crate) const PORT: u16 = 0xe9;

/// Sends bytes.
///
/// # Errors
/// If the kernel denies access to the port.
#[cfg(target_arch = "x86_64")]
pub(crate) fn send(bytes: &[u8]) -> Result<(), Error> {
    // SAFETY: permits this thread to use one port, and touches no memory.
    let refused = unsafe { libc::ioperm(PORT.into(), 1, 1) };
    if refused != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Error::new(format!("failed to use port {PORT:#x}"), error));
    }
    // SAFETY: reads only `bytes`; this thread may use the port, and the direction flag is clear, as
    // always between instructions of Rust.
    unsafe {
        std::arch::asm!(
            "rep outsb",
            in("dx") PORT,
            inout("rsi") bytes.as_ptr() => _,
            inout("rcx") bytes.len() => _,
            options(nostack, preserves_flags, readonly)
        );
    }
    // A switch to a thread with access to ports is more expensive, and may be measured next, so the
    // access is given up.
    // SAFETY: removes the access from this thread, and touches no memory.
    unsafe { libc::ioperm(PORT.into(), 1, 0) };
    Ok(())
}

/// Always an error: guests are x86-64.
///
/// # Errors
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn send(_: &[u8]) -> Result<(), Error> {
    let why = "this agent was built for a machine that is no x86-64 PC";
    Err(Error::new(format!("failed to use port {PORT:#x}"), why))
}
