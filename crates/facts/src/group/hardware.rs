//! What slows a CPU down below the kernel, and the counts that show it: firmware (system management
//! interrupts, SMIs), heat, power limits, the frequency, machine checks.
//!
//! From the PMUs in `/sys/bus/event_source/devices`; `cpufreq` (`base_frequency` of intel_pstate;
//! `cpufreq/boost`, `intel_pstate/no_turbo`), `thermal_throttle` and `acpi_cppc` in
//! `/sys/devices/system/cpu`; the lines MCE and MCP of `/proc/interrupts`.
//!
//! Cannot see firmware that runs without an SMI, and in a guest what the host's processor does.

use units::{Cpu, CpuSet};

use crate::absence::Needs;
use crate::fact::{Fact, Unknown, Why, group};
use crate::format::cpuinfo::CpuInfo;
use crate::format::interrupts::Interrupts;
use crate::format::pmu::PmuEvent;
use crate::format::throttling::{SlowDowns, current_khz};
use crate::group::{cpus, tracing, virt};
use crate::sources::Sources;
use crate::tree::root::Root;

const CPUS: &str = "/sys/devices/system/cpu";
const THROTTLES: &str = "/sys/devices/system/cpu/cpu*/thermal_throttle";
/// The first processor family with Zen cores, of both vendors.
const ZEN: [(&str, u32); 2] = [("AuthenticAMD", 0x17), ("HygonGenuine", 0x18)];
/// The event `ls_smi_rx` of Zen cores: SMIs received.
const LS_SMI_RX: u64 = 0x2b;
/// `PERF_COUNT_HW_CPU_CYCLES` and `PERF_COUNT_HW_REF_CPU_CYCLES`.
const CPU_CYCLES: u64 = 0;
const REF_CYCLES: u64 = 9;

group! {
    /// Below the kernel.
    "hardware" Hardware {
        /// The perf event that counts system management interrupts (SMIs).
        smi_event: String,
        /// The source of a CPU's frequency during a measurement.
        frequency_source: String,
        /// The frequency that the processor is specified for, without turbo.
        base_khz: u64,
        /// Whether frequencies above that are enabled.
        turbo: bool,
        /// The preference between performance and energy that the processor is given.
        energy_preference: String,
        /// How often heat has throttled a core or package since boot: the highest count of a CPU.
        heat_throttles: u64,
        /// How often a power limit was reached since boot: the highest count of a CPU.
        power_limits: u64,
        /// Machine check exceptions since boot, on all CPUs.
        machine_checks: u64,
        /// Machine check polls since boot, on all CPUs.
        machine_check_polls: u64,
        /// Whether the kernel has the `hwlat` tracer, which finds time that firmware takes.
        hwlat: bool,
    }
}

impl Hardware {
    pub(crate) fn read(sources: &Sources) -> Self {
        let (heat_throttles, power_limits) = throttles(sources);
        Self {
            smi_event: of_event(sources, smi_event(sources.root)),
            frequency_source: frequency_source(sources),
            base_khz: base_khz(sources),
            turbo: turbo(sources),
            energy_preference: energy_preference(sources),
            heat_throttles,
            power_limits,
            machine_checks: machine_checks(sources, "MCE"),
            machine_check_polls: machine_checks(sources, "MCP"),
            hwlat: hwlat(sources),
        }
    }
}

/// The perf event that counts SMIs: that of the msr PMU (Intel since Nehalem), or of Zen cores.
///
/// # Errors
/// `Why::Absent` without such an event.
pub fn smi_event(root: &Root) -> Result<PmuEvent, Unknown> {
    let listed = PmuEvent::find(root, "msr", "smi");
    match listed {
        Err(unknown) if unknown.code == Why::Absent && is_zen(root) => {
            let raw = PmuEvent::raw(root, "cpu", LS_SMI_RX);
            raw.map_err(|core| {
                let text = format!("{unknown}, and {core} with ls_smi_rx");
                Unknown::new(core.code, text)
            })
        }
        listed => listed,
    }
}

