//! Short names for kernels, so that several fit into one line: the shortest beginnings
//! of their names that tell them apart.

use std::collections::BTreeSet;

use crate::table::columns;

/// Where no label is this short, kernels are numbered.
const WIDTH: usize = 22;

/// A label for each kernel, in the same order; equal kernels have equal labels.
/// `6.1.0-56-cloud-amd64 (6.1.192-2)` is `6.1.0` where no other one begins like that.
pub(crate) fn labels(kernels: &[&str]) -> Vec<String> {
    let distinct: BTreeSet<&str> = kernels.iter().copied().collect();
    let longest = distinct.iter().map(|kernel| beginnings(kernel).len()).max();
    let tells_apart = |&count: &usize| {
        let labels: BTreeSet<&str> =
            distinct.iter().map(|kernel| beginning(kernel, count)).collect();
        labels.len() == distinct.len() && labels.iter().all(|l| columns(l) <= WIDTH)
    };
    let count = (1..=longest.unwrap_or(0)).find(tells_apart);
    let label = |kernel: &&str| {
        let number = || distinct.iter().filter(|other| *other <= kernel).count();
        let numbered = || format!("kernel {}", number());
        count.map_or_else(numbered, |count| beginning(kernel, count).to_owned())
    };
    kernels.iter().map(label).collect()
}

fn beginning(kernel: &str, count: usize) -> &str {
    let beginnings = beginnings(kernel);
    let last = beginnings.len().min(count).saturating_sub(1);
    beginnings.get(last).copied().unwrap_or(kernel)
}

/// What could stand for the name, from short to long: its beginnings up to a separator
/// that have a digit in them, and all of it. Of a path only the file's name counts.
fn beginnings(kernel: &str) -> Vec<&str> {
    let path = kernel.split(' ').next().unwrap_or(kernel);
    let name = &kernel[path.rfind('/').map_or(0, |at| at + 1)..];
    let ends = name.match_indices(['-', '+', '_', ' ']).map(|(end, _)| &name[..end]);
    let mut beginnings: Vec<&str> =
        ends.filter(|part| part.contains(|c: char| c.is_ascii_digit())).collect();
    beginnings.push(name);
    beginnings
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOUD: &str = "6.1.0-56-cloud-amd64 (6.1.192-2)";

    /// Check that labels are as short as they can be, and no shorter.
    #[test]
    fn tell_apart() {
        assert_eq!(labels(&[CLOUD]), ["6.1.0"]);
        let newer = "6.12.117+deb12-cloud-amd64 (6.12.117-1)";
        assert_eq!(labels(&[CLOUD, newer, CLOUD]), ["6.1.0", "6.12.117", "6.1.0"]);
        let rt = "6.1.0-56-rt-amd64 (6.1.192-2)";
        assert_eq!(labels(&[CLOUD, rt]), ["6.1.0-56-cloud", "6.1.0-56-rt"]);
    }

    /// Check that of a path the file's name counts, and that kernels that differ only at
    /// the end of long names are numbered.
    #[test]
    fn odd_names() {
        assert_eq!(
            labels(&["/boot/a-1/vmlinuz-6.6.1-mine (sha256 00)"]),
            ["vmlinuz-6.6.1"]
        );
        assert_eq!(labels(&["bzImage"]), ["bzImage"]);
        let [a, b] =
            ["a", "b"].map(|end| format!("6.1.0-with-a-name-too-long-to-print-{end}"));
        assert_eq!(labels(&[&b, &a]), ["kernel 2", "kernel 1"]);
        assert_eq!(labels(&[]), [""; 0]);
    }
}
