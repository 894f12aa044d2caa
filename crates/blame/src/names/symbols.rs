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

/// Calls `visit` with the address and the name of each symbol of this machine, until it breaks;
/// `None` if the file cannot be read.
pub(crate) fn each_symbol(
    visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Option<()> {
    visit_lines(BufReader::with_capacity(CAPACITY, File::open(FILE).ok()?), visit)
}

/// The same for any text; invalid lines are skipped.
pub(crate) fn visit_lines(
    mut lines: impl BufRead,
    mut visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Option<()> {
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).ok()? > 0 {
        if let Some((address, name)) = symbol(&line)
            && visit(address, name).is_break()
        {
            break;
        }
        line.clear();
    }
    Some(())
}

fn symbol(line: &[u8]) -> Option<(u64, &[u8])> {
    let address_end = line.iter().position(|byte| *byte == b' ')?;
    let (address, rest) = line.split_at(address_end);
    // A space, the type, and a space.
    let name = rest.get(3..)?;
    let end = name.iter().position(u8::is_ascii_whitespace).unwrap_or(name.len());
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    Some((address, &name[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        let visit = |address, name: &[u8]| {
            all.push((address, String::from_utf8(name.to_vec()).unwrap()));
            if name == b"last" {
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
            (0, "fixed_percpu_data"),
            (0xffff_ffff_8100_0000, "_text"),
            (0xffff_ffff_c000_0010, "run"),
            (0xffff_ffff_8100_0010, "last"),
        ];
        assert_eq!(all(text), expected.map(|(address, name)| (address, name.to_owned())));
    }
}