/// The events whose ratio is that of a CPU's frequency to its base frequency: the registers, which a
/// hypervisor seldom offers, or the counters of cycles.
///
/// # Errors
/// `Why::Absent` without one of them.
pub fn frequency_events(root: &Root) -> Result<[PmuEvent; 2], Unknown> {
    let msr = |event| PmuEvent::find(root, "msr", event);
    let registers = || Ok([msr("aperf")?, msr("mperf")?]);
    let [cycles, reference] = [("cpu-cycles", CPU_CYCLES), ("ref-cycles", REF_CYCLES)]
        .map(|(event, config)| PmuEvent::generic(root, event, config));
    registers().or_else(|unknown| match (cycles, reference) {
        (Ok(cycles), Ok(reference)) => Ok([cycles, reference]),
        _ => Err(unknown),
    })
}

fn is_zen(root: &Root) -> bool {
    let Ok(info) = CpuInfo::read(root) else { return false };
    let family = info.value("cpu family").and_then(|family| family.parse::<u32>().ok());
    ZEN.iter().any(|(vendor, first)| {
        info.value("vendor_id") == Some(vendor) && family.is_some_and(|own| own >= *first)
    })
}

/// The event's name; the reason without one says if this is a virtual machine.
fn of_event(sources: &Sources, event: Result<PmuEvent, Unknown>) -> Fact<String> {
    let name = event.map(|event| event.name).map_err(|why| in_guest(sources, why));
    Fact::of(name, "/sys/bus/event_source/devices")
}

/// The reason, which in a virtual machine is its hypervisor.
fn in_guest(sources: &Sources, unknown: Unknown) -> Unknown {
    match virt::hypervisor(sources).get() {
        Some(Some(name)) if unknown.code == Why::Absent => {
            let text = format!("{}: a virtual machine ({name})", unknown.text);
            Unknown::new(Why::NotExported, text)
        }
        _ => unknown,
    }
}

/// The ratio of the registers, or the driver's own figure, where one of them exists.
fn frequency_source(sources: &Sources) -> Fact<String> {
    let events = frequency_events(sources.root);
    let current = current_khz(sources.root, Cpu::new(0));
    let value = match (&events, &current) {
        (Ok([aperf, mperf]), _) => Ok(format!("{}, {}", aperf.name, mperf.name)),
        (Err(_), Ok(_)) => Ok("scaling_cur_freq".to_owned()),
        (Err(events), Err(current)) => {
            let text = format!("{events}, and {current}");
            Err(in_guest(sources, Unknown::new(events.code, text)))
        }
    };
    Fact::of(value, format!("/sys/bus/event_source/devices/msr, {CPUS}/cpu*/cpufreq"))
}

/// That of intel_pstate, or the nominal frequency of ACPI's CPPC.
fn base_khz(sources: &Sources) -> Fact<u64> {
    let base = sources.number(&format!("{CPUS}/cpu0/cpufreq/base_frequency"));
    let nominal = sources.number::<u64>(&format!("{CPUS}/cpu0/acpi_cppc/nominal_freq"));
    match (base.get(), nominal.get()) {
        (None, Some(mhz)) if *mhz > 0 => {
            Fact::known(mhz.saturating_mul(1_000), nominal.source())
        }
        _ => with_reason(sources, base, "no driver exports a base frequency"),
    }
}

fn turbo(sources: &Sources) -> Fact<bool> {
    let is_off = sources.boolean(&format!("{CPUS}/intel_pstate/no_turbo"));
    if is_off.get().is_some() {
        return is_off.map(|is_off| !is_off);
    }
    let boost = sources.boolean(&format!("{CPUS}/cpufreq/boost"));
    with_reason(sources, boost, "no driver controls turbo frequencies")
}

fn energy_preference(sources: &Sources) -> Fact<String> {
    let file = format!("{CPUS}/cpu0/cpufreq/energy_performance_preference");
    with_reason(
        sources,
        sources.word(&file),
        "the frequency driver has no such preference",
    )
}

