//! Marks: instructions that do nothing, set where a measurement begins, repeats and ends.
//!
//! The lab's counter sees each instruction that a guest executes, and counts between the
//! marks; boot, preparation and power-off stay outside. A mark is a multi-byte NOP of
//! x86-64, `nopl disp32(%rax)` (Intel's manual, volume 2, NOP), that no compiler emits
//! with these displacements. On hardware it costs less than a nanosecond; on other
//! architectures it is nothing at all. A *phase* is from begin to end: begins of several
//! threads nest, the first begin and the last end count. Steps part it into repeats.

#[cfg(target_arch = "x86_64")]
use core::arch::asm;

/// What all displacements begin with: `NF`, in the upper half.
pub const MAGIC: u32 = 0x4e46_0000;
/// The displacement of [`begin`].
pub const BEGIN: u32 = MAGIC + 1;
/// The displacement of [`step`].
pub const STEP: u32 = MAGIC + 2;
/// The displacement of [`end`].
pub const END: u32 = MAGIC + 3;
/// The displacement of [`attend`].
pub const ATTEND: u32 = MAGIC;

/// Emits the one instruction. The compiler takes it for one that touches memory, so
/// that it moves no reading or writing across.
macro_rules! mark {
    ($displacement:expr) => {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the instruction reads and writes nothing, whatever its operand names.
        unsafe {
            asm!(
                "nop dword ptr [rax + {displacement}]",
                displacement = const $displacement,
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

/// A measurement is about to be made: the counter looks closely, which makes the guest
/// slower, from the next halt of a CPU on.
#[inline(always)]
pub fn attend() {
    mark!(ATTEND);
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Check that a mark is the seven bytes that the counter looks for.
    #[test]
    fn marks_are_these_bytes() {
        #[inline(never)]
        fn marked() {
            attend();
            begin();
            step();
            end();
        }
        let code = marked as fn() as *const [u8; 64];
        // SAFETY: code is readable, and a page that holds a function's beginning holds
        // or is followed by the rest of the program's code.
        let code = unsafe { code.read_unaligned() };
        for displacement in [ATTEND, BEGIN, STEP, END] {
            let mut bytes = vec![0x0f, 0x1f, 0x80];
            bytes.extend(displacement.to_le_bytes());
            assert!(code.windows(7).any(|window| window == bytes), "{code:x?}");
        }
    }
}
