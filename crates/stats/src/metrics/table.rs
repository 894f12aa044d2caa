//! The table of metrics, by the type that they are read from.
//!
//! Each row is a key, its unit, which values are better, a description, and the function that reads
//! it; each group of rows names its measurements. Keys contain the unit, followed only by the
//! statistic.

use recording::LengthKind;
use units::{Instructions, LengthUnit, Nanos, PerSecond, Ppm};

use crate::distribution::Latencies;
use crate::metrics::{Metric, each, idle_rates, of_call, parts, sum, together, whole};
use crate::{
    CallCost, CallSummary, CellSummary, CpuNoiseSummary, CpuTicksSummary, Distribution,
    GuestsSummary, IdleStretches, ImportedSummary, JitterSummary, LengthsSummary,
    NohzStressSummary, NohzTestSummary, ProgramCost, ProgramSummary, RunSummary, Spread,
    StepSlices, Summary, TickKinds, WakersSummary,
};

/// Stands for the name of a call in a key.
pub(super) const CALL: &str = "CALL";
/// The metrics with limits of host commands.
pub(crate) const NOISE_PPM: &str = "noise_ppm";
pub(crate) const GAP_NS_MAX: &str = "gap_ns_max";
pub(crate) const LATE_NS_MAX: &str = "late_ns_max";
pub(crate) const GUESTS_CPU_PPM: &str = "guests_cpu_ppm";
pub(crate) const GUESTS_SAVING_PPM: &str = "guests_saving_ppm";
pub(crate) const GUEST_WAKEUPS_HZ_MAX: &str = "idle_guest_wakeups_hz_max";
/// Another run may differ by this many times the deviation of a single phase, if the metric
/// depends on rare events.
pub(super) const RARE: f64 = 2.0;
/// The cost of a kind of tick may differ by so many instructions for the same kernel: the path through
/// `rcu_sched_clock_irq` depends on the state of RCU, for all ticks of a boot or for some (4 on 6.12,
/// 6 on 6.1; docs/method.md).
const BY_STATE: f64 = 6.0;

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds; in a cell of exact mode, one of them is an instruction.
    Ns,
    /// Parts per million.
    Ppm,
    /// Events per second.
    Hz,
    /// Instructions.
    Instructions,
    /// A number of events.
    Count,
}

/// Which values of a metric are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Smaller ones.
    Less,
    /// Larger ones.
    More,
    /// Neither: it depends on the purpose.
    Neither,
}

/// The definition of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition {
    /// Its name; `CALL` in it stands for the name of a call.
    pub key: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Which values are better.
    pub better: Better,
    /// Whether a recording has a value for each CPU.
    pub per_cpu: bool,
    /// The measurements with this metric: `noise, ticks`.
    pub of: &'static str,
    /// Its description, a noun phrase.
    pub help: &'static str,
}

/// A value, and by how much it may differ in another run of the same kernel.
pub(super) type Reading = (f64, f64);

/// Instructions and timer interrupts per second, of all idle CPUs of a cell together.
pub(super) type IdleRates = [Option<Reading>; 2];

/// A row of the table: a metric, and the function that reads it.
pub(super) struct Row<S: 'static> {
    pub(super) about: Definition,
    pub(super) read: fn(&S) -> Option<Reading>,
}

pub(super) type Rows<S> = &'static [Row<S>];

macro_rules! table {
    ($all:ident: $($group:ident($summary:ty) $per_cpu:ident $of:literal {
        $($key:tt $unit:ident $better:ident $help:literal $read:expr;)+
    })+) => {
        $(pub(super) const $group: Rows<$summary> = &[$(Row {
            about: Definition {
                key: $key,
                unit: Unit::$unit,
                better: Better::$better,
                per_cpu: table!(@$per_cpu),
                of: $of,
                help: $help,
            },
            read: $read,
        },)+];)+

        /// All rows of these groups.
        pub(super) fn $all() -> impl Iterator<Item = &'static Definition> {
            std::iter::empty()$(.chain($group.iter().map(|row| &row.about)))+
        }
    };
    (@each) => { true };
    (@whole) => { false };
}

