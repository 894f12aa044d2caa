//! The configuration of a kernel: requested, made by the tree's own Kconfig, and compared with the
//! request.
//!
//! Kconfig offers four values of `HZ`. For any other, a copy of the tree's first Kconfig file, in
//! the folder of the build, defines `HZ` with that default before it includes all others: the first
//! default wins (`Documentation/kbuild/kconfig-language.rst`).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use facts::Config;
use strsim::osa_distance;

use crate::build::base::{BaseConfig, option_name, read_text};
use crate::build::difference::{group, is_hz, other_hz};
use crate::build::kconfig::{Kconfig, Type};
use crate::build::make::{BuildEnd, Make};
use crate::build::source::Tree;
use crate::build_error::BuildError;
use crate::build_name::BuildSpec;
use crate::build_option::{self, Hz, OptionValue, Wanted, unescaped};
use crate::debian::Fetch;

/// The file with the options, if it is not the tree's own.
const KCONFIG: &str = "noisefloor-Kconfig";
/// The file with the request.
const REQUEST: &str = "noisefloor-request";
/// Names are similar if at most one letter in so many differs.
const LETTERS_PER_CHANGE: usize = 3;
/// How many similar names are listed.
const SIMILAR_MAX: usize = 3;
/// The file that Kconfig makes.
pub(crate) const CONFIG: &str = ".config";

/// A requested configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    base: BaseConfig,
    /// One for each option; the last of several requests.
    wanted: Vec<Wanted>,
}

/// Reads the files with options, and adds the single options.
///
/// # Errors
/// A file cannot be read, has a line that is no option, or asks for a module.
pub(crate) fn wanted(spec: &BuildSpec) -> Result<Vec<Wanted>, BuildError> {
    let mut all: Vec<Wanted> = Vec::new();
    for file in &spec.fragments {
        let read = build_option::read(&read_text(file)?, file);
        let mut read = read.map_err(|(number, text)| BuildError::Line {
            file: file.clone(),
            number,
            text,
        })?;
        // Beside a frequency that Kconfig does not offer, a complete configuration has a choice.
        if read.iter().any(|one| matches!(one.hz(), Some(Hz::Other(_)))) {
            read.retain(|one| one.name == "HZ" || !is_hz(&one.name));
        }
        all.extend(read);
    }
    if let Some(module) = all.iter().find(|one| one.value == "m") {
        let Wanted { name, origin, .. } = module;
        return Err(BuildError::Module(origin.clone(), name.clone()));
    }
    all.extend(spec.options.iter().map(OptionValue::wanted));
    Ok(last_of_each(&all, |one| Some(one.name.clone())))
}

/// The last request of each group, in their order, and those without a group.
fn last_of_each(
    all: &[Wanted],
    group: impl Fn(&Wanted) -> Option<String>,
) -> Vec<Wanted> {
    let mut seen = HashSet::new();
    let last =
        all.iter().rev().filter(|one| group(one).is_none_or(|own| seen.insert(own)));
    let mut last: Vec<Wanted> = last.cloned().collect();
    last.reverse();
    last
}

impl Request {
    pub(crate) fn new(base: BaseConfig, mut wanted: Vec<Wanted>) -> Self {
        // Kconfig takes no HZ from a file: it follows from a choice.
        if let Some(hz) = other_hz(&base.text) {
            let hz = OptionValue { name: "HZ".to_owned(), value: hz.to_string() };
            wanted.insert(0, hz.wanted());
        }
        Self { base, wanted }
    }

    /// The same without options that later ones override because they are of the same choice.
    pub(crate) fn settled(&self, kconfig: &Kconfig) -> Self {
        let chosen = |one: &Wanted| (one.value != "n").then(|| group(&one.name, kconfig));
        Self { base: self.base.clone(), wanted: last_of_each(&self.wanted, chosen) }
    }