/// The fact; if its file does not exist, with this reason.
fn with_reason<T: Clone>(sources: &Sources, fact: Fact<T>, text: &str) -> Fact<T> {
    let fact = sources.explain(&fact, &Needs::options(&["CPU_FREQ"]));
    match fact.value() {
        Err(unknown) if unknown.code == Why::Absent => {
            let why = in_guest(sources, Unknown::new(Why::Absent, text));
            Fact::unknown(why, fact.source())
        }
        _ => fact,
    }
}

/// The highest counts of heat and of power limits of an online CPU.
fn throttles(sources: &Sources) -> (Fact<u64>, Fact<u64>) {
    let counts = cpus::online(sources).value().cloned().map_err(Clone::clone);
    let counts = counts.and_then(|online: CpuSet| {
        let counts = online.iter().map(|cpu| SlowDowns::now(sources.root, cpu));
        counts.collect::<Result<Vec<_>, _>>()
    });
    let counts = counts.map_err(|unknown| in_guest(sources, unknown));
    let highest = |of: fn(&SlowDowns) -> u64| {
        let counts = counts.as_ref().map_err(Clone::clone);
        let highest = counts.map(|all| all.iter().map(of).max().unwrap_or(0));
        Fact::of(highest, THROTTLES)
    };
    (
        highest(|counts| counts.core_heat.max(counts.package_heat)),
        highest(|counts| counts.power_limits),
    )
}

/// The sum of all CPUs in a line of `/proc/interrupts`.
fn machine_checks(sources: &Sources, label: &str) -> Fact<u64> {
    let file = Interrupts::FILE;
    let counted = sources.root.text(file).and_then(|text| {
        let lines = Interrupts::parse(&text, file)?;
        let cpus = lines.cpus();
        let counts = cpus.iter().filter_map(|cpu| lines.labelled(label, cpu));
        counts.reduce(u64::saturating_add).ok_or_else(|| {
            let text = format!("this kernel has no line {label} in {file}");
            Unknown::new(Why::NotApplicable, text)
        })
    });
    Fact::of(counted, format!("{file} {label}"))
}

