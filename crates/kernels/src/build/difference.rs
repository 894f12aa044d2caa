//! The differences of two configurations of a tree, and the configurations between them.
//!
//! Options that only Kconfig sets are left out: they follow from others. All options of a choice are
//! one difference, and so are `HZ` and its choice. What is turned off comes first, dependent options
//! before what they depend on; what is turned on comes last, in the reverse order. So most
//! configurations with the first differences are those that Kconfig accepts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::build::base::option_name;
use crate::build::kconfig::Kconfig;
use crate::build_option::is_offered_hz;

/// The frequency of the tick, which follows from a choice, or is set in a copy of Kconfig.
const HZ: &str = "HZ";
/// The prefix of the options of that choice.
const HZ_OPTIONS: &str = "HZ_";

/// An option with two values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionDifference {
    /// Its name, without `CONFIG_`.
    pub name: String,
    /// Its value in the first configuration, as in the file: `y`, `n`, a number, a quoted text.
    pub from: String,
    /// Its value in the second.
    pub to: String,
}

/// The differences of two configurations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigDifference {
    from: Values,
    to: Values,
    groups: Vec<Vec<OptionDifference>>,
    /// Options that follow from others.
    derived: Vec<String>,
}

impl ConfigDifference {
    /// The differences of two complete configurations of that tree.
    pub(crate) fn of(from: &str, to: &str, kconfig: &Kconfig) -> Self {
        let [from, to] = [from, to].map(values);
        let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
        let differing =
            names.into_iter().filter(|name| value(&from, name) != value(&to, name));
        let is_other_hz = [&from, &to].iter().any(|config| {
            let hz = config.get(HZ).and_then(|hz| hz.parse().ok());
            hz.is_some_and(|hz| !is_offered_hz(hz))
        });
        let (own, derived): (Vec<&String>, Vec<&String>) =
            differing.partition(|name| match name.as_str() {
                HZ => is_other_hz,
                name => kconfig.symbol(name).is_some_and(|symbol| symbol.has_prompt()),
            });
        let mut groups: BTreeMap<String, Vec<OptionDifference>> = BTreeMap::new();
        for name in own {
            let difference = OptionDifference {
                name: name.clone(),
                from: value(&from, name).to_owned(),
                to: value(&to, name).to_owned(),
            };
            groups.entry(group(name, kconfig)).or_default().push(difference);
        }
        let groups = ordered(groups.into_values().collect(), kconfig);
        let derived = derived.into_iter().cloned().collect();
        Self { from, to, groups, derived }
    }

    /// The differences: each of one option, or of options that can only change together.
    pub fn groups(&self) -> &[Vec<OptionDifference>] {
        &self.groups
    }

    /// The number of further options that differ because of them.
    pub fn derived(&self) -> usize {
        self.derived.len()
    }

    /// The lines for Kconfig of the first configuration with these differences made.
    pub(crate) fn with(&self, made: &[usize]) -> String {
        let of_second: Vec<&str> = made
            .iter()
            .filter_map(|index| self.groups.get(*index))
            .flatten()
            .map(|one| one.name.as_str())
            .collect();
        let differing: Vec<&str> =
            self.groups.iter().flatten().map(|one| one.name.as_str()).collect();
        let names = self
            .from
            .keys()
            .chain(self.to.keys())
            .filter(|name| !self.derived.contains(name));
        let names: BTreeSet<&String> = names.collect();
        let mut text = String::new();
        for name in names {
            let [own, other] = match of_second.contains(&name.as_str()) {
                true => [&self.to, &self.from],
                false => [&self.from, &self.to],
            }
            .map(|config| config.get(name).map(String::as_str));
            let own = match (own, other) {
                // Equal values, of which one is not visible.
                (None, other) if !differing.contains(&name.as_str()) => other,
                // Without it, Kconfig takes the option's default.
                (None, Some("y")) => Some("n"),
                (own, _) => own,
            };
            match own {
                Some("n") => text += &format!("# CONFIG_{name} is not set\n"),
                Some(value) => text += &format!("CONFIG_{name}={value}\n"),
                None => {}
            }
        }
        text
    }
}

