//! Short labels of kernels: the shortest prefixes that distinguish their releases; for builds
//! of one release, the shortest suffixes that distinguish their paths.
//!
//! Cannot distinguish two images that had the same path.

use std::collections::BTreeSet;

use recording::Cell;

use crate::fitting::columns::columns;

/// Kernels are numbered if labels would be longer.
const WIDTH: usize = 22;

/// A kernel: as requested, and its release and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kernel<'a> {
    requested: &'a str,
    release: &'a str,
}

impl<'a> Kernel<'a> {
    fn of(cell: &'a Cell) -> Self {
        Self { requested: &cell.asked, release: &cell.kernel }
    }
}

/// The label of each cell's kernel, in the same order; equal kernels have equal labels.
/// `6.1.0-56-cloud-amd64 (6.1.192-2)` is `6.1.0` if no other kernel begins with that.
pub(crate) fn labels<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Vec<String> {
    let kernels: Vec<Kernel<'_>> = cells.into_iter().map(Kernel::of).collect();
    let distinct: Vec<Kernel<'_>> =
        kernels.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let labels = short_labels(&distinct).unwrap_or_else(|| {
        (1..=distinct.len()).map(|number| format!("kernel {number}")).collect()
    });
    let label = |kernel: &Kernel<'_>| {
        let named = distinct.iter().zip(&labels).find(|(other, _)| *other == kernel);
        named.map_or_else(String::new, |(_, label)| label.clone())
    };
    kernels.iter().map(label).collect()
}

/// The kernel's release and version, with its path if it was requested by one.
pub(crate) fn full_name(cell: &Cell) -> String {
    let Kernel { requested, release } = Kernel::of(cell);
    let is_path =
        !matches!(requested, "" | "running") && !requested.starts_with("debian:");
    match (is_path, release) {
        (true, "") => requested.to_owned(),
        (true, release) => format!("{requested}: {release}"),
        (false, release) => release.to_owned(),
    }
}

/// Short labels that are different for distinct kernels.
fn short_labels(kernels: &[Kernel<'_>]) -> Option<Vec<String>> {
    let releases: BTreeSet<&str> = kernels.iter().map(|kernel| kernel.release).collect();
    let count = shortest_distinct(&releases, prefixes);
    let label = |kernel: &Kernel<'_>| {
        let same = kernels.iter().filter(|other| other.release == kernel.release);
        let requested: BTreeSet<&str> = same.map(|kernel| kernel.requested).collect();
        match count {
            Some(count) if requested.len() == 1 => {
                Some(nth(&prefixes(kernel.release), count))
            }
            _ => shortest_distinct(&requested, suffixes)
                .map(|count| nth(&suffixes(kernel.requested), count)),
        }
    };
    let labels = kernels.iter().map(label).collect::<Option<Vec<String>>>()?;
    let distinct: BTreeSet<&String> = labels.iter().collect();
    (distinct.len() == kernels.len()).then_some(labels)
}

/// The number of the first candidate that is different for each name.
fn shortest_distinct(
    names: &BTreeSet<&str>,
    candidates: impl Fn(&str) -> Vec<String>,
) -> Option<usize> {
    let all: Vec<Vec<String>> = names.iter().map(|name| candidates(name)).collect();
    let are_distinct = |count: &usize| {
        let labels: BTreeSet<String> = all.iter().map(|of| nth(of, *count)).collect();
        labels.len() == names.len() && labels.iter().all(|l| columns(l) <= WIDTH)
    };
    let most = all.iter().map(Vec::len).max().unwrap_or(0);
    (1..=most).find(are_distinct)
}

/// The candidate of that number, counted from 1; the last one if there are fewer.
fn nth(candidates: &[String], count: usize) -> String {
    candidates.iter().take(count).next_back().cloned().unwrap_or_default()
}

/// Possible labels of a release, from short to long: its prefixes that contain a digit and
/// end before a separator, and all of it. Of a path only the file's name is used.
fn prefixes(release: &str) -> Vec<String> {
    let path = release.split(' ').next().unwrap_or(release);
    let name = &release[path.rfind('/').map_or(0, |at| at + 1)..];
    let ends = name.match_indices(['-', '+', '_', ' ']).map(|(end, _)| &name[..end]);
    let parts = ends.filter(|part| part.contains(|c: char| c.is_ascii_digit()));
    parts.chain([name]).map(str::to_owned).collect()
}

