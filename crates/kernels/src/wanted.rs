//! The Debian package that has a missing program, library or file.
//!
//! First the lists of installed packages (`/var/lib/dpkg/info/*.list`, as `dpkg -S` reads them),
//! whose file may have been deleted; then the archive's list of all files, `Contents-amd64` of the
//! machine's own release, which the package client downloads (12 MB). Cannot see: files of packages
//! for all architectures, which have a list of their own, and links that packages make while they
//! are installed.

use std::fs;
use std::path::Path;

use itertools::Itertools;

use crate::debian::{Debian, Fetch};
use crate::error::Error;

/// The lists of installed packages.
const INSTALLED: &str = "var/lib/dpkg/info";
/// More packages than these are not named.
const NAMED_MAX: usize = 3;

/// A missing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// A program of that name, in one of the usual folders.
    Program(&'a str),
    /// A library of that name, in one of the usual folders.
    Library(&'a str),
    /// The file of that absolute path.
    Path(&'a str),
}

/// Where a missing file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// These packages are installed, but the file is gone.
    Installed(Vec<String>),
    /// These packages have it.
    Archive(Vec<String>),
}

impl Wanted<'_> {
    /// An extended regular expression for its path without the first slash.
    fn pattern(self) -> String {
        match self {
            Self::Program(name) => format!("(usr/)?(s?bin|games)/{}", escape(name)),
            Self::Library(name) => {
                format!("(usr/)?lib(64|/x86_64-linux-gnu)?/{}", escape(name))
            }
            Self::Path(path) => {
                let path = path.trim_start_matches('/');
                format!("(usr/)?{}", escape(path.strip_prefix("usr/").unwrap_or(path)))
            }
        }
    }

    /// Whether that is its path, with the first slash.
    fn is_at(self, path: &str) -> bool {
        let bare = path.strip_prefix("/usr").unwrap_or(path);
        let folder = |folders: &[&str], name: &str| {
            let rest = bare.strip_suffix(name);
            rest.is_some_and(|rest| folders.contains(&rest))
        };
        match self {
            Self::Program(name) => folder(&["/bin/", "/sbin/", "/games/"], name),
            Self::Library(name) => {
                folder(&["/lib/", "/lib64/", "/lib/x86_64-linux-gnu/"], name)
            }
            Self::Path(wanted) => bare == wanted.strip_prefix("/usr").unwrap_or(wanted),
        }
    }
}

/// The same text in a regular expression.
fn escape(text: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || "/_-".contains(c) || !c.is_ascii();
    let escaped = text.chars().map(|c| match is_plain(c) {
        true => c.to_string(),
        false => format!("[{c}]"),
    });
    // In a bracket expression a circumflex is an operator.
    escaped.collect::<String>().replace("[^]", "\\^")
}

/// The packages that have a file; `None` if none of the release's has.
///
/// # Errors
/// `Kind::Unavailable` if there is no archive, or it does not answer; `Kind::Cache`;
/// `Kind::Interrupted`.
pub(crate) fn source(
    wanted: Wanted<'_>,
    root: &Path,
    debian: &Debian,
    fetch: &mut Fetch<'_>,
) -> Result<Option<Source>, Error> {
    let installed = installed(wanted, root);
    if !installed.is_empty() {
        return Ok(Some(Source::Installed(installed)));
    }
    let lines = debian.files(&format!("^{}[[:space:]]", wanted.pattern()), fetch)?;
    let packages = packages(&lines);
    Ok((!packages.is_empty()).then_some(Source::Archive(packages)))
}

/// The installed packages that have a file in their list.
fn installed(wanted: Wanted<'_>, root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root.join(INSTALLED)).into_iter().flatten().flatten();
    let lists = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let package = name.strip_suffix(".list")?.split(':').next()?.to_owned();
        let text = fs::read_to_string(entry.path()).ok()?;
        text.lines().any(|path| wanted.is_at(path)).then_some(package)
    });
    lists.sorted().dedup().take(NAMED_MAX).collect()
}

/// The packages in lines of the archive's list: a path, and packages with their sections.
fn packages(lines: &str) -> Vec<String> {
    let columns = lines.lines().filter_map(|line| line.rsplit_once([' ', '\t']));
    let packages = columns.flat_map(|(_, packages)| packages.split(','));
    let names = packages.filter_map(|package| package.rsplit('/').next());
    names.map(str::to_owned).sorted().dedup().take(NAMED_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the usual folders are searched, and no others, with and without `/usr`.
    #[test]
    fn paths() {
        let ab = Wanted::Program("ab");
        assert!(ab.is_at("/usr/bin/ab") && ab.is_at("/sbin/ab"));
        assert!(!ab.is_at("/usr/share/bin/ab") && !ab.is_at("/usr/bin/tab"));
        let library = Wanted::Library("libz.so.1");
        assert!(library.is_at("/lib/x86_64-linux-gnu/libz.so.1"));
        assert!(!library.is_at("/usr/lib/x86_64-linux-gnu/a/libz.so.1"));
        assert!(Wanted::Path("/bin/sh").is_at("/usr/bin/sh"));
        assert_eq!(library.pattern(), "(usr/)?lib(64|/x86_64-linux-gnu)?/libz[.]so[.]1");
        assert_eq!(Wanted::Path("/usr/bin/a+^").pattern(), "(usr/)?bin/a[+]\\^");
    }

    /// Check that packages are read from the lists of installed ones, and from the archive's.
    #[test]
    fn lists() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(INSTALLED);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("apache2-utils.list"), "/.\n/usr/bin/ab\n").unwrap();
        fs::write(folder.join("libz1:amd64.list"), "/usr/lib/libz.so.1\n").unwrap();
        fs::write(folder.join("other.md5sums"), "/usr/bin/ab\n").unwrap();
        assert_eq!(installed(Wanted::Program("ab"), root.path()), ["apache2-utils"]);
        assert_eq!(installed(Wanted::Library("libz.so.1"), root.path()), ["libz1"]);
        assert_eq!(installed(Wanted::Program("a"), root.path()), [""; 0]);
        let lines = "usr/bin/ab   httpd/apache2-utils\nbin/ab\tb,contrib/net/c,b\n";
        assert_eq!(packages(lines), ["apache2-utils", "b", "c"]);
    }
}
