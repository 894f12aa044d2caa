//! Folders whose entries are numbers, as `/proc` has for processes and interrupts.

use std::fs;

/// The numbers that are entries of that folder, in rising order; none where it cannot be read.
pub(crate) fn numbered(folder: &str) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that this process is found among others, in order, and nothing where nothing is.
    #[test]
    fn numbers_in_order() {
        let all = numbered("/proc");
        assert!(all.contains(&std::process::id()));
        assert!(all.is_sorted());
        assert_eq!(numbered("/nothing/here"), [0; 0]);
    }
}