// The metrics of cells; recordings have some of them, too.
table! { of_cells:
    GAPS(Spread) whole "noise" {
        "tick_instructions" Instructions Less
            "median gap as measured by the guest's loop, including one pass of the loop" median;
        "tick_instructions_mean" Instructions Less "mean gap, measured in the same way" mean;
    }
    TICK(Spread) whole "noise, ticks" {
        "tick_kernel_instructions" Instructions Less
            "median cost of a timer interrupt in the kernel, as counted by the counter" median;
        "tick_kernel_instructions_mean" Instructions Less
            "mean cost of a timer interrupt in the kernel" mean;
    }
    KINDS(TickKinds) whole "noise, ticks" {
        "tick_kind_instructions_min" Instructions Less
            "cheapest kind of tick that at least 10 % of the ticks belong to"
            |kinds| kind(kinds.frequent_min, kinds.deviations()[0]);
        "tick_kind_instructions_max" Instructions Less
            "most expensive kind of tick that at least 10 % of the ticks belong to"
            |kinds| kind(kinds.frequent_max, kinds.deviations()[1]);
    }
    IDLE(IdleRates) whole "ticks" {
        "idle_instructions_hz" Hz Less "instructions per idle second" |rates| rates[0];
        "idle_timer_hz" Hz Less "timer interrupts per idle second" |rates| rates[1];
    }
    STRETCHES(IdleStretches) whole "ticks" {
        "idle_stretch_ns_mean" Ns More
            "mean idle stretch of a CPU: guest time from a halt to the next instruction"
            |idle| ns(idle.mean_ns);
        "idle_skylake_c10_ppm" Ppm More
            "share of idle time in stretches of at least 5 ms, the target residency of Skylake's C10"
            |idle| ppm(idle.share("Skylake", "C10"));
        "idle_sapphire_rapids_c6_ppm" Ppm More
            "the same for 800 us, that of Sapphire Rapids' C6"
            |idle| ppm(idle.share("Sapphire Rapids", "C6"));
    }
    CALL_COST(Spread) whole "calls" {
        "CALL_instructions" Instructions Less
            "median cost of the call of that name: `getpid_instructions`" median;
        "CALL_instructions_mean" Instructions Less "mean cost of the call" mean;
    }
    PROGRAM(ProgramSummary) whole "program" {
        "program_ns" Ns Less "run time of the command, in guest time"
            |run| ns(Some(run.elapsed_ns));
    }
    PROGRAM_COST(ProgramCost) whole "program" {
        "program_instructions" Instructions Less
            "instructions of the command, in user mode and the kernel"
            |cost| instructions(cost.command().map(|of| of.instructions));
        "program_kernel_instructions" Instructions Less
            "those of the kernel"
            |cost| instructions(cost.command().map(|of| of.kernel_instructions));
        "guest_instructions" Instructions Less
            "instructions of the whole guest from the command's start to its end"
            |cost| instructions(Some(cost.instructions));
        "guest_kernel_instructions" Instructions Less
            "those of the kernel"
            |cost| instructions(Some(cost.kernel_instructions));
        "unit_instructions" Instructions Less
            "instructions of the guest for a unit of the command's work, such as a request"
            |cost| exact(cost.unit.as_ref().map(|unit| unit.instructions), f64::from);
        "unit_kernel_instructions" Instructions Less
            "those of the kernel"
            |cost| exact(cost.unit.as_ref().map(|unit| unit.kernel_instructions), f64::from);
        "units_hz" Hz More "units of work per second of guest time"
            |cost| hz(cost.unit.as_ref()?.units_hz);
    }
    NOHZ_COST(NohzTestSummary) whole "nohz" {
        "nohz_entry_instructions" Instructions Less
            "instructions of all CPUs until the tick had stopped; missing if it did not stop" entry;
    }
    NOHZ_ENTRY(NohzTestSummary) whole "nohz" {
        "nohz_entry_ns" Ns Less "time until the tick had stopped; missing if it did not stop"
            entry;
    }
    NOHZ_OBSERVED(NohzTestSummary) whole "nohz" {
        "nohz_timer_hz" Hz Less "timer interrupts per second after the tick had stopped" observed;
    }
    SLICES(StepSlices) whole "slices" {
        "slice_ns_mean" Ns Neither
            "CPU time of the spinners divided by their involuntary switches; in exact mode instructions"
            |step| rare(ns(step.slice_ns.mean), step.turns_deviation.and_then(|off| ns(off.slice_ns)));
        "slice_switches_hz" Hz Less "involuntary switches of the spinners per second"
            |step| rare(hz(step.switches_hz), step.turns_deviation.and_then(|off| hz(off.switches_hz)));
        "spinner_passes_hz" Hz More "iterations of the spinners' loops per second"
            |step| rare(hz(step.passes_hz), step.turns_deviation.and_then(|off| hz(off.passes_hz)));
    }
    NOISE(Gaps) each "noise" {
        NOISE_PPM Ppm Less "OS noise" |gaps| ppm(gaps.noise_ppm);
        "gap_ns_p50" Ns Less "median length of the gaps" |gaps| ns(gaps.ns_p50);
        "gap_ns_p99" Ns Less "length that 99 % of the gaps do not exceed"
            |gaps| ns(gaps.ns_p99);
        GAP_NS_MAX Ns Less "longest gap" |gaps| ns(gaps.ns_max);
        "gaps_hz" Hz Less "gaps per second" |gaps| hz(gaps.hz);
    }
    LATENCY(Distribution<Latencies>) each "latency" {
        "late_ns_p50" Ns Less "median wake-up latency" |late| ns(late.p50);
        "late_ns_p99" Ns Less "wake-up latency that 99 % do not exceed"
            |late| ns(late.p99);
        "late_ns_p99_9" Ns Less "wake-up latency that 99.9 % do not exceed"
            |late| ns(late.p99_9);
        LATE_NS_MAX Ns Less "longest wake-up latency" |late| ns(late.max);
    }
    CALL_TIME(CallSummary) whole "calls" {
        "CALL_ns_p50" Ns Less "median time of the call" |call| ns(call.step_ns.p50);
    }
}

