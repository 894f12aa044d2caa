//! The guest time that QEMU has skipped while all CPUs were halted.
//!
//! With `-icount shift=0,sleep=off` the guest's clock (`icount_get`) is the number of executed
//! instructions (`icount_get_raw`) and the time skipped so far (`qemu_icount_bias`, which is not
//! exported), so that the skipped time is their difference. Source: accel/tcg/icount-common.c,
//! softmmu/icount.c before QEMU 9.0; both functions are the same in 7.2 to 11.
//!
//! Called on a thread that executes a CPU, both would first add what that CPU has executed in its
//! turn, and end QEMU in the middle of a block ("Bad icount read"). On any other thread they only
//! read two numbers. So QEMU's variable for the executing CPU is null during the calls: nothing is
//! added earlier than without the counter, and the guest observes no difference.
//!
//! Not part of the plugin interface: QEMU exports these functions for its own modules. A QEMU
//! without them has no idle stretches.

use std::ffi::{c_longlong, c_void};
use std::mem::replace;
use std::ptr::null_mut;

use crate::qemu::interface::find;
use crate::qemu::places::CURRENT_CPU;

type Read = unsafe extern "C" fn() -> c_longlong;

/// QEMU's clock, for the thread that runs the CPUs.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    guest_ns: Read,
    instructions: Read,
    current: *mut *mut c_void,
}

impl Clock {
    /// The clock as the calling thread reads it; `None` if this QEMU does not export it.
    pub(crate) fn of_thread() -> Option<Self> {
        let guest_ns = find(c"icount_get")?;
        let instructions = find(c"icount_get_raw")?;
        let current = find(CURRENT_CPU)?.cast();
        // SAFETY: the types of both functions since QEMU 5.2 (include/system/cpu-timers.h).
        let [guest_ns, instructions] = [guest_ns, instructions]
            .map(|found| unsafe { std::mem::transmute::<*mut c_void, Read>(found) });
        Some(Self { guest_ns, instructions, current })
    }

    /// The skipped nanoseconds so far.
    pub(crate) fn skipped(self) -> u64 {
        // SAFETY: the variable belongs to this thread and lives as long as it. Both functions
        // only read while it is null; nothing else runs on this thread meanwhile.
        let [guest, executed] = unsafe {
            let cpu = replace(&mut *self.current, null_mut());
            let read = [(self.guest_ns)(), (self.instructions)()];
            *self.current = cpu;
            read
        };
        u64::try_from(guest - executed).unwrap_or(0)
    }
}
