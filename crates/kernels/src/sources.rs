//! The sources of Debian packages of this machine, and the suites of Debian's archive there.
//!
//! Read from `/etc/apt/sources.list`, `sources.list.d/*.list` (one line each) and
//! `*.sources` (paragraphs): sources.list(5). No address is built in: a machine with a
//! mirror of its own gets Debian's kernels from there, too. Which of the suites exist is known
//! only after a query.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use itertools::Itertools;

use crate::architecture::Architecture;

/// Debian's releases: the oldest that mirrors still have, and those to come that have a
/// name.
const RELEASES: &[&str] = &["bullseye", "bookworm", "trixie", "forky", "duke"];
/// The suites that are never released.
const UNRELEASED: &[&str] = &["sid", "experimental"];
/// The same by their role, as some machines name them.
const ROLES: &[&str] = &["oldoldstable", "oldstable", "stable", "testing", "unstable"];
/// The suffixes of a release's name in related suites that may have kernels.
const BESIDE: &[&str] = &["-proposed-updates", "-updates", "-security", "-backports"];
/// The fields about the trust in an archive; they belong to its address.
const TRUST: &[&str] = &["signed-by", "trusted", "check-valid-until", "allow-insecure"];

/// The field of a paragraph that restricts it to lists of packages.
pub(crate) const PACKAGES: &str = "Targets: Packages\n";

/// A place for packages.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    uri: String,
    suites: Vec<String>,
    /// Options as fields of a paragraph; a value may have several lines.
    trust: Vec<(String, String)>,
}

/// Debian's archive as this machine reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DebianSources {
    /// The machine's own release, as its sources name it.
    release: String,
    /// The same, as the machine itself names it.
    codename: Option<String>,
    main: Source,
    security: Option<Source>,
    /// All sources of Debian's packages.
    all: Vec<Source>,
}

/// One suite of Debian's, and its sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suite {
    pub(crate) name: String,
    /// The address that is queried first.
    pub(crate) uri: String,
    /// The sources, as paragraphs for the package client.
    pub(crate) sources: String,
}

impl DebianSources {
    /// Finds the archive among the machine's sources; `None` if it has none of
    /// Debian's.
    pub(crate) fn find(root: &Path) -> Option<Self> {
        let sources: Vec<Source> =
            files(root).iter().flat_map(|file| read(file)).collect();
        Self::choose(sources, codename(root))
    }

    fn choose(sources: Vec<Source>, codename: Option<String>) -> Option<Self> {
        let own =
            |suite: &str| codename.as_ref().is_none_or(|codename| suite == codename);
        let releases = || {
            let all = sources.iter().flat_map(|source| {
                source.suites.iter().map(move |suite| (source, suite))
            });
            all.filter(|(_, suite)| is_release(suite) && *suite != "experimental")
        };
        let best = |(source, suite): &(&Source, &String)| {
            (!source.is_debians(), !own(suite)) // the first of the smallest is taken
        };
        let (main, release) = releases().min_by_key(best)?;
        let (main, release) = (main.clone(), release.clone());
        let is_security = |source: &&Source| {
            let mut suites = source.suites.iter();
            suites.any(|suite| security_of(suite).is_some_and(is_release))
        };
        let named =
            sources.iter().filter(is_security).min_by_key(|one| !one.is_debians());
        let security = named.cloned().or_else(|| main.security());
        let mut all = sources;
        all.retain(|source| source.is_debians() || source.uri == main.uri);
        Some(Self { release, codename, main, security, all })
    }

    /// The suites of the machine's own release.
    pub(crate) fn own(&self) -> Vec<Suite> {
        let release = &self.release;
        if ["sid", "unstable"].contains(&release.as_str()) {
            return vec![self.suite(release)];
        }
        let beside = ["", "-updates", "-security", "-backports"];
        beside.iter().map(|end| self.suite(&format!("{release}{end}"))).collect()
    }

    /// All other suites: those known here, and those that the machine's sources name.
    pub(crate) fn others(&self) -> Vec<Suite> {
        let own = self.own_releases();
        let is_own = |name: &str| {
            own.contains(&base(name)) && !name.ends_with("-proposed-updates")
        };
        let beside = |release: &&str| {
            ["", "-security", "-backports"].map(|end| format!("{release}{end}"))
        };
        let known = RELEASES.iter().flat_map(beside);
        let known = known.chain(UNRELEASED.iter().map(|&name| name.to_owned()));
        let named = self.all.iter().flat_map(|source| source.suites.clone());
        let named = named.filter(|name| is_release(base(name)));
        let names = known.chain(named).unique();
        names.filter(|name| !is_own(name)).map(|name| self.suite(&name)).collect()
    }

