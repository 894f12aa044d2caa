//! The few x86-64 instructions that the counter must recognise: marks, and ends of blocks that
//! affect the call stack.
//!
//! Encodings: Intel SDM volume 2. Everything else is `Other`: a jump and a fall-through are
//! distinguished by where execution continues.

use crate::decode::{Ending, Mark};

/// The mark that these bytes are: `nopl disp32(%rax)` with a displacement of `measure::mark`.
pub(crate) fn mark(bytes: &[u8]) -> Option<Mark> {
    let [0x0f, 0x1f, 0x80, displacement @ ..] = bytes else { return None };
    let displacement = u32::from_le_bytes(displacement.try_into().ok()?);
    Mark::numbered(displacement.checked_sub(0x4e46_0000)?)
}

/// Whether these bytes stop the CPU until its next interrupt: `hlt`.
pub(crate) fn is_halt(bytes: &[u8]) -> bool {
    bytes == [0xf4]
}

/// The displacement of a load of the stack pointer from memory relative to `rsi`, as the kernel
/// does for the next thread: `mov disp(%rsi),%rsp`.
pub(crate) fn stack_load(bytes: &[u8]) -> Option<i32> {
    match *bytes {
        [0x48, 0x8b, 0x66, near] => Some(near_displacement(near)),
        [0x48, 0x8b, 0xa6, a, b, c, d] => Some(i32::from_le_bytes([a, b, c, d])),
        _ => None,
    }
}

/// The displacement of a store of zero relative to a register that is not the stack pointer, as
/// the kernel does for the state of a new thread: `movl $0,disp(%rdi)`, before 5.14 `movq`.
pub(crate) fn zero_store(bytes: &[u8]) -> Option<i32> {
    let store = match bytes {
        [0x40..=0x4f, rest @ ..] => rest,
        all => all,
    };
    let [0xc7, modrm, rest @ ..] = store else { return None };
    // Register 4 stands for an index, or the stack pointer.
    let is_relative = (modrm >> 3) & 7 == 0 && modrm & 7 != 4;
    match (modrm >> 6, rest) {
        (1, [near, 0, 0, 0, 0]) if is_relative => Some(near_displacement(*near)),
        (2, &[a, b, c, d, 0, 0, 0, 0]) if is_relative => {
            Some(i32::from_le_bytes([a, b, c, d]))
        }
        _ => None,
    }
}

fn near_displacement(byte: u8) -> i32 {
    i32::from(i8::from_le_bytes([byte]))
}

/// The displacement of a near jump: `jmp rel32` or `rel8`.
pub(crate) fn jump(bytes: &[u8]) -> Option<i32> {
    match *bytes {
        [0xeb, near] => Some(near_displacement(near)),
        [0xe9, a, b, c, d] => Some(i32::from_le_bytes([a, b, c, d])),
        _ => None,
    }
}