fn hwlat(sources: &Sources) -> Fact<bool> {
    let tracers = tracing::tracers(sources, &tracing::tracefs(sources));
    tracers.map(|tracers| tracers.iter().any(|name| name == "hwlat"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::cpuinfo;
    use crate::test_tree::tree;

    const GUEST: &str =
        "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: hypervisor\n\n";
    const INTERRUPTS: &str = "           CPU0       CPU1\n\
        MCE:          0          1   Machine check exceptions\n\
        MCP:         12         13   Machine check polls\n";

    fn read(files: &[(&str, &str)]) -> Hardware {
        let release = ("/proc/sys/kernel/osrelease", "6.12.0");
        Hardware::read(&tree(&[&[release], files].concat()).sources())
    }

    /// Check a machine that has everything.
    #[test]
    fn everything() {
        let online = ("/sys/devices/system/cpu/online", "0-1\n");
        let msr = |name: &str| format!("/sys/bus/event_source/devices/msr/{name}");
        let cpu = |name: &str| format!("{CPUS}/{name}");
        let files = [
            (msr("type"), "9\n"),
            (msr("events/smi"), "event=0x04\n"),
            (msr("events/aperf"), "event=0x01\n"),
            (msr("events/mperf"), "event=0x02\n"),
            (cpu("cpu0/cpufreq/base_frequency"), "2600000\n"),
            (cpu("cpu0/cpufreq/energy_performance_preference"), "performance\n"),
            (cpu("intel_pstate/no_turbo"), "1\n"),
            (cpu("cpu0/thermal_throttle/core_throttle_count"), "1\n"),
            (cpu("cpu1/thermal_throttle/core_throttle_count"), "2\n"),
            (cpu("cpu1/thermal_throttle/package_throttle_count"), "7\n"),
            (cpu("cpu1/thermal_throttle/core_power_limit_count"), "3\n"),
        ];
        let mut files: Vec<_> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        files.extend([online, (Interrupts::FILE, INTERRUPTS)]);
        let read = read(&files);
        assert_eq!(read.smi_event.get().unwrap(), "msr/smi/");
        assert_eq!(read.frequency_source.get().unwrap(), "msr/aperf/, msr/mperf/");
        assert_eq!(
            (read.base_khz.get(), read.turbo.get()),
            (Some(&2_600_000), Some(&false))
        );
        assert_eq!(read.energy_preference.get().unwrap(), "performance");
        let counts = [&read.heat_throttles, &read.power_limits];
        assert_eq!(counts.map(Fact::get), [Some(&7), Some(&3)]);
        let checks = [&read.machine_checks, &read.machine_check_polls];
        assert_eq!(checks.map(Fact::get), [Some(&1), Some(&25)]);
    }

    /// Check the reasons in a virtual machine.
    #[test]
    fn in_a_guest() {
        let msr = ("/sys/bus/event_source/devices/msr/type", "9\n");
        let read = read(&[(cpuinfo::FILE, GUEST), msr]);
        let why = read.smi_event.value().unwrap_err();
        assert_eq!(why.code, Why::NotExported);
        assert_eq!(why.text, "no event smi in the msr PMU: a virtual machine (unnamed)");
        let why = read.frequency_source.value().unwrap_err();
        assert!(why.text.starts_with("no event aperf in the msr PMU, and "), "{why}");
        assert!(read.turbo.value().unwrap_err().text.contains("a virtual machine"));
        assert_eq!(read.machine_checks.value().unwrap_err().code, Why::Absent);
    }

    /// Check that Zen cores count SMIs with an event of their own, and that older ones do not.
    #[test]
    fn zen() {
        let core = ("/sys/bus/event_source/devices/cpu/type", "4\n");
        let of = |family: &str| {
            let info = format!(
                "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: {family}\nflags\t: x\n\n"
            );
            read(&[(cpuinfo::FILE, &info), core]).smi_event
        };
        assert_eq!(of("25").get().unwrap(), "cpu/event=0x2b/");
        assert_eq!(of("21").value().unwrap_err().text, "no msr PMU");
    }

    /// Check that the counters of cycles are used without the registers, and only both of them.
    #[test]
    fn cycles() {
        let cpu = |name: &str| format!("/sys/bus/event_source/devices/cpu/{name}");
        let [kind, cycles, reference] =
            ["type", "events/cpu-cycles", "events/ref-cycles"].map(cpu);
        let files = [
            (kind.as_str(), "4\n"),
            (cycles.as_str(), "event=0x3c\n"),
            (reference.as_str(), "event=0x00,umask=0x03\n"),
        ];
        let both = read(&files).frequency_source;
        assert_eq!(both.get().unwrap(), "cpu/cpu-cycles/, cpu/ref-cycles/");
        assert!(read(&files[..2]).frequency_source.get().is_none());
        let events = frequency_events(&tree(&files).root).unwrap();
        assert_eq!(events.map(|event| (event.pmu, event.config)), [(0, 0), (0, 9)]);
    }

    /// Check that the driver's figure is used without the registers, and the nominal frequency of
    /// CPPC without intel_pstate.
    #[test]
    fn other_sources() {
        let current = format!("{CPUS}/cpu0/cpufreq/scaling_cur_freq");
        let nominal = format!("{CPUS}/cpu0/acpi_cppc/nominal_freq");
        let boost = format!("{CPUS}/cpufreq/boost");
        let read =
            read(&[(&current, "1200000\n"), (&nominal, "2450\n"), (&boost, "1\n")]);
        assert_eq!(read.frequency_source.get().unwrap(), "scaling_cur_freq");
        assert_eq!(read.base_khz.get(), Some(&2_450_000));
        assert_eq!(read.turbo.get(), Some(&true));
    }
}
