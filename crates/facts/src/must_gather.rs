//! A node of an OpenShift cluster, from a directory that `oc adm must-gather` has made.
//!
//! ```text
//! IMAGE/nodes/NODE/sysinfo.tgz    some files of /proc and /sys, at their own paths
//! IMAGE/nodes/NODE/proc_cmdline   the boot parameters
//! IMAGE/nodes/NODE/dmesg          the kernel's messages
//! IMAGE/cluster-scoped-resources/core/nodes/NODE.yaml   the node's resource: the kernel's release
//! ```
//!
//! That is the layout of `collection-scripts/gather_ppc_single_node` in openshift/must-gather, as of
//! 2026, where the paths below `IMAGE` are those of the performance profile's images since OpenShift 4.6.
//! Files that it does not collect may have existed on the node.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use units::{CpuSet, printable};

use crate::error::{Error, Kind};
use crate::format::{command_line, kernel_log};
use crate::sources::RELEASE;
use crate::tree::Tree;
use crate::tree::root::Root;

/// The packed files: a directory with them is a node.
const PACKED: &str = "sysinfo.tgz";
/// The directory of all nodes.
const NODES: &str = "nodes";
/// Several times the size of all files of a node with hundreds of CPUs.
const BYTES_MAX: u64 = 64 << 20;
/// So deep are the nodes in what the command makes: `must-gather.local.*/IMAGE/nodes`.
const DEPTH: usize = 2;
/// Nodes that a message names.
const NAMED_MAX: usize = 8;

/// The file with the online CPUs, which is not packed.
const ONLINE: &str = "/sys/devices/system/cpu/online";
const OFFLINE: &str = "/sys/devices/system/cpu/offline";
const CPUS: &str = "/sys/devices/system/cpu/cpu";

/// Files by their paths on the node.
type Files = BTreeMap<String, Vec<u8>>;

impl Root {
    /// A tree, or the node in a must-gather.
    ///
    /// # Errors
    /// `Kind::Tree`: those of [`Root::tree`]; it is a must-gather of several nodes.
    pub fn directory(dir: &Path) -> Result<Self, Error> {
        match files(dir) {
            Ok(Some(files)) => Ok(Self::files(files)),
            // The other form has the better message for what is no directory.
            Ok(None) => Self::tree(dir),
            Err(why) => Err(Error::new(Kind::Tree, dir, why)),
        }
    }
}

/// The files of the node in this directory; `None` if it is no must-gather.
///
/// # Errors
/// It has several nodes, or a file of the node cannot be read.
fn files(dir: &Path) -> io::Result<Option<Files>> {
    let Ok(dir) = dir.canonicalize() else { return Ok(None) };
    let nodes = nodes(&dir, DEPTH);
    match &nodes[..] {
        [] => Ok(None),
        [node] => of_node(node).map(Some),
        nodes => {
            let shown = nodes.iter().take(NAMED_MAX);
            let shown = shown.map(|node| printable(&node.to_string_lossy()).into_owned());
            let shown: Vec<String> = shown.collect();
            let more = if nodes.len() > NAMED_MAX { ", ..." } else { "" };
            let text = format!(
                "it has {} nodes; hint: name one of {}{more}",
                nodes.len(),
                shown.join(", ")
            );
            Err(io::Error::other(text))
        }
    }
}

/// The directories of nodes in a directory, sorted. One that has files of a kernel is none of their parents.
fn nodes(dir: &Path, depth: usize) -> Vec<PathBuf> {
    let is_node = |dir: &Path| dir.join(PACKED).is_file();
    if is_node(dir) {
        return vec![dir.to_owned()];
    }
    if dir.join("proc").is_dir() {
        return Vec::new();
    }
    let all = if dir.file_name().is_some_and(|name| name == NODES) {
        Some(dir.to_owned())
    } else {
        Some(dir.join(NODES)).filter(|nodes| nodes.is_dir())
    };
    if let Some(all) = all {
        return folders(&all).into_iter().filter(|node| is_node(node)).collect();
    }
    let below = if depth > 0 { folders(dir) } else { Vec::new() };
    below.iter().flat_map(|folder| nodes(folder, depth - 1)).collect()
}

