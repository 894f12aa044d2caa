//! The table of metrics, by the type that they are read from.
//!
//! Each row is a key, its unit, which values are better, a name, a description, and the function that
//! reads it; each group of rows names its measurements. Keys contain the unit, followed only by the
//! statistic.

use stats::{Better, Distribution, Latencies, Spread, Unit};
use units::{Instructions, LengthUnit, Nanos, PerSecond, Ppm, Span};

use crate::calls::CallSummary;
use crate::cell::idle_stretches::IdleStretches;
use crate::cell::program_cost::ProgramCost;
use crate::explain::tick_kinds::TickKinds;
use crate::guests::GuestsSummary;
use crate::jitter::JitterSummary;
use crate::metrics::definition::Definition;
use crate::metrics::idle;
use crate::metrics::row::{
    Reading, Row, Rows, count, exact, hz, instructions, ns, ppm, rare, within,
};
use crate::nohz::{NohzStressSummary, NohzTestSummary};
use crate::noise::culprits::GapTotal;
use crate::program::ProgramSummary;
use crate::run::RunSummary;
use crate::scale::ScaleSummary;
use crate::slices::StepSlices;
use crate::ticks::CpuTicksSummary;
use crate::top::TopCpuSummary;
use crate::wakers::WakersSummary;
use crate::watch::WatchSummary;

/// The metrics with limits of host commands.
pub(crate) const NOISE_PPM: &str = "noise_ppm";
pub(crate) const GAP_NS_MAX: &str = "gap_ns_max";
pub(crate) const LATE_NS_MAX: &str = "late_ns_max";
pub(crate) const WAIT_NS_MAX: &str = "wait_ns_max";
pub(crate) const GUESTS_CPU_PPM: &str = "guests_cpu_ppm";
pub(crate) const GUESTS_SAVING_PPM: &str = "guests_saving_ppm";
pub(crate) const GUEST_WAKEUPS_HZ_MAX: &str = "idle_guest_wakeups_hz_max";
/// The cost of a kind of tick may differ by so many instructions for the same kernel: the path through
/// `rcu_sched_clock_irq` depends on the state of RCU, for all ticks of a boot or for some (4 on 6.12,
/// 6 on 6.1; docs/method.md).
const BY_STATE: f64 = 6.0;

macro_rules! table {
    ($all:ident: $($group:ident($summary:ty) $of:literal {
        $($key:tt $unit:ident $better:ident $name:literal $help:literal $read:expr;)+
    })+) => {
        $(pub(crate) const $group: Rows<$summary> = &[$(Row {
            about: Definition {
                key: $key,
                name: $name,
                unit: Unit::$unit,
                better: Better::$better,
                of: $of,
                help: $help,
            },
            read: $read,
        },)+];)+

        /// All rows of these groups.
        pub(crate) fn $all() -> impl Iterator<Item = &'static Definition> {
            std::iter::empty()$(.chain($group.iter().map(|row| &row.about)))+
        }
    };
}

