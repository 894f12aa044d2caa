//! The kernel's functions: the lines of `/proc/kallsyms`, sorted by address.
//!
//! Where several names share an address the first is taken, but never one of the 32-bit
//! calls' (`__ia32_`) or of the padding before functions (`__pfx_`, since Linux 6.2).
//!
//! Cannot see: code that is made at run time (BPF, patched-in trampolines) and modules.

/// From here on addresses are the kernel's.
pub(crate) const KERNEL: u64 = 1 << 63;

/// A function's place in [`Symbols`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Function(pub(crate) usize);

/// All that programs execute, which has no symbols here.
pub(crate) const PROGRAM: Function = Function(0);
/// Code of the kernel that no symbol names.
pub(crate) const UNKNOWN: Function = Function(1);

/// The functions of one kernel. The first two are made up: programs, and code of the
/// kernel that no symbol names.
#[derive(Debug)]
pub(crate) struct Symbols {
    starts: Vec<u64>,
    names: Vec<String>,
}

/// What code outside all symbols is called.
const MADE_UP: [(u64, &str); 2] = [(0, "[program]"), (KERNEL, NAMELESS)];
const NAMELESS: &str = "[unknown]";

impl Symbols {
    /// Reads lines of `address type name`; lines that are none are passed over.
    pub(crate) fn parse(text: &str) -> Self {
        let mut found: Vec<(u64, &str)> = text.lines().filter_map(line).collect();
        found.sort_by_key(|&(address, name)| (address, is_alias(name)));
        found.dedup_by_key(|&mut (address, _)| address);
        let all = MADE_UP.into_iter().chain(found);
        let (starts, names) = all.map(|(start, name)| (start, name.to_owned())).unzip();
        Self { starts, names }
    }

    /// The function that an address is in.
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

    /// Whether the kernel is entered at this very address by an interrupt or exception.
    pub(crate) fn is_entry(&self, address: u64) -> bool {
        let function = self.find(address);
        let name = self.name(function);
        is_table(name) || (self.is_start(address) && is_gate(name))
    }

    /// Whether a function begins at this very address.
    pub(crate) fn is_start(&self, address: u64) -> bool {
        self.starts.get(self.find(address).0) == Some(&address)
    }
}

fn line(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    let is_text = matches!(words.next()?, "t" | "T" | "w" | "W");
    let name = words.next()?;
    // What has a third word is a module's, and those come and go.
    let of_kernel = words.next().is_none() && address > KERNEL;
    (is_text && of_kernel).then_some((address, name))
}

fn is_alias(name: &str) -> bool {
    ["__ia32_", "__pfx_"].iter().any(|prefix| name.starts_with(prefix))
}

/// How x86's entry code names its gates since Linux 5.8 (arch/x86/include/asm/idtentry.h).
fn is_gate(name: &str) -> bool {
    name.starts_with("asm_sysvec_") || name.starts_with("asm_exc_")
}

/// Tables of gates, a stub for each vector; they go on to `asm_common_interrupt`.
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
    /// and aliases name nothing.
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

    /// Check that an entry is one only at its first instruction.
    #[test]
    fn entries() {
        let symbols = Symbols::parse(TEXT);
        assert!(symbols.is_entry(0xffff_ffff_8100_0200));
        assert!(!symbols.is_entry(0xffff_ffff_8100_0204));
        assert!(!symbols.is_entry(0xffff_ffff_8100_0100));
    }
}