/// Possible labels of a path, from short to long: its last part, its last two parts, ... The parts
/// of a kernel that is built are its options, or its own label alone.
fn suffixes(requested: &str) -> Vec<String> {
    let is_build = requested.starts_with("build:");
    if let (true, Some((_, label))) = (is_build, requested.rsplit_once(",name=")) {
        return vec![label.to_owned()];
    }
    let ends = |c: char| c == '/' || is_build && c == ',';
    let starts = requested.rmatch_indices(ends).map(|(at, _)| &requested[at + 1..]);
    starts.chain([requested]).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::cell::{cell, lost};

    const CLOUD: &str = "6.1.0-56-cloud-amd64 (6.1.192-2)";

    fn of(asked: &str, release: &str) -> Cell {
        Cell { asked: asked.to_owned(), ..cell("a cell", release, lost()) }
    }

    fn released(releases: &[&str]) -> Vec<String> {
        labels(&releases.iter().map(|release| of("", release)).collect::<Vec<_>>())
    }

    fn requested(paths: &[&str]) -> Vec<String> {
        labels(&paths.iter().map(|path| of(path, CLOUD)).collect::<Vec<_>>())
    }

    /// Check that labels are as short as possible.
    #[test]
    fn shortest() {
        assert_eq!(released(&[CLOUD]), ["6.1.0"]);
        let newer = "6.12.117+deb12-cloud-amd64 (6.12.117-1)";
        assert_eq!(released(&[CLOUD, newer, CLOUD]), ["6.1.0", "6.12.117", "6.1.0"]);
        let rt = "6.1.0-56-rt-amd64 (6.1.192-2)";
        assert_eq!(released(&[CLOUD, rt]), ["6.1.0-56-cloud", "6.1.0-56-rt"]);
    }

    /// Check that the file's name is used of a path, and that kernels that differ only at the
    /// end of long names are numbered.
    #[test]
    fn odd_names() {
        assert_eq!(
            released(&["/boot/a-1/vmlinuz-6.6.1-mine (sha256 00)"]),
            ["vmlinuz-6.6.1"]
        );
        assert_eq!(released(&["bzImage"]), ["bzImage"]);
        let [a, b] =
            ["a", "b"].map(|end| format!("6.1.0-with-a-name-too-long-to-print-{end}"));
        assert_eq!(released(&[&b, &a]), ["kernel 2", "kernel 1"]);
        assert_eq!(released(&[]), [""; 0]);
    }

    /// Check that two images of one release are distinguished by the ends of their paths, and
    /// others by their releases.
    #[test]
    fn one_release() {
        assert_eq!(
            requested(&["./old/bzImage", "./new/bzImage"]),
            ["old/bzImage", "new/bzImage"]
        );
        assert_eq!(requested(&["/a/v1", "/a/v2", "/a/v1"]), ["v1", "v2", "v1"]);
        assert_eq!(requested(&["bzImage", "a/bzImage"]), ["bzImage", "a/bzImage"]);
        let mixed = [
            of("./bzImage", CLOUD),
            of("debian:6.1-cloud", CLOUD),
            of("debian:6.12", "6.12.117+deb12-amd64"),
        ];
        assert_eq!(labels(&mixed), ["bzImage", "debian:6.1-cloud", "6.12.117"]);
        let long =
            ["x", "y"].map(|dir| format!("/{dir}/a-name-too-long-to-print-it/bzImage"));
        assert_eq!(requested(&[&long[1], &long[0]]), ["kernel 2", "kernel 1"]);
    }

    /// Check that kernels of one release that were built are distinguished by their options, or by
    /// their own labels.
    #[test]
    fn builds() {
        let base = "build:debian:6.1,lean";
        assert_eq!(requested(&[base, "build:debian:6.1,lean,HZ=40"]), ["lean", "HZ=40"]);
        let own = ["build:./linux,lean,HZ=40,name=slow", "build:./linux,lean,name=a"];
        assert_eq!(requested(&own), ["slow", "a"]);
    }

    /// Check that no two kernels have the same label.
    #[test]
    fn no_two_alike() {
        let cells =
            [of("a/6.12.117", CLOUD), of("b/bzImage", CLOUD), of("", "6.12.117-1")];
        assert_eq!(labels(&cells), ["kernel 2", "kernel 3", "kernel 1"]);
    }

    /// Check that a path is part of the full name, and the name of an archive is not.
    #[test]
    fn full() {
        let names = ["./bzImage", "debian:6.1-cloud", "running"]
            .map(|asked| full_name(&of(asked, "6.1")));
        assert_eq!(names, ["./bzImage: 6.1", "6.1", "6.1"]);
    }
}
