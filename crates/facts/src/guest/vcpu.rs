//! The names of vCPU threads: the threads of a virtual machine monitor that run a virtual CPU.
//!
//! A name is the `comm` of the thread, of at most 15 bytes:
//!
//! | monitor | name | source |
//! |---|---|---|
//! | QEMU | `CPU 0/KVM`, `CPU 0/TCG`; `ALL CPUs/TCG`: one thread for all vCPUs | `accel/*/*-accel-ops*.c` |
//! | Firecracker | `fc_vcpu 0` | `src/vmm/src/vstate/vcpu.rs` |
//! | cloud-hypervisor | `vcpu0` | `vmm/src/cpu.rs` |
//!
//! QEMU names its threads with `-name debug-threads=on` only, which libvirt and Proxmox VE set.
//! Any thread can give itself such a name.

/// A vCPU thread, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VcpuName {
    /// The form of the name.
    pub(crate) style: Style,
    /// The number of the vCPU; `None`: all vCPUs of the guest.
    pub(crate) index: Option<u32>,
}

/// The forms of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Style {
    /// QEMU's, with the accelerator.
    Qemu(String),
    /// Firecracker's.
    Firecracker,
    /// cloud-hypervisor's.
    CloudHypervisor,
}

impl VcpuName {
    /// Parses the name of a thread; `None` if it is not that of a vCPU.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        if let Some((cpu, accelerator)) = name.split_once('/') {
            let is_word = |text: &str| {
                !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric())
            };
            let index = match cpu {
                "ALL CPUs" => None,
                _ => Some(number(cpu.strip_prefix("CPU ")?)?),
            };
            let style = Style::Qemu(accelerator.to_owned());
            return is_word(accelerator).then_some(Self { style, index });
        }
        let (style, digits) = match name.strip_prefix("fc_vcpu ") {
            Some(digits) => (Style::Firecracker, digits),
            None => (Style::CloudHypervisor, name.strip_prefix("vcpu")?),
        };
        Some(Self { style, index: Some(number(digits)?) })
    }
}

/// A number of decimal digits only.
pub(crate) fn number(digits: &str) -> Option<u32> {
    let is_number = digits.bytes().all(|c| c.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(name: &str) -> Option<(Style, Option<u32>)> {
        VcpuName::parse(name).map(|found| (found.style, found.index))
    }

    /// Check the names of each monitor, and similar names of other threads.
    #[test]
    fn names() {
        let qemu = |accelerator: &str| Style::Qemu(accelerator.to_owned());
        assert_eq!(parsed("CPU 0/KVM"), Some((qemu("KVM"), Some(0))));
        assert_eq!(parsed("CPU 511/TCG"), Some((qemu("TCG"), Some(511))));
        assert_eq!(parsed("ALL CPUs/TCG"), Some((qemu("TCG"), None)));
        assert_eq!(parsed("fc_vcpu 31"), Some((Style::Firecracker, Some(31))));
        assert_eq!(parsed("vcpu0"), Some((Style::CloudHypervisor, Some(0))));
        for other in [
            "",
            "CPU /KVM",
            "CPU 0",
            "CPU 0/",
            "CPU +1/KVM",
            "CPU 1/\x1b[2J",
            "kworker/0:1",
            "fc_vcpu",
            "fc_vcpu x",
            "vcpu",
            "vcpu-1",
            "vcpus",
            "vcpu99999999999",
            "cpuhp/0",
        ] {
            assert_eq!(parsed(other), None, "{other}");
        }
    }

    proptest! {
        /// Check that any name is parsed or not, without a panic.
        #[test]
        fn any_name(name in "(CPU |ALL CPUs|fc_vcpu |vcpu|/|KVM|[0-9]|\u{e9}){0,5}") {
            let _ = VcpuName::parse(&name);
        }
    }
}
