//! The exporter's metrics: values, labels, histograms.

use recording::{
    Culprit, CulpritKind, LengthCounts, Thread, ThreadOwner, TopCpu, TopSample, TopUse,
};

use super::*;

/// One CPU, which a program with that name used.
fn totals(name: &str) -> MachineTotals {
    let ns = Nanos::from_nanos(1_500_000_000);
    let cpu = TopCpu {
        cpu: Cpu::new(3),
        ticks: Some(250),
        programs_ns: ns,
        kernel_ns: Some(ns),
        interrupts_ns: ns,
        interruption_ns_max: Some(Nanos::from_micros(20)),
        steal_ns: None,
        quota_ns: Some(Nanos::ZERO),
        wait_ns: Some(ns),
        waits: Some(7),
        wait_ns_max: None,
    };
    let owner = Some(ThreadOwner::Program(name.to_owned()));
    let thread = Thread { tid: 7, pid: 7, prio: 120, owner, unit: None, own: false };
    let kind = CulpritKind::Thread;
    let used = TopUse {
        cpu: Some(cpu.cpu),
        culprit: Culprit { kind, name: name.to_owned(), thread: Some(thread) },
        ns,
        count: Some(9),
        ns_max: None,
    };
    let mut totals = MachineTotals::new(4);
    totals.add(&TopSample {
        at_ns: ns,
        elapsed_ns: ns,
        cpus: vec![cpu],
        uses: vec![used],
        own_ns: Nanos::ZERO,
    });
    totals
}

fn served(totals: &MachineTotals, counts: Option<&[TopCounts]>) -> String {
    let isolated: CpuSet = "3-4".parse().unwrap();
    exporter_text(&ExporterValues {
        version: "1.2.3",
        totals,
        counts,
        lost: (Nanos::ZERO, Nanos::ZERO),
        isolated: Some(&isolated),
        nohz_full: None,
        own: OwnUsage::default(),
    })
}

/// Check values and their labels, that what is not known is missing, and that a name cannot add a metric.
#[test]
fn values() {
    let text = served(&totals("a\"} 1\nevil 2\\"), None);
    for line in [
        "noisefloor_build_info{version=\"1.2.3\"} 1",
        "noisefloor_tracing 0",
        "noisefloor_cpu_seconds_total{cpu=\"3\",class=\"kernel_thread\"} 1.5",
        "noisefloor_timer_interrupts_total{cpu=\"3\"} 250",
        "noisefloor_interruption_max_seconds{cpu=\"3\"} 0.00002",
        "noisefloor_source_runs_total{kind=\"thread\",name=\"a\\\"} 1\\nevil 2\\\\\",unit=\"\"} 9",
        "noisefloor_source_seconds_total{kind=\"other\",name=\"other\",unit=\"\"} 0",
        "noisefloor_cpu_isolated{cpu=\"3\"} 1",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
    for name in
        ["steal", "nohz_full", "context_switches", "wait_max", "resident", "_bucket"]
    {
        assert!(!text.contains(name), "{name}: {text}");
    }
    assert!(!text.lines().any(|line| line.starts_with("evil")), "{text}");
}

/// Check the lines of a histogram, whose last bucket is its count.
#[test]
fn histograms() {
    let interruptions = LengthCounts {
        up_to: vec![(Nanos::from_micros(1), 2), (Nanos::from_millis(20), 3)],
        above: 1,
        ns: Nanos::from_millis(250),
    };
    let cpu = Cpu::new(0);
    let counts =
        TopCounts { cpu, slept: 1, preempted: 2, idle: 3, interruptions, waits: None };
    let text = served(&totals("a"), Some(&[counts]));
    let name = "noisefloor_interruption_duration_seconds";
    let found: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix(name)).collect();
    let expected = [
        "_bucket{le=\"0.000001\"} 2",
        "_bucket{le=\"0.02\"} 5",
        "_bucket{le=\"+Inf\"} 6",
        "_sum 0.25",
        "_count 6",
    ];
    assert_eq!(found, expected);
    assert!(text.contains("# TYPE noisefloor_interruption_duration_seconds histogram\n"));
    assert!(text.contains("_context_switches_total{cpu=\"0\",kind=\"involuntary\"} 2\n"));
    assert!(!text.contains("wait_duration"));
}
