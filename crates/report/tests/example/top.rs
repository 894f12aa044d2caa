//! Recordings of `top` for the tests of this crate.

use facts::Unit;
use recording::{
    Body, Culprit, CulpritKind, Recording, Source, Thread, ThreadOwner, TopCpu,
    TopSample, TopSeries, TopSpec, TopUse,
};
use units::{Cpu, Nanos};

use crate::example::recording;

/// A guest with two CPUs, a web server and a kernel thread.
pub(crate) fn top(groups: &str) -> Recording {
    let spec = TopSpec { interval_ns: Nanos::from_secs(2), duration_ns: None };
    let series = TopSeries {
        source: Source::Bpf,
        began_ns: Nanos::from_secs(70),
        elapsed_ns: Nanos::from_secs(4),
        samples: vec![sample(2), sample(2)],
        lost_ns: Nanos::ZERO,
        unseen_ns: Nanos::ZERO,
    };
    recording(groups, Body::Top { spec, series }, Vec::new())
}

/// The same with counters of `/proc` only.
pub(crate) fn counted(groups: &str) -> Recording {
    let mut recording = top(groups);
    let Body::Top { series, .. } = &mut recording.body else { return recording };
    series.source = Source::Proc;
    for sample in &mut series.samples {
        for cpu in &mut sample.cpus {
            (cpu.kernel_ns, cpu.interruption_ns_max, cpu.quota_ns) = (None, None, None);
            (cpu.wait_ns, cpu.waits, cpu.wait_ns_max) = (None, None, None);
        }
        sample.uses.retain(|one| one.culprit.kind == CulpritKind::Thread);
        for one in &mut sample.uses {
            (one.cpu, one.count, one.ns_max) = (None, None, None);
        }
    }
    recording
}

/// An interval of 2 s on that many CPUs.
pub(crate) fn sample(cpus: u32) -> TopSample {
    let ms = Nanos::from_millis;
    let cpu = |number: u32| TopCpu {
        cpu: Cpu::new(number),
        ticks: Some(if number % 2 == 0 { 500 } else { 31 }),
        programs_ns: ms(u64::from(2000 - number * 7 % 2000)),
        kernel_ns: Some(ms(u64::from(number % 5))),
        interrupts_ns: Nanos::from_micros(812),
        interruption_ns_max: Some(Nanos::from_micros(83 + u64::from(number))),
        steal_ns: Some(ms(20)),
        quota_ns: Some(ms(u64::from(number % 3) * 100)),
        wait_ns: Some(ms(3_100)),
        waits: Some(4_321),
        wait_ns_max: Some(Nanos::from_micros(12_345)),
    };
    TopSample {
        at_ns: Nanos::from_secs(2),
        elapsed_ns: Nanos::from_secs(2),
        cpus: (0..cpus).map(cpu).collect(),
        uses: uses(cpus),
        own_ns: Nanos::from_micros(3_200),
    }
}

fn uses(cpus: u32) -> Vec<TopUse> {
    let nginx = Some("/system.slice/nginx.service");
    let mut uses = Vec::new();
    for cpu in (0..cpus).map(Cpu::new) {
        let mut add = |culprit: Culprit, us: u64, count: u64| {
            uses.push(TopUse {
                cpu: Some(cpu),
                culprit,
                ns: Nanos::from_micros(us),
                count: Some(count),
                ns_max: Some(Nanos::from_micros(us / count.max(1) * 3)),
            });
        };
        add(thread(417, "nginx", "nginx", nginx), 1_400_000, 4_000);
        add(thread(498, "log\u{1b}[2J", "sh", nginx), 300_000, 10);
        add(thread(30, "redis-server", "redis-server", None), 12_000, 300);
        add(thread(77, "kworker/1:1-events", "", None), 4_000, 60);
        add(named(CulpritKind::Timer, "local timer"), 700, 500);
        add(named(CulpritKind::Softirq, "NET_RX"), 112, 40);
    }
    uses.sort_by_key(|one| std::cmp::Reverse(one.ns));
    uses
}

fn named(kind: CulpritKind, name: &str) -> Culprit {
    Culprit { kind, name: name.to_owned(), thread: None }
}

/// A thread of a program, or without its name of the kernel.
fn thread(tid: u32, name: &str, program: &str, unit: Option<&str>) -> Culprit {
    let owner = match program {
        "" => ThreadOwner::Kernel,
        program => ThreadOwner::Program(program.to_owned()),
    };
    let unit = unit.and_then(Unit::of_path);
    let thread =
        Thread { tid, pid: tid, prio: 120, owner: Some(owner), unit, own: false };
    Culprit { thread: Some(thread), ..named(CulpritKind::Thread, name) }
}
