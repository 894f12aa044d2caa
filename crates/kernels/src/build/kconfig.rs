//! The options of a kernel's tree, as far as messages need them: which exist, of which type, and
//! what they depend on.
//!
//! The syntax is described in the kernel's `Documentation/kbuild/kconfig-language.rst`. Only files
//! of x86 are read. Macros (`$(cc-option,...)`) are not evaluated: a dependency on one counts as
//! met. Kconfig itself decides the configuration.

mod expression;
mod reader;

use std::collections::HashMap;
use std::path::Path;

use facts::Config;

pub(crate) use expression::Expression;

/// The type of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Bool,
    Tristate,
    Int,
    Hex,
    Text,
}

/// An option.
#[derive(Debug, Clone, Default)]
pub(crate) struct Symbol {
    pub(crate) kind: Option<Type>,
    pub(crate) definitions: Vec<Definition>,
    /// The options that select it, each with its condition.
    selected_by: Vec<(String, Option<Expression>)>,
    /// The limits of its value.
    range: Option<String>,
}

/// One of the places where an option is defined.
#[derive(Debug, Clone, Default)]
pub(crate) struct Definition {
    /// Its own dependencies, and those of the menus around it.
    depends: Vec<Expression>,
    /// Whether a user can set it.
    has_prompt: bool,
    /// The condition of that.
    visible: Option<Expression>,
    /// The number of the choice that it belongs to.
    choice: Option<usize>,
}

/// All options of a tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kconfig {
    symbols: HashMap<String, Symbol>,
}

impl Kconfig {
    /// Reads the files of the tree; one that is missing is skipped, as its options are.
    pub(crate) fn read(tree: &Path) -> Self {
        let mut kconfig = Self { symbols: reader::read(tree, "Kconfig") };
        kconfig.symbols.retain(|_, symbol| symbol.kind.is_some());
        kconfig
    }

    pub(crate) fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.symbols.get(name)
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.symbols.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Why Kconfig gave an option another value than requested.
    pub(crate) fn explain(&self, name: &str, wanted: &str, config: &Config) -> String {
        let Some(symbol) = self.symbol(name) else {
            return "the kernel has no such option".to_owned();
        };
        if wanted == "n" {
            return symbol.explain_set(config);
        }
        if let Some(why) = symbol.explain_hidden(config) {
            return why;
        }
        if let Some(range) = &symbol.range {
            return format!("its range is {range}");
        }
        match symbol.definitions.iter().any(|definition| definition.choice.is_some()) {
            true => "another option of the same choice is set".to_owned(),
            false => match config.value(name) {
                Some(value) => format!("Kconfig made it {value}"),
                None => "Kconfig left it out".to_owned(),
            },
        }
    }
}

impl Symbol {
    /// Whether a user can set it.
    pub(crate) fn has_prompt(&self) -> bool {
        self.definitions.iter().any(|definition| definition.has_prompt)
    }

    /// The number of the choice that it belongs to.
    pub(crate) fn choice(&self) -> Option<usize> {
        self.definitions.iter().find_map(|definition| definition.choice)
    }

    /// The options in the conditions of its definitions and prompts.
    pub(crate) fn dependencies(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for definition in &self.definitions {
            for condition in definition.depends.iter().chain(&definition.visible) {
                condition.add_names(&mut names);
            }
        }
        names
    }

    /// The options that select it.
    pub(crate) fn selecting(&self) -> impl Iterator<Item = &str> {
        self.selected_by.iter().map(|(name, _)| name.as_str())
    }

    /// Why it is set although it should not be.
    fn explain_set(&self, config: &Config) -> String {
        let is_active = |(name, when): &&(String, Option<Expression>)| {
            config.is_set(name)
                && when.as_ref().is_none_or(|when| when.unmet(config).is_none())
        };
        let selecting: Vec<&str> = self
            .selected_by
            .iter()
            .filter(is_active)
            .map(|(name, _)| name.as_str())
            .collect();
        match selecting.as_slice() {
            [] if self
                .definitions
                .iter()
                .any(|definition| definition.choice.is_some()) =>
            {
                "one option of its choice is always set".to_owned()
            }
            [] if self.definitions.iter().all(|definition| !definition.has_prompt) => {
                "only Kconfig sets it".to_owned()
            }
            [] => "it cannot be turned off in this configuration".to_owned(),
            names => format!("it is selected by {}", names.join(", ")),
        }
    }

