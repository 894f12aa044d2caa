//! Kernel packages as `apt-cache show` prints them, and which of them match a name.
//!
//! The same kernel comes as two packages, with and without a signature for Secure Boot;
//! their images differ in the signature alone. Not every version has both. Since 6.19
//! the image and its configuration are in packages that `linux-image-*` depends on.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::debian_version::compare;
use crate::spec::DebianSpec;

/// The names of the packages with a kernel's parts: its image, and its configuration.
const BINARY: &str = "linux-binary-";
const BASE: &str = "linux-base-";
/// The names of the packages with a source, and with configurations.
const SOURCES: [&str; 2] = ["linux-source-", "linux-config-"];

/// One version of a kernel package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The packages that hold parts of the kernel, of the same version.
    pub(crate) parts: Vec<String>,
}

impl Package {
    /// The packages of a listing, in its order. Paragraphs without a name and a version
    /// are left out.
    pub(crate) fn read(listing: &str) -> Vec<Self> {
        listing.split("\n\n").filter_map(Self::read_paragraph).collect()
    }

    fn read_paragraph(paragraph: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut lines = paragraph.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        Some(Self {
            name: field("Package")?.to_owned(),
            version: field("Version")?.to_owned(),
            parts: parts(field("Depends").unwrap_or("")),
        })
    }

    /// The kernel in it, if there is one. A package that is named after two numbers
    /// alone only depends on the newest kernel of a release, unless the kernel is in parts:
    /// then it is a release candidate's.
    pub(crate) fn kernel(&self) -> Option<DebianSpec> {
        let kernel = DebianSpec::of_package(&self.name)?;
        (!kernel.is_short() || !self.parts.is_empty()).then_some(kernel)
    }

    /// The kernel's release, as in `uname -r` and in the names of its files.
    pub(crate) fn release(&self) -> &str {
        let name = self.name.strip_prefix("linux-image-").unwrap_or(&self.name);
        name.strip_suffix("-unsigned").unwrap_or(name)
    }

    /// Itself and its parts, as arguments of the package client.
    pub(crate) fn downloads(&self) -> Vec<String> {
        let names = std::iter::once(&self.name).chain(&self.parts);
        names.map(|name| format!("{name}={}", self.version)).collect()
    }

    fn is_signed(&self) -> bool {
        !self.name.ends_with("-unsigned")
    }

    pub(crate) fn order(&self, other: &Self) -> Ordering {
        compare(&self.version, &other.version)
            .then_with(|| self.is_signed().cmp(&other.is_signed()))
    }
}

/// The packages with a kernel's parts among those a package depends on.
fn parts(depends: &str) -> Vec<String> {
    let names = depends.split(',').filter_map(|one| one.split_whitespace().next());
    names.filter(|name| is_part(name)).map(str::to_owned).collect()
}

