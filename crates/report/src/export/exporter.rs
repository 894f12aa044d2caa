//! The metrics of the exporter in Prometheus' text format. Names and base units follow
//! <https://prometheus.io/docs/practices/naming/>; the labels of sources are those of `check --prometheus`.

use recording::TopCounts;
use summary::{
    CpuTotals, CumulativeLengths, LongestTimes, MachineTotals, SourceTotal,
    cumulative_lengths,
};
use units::{Cpu, CpuSet, Nanos};

use crate::export::exposition::{Family, MetricType, Value, labels, text};

/// What is served.
#[derive(Debug, Clone, Copy)]
pub struct ExporterValues<'a> {
    /// The version of noisefloor.
    pub version: &'a str,
    /// The counters of CPUs and sources.
    pub totals: &'a MachineTotals,
    /// The counts of context switches and lengths; `None` if nothing is traced.
    pub counts: Option<&'a [TopCounts]>,
    /// Time that has no source, and time in no sum, as switches were not traced.
    pub lost: (Nanos, Nanos),
    /// The CPUs without load balancing; `None` if they are not known.
    pub isolated: Option<&'a CpuSet>,
    /// Those on which the tick can stop while one task runs.
    pub nohz_full: Option<&'a CpuSet>,
    /// What the exporter itself uses.
    pub own: OwnUsage,
}

/// What a process uses; `None` if it is not known.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnUsage {
    /// Its CPU time.
    pub cpu_ns: Nanos,
    /// Its resident memory.
    pub resident_bytes: Option<u64>,
    /// Its start, in seconds since 1970.
    pub started: Option<u64>,
}

/// All metrics.
pub fn exporter_text(values: &ExporterValues<'_>) -> String {
    let families = of_exporter(values)
        .into_iter()
        .chain(of_times(values.totals))
        .chain(of_cpus(values.totals))
        .chain(of_longest(values.totals))
        .chain(values.counts.into_iter().flat_map(of_counts))
        .chain(of_sources(&values.totals.sources()))
        .chain(of_settings(values));
    text(families)
}

fn of_exporter(values: &ExporterValues<'_>) -> Vec<Family> {
    let OwnUsage { cpu_ns, resident_bytes, started } = values.own;
    let (nameless, unseen) = values.lost;
    let whole = |value: Option<u64>| value.map(|value| value as f64);
    vec![
        gauge(
            "noisefloor_build_info",
            "Version of the exporter.",
            vec![Value::new(labels(&[("version", values.version)]), 1.0)],
        ),
        gauge(
            "noisefloor_tracing",
            "1: the scheduler and interrupts are traced (eBPF); 0: only counters of /proc are read.",
            one(Some(f64::from(u8::from(values.counts.is_some())))),
        ),
        counter(
            "noisefloor_nameless_seconds_total",
            "Time of threads and interrupts in no source, as there was no room for them.",
            one(values.counts.map(|_| seconds(nameless))),
        ),
        counter(
            "noisefloor_untraced_seconds_total",
            "Time in no other metric, as context switches were not traced.",
            one(values.counts.map(|_| seconds(unseen))),
        ),
        counter(
            "process_cpu_seconds_total",
            "CPU time of the exporter.",
            one(Some(seconds(cpu_ns))),
        ),
        gauge(
            "process_resident_memory_bytes",
            "Resident memory of the exporter.",
            one(whole(resident_bytes)),
        ),
        gauge(
            "process_start_time_seconds",
            "Start of the exporter since 1970, in seconds.",
            one(whole(started)),
        ),
    ]
}

/// How the time of each CPU was used.
fn of_times(totals: &MachineTotals) -> Vec<Family> {
    let (mut classes, mut kinds) = (Vec::new(), Vec::new());
    for (cpu, totals) in totals.cpus() {
        let cpu = cpu.to_string();
        let CpuTotals { programs_ns, kernel_ns, interrupts_ns, .. } = *totals;
        let all = [
            ("program", Some(programs_ns)),
            ("kernel_thread", kernel_ns),
            ("interrupt", Some(interrupts_ns)),
        ];
        let known = all.into_iter().filter_map(|(class, ns)| Some((class, ns?)));
        classes.extend(known.map(|(class, ns)| {
            Value::new(labels(&[("cpu", &cpu), ("class", class)]), seconds(ns))
        }));
        kinds.extend(totals.interrupt_kinds.iter().map(|(kind, ns)| {
            Value::new(labels(&[("cpu", &cpu), ("kind", kind)]), seconds(*ns))
        }));
    }
    vec![
        counter(
            "noisefloor_cpu_seconds_total",
            "Time of programs, kernel threads (without tracing: part of programs) and interrupts.",
            classes,
        ),
        counter(
            "noisefloor_interrupt_seconds_total",
            "Time of interrupts and softirqs by kind, without those that interrupted them.",
            kinds,
        ),
    ]
}

fn of_cpus(totals: &MachineTotals) -> Vec<Family> {
    let of = |value: fn(&CpuTotals) -> Option<f64>| {
        let known = totals
            .cpus()
            .filter_map(|(cpu, totals)| Some(Value::new(of_cpu(cpu), value(totals)?)));
        known.collect::<Vec<Value>>()
    };
    vec![
        counter(
            "noisefloor_steal_seconds_total",
            "Time that the hypervisor took from the CPU; part of the other times.",
            of(|cpu| cpu.steal_ns.map(seconds)),
        ),
        counter(
            "noisefloor_quota_seconds_total",
            "Time in which the CPU quota of a cgroup was used up on the CPU.",
            of(|cpu| cpu.quota_ns.map(seconds)),
        ),
        counter(
            "noisefloor_timer_interrupts_total",
            "Timer interrupts (ticks and other timers of the CPU).",
            of(|cpu| cpu.ticks.map(|ticks| ticks as f64)),
        ),
        counter(
            "noisefloor_run_queue_wait_seconds_total",
            "Time that threads waited on the CPU until they got it.",
            of(|cpu| cpu.wait_ns.map(seconds)),
        ),
        counter(
            "noisefloor_run_queue_waits_total",
            "Threads that waited on the CPU and got it.",
            of(|cpu| cpu.waits.map(|waits| waits as f64)),
        ),
    ]
}

