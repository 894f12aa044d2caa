//! The fields of trace events: the kernel's own description of each event
//! (`events/SYSTEM/EVENT/format`) and of the pages that contain them (`events/header_page`).
//!
//! One field per line, `field:TYPE NAME; offset:O; size:S; signed:B;`, the same since Linux 2.6.31.
//! Cannot see the meaning of a number: that is in a text for `printf` below it. Numbers have the
//! CPU's byte order, which is little-endian on all supported CPUs.

/// A field: its position in the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) offset: usize,
    pub(crate) size: usize,
}

impl Field {
    /// Its bytes; `None` if there are fewer.
    pub(crate) fn bytes(self, all: &[u8]) -> Option<&[u8]> {
        all.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Its number, of 1 to 8 bytes.
    pub(crate) fn number(self, all: &[u8]) -> Option<u64> {
        let bytes = self.bytes(all).filter(|bytes| (1..=8).contains(&bytes.len()))?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// The lower 32 bits of its number.
    pub(crate) fn word(self, all: &[u8]) -> Option<u32> {
        u32::try_from(self.number(all)? & u64::from(u32::MAX)).ok()
    }
}

/// The fields of a structure, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Format {
    /// The number in the beginning of an event; pages have none.
    pub(crate) id: Option<u16>,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// Parses such a description. Lines of other kinds are ignored.
    pub(crate) fn parse(text: &str) -> Self {
        let id =
            text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
        Self { id, fields: text.lines().filter_map(field).collect() }
    }

    /// The field of that name.
    pub(crate) fn field(&self, name: &str) -> Option<Field> {
        let named = self.fields.iter().find(|(other, _)| other == name);
        named.map(|(_, field)| *field)
    }
}

fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?.split_ascii_whitespace().next_back()?;
    let name = declared.trim_start_matches('*').split('[').next()?;
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
    let field = Field { offset: number("offset:")?, size: number("size:")? };
    Some((name.to_owned(), field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracefs::events::tests::format_of;
    use proptest::prelude::*;

    /// Check a real description: arrays, pointers, and lines that are no field.
    #[test]
    fn reads_descriptions() {
        let format = Format::parse(format_of("sched_switch").unwrap());
        assert_eq!(format.id, Some(372));
        let field = |offset, size| Some(Field { offset, size });
        assert_eq!(format.field("prev_comm"), field(8, 16));
        assert_eq!(format.field("next_prio"), field(60, 4));
        assert_eq!(format.field("fmt"), None);
        let text = "\tfield:const char * reason;\toffset:8;\tsize:8;\tsigned:0;";
        assert_eq!(Format::parse(text).field("reason"), field(8, 8));
        let page = Format::parse(include_str!("../../tests/trace/header_page"));
        assert_eq!((page.id, page.field("data")), (None, field(16, 4080)));
    }

    /// Check numbers of every size, and fields beyond the end.
    #[test]
    fn reads_numbers() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 0xff];
        let number = |offset, size| Field { offset, size }.number(&bytes);
        assert_eq!(number(0, 1), Some(1));
        assert_eq!(number(0, 2), Some(0x0201));
        assert_eq!(number(0, 8), Some(0xff07_0605_0403_0201));
        assert_eq!(Field { offset: 0, size: 8 }.word(&bytes), Some(0x0403_0201));
        assert_eq!(
            (number(7, 2), number(usize::MAX, 2), number(0, 0)),
            (None, None, None)
        );
    }

    proptest! {
        /// Check that no text causes a panic.
        #[test]
        fn never_panics(text in "((field|ID|offset|size|:|;|\\[|\\*|[a-z0-9 \t])|\n){0,40}") {
            let _ = Format::parse(&text);
        }
    }
}
