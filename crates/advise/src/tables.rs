//! The tables of rules, one for each subject.

use std::sync::OnceLock;

use crate::rule::Table;

/// The tables as `build.rs` has read them, in the order of the documentation.
const TEXT: &str = include_str!(concat!(env!("OUT_DIR"), "/tables.json"));

/// All tables. A test reads them, so that none is left out here because it cannot be read.
pub fn tables() -> &'static [Table] {
    static TABLES: OnceLock<Vec<Table>> = OnceLock::new();
    TABLES.get_or_init(|| serde_json::from_str(TEXT).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Check that each table can be read, that each file in the folder is one of them, and that no rule is named
    /// twice.
    #[test]
    fn all_are_read() {
        let read: Vec<Table> =
            serde_json::from_str(TEXT).unwrap_or_else(|why| panic!("{why}"));
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
        let files = fs::read_dir(folder).unwrap().flatten();
        let files =
            files.filter(|file| file.path().extension().is_some_and(|it| it == "toml"));
        assert_eq!((tables().len(), read.len()), (files.count(), tables().len()));
        let rules = read.into_iter().flat_map(|table| table.rules);
        let mut names: Vec<String> = rules.map(|rule| rule.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name is used twice");
    }
}