    /// The names of the machine's own release.
    fn own_releases(&self) -> Vec<&str> {
        let other = match self.release.as_str() {
            "unstable" => Some("sid"),
            role if ROLES.contains(&role) => self.codename.as_deref(),
            _ => None,
        };
        other.into_iter().chain([self.release.as_str()]).collect()
    }

    /// A suite by its name, whether the archive has it or not.
    pub(crate) fn suite(&self, name: &str) -> Suite {
        let named = self.all.iter();
        let named =
            named.filter(|source| source.suites.iter().any(|suite| suite == name));
        let usual = match security_of(name) {
            Some(_) => self.security.as_ref().unwrap_or(&self.main),
            None => &self.main,
        };
        let mut places: Vec<&Source> = named.chain([usual]).collect();
        places = places.into_iter().unique_by(|source| &source.uri).collect();
        Suite {
            name: name.to_owned(),
            uri: places.first().map_or_else(String::new, |source| source.uri.clone()),
            sources: places.iter().map(|source| source.paragraph(name)).collect(),
        }
    }
}

impl Source {
    /// Whether the address looks like Debian's own archive or a mirror of it; others have
    /// suites of the same names.
    fn is_debians(&self) -> bool {
        let by_address = debian_segment(&self.uri).is_some();
        let by_key = self
            .trust
            .iter()
            .any(|(name, value)| name == "signed-by" && value.contains("debian-archive"));
        by_address || by_key
    }

    /// The security archive beside a main one: `debian-security` beside
    /// `debian`.
    fn security(&self) -> Option<Self> {
        let end = debian_segment(&self.uri)? + "debian".len();
        let uri = format!("{}-security{}", &self.uri[..end], &self.uri[end..]);
        Some(Self { uri, suites: Vec::new(), trust: self.trust.clone() })
    }

    /// The source with other suites, as a paragraph; nothing but lists of packages.
    fn paragraph(&self, suites: &str) -> String {
        let mut text = format!(
            "Types: deb\nURIs: {}\nSuites: {suites}\nComponents: main\n\
             {}{PACKAGES}",
            self.uri,
            architectures(Architecture::X86_64)
        );
        for (name, value) in &self.trust {
            let _ = writeln!(text, "{name}: {value}"); // a String takes everything
        }
        text + "\n"
    }
}

/// The line of a source for packages of that architecture.
pub(crate) fn architectures(architecture: Architecture) -> String {
    format!("Architectures: {}\n", architecture.debian())
}

/// Where in an address a part named `debian` begins: `.../debian`, `.../debian/2025...`,
/// `.../debian.list`.
fn debian_segment(uri: &str) -> Option<usize> {
    let ends = |at: &usize| {
        let rest = &uri[at + "/debian".len()..];
        rest.is_empty() || rest.starts_with(['/', '.'])
    };
    let places = uri.rmatch_indices("/debian").map(|(place, _)| place);
    places.filter(|place| !uri[..*place].ends_with('/')).find(ends).map(|place| place + 1)
}

fn is_release(suite: impl AsRef<str>) -> bool {
    [RELEASES, UNRELEASED, ROLES].iter().any(|names| names.contains(&suite.as_ref()))
}

/// The release that a suite is of.
fn base(suite: &str) -> &str {
    BESIDE.iter().find_map(|end| suite.strip_suffix(end)).unwrap_or(suite)
}

/// The release that a security suite is of, in the new and the old way of naming.
fn security_of(suite: &str) -> Option<&str> {
    suite.strip_suffix("-security").or_else(|| suite.strip_suffix("/updates"))
}

/// The release according to the machine itself.
fn codename(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("etc/os-release")).ok()?;
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(value.trim_matches('"').to_owned())
}

/// The files with sources, in the package client's order.
fn files(root: &Path) -> Vec<PathBuf> {
    let folder = root.join("etc/apt/sources.list.d");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files.insert(0, root.join("etc/apt/sources.list"));
    files
}

/// The sources of a file; none if it cannot be read.
fn read(file: &Path) -> Vec<Source> {
    let text = fs::read_to_string(file).unwrap_or_default();
    match file.extension().and_then(|end| end.to_str()) {
        Some("list") => text.lines().filter_map(read_line).flatten().collect(),
        Some("sources") => read_paragraphs(&text),
        _ => Vec::new(),
    }
}

