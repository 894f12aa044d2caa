//! Marks: instructions without effect at the beginning, the repeats and the end of a measurement.
//!
//! The lab's counter plugin sees each instruction that a guest executes, and counts between the
//! marks; boot, preparation and power-off are excluded. A mark is an instruction that no compiler
//! emits: on x86-64 a multi-byte NOP, `nopl disp32(%rax)` (Intel's manual, volume 2, NOP), with these
//! displacements; on arm64 `movz xzr, #imm16, lsl #48` (Arm's manual, C6.2, MOVZ), which writes to the
//! zero register, with these numbers. On hardware it costs less than a nanosecond; on other
//! architectures it is empty. A *phase* is from begin to end: begins of several threads nest, the first
//! begin and the last end count. Steps divide it into repeats.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use core::arch::asm;

/// The common part of all displacements: `NF`, in the upper half.
pub const MAGIC: u32 = 0x4e46_0000;
/// The displacement of [`begin`].
pub const BEGIN: u32 = MAGIC + 1;
/// The displacement of [`step`].
pub const STEP: u32 = MAGIC + 2;
/// The displacement of [`end`].
pub const END: u32 = MAGIC + 3;
/// The displacement of [`join`].
pub const JOIN: u32 = MAGIC + 4;
/// The displacement of [`leave`].
pub const LEAVE: u32 = MAGIC + 5;
/// The displacement of [`attend`].
pub const ATTEND: u32 = MAGIC;

/// Emits the instruction. The compiler assumes that it accesses memory, and so moves no reading or
/// writing across it.
macro_rules! mark {
    ($displacement:expr) => {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction accesses no memory, whatever its operand.
        unsafe {
            asm!(
                "nop dword ptr [rax + {displacement}]",
                displacement = const $displacement,
                options(nostack, preserves_flags)
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: the instruction writes to no register, and accesses no memory.
        unsafe {
            asm!(
                "movz xzr, #{number}, lsl #48",
                number = const ($displacement >> 16) + ($displacement & 0xffff),
                options(nostack, preserves_flags)
            );
        }
    };
}

/// A phase begins.
#[inline(always)]
pub fn begin() {
    mark!(BEGIN);
}

/// One repeat ends, and the next one begins.
#[inline(always)]
pub fn step() {
    mark!(STEP);
}

/// A phase ends.
#[inline(always)]
pub fn end() {
    mark!(END);
}

/// The calling thread begins a group of threads; new threads belong to the group of the thread that
/// creates them. Groups are counted from 1.
#[inline(always)]
pub fn join() {
    mark!(JOIN);
}

/// The calling thread leaves its group.
#[inline(always)]
pub fn leave() {
    mark!(LEAVE);
}

/// A measurement is about to begin: the counter records details, which slows the guest down, from
/// the next halt of a CPU on.
#[inline(always)]
pub fn attend() {
    mark!(ATTEND);
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::*;

    /// The bytes of a mark, as the counter expects them.
    #[cfg(target_arch = "x86_64")]
    fn bytes(displacement: u32) -> Vec<u8> {
        [&[0x0f, 0x1f, 0x80], &displacement.to_le_bytes()[..]].concat()
    }

    /// The bytes of a mark, as the counter expects them.
    #[cfg(target_arch = "aarch64")]
    fn bytes(displacement: u32) -> Vec<u8> {
        let number = (displacement >> 16) + (displacement & 0xffff);
        (0xd2e0_001f | number << 5).to_le_bytes().to_vec()
    }

    /// Check that a mark consists of the bytes that the counter expects.
    #[test]
    fn marks_are_these_bytes() {
        #[inline(never)]
        fn marked() {
            attend();
            begin();
            step();
            join();
            leave();
            end();
        }
        let code = marked as fn() as *const [u8; 96];
        // SAFETY: code is readable, and the page of a function's beginning contains or is followed
        // by the rest of the program's code.
        let code = unsafe { code.read_unaligned() };
        for displacement in [ATTEND, BEGIN, STEP, JOIN, LEAVE, END] {
            let bytes = bytes(displacement);
            assert!(code.windows(bytes.len()).any(|part| part == bytes), "{code:x?}");
        }
    }
}
