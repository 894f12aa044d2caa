//! From a recording to its summary: fields are moved, nothing is worked out here.

use recording::{
    Blamed, CallsSeries, CallsSpec, CheckSeries, CpuLatency, CpuNoise, Ended, IdleUse,
    Interruptions, JitterSeries, JitterSpec, LatencySeries, LatencySpec, LoopTimes,
    LostWakeups, Meanwhile, NohzSeries, NohzSpec, NoiseSeries, Partner, RunSeries,
    RunSpec, Share, Steal, ThreadOwner, TickSample, TicksSeries, Usage, WakersSeries,
    WakersSpec, Wakeup, WokenThread,
};
use stats::{
    CallInput, CallsSummary, CheckSummary, CountInput, Culprit, EndedSummary,
    IdleStateInput, InterruptionsInput, JitterInput, JitterSummary, LatencyInput,
    LatencySummary, LatencyTerms, LineInput, LoopInput, LostInput, LostTestsInput,
    LostWakeupsInput, MeanwhileInput, NohzInput, NohzStressSummary, NohzTestSummary,
    NoiseInput, NoiseSummary, OwnerInput, PartnerInput, RunInput, RunSummary, ShareInput,
    StealInput, TickInput, TickReturnInput, TicksSummary, UsageSummary, Verdict,
    WakersSummary, WakeupInput, WokenInput,
};

/// The summary of what `noise` saw.
pub fn noise_summary(series: &NoiseSeries) -> NoiseSummary {
    summary_of(series, &noise_inputs(series))
}

fn noise_inputs(series: &NoiseSeries) -> Vec<NoiseInput<'_>> {
    series.cpus.iter().map(|cpu| noise_input(series, cpu)).collect()
}

fn summary_of(series: &NoiseSeries, inputs: &[NoiseInput<'_>]) -> NoiseSummary {
    let source = series.source.map(|source| source.name().to_owned());
    NoiseSummary { source, ..NoiseSummary::of(inputs) }
}

/// The summary of what `ticks` saw in all intervals.
pub fn ticks_summary(series: &TicksSeries) -> TicksSummary {
    TicksSummary::of(series.samples.iter().flat_map(tick_inputs))
}

/// The summary of one interval of `ticks`.
pub fn sample_summary(sample: &TickSample) -> TicksSummary {
    TicksSummary::of(tick_inputs(sample))
}

/// The summary of what `check` saw.
pub fn check_summary(series: &CheckSeries) -> CheckSummary {
    let inputs = noise_inputs(&series.noise);
    let noise = summary_of(&series.noise, &inputs);
    let verdict = Verdict::of(&noise, &inputs);
    CheckSummary { rest: ticks_summary(&series.rest), verdict, noise }
}

/// The summary of what `calls` saw.
pub fn calls_summary(spec: &CallsSpec, series: &CallsSeries) -> CallsSummary {
    let inputs = series
        .calls
        .iter()
        .map(|seen| CallInput { name: seen.call.name(), steps: &seen.step_ns });
    CallsSummary::of(spec.cpu, inputs)
}

/// The summary of what `latency` saw.
pub fn latency_summary(spec: &LatencySpec, series: &LatencySeries) -> LatencySummary {
    let (interval, timer) = (spec.interval_ns, spec.timer.name());
    let terms = LatencyTerms { interval, timer, fifo: spec.fifo };
    LatencySummary::of(terms, series.cpus.iter().map(latency_input))
}

fn latency_input(cpu: &CpuLatency) -> LatencyInput<'_> {
    let wakeup = |seen: &Wakeup| {
        let Wakeup { expiries, late_ns: late } = *seen;
        WakeupInput { expiries, late }
    };
    let lost = |lost: LostWakeups| LostWakeupsInput {
        wakeups: lost.wakeups,
        samples: lost.samples,
        ns: lost.ns,
        min: lost.min_ns,
        max: lost.max_ns,
    };
    LatencyInput {
        cpu: cpu.cpu,
        slack: cpu.slack_ns,
        clock: cpu.clock_ns,
        wakeups: cpu.wakeups.iter().map(wakeup).collect(),
        lost: cpu.lost.map(lost),
        meanwhile: meanwhile_input(&cpu.meanwhile),
        wake_limit_us: cpu.wake_limit_us,
        idle_states: cpu.idle_states.iter().map(idle_state_input).collect(),
    }
}

fn idle_state_input(state: &IdleUse) -> IdleStateInput<'_> {
    IdleStateInput {
        name: &state.name,
        latency_us: state.latency_us,
        disabled: state.disabled,
        entered: state.entered,
        time: state.time_ns,
    }
}

