//! The interrupts in progress on a CPU, as BPF programs store them (`bpf/nesting.h`).

/// `LEVELS` there.
const LEVELS: usize = 3;

/// `struct nesting`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Nesting {
    active: u32,
    since: u64,
    starts: [u64; LEVELS],
    nested: [u64; LEVELS],
}

impl Nesting {
    /// When the first of the interrupts in progress began; `None` if there is none.
    pub(crate) fn since(&self) -> Option<u64> {
        (self.active > 0).then_some(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::object::layout::check_layout;
    use crate::bpf::watch_programs::OBJECT;

    /// Check that the structure is that of the BPF programs.
    #[test]
    fn layout() {
        check_layout!(OBJECT, "nesting", Nesting { active, since, starts, nested });
    }
}
