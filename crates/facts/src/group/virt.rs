//! Virtualization: the hypervisor, and whether it reports steal time.
//!
//! From `/sys/hypervisor/type` (Xen); the CPU flag `hypervisor` on x86; the name from the kernel's
//! messages, the clock sources of hypervisors, and the firmware's name of the machine. Other
//! architectures have no flag: a hypervisor is known only by its name, and its absence is never
//! known. Steal time is counted with `CONFIG_PARAVIRT` if the hypervisor exports it.
//!
//! A hypervisor may hide itself; nested hypervisors are not detected. Serial numbers are never
//! read.

use crate::absence::Needs;
use crate::fact::{Fact, Unknown, Why, group};
use crate::format::cpuinfo::{self, CpuInfo};
use crate::format::kernel_log;
use crate::sources::Sources;

/// A hypervisor or container without a known name.
const UNNAMED: &str = "unnamed";
const XEN: &str = "/sys/hypervisor/type";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
const PRODUCT: &str = "/sys/class/dmi/id/product_name";
const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";
const BOARD: &str = "/proc/device-tree/compatible";
const MODEL: &str = "/proc/device-tree/model";
const TREE: &str = "/proc/device-tree/hypervisor/compatible";
const STAT: &str = "/proc/stat";
/// The name of process 2, which is `kthreadd` in the initial PID namespace only.
const SECOND: &str = "/proc/2/comm";

/// Clock sources of guests only.
const GUEST_CLOCKS: [(&str, &str); 4] = [
    ("kvm-clock", "KVM"),
    ("hyperv_clocksource_tsc_page", "Microsoft Hyper-V"),
    ("hyperv_clocksource_msr", "Microsoft Hyper-V"),
    ("xen", "Xen"),
];
/// Names of firmware in guests, as vendor or product.
const FIRMWARE: [(&str, &str); 9] = [
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("Parallels", "Parallels"),
    ("QEMU", "QEMU"),
    ("KVM", "KVM"),
    ("Google Compute Engine", "KVM"),
    ("Apple Virtualization", "Apple Virtualization"),
    ("BHYVE", "bhyve"),
];

group! {
    /// Virtualisation.
    "virt" Virt {
        /// The hypervisor, `unnamed` if its name is unknown; `None` on bare metal.
        hypervisor: Option<String>,
        /// The firmware's name of the machine.
        product: String,
        /// Whether steal time is counted in `/proc/stat`.
        steal_clock: bool,
        /// The container of this process, `unnamed` if its name is unknown; `None` in the initial
        /// PID namespace.
        container: Option<String>,
    }
}

impl Virt {
    pub(crate) fn read(sources: &Sources) -> Self {
        let hypervisor = hypervisor(sources);
        let steal_clock = steal_clock(sources, &hypervisor);
        let container = container(sources);
        Self { hypervisor, product: product(sources), steal_clock, container }
    }
}

/// The hypervisor.
pub(crate) fn hypervisor(sources: &Sources) -> Fact<Option<String>> {
    if let Some(fact) = xen(sources) {
        return fact;
    }
    let info = CpuInfo::read(sources.root);
    let flag = info.as_ref().ok().and_then(|info| {
        info.flags().map(|mut flags| flags.any(|flag| flag == "hypervisor"))
    });
    match flag {
        Some(false) => Fact::known(None, cpuinfo::FILE),
        Some(true) => named(sources).unwrap_or_else(|| {
            Fact::known(Some(UNNAMED.to_owned()), format!("{} (flags)", cpuinfo::FILE))
        }),
        None => named(sources).unwrap_or_else(|| {
            let text =
                "no source has its name, and this architecture has no CPU flag for it";
            let none = |_: CpuInfo| Unknown::new(Why::NotExported, text);
            Fact::unknown(info.map_or_else(|unknown| unknown, none), cpuinfo::FILE)
        }),
    }
}

fn xen(sources: &Sources) -> Option<Fact<Option<String>>> {
    let fact = sources.word(XEN);
    let name = if fact.get()? == "xen" { "Xen" } else { fact.get()? };
    Some(Fact::known(Some(name.to_owned()), XEN))
}

/// The first known name of the hypervisor.
fn named(sources: &Sources) -> Option<Fact<Option<String>>> {
    let fact = |name: &str, file: &str| Some(Fact::known(Some(name.to_owned()), file));
    if let Some(name) = sources.log.as_ref().ok().and_then(|log| {
        Some(log.find("Hypervisor detected: ")?.split_once("detected: ")?.1.trim())
    }) {
        return fact(name, kernel_log::FILE);
    }
    let clocks = sources.word(CLOCKS);
    let clocks = clocks.get().map_or("", String::as_str);
    let has = |clock: &str| clocks.split_whitespace().any(|other| other == clock);
    if let Some((_, name)) = GUEST_CLOCKS.iter().find(|(clock, _)| has(clock)) {
        return fact(name, CLOCKS);
    }
    by_device_tree(sources).or_else(|| by_firmware(sources)).or_else(|| by_board(sources))
}