// The metrics of recordings only.
table! { of_recordings:
    TICKS(CpuTicksSummary) each "ticks" {
        "timer_hz" Hz Less "timer interrupts per second" |cpu| hz(cpu.timer_hz);
        "interrupts_hz" Hz Less "interrupts per second" |cpu| hz(cpu.interrupts_hz);
        "busy_ppm" Ppm Neither "share of time that the CPU was not idle"
            |cpu| ppm(cpu.busy_ppm);
    }
    STRESS(NohzStressSummary) whole "nohz stress" {
        "nohz_failures" Count Less "tries in which the tick did not stop"
            |stress| count(Some(stress.failures));
        "nohz_entry_ns_p50" Ns Less "median time until the tick had stopped"
            |stress| ns(stress.wait_ns?.p50);
        "nohz_entry_ns_max" Ns Less "longest time until the tick had stopped"
            |stress| ns(stress.wait_ns?.max);
    }
    JITTER(JitterSummary) whole "jitter" {
        "jitter_ns_p50" Ns Less "median jitter of a test" |all| jitter(all, all.jitter.p50);
        "jitter_ns_p99" Ns Less "jitter that 99 % of the tests do not exceed"
            |all| jitter(all, all.jitter.p99);
        "jitter_ns_max" Ns Less "largest jitter of a test" |all| jitter(all, all.jitter.max);
        "loop_ns_mean" Ns Less "mean run time of a loop" |all| jitter(all, all.loop_time.mean);
    }
    RUN(RunSummary) whole "run" {
        "run_ns" Ns Less "run time of the program" |run| ns(Some(run.elapsed_ns));
        "run_net_ns" Ns Less
            "run time without interruptions, preemptions and steal time; on one CPU only"
            |run| ns(run.net_ns);
        "run_lost_ns" Ns Less "the rest of the run time" |run| ns(run.lost_ns);
        "run_cpu_ns" Ns Less "CPU time of the program, in user and kernel mode"
            |run| ns(Some(run.cpu_ns));
        "run_preempted" Count Less "involuntary context switches of the program"
            |run| count(Some(run.usage.involuntary));
        "run_noise_ppm" Ppm Less "share of its runnable time that the program lost"
            |run| ppm(run.interruptions.as_ref()?.noise_ppm);
        "run_gap_ns_max" Ns Less "longest interruption of the program"
            |run| ns(run.interruptions.as_ref()?.gap_ns.max);
    }
    WAKERS(WakersSummary) whole "wakers" {
        "wakeups_hz" Hz Less "wake-ups per second" |wakers| hz(wakers.wakeups_hz);
    }
    GUESTS(GuestsSummary) whole "guests" {
        GUESTS_CPU_PPM Ppm Less "CPU time of all guests" |guests| ppm(guests.cpu_ppm);
        "guests_wakeups_hz" Hz Less "wake-ups per second of all guests"
            |guests| hz(guests.wakeups_hz);
        "idle_guest_cpu_ppm_max" Ppm Less "largest CPU time of an idle guest"
            |guests| exact(guests.idle_max(|one| Some(one.cpu_ppm?.get())), f64::from);
        GUEST_WAKEUPS_HZ_MAX Hz Less "most wake-ups per second and vCPU of an idle guest"
            |guests| exact(
                guests.idle_max(|one| Some(one.wakeups_per_vcpu_hz?.get())),
                f64::from,
            );
        GUESTS_SAVING_PPM Ppm Less
            "CPU time saved if all idle guests woke up as rarely as the best"
            |guests| ppm(guests.saving_ppm);
    }
}

