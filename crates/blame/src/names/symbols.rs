//! The kernel's symbols: the addresses of its functions.
//!
//! Source: `/proc/kallsyms`, a line `address type name [module]` for each symbol, the kernel's own
//! in the order of their addresses, then those of modules (kernel/kallsyms.c, since Linux 2.6.10).
//! Addresses are 0 for readers without `CAP_SYSLOG` (`kernel.kptr_restrict`). The kernel generates
//! its 100,000 to 200,000 lines while they are read: to stop early saves most of 50 ms, and most of
//! a second in an emulated guest.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;

const FILE: &str = "/proc/kallsyms";
/// The kernel returns at most a page per read; longer reads are fewer calls.
const CAPACITY: usize = 64 << 10;

/// A symbol.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Symbol<'a> {
    pub(crate) address: u64,
    pub(crate) name: &'a [u8],
    /// Whether it is that of a module, in whose place another one may be loaded later.
    pub(crate) is_of_module: bool,
}

impl<'a> Symbol<'a> {
    /// A line; `None` if it is invalid.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let address_end = line.iter().position(|byte| *byte == b' ')?;
        let (address, rest) = line.split_at(address_end);
        // A space, the type, and a space.
        let rest = rest.get(3..)?;
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let (name, module) = rest.split_at(end);
        let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
        Some(Self { address, name, is_of_module: module.contains(&b'[') })
    }
}

/// Calls `visit` with each symbol of this machine, until it breaks; `None` if the file cannot be read.
pub(crate) fn each_symbol(
    visit: impl FnMut(&Symbol<'_>) -> ControlFlow<()>,
) -> Option<()> {
    visit_lines(BufReader::with_capacity(CAPACITY, File::open(FILE).ok()?), visit)
}

/// The same for any text; invalid lines are skipped.
pub(crate) fn visit_lines(
    mut lines: impl BufRead,
    mut visit: impl FnMut(&Symbol<'_>) -> ControlFlow<()>,
) -> Option<()> {
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).ok()? > 0 {
        if let Some(symbol) = Symbol::parse(&line)
            && visit(&symbol).is_break()
        {
            break;
        }
        line.clear();
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(u64, String, bool)> {
        let mut all = Vec::new();
        let visit = |symbol: &Symbol<'_>| {
            let name = String::from_utf8(symbol.name.to_vec()).unwrap();
            all.push((symbol.address, name, symbol.is_of_module));
            if symbol.name == b"last" {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        visit_lines(text.as_bytes(), visit).unwrap();
        all
    }

    /// Check that symbols have their addresses, those of modules too, that invalid lines are
    /// skipped, and that nothing is read after the last requested one.
    #[test]
    fn lines() {
        let text = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\n\
            nonsense\n\nffffffff8100000g T no_digit\nffffffffc0000010 t run\t[ext4]\n\
            ffffffff81000010 T last\nffffffff81000020 T never\n";
        let expected = [
            (0, "fixed_percpu_data", false),
            (0xffff_ffff_8100_0000, "_text", false),
            (0xffff_ffff_c000_0010, "run", true),
            (0xffff_ffff_8100_0010, "last", false),
        ];
        let expected = expected.map(|(at, name, module)| (at, name.to_owned(), module));
        assert_eq!(all(text), expected);
    }
}