fn by_device_tree(sources: &Sources) -> Option<Fact<Option<String>>> {
    let text = sources.root.text(TREE).ok()?;
    let known = [("xen,xen", "Xen"), ("linux,kvm", "KVM")];
    let is = |name: &str| text.split('\0').any(|other| other.trim() == name);
    let (_, name) = known.iter().find(|(compatible, _)| is(compatible))?;
    Some(Fact::known(Some((*name).to_owned()), TREE))
}

/// The board of arm64 guests in QEMU and others, which does not identify the hypervisor.
fn by_board(sources: &Sources) -> Option<Fact<Option<String>>> {
    let text = sources.root.text(BOARD).ok()?;
    let is_virtual = text.split('\0').any(|name| name.trim() == "linux,dummy-virt");
    is_virtual.then(|| Fact::known(Some(UNNAMED.to_owned()), BOARD))
}

fn by_firmware(sources: &Sources) -> Option<Fact<Option<String>>> {
    let texts = [VENDOR, PRODUCT].map(|file| (file, sources.word(file)));
    let fact = |name: &str, file: &str| Some(Fact::known(Some(name.to_owned()), file));
    for (file, word) in &texts {
        let Some(word) = word.get() else { continue };
        if let Some((_, name)) =
            FIRMWARE.iter().find(|(begin, _)| word.starts_with(begin))
        {
            return fact(name, file);
        }
    }
    // Microsoft also makes physical machines, with other product names.
    let [(_, vendor), (file, product)] = &texts;
    let is =
        |fact: &Fact<String>, word: &str| fact.get().is_some_and(|found| found == word);
    let hyperv = is(vendor, "Microsoft Corporation") && is(product, "Virtual Machine");
    if hyperv { fact("Microsoft Hyper-V", file) } else { None }
}

fn product(sources: &Sources) -> Fact<String> {
    let dmi = sources.word(PRODUCT);
    if dmi.get().is_some() {
        return dmi;
    }
    if let Ok(text) = sources.root.text(MODEL) {
        let model = text.trim_matches(['\0', '\n']).trim();
        if !model.is_empty() && !model.chars().any(char::is_control) {
            return Fact::known(model.to_owned(), MODEL);
        }
    }
    sources.explain(&dmi, &Needs::options(&["DMIID"]))
}

/// Whether steal time is counted. A count above zero proves it; zero proves nothing.
fn steal_clock(sources: &Sources, hypervisor: &Fact<Option<String>>) -> Fact<bool> {
    let steal = match sources.root.text(STAT).and_then(|text| steal(&text)) {
        Ok(steal) => steal,
        Err(unknown) => return Fact::unknown(unknown, STAT),
    };
    if steal > 0 {
        return Fact::known(true, STAT);
    }
    if hypervisor.get() == Some(&None) {
        let unknown =
            Unknown::new(Why::NotApplicable, "no hypervisor is below this kernel");
        return Fact::unknown(unknown, STAT);
    }
    if sources.is_set("PARAVIRT") == Some(false) {
        return Fact::known(false, sources.option_source("PARAVIRT"));
    }
    let has_logged =
        |text| sources.log.as_ref().is_ok_and(|log| log.find(text).is_some());
    if has_logged("stealtime: cpu 0") || has_logged("using stolen time PV") {
        return Fact::known(true, kernel_log::FILE);
    }
    let text =
        "none was counted so far: there was none, or the hypervisor does not report it";
    Fact::unknown(Unknown::new(Why::NotExported, text), STAT)
}

/// The eighth number in the first line of `/proc/stat` (since 2.6.11).
fn steal(text: &str) -> Result<u64, Unknown> {
    let line = text.lines().next().unwrap_or("");
    let steal = line.strip_prefix("cpu ").and_then(|rest| rest.split_whitespace().nth(7));
    let number = steal.and_then(|steal| steal.parse().ok());
    number.ok_or_else(|| Unknown::garbage(STAT, 1, line, "a line with stolen time"))
}

