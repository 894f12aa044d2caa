//! The summary of one guest run of the lab.
//!
//! In exact mode the numbers are instructions, from two sources side by side: the
//! guest's own clock, which shows each instruction as one of its ticks, and the lab's
//! counter, which sees which CPU executed what. In timed mode a cell's summary is the
//! measurement's ordinary one.
//!
//! Cannot see how long anything takes: instructions are not time.

use serde::Serialize;
use units::{Cpu, Instructions, Nanos, PerSecond, Span, TscHz};

use crate::{
    CallsSummary, CheckSummary, Culprit, NohzCost, NohzTestSummary, NoiseSummary,
    SlicesCost, SlicesSummary, Spread, TickKinds, TicksSummary,
};

/// The kernel's names for the timer interrupt's entry on x86: since 5.8, and before.
const TIMER_ENTRIES: [&str; 2] =
    ["asm_sysvec_apic_timer_interrupt", "apic_timer_interrupt"];

/// Whether this is the kernel's name of the timer interrupt's entry.
pub fn is_timer_entry(entry: &str) -> bool {
    TIMER_ENTRIES.contains(&entry)
}

/// How often the kernel was entered in one way, and what it then cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryInput<'a> {
    /// The kernel's name of the entry.
    pub entry: &'a str,
    /// Whether a program was interrupted, rather than the kernel.
    pub from_user: bool,
    /// Kernel instructions, and how often that many.
    pub kernel: &'a [(Instructions, u64)],
}

/// What the lab's counter counted on one CPU in one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountsInput<'a> {
    /// The CPU.
    pub cpu: Cpu,
    /// Instructions executed by programs.
    pub user: Instructions,
    /// Instructions executed by the kernel.
    pub kernel: Instructions,
    /// Instructions from one step mark to the next, and how often that many.
    pub steps: &'a [(Instructions, u64)],
    /// The ways in which the kernel was entered.
    pub entries: Vec<EntryInput<'a>>,
}

impl<'a> CountsInput<'a> {
    pub(crate) fn timer_entries(&self) -> u64 {
        self.timer().flat_map(|entry| entry.kernel.iter()).map(|(_, count)| count).sum()
    }

    fn timer(&self) -> impl Iterator<Item = &EntryInput<'a>> {
        self.entries.iter().filter(|entry| is_timer_entry(entry.entry))
    }
}

/// What one cell found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CellSummary {
    /// What a tick costs a spinning CPU, exactly.
    TickCost(TickCost),
    /// What idle CPUs still execute, exactly.
    IdleCost(IdleCost),
    /// What single requests cost, exactly.
    CallCosts(CallCosts),
    /// Whether a tick stopped, and what was executed meanwhile, exactly.
    NohzCost(NohzCost),
    /// How long processes ran at a time, and what was executed meanwhile, exactly.
    SlicesCost(SlicesCost),
    /// How long processes ran at a time.
    Slices(SlicesSummary),
    /// Whether a tick stopped, in time.
    Nohz(NohzTestSummary),
    /// What a spinning CPU lost, in time.
    Noise(NoiseSummary),
    /// Timer interrupts in time.
    Ticks(TicksSummary),
    /// How long single requests took.
    Calls(CallsSummary),
    /// Ticks, then noise, in time.
    Check(CheckSummary),
}

/// The gaps one CPU's loop saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapsInput<'a> {
    /// The loop's own pass, which was taken off each gap.
    pub pass: Nanos,
    /// The gaps.
    pub gaps: &'a [Span],
}

/// What one tick costs a spinning CPU, in two independent views.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TickCost {
    /// Gaps as the guest's loop sees them, its own pass included; null where several
    /// CPUs share the guest's clock, which then shows what the others executed, too.
    pub gap_instructions: Option<Spread>,
    /// Kernel instructions of each timer interrupt that interrupted the program, until a
    /// program runs again; null where nothing was counted.
    pub kernel_instructions: Option<Spread>,
    /// The kinds of these timer interrupts; null where nothing was counted.
    pub kinds: Option<TickKinds>,
    /// Who took the gaps, the most first, in the guest's time; empty where nobody watched, or
    /// several CPUs share the guest's clock.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub culprits: Vec<Culprit>,
}

