//! Recordings of `guests` for the tests of this crate.

use facts::Monitor;
use recording::{
    Body, GuestProcess, GuestUsage, GuestsSeries, GuestsSpec, Recording, ThreadUsage,
    VcpuUsage,
};
use units::Nanos;

use crate::example::recording;

fn used(cpu_micros: u64, voluntary: u64) -> ThreadUsage {
    ThreadUsage {
        cpu_ns: Nanos::from_micros(cpu_micros),
        waited_ns: Some(Nanos::from_micros(cpu_micros / 4)),
        voluntary,
        involuntary: voluntary / 50,
    }
}

fn guest(
    pid: u32,
    name: Option<&str>,
    vcpus: &[ThreadUsage],
    others: ThreadUsage,
) -> GuestUsage {
    let thread = |(usage, number): (&ThreadUsage, u32)| VcpuUsage {
        tid: pid + 4 + number,
        vcpu: Some(number),
        usage: *usage,
    };
    GuestUsage {
        guest: GuestProcess {
            pid,
            name: name.map(str::to_owned),
            process: "qemu-system-x86".to_owned(),
            monitor: Monitor::Qemu,
        },
        accelerator: Some("KVM".to_owned()),
        vcpus: u32::try_from(vcpus.len()).ok(),
        elapsed_ns: Nanos::from_millis(10_003),
        vcpu_threads: vcpus.iter().zip(0..).map(thread).collect(),
        others,
        others_cpu_ns_max: others.cpu_ns,
        ended_threads: 0,
    }
}

/// A host with idle guests of several monitors, and a busy one.
pub(crate) fn guests(groups: &str, top: u32) -> Recording {
    let (duration_ns, elapsed_ns) = (Nanos::from_secs(10), Nanos::from_millis(10_003));
    let ticking = [used(301_000, 10_004), used(287_000, 10_003)];
    let unnamed = GuestUsage {
        vcpus: Some(1),
        accelerator: None,
        ..guest(2_210, None, &[], used(64_000, 2_630))
    };
    let mut fire =
        guest(4_711, Some("vm-0b9f2c5e-lambda"), &[used(5_400, 48)], used(700, 3));
    (fire.guest.monitor, fire.accelerator) = (Monitor::Firecracker, None);
    let spec = GuestsSpec { duration_ns, busy_above_ppm: 100_000, top };
    let series = GuestsSeries {
        elapsed_ns,
        guests: vec![
            guest(1_301, Some("web-1"), &ticking, used(20_000, 160)),
            unnamed,
            guest(2_978, Some("build"), &[used(9_871_000, 930)], used(410_000, 3_100)),
            fire,
        ],
        started: Vec::new(),
        ended: Vec::new(),
        hidden: 0,
    };
    recording(groups, Body::Guests { spec, series }, Vec::new())
}

/// The same with the widest numbers.
pub(crate) fn wide(mut recording: Recording) -> Recording {
    let Body::Guests { series, .. } = &mut recording.body else { return recording };
    for guest in &mut series.guests {
        guest.guest.pid += 4_190_000;
        guest.guest.name = Some("instance-00000a3f-of-a-tenant".to_owned());
        guest.vcpus = Some(1_024);
        for vcpu in &mut guest.vcpu_threads {
            (vcpu.tid, vcpu.vcpu) = (4_194_303, Some(1_023));
            vcpu.usage = used(987_654, 12_345_678);
        }
        guest.others = used(123_456_789, 1_234_567_890);
        guest.others_cpu_ns_max = Nanos::from_micros(123);
    }
    recording
}
