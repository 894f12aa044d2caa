//! The few instructions that the counter must recognise, by the guest's architecture: marks, and ends of
//! blocks that affect the call stack.

mod arm64;
mod x86_64;

/// A mark of the agent (the first) or of `measure::mark`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A measurement is about to begin: count from here on.
    Attend,
    /// A phase begins.
    Begin,
    /// A step of the phase ends, and the next begins.
    Step,
    /// The phase ends.
    End,
    /// The current thread begins a group of threads.
    Join,
    /// The current thread leaves its group.
    Leave,
}

/// How an instruction ends its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// A call: the return address is that of the next instruction.
    Call,
    /// A near return.
    Return,
    /// A return from an interrupt or an exception.
    InterruptReturn,
    /// Anything else.
    Other,
}

impl Mark {
    /// The mark of that number: what its instruction adds to the common part of all marks.
    fn numbered(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Attend),
            1 => Some(Self::Begin),
            2 => Some(Self::Step),
            3 => Some(Self::End),
            4 => Some(Self::Join),
            5 => Some(Self::Leave),
            _ => None,
        }
    }
}

/// The architecture of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Architecture {
    X86_64,
    Arm64,
}

impl Architecture {
    /// By QEMU's name of it.
    pub(crate) fn named(target: &str) -> Option<Self> {
        match target {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// The function in which the kernel switches stacks (arch/x86/entry/entry_64.S,
    /// arch/arm64/kernel/entry.S).
    pub(crate) fn switch(self) -> &'static str {
        match self {
            Self::X86_64 => "__switch_to_asm",
            Self::Arm64 => "cpu_switch_to",
        }
    }

    /// The mark that these bytes are.
    pub(crate) fn mark(self, bytes: &[u8]) -> Option<Mark> {
        match self {
            Self::X86_64 => x86_64::mark(bytes),
            Self::Arm64 => arm64::mark(bytes),
        }
    }

    /// Whether these bytes stop the CPU until its next interrupt.
    pub(crate) fn is_halt(self, bytes: &[u8]) -> bool {
        match self {
            Self::X86_64 => x86_64::is_halt(bytes),
            Self::Arm64 => arm64::is_halt(bytes),
        }
    }

    /// The displacement, from the next thread's structure, of the load with which the kernel continues that
    /// thread, among the instructions of the function that switches stacks.
    pub(crate) fn stack_load(self, bytes: &[u8]) -> Option<i32> {
        match self {
            Self::X86_64 => x86_64::stack_load(bytes),
            Self::Arm64 => arm64::stack_load(bytes),
        }
    }

    /// The displacement of a store of zero relative to a register that is not the stack pointer, as
    /// the kernel does for the state of a new thread.
    pub(crate) fn zero_store(self, bytes: &[u8]) -> Option<i32> {
        match self {
            Self::X86_64 => x86_64::zero_store(bytes),
            Self::Arm64 => arm64::zero_store(bytes),
        }
    }

    /// The displacement of a jump to the return thunk of kernels for x86-64, from the next instruction.
    pub(crate) fn jump(self, bytes: &[u8]) -> Option<i32> {
        match self {
            Self::X86_64 => x86_64::jump(bytes),
            Self::Arm64 => None,
        }
    }

    /// How these bytes end a block.
    pub(crate) fn ending(self, bytes: &[u8]) -> Ending {
        match self {
            Self::X86_64 => x86_64::ending(bytes),
            Self::Arm64 => arm64::ending(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each architecture has its own instructions, and none of the other's.
    #[test]
    fn architectures() {
        let x86 = Architecture::named("x86_64").unwrap();
        let arm = Architecture::named("aarch64").unwrap();
        assert_eq!(Architecture::named("riscv64"), None);
        assert_ne!(x86.switch(), arm.switch());
        for (one, other, halt, mark, load, store, back) in [
            (
                x86,
                arm,
                &[0xf4][..],
                &[0x0f, 0x1f, 0x80, 1, 0, 0x46, 0x4e][..],
                &[0x48, 0x8b, 0x66, 0x18][..],
                &[0xc7, 0x45, 0x18, 0, 0, 0, 0][..],
                &[0x48, 0xcf][..],
            ),
            (
                arm,
                x86,
                &[0x7f, 0x20, 0x03, 0xd5],
                &[0xff, 0xc8, 0xe9, 0xd2],
                &[0x1e, 0x01, 0x40, 0xf9],
                &[0x7f, 0x1a, 0x00, 0xb9],
                &[0xe0, 0x03, 0x9f, 0xd6],
            ),
        ] {
            assert!(one.is_halt(halt) && !other.is_halt(halt));
            assert_eq!((one.mark(mark), other.mark(mark)), (Some(Mark::Begin), None));
            assert!(one.stack_load(load).is_some() && other.stack_load(load).is_none());
            assert_eq!(
                (one.zero_store(store), other.zero_store(store)),
                (Some(24), None)
            );
            assert_eq!(one.ending(back), Ending::InterruptReturn);
            assert_eq!(other.ending(back), Ending::Other);
        }
        assert_eq!((x86.jump(&[0xeb, 0xfe]), arm.jump(&[0xeb, 0xfe])), (Some(-2), None));
    }
}