    /// Whether options that are not in the base are off.
    pub(crate) fn is_complete(&self) -> bool {
        self.base.is_complete
    }

    /// What identifies it.
    pub(crate) fn identity(&self) -> String {
        let mut text = format!("{}\n{}", self.base.is_complete, self.base.text);
        for Wanted { name, value, .. } in &self.wanted {
            text += &format!("{name}={value}\n");
        }
        text
    }

    /// Refuses options that the kernel does not have, and values of another type.
    ///
    /// # Errors
    /// `BuildError::NoOption`, with similar names; `BuildError::Value`.
    pub(crate) fn check(&self, kconfig: &Kconfig, tree: &Tree) -> Result<(), BuildError> {
        for Wanted { name, value, origin } in &self.wanted {
            let Some(symbol) = kconfig.symbol(name) else {
                let (version, hint) = (tree.version.clone(), hint(name, kconfig));
                let origin = origin.clone();
                return Err(BuildError::NoOption(origin, version, name.clone(), hint));
            };
            let is_number = |text: &str| text.parse::<i64>().is_ok();
            let is_hex = |text: &str| {
                let digits = text.strip_prefix("0x").unwrap_or(text);
                u64::from_str_radix(digits, 16).is_ok()
            };
            let expected = match symbol.kind {
                Some(Type::Bool | Type::Tristate)
                    if !matches!(value.as_str(), "y" | "n") =>
                {
                    "y or n"
                }
                Some(Type::Int) if !is_number(value) => "a number",
                Some(Type::Hex) if !is_hex(value) => "a hexadecimal number",
                _ => continue,
            };
            return Err(BuildError::Value(origin.clone(), name.clone(), expected));
        }
        Ok(())
    }

    /// The requested frequency of the tick, if Kconfig does not offer it.
    pub(crate) fn other_hz(&self) -> Option<u32> {
        self.wanted.iter().find_map(|one| match one.hz()? {
            Hz::Other(hz) => Some(hz),
            Hz::Offered(_) => None,
        })
    }

    /// Writes the copy of the tree's first Kconfig file, if one is needed.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn write_kconfig(
        &self,
        tree: &Path,
        out: &Path,
    ) -> Result<Option<PathBuf>, BuildError> {
        let Some(hz) = self.other_hz() else { return Ok(None) };
        let text = read_text(&tree.join("Kconfig"))?;
        let file = out.join(KCONFIG);
        let (head, rest) = text
            .find("\nsource ")
            .map_or((text.as_str(), ""), |at| text.split_at(at + 1));
        let text = format!("{head}config HZ\n\tint\n\tdefault {hz}\n\n{rest}");
        write(&file, &text)?;
        Ok(Some(file))
    }

    /// The lines for Kconfig: of the base what is not requested otherwise, then the request.
    fn text(&self, kconfig: &Kconfig) -> String {
        let is_wanted = |name: &str| self.wanted.iter().any(|one| one.name == name);
        let base = self.base.text.lines();
        let kept = base.filter(|line| option_name(line).is_some_and(|n| !is_wanted(n)));
        let mut text: String = kept.map(|line| format!("{line}\n")).collect();
        for one in &self.wanted {
            let is_string = kconfig
                .symbol(&one.name)
                .is_some_and(|symbol| symbol.kind == Some(Type::Text));
            text += &match one.hz() {
                Some(Hz::Offered(hz)) => format!("CONFIG_HZ_{hz}=y\n"),
                Some(Hz::Other(_)) => String::new(),
                None => one.line(is_string),
            };
        }
        text
    }

    /// Makes the configuration in the folder of the build, and compares it with the request.
    ///
    /// # Errors
    /// `BuildError::Dropped` with the options that Kconfig gave another value, and why.
    pub(crate) fn configure(
        &self,
        make: &Make<'_>,
        kconfig: &Kconfig,
        fetch: &mut Fetch<'_>,
    ) -> Result<Config, BuildEnd> {
        let text = self.text(kconfig);
        let config = make.folder.path.join(CONFIG);
        if self.base.is_complete {
            let request = make.folder.path.join(REQUEST);
            write(&request, &text).map_err(BuildEnd::Error)?;
            let preset = format!("KCONFIG_ALLCONFIG={}", request.display());
            make.run(&["allnoconfig".to_owned(), preset], "configuring", fetch)?;
        } else {
            write(&config, &text).map_err(BuildEnd::Error)?;
            make.run(&["olddefconfig".to_owned()], "configuring", fetch)?;
        }
        let made = read_config(&config).map_err(BuildEnd::Error)?;
        self.compare(&made, kconfig).map_err(BuildEnd::Error)?;
        Ok(made)
    }

    fn compare(&self, made: &Config, kconfig: &Kconfig) -> Result<(), BuildError> {
        let dropped: Vec<String> = self
            .wanted
            .iter()
            .filter(|one| !has(made, one))
            .map(|Wanted { name, value, origin }| {
                let option = format!("{name}={value}");
                let place = match *origin == option {
                    true => String::new(),
                    false => format!(" ({origin})"),
                };
                format!("{option}{place}: {}", kconfig.explain(name, value, made))
            })
            .collect();
        if dropped.is_empty() { Ok(()) } else { Err(BuildError::Dropped(dropped)) }
    }
}