/// The directories in a directory, sorted; links are none.
fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_folder =
        |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut folders: Vec<PathBuf> =
        entries.filter(is_folder).map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// The files of a node.
fn of_node(node: &Path) -> io::Result<Files> {
    let own = Tree::open(node)?;
    let packed = own.file(PACKED)?.ok_or_else(|| io::Error::other("no regular file"))?;
    let mut files = unpack(packed)?;
    let read = |tree: &Tree, path: &str| -> Option<String> {
        let mut text = String::new();
        let file = tree.file(path).ok()??;
        file.take(BYTES_MAX).read_to_string(&mut text).ok().map(|_| text)
    };
    let mut add = |path: &str, text: Option<String>| {
        if let Some(text) = text {
            files.entry(path.to_owned()).or_insert_with(|| text.into_bytes());
        }
    };
    add(command_line::FILE, read(&own, "proc_cmdline"));
    let messages = read(&own, "dmesg");
    let resource = resource(node, read);
    let release = resource.as_deref().and_then(release_of_resource);
    let printed = || messages.as_deref().and_then(kernel_log::printed_release);
    add(RELEASE, release.or_else(printed).map(str::to_owned));
    add(kernel_log::NODE_PRINTED, messages);
    let online = online(&files);
    files.entry(ONLINE.to_owned()).or_insert(online.to_string().into_bytes());
    Ok(files)
}

/// The text of the node's resource.
fn resource(node: &Path, read: impl Fn(&Tree, &str) -> Option<String>) -> Option<String> {
    let nodes = node.parent().filter(|all| all.file_name().is_some_and(|it| it == NODES));
    let image = Tree::open(nodes?.parent()?).ok()?;
    let name = node.file_name()?.to_str()?;
    read(&image, &format!("cluster-scoped-resources/core/nodes/{name}.yaml"))
}

/// `status.nodeInfo.kernelVersion` of a node's resource.
fn release_of_resource(resource: &str) -> Option<&str> {
    let values =
        resource.lines().filter_map(|line| line.trim().strip_prefix("kernelVersion: "));
    values.map(|value| value.trim().trim_matches('"')).find(|value| *value != "{}")
}

/// The regular files in a packed archive.
fn unpack(packed: impl Read) -> io::Result<Files> {
    let mut archive = tar::Archive::new(GzDecoder::new(packed).take(BYTES_MAX));
    let mut files = Files::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.to_string_lossy().into_owned();
        let path = path.trim_start_matches("./").trim_start_matches('/');
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        files.insert(format!("/{path}"), bytes);
    }
    Ok(files)
}