impl TickCost {
    /// Summarises gaps, seen with a clock of that frequency (`None` where several CPUs
    /// share it), and what was counted on the same CPUs, both phase by phase.
    pub fn of(
        clock: Option<TscHz>,
        gaps: &[Vec<GapsInput<'_>>],
        counts: Option<&[Vec<CountsInput<'_>>]>,
    ) -> Self {
        let seen = |hz: TscHz| {
            let of_cpu = move |cpu: &GapsInput<'_>| {
                let whole = |gap: &Span| hz.ticks(gap.length + cpu.pass).ticks();
                let gaps: Vec<u64> = cpu.gaps.iter().map(whole).collect();
                gaps.into_iter().map(|length| (Instructions::new(length), 1))
            };
            Spread::phased(gaps.iter().map(|phase| phase.iter().flat_map(of_cpu)))
        };
        let counted = |phases: &[Vec<CountsInput<'_>>]| {
            Spread::phased(phases.iter().map(|cpus| {
                let timer = cpus.iter().flat_map(CountsInput::timer);
                let from_user = timer.filter(|entry| entry.from_user);
                from_user.flat_map(|entry| entry.kernel.iter().copied())
            }))
        };
        Self {
            gap_instructions: clock.map(seen),
            kernel_instructions: counts.map(counted),
            kinds: None,
            culprits: Vec::new(),
        }
    }
}

/// What was seen of one idle CPU: all phases of the counter, and all of `/proc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleInput<'a> {
    /// The CPU.
    pub cpu: Cpu,
    /// Timer interrupts by `/proc/interrupts`; `None` is "not known".
    pub timer: Option<u64>,
    /// What was counted, phase by phase.
    pub phases: Vec<CountsInput<'a>>,
}

/// What idle CPUs still execute.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IdleCost {
    /// How long they were idle, in the guest's time.
    pub idle_ns: Nanos,
    /// Into how many intervals that time was cut.
    pub intervals: u64,
    /// CPU by CPU, in the order given.
    pub cpus: Vec<CpuIdleCost>,
    /// Kernel instructions of each timer interrupt, on all these CPUs.
    pub tick_kernel_instructions: Spread,
    /// The kinds of these timer interrupts.
    pub kinds: TickKinds,
    /// What ran on these CPUs, the most first: gaps are stretches of work. Empty where nothing
    /// was watched.
    pub culprits: Vec<Culprit>,
}

/// What one idle CPU executed. Timer interrupts are counted twice, independently.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuIdleCost {
    /// The CPU.
    pub cpu: Cpu,
    /// All instructions that it executed.
    pub instructions: Instructions,
    /// Those of the kernel.
    pub kernel_instructions: Instructions,
    /// All instructions a second; null for no time.
    pub instructions_hz: Option<PerSecond>,
    /// The largest distance of an interval's rate from that; null for fewer than two
    /// intervals.
    pub instructions_hz_deviation: Option<PerSecond>,
    /// Timer interrupts by `/proc/interrupts`; null where not known.
    pub timer_interrupts: Option<u64>,
    /// The same a second.
    pub timer_hz: Option<PerSecond>,
    /// The largest distance of an interval's rate from that, by the counter; null as above.
    pub timer_hz_deviation: Option<PerSecond>,
    /// How often the counter saw the kernel enter by the timer's entry.
    pub timer_entries: u64,
    /// The same a second.
    pub timer_entries_hz: Option<PerSecond>,
}

impl IdleCost {
    /// Summarises what was seen in intervals of those lengths.
    pub fn of(intervals: &[Nanos], cpus: &[IdleInput<'_>]) -> Self {
        let timer = |interval: usize| {
            let of_cpu = move |cpu: &'_ IdleInput<'_>| -> Vec<(Instructions, u64)> {
                let counts = cpu.phases.get(interval).into_iter();
                let entries = counts.flat_map(CountsInput::timer);
                entries.flat_map(|entry| entry.kernel.iter().copied()).collect()
            };
            cpus.iter().flat_map(of_cpu)
        };
        Self {
            idle_ns: intervals.iter().copied().sum(),
            intervals: u64::try_from(intervals.len()).unwrap_or(u64::MAX),
            cpus: cpus.iter().map(|cpu| CpuIdleCost::of(intervals, cpu)).collect(),
            tick_kernel_instructions: Spread::phased((0..intervals.len()).map(timer)),
            kinds: TickKinds::default(),
            culprits: Vec::new(),
        }
    }

    /// The CPUs where the two counts of timer interrupts differ by more than one at each
    /// edge of each interval: `/proc` is read just before it and just after.
    pub fn contradictions(&self) -> impl Iterator<Item = &CpuIdleCost> {
        let edges = self.intervals.saturating_mul(2);
        let differs = move |cpu: &&CpuIdleCost| {
            let by_proc = cpu.timer_interrupts.unwrap_or(cpu.timer_entries);
            by_proc.abs_diff(cpu.timer_entries) > edges
        };
        self.cpus.iter().filter(differs)
    }
}

impl IdleInput<'_> {
    fn timer(&self) -> impl Iterator<Item = (Instructions, u64)> + '_ {
        let entries = self.phases.iter().flat_map(CountsInput::timer);
        entries.flat_map(|entry| entry.kernel.iter().copied())
    }
}