fn of_longest(totals: &MachineTotals) -> Vec<Family> {
    let longest = totals.longest();
    let of = |ns: fn(&LongestTimes) -> Option<Nanos>| {
        let known = longest.iter().filter_map(|(cpu, longest)| {
            Some(Value::new(of_cpu(*cpu), seconds(ns(longest)?)))
        });
        known.collect::<Vec<Value>>()
    };
    vec![
        gauge(
            "noisefloor_interruption_max_seconds",
            "Longest time of interrupts and softirqs without a thread in between, in the last minute.",
            of(|longest| longest.interruption_ns),
        ),
        gauge(
            "noisefloor_run_queue_wait_max_seconds",
            "Longest time that a thread waited on the CPU until it got it, in the last minute.",
            of(|longest| longest.wait_ns),
        ),
    ]
}

fn of_counts(counts: &[TopCounts]) -> Vec<Family> {
    let mut switches = Vec::new();
    for cpu in counts {
        let number = cpu.cpu.to_string();
        let all = [
            ("voluntary", cpu.slept),
            ("involuntary", cpu.preempted),
            ("idle", cpu.idle),
        ];
        switches.extend(all.map(|(kind, count)| {
            Value::new(labels(&[("cpu", &number), ("kind", kind)]), count as f64)
        }));
    }
    let interruptions = cumulative_lengths(counts, |cpu| Some(&cpu.interruptions));
    let waits = cumulative_lengths(counts, |cpu| cpu.waits.as_ref());
    vec![
        counter(
            "noisefloor_context_switches_total",
            "Context switches away from a thread that went to sleep (voluntary: it was woken up \
             before), that could have continued (involuntary), and from the idle task.",
            switches,
        ),
        histogram(
            "noisefloor_interruption_duration_seconds",
            "Lengths of interrupts and softirqs without a thread in between, on all CPUs.",
            interruptions,
        ),
        histogram(
            "noisefloor_run_queue_wait_duration_seconds",
            "How long threads waited on a CPU until they got it, on all CPUs.",
            waits,
        ),
    ]
}

fn of_sources(sources: &[SourceTotal]) -> Vec<Family> {
    let of = |value: fn(&SourceTotal) -> Option<f64>| {
        let known = sources.iter().filter_map(|source| {
            let all =
                [("kind", source.kind), ("name", &source.name), ("unit", &source.unit)];
            Some(Value::new(labels(&all), value(source)?))
        });
        known.collect::<Vec<Value>>()
    };
    vec![
        counter(
            "noisefloor_source_seconds_total",
            "CPU time of a program, a kernel thread or an interrupt, of those with the most time lately.",
            of(|source| Some(seconds(source.ns))),
        ),
        counter(
            "noisefloor_source_runs_total",
            "Runs of its threads that ended, or its interrupts.",
            of(|source| source.count.map(|count| count as f64)),
        ),
    ]
}

fn of_settings(values: &ExporterValues<'_>) -> Vec<Family> {
    let of = |set: Option<&CpuSet>| {
        let all = set.map(|set| {
            let is_in = |cpu| f64::from(u8::from(set.contains(cpu)));
            values.totals.cpus().map(move |(cpu, _)| Value::new(of_cpu(cpu), is_in(cpu)))
        });
        all.into_iter().flatten().collect::<Vec<Value>>()
    };
    vec![
        gauge(
            "noisefloor_cpu_isolated",
            "1: the CPU is isolated (isolcpus=, isolated cpusets).",
            of(values.isolated),
        ),
        gauge(
            "noisefloor_cpu_nohz_full",
            "1: the tick of the CPU can stop while one task runs (nohz_full=).",
            of(values.nohz_full),
        ),
    ]
}

fn counter(name: &'static str, help: &'static str, values: Vec<Value>) -> Family {
    Family { name: name.into(), kind: MetricType::Counter, help, values }
}

fn gauge(name: &'static str, help: &'static str, values: Vec<Value>) -> Family {
    Family { name: name.into(), kind: MetricType::Gauge, help, values }
}

fn histogram(
    name: &'static str,
    help: &'static str,
    lengths: Option<CumulativeLengths>,
) -> Family {
    let mut values = Vec::new();
    if let Some(CumulativeLengths { up_to, count, ns }) = lengths {
        let bucket = |bound: &str, count: u64| Value {
            suffix: "_bucket",
            labels: labels(&[("le", bound)]),
            value: count as f64,
        };
        values.extend(
            up_to
                .iter()
                .map(|(bound, count)| bucket(&seconds(*bound).to_string(), *count)),
        );
        values.push(bucket("+Inf", count));
        let of_all = |suffix, value| Value { suffix, labels: String::new(), value };
        values.extend([of_all("_sum", seconds(ns)), of_all("_count", count as f64)]);
    }
    Family { name: name.into(), kind: MetricType::Histogram, help, values }
}

/// A value without labels, if it is known.
fn one(value: Option<f64>) -> Vec<Value> {
    value.into_iter().map(|value| Value::new(String::new(), value)).collect()
}

fn of_cpu(cpu: Cpu) -> String {
    labels(&[("cpu", &cpu.to_string())])
}

fn seconds(ns: Nanos) -> f64 {
    ns.as_secs_f64()
}

#[cfg(test)]
mod tests;
