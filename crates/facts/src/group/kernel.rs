//! The kernel: release, flavour, distribution, architecture, configuration.
//!
//! From `/proc/sys/kernel/{osrelease,version,arch}` (the last since 6.1), and from
//! `/etc/os-release`, which in a container is that of the container.
//!
//! Undocumented changes by distributions are unknown.

use serde::{Deserialize, Serialize};

use crate::fact::{Fact, Unknown, Why, group};
use crate::format::release::Release;
use crate::sources::{self, Sources};

/// The variant of the kernel, from its release and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flavour {
    /// A kernel for general use, or unknown.
    Generic,
    /// `PREEMPT_RT`.
    Rt,
    /// A kernel for virtual machines of a cloud provider.
    Cloud,
    /// A low-latency kernel (Ubuntu).
    Lowlatency,
}

group! {
    /// The kernel.
    "kernel" Kernel {
        /// `uname -r`: `6.1.0-56-cloud-amd64`.
        release: String,
        /// `uname -v`: `#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2`.
        version: String,
        /// The variant of the kernel, from its release and version.
        flavour: Flavour,
        /// The distribution's name.
        distribution: String,
        /// `x86_64`, `aarch64`, ...
        arch: String,
        /// The file with the kernel's configuration.
        config: String,
    }
}

impl crate::Facts {
    /// Whether the kernel is this version or a later one; `None` if its release is unknown.
    pub fn kernel_at_least(&self, major: u32, minor: u32) -> Option<bool> {
        let release = Release::parse(self.kernel.release.get()?)?;
        Some(release.at_least(major, minor))
    }
}

const VERSION: &str = "/proc/sys/kernel/version";
const ARCH: &str = "/proc/sys/kernel/arch";
/// Files with the distribution's name, the preferred one first.
const OS_RELEASE: [&str; 2] = ["/etc/os-release", "/usr/lib/os-release"];
const REDHAT_RELEASE: &str = "/etc/redhat-release";
/// Parts of the names of kernels for cloud providers, of Ubuntu and others.
const CLOUDS: [&str; 7] = ["cloud", "aws", "azure", "gcp", "gke", "kvm", "oracle"];

/// The options of architectures, with their names in `uname -m`.
const ARCHITECTURES: [(&str, &str); 7] = [
    ("X86_64", "x86_64"),
    ("X86_32", "i686"),
    ("ARM64", "aarch64"),
    ("S390", "s390x"),
    ("LOONGARCH", "loongarch64"),
    ("PPC64", "ppc64"),
    ("ARCH_RV64I", "riscv64"),
];

impl Kernel {
    pub(crate) fn read(sources: &Sources) -> Self {
        let text = |release: &Release| release.text().to_owned();
        let release = sources.release.as_ref().map(text).map_err(Clone::clone);
        let version = sources.word(VERSION);
        let config = sources.config.as_ref();
        let file = config.map(|config| config.file().to_owned()).map_err(Clone::clone);
        Self {
            flavour: flavour(sources, version.get().map_or("", String::as_str)),
            release: Fact::of(release, sources::RELEASE),
            version,
            distribution: distribution(sources),
            arch: arch(sources),
            config: Fact::of(file, sources.config_file()),
        }
    }
}

fn flavour(sources: &Sources, version: &str) -> Fact<Flavour> {
    let read = |release: &Release| {
        let words: Vec<&str> =
            release.rest().split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let has = |name: &&str| words.contains(name);
        let rt = |word: &str| {
            let number = word.strip_prefix("rt");
            number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
        };
        if says_rt(version) || words.iter().any(|word| rt(word) || *word == "realtime") {
            Flavour::Rt
        } else if has(&"lowlatency") {
            Flavour::Lowlatency
        } else if CLOUDS.iter().any(has) {
            Flavour::Cloud
        } else {
            Flavour::Generic
        }
    };
    let source = format!("{}, {VERSION}", sources::RELEASE);
    Fact::of(sources.release.as_ref().map(read).map_err(Clone::clone), source)
}

fn distribution(sources: &Sources) -> Fact<String> {
    for file in OS_RELEASE {
        let text = sources.root.text(file);
        if let Some(name) = text.ok().as_deref().and_then(pretty_name) {
            return Fact::known(name, file);
        }
    }
    let redhat = sources.word(REDHAT_RELEASE);
    if redhat.get().is_some() {
        return redhat;
    }
    let text = format!("neither {} nor {REDHAT_RELEASE} names it", OS_RELEASE[0]);
    Fact::unknown(Unknown::new(Why::Absent, text), OS_RELEASE[0])
}