/// Reads `deb [OPTION=VALUE ...] URI SUITE COMPONENT...`.
fn read_line(line: &str) -> Option<Vec<Source>> {
    let rest = line.split('#').next()?.trim().strip_prefix("deb")?;
    let rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let options = options.split_whitespace().filter_map(|one| one.split_once('='));
    let (first, components) = rest.trim_start().split_once(char::is_whitespace)?;
    let (suite, components) = components.trim_start().split_once(char::is_whitespace)?;
    Some(sources(first, suite, components, trust(options)))
}

/// Reads paragraphs of `Field: value`, where lines that begin with a blank are continuations.
fn read_paragraphs(text: &str) -> Vec<Source> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<&str> = lines.map(str::trim_end).collect();
    let paragraphs = lines.split(|line| line.is_empty());
    paragraphs.filter_map(read_paragraph).flatten().collect()
}

fn read_paragraph(lines: &[&str]) -> Option<Vec<Source>> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in lines {
        if line.starts_with([' ', '\t']) {
            let (_, value) = fields.last_mut()?;
            *value += "\n";
            *value += line;
        } else {
            let (name, value) = line.split_once(':')?;
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let field = |name: &str| {
        let found = fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    };
    let off = ["no", "false", "without", "off", "disable", "0"];
    let enabled = !off.contains(&field("enabled").unwrap_or("yes"));
    let binary = field("types")?.split_whitespace().any(|one| one == "deb");
    let options = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    (enabled && binary).then_some(())?;
    Some(sources(field("uris")?, field("suites")?, field("components")?, trust(options)))
}

/// The options about the trust in a source.
fn trust<'a>(options: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    let known =
        options.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    known.filter(|(name, _)| TRUST.contains(&name.as_str())).collect()
}