/// How these bytes end a block.
pub(crate) fn ending(bytes: &[u8]) -> Ending {
    let prefix =
        |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x66 | 0xf2 | 0xf3);
    let prefixes = bytes.iter().take_while(|byte| prefix(byte)).count();
    let (wide, rest) = match &bytes[prefixes..] {
        [rex @ 0x40..=0x4f, rest @ ..] => (rex & 8 != 0, rest),
        rest => (false, rest),
    };
    match rest {
        [0xe8, ..] => Ending::Call,
        // FF /2 is a near call through a register or memory.
        [0xff, modrm, ..] if (modrm >> 3) & 7 == 2 => Ending::Call,
        [0xc2 | 0xc3, ..] => Ending::Return,
        [0xcf, ..] if wide => Ending::InterruptReturn,
        _ => Ending::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that marks are recognised by all their bytes, and other long NOPs are not.
    #[test]
    fn marks() {
        assert_eq!(mark(&[0x0f, 0x1f, 0x80, 1, 0, 0x46, 0x4e]), Some(Mark::Begin));
        assert_eq!(mark(&[0x0f, 0x1f, 0x80, 0, 0, 0x46, 0x4e]), Some(Mark::Attend));
        assert_eq!(mark(&[0x0f, 0x1f, 0x80, 4, 0, 0x46, 0x4e]), Some(Mark::Join));
        assert_eq!(mark(&[0x0f, 0x1f, 0x80, 5, 0, 0x46, 0x4e]), Some(Mark::Leave));
        assert_eq!(mark(&[0x0f, 0x1f, 0x80, 9, 0, 0x46, 0x4e]), None);
        assert_eq!(mark(&[0x0f, 0x1f, 0x80, 0, 0, 0, 0]), None);
        assert_eq!(mark(&[0x0f, 0x1f, 0x00]), None);
        assert_eq!(mark(&[]), None);
    }

    /// Check that a halt is recognised, and not in the end of a longer instruction.
    #[test]
    fn halts() {
        assert!(is_halt(&[0xf4]));
        assert!(!is_halt(&[0xfb]));
        assert!(!is_halt(&[0xb0, 0xf4]));
    }

    /// Check that only a load relative to `rsi` is recognised as a switch of stacks.
    #[test]
    fn stack_loads() {
        assert_eq!(stack_load(&[0x48, 0x8b, 0xa6, 0x18, 0x1b, 0, 0]), Some(0x1b18));
        assert_eq!(stack_load(&[0x48, 0x8b, 0x66, 0x18]), Some(0x18));
        assert_eq!(stack_load(&[0x48, 0x89, 0xa7, 0x18, 0x1b, 0, 0]), None);
        assert_eq!(stack_load(&[0x48, 0x8b, 0xa7, 0x18, 0x1b, 0, 0]), None);
        assert_eq!(stack_load(&[]), None);
    }

    /// Check that stores of zero relative to a register are recognised, with their displacement,
    /// and other stores are not.
    #[test]
    fn zero_stores() {
        assert_eq!(zero_store(&[0xc7, 0x45, 0x18, 0, 0, 0, 0]), Some(0x18));
        assert_eq!(zero_store(&[0x41, 0xc7, 0x46, 0xf8, 0, 0, 0, 0]), Some(-8));
        assert_eq!(zero_store(&[0x48, 0xc7, 0x47, 0x10, 0, 0, 0, 0]), Some(0x10));
        assert_eq!(zero_store(&[0xc7, 0x83, 0, 1, 0, 0, 0, 0, 0, 0]), Some(0x100));
        assert_eq!(zero_store(&[0xc7, 0x45, 0x18, 1, 0, 0, 0]), None);
        assert_eq!(zero_store(&[0xc7, 0x44, 0x24, 8, 0, 0, 0, 0]), None);
        assert_eq!(zero_store(&[0x89, 0x45, 0x18]), None);
        assert_eq!(zero_store(&[]), None);
    }

    /// Check the displacements of jumps, and that a conditional one is none.
    #[test]
    fn jumps() {
        assert_eq!(jump(&[0xeb, 0xfe]), Some(-2));
        assert_eq!(jump(&[0xe9, 0, 1, 0, 0]), Some(0x100));
        assert_eq!(jump(&[0x0f, 0x84, 0, 1, 0, 0]), None);
        assert_eq!(jump(&[0x74, 5]), None);
    }

    /// Check the instructions that end a block, with prefixes as compilers generate them.
    #[test]
    fn endings() {
        assert_eq!(ending(&[0xe8, 1, 2, 3, 4]), Ending::Call);
        assert_eq!(ending(&[0xff, 0xd0]), Ending::Call);
        assert_eq!(ending(&[0x41, 0xff, 0x54, 0x24, 8]), Ending::Call);
        assert_eq!(ending(&[0x3e, 0xff, 0xd0]), Ending::Call);
        assert_eq!(ending(&[0xff, 0xe0]), Ending::Other);
        assert_eq!(ending(&[0xc3]), Ending::Return);
        assert_eq!(ending(&[0xf3, 0xc3]), Ending::Return);
        assert_eq!(ending(&[0x48, 0xcf]), Ending::InterruptReturn);
        assert_eq!(ending(&[0xcf]), Ending::Other);
        assert_eq!(ending(&[0x66, 0x66]), Ending::Other);
        assert_eq!(ending(&[]), Ending::Other);
    }
}
