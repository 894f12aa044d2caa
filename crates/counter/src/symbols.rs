//! The kernel's functions: the lines of `/proc/kallsyms`, sorted by address.
//!
//! If several names share an address the first is used, but never one of the 32-bit
//! calls (`__ia32_`) or of the padding before functions (`__pfx_`, since Linux 6.2).
//!
//! On arm64 all exceptions and interrupts enter the kernel through a table of 16 vectors of 128 bytes, which
//! has one symbol; here each vector has its own: `vector_el0t_64_sync`.
//!
//! Code generated at run time (BPF, trampolines) and modules have no symbols here.

/// The lowest address of the kernel.
pub(crate) const KERNEL: u64 = 1 << 63;

/// A function's index in [`Symbols`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Function(pub(crate) usize);

/// All code of programs, which has no symbols here.
pub(crate) const PROGRAM: Function = Function(0);
/// Code of the kernel without a symbol.
pub(crate) const UNKNOWN: Function = Function(1);

/// The functions of one kernel. The first two are artificial: programs, and code of the kernel
/// without a symbol.
#[derive(Debug)]
pub(crate) struct Symbols {
    starts: Vec<u64>,
    names: Vec<String>,
}

/// The names of code outside of all symbols.
const MADE_UP: [(u64, &str); 2] = [(0, "[program]"), (KERNEL, NAMELESS)];
const NAMELESS: &str = "[unknown]";

impl Symbols {
    /// Parses lines of `address type name`; other lines are ignored.
    pub(crate) fn parse(text: &str) -> Self {
        let mut found: Vec<(u64, &str)> = text.lines().filter_map(line).collect();
        let vectors: Vec<(u64, &str)> =
            found.iter().filter(|(_, name)| is_vectors(name)).flat_map(vectors).collect();
        found.retain(|(_, name)| !is_vectors(name));
        found.extend(vectors);
        found.sort_by_key(|&(address, name)| (address, is_alias(name)));
        found.dedup_by_key(|&mut (address, _)| address);
        let all = MADE_UP.into_iter().chain(found);
        let (starts, names) = all.map(|(start, name)| (start, name.to_owned())).unzip();
        Self { starts, names }
    }

    /// The function that contains an address.
    pub(crate) fn find(&self, address: u64) -> Function {
        Function(self.starts.partition_point(|&start| start <= address).saturating_sub(1))
    }

    /// A function's name.
    pub(crate) fn name(&self, function: Function) -> &str {
        self.names.get(function.0).map_or(NAMELESS, String::as_str)
    }

    /// The functions of those names.
    pub(crate) fn named(&self, names: &[&str]) -> Vec<Function> {
        let is_one = |(_, name): &(usize, &String)| names.contains(&name.as_str());
        let found = self.names.iter().enumerate().filter(is_one);
        found.map(|(place, _)| Function(place)).collect()
    }

    /// The functions whose names begin with that.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Vec<Function> {
        let is_one = |(_, name): &(usize, &String)| name.starts_with(prefix);
        let found = self.names.iter().enumerate().filter(is_one);
        found.map(|(place, _)| Function(place)).collect()
    }

    /// Whether exceptions and interrupts of all kinds enter the kernel through one table, as on arm64.
    pub(crate) fn has_vectors(&self) -> bool {
        !self.named(&VECTORS).is_empty()
    }

    /// Whether this address is an entry point of an interrupt or exception.
    pub(crate) fn is_entry(&self, address: u64) -> bool {
        let function = self.find(address);
        let name = self.name(function);
        is_table(name) || (self.is_start(address) && is_gate(name))
    }

    /// Whether a function begins at this address.
    pub(crate) fn is_start(&self, address: u64) -> bool {
        self.starts.get(self.find(address).0) == Some(&address)
    }
}

fn line(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_text = matches!(words.next()?, "t" | "T" | "w" | "W");
    let name = words.next()?;
    // Symbols with a third word belong to modules, which can be unloaded.
    let of_kernel = words.next().is_none() && address > KERNEL;
    (is_text && of_kernel).then_some((address, name))
}

fn is_alias(name: &str) -> bool {
    ["__ia32_", "__pfx_"].iter().any(|prefix| name.starts_with(prefix))
}