/// Whether a package of that name holds a part of a kernel. Parts are named after the
/// kernel: plain `linux-base` is something else.
pub(crate) fn is_part(name: &str) -> bool {
    let rest = [BINARY, BASE].iter().find_map(|prefix| name.strip_prefix(prefix));
    rest.is_some_and(|rest| {
        let rest = rest.strip_prefix("unsigned-").unwrap_or(rest);
        rest.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a package of that name holds a kernel's source or its configurations, of a version in
/// two numbers: `linux-source-6.1`.
pub(crate) fn is_source(name: &str) -> bool {
    let version = SOURCES.iter().find_map(|prefix| name.strip_prefix(prefix));
    version.is_some_and(|version| {
        version.starts_with(|c: char| c.is_ascii_digit())
            && version.chars().all(|c| c.is_ascii_digit() || c == '.')
    })
}

/// The packages of a listing that contain a kernel, with those of their parts that are in the
/// listing. Archives drop parts before the whole: without the part that has the configuration the
/// kernel has none, and without the part that has the image there is no kernel.
pub(crate) fn kernels(listing: Vec<Package>) -> Vec<Package> {
    let there: BTreeSet<(String, String)> =
        listing.iter().map(|one| (one.name.clone(), one.version.clone())).collect();
    let kernel = |mut package: Package| {
        package.kernel()?;
        let version = package.version.clone();
        let is_there = |part: &String| there.contains(&(part.clone(), version.clone()));
        let image = |part: &&String| part.starts_with(BINARY);
        if !package.parts.iter().filter(image).all(is_there) {
            return None;
        }
        package.parts.retain(is_there);
        Some(package)
    };
    listing.into_iter().filter_map(kernel).collect()
}

/// The packages that match a name, the newest first, and the signed one before the other.
pub(crate) fn matching(mut packages: Vec<Package>, spec: &DebianSpec) -> Vec<Package> {
    packages.retain(|package| package.kernel().is_some_and(|one| spec.covers(&one)));
    packages.sort_by(|one, other| other.order(one));
    packages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::KernelSpec;

    /// Recorded on Debian 12 with `apt-cache show`, shortened.
    const LISTING: &str = "\
Package: linux-image-6.1.0-56-cloud-amd64-unsigned
Source: linux
Version: 6.1.192-2
Depends: kmod, linux-base (>= 4.3~), initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool
Description: Linux 6.1 for x86-64 cloud
 Version: 9

Package: linux-image-6.1.0-56-cloud-amd64
Source: linux-signed-amd64 (6.1.192+2)
Version: 6.1.192-2
Depends: kmod, linux-base (>= 4.3~), initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool

Package: linux-image-6.1.0-9-cloud-amd64
Version: 6.1.27-1

Package: linux-image-6.12.117+deb12-cloud-amd64-unsigned
Version: 6.12.117-1~deb12u1

Package: linux-image-6.12.115+deb12-cloud-amd64
Version: 6.12.115-1~deb12u1

Package: linux-image-6.1-cloud-amd64
Version: 6.1.999-1

Package: linux-image-7.3.4+deb13-cloud-amd64
Version: 7.3.4-1~bpo13+1
Depends: dracut | initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool, linux-base-7.3.4+deb13-cloud-amd64 (= 7.3.4-1~bpo13+1), linux-binary-7.3.4+deb13-cloud-amd64 (= 7.3.4-1~bpo13+1), linux-modules-7.3.4+deb13-cloud-amd64 (= 7.3.4-1~bpo13+1)

Package: linux-base-7.3.4+deb13-cloud-amd64
Version: 7.3.4-1~bpo13+1

Package: linux-binary-7.3.4+deb13-cloud-amd64
Version: 7.3.4-1~bpo13+1

Package: linux-image-7.2.9+deb13-amd64
Version: 7.2.9-1~bpo13+1
Depends: linux-base-7.2.9+deb13-amd64 (= 7.2.9-1~bpo13+1), linux-binary-7.2.9+deb13-amd64 (= 7.2.9-1~bpo13+1)

Package: linux-base-7.2.9+deb13-amd64
Version: 7.2.9-1~bpo13+1

Package: linux-binary-7.4-rt-amd64
Version: 7.4~rc7-1~exp1

Package: linux-image-7.4-rt-amd64
Version: 7.4~rc7-1~exp1
Depends: linux-base-7.4-rt-amd64 (= 7.4~rc7-1~exp1), linux-binary-7.4-rt-amd64 (= 7.4~rc7-1~exp1)
";

    fn choose(spec: &str) -> Option<Package> {
        let Ok(KernelSpec::Debian(spec)) = KernelSpec::parse(spec) else {
            panic!("{spec}")
        };
        matching(kernels(Package::read(LISTING)), &spec).into_iter().next()
    }

    /// Check that the newest version wins, and among equals the signed package.
    #[test]
    fn prefers_newer_then_signed() {
        for (spec, name) in [
            ("debian:6.1-cloud", "linux-image-6.1.0-56-cloud-amd64"),
            ("debian:6.12-cloud", "linux-image-6.12.117+deb12-cloud-amd64-unsigned"),
            ("debian:6.12.115-cloud", "linux-image-6.12.115+deb12-cloud-amd64"),
            ("debian:6.1.0-9-cloud", "linux-image-6.1.0-9-cloud-amd64"),
        ] {
            assert_eq!(choose(spec).unwrap().name, name, "{spec}");
        }
        assert_eq!(choose("debian:6.1"), None);
        assert_eq!(choose("debian:5.10-cloud"), None);
    }

    /// Check that all packages of a kernel are downloaded, and no others with similar names.
    #[test]
    fn knows_a_kernels_parts() {
        let whole = choose("debian:6.1-cloud").unwrap();
        assert_eq!(whole.downloads(), ["linux-image-6.1.0-56-cloud-amd64=6.1.192-2"]);
        let split = choose("debian:7.3-cloud").unwrap();
        let release = "7.3.4+deb13-cloud-amd64";
        assert_eq!(split.release(), release);
        let names = ["image", "base", "binary"];
        let parts = names.map(|name| format!("linux-{name}-{release}=7.3.4-1~bpo13+1"));
        assert_eq!(split.downloads(), parts);
    }

    /// Check that a kernel that lost its configuration in the archive has none, and that one
    /// without its image is omitted.
    #[test]
    fn parts_that_are_gone() {
        let names = ["linux-image-7.4-rt-amd64", "linux-binary-7.4-rt-amd64"];
        let there = names.map(|name| format!("{name}=7.4~rc7-1~exp1"));
        assert_eq!(choose("debian:7.4-rt").unwrap().downloads(), there);
        assert_eq!(choose("debian:7.2"), None);
    }

    /// Check that a release candidate is known by two numbers, and a package that only
    /// depends on a kernel is not taken for one.
    #[test]
    fn release_candidates() {
        let candidate = choose("debian:7.4-rt").unwrap();
        assert_eq!(candidate.release(), "7.4-rt-amd64");
        assert_eq!(candidate.version, "7.4~rc7-1~exp1");
        assert_eq!(choose("debian:6.1-cloud").unwrap().version, "6.1.192-2");
    }

    /// Check that a kernel's release is the same with and without a signature.
    #[test]
    fn names_the_release() {
        let unsigned = choose("debian:6.12-cloud").unwrap();
        assert_eq!(unsigned.release(), "6.12.117+deb12-cloud-amd64");
    }
}