// The metrics of cells; recordings have some of them, too.
table! { of_cells:
    GAPS(Spread) "noise" {
        "tick_instructions" Instructions Less "instructions per tick"
            "median gap as measured by the guest's loop, including one pass of the loop" median;
        "tick_instructions_mean" Instructions Less "instructions per tick, mean"
            "mean gap as measured by the guest's loop, including one pass of the loop" mean;
    }
    TICK(Spread) "noise, ticks" {
        "tick_kernel_instructions" Instructions Less "kernel instructions per tick"
            "median cost of a timer interrupt in the kernel, as counted by the counter" median;
        "tick_kernel_instructions_mean" Instructions Less "kernel instructions per tick, mean"
            "mean cost of a timer interrupt in the kernel" mean;
    }
    KINDS(TickKinds) "noise, ticks" {
        "tick_kind_instructions_min" Instructions Less "kind of tick, cheapest"
            "cheapest kind of tick that at least 10 % of the ticks belong to"
            |kinds| kind(kinds.frequent_min, kinds.deviations()[0]);
        "tick_kind_instructions_max" Instructions Less "kind of tick, most expensive"
            "most expensive kind of tick that at least 10 % of the ticks belong to"
            |kinds| kind(kinds.frequent_max, kinds.deviations()[1]);
    }
    IDLE(idle::Rates) "ticks" {
        "idle_instructions_hz" Hz Less "instructions while idle"
            "instructions per idle second" |rates| rates[0];
        "idle_timer_hz" Hz Less "timer interrupts while idle"
            "timer interrupts per idle second" |rates| rates[1];
    }
    STRETCHES(IdleStretches) "ticks" {
        "idle_stretch_ns_mean" Ns More "idle stretch, mean"
            "mean idle stretch of a CPU: guest time from a halt to the next instruction"
            idle::mean_stretch;
        "idle_skylake_c10_ppm" Ppm More "idle for 5 ms or more"
            "share of idle time in stretches of at least 5 ms, the target residency of Skylake's C10"
            |idle| idle::share(idle, "Skylake", "C10");
        "idle_sapphire_rapids_c6_ppm" Ppm More "idle for 800 µs or more"
            "share of idle time in stretches of at least 800 us, the target residency of Sapphire \
             Rapids' C6"
            |idle| idle::share(idle, "Sapphire Rapids", "C6");
    }
    CALL_COST(Spread) "calls" {
        "CALL_instructions" Instructions Less "instructions of CALL"
            "median cost of the call of that name: `getpid_instructions`" median;
        "CALL_instructions_mean" Instructions Less "instructions of CALL, mean"
            "mean cost of the call of that name" mean;
    }
    PROGRAM(ProgramSummary) "program" {
        "program_ns" Ns Less "run time of the command" "run time of the command, in guest time"
            |run| ns(Some(run.elapsed_ns));
    }
    PROGRAM_COST(ProgramCost) "program" {
        "program_instructions" Instructions Less "command's instructions"
            "instructions of the command, in user mode and the kernel"
            |cost| instructions(cost.command().map(|of| of.instructions));
        "program_kernel_instructions" Instructions Less "command's kernel instructions"
            "kernel instructions of the command"
            |cost| instructions(cost.command().map(|of| of.kernel_instructions));
        "guest_instructions" Instructions Less "guest's instructions"
            "instructions of the whole guest from the command's start to its end"
            |cost| instructions(Some(cost.instructions));
        "guest_kernel_instructions" Instructions Less "guest's kernel instructions"
            "kernel instructions of the whole guest from the command's start to its end"
            |cost| instructions(Some(cost.kernel_instructions));
        "unit_instructions" Instructions Less "instructions per unit of work"
            "instructions of the guest for a unit of the command's work, such as a request"
            |cost| exact(cost.unit.as_ref().map(|unit| unit.instructions), f64::from);
        "unit_kernel_instructions" Instructions Less "kernel instructions per unit"
            "kernel instructions of the guest for a unit of the command's work"
            |cost| exact(cost.unit.as_ref().map(|unit| unit.kernel_instructions), f64::from);
        "units_hz" Hz More "units of work" "units of work per second of guest time"
            |cost| hz(cost.unit.as_ref()?.units_hz);
    }
    NOHZ_COST(NohzTestSummary) "nohz" {
        "nohz_entry_instructions" Instructions Less "instructions to stop the tick"
            "instructions of all CPUs until the tick had stopped; missing if it did not stop" entry;
    }
    NOHZ_ENTRY(NohzTestSummary) "nohz" {
        "nohz_entry_ns" Ns Less "time to stop the tick"
            "time until the tick had stopped; missing if it did not stop"
            entry;
    }
    NOHZ_OBSERVED(NohzTestSummary) "nohz" {
        "nohz_timer_hz" Hz Less "timer interrupts, tick stopped"
            "timer interrupts per second after the tick had stopped" observed;
    }
    SLICES(StepSlices) "slices" {
        "slice_ns_mean" Ns Neither "slice, mean"
            "CPU time of the spinners divided by their involuntary switches; in exact mode instructions"
            |step| rare(ns(step.slice_ns.mean), step.turns_deviation.and_then(|off| ns(off.slice_ns)));
        "slice_switches_hz" Hz Less "involuntary switches"
            "involuntary switches of the spinners per second"
            |step| rare(hz(step.switches_hz), step.turns_deviation.and_then(|off| hz(off.switches_hz)));
        "spinner_passes_hz" Hz More "iterations of the loops"
            "iterations of the spinners' loops per second"
            |step| rare(hz(step.passes_hz), step.turns_deviation.and_then(|off| hz(off.passes_hz)));
    }
    NOISE(GapNumbers) "noise" {
        NOISE_PPM Ppm Less "OS noise" "OS noise" |gaps| ppm(gaps.noise_ppm);
        "gap_ns_p50" Ns Less "gap, median" "median length of the gaps" |gaps| ns(gaps.ns_p50);
        "gap_ns_p99" Ns Less "gap, p99" "length that 99 % of the gaps do not exceed"
            |gaps| ns(gaps.ns_p99);
        GAP_NS_MAX Ns Less "gap, longest" "longest gap" |gaps| ns(gaps.ns_max);
        "gaps_hz" Hz Less "gaps" "gaps per second" |gaps| hz(gaps.hz);
    }
    LATENCY(Distribution<Latencies>) "latency" {
        "late_ns_p50" Ns Less "wake-up latency, median"
            "median wake-up latency" |late| ns(late.p50);
        "late_ns_p99" Ns Less "wake-up latency, p99" "wake-up latency that 99 % do not exceed"
            |late| ns(late.p99);
        "late_ns_p99_9" Ns Less "wake-up latency, p99.9" "wake-up latency that 99.9 % do not exceed"
            |late| ns(late.p99_9);
        LATE_NS_MAX Ns Less "wake-up latency, longest"
            "longest wake-up latency" |late| ns(late.max);
    }
    CALL_TIME(CallSummary) "calls" {
        "CALL_ns_p50" Ns Less "time of CALL" "median time of the call of that name"
            |call| ns(call.step_ns.p50);
    }
}

