//! A machine of which only the kernel's configuration is known, and perhaps its command line.

use crate::fact::{Unknown, Why};
use crate::format::command_line;
use crate::format::config::{Config, text_of};
use crate::format::release::Release;
use crate::sources::RELEASE;
use crate::tree::root::Root;

/// What the first lines of a configuration have around its kernel's version: `# Linux/x86 6.1.0 Kernel Configuration`.
const HEADER: (&str, &str) = ("# Linux/", " Kernel Configuration");
/// Every whole configuration has it; one with only the options that differ from their defaults does not.
const ALWAYS: &str = "HZ";
/// The header is one of so many lines.
const HEAD: usize = 10;

impl Root {
    /// The machine with this configuration (`name` is that of its file, for messages), whose kernel is the one of the
    /// file's header unless another release is given.
    ///
    /// # Errors
    /// The file is no whole configuration (`Why::Garbage`), or the version of its kernel is in neither
    /// (`Why::Absent`).
    pub fn configuration(
        config: &[u8],
        name: &str,
        release: Option<&str>,
        command_line: Option<&str>,
    ) -> Result<Self, Unknown> {
        if Config::parse(config, name)?.value(ALWAYS).is_none() {
            let text =
                format!("{name} is no whole configuration: it has no CONFIG_{ALWAYS}");
            return Err(Unknown::new(Why::Garbage, text));
        }
        let text = text_of(config, name)?;
        let release = match release {
            Some(given) => is_release(given).then_some(given).ok_or_else(|| {
                Unknown::new(Why::Garbage, format!("'{given}' is no kernel version"))
            })?,
            None => header(&text).filter(|text| is_release(text)).ok_or_else(|| {
                let text = format!("{name} has no kernel version in its first lines");
                Unknown::new(Why::Absent, text)
            })?,
        };
        let line = command_line.map(|line| (command_line::FILE.to_owned(), line.into()));
        let files = [
            (RELEASE.to_owned(), release.as_bytes().to_vec()),
            (format!("/boot/config-{release}"), config.to_vec()),
        ];
        Ok(Self::files(files.into_iter().chain(line)))
    }
}

/// Whether a text is a kernel's release, as a part of the name of a file.
fn is_release(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    text.chars().all(is_part) && Release::parse(text).is_some()
}

/// The version in the header.
fn header(text: &str) -> Option<&str> {
    text.lines().take(HEAD).find_map(|line| {
        let rest = line.strip_prefix(HEADER.0)?.strip_suffix(HEADER.1)?;
        Some(rest.split_once(' ')?.1.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facts;

    const CONFIG: &str = "#\n# Linux/x86 6.12.9 Kernel Configuration\n#\nCONFIG_HZ=250\n\
                          CONFIG_NO_HZ_FULL=y\n";

    /// Check that the kernel is that of the header, or the one that is given, and that nothing else is known.
    #[test]
    fn kernel_of_a_configuration() {
        let root =
            Root::configuration(CONFIG.as_bytes(), "c", None, Some("nohz_full=1\n"));
        let facts = Facts::read(&root.unwrap());
        assert_eq!(facts.kernel.release.get().unwrap(), "6.12.9");
        assert_eq!(facts.settings.options.get().unwrap()["NO_HZ_FULL"], "y");
        assert_eq!(facts.boot.parameters.get().unwrap(), &["nohz_full=1"]);
        let why = facts.settings.values.value();
        assert!(why.is_ok_and(std::collections::BTreeMap::is_empty));
        assert!(facts.cpus.online.get().is_none());
        let other =
            Root::configuration(CONFIG.as_bytes(), "c", Some("5.10.1"), None).unwrap();
        assert_eq!(Facts::read(&other).kernel.release.get().unwrap(), "5.10.1");
    }

    /// Check that the header is found in a file that is compressed, and that a path is no release.
    #[test]
    fn compressed() {
        let mut packed =
            flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, CONFIG.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        let root = Root::configuration(&packed, "c", None, None).unwrap();
        assert_eq!(Facts::read(&root).kernel.release.get().unwrap(), "6.12.9");
        let other = Root::configuration(&packed, "c", Some("6.1/../x"), None);
        assert_eq!(other.unwrap_err().text, "'6.1/../x' is no kernel version");
    }

    /// Check that another file is refused, and a configuration without a header.
    #[test]
    fn no_configuration() {
        let of = |text: &str| Root::configuration(text.as_bytes(), "c", None, None);
        assert_eq!(of("hello\n").unwrap_err().code, Why::Garbage);
        assert_eq!(of("CONFIG_SMP=y\n").unwrap_err().code, Why::Garbage);
        let unknown = of("CONFIG_HZ=250\n").unwrap_err();
        assert_eq!(unknown.text, "c has no kernel version in its first lines");
    }
}