/// The frequency of the tick in lines of a configuration, if Kconfig does not offer it.
pub(crate) fn other_hz(text: &str) -> Option<u32> {
    let hz = values(text).get(HZ)?.parse().ok()?;
    (!is_offered_hz(hz)).then_some(hz)
}

/// The values of a configuration's options, as in the file.
pub(crate) type Values = BTreeMap<String, String>;

/// The values of a configuration's options.
pub(crate) fn values(text: &str) -> Values {
    let value = |line: &str| {
        let name = option_name(line)?.to_owned();
        let value = line.split_once('=').map_or("n", |(_, value)| value.trim());
        Some((name, value.to_owned()))
    };
    text.lines().filter_map(value).collect()
}

/// A value; options that are not visible are off.
pub(crate) fn value<'a>(config: &'a Values, name: &str) -> &'a str {
    config.get(name).map_or("n", String::as_str)
}

/// Whether it is the frequency of the tick, or an option of its choice.
pub(crate) fn is_hz(name: &str) -> bool {
    let number = name.strip_prefix(HZ_OPTIONS).map(str::parse::<u32>);
    name == HZ || matches!(number, Some(Ok(_)))
}

/// What names the options that change with this one.
pub(crate) fn group(name: &str, kconfig: &Kconfig) -> String {
    if is_hz(name) {
        return HZ.to_owned();
    }
    match kconfig.symbol(name).and_then(|symbol| symbol.choice()) {
        Some(choice) => format!("choice {choice}"),
        None => name.to_owned(),
    }
}

/// Whether a group is turned off, changed or turned on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Off,
    Changed,
    On,
}

fn direction(group: &[OptionDifference]) -> Direction {
    let is_off = group.iter().any(|one| one.to == "n");
    let is_on = group.iter().any(|one| one.from == "n");
    match (is_off, is_on) {
        (true, false) => Direction::Off,
        (false, true) => Direction::On,
        (true, true) | (false, false) => Direction::Changed,
    }
}

/// The groups in the order in which they are made.
fn ordered(
    groups: Vec<Vec<OptionDifference>>,
    kconfig: &Kconfig,
) -> Vec<Vec<OptionDifference>> {
    let group_of: HashMap<&str, usize> = groups
        .iter()
        .enumerate()
        .flat_map(|(index, group)| {
            group.iter().map(move |one| (one.name.as_str(), index))
        })
        .collect();
    let mut needs: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
    for (index, group) in groups.iter().enumerate() {
        for symbol in group.iter().filter_map(|one| kconfig.symbol(&one.name)) {
            let depends = symbol.dependencies();
            needs[index].extend(depends.iter().filter_map(|name| group_of.get(*name)));
            // An option is needed by those that select it.
            for other in symbol.selecting().filter_map(|name| group_of.get(name)) {
                needs[*other].push(index);
            }
        }
    }
    let key = |index: usize| {
        let direction = direction(&groups[index]);
        let depth = i64::try_from(depth(index, &needs, &mut Vec::new())).unwrap_or(0);
        let rank = if direction == Direction::Off { -depth } else { depth };
        (direction, rank, groups[index].first().map(|one| one.name.clone()))
    };
    let mut keys: Vec<_> = (0..groups.len()).map(|index| (key(index), index)).collect();
    keys.sort();
    keys.into_iter().map(|(_, index)| groups[index].clone()).collect()
}