// The metrics of files of other tools only.
table! { of_files:
    INTERRUPT_LATENCY(Distribution<Latencies>) each "imported" {
        "interrupt_late_ns_p50" Ns Less "median latency of the timer interrupt"
            |late| ns(late.p50);
        "interrupt_late_ns_p99" Ns Less "latency that 99 % of the timer interrupts do not exceed"
            |late| ns(late.p99);
        "interrupt_late_ns_max" Ns Less "longest latency of the timer interrupt"
            |late| ns(late.max);
    }
    USER_LATENCY(Distribution<Latencies>) each "imported" {
        "user_late_ns_p50" Ns Less "median latency until the thread is in user mode again"
            |late| ns(late.p50);
        "user_late_ns_p99" Ns Less "latency until user mode that 99 % do not exceed"
            |late| ns(late.p99);
        "user_late_ns_max" Ns Less "longest latency until user mode" |late| ns(late.max);
    }
    VALUE(Distribution<Latencies>) each "imported" {
        "value_ns_p50" Ns Less "median of the values in a log" |all| ns(all.p50);
        "value_ns_p99" Ns Less "value that 99 % do not exceed" |all| ns(all.p99);
        "value_ns_p99_9" Ns Less "value that 99.9 % do not exceed" |all| ns(all.p99_9);
        "value_ns_max" Ns Less "largest value" |all| ns(all.max);
    }
}

/// The numbers of gaps that are metrics.
pub(super) struct Gaps {
    noise_ppm: Option<Ppm>,
    hz: Option<PerSecond>,
    ns_p50: Option<Nanos>,
    ns_p99: Option<Nanos>,
    ns_max: Option<Nanos>,
}

impl Gaps {
    fn of(cpu: &CpuNoiseSummary) -> Self {
        let (of, noise_ppm, hz) = (&cpu.gap_ns, cpu.noise_ppm, cpu.gaps_hz);
        Self { noise_ppm, hz, ns_p50: of.p50, ns_p99: of.p99, ns_max: of.max }
    }

    fn of_other_tool(lengths: &LengthsSummary) -> Self {
        let (of, noise_ppm, hz) = (&lengths.ns, lengths.noise_ppm, lengths.gaps_hz);
        Self { noise_ppm, hz, ns_p50: of.p50, ns_p99: of.p99, ns_max: of.max }
    }
}

fn noise(cpus: &[CpuNoiseSummary]) -> Vec<Metric> {
    parts(NOISE, cpus.iter().map(|cpu| (Some(cpu.cpu), Gaps::of(cpu))))
}

/// Lengths with a tag have no metrics: other logs may not have it.
fn imported(summary: &ImportedSummary) -> Vec<Metric> {
    let of = |lengths: &LengthsSummary| {
        let latency = |rows| parts(rows, [(lengths.cpu, lengths.ns)]);
        match lengths.kind {
            LengthKind::TimerInterruptLatency => latency(INTERRUPT_LATENCY),
            LengthKind::WakeupLatency => latency(LATENCY),
            LengthKind::UserLatency => latency(USER_LATENCY),
            LengthKind::Gap => {
                parts(NOISE, [(lengths.cpu, Gaps::of_other_tool(lengths))])
            }
            LengthKind::Value => latency(VALUE),
        }
    };
    let untagged = summary.lengths.iter().filter(|lengths| lengths.tag.is_none());
    untagged.flat_map(of).collect()
}

/// The metrics of a recording, CPU by CPU.
pub fn metrics(summary: &Summary) -> Vec<Metric> {
    match summary {
        Summary::Noise(of) => noise(&of.cpus),
        Summary::Ticks(ticks) => each(TICKS, &ticks.cpus, |cpu| cpu.cpu),
        Summary::Check(check) => {
            let ticks = each(TICKS, &check.rest.cpus, |cpu| cpu.cpu);
            [ticks, noise(&check.noise.cpus)].concat()
        }
        Summary::Calls(calls) => {
            let calls = calls.calls.iter();
            calls.flat_map(|call| of_call(CALL_TIME, &call.name, call)).collect()
        }
        Summary::Latency(latency) => {
            parts(LATENCY, latency.cpus.iter().map(|cpu| (Some(cpu.cpu), cpu.late_ns)))
        }
        Summary::Run(run) => whole(RUN, run),
        Summary::Program(run) => whole(PROGRAM, run),
        Summary::Wakers(wakers) => whole(WAKERS, wakers),
        Summary::NohzTest(test) => {
            [whole(NOHZ_ENTRY, test), whole(NOHZ_OBSERVED, test)].concat()
        }
        Summary::NohzStress(stress) => whole(STRESS, stress),
        Summary::Jitter(jitter) => whole(JITTER, jitter),
        Summary::Slices(slices) => whole(SLICES, &slices.results),
        Summary::Guests(guests) => whole(GUESTS, guests),
        Summary::Imported(summary) => imported(summary),
    }
}