/// The summary of what `run` saw, with as many interruptions as were asked for.
pub fn run_summary(spec: &RunSpec, series: &RunSeries) -> RunSummary {
    let (code, signal) = match series.ended {
        Ended::Exited(code) => (Some(code), None),
        Ended::Killed(signal) => (None, Some(signal)),
    };
    let summary = RunSummary::of(&RunInput {
        cpus: spec.cpus.clone(),
        fifo: spec.fifo,
        elapsed: series.elapsed_ns,
        ended: EndedSummary { code, signal },
        usage: usage(&series.usage),
        interruptions: series.interruptions.as_ref().map(interruptions_input),
        meanwhile: meanwhile_input(&series.meanwhile),
        top: usize::try_from(spec.top).unwrap_or(usize::MAX),
    });
    let source = series.source.map(|source| source.name().to_owned());
    RunSummary { source, ..summary }
}

fn interruptions_input(found: &Interruptions) -> InterruptionsInput<'_> {
    let Interruptions { ready_ns, gaps, gap_cpus, blamed } = found;
    InterruptionsInput { ready: *ready_ns, gaps, gap_cpus, shares: shares(blamed) }
}

fn usage(usage: &Usage) -> UsageSummary {
    UsageSummary {
        user_ns: usage.user_ns,
        system_ns: usage.system_ns,
        voluntary: usage.voluntary,
        involuntary: usage.involuntary,
        minor_faults: usage.minor_faults,
        major_faults: usage.major_faults,
    }
}

/// The summary of what `wakers` saw, as many threads as were asked for.
pub fn wakers_summary(spec: &WakersSpec, series: &WakersSeries) -> WakersSummary {
    let top = usize::try_from(spec.top).unwrap_or(usize::MAX);
    let inputs = series.threads.iter().map(woken_input).collect();
    WakersSummary::of(series.elapsed_ns, top, series.lost, inputs)
}

/// The summary of what `nohz test` saw.
pub fn nohz_test_summary(spec: &NohzSpec, series: &NohzSeries) -> NohzTestSummary {
    NohzTestSummary::of(&nohz_input(spec, series))
}

/// The summary of what `nohz stress` saw.
pub fn nohz_stress_summary(spec: &NohzSpec, series: &NohzSeries) -> NohzStressSummary {
    NohzStressSummary::of(&nohz_input(spec, series))
}

fn nohz_input<'a>(spec: &NohzSpec, series: &'a NohzSeries) -> NohzInput<'a> {
    let tries =
        series.tries.iter().map(|tried| (tried.entered, tried.wait_ns, tried.left));
    let kept = |kept: &'a [recording::KeptBy]| {
        kept.iter().map(|kept| (kept.dependency.as_str(), kept.times)).collect()
    };
    let others = series.others.iter();
    NohzInput {
        cpu: spec.cpu,
        forced: spec.forced,
        elapsed: series.elapsed_ns,
        tries: tries.collect(),
        kept_by: series.kept_by.as_deref().map(kept),
        others: others.map(|one| (one.tid, one.name.as_str(), one.rt_priority)).collect(),
        stay: series.stay.as_ref().map(meanwhile_input),
        came_back: series.came_back(),
        back: series.back.as_ref().map(|back| back_input(series, back)),
    }
}

fn back_input<'a>(
    series: &'a NohzSeries,
    back: &'a recording::TickReturn,
) -> TickReturnInput<'a> {
    let timers = |timers: &'a [recording::TimerCount]| {
        timers.iter().map(|timer| (timer.function.as_str(), timer.times)).collect()
    };
    let softirqs = back.softirqs.iter();
    let waiting = back.waiting.iter();
    let kept_by = series.kept_by.iter().flatten();
    TickReturnInput {
        stopped: back.stopped,
        span: back.span_ns,
        ticks: back.ticks,
        kept_by: kept_by.map(|kept| (kept.dependency.as_str(), kept.times)).collect(),
        softirqs: softirqs
            .map(|softirq| (softirq.name.as_str(), softirq.raised, softirq.run))
            .collect(),
        timers: timers(&back.timers),
        hrtimers: timers(&back.hrtimers),
        waiting: waiting.map(|one| (one.name.as_str(), one.rt_priority)).collect(),
    }
}

/// The summary of what `jitter` saw.
pub fn jitter_summary(spec: &JitterSpec, series: &JitterSeries) -> JitterSummary {
    JitterSummary::of(&jitter_input(spec, series))
}

pub(crate) fn jitter_input<'a>(
    spec: &JitterSpec,
    series: &'a JitterSeries,
) -> JitterInput<'a> {
    JitterInput {
        cpu: spec.cpu,
        loops: series.plan.loops,
        unit: spec.unit,
        hz: series.clock_hz,
        elapsed: series.elapsed_ns,
        tests: series.tests.iter().copied().map(loop_input).collect(),
        lost: series.lost.map(|lost| LostTestsInput {
            tests: lost.tests,
            min: lost.jitter_ticks_min,
            max: lost.jitter_ticks_max,
            sum: lost.jitter_ticks_sum,
            times: loop_input(lost.loop_ticks),
        }),
        unfinished: series
            .unfinished
            .map(|test| (test.loops, loop_input(test.loop_ticks))),
        meanwhile: meanwhile_input(&series.meanwhile),
    }
}

fn loop_input(times: LoopTimes) -> LoopInput {
    let LoopTimes { fastest, slowest, sum } = times;
    LoopInput { fastest, slowest, sum }
}