/// One source per address; none without the component that kernels are in, and none on
/// CD-ROMs.
fn sources(
    uris: &str,
    suites: &str,
    components: &str,
    trust: Vec<(String, String)>,
) -> Vec<Source> {
    if !components.split_whitespace().any(|component| component == "main") {
        return Vec::new();
    }
    let suites: Vec<String> = suites.split_whitespace().map(str::to_owned).collect();
    let uris = uris.split_whitespace().filter(|uri| !uri.starts_with("cdrom:"));
    let uris = uris.map(|uri| uri.trim_end_matches('/').to_owned());
    uris.map(|uri| Source { uri, suites: suites.clone(), trust: trust.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "\
# deb cdrom:[Debian GNU/Linux 12]/ bookworm main
deb cdrom:[Debian]/ bookworm main
deb-src http://mirror.example/debian bookworm main
deb http://other.example/node_20.x bookworm main
deb [ arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg ] http://mirror.example/debian/ bookworm main contrib # ours
deb http://safe.example/debian-security bookworm-security main
deb http://mirror.example/extra ./
";
    const PARAGRAPHS: &str = "\
Types: deb
URIs: https://other.example/linux/debian
Suites: trixie
Components: stable

# the archive
Types: deb deb-src
URIs: mirror+file:///etc/apt/mirrors/debian.list
Suites: trixie trixie-updates
# a comment within
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQINBF
 -----END PGP PUBLIC KEY BLOCK-----

Enabled: no
Types: deb
URIs: http://safe.example/debian-security
Suites: trixie-security
Components: main
";

    /// The archive that a machine with those files has.
    fn machine(name: &str, text: &str, codename: &str) -> Option<DebianSources> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("etc/apt/sources.list.d");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), text).unwrap();
        let os = format!("ID=debian\nVERSION_CODENAME={codename}\n");
        fs::write(root.path().join("etc/os-release"), os).unwrap();
        DebianSources::find(root.path())
    }

    fn names(suites: &[Suite]) -> Vec<&str> {
        suites.iter().map(|suite| suite.name.as_str()).collect()
    }

    /// Check that the archive and its security archive are found among lines, and that other lines
    /// have no effect.
    #[test]
    fn reads_lines() {
        let main = "\
Types: deb
URIs: http://mirror.example/debian
Suites: bookworm-backports
Components: main
Architectures: amd64
Targets: Packages
signed-by: /usr/share/keyrings/debian-archive-keyring.gpg

";
        let security = "\
Types: deb
URIs: http://safe.example/debian-security
Suites: bookworm-security
Components: main
Architectures: amd64
Targets: Packages

";
        let own = machine("debian.list", LINES, "bookworm").unwrap().own();
        let beside =
            ["bookworm", "bookworm-updates", "bookworm-security", "bookworm-backports"];
        assert_eq!(names(&own), beside);
        assert_eq!(own[3].sources, main);
        assert_eq!(own[2].sources, security);
    }

    /// Check that paragraphs are read, that keys within them are complete, and that the security
    /// archive is derived if the machine's own is disabled.
    #[test]
    fn reads_paragraphs_with_keys() {
        let sources = machine("debian.sources", PARAGRAPHS, "trixie").unwrap();
        let security = sources.suite("trixie-security").sources;
        let key = "signed-by: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mQINBF\n";
        assert!(security.contains(key), "{security}");
        let place = "URIs: mirror+file:///etc/apt/mirrors/debian-security.list\n\
                     Suites: trixie-security\n";
        assert!(security.contains(place), "{security}");
        let all = [sources.own(), sources.others()].concat();
        assert!(all.iter().all(|suite| !suite.sources.contains("other.example")));
    }

    /// Check that the other suites are all but those of the machine's own release, also if that is
    /// named by its role, and that each is queried once.
    #[test]
    fn names_the_other_suites() {
        let others = machine("debian.sources", PARAGRAPHS, "trixie").unwrap().others();
        let expected = [
            "bullseye",
            "bullseye-security",
            "bullseye-backports",
            "bookworm",
            "bookworm-security",
            "bookworm-backports",
            "forky",
            "forky-security",
            "forky-backports",
            "duke",
            "duke-security",
            "duke-backports",
            "sid",
            "experimental",
        ];
        assert_eq!(names(&others), expected);
        let line = "deb http://mirror.example/debian stable main\n";
        let by_role = machine("a.list", line, "trixie").unwrap();
        assert_eq!(names(&by_role.own())[..2], ["stable", "stable-updates"]);
        assert_eq!(names(&by_role.others()), expected);
    }

    /// Check that suites in the machine's sources only are queried there, and that a suite with two
    /// sources is queried at both.
    #[test]
    fn suites_of_the_machines_sources() {
        let lines = "deb http://mirror.example/debian trixie main\n\
                     deb http://mirror.example/debian trixie-proposed-updates main\n\
                     deb http://old.example/debian bullseye main\n\
                     deb http://tools.example/debian nodistro main\n";
        let sources = machine("a.list", lines, "trixie").unwrap();
        let others = sources.others();
        assert_eq!(names(&others).last(), Some(&"trixie-proposed-updates"));
        assert!(!names(&others).contains(&"nodistro"));
        let bullseye = sources.suite("bullseye");
        assert_eq!(bullseye.uri, "http://old.example/debian");
        assert_eq!(bullseye.sources.matches("Suites: bullseye\n").count(), 2);
        assert!(bullseye.sources.contains("URIs: http://mirror.example/debian\n"));
    }

    /// Check that a machine on Debian's unstable has no updates and backports.
    #[test]
    fn unstable_is_alone() {
        let line = "deb http://mirror.example/debian unstable main\n";
        let sources = machine("a.list", line, "forky").unwrap();
        assert_eq!(names(&sources.own()), ["unstable"]);
        let others = sources.others();
        let others = names(&others);
        assert!(others.contains(&"forky") && !others.contains(&"sid"), "{others:?}");
    }

    /// Check that a machine without Debian's archive has none.
    #[test]
    fn other_distributions_have_none() {
        let line = "deb http://archive.example/ubuntu noble main\n";
        assert_eq!(machine("ubuntu.list", line, "noble"), None);
        assert_eq!(machine("empty.list", "", "noble"), None);
        assert_eq!(machine("off.list.disabled", LINES, "bookworm"), None);
    }

    /// Check that the part of an address that becomes `debian-security` is the right one.
    #[test]
    fn derives_the_security_archive() {
        for (uri, expected) in [
            ("http://a.example/debian", Some("http://a.example/debian-security")),
            (
                "http://a.example/debian/2025",
                Some("http://a.example/debian-security/2025"),
            ),
            (
                "http://debian.example/x/debian",
                Some("http://debian.example/x/debian-security"),
            ),
            ("http://debian.example/pool", None),
            ("http://a.example/debian-remote", None),
        ] {
            let source = sources(uri, "sid", "main", Vec::new()).remove(0);
            let security = source.security().map(|source| source.uri);
            assert_eq!(security.as_deref(), expected, "{uri}");
        }
    }
}