/// The metrics of a cell, all CPUs together.
pub fn cell_metrics(summary: &CellSummary) -> Vec<Metric> {
    match summary {
        CellSummary::TickCost(cost) => [
            whole(GAPS, cost.gap_instructions.as_ref()),
            whole(TICK, cost.kernel_instructions.as_ref()),
            whole(KINDS, cost.kinds.as_ref()),
        ]
        .concat(),
        CellSummary::IdleCost(cost) => [
            whole(IDLE, &idle_rates(cost)),
            whole(STRETCHES, cost.idle().as_ref()),
            whole(TICK, &cost.tick_kernel_instructions),
            whole(KINDS, &cost.kinds),
        ]
        .concat(),
        CellSummary::CallCosts(costs) => {
            let of = |call: &CallCost| of_call(CALL_COST, &call.name, &call.instructions);
            costs.calls.iter().flat_map(of).collect()
        }
        CellSummary::NohzCost(cost) => {
            let entry = whole(NOHZ_COST, &cost.test);
            [entry, whole(NOHZ_OBSERVED, &cost.test)].concat()
        }
        CellSummary::SlicesCost(cost) => whole(SLICES, &cost.summary.results),
        CellSummary::ProgramCost(cost) => {
            [whole(PROGRAM, &cost.run), whole(PROGRAM_COST, cost)].concat()
        }
        CellSummary::Measured(Summary::Ticks(ticks)) => {
            let timer = sum(&ticks.cpus, |cpu| cpu.timer_hz);
            whole(IDLE, &[None, timer])
        }
        CellSummary::Measured(summary) => together(metrics(summary)),
    }
}

/// A value that is the same in each run, or that has no phases to derive a tolerance from.
pub(super) fn exact<T>(value: Option<T>, number: fn(T) -> f64) -> Option<Reading> {
    value.map(|value| (number(value), 0.0))
}

fn ns(length: Option<Nanos>) -> Option<Reading> {
    exact(length, |length| length.get() as f64)
}

fn ppm(share: Option<Ppm>) -> Option<Reading> {
    exact(share, Ppm::get)
}

fn hz(rate: Option<PerSecond>) -> Option<Reading> {
    exact(rate, PerSecond::get)
}

fn instructions(cost: Option<Instructions>) -> Option<Reading> {
    exact(cost, |cost| cost.get() as f64)
}

fn count(count: Option<u64>) -> Option<Reading> {
    exact(count, |count| count as f64)
}

/// A value that another run may differ from by this much.
pub(super) fn within(value: Option<Reading>, off: Option<f64>) -> Option<Reading> {
    value.map(|(value, _)| (value, off.unwrap_or(0.0)))
}

/// A value that rare events affect, and the largest deviation of a phase.
pub(super) fn rare(value: Option<Reading>, off: Option<Reading>) -> Option<Reading> {
    within(value, off.map(|(off, _)| off * RARE))
}

fn median(spread: &Spread) -> Option<Reading> {
    within(instructions(spread.p50), instructions(spread.p50_deviation).map(|off| off.0))
}

fn mean(spread: &Spread) -> Option<Reading> {
    rare(exact(spread.mean, f64::from), exact(spread.mean_deviation, f64::from))
}

fn kind(cost: Option<Instructions>, off: Option<u64>) -> Option<Reading> {
    within(instructions(cost), off.map(|off| (off as f64).max(BY_STATE)))
}

fn entry(test: &NohzTestSummary) -> Option<Reading> {
    let wait = test.wait_ns.filter(|_| test.entered == Some(true));
    rare(ns(wait), ns(test.wait_deviation_ns))
}

/// The tolerance is one interrupt at each edge: `/proc` is read just before and just after.
fn observed(test: &NohzTestSummary) -> Option<Reading> {
    let observed = test.observed.as_ref()?;
    within(hz(observed.timer_hz), PerSecond::of(2, observed.span_ns).map(PerSecond::get))
}

/// `None` in ticks of the clock: a summary does not contain their length.
fn jitter(summary: &JitterSummary, length: Option<u64>) -> Option<Reading> {
    match summary.unit {
        LengthUnit::Ns => count(length),
        LengthUnit::Ticks => None,
    }
}