/// The names of x86 entry points since Linux 5.8 (arch/x86/include/asm/idtentry.h).
fn is_gate(name: &str) -> bool {
    name.starts_with("asm_sysvec_")
        || name.starts_with("asm_exc_")
        || VECTORS.contains(&name)
}

/// The tables of arm64 kernels (arch/arm64/kernel/entry.S): the second is for CPUs that need mitigations at
/// the entry from user mode.
fn is_vectors(name: &str) -> bool {
    ["vectors", "__bp_harden_el1_vectors"].contains(&name)
}

/// The vectors of a table at that address.
fn vectors(&(table, _): &(u64, &str)) -> impl Iterator<Item = (u64, &'static str)> {
    let addresses = (0..).map(move |place| table + VECTOR_BYTES * place);
    addresses.zip(VECTORS)
}

/// The bytes of a vector (Arm ARM, D1.3.1).
const VECTOR_BYTES: u64 = 0x80;
/// The names of vectors, after the kernel's functions that they jump to since 5.12: level and stack pointer of
/// what was interrupted, and the kind of exception.
const VECTORS: [&str; 16] = [
    "vector_el1t_64_sync",
    "vector_el1t_64_irq",
    "vector_el1t_64_fiq",
    "vector_el1t_64_error",
    "vector_el1h_64_sync",
    "vector_el1h_64_irq",
    "vector_el1h_64_fiq",
    "vector_el1h_64_error",
    "vector_el0t_64_sync",
    "vector_el0t_64_irq",
    "vector_el0t_64_fiq",
    "vector_el0t_64_error",
    "vector_el0t_32_sync",
    "vector_el0t_32_irq",
    "vector_el0t_32_fiq",
    "vector_el0t_32_error",
];

/// Tables of entry points, a stub for each vector; they jump to `asm_common_interrupt`.
fn is_table(name: &str) -> bool {
    name == "irq_entries_start" || name == "spurious_entries_start"
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ffffffff81000000 T _text
ffffffff81000100 t __ia32_sys_getpid
ffffffff81000100 T __x64_sys_getpid
ffffffff81000200 T asm_sysvec_apic_timer_interrupt
ffffffff81000300 D jiffies
ffffffffc0000000 t init\t[modul]
not a line";

    /// Check that an address belongs to the function before it, and that data, modules
    /// and aliases are ignored.
    #[test]
    fn functions() {
        let symbols = Symbols::parse(TEXT);
        let name = |address| symbols.name(symbols.find(address));
        assert_eq!(name(0xffff_ffff_8100_0000), "_text");
        assert_eq!(name(0xffff_ffff_8100_00ff), "_text");
        assert_eq!(name(0xffff_ffff_8100_0100), "__x64_sys_getpid");
        assert_eq!(name(0xffff_ffff_c000_0000), "asm_sysvec_apic_timer_interrupt");
        assert_eq!(name(0xffff_fe00_0000_0000), NAMELESS);
        assert_eq!(name(0x1000), "[program]");
        assert_eq!(symbols.find(0x1000), PROGRAM);
    }

    /// Check that each vector of an arm64 table has its own name, and is an entry with its first instruction
    /// only.
    #[test]
    fn vectors() {
        let symbols =
            Symbols::parse("ffff800080010800 T vectors\nffff800080011000 t next");
        let name = |address| symbols.name(symbols.find(address));
        assert_eq!(name(0xffff_8000_8001_0a80), "vector_el1h_64_irq");
        assert_eq!(name(0xffff_8000_8001_0c10), "vector_el0t_64_sync");
        assert_eq!(name(0xffff_8000_8001_1000), "next");
        assert!(symbols.is_entry(0xffff_8000_8001_0a80));
        assert!(!symbols.is_entry(0xffff_8000_8001_0a84));
    }

    /// Check that an entry point is its first instruction only.
    #[test]
    fn entries() {
        let symbols = Symbols::parse(TEXT);
        assert!(symbols.is_entry(0xffff_ffff_8100_0200));
        assert!(!symbols.is_entry(0xffff_ffff_8100_0204));
        assert!(!symbols.is_entry(0xffff_ffff_8100_0100));
    }
}
