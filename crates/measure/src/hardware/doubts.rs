//! The doubts that the counts of a measurement's CPUs raise: a changed frequency, throttling, machine
//! checks.

use recording::{Code, CpuHardware, Doubt, Frequency, HardwareCounts, Throttled};
use units::{Cpu, CpuSet};

use crate::doubts::label;

/// The doubts about CPUs with these counts.
pub(crate) fn of_hardware(counts: &HardwareCounts) -> Vec<Doubt> {
    let doubts = [changed_frequency(counts), throttling(counts), machine_checks(counts)];
    doubts.into_iter().flatten().collect()
}

/// The CPUs for which there is such a value, and the one with the most of it.
fn most<T>(
    counts: &HardwareCounts,
    of: impl Fn(&CpuHardware) -> Option<T>,
    rank: impl Fn(&T) -> u64,
) -> Option<(CpuSet, Cpu, T)> {
    let found = || counts.cpus.iter().filter_map(|own| Some((own.cpu, of(own)?)));
    let (cpu, most) = found().max_by_key(|(_, value)| rank(value))?;
    Some((found().map(|(cpu, _)| cpu).collect(), cpu, most))
}

fn changed_frequency(counts: &HardwareCounts) -> Option<Doubt> {
    let change = |[low, high]: &[u64; 2]| (high - low) * 1_000 / high.max(&1);
    let changed = |own: &CpuHardware| own.frequency?.changed();
    let (cpus, cpu, [low, high]) = most(counts, changed, change)?;
    let [low, high] = [low, high].map(gigahertz);
    let which =
        if cpus.len() == 1 { String::new() } else { format!(", most on CPU {cpu}") };
    let text = format!(
        "{}: the frequency changed during the measurement{which}: {low} to {high} GHz; changes \
         below {} % do not count",
        label(&cpus),
        Frequency::CHANGE_PERCENT
    );
    Some(Doubt::new(Code::FrequencyChanged, text))
}

#[expect(clippy::cast_precision_loss, reason = "a frequency, for a sentence")]
fn gigahertz(khz: u64) -> String {
    format!("{:.2}", khz as f64 / 1e6)
}

fn throttling(counts: &HardwareCounts) -> Option<Doubt> {
    let throttled = |own: &CpuHardware| own.throttled.filter(|it| it.times() > 0);
    let (cpus, cpu, worst) = most(counts, throttled, Throttled::times)?;
    let which = if cpus.len() == 1 { String::new() } else { format!(", most CPU {cpu}") };
    let text = format!(
        "{}: throttled{which}: {}; code runs slower meanwhile",
        label(&cpus),
        causes(&worst)
    );
    Some(Doubt::new(Code::HardwareThrottled, text))
}

/// `3 times by heat, for 21 ms, and 2 times by a power limit`.
fn causes(throttled: &Throttled) -> String {
    let heat = throttled.core_heat.max(throttled.package_heat);
    let times = |count: u64| {
        if count == 1 { "once".to_owned() } else { format!("{count} times") }
    };
    let long = throttled.heat_ms.map_or_else(String::new, |ms| format!(", for {ms} ms"));
    let heat = (heat > 0).then(|| format!("{} by heat{long}", times(heat)));
    let limits = throttled.power_limits;
    let power = (limits > 0).then(|| format!("{} by a power limit", times(limits)));
    heat.into_iter().chain(power).collect::<Vec<_>>().join(", and ")
}

fn machine_checks(counts: &HardwareCounts) -> Option<Doubt> {
    let checks = |own: &CpuHardware| own.machine_checks.filter(|count| *count > 0);
    let (cpus, _, most) = most(counts, checks, |count| *count)?;
    let text = format!(
        "{}: up to {most} machine check exceptions during the measurement: the hardware has \
         reported an error; see the kernel's log",
        label(&cpus)
    );
    Some(Doubt::new(Code::MachineCheck, text))
}