/// The length of the longest chain of what a group needs; circles are cut.
fn depth(index: usize, needs: &[Vec<usize>], above: &mut Vec<usize>) -> usize {
    /// Deeper chains only make the order worse.
    const DEPTH_MAX: usize = 12;
    if above.contains(&index) || above.len() > DEPTH_MAX {
        return 0;
    }
    above.push(index);
    let deepest = needs[index].iter().map(|needed| depth(*needed, needs, above)).max();
    above.pop();
    deepest.map_or(0, |depth| depth + 1)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const KCONFIG: &str = "mainmenu \"x\"\nconfig NET\n\tbool \"Net\"\nconfig AUDIT\n\
         \tbool \"Audit\"\n\tdepends on NET\n\tselect HASH\nconfig HASH\n\tbool \"Hash\"\n\
         config AUDITSYSCALL\n\tdef_bool AUDIT\nchoice\n\tprompt \"P\"\nconfig NONE\n\
         \tbool \"None\"\nconfig FULL\n\tbool \"Full\"\nendchoice\nchoice\n\tprompt \"Hz\"\n\
         config HZ_100\n\tbool \"100\"\nconfig HZ_250\n\tbool \"250\"\nendchoice\n\
         config HZ\n\tint\nconfig SHIFT\n\tint \"Shift\"\n\tdepends on NET\n";

    fn difference(from: &str, to: &str) -> ConfigDifference {
        let tree = tempfile::tempdir().unwrap();
        fs::write(tree.path().join("Kconfig"), KCONFIG).unwrap();
        ConfigDifference::of(from, to, &Kconfig::read(tree.path()))
    }

    fn names(difference: &ConfigDifference) -> Vec<String> {
        let group = |group: &Vec<OptionDifference>| {
            group.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(" ")
        };
        difference.groups().iter().map(group).collect()
    }

    const OFF: &str = "# CONFIG_NET is not set\nCONFIG_NONE=y\n# CONFIG_FULL is not set\n\
         CONFIG_HZ_250=y\nCONFIG_HZ=250\n# CONFIG_HASH is not set\n";
    const ON: &str = "CONFIG_NET=y\nCONFIG_AUDIT=y\nCONFIG_AUDITSYSCALL=y\nCONFIG_FULL=y\n\
         # CONFIG_NONE is not set\nCONFIG_HZ_100=y\nCONFIG_HZ=100\nCONFIG_HASH=y\n\
         CONFIG_SHIFT=7\n";

    /// Check that choices are one difference, that derived options are none, and the order: what others
    /// need is turned on first, and off last.
    #[test]
    fn groups() {
        let on = difference(OFF, ON);
        assert_eq!(
            names(&on),
            ["FULL NONE", "HZ_100 HZ_250", "HASH", "NET", "AUDIT", "SHIFT"]
        );
        assert_eq!(on.derived(), 2);
        let off = difference(ON, OFF);
        assert_eq!(
            names(&off),
            ["AUDIT", "SHIFT", "HASH", "NET", "FULL NONE", "HZ_100 HZ_250"]
        );
        assert_eq!(difference(ON, ON).groups(), [[]; 0]);
    }

    /// Check the lines of configurations between: an option that is not visible in the first one stays
    /// off, whatever its default, and options that follow from others have no line.
    #[test]
    fn between() {
        let on = difference(OFF, ON);
        let expected = "# CONFIG_AUDIT is not set\n# CONFIG_FULL is not set\n\
             # CONFIG_HASH is not set\nCONFIG_HZ_100=y\n# CONFIG_HZ_250 is not set\n\
             CONFIG_NET=y\nCONFIG_NONE=y\n";
        assert_eq!(on.with(&[1, 3]), expected);
        let all = on.with(&[0, 1, 2, 3, 4, 5]);
        for line in ON.lines().filter(|line| {
            !line.contains("AUDITSYSCALL") && !line.starts_with("CONFIG_HZ=")
        }) {
            assert!(all.contains(&format!("{line}\n")), "{line}: {all}");
        }
    }

    /// Check that a frequency of the tick that Kconfig does not offer is a difference, and is found in
    /// the lines between.
    #[test]
    fn other_frequencies() {
        let slow = ON.replace("CONFIG_HZ=100", "CONFIG_HZ=40");
        let difference = difference(ON, &slow);
        assert_eq!(names(&difference), ["HZ"]);
        assert_eq!(other_hz(&difference.with(&[0])), Some(40));
        assert_eq!(other_hz(&difference.with(&[])), None);
    }
}