impl CpuIdleCost {
    fn of(intervals: &[Nanos], input: &IdleInput<'_>) -> Self {
        let idle = intervals.iter().copied().sum();
        let sum = |part: fn(&CountsInput<'_>) -> Instructions| {
            input.phases.iter().map(part).sum::<Instructions>()
        };
        let all = sum(|phase| phase.user + phase.kernel);
        let entries = input.timer().map(|(_, count)| count).sum();
        Self {
            cpu: input.cpu,
            instructions: all,
            kernel_instructions: sum(|phase| phase.kernel),
            instructions_hz: PerSecond::of(all.get(), idle),
            instructions_hz_deviation: deviation(
                PerSecond::of(all.get(), idle),
                intervals,
                input.phases.iter().map(|phase| (phase.user + phase.kernel).get()),
            ),
            timer_interrupts: input.timer,
            timer_hz: input.timer.and_then(|count| PerSecond::of(count, idle)),
            timer_hz_deviation: deviation(
                PerSecond::of(entries, idle),
                intervals,
                input.phases.iter().map(CountsInput::timer_entries),
            ),
            timer_entries: entries,
            timer_entries_hz: PerSecond::of(entries, idle),
        }
    }
}

/// The largest distance of an interval's rate from that of all.
fn deviation(
    whole: Option<PerSecond>,
    intervals: &[Nanos],
    counts: impl Iterator<Item = u64>,
) -> Option<PerSecond> {
    let rates = intervals.iter().zip(counts).filter_map(|(span, count)| {
        Some((PerSecond::of(count, *span)?.get() - whole?.get()).abs())
    });
    let furthest = rates.max_by(f64::total_cmp).filter(|_| intervals.len() > 1);
    furthest.map(PerSecond::new)
}

/// What single requests to the kernel cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallCosts {
    /// Call by call, in the order asked.
    pub calls: Vec<CallCost>,
}

/// What one request costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallCost {
    /// The call: `getpid`.
    pub name: String,
    /// How many repeats were counted.
    pub repeats: u64,
    /// Instructions, the program's and the kernel's, from one repeat to the next.
    pub instructions: Spread,
    /// Instructions that programs executed in all of the call's phases.
    pub user_instructions: Instructions,
    /// Instructions that the kernel executed in all of the call's phases.
    pub kernel_instructions: Instructions,
}

