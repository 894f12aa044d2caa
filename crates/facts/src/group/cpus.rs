//! CPUs: their states, purposes and topology.
//!
//! From `/sys/devices/system/cpu`: lists since 2.6.26, `smt` since 4.19, `isolated` and
//! `nohz_full` since 4.2, `housekeeping` since 7.0; caches (`shared_cpu_list` since 2.6.26); and from
//! `/proc/self/status`.
//!
//! The topology of a guest's CPUs may not be that of the host.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use units::{Cpu, CpuSet};

use crate::absence::Needs;
use crate::fact::{Fact, Unknown, Why, group};
use crate::group::tick;
use crate::sources::{RELEASE, Sources};
use crate::tree::root::Root;

/// Simultaneous multithreading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Smt {
    /// `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub control: String,
    /// Whether cores currently have several active threads.
    pub active: bool,
}

group! {
    /// CPUs.
    "cpus" Cpus {
        /// CPUs that can ever be present.
        possible: CpuSet,
        /// Present CPUs.
        present: CpuSet,
        /// Online CPUs.
        online: CpuSet,
        /// The affinity of this process.
        allowed: CpuSet,
        /// CPUs without load balancing (`isolcpus=`, isolated cpusets).
        isolated: CpuSet,
        /// Whether `isolcpus=` is supported.
        isolcpus: bool,
        /// Online CPUs for all other tasks of the kernel: neither isolated nor `nohz_full`.
        housekeeping: CpuSet,
        /// Simultaneous multithreading.
        smt: Smt,
        /// The CPUs of each core.
        cores: Vec<CpuSet>,
        /// The CPUs of each socket.
        packages: Vec<CpuSet>,
        /// The CPUs of each NUMA node.
        nodes: Vec<CpuSet>,
        /// The CPUs of each NUMA node that has memory.
        memory_nodes: Vec<CpuSet>,
        /// The CPUs that share each last-level cache.
        caches: Vec<CpuSet>,
    }
}

const DIR: &str = "/sys/devices/system/cpu";
const STATUS: &str = "/proc/self/status";
const CPU_ISOLATION: &str = "CPU_ISOLATION";
const CPUINFO: &str = "/proc/cpuinfo";
const NODES: &str = "/sys/devices/system/node";
const HAS_MEMORY: &str = "/sys/devices/system/node/has_memory";
/// More caches than a CPU has: one for data and one for instructions, at four levels.
const CACHES_MAX: u32 = 8;
/// The CPUs in isolated cpusets (since 6.8), by mount point of the v2 hierarchy.
const CPUSETS_ISOLATED: [&str; 2] = [
    "/sys/fs/cgroup/cpuset.cpus.isolated",
    "/sys/fs/cgroup/unified/cpuset.cpus.isolated",
];

impl Cpus {
    pub(crate) fn read(sources: &Sources) -> Self {
        let online = online(sources);
        let isolated = isolated(sources);
        let siblings = |names: &[&str]| siblings(sources, &online, names);
        let listed = |name: &str| {
            let list = sources.cpus(&format!("{DIR}/{name}"));
            sources.explain(&list, &Needs::since("2.6.26"))
        };
        Self {
            possible: listed("possible"),
            present: listed("present"),
            allowed: allowed(sources),
            housekeeping: housekeeping(sources, &online, &isolated),
            isolcpus: isolcpus(sources),
            smt: smt(sources),
            cores: siblings(&["thread_siblings_list", "thread_siblings"]),
            packages: siblings(&[
                "package_cpus_list",
                "core_siblings_list",
                "core_siblings",
            ]),
            nodes: nodes(sources),
            memory_nodes: memory_nodes(sources),
            caches: caches(sources, &online),
            online,
            isolated,
        }
    }
}

/// The online CPUs; on kernels before 2.6.26, which do not list them in `/sys`, from
/// `/proc/cpuinfo`.
pub(crate) fn online(sources: &Sources) -> Fact<CpuSet> {
    let listed = sources.cpus(&format!("{DIR}/online"));
    match listed.value() {
        Err(unknown) if unknown.code == Why::Absent => {}
        _ => return listed,
    }
    match sources.root.text(CPUINFO) {
        Err(_) => listed,
        Ok(text) => Fact::of(processors(&text), CPUINFO),
    }
}