/// The CPUs that have files and are not offline.
fn online(files: &Files) -> CpuSet {
    let all =
        files.range(CPUS.to_owned()..).map_while(|(path, _)| path.strip_prefix(CPUS));
    let all: CpuSet =
        all.filter_map(|rest| rest.split('/').next()?.parse().ok()).collect();
    let offline = files.get(OFFLINE).map(|bytes| String::from_utf8_lossy(bytes));
    let offline = offline.and_then(|text| text.trim().parse::<CpuSet>().ok());
    all.without(&offline.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::Facts;
    use crate::fact::Why;
    use crate::tree::root::Root;

    const RESOURCE: &str = "apiVersion: v1\nmetadata:\n  managedFields:\n    f:nodeInfo:\n      \
                            f:kernelVersion: {}\nstatus:\n  nodeInfo:\n    kernelVersion: \
                            5.14.0-427.59.1.el9_4.x86_64+rt\n";

    fn packed(files: &[(&str, &str)]) -> Vec<u8> {
        let mut archive =
            tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (path, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o444);
            archive.append_data(&mut header, path, text.as_bytes()).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap()
    }

    /// A must-gather with these nodes.
    fn gathered(nodes: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("must-gather.local.1/image");
        let resources = image.join("cluster-scoped-resources/core/nodes");
        fs::create_dir_all(&resources).unwrap();
        for node in nodes {
            let folder = image.join(NODES).join(node);
            fs::create_dir_all(&folder).unwrap();
            let bytes = packed(&[
                ("proc/interrupts", "      CPU0\n"),
                ("proc/irq/4/smp_affinity_list", "0-1\n"),
                ("sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
                ("sys/devices/system/cpu/cpu1/topology/core_id", "1\n"),
                ("sys/devices/system/cpu/cpu2/online", "0\n"),
                ("sys/devices/system/cpu/offline", "2-3\n"),
            ]);
            fs::write(folder.join(PACKED), bytes).unwrap();
            fs::write(folder.join("proc_cmdline"), "nohz_full=1 skew_tick=1\n").unwrap();
            fs::write(resources.join(format!("{node}.yaml")), RESOURCE).unwrap();
        }
        dir
    }

    /// Check that a node is found in each directory above it, that it has its release, boot parameters and CPUs, and
    /// that a file that is not collected is unknown.
    #[test]
    fn node() {
        let dir = gathered(&["worker1"]);
        let local = dir.path().join("must-gather.local.1");
        for folder in [
            dir.path().to_owned(),
            local.clone(),
            local.join("image"),
            local.join("image/nodes"),
            local.join("image/nodes/worker1"),
        ] {
            let root = Root::directory(&folder).unwrap();
            let facts = Facts::read(&root);
            assert_eq!(
                facts.kernel.release.get().unwrap(),
                "5.14.0-427.59.1.el9_4.x86_64+rt"
            );
            assert_eq!(facts.boot.given("nohz_full").unwrap(), ["1"]);
            assert_eq!(facts.cpus.online.get().unwrap().to_string(), "0,1");
            assert_eq!(root.list("/proc/irq").unwrap(), ["4"]);
            let unknown = root.exists("/sys/kernel/mm/ksm/run").unwrap_err();
            assert_eq!(unknown.code, Why::NotRecorded);
            assert!(facts.settings.services.get().is_none());
        }
    }

    /// Check that several nodes are named, and that their archive may be damaged.
    #[test]
    fn several_nodes_and_damage() {
        let dir = gathered(&["worker1", "worker2"]);
        let error = units::chain(&Root::directory(dir.path()).unwrap_err());
        assert!(error.contains("it has 2 nodes; hint: name one of "), "{error}");
        assert!(error.ends_with("image/nodes/worker2"), "{error}");
        let node = dir.path().join("must-gather.local.1/image/nodes/worker1");
        fs::write(node.join(PACKED), "hello").unwrap();
        let error = units::chain(&Root::directory(&node).unwrap_err());
        assert!(error.contains("failed to read"), "{error}");
    }

    /// Check that a node without its resource has the release of its messages, and what they say of boot parameters.
    #[test]
    fn messages() {
        let dir = gathered(&["worker1"]);
        let node = dir.path().join("must-gather.local.1/image/nodes/worker1");
        let alone = tempfile::tempdir().unwrap();
        fs::copy(node.join(PACKED), alone.path().join(PACKED)).unwrap();
        fs::write(alone.path().join("proc_cmdline"), "divider=10\n").unwrap();
        let messages = "[    0.000000] Linux version 5.15.0-70.el9.x86_64 (a@b) #1 SMP\n\
                        [    0.100000] Unknown kernel command line parameters \
                        \"divider=10\", will be passed to user space.\n";
        fs::write(alone.path().join("dmesg"), messages).unwrap();
        let facts = Facts::read(&Root::directory(alone.path()).unwrap());
        assert_eq!(facts.kernel.release.get().unwrap(), "5.15.0-70.el9.x86_64");
        assert_eq!(facts.boot.inert.get().unwrap()[0].parameter, "divider=10");
    }
}