impl CallCosts {
    /// Summarises calls: the name of each, and what was counted in its phases.
    pub fn of<'a>(
        calls: impl IntoIterator<Item = (&'a str, &'a [CountsInput<'a>])>,
    ) -> Self {
        let cost = |(name, phases): (&str, &[CountsInput<'_>])| {
            let steps = phases.iter().map(|counts| counts.steps.iter().copied());
            let instructions = Spread::phased(steps);
            CallCost {
                name: name.to_owned(),
                repeats: instructions.count(),
                instructions,
                user_instructions: phases.iter().map(|counts| counts.user).sum(),
                kernel_instructions: phases.iter().map(|counts| counts.kernel).sum(),
            }
        };
        Self { calls: calls.into_iter().map(cost).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMER: &str = "asm_sysvec_apic_timer_interrupt";

    fn values(pairs: &[(u64, u64)]) -> Vec<(Instructions, u64)> {
        pairs.iter().map(|&(value, count)| (Instructions::new(value), count)).collect()
    }

    fn counts<'a>(
        cpu: u32,
        entries: &[(&'a str, bool)],
        kernel: &'a [(Instructions, u64)],
    ) -> CountsInput<'a> {
        let entry = |&(entry, from_user)| EntryInput { entry, from_user, kernel };
        CountsInput {
            cpu: Cpu::new(cpu),
            user: Instructions::new(40),
            kernel: Instructions::new(5_000),
            steps: kernel,
            entries: entries.iter().map(entry).collect(),
        }
    }

    fn gaps(lengths: &[u64]) -> Vec<Span> {
        let gap = |(at, length): (usize, &u64)| Span {
            start: Nanos::from_millis(4 * at as u64),
            length: Nanos::from_nanos(*length),
        };
        lengths.iter().enumerate().map(gap).collect()
    }

    /// Check that gaps get their pass back, are whole instructions on a clock that is not
    /// quite 1 GHz, and that only the timer's way in from a program counts as a tick.
    #[test]
    fn tick_cost() {
        let gaps = gaps(&[2571, 2571, 2_999_997]);
        let kernel = values(&[(2574, 2)]);
        let counts = [vec![counts(
            0,
            &[(TIMER, true), (TIMER, false), ("asm_common_interrupt", true)],
            &kernel,
        )]];
        let seen = [vec![GapsInput { pass: Nanos::from_nanos(13), gaps: &gaps }]];
        let found = TickCost::of(TscHz::new(999_999_000), &seen, Some(&counts));
        let expected = serde_json::json!({
            "gap_instructions": {
                "agreed": null, "mean": 1_001_725.0, "mean_deviation": null, "p50": 2584,
                "p50_deviation": null, "p99": 3_000_007,
                "values": [[2584, 2], [3_000_007, 1]],
            },
            "kernel_instructions": {
                "agreed": 2574, "mean": 2574.0, "mean_deviation": null, "p50": 2574,
                "p50_deviation": null, "p99": 2574, "values": [[2574, 2]],
            },
            "kinds": null,
        });
        assert_eq!(serde_json::to_value(CellSummary::TickCost(found)).unwrap(), expected);
    }

    /// Check that a shared clock and a missing counter are null, never "no tick".
    #[test]
    fn unknown_is_null() {
        let gaps = gaps(&[2571]);
        let seen = [vec![GapsInput { pass: Nanos::from_nanos(13), gaps: &gaps }]];
        let found = TickCost::of(None, &seen, None);
        assert_eq!((found.gap_instructions, found.kernel_instructions), (None, None));
        let found = TickCost::of(None, &[], Some(&[]));
        assert_eq!(found.kernel_instructions, Some(Spread::default()));
    }

    /// Check the keys, and that counts of all phases are added up.
    #[test]
    fn idle_cost() {
        let kernel = values(&[(1200, 3), (1500, 1)]);
        let phase = || counts(0, &[(TIMER, false)], &kernel);
        let cpu = IdleInput {
            cpu: Cpu::new(0),
            timer: Some(9),
            phases: vec![phase(), phase()],
        };
        let found = IdleCost::of(&[Nanos::from_secs(1); 2], &[cpu]);
        assert_eq!(found.contradictions().count(), 0);
        let expected = serde_json::json!({
            "idle_ns": 2_000_000_000_u64,
            "intervals": 2,
            "cpus": [{
                "cpu": 0, "instructions": 10_080, "kernel_instructions": 10_000,
                "instructions_hz": 5040.0, "instructions_hz_deviation": 0.0,
                "timer_interrupts": 9, "timer_hz": 4.5, "timer_hz_deviation": 0.0,
                "timer_entries": 8, "timer_entries_hz": 4.0,
            }],
            "tick_kernel_instructions": {
                "agreed": null, "mean": 1275.0, "mean_deviation": 0.0, "p50": 1200,
                "p50_deviation": 0, "p99": 1500, "values": [[1200, 6], [1500, 2]],
            },
            "kinds": {
                "frequent_min": null, "frequent_max": null, "ticks": 0,
                "ticks_not_listed": 0, "kinds": [],
            },
            "culprits": [],
        });
        assert_eq!(serde_json::to_value(CellSummary::IdleCost(found)).unwrap(), expected);
    }

    /// Check that the two counts may differ by one at each edge and no more, and that an
    /// unknown one contradicts nothing.
    #[test]
    fn contradictions() {
        let kernel = values(&[(1200, 10)]);
        let doubtful = |timer| {
            let phases = vec![counts(0, &[(TIMER, false)], &kernel)];
            let cpu = IdleInput { cpu: Cpu::new(0), timer, phases };
            IdleCost::of(&[Nanos::from_secs(1)], &[cpu]).contradictions().count() == 1
        };
        let found = [Some(7), Some(8), Some(12), Some(13), None].map(doubtful);
        assert_eq!(found, [true, false, false, true, false]);
    }

    /// Check the keys, and that a call's repeats are those that were counted.
    #[test]
    fn call_costs() {
        let steps = values(&[(412, 99), (2996, 1)]);
        let counts = counts(0, &[], &steps);
        let counts = [counts];
        let found = CallCosts::of([("getpid", counts.as_slice())]);
        let expected = serde_json::json!({"calls": [{
            "name": "getpid", "repeats": 100,
            "instructions": {
                "agreed": 412, "mean": 437.84, "mean_deviation": null, "p50": 412,
                "p50_deviation": null, "p99": 412, "values": [[412, 99], [2996, 1]],
            },
            "user_instructions": 40, "kernel_instructions": 5000,
        }]});
        assert_eq!(
            serde_json::to_value(CellSummary::CallCosts(found)).unwrap(),
            expected
        );
    }
}