/// The CPUs in `/proc/cpuinfo`.
fn processors(text: &str) -> Result<CpuSet, Unknown> {
    let mut cpus = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some((name, value)) = line.split_once(':') else { continue };
        // arm before 3.8 also has a line "Processor" with the model's name.
        if name.trim() == "processor" {
            let garbage =
                |_| Unknown::garbage(CPUINFO, number + 1, line, "a CPU's number");
            cpus.push(value.trim().parse::<Cpu>().map_err(garbage)?);
        }
    }
    if cpus.is_empty() {
        let text = format!("{CPUINFO} describes no CPU");
        return Err(Unknown::new(Why::Absent, text));
    }
    Ok(cpus.into_iter().collect())
}

/// The affinity of this process; kernels before 2.6.26 have only a mask.
fn allowed(sources: &Sources) -> Fact<CpuSet> {
    let read = sources.root.text(STATUS).and_then(|text| {
        let find = |name: &str| {
            let mut lines = text.lines().enumerate();
            lines.find_map(|(at, line)| Some((at + 1, line.strip_prefix(name)?)))
        };
        let (found, set): (_, fn(&str) -> _) = match find("Cpus_allowed_list:") {
            Some(found) => (Some(found), |text| text.parse::<CpuSet>()),
            None => (find("Cpus_allowed:"), CpuSet::from_mask),
        };
        let (line, list) = found.ok_or_else(|| {
            Unknown::new(Why::Absent, format!("{STATUS} has no line Cpus_allowed"))
        })?;
        set(list).map_err(|_| Unknown::garbage(STATUS, line, list, "a list of CPUs"))
    });
    Fact::of(read, format!("{STATUS} Cpus_allowed_list"))
}

/// The CPUs that were isolated at boot, and those in isolated cpusets if these are known.
fn isolated(sources: &Sources) -> Fact<CpuSet> {
    let boot = sources.cpus(&format!("{DIR}/isolated"));
    let Some(cpus) = boot.get() else {
        return sources.explain(&boot, &Needs::since("4.2"));
    };
    for file in CPUSETS_ISOLATED {
        let cpusets = sources.cpus(file);
        if let Some(more) = cpusets.get() {
            let all = cpus.iter().chain(more.iter()).collect();
            return Fact::known(all, format!("{}, {file}", boot.source()));
        }
    }
    boot
}

/// Whether CPUs can be isolated at boot; before 4.15 this was not an option of the kernel.
fn isolcpus(sources: &Sources) -> Fact<bool> {
    if sources.at_least(4, 15) == Some(false) {
        return Fact::known(true, RELEASE);
    }
    let built = sources.config.as_ref().map(|config| config.is_set(CPU_ISOLATION));
    Fact::of(built.map_err(Clone::clone), sources.option_source(CPU_ISOLATION))
}

/// The online CPUs that are neither isolated nor `nohz_full`. The kernel's own list (since 7.0)
/// considers only `nohz_full`, and is empty without such CPUs.
fn housekeeping(
    sources: &Sources,
    online: &Fact<CpuSet>,
    isolated: &Fact<CpuSet>,
) -> Fact<CpuSet> {
    let nohz_full = tick::nohz_full(sources);
    let own = sources.cpus(&format!("{DIR}/housekeeping"));
    let listed = own.get().filter(|cpus| !cpus.is_empty());
    let source = match listed {
        Some(_) => format!("{}, {}", own.source(), isolated.source()),
        None => {
            let others = [isolated.source(), nohz_full.source()].join(", ");
            format!("{} without {others}", online.source())
        }
    };
    let read = || {
        let online = online.value().map_err(Clone::clone)?;
        let isolated = isolated.value().map_err(Clone::clone)?;
        let rest = online.without(isolated);
        match (listed, nohz_full.value()) {
            (Some(listed), _) => Ok(rest.and(listed)),
            (None, Ok(nohz_full)) => Ok(rest.without(nohz_full)),
            (None, Err(unknown)) => {
                let has_none = matches!(unknown.code, Why::NotConfigured | Why::TooOld);
                if has_none { Ok(rest) } else { Err(unknown.clone()) }
            }
        }
    };
    Fact::of(read(), source)
}

