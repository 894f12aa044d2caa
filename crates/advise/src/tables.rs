//! The tables of rules, one for each subject.

use std::sync::OnceLock;

use crate::rule::Table;

/// The tables, in the order of the documentation, by the name of their file.
const TEXTS: [(&str, &str); 9] = [
    ("tick", include_str!("../rules/tick.toml")),
    ("isolation", include_str!("../rules/isolation.toml")),
    ("scheduler", include_str!("../rules/scheduler.toml")),
    ("interrupts", include_str!("../rules/interrupts.toml")),
    ("kernel-work", include_str!("../rules/kernel-work.toml")),
    ("power", include_str!("../rules/power.toml")),
    ("memory", include_str!("../rules/memory.toml")),
    ("virtualization", include_str!("../rules/virtualization.toml")),
    ("containers", include_str!("../rules/containers.toml")),
];

/// All tables. A test reads each of them, so that none is left out here because it cannot be read.
pub fn tables() -> &'static [Table] {
    static TABLES: OnceLock<Vec<Table>> = OnceLock::new();
    TABLES.get_or_init(|| {
        TEXTS.iter().filter_map(|(_, text)| toml::from_str(text).ok()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each table can be read, and names no rule twice.
    #[test]
    fn all_are_read() {
        let mut names = Vec::new();
        for (file, text) in TEXTS {
            let table: Result<Table, _> = toml::from_str(text);
            let table = table.unwrap_or_else(|error| panic!("{file}: {error}"));
            names.extend(table.rules.into_iter().map(|rule| rule.name));
        }
        assert_eq!(tables().len(), TEXTS.len());
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name is used twice");
    }
}
