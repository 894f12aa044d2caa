//! QEMU's debug console (`isa-debugcon`), which takes each byte written to I/O port 0xe9.
//! Kernels write nothing there.

use crate::error::Error;

/// The port.
pub(crate) const PORT: u16 = 0xe9;

/// Sends bytes.
///
/// # Errors
/// Where the kernel does not let this program use the port.
#[cfg(target_arch = "x86_64")]
pub(crate) fn send(bytes: &[u8]) -> Result<(), Error> {
    // SAFETY: gives this thread the one port, and touches no memory.
    let refused = unsafe { libc::ioperm(PORT.into(), 1, 1) };
    if refused != 0 {
        let error = std::io::Error::last_os_error();
        return Err(Error::new(format!("failed to use port {PORT:#x}"), error));
    }
    // SAFETY: reads `bytes` and nothing else; the port was given to this thread, and
    // the direction flag is clear, as it always is between instructions of Rust.
    unsafe {
        std::arch::asm!(
            "rep outsb",
            in("dx") PORT,
            inout("rsi") bytes.as_ptr() => _,
            inout("rcx") bytes.len() => _,
            options(nostack, preserves_flags, readonly)
        );
    }
    // Switching to a thread that may use ports is dearer than to another, and is what
    // may be measured next. What was given can be taken back.
    // SAFETY: takes the port from this thread, and touches no memory.
    unsafe { libc::ioperm(PORT.into(), 1, 0) };
    Ok(())
}

/// Sends nothing: guests are x86-64.
///
/// # Errors
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn send(_: &[u8]) -> Result<(), Error> {
    let why = "this agent was built for a machine that is no x86-64 PC";
    Err(Error::new(format!("failed to use port {PORT:#x}"), why))
}