fn smt(sources: &Sources) -> Fact<Smt> {
    let source = format!("{DIR}/smt");
    let control = sources.word(&format!("{source}/control"));
    let active = sources.number::<u8>(&format!("{source}/active"));
    let needs = Needs::since("4.19");
    let read = || {
        let control = control.value().map_err(|unknown| sources.why(unknown, &needs))?;
        let active = *active.value().map_err(Clone::clone)?;
        Ok(Smt { control: control.clone(), active: active != 0 })
    };
    Fact::of(read(), source)
}

/// The sets of CPUs that share a resource, from the first of the files `names` that exists. Only
/// one CPU of each set is read.
fn siblings(
    sources: &Sources,
    online: &Fact<CpuSet>,
    names: &[&str],
) -> Fact<Vec<CpuSet>> {
    let source = |name: &str| format!("{DIR}/cpu*/topology/{name}");
    let first = names.first().copied().unwrap_or_default();
    let online = match online.value() {
        Ok(online) => online,
        Err(unknown) => return Fact::unknown(unknown.clone(), source(first)),
    };
    let mut absent = None;
    for name in names {
        match sets(sources, online, name) {
            Err(unknown) if unknown.code == Why::Absent => {
                absent = absent.or(Some(unknown));
            }
            found => return Fact::of(found, source(name)),
        }
    }
    let none = || Unknown::new(Why::Absent, "no CPU is online");
    Fact::unknown(absent.unwrap_or_else(none), source(first))
}

fn sets(sources: &Sources, online: &CpuSet, name: &str) -> Result<Vec<CpuSet>, Unknown> {
    let mut sets = Vec::new();
    let mut seen = BTreeSet::new();
    for cpu in online.iter() {
        if seen.contains(&cpu) {
            continue;
        }
        let file = format!("{DIR}/cpu{cpu}/topology/{name}");
        let set = if name.ends_with("_list") {
            sources.cpus(&file).value().cloned().map_err(Clone::clone)?
        } else {
            sources.mask(&file)?
        };
        seen.extend(set.iter());
        sets.push(set);
    }
    Ok(sets)
}

fn nodes(sources: &Sources) -> Fact<Vec<CpuSet>> {
    let read = || {
        let names = sources.root.list(NODES);
        let names =
            names.map_err(|unknown| sources.why(&unknown, &Needs::options(&["NUMA"])))?;
        let number = |name: &String| name.strip_prefix("node")?.parse::<u32>().ok();
        let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| cpus_of_node(sources.root, number)).collect()
    };
    Fact::of(read(), format!("{NODES}/node*/cpulist"))
}

/// The CPUs of a NUMA node.
pub(crate) fn cpus_of_node(root: &Root, number: u32) -> Result<CpuSet, Unknown> {
    let list = format!("{NODES}/node{number}/cpulist");
    match root.parsed(&list, "a list of CPUs") {
        // Before 2.6.26, only the mask exists.
        Err(unknown) if unknown.code == Why::Absent => {
            root.mask(&format!("{NODES}/node{number}/cpumap"))
        }
        read => read,
    }
}

/// A node without CPUs, or without memory, is none of these.
fn memory_nodes(sources: &Sources) -> Fact<Vec<CpuSet>> {
    // The list of nodes has the format of a list of CPUs.
    let numbers = sources.cpus(HAS_MEMORY);
    let read = || {
        let numbers = numbers.value().map_err(|unknown| {
            sources.why(unknown, &Needs::since("2.6.24").with(&["NUMA"]))
        })?;
        let sets = numbers.iter().map(|node| cpus_of_node(sources.root, node.get()));
        let sets: Vec<CpuSet> = sets.collect::<Result<_, _>>()?;
        Ok(sets.into_iter().filter(|set| !set.is_empty()).collect())
    };
    Fact::of(read(), format!("{HAS_MEMORY}, {NODES}/node*/cpulist"))
}