/// The configuration in a file.
///
/// # Errors
/// It cannot be read.
pub(crate) fn read_config(file: &Path) -> Result<Config, BuildError> {
    let text = read_text(file)?;
    let name = file.display().to_string();
    Config::parse(text.as_bytes(), &name).map_err(|why| {
        BuildError::Read(file.to_owned(), std::io::Error::other(why.to_string()))
    })
}

/// Whether the configuration is as requested.
fn has(config: &Config, Wanted { name, value, .. }: &Wanted) -> bool {
    match (config.value(name), value.as_str()) {
        (None, "n" | "") => true,
        (None, _) => false,
        (Some(made), wanted) => {
            let same_hex = || {
                let hex =
                    |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
                hex(made).is_some() && hex(made) == hex(wanted)
            };
            made == wanted || unescaped(made) == wanted || same_hex()
        }
    }
}

/// Similar names.
fn hint(name: &str, kconfig: &Kconfig) -> String {
    let names = kconfig.names();
    let limit = (name.len() / LETTERS_PER_CHANGE).max(1);
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .map(|known| (osa_distance(name, known), known))
        .filter(|(changes, _)| *changes <= limit)
        .collect();
    near.sort_unstable();
    let near: Vec<&str> = near.into_iter().map(|(_, n)| n).take(SIMILAR_MAX).collect();
    match near.as_slice() {
        [] => "hint: make menuconfig in its tree lists all".to_owned(),
        [one] => format!("there is {one}"),
        several => format!("there are {}", several.join(", ")),
    }
}