    /// Why it cannot be set: no definition has all of its dependencies.
    fn explain_hidden(&self, config: &Config) -> Option<String> {
        let prompts: Vec<&Definition> =
            self.definitions.iter().filter(|definition| definition.has_prompt).collect();
        if prompts.is_empty() {
            let mut names: Vec<&str> =
                self.selected_by.iter().map(|(name, _)| name.as_str()).collect();
            names.truncate(8);
            return Some(match names.as_slice() {
                [] => "only Kconfig sets it".to_owned(),
                _ => format!(
                    "only Kconfig sets it, for options that select it: {}",
                    names.join(", ")
                ),
            });
        }
        let unmet: Vec<String> = prompts
            .iter()
            .map(|definition| definition.unmet(config))
            .collect::<Option<_>>()?;
        Some(format!("it needs {}", unmet.join(", or ")))
    }
}

impl Definition {
    /// The dependencies that the configuration does not have, if there are any.
    fn unmet(&self, config: &Config) -> Option<String> {
        let all = self.depends.iter().chain(&self.visible);
        let mut unmet: Vec<String> = Vec::new();
        for why in all.filter_map(|one| one.unmet(config)) {
            if !unmet.contains(&why) {
                unmet.push(why);
            }
        }
        (!unmet.is_empty()).then(|| unmet.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TREE: &[(&str, &str)] = &[
        (
            "Kconfig",
            "mainmenu \"Linux\"\nsource \"init/Kconfig\"\nsource \"arch/$(SRCARCH)/Kconfig\"\n",
        ),
        (
            "init/Kconfig",
            "config EXPERT\n\tbool \"Expert\"\n\thelp\n\t  config NO_SUCH\n\n\t  More.\n\n\
             menu \"General\"\n\tdepends on NET\n\nmenuconfig AUDIT\n\tbool \"Auditing\" \
             if EXPERT\n\tdepends on PROC_FS && !TINY || \\\n\t\tSYSFS=y\n\tselect KTHREADS\n\
             endmenu\n\nconfig KTHREADS\n\tbool\n\nif EXPERT\nconfig LOG_SHIFT\n\
             \tint \"Size\"\n\trange 12 25\n\tdefault 17\nendif\n",
        ),
        (
            "arch/x86/Kconfig",
            "choice\n\tprompt \"Tick\"\nconfig ONE\n\tbool \"One\"\nconfig TWO\n\t\
             bool \"Two\"\n\tdepends on $(cc-option,-x)\nendchoice\n\nconfig NET\n\tdef_bool y\n",
        ),
    ];

    fn kconfig() -> Kconfig {
        let tree = tempfile::tempdir().unwrap();
        for (path, text) in TREE {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Kconfig::read(tree.path())
    }

    fn explain(name: &str, wanted: &str, config: &str) -> String {
        let config = Config::parse(config.as_bytes(), "c").unwrap();
        kconfig().explain(name, wanted, &config)
    }

    /// Check that all options are found, and those in help texts are not.
    #[test]
    fn finds_options() {
        let kconfig = kconfig();
        let names = ["AUDIT", "EXPERT", "KTHREADS", "LOG_SHIFT", "NET", "ONE", "TWO"];
        assert_eq!(kconfig.names(), names);
        assert_eq!(kconfig.symbol("LOG_SHIFT").unwrap().kind, Some(Type::Int));
    }

    /// Check that missing dependencies are named: an option's own, those of its menu and of its
    /// prompt.
    #[test]
    fn explains() {
        let why = explain("AUDIT", "y", "CONFIG_TINY=y\n");
        assert_eq!(
            why,
            "it needs NET=y and PROC_FS=y and TINY=n, or SYSFS=y and EXPERT=y"
        );
        let why = explain("AUDIT", "y", "CONFIG_NET=y\nCONFIG_SYSFS=y\n");
        assert_eq!(why, "it needs EXPERT=y");
        let why = explain("KTHREADS", "n", "CONFIG_AUDIT=y\n");
        assert_eq!(why, "it is selected by AUDIT");
        let why = explain("KTHREADS", "y", "CONFIG_X=y\n");
        assert_eq!(why, "only Kconfig sets it, for options that select it: AUDIT");
        assert_eq!(explain("LOG_SHIFT", "99", "CONFIG_EXPERT=y\n"), "its range is 12 25");
        let other = "another option of the same choice is set";
        assert_eq!(explain("TWO", "y", "CONFIG_ONE=y\n"), other);
    }
}
