//! Boot parameters: each is tried in guests of one kernel, with it and without it, as `try --boot` does it.
//!
//! Guests are exact: each number is one of the kernel and the parameters. They have no devices and no programs of this
//! machine, so that only what the kernel does by itself is compared.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ::advise::{Barrier, Machine, MeasuredDifference, Method, ProofOutcome, Proven};
use ::lab::{Cache, CellObserver};
use experiments::{BootRequest, BootWorkload, Experiment};
use kernels::{Fetch, Kernels};
use recording::{Cell, Ending};
use units::{Cpu, CpuSet, Nanos};

use crate::args::Output;
use crate::forwarding::Forwarding;
use crate::lab;
use crate::lab::args::How;
use crate::lab::boots::DEFAULT_CPU;
use crate::lab::watcher::Watcher;
use crate::proving::Clock;

/// The kernel of this machine.
const RUNNING: &str = "running";
/// Guests with more CPUs take long, as QEMU runs one after the other.
const CPUS_MAX: u32 = 8;
/// Of a busy loop, QEMU executes each instruction; ticks cost the same in each second.
const DURATION: Nanos = Nanos::from_millis(500);
/// An idle guest takes hardly any time of the host.
const IDLE: Nanos = Nanos::from_secs(5);
/// The interval of `latency`.
const INTERVAL: Nanos = Nanos::from_micros(997);
/// How often signals and the budget are looked at.
const PERIOD: Duration = Duration::from_millis(100);

/// A boot parameter that is tried.
pub(super) struct Case {
    /// Its place in the list.
    pub(super) place: usize,
    /// The name of its rule.
    pub(super) rule: &'static str,
    pub(super) method: Method,
    /// The boot parameter without the change, and with it; `None` if it is not given.
    pub(super) parameters: [Option<String>; 2],
}

/// The guests, all of one kernel.
pub(super) struct Guests {
    /// The kernel's name; `None`: that of this machine.
    kernel: Option<String>,
    /// The package of the kernel of this machine, if it is one of Debian's.
    package: Option<String>,
    /// The measured CPU.
    cpu: Cpu,
    /// The number of CPUs.
    cpus: u32,
    /// Why no guest boots.
    impossible: Option<String>,
}

impl Guests {
    /// Guests of a kernel, or of that of this machine, with as many CPUs.
    pub(super) fn new(
        kernel: Option<String>,
        machine: &Machine<'_>,
        measured: &CpuSet,
    ) -> Self {
        let facts = machine.facts();
        let release = facts.kernel.release.get().map(String::as_str);
        let package = release.and_then(debian_package);
        let last = facts.cpus.online.get().and_then(|online| online.iter().max());
        let cpus = last.unwrap_or(DEFAULT_CPU).get().saturating_add(1).max(2);
        let why = format!("guests have at most {CPUS_MAX} CPUs, this machine {cpus}");
        let impossible = (cpus > CPUS_MAX).then_some(why);
        let cpu = measured.first().unwrap_or(DEFAULT_CPU);
        Self { kernel, package, cpu, cpus, impossible }
    }

    /// Finds the kernel, which may be downloaded; whether guests can boot it.
    pub(super) fn find(
        &mut self,
        clock: Clock,
        forwarding: &mut Forwarding,
        output: Output,
    ) -> bool {
        if self.impossible.is_none() {
            let found =
                until_stopped(clock, forwarding, |stop| self.kernel(output, stop));
            match found {
                Ok(kernel) => self.kernel = Some(kernel),
                Err(why) => self.impossible = Some(why),
            }
        }
        self.impossible.is_none()
    }

    fn kernel(&self, output: Output, stop: &AtomicBool) -> Result<String, String> {
        lab::open().map_err(|why| why.to_string())?;
        let cache = Cache::find().map_err(|why| units::chain(&why).to_string())?;
        let (kernels, mut watcher) =
            (Kernels::new(&cache.folder), Watcher::new(output.quiet));
        let mut find = |name: &str| {
            let mut say = |text: &str| watcher.say(text);
            let mut fetch = Fetch { fresh: false, stop, say: &mut say };
            let found = kernels.find(name, &mut fetch).map(|_| name.to_owned());
            watcher.clear();
            found.map_err(|why| units::chain(&why).to_string())
        };
        if let Some(named) = &self.kernel {
            return find(named);
        }
        let Err(why) = find(RUNNING) else { return Ok(RUNNING.to_owned()) };
        let package = self.package.as_deref().and_then(|package| find(package).ok());
        package.ok_or_else(|| {
            format!("the kernel of this machine cannot be booted in a guest: {why}")
        })
    }

    /// Tries a boot parameter.
    pub(super) fn try_case(
        &mut self,
        case: &Case,
        clock: Clock,
        forwarding: &mut Forwarding,
        output: Output,
    ) -> ProofOutcome {
        let not = ProofOutcome::NotProven;
        if forwarding.is_interrupted() {
            return not(Barrier::Interrupted);
        }
        if let Some(why) = &self.impossible {
            return not(Barrier::NoGuest(why.clone()));
        }
        if clock.rest(Nanos::ZERO).is_zero() {
            return not(Barrier::Budget);
        }
        let found =
            until_stopped(clock, forwarding, |stop| self.compare(case, output, stop));
        match found {
            Ok(proven) => ProofOutcome::Proven(proven),
            Err(_) if forwarding.is_interrupted() => not(Barrier::Interrupted),
            Err(_) if clock.rest(Nanos::ZERO).is_zero() => not(Barrier::Budget),
            Err(why) => not(Barrier::NoGuest(why)),
        }
    }

