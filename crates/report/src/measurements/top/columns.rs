//! The columns of the tables in `top`: their values for sorting, and their texts.

use std::cmp::Ordering;

use recording::CulpritKind;
use summary::{TopCpuSummary, TopSource};
use units::{Nanos, PerSecond, Ppm};

use crate::document::text::Text;
use crate::measurements::noise::culprits::kind_word;
use crate::number;

/// A number of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CpuColumn {
    Ticks,
    Programs,
    Kernel,
    Interrupts,
    Steal,
    Quota,
    InterruptionMax,
    Wait,
    WaitMax,
}

/// A column of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceColumn {
    Name,
    Cpu,
    Share,
    Runs,
    Longest,
    Threads,
}

/// A value and how it is printed.
enum Value {
    Rate(PerSecond),
    Share(Ppm),
    Time(Nanos),
}

impl CpuColumn {
    /// All of them, in order.
    pub(crate) const ALL: [Self; 9] = [
        Self::Ticks,
        Self::Programs,
        Self::Kernel,
        Self::Interrupts,
        Self::Steal,
        Self::Quota,
        Self::InterruptionMax,
        Self::Wait,
        Self::WaitMax,
    ];

    /// The heading; `%`: its numbers are in percent, without a unit.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Self::Ticks => "tick/s",
            Self::Programs => "prog%",
            Self::Kernel => "kthr%",
            Self::Interrupts => "irq%",
            Self::Steal => "steal%",
            Self::Quota => "quota%",
            Self::InterruptionMax => "irq max",
            Self::Wait => "wait%",
            Self::WaitMax => "wait max",
        }
    }

    fn value_of(self, cpu: &TopCpuSummary) -> Option<Value> {
        match self {
            Self::Ticks => cpu.ticks_hz.map(Value::Rate),
            Self::Programs => cpu.programs_ppm.map(Value::Share),
            Self::Kernel => cpu.kernel_ppm.map(Value::Share),
            Self::Interrupts => cpu.interrupts_ppm.map(Value::Share),
            Self::Steal => cpu.steal_ppm.map(Value::Share),
            Self::Quota => cpu.quota_ppm.map(Value::Share),
            Self::InterruptionMax => cpu.interruption_ns_max.map(Value::Time),
            Self::Wait => cpu.wait_ppm.map(Value::Share),
            Self::WaitMax => cpu.wait_ns_max.map(Value::Time),
        }
    }

    /// The value, for sorting; the lowest if it is not known.
    pub(crate) fn value(self, cpu: &TopCpuSummary) -> f64 {
        match self.value_of(cpu) {
            None => -1.0,
            Some(Value::Rate(rate)) => rate.get(),
            Some(Value::Share(share)) => share.get(),
            Some(Value::Time(time)) => time.as_secs_f64(),
        }
    }

    /// The text below its heading.
    pub(crate) fn text(self, cpu: &TopCpuSummary) -> String {
        match self.value_of(cpu) {
            None => number::NONE.to_owned(),
            Some(Value::Rate(rate)) => number::bare_rate(rate).to_string(),
            Some(Value::Share(share)) => percent(share),
            Some(Value::Time(time)) => number::duration(time).to_string(),
        }
    }
}

impl SourceColumn {
    /// All of them, in order.
    pub(crate) const ALL: [Self; 6] =
        [Self::Name, Self::Cpu, Self::Share, Self::Runs, Self::Longest, Self::Threads];
    /// Those by which sources can be sorted, in the order of a key.
    pub(crate) const SORTABLE: [Self; 4] =
        [Self::Share, Self::Runs, Self::Longest, Self::Name];

    /// The heading, and whether cells are aligned to the right.
    pub(crate) fn head(self) -> (&'static str, bool) {
        match self {
            Self::Name => ("source", false),
            Self::Cpu => ("CPU", true),
            Self::Share => ("time%", true),
            Self::Runs => ("runs/s", true),
            Self::Longest => ("longest", true),
            Self::Threads => ("", false),
        }
    }

    pub(crate) fn text(self, source: &TopSource) -> String {
        let none = || number::NONE.to_owned();
        match self {
            Self::Name => match source.tid {
                Some(0) => format!("{}, others", source.name),
                Some(tid) => format!("{} {tid}", source.name),
                None => source.name.clone(),
            },
            Self::Cpu => source.cpu.map_or_else(none, |cpu| cpu.to_string()),
            Self::Share => source.ppm.map_or_else(none, percent),
            Self::Runs => number::any(source.runs_hz.map(number::bare_rate)).to_string(),
            Self::Longest => number::any(source.ns_max).to_string(),
            Self::Threads => what(source).to_string(),
        }
    }

    /// The largest number first, names in the order of letters.
    pub(crate) fn compare(self, one: &TopSource, other: &TopSource) -> Ordering {
        let rate = |source: &TopSource| source.runs_hz.map_or(-1.0, PerSecond::get);
        match self {
            Self::Name | Self::Cpu | Self::Threads => one.name.cmp(&other.name),
            Self::Share => other.ns.cmp(&one.ns),
            Self::Runs => rate(other).total_cmp(&rate(one)),
            Self::Longest => other.ns_max.cmp(&one.ns_max),
        }
    }
}

/// A share in percent without its unit, of at most five characters: `0.04`, `12.3`, `1234`.
pub(crate) fn percent(share: Ppm) -> String {
    match share.get() / 1e4 {
        0.0 => "0".to_owned(),
        percent if percent < 0.005 => "<0.01".to_owned(),
        percent if percent < 9.995 => format!("{percent:.2}"),
        percent if percent < 99.95 => format!("{percent:.1}"),
        percent => format!("{percent:.0}"),
    }
}

/// The kind of an interrupt; the threads of a unit or a program.
pub(crate) fn what(source: &TopSource) -> Text {
    match &source.threads[..] {
        _ if source.own => "noisefloor".into(),
        [] if source.kernel => "kernel thread".into(),
        [] if source.kind == CulpritKind::Thread => "program".into(),
        [] => kind_word(source.kind).into(),
        threads => Text::first(2, threads.iter().map(Text::name).collect(), ", "),
    }
}

/// The share of the time in which a CPU was used.
pub(crate) fn used(cpu: &TopCpuSummary) -> f64 {
    let shares = [cpu.programs_ppm, cpu.kernel_ppm, cpu.interrupts_ppm];
    shares.into_iter().flatten().map(Ppm::get).sum()
}

/// The columns with a number of any CPU.
pub(crate) fn known<'a>(
    cpus: impl Iterator<Item = &'a TopCpuSummary> + Clone,
) -> Vec<CpuColumn> {
    let is_known =
        |column: &CpuColumn| cpus.clone().any(|cpu| column.value_of(cpu).is_some());
    CpuColumn::ALL.into_iter().filter(is_known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the decimals of percentages.
    #[test]
    fn percentages() {
        let percent = |ppm| percent(Ppm::new(ppm));
        let found =
            [0.0, 20.0, 400.0, 99_949.0, 123_400.0, 999_600.0, 12_340_000.0].map(percent);
        assert_eq!(found, ["0", "<0.01", "0.04", "9.99", "12.3", "100", "1234"]);
    }
}
