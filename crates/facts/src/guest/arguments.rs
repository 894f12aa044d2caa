//! The arguments of a virtual machine monitor (`/proc/PID/cmdline`): the name of the guest, and the
//! number of its vCPUs.
//!
//! Options of QEMU: `-name` and `-smp` in qemu-system(1), with one or two hyphens; in their values, a
//! doubled comma is a comma. Firecracker has `--id`. No other argument is used: arguments may
//! contain passwords.

use crate::guest::vcpu::number;

/// The longest name, in characters; longer ones are cut.
const NAME_MAX: usize = 200;
/// The factors of the number of vCPUs.
const TOPOLOGY: [&str; 8] =
    ["drawers", "books", "sockets", "dies", "clusters", "modules", "cores", "threads"];

/// The arguments of a process.
#[derive(Debug)]
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    /// Parses `cmdline`: each argument ends with a null byte.
    pub(crate) fn parse(cmdline: &str) -> Self {
        let cmdline = cmdline.strip_suffix('\0').unwrap_or(cmdline);
        Self(cmdline.split('\0').map(str::to_owned).collect())
    }

    /// The file name of the program.
    pub(crate) fn program(&self) -> &str {
        let path = self.0.first().map_or("", String::as_str);
        path.rsplit_once('/').map_or(path, |(_, name)| name)
    }

    /// The name that QEMU gives the guest.
    pub(crate) fn qemu_name(&self) -> Option<String> {
        let pairs = pairs(self.value(&["-name", "--name"])?);
        // The key of the first value may be omitted.
        let named = pairs.iter().find(|(key, _)| key == "guest");
        let first = pairs.first().filter(|(key, _)| key.is_empty());
        let (_, name) = named.or(first)?;
        cut(name)
    }

    /// The identifier that Firecracker has for the guest.
    pub(crate) fn firecracker_id(&self) -> Option<String> {
        let joined = || self.0.iter().find_map(|argument| argument.strip_prefix("--id="));
        cut(self.value(&["--id"]).or_else(joined)?)
    }

    /// The number of vCPUs that QEMU starts a guest with; `None` if the option cannot be parsed.
    pub(crate) fn qemu_vcpus(&self) -> Option<u32> {
        let Some(value) = self.value(&["-smp", "--smp"]) else { return Some(1) };
        let pairs = pairs(value);
        let value = |name: &str| pairs.iter().find(|(key, _)| key == name);
        let first = pairs.first().filter(|(key, _)| key.is_empty());
        if let Some((_, count)) = value("cpus").or(first) {
            return number(count);
        }
        let factors: Vec<_> = TOPOLOGY.into_iter().filter_map(value).collect();
        if factors.is_empty() {
            return value("maxcpus").map_or(Some(1), |(_, count)| number(count));
        }
        let multiply =
            |all: u32, (_, count): &(String, String)| all.checked_mul(number(count)?);
        factors.into_iter().try_fold(1, multiply)
    }

    /// The argument after one of these; the last, if there are several, as for QEMU.
    fn value(&self, options: &[&str]) -> Option<&str> {
        let of = |pair: &[String]| options.contains(&pair[0].as_str());
        self.0.windows(2).rev().find(|pair| of(pair)).map(|pair| pair[1].as_str())
    }
}

/// The parts of an option's value, as key and value; the key may be empty.
fn pairs(value: &str) -> Vec<(String, String)> {
    // The null byte cannot be part of an argument.
    let value = value.replace(",,", "\0");
    let plain = |text: &str| text.replace('\0', ",");
    let pair = |part: &str| match part.split_once('=') {
        Some((key, value)) => (plain(key), plain(value)),
        None => (String::new(), plain(part)),
    };
    value.split(',').map(pair).collect()
}

/// The name, cut; `None` if it is empty.
fn cut(name: &str) -> Option<String> {
    let name: String = name.chars().take(NAME_MAX).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arguments(words: &[&str]) -> Arguments {
        Arguments::parse(&words.join("\0"))
    }

    /// Check the names of QEMU's guests: with and without the key, with commas, and none.
    #[test]
    fn names() {
        for (words, name) in [
            (&["-name", "guest=web,debug-threads=on"][..], Some("web")),
            (&["-name", "web,process=x"], Some("web")),
            (&["--name", "debug-threads=on,guest=web"], Some("web")),
            (&["-name", "a,,b=c"], None),
            (&["-name", "guest=a,,b=c"], Some("a,b=c")),
            (&["-name", "old", "-name", "new"], Some("new")),
            (&["-name", "debug-threads=on"], None),
            (&["-name", "guest="], None),
            (&["-name"], None),
            (&[], None),
        ] {
            let found = arguments(&[&["qemu-system-x86_64"], words].concat());
            assert_eq!(found.qemu_name().as_deref(), name, "{words:?}");
        }
        let long = arguments(&["q", "-name", &"\u{e9}".repeat(500)]).qemu_name().unwrap();
        assert_eq!(long.chars().count(), NAME_MAX);
        for words in [&["fc", "--id", "vm-1"][..], &["fc", "--id=vm-1", "--no-api"]] {
            assert_eq!(arguments(words).firecracker_id().as_deref(), Some("vm-1"));
        }
    }

    /// Check the number of vCPUs in all forms of the option.
    #[test]
    fn numbers_of_vcpus() {
        for (value, count) in [
            ("4", Some(4)),
            ("4,maxcpus=8,sockets=2", Some(4)),
            ("cpus=2,maxcpus=8", Some(2)),
            ("sockets=2,cores=3,threads=2,maxcpus=12", Some(12)),
            ("maxcpus=8", Some(8)),
            ("many", None),
            ("sockets=65536,cores=65536", None),
        ] {
            let found = arguments(&["qemu-kvm", "-smp", value]).qemu_vcpus();
            assert_eq!(found, count, "{value}");
        }
        assert_eq!(arguments(&["qemu-kvm"]).qemu_vcpus(), Some(1));
    }

    /// Check the program's name with and without a path, and for empty arguments.
    #[test]
    fn programs() {
        assert_eq!(arguments(&["/usr/bin/kvm", "-id", "7"]).program(), "kvm");
        assert_eq!(arguments(&["qemu-kvm"]).program(), "qemu-kvm");
        assert_eq!(Arguments::parse("").program(), "");
    }

    proptest! {
        /// Check that no command line causes a panic.
        #[test]
        fn any_command_line(
            words in prop::collection::vec("(-name|--id|-smp|,|=|guest|[0-9]|\0){0,4}", 0..6),
        ) {
            let found = Arguments::parse(&words.join("\0"));
            let _ = (found.qemu_name(), found.firecracker_id(), found.qemu_vcpus());
        }
    }
}
