use recording::{Source, Thread};

use super::*;

fn thread(tid: u32, name: &str, owner: &str, unit: Option<&str>) -> Culprit {
    let owner = match owner {
        "" => ThreadOwner::Kernel,
        program => ThreadOwner::Program(program.to_owned()),
    };
    let unit = unit.and_then(Unit::of_path);
    let (pid, prio, own) = (tid, 120, false);
    let thread = Thread { tid, pid, prio, owner: Some(owner), unit, own };
    Culprit { kind: CulpritKind::Thread, name: name.to_owned(), thread: Some(thread) }
}

fn used(cpu: u32, culprit: Culprit, ms: u64) -> TopUse {
    let ns = Nanos::from_millis(ms);
    let (count, ns_max) = (Some(ms), Some(Nanos::from_micros(ms)));
    TopUse { cpu: Some(Cpu::new(cpu)), culprit, ns, count, ns_max }
}

fn sample() -> TopSample {
    let unit = Some("/system.slice/nginx.service");
    let timer = Culprit {
        kind: CulpritKind::Timer,
        name: "local timer".to_owned(),
        thread: None,
    };
    let ns = Nanos::from_millis;
    let cpu = |cpu| TopCpu {
        cpu: Cpu::new(cpu),
        ticks: Some(500),
        programs_ns: ns(400),
        kernel_ns: Some(ns(20)),
        interrupts_ns: ns(10),
        interruption_ns_max: Some(Nanos::from_micros(83)),
        steal_ns: None,
        quota_ns: Some(ns(100)),
        wait_ns: Some(ns(3000)),
        waits: Some(40),
        wait_ns_max: Some(ns(12)),
    };
    TopSample {
        at_ns: ns(2000),
        elapsed_ns: ns(2000),
        cpus: vec![cpu(0), cpu(1)],
        uses: vec![
            used(1, thread(7, "sh", "sh", unit), 300),
            used(0, thread(5, "nginx", "nginx", unit), 250),
            used(1, thread(6, "nginx", "nginx", unit), 200),
            used(0, thread(8, "worker", "redis", None), 30),
            used(0, thread(9, "kswapd0", "", None), 20),
            used(0, timer.clone(), 6),
            used(1, timer, 4),
        ],
        own_ns: Nanos::from_micros(500),
    }
}

/// Check the shares and rates of a CPU, and that unknown numbers remain unknown.
#[test]
fn cpus() {
    let summary = TopSummary::of_interval("bpf", &sample(), TopGrouping::Units);
    let first = &summary.cpus[0];
    let ppm = |ppm: Option<Ppm>| ppm.map(Ppm::get);
    assert_eq!(first.ticks_hz.unwrap().get(), 250.0);
    assert_eq!(ppm(first.programs_ppm), Some(200_000.0));
    assert_eq!((ppm(first.steal_ppm), ppm(first.quota_ppm)), (None, Some(50_000.0)));
    assert_eq!(ppm(first.wait_ppm), Some(1_500_000.0));
    assert_eq!(first.most.as_deref(), Some("nginx.service"));
    assert_eq!(ppm(summary.own_ppm), Some(250.0));
}

/// Check that threads are one source by unit, else by program; kernel threads by name; that interrupts of
/// all CPUs are added up; and that the times of all add up in any grouping.
#[test]
fn groups() {
    let sample = sample();
    let by_unit = TopSummary::of_interval("bpf", &sample, TopGrouping::Units).sources;
    let found = by_unit.iter().map(|one| (&*one.name, one.ns.get() / 1_000_000, one.cpu));
    let on = |cpu| Some(Cpu::new(cpu));
    let expected = [
        ("nginx.service", 750, None),
        ("redis", 30, on(0)),
        ("kswapd0", 20, on(0)),
        ("local timer", 10, None),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!(by_unit[0].threads, ["nginx", "sh"]);
    assert_eq!(by_unit[1].threads, ["worker"]);
    assert!(by_unit[2].threads.is_empty() && by_unit[0].tid.is_none());
    assert_eq!(by_unit[0].ns_max, Some(Nanos::from_micros(300)));

    let by_thread = TopSummary::of_interval("bpf", &sample, TopGrouping::Threads).sources;
    assert_eq!(by_thread.len(), 6);
    assert_eq!((by_thread[0].tid, &*by_thread[0].name), (Some(7), "sh"));
    let sum = |all: &[TopSource]| all.iter().map(|one| one.ns).sum::<Nanos>();
    assert_eq!(sum(&by_unit), sum(&by_thread));

    let of_cpu = TopSummary::sources_of(&sample, TopGrouping::Units, Cpu::new(0));
    let names: Vec<&str> = of_cpu.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["nginx.service", "redis", "kswapd0", "local timer"]);
    assert_eq!(of_cpu[0].ns, Nanos::from_millis(250));
}

/// Check that all intervals are summarized as one, and that none is no error.
#[test]
fn all_intervals() {
    let series = |samples: Vec<TopSample>| TopSeries {
        source: Source::Bpf,
        began_ns: Nanos::ZERO,
        elapsed_ns: Nanos::from_secs(4),
        samples,
        lost_ns: Nanos::ZERO,
        unseen_ns: Nanos::ZERO,
    };
    let both = TopSummary::of(&series(vec![sample(), sample()]));
    assert_eq!((both.intervals, both.elapsed_ns), (2, Nanos::from_secs(4)));
    let one = TopSummary::of(&series(vec![sample()]));
    assert_eq!((one.intervals, &one.cpus), (1, &both.cpus));
    let none = TopSummary::of(&series(Vec::new()));
    assert_eq!((none.intervals, none.cpus.len()), (0, 0));
}
