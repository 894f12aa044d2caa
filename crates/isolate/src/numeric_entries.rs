//! Directories whose entries are numbers, such as `/proc` and `/proc/irq`.

use std::fs;

/// The numeric entries of a directory in ascending order; empty if it cannot be read.
pub(crate) fn numeric_entries(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that this process is listed, in order, and that a missing directory is empty.
    #[test]
    fn numbers_in_order() {
        let all = numeric_entries("/proc");
        assert!(all.contains(&std::process::id()));
        assert!(all.is_sorted());
        assert_eq!(numeric_entries("/nothing/here"), [0; 0]);
    }
}
