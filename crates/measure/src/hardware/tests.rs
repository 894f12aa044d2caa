use std::fs;
use std::path::Path;

use recording::Code;

use super::*;
use crate::hardware::samples::Samples;

const INTERRUPTS: &str = "           CPU0       CPU1\n\
    MCE:          0          0   Machine check exceptions\n\
    MCP:         12         13   Machine check polls\n";

/// A machine whose files the test writes.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine.write("proc/version", "Linux version");
        machine.write("proc/interrupts", INTERRUPTS);
        for cpu in 0..2 {
            machine.heat(cpu, [0, 0, 0]);
            machine.frequency(cpu, 3_000_000);
            machine.idle(cpu, 7);
        }
        machine
    }

    fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        let file = self.0.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn of_cpu(&self, cpu: u32, file: &str, value: impl ToString) {
        let file = format!("sys/devices/system/cpu/cpu{cpu}/{file}");
        self.write(&file, value.to_string() + "\n");
    }

    /// The counts of heat, its time in milliseconds, and those of power limits.
    fn heat(&self, cpu: u32, [times, ms, limits]: [u64; 3]) {
        self.of_cpu(cpu, "thermal_throttle/core_throttle_count", times);
        self.of_cpu(cpu, "thermal_throttle/core_throttle_total_time_ms", ms);
        self.of_cpu(cpu, "thermal_throttle/core_power_limit_count", limits);
    }

    fn frequency(&self, cpu: u32, khz: u64) {
        self.of_cpu(cpu, "cpufreq/scaling_cur_freq", khz);
    }

    fn idle(&self, cpu: u32, entered: u64) {
        self.of_cpu(cpu, "cpuidle/state0/name", "C1");
        self.of_cpu(cpu, "cpuidle/state0/latency", 1);
        self.of_cpu(cpu, "cpuidle/state0/time", 1);
        self.of_cpu(cpu, "cpuidle/state0/usage", entered);
    }

    fn root(&self) -> Root {
        Root::tree(self.0.path()).unwrap()
    }

    fn files(&self) -> Files {
        let folder = self.0.path().to_owned();
        Arc::new(move || Root::tree(Path::new(&folder)).unwrap())
    }

    /// Counts on both CPUs while these changes are made.
    fn counts(&self, change: impl FnOnce()) -> HardwareCounts {
        let facts = Facts::read(&Root::live());
        let cpus = [0, 1].map(Cpu::new).into_iter().collect();
        let meter =
            HardwareMeter::with(self.files(), Events::none(), &cpus, true, &facts);
        change();
        meter.end()
    }
}

/// Check that heat, power limits and machine checks during a measurement are counted, and are doubts,
/// and that those before it are not.
#[test]
fn heat_and_machine_checks() {
    let machine = Machine::new();
    machine.heat(0, [5, 40, 1]);
    let quiet = machine.counts(|| {});
    assert_eq!(of_hardware(&quiet), []);
    assert_eq!(
        quiet.cpus[0].throttled,
        Some(Throttled { heat_ms: Some(0), ..Throttled::default() })
    );
    assert_eq!(quiet.cpus[1].machine_check_polls, Some(0));
    assert_eq!(quiet.unknown.keys().collect::<Vec<_>>(), ["smis"]);
    let counts = machine.counts(|| {
        machine.heat(0, [8, 61, 3]);
        machine.write(
            "proc/interrupts",
            INTERRUPTS.replace("12", "14").replace("0\u{20}  M", "2   M"),
        );
    });
    let throttled =
        Throttled { core_heat: 3, package_heat: 0, heat_ms: Some(21), power_limits: 2 };
    assert_eq!(counts.cpus[0].throttled, Some(throttled));
    assert_eq!(
        counts.cpus.iter().map(|cpu| cpu.machine_checks).collect::<Vec<_>>(),
        [Some(0), Some(2)]
    );
    assert_eq!(counts.cpus[0].machine_check_polls, Some(2));
    let doubts = of_hardware(&counts);
    let [throttled, checks] = &doubts[..] else { panic!("{doubts:?}") };
    assert_eq!(throttled.code, Code::HardwareThrottled);
    let text = "CPU 0: throttled: 3 times by heat, for 21 ms, and 2 times by a power limit; code runs \
                slower meanwhile";
    assert_eq!(throttled.text, text);
    assert_eq!(checks.code, Code::MachineCheck);
    assert!(
        checks.text.starts_with("CPU 1: up to 2 machine check exceptions"),
        "{checks}"
    );
}

/// Check that a frequency that changes by 5 % or more between two samples is a doubt, and that a sample
/// of a CPU that was idle does not count.
#[test]
fn frequencies() {
    let machine = Machine::new();
    let cpus: CpuSet = [0, 1].map(Cpu::new).into_iter().collect();
    let ranges = |is_busy, second: u64| {
        let mut samples = Samples::new(is_busy);
        for (khz, entered) in [(3_000_000, 7), (3_000_000, 7), (second, 7), (800_000, 8)]
        {
            machine.frequency(0, khz);
            machine.idle(0, entered);
            samples.take(&machine.root(), &cpus);
        }
        samples.ranges()
    };
    assert_eq!(ranges(true, 3_000_000)[&Cpu::new(0)], [800_000, 3_000_000]);
    assert_eq!(ranges(true, 3_000_000)[&Cpu::new(1)], [3_000_000, 3_000_000]);
    let without_idle = ranges(false, 2_800_000);
    assert_eq!(without_idle[&Cpu::new(0)], [2_800_000, 3_000_000]);
    let frequency =
        |range_khz| Some(Frequency { mean_khz: 2_900_000, range_khz: Some(range_khz) });
    let mut counts = machine.counts(|| {});
    counts.cpus[0].frequency = frequency([2_800_000, 3_000_000]);
    counts.cpus[1].frequency = frequency([2_900_000, 3_000_000]);
    let doubts = of_hardware(&counts);
    assert_eq!(doubts.len(), 1);
    let text = "CPU 0: the frequency changed during the measurement: 2.80 to 3.00 GHz; changes below \
                5 % do not count";
    assert_eq!((doubts[0].code, doubts[0].text.as_str()), (Code::FrequencyChanged, text));
    counts.cpus[1].frequency = frequency([1_000_000, 3_000_000]);
    let text = of_hardware(&counts)[0].text.clone();
    assert!(
        text.starts_with("CPUs 0,1: ") && text.contains("most on CPU 1: 1.00 to"),
        "{text}"
    );
}

/// Check that the frequency without registers is the one at the end, and that nothing is known of a
/// machine without any of the files.
#[test]
fn sources() {
    let machine = Machine::new();
    let counts = machine.counts(|| machine.frequency(1, 2_000_000));
    let means = counts.cpus.iter().map(|cpu| cpu.frequency.unwrap().mean_khz);
    assert_eq!(means.collect::<Vec<_>>(), [3_000_000, 2_000_000]);
    let empty = Machine(tempfile::tempdir().unwrap());
    empty.write("proc/version", "Linux version");
    let counts = empty.counts(|| {});
    let unknown =
        ["frequency", "machine_check_polls", "machine_checks", "smis", "throttled"];
    assert_eq!(counts.unknown.keys().collect::<Vec<_>>(), unknown);
    let none = |cpu: &CpuHardware| cpu.throttled.is_none() && cpu.frequency.is_none();
    assert!(counts.cpus.iter().all(none) && of_hardware(&counts).is_empty());
}
