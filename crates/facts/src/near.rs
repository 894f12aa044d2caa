//! The NUMA node of a device: of a network interface, a GPU, a disk, or a PCI device by its address.
//!
//! From `numa_node` of the device (PCI devices since 2.6.16, NVMe controllers since 4.20); it is -1 if the
//! firmware does not tell, as on most machines with one node. The devices of virtio have their node one
//! directory above, which recorded trees do not have.

use units::CpuSet;

use crate::fact::{Unknown, Why};
use crate::group::cpus::cpus_of_node;
use crate::tree::root::Root;

const NET: &str = "/sys/class/net";
const PCI: &str = "/sys/bus/pci/devices";
/// The classes of devices that are looked for by name, with the directory of the device itself.
const CLASSES: [(&str, &str); 7] = [
    (NET, "/device"),
    ("/sys/class/drm", "/device"),
    ("/sys/class/infiniband", "/device"),
    ("/sys/class/nvme", ""),
    ("/sys/block", "/device"),
    (NET, "/device/.."),
    ("/sys/block", "/device/.."),
];

/// The place of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Near {
    /// The number of its node.
    pub node: u32,
    /// The CPUs of that node.
    pub cpus: CpuSet,
}

/// The NUMA node of a device, and its CPUs; `None` if the machine does not tell which one it is.
///
/// # Errors
/// Why the node could not be read; `Why::Absent` if there is no such device.
pub fn near(root: &Root, name: &str) -> Result<Option<Near>, Unknown> {
    let mut is_there = false;
    for directory in directories(name) {
        match root.line(&format!("{directory}/numa_node")) {
            Ok(line) => match line.parse::<i64>() {
                Ok(-1) => is_there = true,
                node => {
                    let node = node.ok().and_then(|node| u32::try_from(node).ok());
                    let garbage = || {
                        let file = format!("{directory}/numa_node");
                        Unknown::garbage(&file, 1, &line, "a NUMA node")
                    };
                    let node = node.ok_or_else(garbage)?;
                    return Ok(Some(Near { node, cpus: cpus_of_node(root, node)? }));
                }
            },
            Err(unknown) if unknown.code == Why::Absent => {
                is_there |= root.is_live() && root.exists(&directory) == Ok(true);
            }
            Err(unknown) => return Err(unknown),
        }
    }
    if is_there {
        return Ok(None);
    }
    let text = format!("there is no device {name} with a NUMA node");
    Err(Unknown::new(Why::Absent, text))
}

/// Reads the nodes of network interfaces and PCI devices, so that a recorded tree has them.
pub(crate) fn read_all(root: &Root) {
    for (class, device) in [(NET, "/device"), (PCI, "")] {
        for name in root.list(class).unwrap_or_default() {
            // If it cannot be read, the tree has the reason.
            let _ = root.bytes(&format!("{class}/{name}{device}/numa_node"));
        }
    }
}

/// Where a device of that name would be. Names are no paths.
fn directories(name: &str) -> Vec<String> {
    if name.is_empty() || name.starts_with('.') || name.contains('/') {
        return Vec::new();
    }
    let classes = CLASSES.iter().map(|(class, device)| format!("{class}/{name}{device}"));
    // The domain of an address is often left out.
    let pci = [format!("{PCI}/{name}"), format!("{PCI}/0000:{name}")];
    classes.chain(pci).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    /// Check interfaces, GPUs and addresses, unknown nodes, and names that are paths or of no device.
    #[test]
    fn devices() {
        let tree = tree(&[
            ("/sys/class/net/eth0/device/numa_node", "1\n"),
            ("/sys/class/drm/card0/device/numa_node", "0\n"),
            ("/sys/class/net/eth1/device/numa_node", "-1\n"),
            ("/sys/class/net/eth2/device/numa_node", "x\n"),
            ("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n"),
            ("/sys/devices/system/node/node0/cpulist", "0-3\n"),
            ("/sys/devices/system/node/node1/cpulist", "4-7\n"),
        ]);
        let of = |name: &str| {
            let found = near(&tree.root, name).map_err(|why| why.code)?;
            Ok(found.map(|near| (near.node, near.cpus.to_string())))
        };
        let second = Ok(Some((1, "4-7".to_owned())));
        assert_eq!(of("eth0"), second);
        assert_eq!(of("0000:3b:00.0"), second);
        assert_eq!(of("3b:00.0"), second);
        assert_eq!(of("card0"), Ok(Some((0, "0-3".to_owned()))));
        assert_eq!(of("eth1"), Ok(None));
        assert_eq!(of("eth2"), Err(Why::Garbage));
        for name in ["eth7", "", "..", "../net/eth0", "/etc"] {
            assert_eq!(of(name), Err(Why::Absent), "{name}");
        }
    }

    /// Check that a recorded tree has the nodes of its devices.
    #[test]
    fn recorded() {
        let first = tree(&[
            ("/sys/class/net/eth0/device/numa_node", "0\n"),
            ("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "0\n"),
            ("/sys/devices/system/node/node0/cpulist", "0-3\n"),
        ]);
        let copy = tempfile::tempdir().unwrap();
        let folder = std::fs::File::open(copy.path()).unwrap();
        crate::record(&first.root, copy.path(), folder).unwrap();
        let copied = Root::tree(copy.path()).unwrap();
        for name in ["eth0", "3b:00.0"] {
            assert_eq!(near(&copied, name).unwrap().unwrap().cpus.to_string(), "0-3");
        }
    }
}