/// The CPUs that share a last-level cache: the one with the highest index, of which only the files of
/// one CPU of each set are read. Some cores have fewer levels than others (the low-power cores of hybrid
/// processors), so the index is found for each set.
fn caches(sources: &Sources, online: &Fact<CpuSet>) -> Fact<Vec<CpuSet>> {
    let source = format!("{DIR}/cpu*/cache/index*/shared_cpu_list");
    let read = || {
        let online = online.value().map_err(Clone::clone)?;
        let (mut sets, mut seen) = (Vec::new(), BTreeSet::new());
        for cpu in online.iter() {
            if !seen.contains(&cpu) {
                let set = last_level(sources, cpu)?;
                seen.extend(set.iter().chain([cpu]));
                sets.push(set);
            }
        }
        Ok(sets)
    };
    Fact::of(read(), source)
}

fn last_level(sources: &Sources, cpu: Cpu) -> Result<CpuSet, Unknown> {
    let mut last = None;
    for index in 0..CACHES_MAX {
        let file = format!("{DIR}/cpu{cpu}/cache/index{index}/shared_cpu_list");
        match sources.root.parsed(&file, "a list of CPUs") {
            Ok(cpus) => last = Some(cpus),
            Err(unknown) if unknown.code != Why::Absent => return Err(unknown),
            Err(_) if last.is_some() => break,
            // Some caches have no list of their CPUs: their index is left out.
            Err(_) => {}
        }
    }
    last.ok_or_else(|| {
        let text = format!("{DIR}/cpu{cpu}/cache does not describe its caches");
        Unknown::new(Why::Absent, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    /// Check that only lines of processors in `/proc/cpuinfo` are counted.
    #[test]
    fn counts_processors() {
        let text = "processor\t: 0\nmodel name\t: a processor : 7\n\nprocessor\t: 2\n";
        assert_eq!(processors(text), Ok([0, 2].map(Cpu::new).into_iter().collect()));
        assert_eq!(processors("Processor : ARMv7\n").unwrap_err().code, Why::Absent);
        let error = processors("\nprocessor : x\n").unwrap_err();
        assert!(error.text.starts_with("/proc/cpuinfo: line 2:"), "{error}");
    }

    fn on(files: &[(&str, &str)]) -> Cpus {
        let mut all = vec![("/proc/sys/kernel/osrelease", "6.8.0")];
        all.extend_from_slice(files);
        Cpus::read(&tree(&all).sources())
    }

    fn list(name: &str) -> String {
        format!("{DIR}/{name}")
    }

    /// Check that housekeeping CPUs are the online ones that are neither isolated nor `nohz_full`,
    /// with and without the kernel's own list.
    #[test]
    fn housekeeping_cpus() {
        let [online, isolated, own, full] =
            ["online", "isolated", "housekeeping", "nohz_full"].map(list);
        for (own_list, full_list, expected) in
            [("\n", "\n", "0-2"), ("0-1,3\n", "2\n", "0,1"), ("\n", "1\n", "0,2")]
        {
            let cpus = on(&[
                (&online, "0-3\n"),
                (&isolated, "3\n"),
                (&own, own_list),
                (&full, full_list),
            ]);
            assert_eq!(cpus.housekeeping.get().unwrap().to_string(), expected);
        }
        let unsure = on(&[(&online, "0-3\n"), (&isolated, "3\n")]);
        assert!(unsure.housekeeping.get().is_none());
    }

    /// Check when `isolcpus=` is supported: always in old kernels, else as configured, or unknown.
    #[test]
    fn support_of_isolcpus() {
        let on = |release, config: Option<&str>| {
            let file = format!("/boot/config-{release}");
            let mut files = vec![("/proc/sys/kernel/osrelease", release)];
            files.extend(config.map(|config| (file.as_str(), config)));
            Cpus::read(&tree(&files).sources()).isolcpus.get().copied()
        };
        assert_eq!(on("4.9.0", Some("CONFIG_SMP=y\n")), Some(true));
        assert_eq!(on("6.1.0", Some("CONFIG_CPU_ISOLATION=y\n")), Some(true));
        assert_eq!(on("6.1.0", Some("CONFIG_SMP=y\n")), Some(false));
        assert_eq!(on("6.1.0", None), None);
    }

    /// Check that CPUs of isolated cpusets are included if they can be read.
    #[test]
    fn isolated_cpusets() {
        let isolated = list("isolated");
        let cpus = on(&[(&isolated, "3\n"), (CPUSETS_ISOLATED[0], "1\n")]);
        assert_eq!(cpus.isolated.get().unwrap().to_string(), "1,3");
        assert!(cpus.isolated.source().contains("cpuset.cpus.isolated"));
        assert_eq!(on(&[(&isolated, "3\n")]).isolated.get().unwrap().to_string(), "3");
    }

    /// Check that only one CPU of each set is read.
    #[test]
    fn many_cpus() {
        let mut files = vec![(list("online"), "0-255\n".to_owned())];
        for cpu in 0..128 {
            let siblings = format!("{cpu},{}\n", cpu + 128);
            files.push((
                list(&format!("cpu{cpu}/topology/thread_siblings_list")),
                siblings,
            ));
        }
        for (cpu, package) in [(0, "0-63,128-191\n"), (64, "64-127,192-255\n")] {
            let file = list(&format!("cpu{cpu}/topology/package_cpus_list"));
            files.push((file, package.to_owned()));
        }
        let files: Vec<(&str, &str)> =
            files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
        let cpus = on(&files);
        assert_eq!(cpus.cores.get().map(Vec::len), Some(128));
        assert_eq!(cpus.packages.get().map(Vec::len), Some(2));
    }

    /// Check that the last level is found for each set, also on processors whose CPUs have different
    /// levels, and that a node without memory, and one without CPUs, is left out.
    #[test]
    fn caches_and_memory() {
        let cache = |cpu: u32, index: u32| {
            list(&format!("cpu{cpu}/cache/index{index}/shared_cpu_list"))
        };
        // CPUs 0 to 3 share the third level, 4 and 5 have two levels only.
        let mut files = vec![(list("online"), "0-5\n")];
        files.extend([
            (cache(0, 0), "0\n"),
            (cache(0, 1), "0\n"),
            (cache(0, 2), "0-1\n"),
        ]);
        files.extend([
            (cache(0, 3), "0-3\n"),
            (cache(4, 0), "4\n"),
            (cache(4, 2), "?\n"),
        ]);
        files.extend([(cache(4, 1), "4-5\n")]);
        let node = |name: &str| format!("{NODES}/{name}");
        files.extend([
            (node("has_memory"), "0,2-3\n"),
            (node("node0/cpulist"), "0-3\n"),
            (node("node1/cpulist"), "4-5\n"),
            (node("node2/cpulist"), "\n"),
            (node("node3/cpumap"), "30\n"),
        ]);
        let read = |files: &[(String, &str)]| {
            let files: Vec<_> =
                files.iter().map(|(path, text)| (&**path, *text)).collect();
            on(&files)
        };
        let texts = |fact: &Fact<Vec<CpuSet>>| {
            let sets = fact.value().map_err(|why| why.code).cloned();
            sets.map(|sets| sets.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(texts(&read(&files).caches), Err(Why::Garbage));
        files.retain(|(_, text)| *text != "?\n");
        let cpus = read(&files);
        assert_eq!(texts(&cpus.caches).unwrap(), ["0-3", "4,5"]);
        assert_eq!(texts(&cpus.memory_nodes).unwrap(), ["0-3", "4,5"]);
        let bare = read(&files[..1]);
        assert_eq!(texts(&bare.caches), Err(Why::Absent));
        assert!(texts(&bare.memory_nodes).is_err());
    }

    /// Check that an invalid list is reported with its file.
    #[test]
    fn invalid_lists() {
        let online = list("online");
        let cpus =
            on(&[(&online, "all\n"), (STATUS, "Name: x\nCpus_allowed_list:\t3-1\n")]);
        let text = |fact: &Fact<CpuSet>| fact.value().unwrap_err().text.clone();
        assert!(text(&cpus.online).starts_with(&format!("{online}: line 1: 'all'")));
        assert!(text(&cpus.allowed).starts_with("/proc/self/status: line 2:"));
    }
}