/// `PRETTY_NAME` in an `os-release` file, which has shell syntax.
fn pretty_name(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?;
    let bare = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let name = bare('"').or_else(|| bare('\'')).unwrap_or(value);
    (!name.is_empty()).then(|| name.replace('\\', ""))
}

/// The architecture: from the kernel (since 6.1), from its configuration, or from `uname` on a
/// live machine.
fn arch(sources: &Sources) -> Fact<String> {
    let own = sources.word(ARCH);
    match own.value() {
        Err(unknown) if matches!(unknown.code, Why::Absent | Why::NotRecorded) => {}
        _ => return own,
    }
    if let Ok(config) = &sources.config {
        if let Some((_, name)) = ARCHITECTURES.iter().find(|(set, _)| config.is_set(set))
        {
            let little = *name == "ppc64" && config.is_set("CPU_LITTLE_ENDIAN");
            let name = if little { "ppc64le" } else { name };
            return Fact::known(name.to_owned(), config.file());
        }
    }
    if sources.root.is_live() {
        let machine = rustix::system::uname().machine().to_string_lossy().into_owned();
        return Fact::known(machine, "uname(2)");
    }
    own
}

/// Whether a kernel's version contains `PREEMPT_RT`, or the spelling of the patch before it was
/// merged.
pub(crate) fn says_rt(version: &str) -> bool {
    ["PREEMPT_RT", "PREEMPT RT"].iter().any(|name| version.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    /// Check the flavours of several distributions.
    #[test]
    fn flavours() {
        for (release, version, flavour) in [
            ("6.12.107+deb13-rt-amd64", "#1 SMP PREEMPT_RT Debian", Flavour::Rt),
            ("5.14.0-427.el9.x86_64+rt", "#1 SMP", Flavour::Rt),
            ("4.9.0-rt7", "#1 SMP PREEMPT RT", Flavour::Rt),
            ("6.8.1-1015-realtime", "#1", Flavour::Rt),
            ("6.1.0-56-cloud-amd64", "#1 SMP PREEMPT_DYNAMIC", Flavour::Cloud),
            ("6.8.0-1021-aws", "#1", Flavour::Cloud),
            ("6.8.0-51-lowlatency", "#1", Flavour::Lowlatency),
            ("6.1.0-smart-art", "#1 SMP PREEMPT", Flavour::Generic),
        ] {
            let files = [("/proc/sys/kernel/osrelease", release), (VERSION, version)];
            let kernel = Kernel::read(&tree(&files).sources());
            assert_eq!(kernel.flavour.get(), Some(&flavour), "{release}");
        }
    }

    /// Check the formats of the distribution's name.
    #[test]
    fn distributions() {
        for (text, name) in [
            ("ID=x\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n", Some("Debian GNU/Linux 12")),
            ("PRETTY_NAME='Alpine v3'\n", Some("Alpine v3")),
            ("PRETTY_NAME=Arch\n", Some("Arch")),
            ("PRETTY_NAME=\"\"\n", None),
            ("NAME=x\n", None),
        ] {
            assert_eq!(pretty_name(text).as_deref(), name, "{text}");
        }
        let files = [
            ("/proc/sys/kernel/osrelease", "2.6.18-308.el5"),
            (REDHAT_RELEASE, "CentOS release 5.8 (Final)\n"),
        ];
        let kernel = Kernel::read(&tree(&files).sources());
        assert_eq!(kernel.distribution.get().unwrap(), "CentOS release 5.8 (Final)");
    }

    /// Check that the architecture is determined from the configuration if the kernel has no file
    /// for it.
    #[test]
    fn architectures() {
        let release = ("/proc/sys/kernel/osrelease", "5.10.0");
        let arch = |config: &str| {
            let files = [release, ("/boot/config-5.10.0", config)];
            Kernel::read(&tree(&files).sources()).arch.get().cloned()
        };
        assert_eq!(arch("CONFIG_ARM64=y\n").as_deref(), Some("aarch64"));
        let little = "CONFIG_PPC64=y\nCONFIG_CPU_LITTLE_ENDIAN=y\n";
        assert_eq!(arch(little).as_deref(), Some("ppc64le"));
        assert_eq!(arch("CONFIG_SMP=y\n"), None);
    }
}