fn container(sources: &Sources) -> Fact<Option<String>> {
    let second = sources.word(SECOND);
    if second.get().is_some_and(|name| name == "kthreadd") {
        return Fact::known(None, SECOND);
    }
    let runtime = sources.word("/run/systemd/container");
    if let Some(name) = runtime.get() {
        return Fact::known(Some(name.clone()), runtime.source());
    }
    for (file, name) in [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")] {
        if sources.root.exists(file) == Ok(true) {
            return Fact::known(Some(name.to_owned()), file);
        }
    }
    if second.get().is_some() {
        return Fact::known(Some(UNNAMED.to_owned()), SECOND);
    }
    let text = "neither kernel threads nor files of a container are visible";
    Fact::unknown(Unknown::new(Why::Absent, text), SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    const GUEST: (&str, &str) =
        (cpuinfo::FILE, "processor\t: 0\nflags\t: tsc hypervisor\n\n");
    const MACHINE: (&str, &str) = (cpuinfo::FILE, "processor\t: 0\nflags\t: tsc sse\n\n");
    const ARM: (&str, &str) = (cpuinfo::FILE, "processor\t: 0\nFeatures\t: fp\n\n");

    fn read(files: &[(&str, &str)]) -> Virt {
        Virt::read(&tree(files).sources())
    }

    fn hypervisor_of(files: &[(&str, &str)]) -> (String, String) {
        let fact = read(files).hypervisor;
        (fact.get().unwrap().clone().unwrap(), fact.source().to_owned())
    }

    /// Check all sources of a name, in order of precedence.
    #[test]
    fn names_of_hypervisors() {
        let sources = [
            ((XEN, "xen\n"), "Xen"),
            (("/dev/kmsg", "6,0,0,-;Hypervisor detected: KVM\n"), "KVM"),
            ((CLOCKS, "hyperv_clocksource_tsc_page acpi_pm\n"), "Microsoft Hyper-V"),
            ((TREE, "linux,kvm\0"), "KVM"),
            ((VENDOR, "VMware, Inc.\n"), "VMware"),
            ((PRODUCT, "VirtualBox\n"), "VirtualBox"),
        ];
        for at in 0..sources.len() {
            let files: Vec<_> = sources[at..].iter().map(|(file, _)| *file).collect();
            let ((file, _), name) = sources[at];
            let found = hypervisor_of(&[&files[..], &[GUEST]].concat());
            assert_eq!(found, (name.to_owned(), file.to_owned()));
        }
        assert_eq!(hypervisor_of(&[GUEST]).0, "unnamed");
        let hyperv =
            [(VENDOR, "Microsoft Corporation"), (PRODUCT, "Virtual Machine"), GUEST];
        assert_eq!(hypervisor_of(&hyperv).0, "Microsoft Hyper-V");
    }

    /// Check that the absence of a hypervisor is known only on x86, for any firmware.
    #[test]
    fn no_hypervisor() {
        let surface = (VENDOR, "Microsoft Corporation\n");
        assert_eq!(read(&[MACHINE, surface]).hypervisor.get(), Some(&None));
        let arm = read(&[ARM, (VENDOR, "Ampere\n")]).hypervisor;
        assert_eq!(arm.value().unwrap_err().code, Why::NotExported);
        assert_eq!(hypervisor_of(&[ARM, (VENDOR, "QEMU\n")]).0, "QEMU");
        assert_eq!(read(&[]).hypervisor.value().unwrap_err().code, Why::Absent);
    }

    /// Check the product on x86, and on other architectures with a trailing NUL.
    #[test]
    fn product_of_the_machine() {
        let dmi = read(&[(PRODUCT, "Standard PC (Q35 + ICH9, 2009)\n")]).product;
        assert_eq!(dmi.get().unwrap(), "Standard PC (Q35 + ICH9, 2009)");
        let pi = read(&[(MODEL, "Raspberry Pi 5 Model B Rev 1.0\0")]).product;
        assert_eq!(pi, Fact::known("Raspberry Pi 5 Model B Rev 1.0".to_owned(), MODEL));
    }

    /// Check that a count of steal time proves a steal clock, and that zero proves nothing.
    #[test]
    fn steal_is_counted() {
        let some = (STAT, "cpu  3052 0 2076 220980 492 0 48 8 0 0\ncpu0 1 2\n");
        let none = (STAT, "cpu  3052 0 2076 220980 492 0 48 0 0 0\n");
        assert_eq!(read(&[some]).steal_clock, Fact::known(true, STAT));
        let code = |files: &[(&str, &str)]| {
            read(files).steal_clock.value().map_err(|unknown| unknown.code).copied()
        };
        assert_eq!(code(&[none, GUEST]), Err(Why::NotExported));
        assert_eq!(code(&[none, MACHINE]), Err(Why::NotApplicable));
        let release = ("/proc/sys/kernel/osrelease", "6.1.0");
        let built = |config| [none, GUEST, release, ("/boot/config-6.1.0", config)];
        assert_eq!(code(&built("CONFIG_HZ=250\n")), Ok(false));
        assert_eq!(code(&built("CONFIG_PARAVIRT=y\n")), Err(Why::NotExported));
        let message = ("/dev/kmsg", "6,0,0,-;arm-pv: using stolen time PV\n");
        assert_eq!(code(&[none, ARM, message]), Ok(true));
        assert_eq!(code(&[(STAT, "cpu  1 2 3\n")]), Err(Why::Garbage));
    }

    /// Check that a process that sees kernel threads is not in a container, even if files of a
    /// container exist.
    #[test]
    fn containers() {
        let mark = ("/.dockerenv", "");
        let of = |files: &[(&str, &str)]| read(files).container.get().cloned();
        assert_eq!(of(&[(SECOND, "kthreadd\n"), mark]), Some(None));
        assert_eq!(of(&[mark]), Some(Some("docker".to_owned())));
        assert_eq!(of(&[(SECOND, "bash\n")]), Some(Some(UNNAMED.to_owned())));
        let nspawn = ("/run/systemd/container", "systemd-nspawn\n");
        assert_eq!(of(&[nspawn, mark]), Some(Some("systemd-nspawn".to_owned())));
        assert_eq!(of(&[]), None);
    }
}
