//! What the processor and its firmware counted on each measured CPU, and why not.

use facts::Facts;
use recording::{CpuHardware, HardwareCounts, Recording};
use summary::HardwareSummary;

use crate::document::Document;
use crate::document::table::Table;
use crate::document::text::{Text, text};
use crate::grouped::grouped;
use crate::measurements::worst::Worst;
use crate::number;

/// Of more CPUs than this, only [`WORST`] are listed, those with the most SMIs first.
const LISTED: usize = 24;
const WORST: usize = 16;

/// The section of a recording; nothing if these counts were not read.
pub(crate) fn hardware(recording: &Recording) -> Document {
    let Some(counts) = &recording.hardware else { return Document::default() };
    let is_known = |cpu: &CpuHardware| {
        let known =
            [cpu.smis.is_some(), cpu.throttled.is_some(), cpu.frequency.is_some()];
        known.contains(&true) || cpu.machine_checks.is_some()
    };
    let known = counts.cpus.iter().any(is_known).then(|| table(counts));
    let part = Document::default()
        .add_all(known)
        .lines(ranges(HardwareSummary::of(counts)))
        .lines(unknown(counts))
        .lines(hwlat(&recording.facts));
    Document::section("Below the kernel: firmware, heat, frequency", part)
}

fn table(counts: &HardwareCounts) -> Table {
    let smis = |cpu: &CpuHardware| Some(number::count(cpu.smis?));
    let cpus = Worst::of(&counts.cpus, LISTED, WORST, |cpu| {
        u32::try_from(cpu.smis?).ok().map(f64::from)
    });
    let count = |count: Option<u64>| number::known(count.map(number::count));
    let khz = |khz: Option<u64>| number::any(khz.map(frequency));
    let rest = cpus.rest("had", "the most SMIs", |cpu| number::known(smis(cpu)));
    Table::of(&cpus.listed)
        .number("CPU", |cpu| cpu.cpu.to_string())
        .number("SMIs", |cpu| number::known(smis(cpu)))
        .number("heat", |cpu| count(cpu.throttled.map(|it| it.core_heat.max(it.package_heat))))
        .number("power limit", |cpu| count(cpu.throttled.map(|it| it.power_limits)))
        .number("machine checks", |cpu| count(cpu.machine_checks))
        .number("frequency", |cpu| number::known(cpu.frequency.map(|it| frequency(it.mean_khz))))
        .numbers(["lowest", "highest"], |cpu| {
            let range = cpu.frequency.and_then(|it| it.range_khz);
            [range.map(|[low, _]| low), range.map(|[_, high]| high)].map(khz)
        })
        .table
        .rest(rest)
        .legend("\"heat\", \"power limit\": how often they throttled the CPU; \"frequency\": average while not idle.")
}

fn frequency(khz: u64) -> Text {
    number::frequency(khz.saturating_mul(1_000))
}

/// The range of the frequency, if it has one.
fn ranges(summary: HardwareSummary) -> Option<Text> {
    let [low, high] =
        summary.frequency_khz.filter(|[low, high]| low < high)?.map(frequency);
    Some(text!("All frequencies, averages and samples, were from {} to {}.", low, high))
}

/// The reasons why values are unknown, those with the same reason together.
fn unknown(counts: &HardwareCounts) -> Vec<Text> {
    let reasons = counts.unknown.iter().map(|(key, why)| (&why.text, words(key)));
    let sentence = |(why, names): (&String, Vec<String>)| {
        text!("Unknown: {}: {}.", names.join(", "), why.as_str())
    };
    grouped(reasons).into_iter().map(sentence).collect()
}

fn words(key: &str) -> String {
    match key {
        "smis" => "SMIs".to_owned(),
        other => other.replace('_', " "),
    }
}

/// How to find firmware that runs without an SMI, where the kernel has the tracer.
fn hwlat(facts: &Facts) -> Option<Text> {
    let tracefs = facts
        .tracing
        .tracefs
        .get()
        .filter(|_| facts.hardware.hwlat.get() == Some(&true))?;
    let command = Text::command(format!("echo hwlat > {tracefs}/current_tracer"));
    Some(text!(
        "This kernel's hwlat tracer also finds time that no SMI takes, with interrupts disabled: {} (nop \
         ends it), then read {}.",
        command,
        Text::name(format!("{tracefs}/trace"))
    ))
}

#[cfg(test)]
mod tests {
    use facts::{Fact, Unknown, Why};
    use insta::assert_snapshot;
    use recording::{Frequency, Throttled};
    use units::Cpu;

    use super::*;
    use crate::example::{self, METAL};
    use crate::terminal::full_text;

    fn cpu(number: u32) -> CpuHardware {
        let throttled = Throttled {
            core_heat: 2,
            package_heat: 3,
            heat_ms: Some(7),
            power_limits: 1,
        };
        let high = 3_400_000 - u64::from(number) * 1_000;
        let range_khz = (number > 0).then_some([2_800_000, high]);
        CpuHardware {
            cpu: Cpu::new(number),
            smis: Some(number.into()),
            throttled: Some(throttled),
            frequency: Some(Frequency { mean_khz: 3_200_000, range_khz }),
            machine_checks: None,
            machine_check_polls: Some(0),
        }
    }

    fn text_of(counts: HardwareCounts, has_hwlat: bool) -> String {
        let mut recording = example::noise(METAL, 1);
        recording.hardware = Some(counts);
        recording.facts.hardware.hwlat = Fact::known(has_hwlat, "");
        recording.facts.tracing.tracefs =
            Fact::known("/sys/kernel/tracing".to_owned(), "");
        full_text(&hardware(&recording))
    }

    /// Check the section of a machine that has most of it, with one CPU and with many, and of one that
    /// has nothing.
    #[test]
    fn sections() {
        let why = Unknown::new(Why::NotApplicable, "/proc/interrupts has no line MCE");
        let unknown = [("machine_checks".to_owned(), why)].into();
        let some = HardwareCounts {
            cpus: (0..2).map(cpu).collect(),
            unknown,
            ..Default::default()
        };
        assert_snapshot!(text_of(some, true));
        let many =
            HardwareCounts { cpus: (0..101).map(cpu).collect(), ..Default::default() };
        assert_snapshot!(text_of(many, false));
        let why =
            |key: &str, text: &str| (key.to_owned(), Unknown::new(Why::Absent, text));
        let smis = "no event smi in the msr PMU";
        let unknown =
            [why("smis", smis), why("frequency", smis), why("throttled", "no counts")];
        let none = CpuHardware {
            smis: None,
            throttled: None,
            frequency: None,
            machine_check_polls: None,
            ..cpu(0)
        };
        let nothing = HardwareCounts {
            cpus: vec![none],
            unknown: unknown.into(),
            ..Default::default()
        };
        assert_snapshot!(text_of(nothing, false));
    }
}
