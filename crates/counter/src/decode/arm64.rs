//! The few arm64 instructions that the counter must recognise: marks, and ends of blocks that affect the
//! call stack. Each has four bytes.
//!
//! Encodings: Arm ARM (DDI 0487), C6.2. Everything else is `Other`.

use crate::decode::{Ending, Mark};

/// `movz xzr, #imm16, lsl #48`, and the bits of `imm16`.
const MARK: u32 = 0xd2e0_001f;
const IMM16: u32 = 0xffff << 5;
/// The number that all marks add theirs to: `NF`.
const MAGIC: u32 = 0x4e46;
/// `wfi`.
const WFI: u32 = 0xd503_207f;
/// `ldr lr, [x8]`.
const LOAD_RETURN: u32 = 0xf940_011e;
/// `bl`, and the bits of its opcode.
const CALL: (u32, u32) = (0x9400_0000, 0xfc00_0000);
/// `blr xN`, and with pointer authentication; without the registers.
const CALLS: [(u32, u32); 3] = [
    (0xd63f_0000, 0xffff_fc1f),
    (0xd63f_081f, 0xffff_f81f), // blraaz, blrabz
    (0xd73f_0800, 0xffff_f800), // blraa, blrab
];
/// `ret xN`, `retaa` and `retab`.
const RETURNS: [(u32, u32); 2] = [(0xd65f_0000, 0xffff_fc1f), (0xd65f_0bff, 0xffff_fbff)];
/// `eret`, `eretaa` and `eretab`.
const INTERRUPT_RETURNS: [(u32, u32); 2] =
    [(0xd69f_03e0, 0xffff_ffff), (0xd69f_0bff, 0xffff_fbff)];
/// `str wzr, [xN, #imm12]` and `str xzr, [xN, #imm12]`, without `xN` and `imm12`.
const ZERO_STORES: [(u32, u32, i32); 2] =
    [(0xb900_001f, 0xffc0_001f, 4), (0xf900_001f, 0xffc0_001f, 8)];
/// The stack pointer, as a base register.
const STACK: u32 = 31;

fn word(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_le_bytes)
}

/// The mark that these bytes are.
pub(crate) fn mark(bytes: &[u8]) -> Option<Mark> {
    let word = word(bytes)?;
    let number = (word & IMM16) >> 5;
    (word & !IMM16 == MARK).then_some(())?;
    Mark::numbered(number.checked_sub(MAGIC)?)
}

/// Whether these bytes stop the CPU until its next interrupt: `wfi`.
pub(crate) fn is_halt(bytes: &[u8]) -> bool {
    word(bytes) == Some(WFI)
}

/// The load of the address at which the next thread continues, as `cpu_switch_to` does: the last register
/// that it loads. It is at a fixed place of the thread's structure, which differs between kernels: so the
/// address itself identifies the thread, and the displacement is 0.
pub(crate) fn stack_load(bytes: &[u8]) -> Option<i32> {
    (word(bytes) == Some(LOAD_RETURN)).then_some(0)
}

/// The displacement of `str wzr` or `str xzr` relative to a register that is not the stack pointer.
pub(crate) fn zero_store(bytes: &[u8]) -> Option<i32> {
    let word = word(bytes)?;
    let is_it = |&(code, bits, _): &(u32, u32, i32)| word & bits == code;
    let (_, _, size) = ZERO_STORES.into_iter().find(is_it)?;
    let (base, number) = ((word >> 5) & 31, i32::try_from((word >> 10) & 0xfff).ok()?);
    (base != STACK).then_some(number * size)
}

/// How these bytes end a block.
pub(crate) fn ending(bytes: &[u8]) -> Ending {
    let Some(word) = word(bytes) else { return Ending::Other };
    let is_one =
        |codes: &[(u32, u32)]| codes.iter().any(|(code, bits)| word & bits == *code);
    if is_one(&[CALL]) || is_one(&CALLS) {
        Ending::Call
    } else if is_one(&RETURNS) {
        Ending::Return
    } else if is_one(&INTERRUPT_RETURNS) {
        Ending::InterruptReturn
    } else {
        Ending::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ending_of(word: u32) -> Ending {
        ending(&word.to_le_bytes())
    }

    /// Check that marks are recognised by all their bits, and other moves are not.
    #[test]
    fn marks() {
        let mark = |word: u32| mark(&word.to_le_bytes());
        assert_eq!(mark(0xd2e9_c8df), Some(Mark::Attend));
        assert_eq!(mark(0xd2e9_c8ff), Some(Mark::Begin));
        assert_eq!(mark(0xd2e9_c8e0), None); // to x0
        assert_eq!(mark(0xd289_c8ff), None); // not shifted
        assert_eq!(mark(0xd280_001f), None);
        assert_eq!(super::mark(&[]), None);
    }

    /// Check that only `wfi` is a halt: `wfe` is none.
    #[test]
    fn halts() {
        assert!(is_halt(&[0x7f, 0x20, 0x03, 0xd5]));
        assert!(!is_halt(&[0x5f, 0x20, 0x03, 0xd5]));
        assert!(!is_halt(&[]));
    }

    /// Check the instructions that end a block.
    #[test]
    fn endings() {
        assert_eq!(ending_of(0x97ff_fffe), Ending::Call); // bl
        assert_eq!(ending_of(0xd63f_0200), Ending::Call); // blr x16
        assert_eq!(ending_of(0x1400_0001), Ending::Other); // b
        assert_eq!(ending_of(0xd61f_0200), Ending::Other); // br x16
        assert_eq!(ending_of(0xd65f_03c0), Ending::Return); // ret
        assert_eq!(ending_of(0xd65f_0bff), Ending::Return); // retaa
        assert_eq!(ending_of(0xd69f_03e0), Ending::InterruptReturn); // eret
        assert_eq!(ending_of(0xd69f_0fff), Ending::InterruptReturn); // eretab
        assert_eq!(ending_of(0xd503_201f), Ending::Other); // nop
        assert_eq!(ending(&[]), Ending::Other);
    }

    /// Check that the switch of threads and the store of a new thread's state are recognised, and similar
    /// instructions are not.
    #[test]
    fn threads() {
        let load = |word: u32| stack_load(&word.to_le_bytes());
        assert_eq!(load(0xf940_011e), Some(0)); // ldr x30, [x8]
        assert_eq!(load(0xf940_013e), None); // ldr x30, [x9]
        let store = |word: u32| zero_store(&word.to_le_bytes());
        assert_eq!(store(0xb900_1a7f), Some(24)); // str wzr, [x19, #24]
        assert_eq!(store(0xf900_0e7f), Some(24)); // str xzr, [x19, #24]
        assert_eq!(store(0xb900_1bff), None); // str wzr, [sp, #24]
        assert_eq!(store(0xb900_1a60), None); // str w0, [x19, #24]
    }
}