// The metrics of recordings only.
table! { of_recordings:
    TICKS(CpuTicksSummary) "ticks" {
        "timer_hz" Hz Less "timer interrupts" "timer interrupts per second" |cpu| hz(cpu.timer_hz);
        "interrupts_hz" Hz Less "all interrupts"
            "interrupts per second" |cpu| hz(cpu.interrupts_hz);
        "busy_ppm" Ppm Neither "time not idle" "share of time that the CPU was not idle"
            |cpu| ppm(cpu.busy_ppm);
    }
    STRESS(NohzStressSummary) "nohz stress" {
        "nohz_failures" Count Less "tries without a stop" "tries in which the tick did not stop"
            |stress| count(Some(stress.failures));
        "nohz_entry_ns_p50" Ns Less "time to stop the tick, median"
            "median time until the tick had stopped"
            |stress| ns(stress.wait_ns?.p50);
        "nohz_entry_ns_max" Ns Less "time to stop the tick, longest"
            "longest time until the tick had stopped"
            |stress| ns(stress.wait_ns?.max);
    }
    JITTER(JitterSummary) "jitter" {
        "jitter_ns_p50" Ns Less "jitter, median"
            "median jitter of a test" |all| jitter(all, all.jitter.p50);
        "jitter_ns_p99" Ns Less "jitter, p99" "jitter that 99 % of the tests do not exceed"
            |all| jitter(all, all.jitter.p99);
        "jitter_ns_max" Ns Less "jitter, largest"
            "largest jitter of a test" |all| jitter(all, all.jitter.max);
        "loop_ns_mean" Ns Less "loop, mean"
            "mean run time of a loop" |all| jitter(all, all.loop_time.mean);
    }
    RUN(RunSummary) "run" {
        "run_ns" Ns Less "run time" "run time of the program" |run| ns(Some(run.elapsed_ns));
        "run_net_ns" Ns Less "net run time"
            "run time without interruptions, preemptions and steal time; on one CPU only"
            |run| ns(run.net_ns);
        "run_lost_ns" Ns Less "time lost" "run time lost to interruptions, preemptions and steal time"
            |run| ns(run.lost_ns);
        "run_cpu_ns" Ns Less "CPU time" "CPU time of the program, in user and kernel mode"
            |run| ns(Some(run.cpu_ns));
        "run_preempted" Count Less "preemptions" "involuntary context switches of the program"
            |run| count(Some(run.usage.involuntary));
        "run_noise_ppm" Ppm Less "runnable time lost"
            "share of its runnable time that the program lost"
            |run| ppm(run.interruptions.as_ref()?.noise_ppm);
        "run_gap_ns_max" Ns Less "interruption, longest" "longest interruption of the program"
            |run| ns(run.interruptions.as_ref()?.gap_ns.max);
    }
    WAKERS(WakersSummary) "wakers" {
        "wakeups_hz" Hz Less "wake-ups" "wake-ups per second" |wakers| hz(wakers.wakeups_hz);
    }
    WATCH(WatchSummary) "watch" {
        "wait_ppm" Ppm Less "waiting for a CPU"
            "time waiting for a CPU, as a share of the time running or waiting"
            |watch| ppm(watch.wait_ppm);
        "wait_ns_p50" Ns Less "wait, median" "median wait for a CPU"
            |watch| ns(watch.wait_lengths_ns.p50);
        "wait_ns_p99" Ns Less "wait, p99" "99th percentile of the waits for a CPU"
            |watch| ns(watch.wait_lengths_ns.p99);
        WAIT_NS_MAX Ns Less "wait, longest" "longest wait for a CPU"
            |watch| ns(watch.wait_lengths_ns.max);
        "interrupted_ppm" Ppm Less "interrupted"
            "time in interrupts and softirqs, as a share of the time on CPUs"
            |watch| ppm(watch.interrupted_ppm);
    }
    TOP(TopCpuSummary) "top" {
        "interrupts_ppm" Ppm Less "interrupts" "share of the time in interrupts and softirqs"
            |cpu| ppm(cpu.interrupts_ppm);
        "kernel_threads_ppm" Ppm Less "kernel threads" "share of the time of kernel threads"
            |cpu| ppm(cpu.kernel_ppm);
        "steal_time_ppm" Ppm Less "steal time" "share of the time that the hypervisor took"
            |cpu| ppm(cpu.steal_ppm);
        "queue_wait_ns_max" Ns Less "wait in the run queue, longest"
            "longest wait of a thread in the run queue of the CPU" |cpu| ns(cpu.wait_ns_max);
    }
    SCALE(ScaleSummary) "scale" {
        "scale_slowdown_ppm" Ppm Less "slowdown of the most ranks"
            "additional run time of the largest number of ranks, mean over all seeds"
            |scale| ppm(scale.counts.last().and_then(|count| Some(count.slowdown?.ppm)));
    }
    GUESTS(GuestsSummary) "guests" {
        GUESTS_CPU_PPM Ppm Less "CPU time of all guests"
            "CPU time of all guests" |guests| ppm(guests.cpu_ppm);
        "guests_wakeups_hz" Hz Less "wake-ups of all guests" "wake-ups per second of all guests"
            |guests| hz(guests.wakeups_hz);
        "idle_guest_cpu_ppm_max" Ppm Less "idle guest's CPU time, largest"
            "largest CPU time of an idle guest"
            |guests| exact(guests.idle_max(|one| Some(one.cpu_ppm?.get())), f64::from);
        GUEST_WAKEUPS_HZ_MAX Hz Less "idle vCPU's wake-ups, most"
            "most wake-ups per second and vCPU of an idle guest"
            |guests| exact(
                guests.idle_max(|one| Some(one.wakeups_per_vcpu_hz?.get())),
                f64::from,
            );
        GUESTS_SAVING_PPM Ppm Less "CPU time that could be saved"
            "CPU time saved if all idle guests woke up as rarely as the best"
            |guests| ppm(guests.saving_ppm);
    }
}

