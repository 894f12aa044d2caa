//! Pressure stall information: of the machine, and of the cgroup of this process.
//!
//! From `/proc/pressure`, and from the cgroup's directory in the v2 hierarchy, also if that has no
//! controllers. cgroup v1 has none. Inside a container, the values of the machine are those of the host.

use crate::absence::Needs;
use crate::fact::{Fact, Unknown, Why, group};
use crate::format::hierarchy::Hierarchy;
use crate::format::mounts::Mounts;
use crate::format::pressure::Stalls;
use crate::sources::Sources;

/// The folder of the machine's.
const MACHINE: &str = "/proc/pressure";
/// The resources.
const RESOURCES: [&str; 3] = ["cpu", "memory", "io"];

group! {
    /// Pressure stall information.
    "pressure" Pressure {
        /// How much of the time tasks of the machine waited for CPU time.
        cpu: Stalls,
        /// The same for memory.
        memory: Stalls,
        /// The same for IO.
        io: Stalls,
        /// How much of the time tasks of this process's cgroup waited for CPU time.
        cgroup_cpu: Stalls,
        /// The same for memory.
        cgroup_memory: Stalls,
        /// The same for IO.
        cgroup_io: Stalls,
    }
}

impl Pressure {
    pub(crate) fn read(sources: &Sources) -> Self {
        let [cpu, memory, io] =
            RESOURCES.map(|name| read(sources, &format!("{MACHINE}/{name}")));
        let directory = cgroup(sources);
        let of_cgroup = |name: &str| match &directory {
            Ok(directory) => read(sources, &format!("{directory}/{name}.pressure")),
            Err(why) => Fact::unknown(why.clone(), format!("{name}.pressure")),
        };
        let [cgroup_cpu, cgroup_memory, cgroup_io] = RESOURCES.map(of_cgroup);
        Self { cpu, memory, io, cgroup_cpu, cgroup_memory, cgroup_io }
    }
}

fn read(sources: &Sources, file: &str) -> Fact<Stalls> {
    let found = sources.root.text(file).map_err(|why| sources.why(&why, &NEEDS));
    let found = found.map_err(|why| disabled(sources, why));
    Fact::of(found.and_then(|text| Stalls::parse(&text, file)), file)
}

const NEEDS: Needs = Needs::since("4.20").with(&["PSI"]);

/// A kernel with PSI of which the files do not exist or cannot be read has switched it off.
fn disabled(sources: &Sources, why: Unknown) -> Unknown {
    let is_switched_off = matches!(why.code, Why::Absent | Why::NotExported);
    match is_switched_off && sources.is_set("PSI_DEFAULT_DISABLED") == Some(true) {
        true => {
            let text = "the kernel is built with CONFIG_PSI_DEFAULT_DISABLED: it takes psi=1 \
                        on its command line";
            Unknown::new(Why::NotConfigured, text)
        }
        false => why,
    }
}

/// The directory of this process's cgroup in the v2 hierarchy.
fn cgroup(sources: &Sources) -> Result<String, Unknown> {
    let mounts = Mounts::read(sources.root)?;
    let hierarchy = Hierarchy::unified(sources.root, &mounts)?;
    let directory = hierarchy.and_then(|found| found.directories.into_iter().next());
    directory.ok_or_else(|| {
        let text = "no cgroup v2 hierarchy is mounted, and cgroup v1 has no pressure";
        Unknown::new(Why::NotApplicable, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::hierarchy::GROUPS;
    use crate::format::mounts;
    use crate::sources::RELEASE;
    use crate::test_tree::tree;

    const LINES: &str = "some avg10=1.00 avg60=2.00 avg300=3.00 total=4\n";

    fn read(files: &[(&str, &str)]) -> Pressure {
        Pressure::read(&tree(files).sources())
    }

    fn code(fact: &Fact<Stalls>) -> Why {
        fact.value().unwrap_err().code
    }

    /// Check the machine's, and those of a cgroup in v2 and in a hybrid layout, in which the v2 hierarchy
    /// has its own cgroups.
    #[test]
    fn machine_and_cgroup() {
        let v2 = read(&[
            (mounts::FILE, "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
            (GROUPS, "0::/a.slice\n"),
            ("/proc/pressure/io", LINES),
            ("/sys/fs/cgroup/a.slice/cpu.pressure", LINES),
        ]);
        assert_eq!(v2.io.get().unwrap().some.total_us, 4);
        assert_eq!(v2.cgroup_cpu.get().unwrap().some.avg60.to_string(), "2");
        assert_eq!(v2.cgroup_cpu.source(), "/sys/fs/cgroup/a.slice/cpu.pressure");
        assert_eq!([code(&v2.cpu), code(&v2.cgroup_io)], [Why::Absent; 2]);
        let hybrid = read(&[
            (
                mounts::FILE,
                "cgroup /cg/cpu cgroup rw,cpu 0 0\ncgroup2 /cg/unified cgroup2 rw 0 0\n",
            ),
            (GROUPS, "1:cpu:/job\n0::/b.slice\n"),
            ("/cg/unified/b.slice/memory.pressure", LINES),
        ]);
        let source = "/cg/unified/b.slice/memory.pressure";
        assert_eq!(hybrid.cgroup_memory.source(), source);
        assert!(hybrid.cgroup_memory.get().is_some());
    }

    /// Check that v1, an old kernel and one with PSI switched off have their reasons.
    #[test]
    fn absent() {
        let v1 = read(&[
            (mounts::FILE, "cgroup /cg/cpu cgroup rw,cpu 0 0\n"),
            (GROUPS, "1:cpu:/job\n"),
            (RELEASE, "4.19.0\n"),
        ]);
        assert_eq!(code(&v1.cgroup_cpu), Why::NotApplicable);
        assert_eq!(code(&v1.cpu), Why::TooOld);
        let off = read(&[
            (RELEASE, "6.1.0\n"),
            ("/boot/config-6.1.0", "CONFIG_PSI=y\nCONFIG_PSI_DEFAULT_DISABLED=y\n"),
        ]);
        assert_eq!(code(&off.memory), Why::NotConfigured);
    }
}