    /// Compares the guests of a case, or says why there are none.
    fn compare(
        &self,
        case: &Case,
        output: Output,
        stop: &AtomicBool,
    ) -> Result<Proven, String> {
        let workload = self.workload(case.method);
        let (base, tried) = match &case.parameters {
            [None, None] => return Err("no boot parameter differs".to_owned()),
            [None, Some(tried)] => self.cells(tried, &workload, output, stop)?.into(),
            [Some(now), None] => {
                let [without, with] = self.cells(now, &workload, output, stop)?;
                (with, without)
            }
            [Some(now), Some(tried)] => {
                let [_, base] = self.cells(now, &workload, output, stop)?;
                let [_, tried] = self.cells(tried, &workload, output, stop)?;
                (base, tried)
            }
        };
        let measured = MeasuredDifference::of_guests(case.method, &base, &tried);
        let measured = measured.ok_or("a guest has not measured what is compared")?;
        Ok(Proven {
            rule: case.rule,
            method: case.method,
            measurement: tried.workload.clone(),
            kernel: Some(tried.kernel.clone()),
            conclusion: measured.exact_effect(),
            measured,
        })
    }

    /// A cell with the default boot parameters, and one with this.
    fn cells(
        &self,
        append: &str,
        workload: &BootWorkload,
        output: Output,
        stop: &AtomicBool,
    ) -> Result<[Cell; 2], String> {
        let request = BootRequest {
            kernel: self.kernel.clone().unwrap_or_else(|| RUNNING.to_owned()),
            append: append.to_owned(),
            cpus: self.cpus,
            workload: workload.clone(),
        };
        let experiment = Experiment::of_boot(&request);
        let experiment = experiment.map_err(|why| units::chain(&why).to_string())?;
        let (plans, how) = (experiment.cells(), How::default());
        let cells =
            lab::open().and_then(|lab| lab::cells_until(&lab, plans, &how, output, stop));
        both(cells.map_err(|why| why.to_string())?)
    }

    fn workload(&self, method: Method) -> BootWorkload {
        let (cpu, duration) = (self.cpu, DURATION);
        match method {
            Method::Noise | Method::Program => {
                BootWorkload::Noise { cpu, duration, fifo: None }
            }
            Method::Latency => {
                BootWorkload::Latency { cpu, interval: INTERVAL, duration, fifo: None }
            }
            Method::Ticks => BootWorkload::Ticks { cpu, duration: IDLE },
        }
    }
}

/// The two cells of a request, unless one was lost.
fn both(cells: Vec<Cell>) -> Result<[Cell; 2], String> {
    for cell in &cells {
        if let Ending::Lost { why, .. } = &cell.ending {
            return Err(format!("the guest of {} was lost: {why}", cell.kernel));
        }
    }
    <[Cell; 2]>::try_from(cells).map_err(|_| "the guests ended early".to_owned())
}

/// Work in another thread, which is stopped by a signal or at the end of the budget.
fn until_stopped<T: Send>(
    clock: Clock,
    forwarding: &mut Forwarding,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> T {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let worker = scope.spawn(|| work(&stop));
        while !worker.is_finished() {
            if forwarding.is_interrupted() || clock.rest(Nanos::ZERO).is_zero() {
                stop.store(true, Ordering::SeqCst);
            }
            thread::sleep(PERIOD);
        }
        worker.join().unwrap_or_else(|why| resume_unwind(why))
    })
}

/// The package of a release of Debian's kernel: `debian:6.12-cloud` of `6.12.48+deb13-cloud-amd64`.
fn debian_package(release: &str) -> Option<String> {
    let flavours = [("-cloud-amd64", "-cloud"), ("-rt-amd64", "-rt"), ("-amd64", "")];
    let (version, flavour) = flavours
        .into_iter()
        .find_map(|(end, flavour)| Some((release.strip_suffix(end)?, flavour)))?;
    let mut numbers = version.split('.');
    let number = |text: Option<&str>| text?.parse::<u32>().ok();
    let (major, minor) = (number(numbers.next())?, number(numbers.next())?);
    Some(format!("debian:{major}.{minor}{flavour}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the packages of Debian's kernels, and that others have none.
    #[test]
    fn packages() {
        for (release, package) in [
            ("6.12.48+deb13-amd64", Some("debian:6.12")),
            ("6.12.48+deb13-cloud-amd64", Some("debian:6.12-cloud")),
            ("6.1.0-39-rt-amd64", Some("debian:6.1-rt")),
            ("6.18.44-fc-v657", None),
            ("5.14.0-570.el9.x86_64", None),
            ("x-amd64", None),
        ] {
            assert_eq!(debian_package(release).as_deref(), package, "{release}");
        }
    }
}