fn write(file: &Path, text: &str) -> Result<(), BuildError> {
    fs::write(file, text).map_err(|error| BuildError::of_writing(file, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(options: &str) -> Request {
        let spec = BuildSpec::parse(&format!("build:x,lean,{options}")).unwrap();
        Request::new(
            BaseConfig {
                text: "CONFIG_A=y\nCONFIG_HZ_250=y\n".to_owned(),
                is_complete: true,
            },
            wanted(&spec).unwrap(),
        )
    }

    /// Check that later requests replace earlier ones and the base, and how HZ is set.
    #[test]
    fn lines_for_kconfig() {
        let kconfig = Kconfig::default();
        let text = |options| request(options).text(&kconfig);
        assert_eq!(
            text("A=y,HZ=1000,A=n"),
            "CONFIG_HZ_250=y\nCONFIG_HZ_1000=y\n# CONFIG_A is not set\n"
        );
        assert_eq!(text("HZ=40"), "CONFIG_A=y\nCONFIG_HZ_250=y\n");
        assert_eq!(request("HZ=40").other_hz(), Some(40));
        assert_eq!(request("HZ=300").other_hz(), None);
    }

    /// Check that a later option of a choice overrides an earlier one, whatever their names, and that
    /// the frequency of a base is requested unless another is.
    #[test]
    fn choices() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("arch/x86")).unwrap();
        let choice = |options: [&str; 2]| {
            let options = options.map(|name| format!("config {name}\n\tbool \"x\"\n\n"));
            format!("choice\n\tprompt \"x\"\n\n{}endchoice\n\n", options.concat())
        };
        let text = choice(["HZ_PERIODIC", "NO_HZ_IDLE"]) + &choice(["HZ_100", "HZ_250"]);
        fs::write(tree.path().join("Kconfig"), text).unwrap();
        let kconfig = Kconfig::read(tree.path());
        let settled = |options: &str| {
            let settled = request(options).settled(&kconfig);
            settled.text(&kconfig).lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        let base = "CONFIG_HZ_250=y";
        assert_eq!(settled("NO_HZ=off,NO_HZ=idle"), [base, "CONFIG_NO_HZ_IDLE=y"]);
        let off = "# CONFIG_NO_HZ_IDLE is not set";
        assert_eq!(
            settled("NO_HZ_IDLE=n,HZ_PERIODIC=y"),
            [base, off, "CONFIG_HZ_PERIODIC=y"]
        );
        assert_eq!(settled("HZ_250=y,HZ=100"), [base, "CONFIG_HZ_100=y"]);
        assert_eq!(request("HZ=40,HZ_100=y").settled(&kconfig).other_hz(), None);
        let of_base = |options: &str| {
            let base =
                BaseConfig { text: "CONFIG_HZ=40\n".to_owned(), is_complete: true };
            Request::new(base, request(options).wanted).settled(&kconfig).other_hz()
        };
        assert_eq!(["A=y", "HZ=100", "HZ=60"].map(of_base), [Some(40), None, Some(60)]);
    }

    /// Check that another HZ is defined before the tree's own, in a copy of its first file.
    #[test]
    fn other_frequencies() {
        let tree = tempfile::tempdir().unwrap();
        let text = "mainmenu \"Linux\"\n\nsource \"init/Kconfig\"\n";
        fs::write(tree.path().join("Kconfig"), text).unwrap();
        let out = tempfile::tempdir().unwrap();
        let file = request("HZ=40").write_kconfig(tree.path(), out.path()).unwrap();
        let written = fs::read_to_string(file.unwrap()).unwrap();
        let expected = "mainmenu \"Linux\"\n\nconfig HZ\n\tint\n\tdefault 40\n\n\
                        source \"init/Kconfig\"\n";
        assert_eq!(written, expected);
        assert_eq!(fs::read_to_string(tree.path().join("Kconfig")).unwrap(), text);
        let file = request("HZ=100").write_kconfig(tree.path(), out.path()).unwrap();
        assert_eq!(file, None);
    }

    /// Check which values count as the requested ones.
    #[test]
    fn compares_values() {
        let config = "CONFIG_A=y\nCONFIG_S=\"a b\"\nCONFIG_Q=\"a\\\"b\"\nCONFIG_X=0x10\n";
        let config = Config::parse(config.as_bytes(), "c").unwrap();
        for (name, value, is) in [
            ("A", "y", true),
            ("A", "n", false),
            ("B", "n", true),
            ("B", "y", false),
            ("S", "a b", true),
            ("Q", "a\"b", true),
            ("X", "0x0010", true),
            ("X", "0x11", false),
        ] {
            let (name, value) = (name.to_owned(), value.to_owned());
            let one = Wanted { name, value, origin: String::new() };
            assert_eq!(has(&config, &one), is, "{one:?}");
        }
    }
}