// The metrics of files of other tools only.
table! { of_files:
    INTERRUPT_LATENCY(Distribution<Latencies>) "imported" {
        "interrupt_late_ns_p50" Ns Less "timer interrupt latency, median"
            "median latency of the timer interrupt"
            |late| ns(late.p50);
        "interrupt_late_ns_p99" Ns Less "timer interrupt latency, p99"
            "latency that 99 % of the timer interrupts do not exceed"
            |late| ns(late.p99);
        "interrupt_late_ns_max" Ns Less "timer interrupt latency, longest"
            "longest latency of the timer interrupt"
            |late| ns(late.max);
    }
    USER_LATENCY(Distribution<Latencies>) "imported" {
        "user_late_ns_p50" Ns Less "user mode latency, median"
            "median latency until the thread is in user mode again"
            |late| ns(late.p50);
        "user_late_ns_p99" Ns Less "user mode latency, p99"
            "latency until user mode that 99 % do not exceed"
            |late| ns(late.p99);
        "user_late_ns_max" Ns Less "user mode latency, longest"
            "longest latency until user mode" |late| ns(late.max);
    }
    VALUE(Distribution<Latencies>) "imported" {
        "value_ns_p50" Ns Less "value, median" "median of the values in a log" |all| ns(all.p50);
        "value_ns_p99" Ns Less "value, p99" "value that 99 % do not exceed" |all| ns(all.p99);
        "value_ns_p99_9" Ns Less "value, p99.9"
            "value that 99.9 % do not exceed" |all| ns(all.p99_9);
        "value_ns_max" Ns Less "value, largest" "largest value" |all| ns(all.max);
    }
}

/// The numbers of gaps that are metrics.
pub(crate) struct GapNumbers {
    noise_ppm: Option<Ppm>,
    hz: Option<PerSecond>,
    ns_p50: Option<Nanos>,
    ns_p99: Option<Nanos>,
    ns_max: Option<Nanos>,
}

impl GapNumbers {
    /// From all gaps of a time, and those of them that were stored.
    pub(crate) fn of(elapsed: Nanos, total: GapTotal, stored: &[Span]) -> Self {
        let (noise_ppm, hz) =
            (Ppm::of(total.ns, elapsed), PerSecond::of(total.gaps, elapsed));
        Self::new(noise_ppm, hz, &total.lengths(stored))
    }

    pub(crate) fn new<K>(
        noise_ppm: Option<Ppm>,
        hz: Option<PerSecond>,
        of: &Distribution<K>,
    ) -> Self {
        Self { noise_ppm, hz, ns_p50: of.p50, ns_p99: of.p99, ns_max: of.max }
    }
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