fn woken_input(thread: &WokenThread) -> WokenInput<'_> {
    WokenInput {
        tid: thread.tid,
        pid: thread.pid,
        name: &thread.name,
        prio: thread.prio,
        wakeups: thread.wakeups,
        run: thread.run_ns,
        preempted: thread.preempted,
        woken_by: partner_inputs(&thread.woken_by),
        victims: partner_inputs(&thread.victims),
    }
}

fn partner_inputs(partners: &[Partner]) -> Vec<PartnerInput<'_>> {
    let inputs = partners.iter().map(|partner| PartnerInput {
        tid: partner.tid,
        name: &partner.name,
        count: partner.count,
    });
    inputs.collect()
}

fn tick_inputs(sample: &TickSample) -> impl Iterator<Item = TickInput> + '_ {
    sample.cpus.iter().map(|cpu| TickInput {
        cpu: cpu.cpu,
        span: sample.span_ns,
        timer: cpu.timer,
        interrupts: cpu.interrupts,
        busy: cpu.busy_ns,
        accounted: cpu.accounted_ns,
    })
}

fn noise_input<'a>(series: &NoiseSeries, cpu: &'a CpuNoise) -> NoiseInput<'a> {
    NoiseInput {
        cpu: cpu.cpu,
        elapsed: cpu.elapsed_ns,
        loop_pass: cpu.loop_ns,
        threshold: Some(series.threshold_ns),
        gaps: &cpu.gaps,
        lost: cpu.lost.map(|lost| LostInput {
            since: lost.since_ns,
            gaps: lost.gaps,
            ns: lost.ns,
            max: lost.max_ns,
        }),
        shares: cpu.blamed.as_ref().map(shares),
        losses: cpu.blamed.as_ref().map_or(&[], |blamed| &blamed.losses),
        steal: cpu.blamed.as_ref().and_then(|blamed| blamed.steal).map(steal),
        meanwhile: meanwhile_input(&cpu.meanwhile),
    }
}

/// What ran on CPUs that were watched while their ticks were counted.
pub(crate) fn busy_culprits(series: &TicksSeries) -> Vec<Culprit> {
    let shares: Vec<_> = series.busy.iter().flat_map(|cpu| shares(&cpu.blamed)).collect();
    Culprit::of_all(&shares)
}

fn steal(steal: Steal) -> StealInput<'static> {
    StealInput {
        clock: steal.clock.name(),
        at_least: steal.at_least_ns,
        at_most: steal.at_most_ns,
        unexplained_max: steal.unexplained_max_ns,
    }
}

fn shares(blamed: &Blamed) -> Vec<ShareInput<'_>> {
    let share = |share: &Share| {
        let culprit = blamed.culprits.get(share.culprit)?;
        Some(ShareInput {
            gap: share.gap,
            kind: kind(culprit.kind),
            name: &culprit.name,
            thread: culprit.thread.as_ref().map(thread),
            owner: culprit.thread.as_ref().and_then(owner),
            ns: share.ns,
            inside: share.inside_ns,
            entry: share.entry_ns,
        })
    };
    blamed.shares.iter().filter_map(share).collect()
}

fn thread(seen: &recording::Thread) -> stats::CulpritThread {
    let recording::Thread { tid, pid, prio, .. } = *seen;
    stats::CulpritThread { tid, pid, prio }
}

fn owner(seen: &recording::Thread) -> Option<OwnerInput<'_>> {
    Some(match seen.owner.as_ref()? {
        ThreadOwner::Kernel => OwnerInput::Kernel,
        ThreadOwner::Program(name) => OwnerInput::Program(name),
    })
}

pub(crate) fn kind(kind: recording::CulpritKind) -> stats::CulpritKind {
    use recording::CulpritKind as Seen;
    use stats::CulpritKind as Told;
    match kind {
        Seen::Timer => Told::Timer,
        Seen::Ipi => Told::Ipi,
        Seen::Irq => Told::Irq,
        Seen::Softirq => Told::Softirq,
        Seen::Nmi => Told::Nmi,
        Seen::Thread => Told::Thread,
        Seen::Steal => Told::Steal,
        _ => Told::Unexplained,
    }
}

fn meanwhile_input(meanwhile: &Meanwhile) -> MeanwhileInput<'_> {
    let interrupts = meanwhile.interrupts.as_ref().map(|lines| {
        let lines = lines.iter().map(|line| LineInput {
            line: &line.line,
            name: &line.name,
            count: line.count,
            timer: line.timer,
        });
        lines.collect()
    });
    let softirqs = meanwhile.softirqs.as_ref().map(|softirqs| {
        let softirqs =
            softirqs.iter().map(|s| CountInput { name: &s.name, count: s.count });
        softirqs.collect()
    });
    MeanwhileInput {
        span: meanwhile.span_ns,
        interrupts,
        softirqs,
        preempted: meanwhile.preempted,
        waited: meanwhile.waited_ns,
        steal: meanwhile.steal_ns,
    }
}
