//! The order in which kernels are built in one folder, so that few objects are made again.
//!
//! Kbuild makes an object again when an option that its sources mention has another value. It notes
//! these options beside the object (`scripts/basic/fixdep.c` of the kernel): as
//! `include/config/NO_HZ`, before 5.14 as `include/config/no/hz.h`.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::Path;

use crate::build::difference::{Values, value, values};

/// The end of the names of files with notes on an object.
const NOTES: &str = ".o.cmd";
/// The configuration of the objects, without options that are off.
const BUILT: &str = "include/config/auto.conf";
/// What precedes the name of an option in notes.
const MENTION: &str = "$(wildcard include/config/";

/// The objects in a folder.
pub(crate) struct Objects {
    /// The configuration with which they were made.
    built: Values,
    /// The objects whose sources mention an option.
    mentioning: HashMap<String, Vec<usize>>,
}

impl Objects {
    /// Reads Kbuild's notes in a folder.
    ///
    /// # Errors
    /// Nothing was built in it, or it cannot be read.
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        let built = values(&fs::read_to_string(folder.join(BUILT))?);
        let mut mentioning: HashMap<String, Vec<usize>> = HashMap::new();
        for (object, notes) in notes(folder)?.iter().enumerate() {
            for name in notes.lines().filter_map(mentioned) {
                mentioning.entry(name).or_default().push(object);
            }
        }
        Ok(Self { built, mentioning })
    }

    /// The order of builds with these configurations in which the next one is always that which makes
    /// the fewest objects again.
    pub(crate) fn sequence(&self, configurations: &[Values]) -> Vec<usize> {
        let mut rest: Vec<usize> = (0..configurations.len()).collect();
        let mut order = Vec::new();
        let mut last = &self.built;
        let made = |last, next: usize| self.made_again(last, &configurations[next]);
        while let Some(at) = (0..rest.len()).min_by_key(|at| made(last, rest[*at])) {
            let next = rest.remove(at);
            last = &configurations[next];
            order.push(next);
        }
        order
    }

    /// How many objects of one configuration are made again for another.
    fn made_again(&self, from: &Values, to: &Values) -> usize {
        let differing = from
            .keys()
            .chain(to.keys())
            .filter(|name| value(from, name) != value(to, name));
        let objects = differing.filter_map(|name| self.mentioning.get(name)).flatten();
        objects.collect::<BTreeSet<&usize>>().len()
    }
}

/// The option that a line of notes mentions.
fn mentioned(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(MENTION)?;
    let name = rest.split_once(')')?.0;
    Some(name.trim_end_matches(".h").replace('/', "_").to_uppercase())
}

/// The notes on all objects in a folder.
fn notes(folder: &Path) -> io::Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Links are not followed: one leads to the source.
        if entry.file_type()?.is_dir() {
            all.extend(notes(&entry.path())?);
        } else if entry.file_name().to_string_lossy().ends_with(NOTES) {
            all.push(fs::read_to_string(entry.path())?);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that builds which make few objects again come first, and equal ones in their order.
    #[test]
    fn few_objects_first() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert!(Objects::read(folder.path()).is_err());
        write(BUILT, "CONFIG_SMP=y\nCONFIG_HZ=250\n");
        let source = "source_a.o := a.c\n\ndeps_a.o := \\\n";
        let old = "    $(wildcard include/config/no/hz.h) \\\n";
        let wide = "    $(wildcard include/config/SMP) \\\n  include/linux/smp.h \\\n";
        write("kernel/.a.o.cmd", &format!("{source}{wide}{old}"));
        write("kernel/.b.o.cmd", &format!("{source}{wide}"));
        write("kernel/.c.s.cmd", &format!("{source}    $(wildcard include/config/HZ)\n"));
        let objects = Objects::read(folder.path()).unwrap();
        let all =
            ["HZ=250", "SMP=y\nNO_HZ=y\nHZ=250", "SMP=y\nHZ=1000", "SMP=y\nNO_HZ=y"].map(
                |text| values(&format!("CONFIG_{}\n", text.replace('\n', "\nCONFIG_"))),
            );
        let counts =
            [0, 1, 2, 3].map(|one| objects.made_again(&objects.built, &all[one]));
        assert_eq!(counts, [2, 1, 0, 1]);
        assert_eq!(objects.sequence(&all), [2, 1, 3, 0]);
    }
}
