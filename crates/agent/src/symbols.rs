//! A kernel's own symbols, as they are sent and stored: compressed text.
//!
//! One line per function: address in hexadecimal, kind, name, as in `/proc/kallsyms`; data and
//! symbols of modules are omitted. The text is several megabytes, so it is only stored and sent
//! compressed (RFC 1951), and decompressed up to a limit.

use std::io::{self, BufRead, Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// The maximum length of the text; the largest kernels have a tenth of it.
const TEXT_MAX: u64 = 64 << 20;

/// A kernel's symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbols {
    deflated: Vec<u8>,
}

impl Symbols {
    /// Packs the functions of a kernel's own text from `/proc/kallsyms`.
    ///
    /// # Errors
    /// If it cannot be read, or has no function, or hides the addresses.
    pub fn pack(mut kallsyms: impl BufRead) -> io::Result<Self> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        let (mut line, mut has_address) = (Vec::new(), false);
        while kallsyms.read_until(b'\n', &mut line)? > 0 {
            if is_own_function(&line) {
                has_address |= line.first().is_some_and(|&digit| digit != b'0');
                encoder.write_all(&line)?;
            }
            line.clear();
        }
        if has_address {
            return Ok(Self { deflated: encoder.finish()? });
        }
        Err(io::Error::other("there is no function that has an address"))
    }

    /// Symbols that were packed before.
    pub fn from_deflated(deflated: Vec<u8>) -> Self {
        Self { deflated }
    }

    /// The compressed text.
    pub fn deflated(&self) -> &[u8] {
        &self.deflated
    }

    /// The text.
    ///
    /// # Errors
    /// If it is damaged, or longer than any kernel's.
    pub fn text(&self) -> io::Result<String> {
        let mut text = String::new();
        let decoder = DeflateDecoder::new(self.deflated.as_slice());
        let length = decoder.take(TEXT_MAX + 1).read_to_string(&mut text)?;
        if u64::try_from(length).is_ok_and(|length| length <= TEXT_MAX) {
            return Ok(text);
        }
        Err(io::Error::other(format!("symbols of more than {TEXT_MAX} bytes")))
    }
}

/// Whether a line is a function in the kernel's own text: of kind `t` or `w`, global or not, and
/// without the name of a module after a tab.
fn is_own_function(line: &[u8]) -> bool {
    let mut words = line.split(|&byte| byte == b' ');
    let kind = words.nth(1);
    let own = !line.contains(&b'\t') && words.next().is_some();
    own && matches!(kind, Some(b"t" | b"T" | b"w" | b"W"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000030 t run_init_process
ffffffff81000040 W weak
ffffffff82000000 D jiffies
ffffffffc0000000 t probe\t[virtio]
";
    const OWN: &str = "\
ffffffff81000000 T _stext
ffffffff81000030 t run_init_process
ffffffff81000040 W weak
";

    /// Check that exactly the kernel's own functions are stored, in order.
    #[test]
    fn only_own_functions() {
        let symbols = Symbols::pack(KALLSYMS.as_bytes()).unwrap();
        assert_eq!(symbols.text().unwrap(), OWN);
        let stored = Symbols::from_deflated(symbols.deflated().to_vec());
        assert_eq!(stored, symbols);
    }

    /// Check that symbols without addresses, or an empty list, are an error.
    #[test]
    fn hidden_addresses_are_an_error() {
        let hidden = "0000000000000000 T _stext\n";
        assert!(Symbols::pack(hidden.as_bytes()).is_err());
        assert!(Symbols::pack(io::empty()).is_err());
    }

    /// Check that damaged symbols are an error, and that a decompression bomb is limited.
    #[test]
    fn damage_and_bombs() {
        let whole = Symbols::pack(KALLSYMS.as_bytes()).unwrap();
        let mut cut = whole.deflated().to_vec();
        cut.truncate(cut.len() - 4);
        assert!(Symbols::from_deflated(cut).text().is_err());

        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        io::copy(&mut io::repeat(b'a').take(TEXT_MAX + 1), &mut encoder).unwrap();
        let bomb = Symbols::from_deflated(encoder.finish().unwrap());
        assert!(bomb.text().unwrap_err().to_string().contains("more than"));
    }
}
