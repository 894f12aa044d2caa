//! Boot parameters and options of the kernel's configuration: each is tried in two guests, with it and without it.
//!
//! Boot parameters are tried with one kernel, as `try --boot` does it; options with two lean kernels of its source,
//! which are built unless they are cached. Guests are exact: each number is one of the kernel and the parameters. They
//! have no devices and no programs of this machine, so that only what the kernel does by itself is compared.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ::advise::{
    Barrier, Machine, MeasuredDifference, Method, ProofOutcome, Proven, Version,
};
use ::lab::{Cache, CellObserver};
use experiments::{BootRequest, BootWorkload, Experiment, GuestPair};
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
/// The most that a case needs on a busy machine, without a kernel that is built.
const GUEST: Nanos = Nanos::from_secs(45);
/// The interval of `latency`.
const INTERVAL: Nanos = Nanos::from_micros(997);
/// How often signals and the budget are looked at.
const PERIOD: Duration = Duration::from_millis(100);

/// The prefix of kernels that are built, and of Debian's: of a package, and of its source.
const BUILD: &str = "build:";
const DEBIAN: &str = "debian:";

/// A change that is tried.
pub(super) struct Case {
    /// Its place in the list.
    pub(super) place: usize,
    /// The name of its rule.
    pub(super) rule: &'static str,
    pub(super) method: Method,
    pub(super) change: GuestChange,
}

/// What differs between two guests.
#[derive(Debug, Clone)]
pub(super) enum GuestChange {
    /// A boot parameter: without the change, and with it; `None` if it is not given.
    Boot([Option<String>; 2]),
    /// An option of the configuration, and its values without and with the change.
    Build {
        /// Its name, without `CONFIG_`.
        option: String,
        /// `None`: that of a lean kernel.
        values: [Option<String>; 2],
    },
}

/// The guests, all of one kernel or of its source.
pub(super) struct Guests {
    /// The kernel's name; `None`: that of this machine.
    kernel: Option<String>,
    /// The lean kernel of its source, or why there is none.
    lean: Result<String, String>,
    /// The package of the kernel of this machine, if it is one of Debian's.
    package: Option<String>,
    /// The measured CPU.
    cpu: Cpu,
    /// The number of CPUs.
    cpus: u32,
    /// Why no guest boots.
    impossible: Option<String>,
    /// Why none boots the kernel.
    unbootable: Option<String>,
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
        let lean = lean(kernel.as_deref(), machine.version());
        Self { kernel, lean, package, cpu, cpus, impossible, unbootable: None }
    }

    /// Finds the kernel, which may be downloaded. The time that guests of these cases need on a busy machine.
    pub(super) fn find(
        &mut self,
        cases: &[Case],
        clock: Clock,
        forwarding: &mut Forwarding,
        output: Output,
    ) -> Nanos {
        if self.impossible.is_some() {
            return Nanos::ZERO;
        }
        let builds = cases.iter().filter(|case| case.is_build()).count();
        let boots = cases.len() - builds;
        if boots > 0 {
            let found =
                until_stopped(clock, forwarding, |stop| self.kernel(output, stop));
            match found {
                Ok(kernel) => self.kernel = Some(kernel),
                Err(why) => self.unbootable = Some(why),
            }
        }
        let boots = if self.unbootable.is_none() { boots } else { 0 };
        let builds = if self.lean.is_ok() { builds } else { 0 };
        GUEST.saturating_mul((boots + builds) as u64)
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

    /// Tries a change.
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
        let pair = match self.pair(&case.change) {
            Ok(pair) => pair,
            Err(why) => return not(Barrier::NoGuest(why)),
        };
        let late = || match &pair {
            GuestPair::Boots { .. } => not(Barrier::Budget),
            GuestPair::Kernels(kernels) => {
                not(Barrier::Build(build_command(kernels, case.method)))
            }
        };
        if clock.rest(Nanos::ZERO).is_zero() {
            return late();
        }
        let found = until_stopped(clock, forwarding, |stop| {
            self.compare(case, pair.clone(), output, stop)
        });
        match found {
            Ok(proven) => ProofOutcome::Proven(proven),
            Err(_) if forwarding.is_interrupted() => not(Barrier::Interrupted),
            Err(_) if clock.rest(Nanos::ZERO).is_zero() => late(),
            Err(why) => not(Barrier::NoGuest(why)),
        }
    }

    /// The guests without and with a change. An error says why there are none.
    fn pair(&self, change: &GuestChange) -> Result<GuestPair, String> {
        if let Some(why) = &self.impossible {
            return Err(why.clone());
        }
        match (change, &self.unbootable) {
            (GuestChange::Boot(_), Some(why)) => Err(why.clone()),
            (GuestChange::Boot(parameters), None) => Ok(GuestPair::Boots {
                kernel: self.kernel.clone().unwrap_or_else(|| RUNNING.to_owned()),
                appends: parameters.clone().map(Option::unwrap_or_default),
            }),
            (GuestChange::Build { option, values }, _) => {
                let lean = self.lean.as_ref().map_err(Clone::clone)?;
                let kernel =
                    |value: &Option<String>| with_option(lean, option, value.as_deref());
                Ok(GuestPair::Kernels(values.each_ref().map(kernel)))
            }
        }
    }

    /// Compares the guests of a case, or says why there are none.
    fn compare(
        &self,
        case: &Case,
        guests: GuestPair,
        output: Output,
        stop: &AtomicBool,
    ) -> Result<Proven, String> {
        let workload = self.workload(case.method);
        let request = BootRequest { guests, cpus: self.cpus, workload };
        let experiment = Experiment::of_boot(&request);
        let experiment = experiment.map_err(|why| units::chain(&why).to_string())?;
        let (plans, how) = (experiment.cells(), How::default());
        let cells =
            lab::open().and_then(|lab| lab::cells_until(&lab, plans, &how, output, stop));
        let [base, tried] = both(cells.map_err(|why| why.to_string())?)?;
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

impl Case {
    /// Whether kernels are built for it.
    pub(super) fn is_build(&self) -> bool {
        matches!(self.change, GuestChange::Build { .. })
    }
}

/// The lean kernel of the source of a kernel, or else of that version of Debian's; an error says why there is none.
fn lean(kernel: Option<&str>, version: Option<Version>) -> Result<String, String> {
    let of_debian = |numbers: &str| format!("{BUILD}{DEBIAN}{numbers},lean");
    match kernel {
        Some(built) if built.starts_with(BUILD) => Ok(built.to_owned()),
        Some(kernel) => {
            let package = kernel.strip_prefix(DEBIAN);
            let numbers = package.and_then(|name| name.split('-').next());
            let why = || format!("the source of {kernel} is not known");
            numbers.map(of_debian).ok_or_else(why)
        }
        None => {
            let (major, minor, _) =
                version.ok_or("the version of this kernel is not known")?;
            Ok(of_debian(&format!("{major}.{minor}")))
        }
    }
}

/// The name of a kernel with that value of an option.
fn with_option(kernel: &str, option: &str, value: Option<&str>) -> String {
    match (option, value) {
        // It is a choice, of which the lean kernel has another member.
        ("PREEMPT", Some("n")) | (_, None) => kernel.to_owned(),
        ("PREEMPT", Some(_)) => format!("{kernel},PREEMPT=full"),
        (_, Some(value)) => format!("{kernel},{option}={value}"),
    }
}

/// The command that compares two kernels.
fn build_command([base, tried]: &[String; 2], method: Method) -> String {
    let experiment = method.experiment();
    format!("noisefloor lab run {experiment} --kernel {base} --kernel {tried}")
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

    fn kernels(lean: &str, option: &str, values: [Option<&str>; 2]) -> [String; 2] {
        let guests = Guests {
            kernel: None,
            lean: Ok(lean.to_owned()),
            package: None,
            cpu: DEFAULT_CPU,
            cpus: 2,
            impossible: None,
            // That of this machine is not needed.
            unbootable: Some("no image".to_owned()),
        };
        let values = values.map(|value| value.map(str::to_owned));
        let change = GuestChange::Build { option: option.to_owned(), values };
        let GuestPair::Kernels(kernels) = guests.pair(&change).unwrap() else { panic!() };
        kernels
    }

    /// Check that the command for an option names an experiment and kernels that exist, for each measurement.
    #[test]
    fn build_commands() {
        let lean = lean(None, Some((6, 12, 9))).unwrap();
        for method in [Method::Noise, Method::Latency, Method::Ticks] {
            let kernels = kernels(&lean, "NO_HZ_FULL", [Some("y"), Some("n")]);
            let command = build_command(&kernels, method);
            let words: Vec<&str> = command.split_whitespace().collect();
            assert_eq!(words[..3], ["noisefloor", "lab", "run"]);
            assert!(Experiment::builtin(words[3]).is_ok(), "{command}");
            assert_eq!(
                [words[5], words[7]],
                [
                    "build:debian:6.12,lean,NO_HZ_FULL=y",
                    "build:debian:6.12,lean,NO_HZ_FULL=n"
                ]
            );
        }
    }

    /// Check that each change of an option in the rules is two kernels that can be built.
    #[test]
    fn options_of_rules() {
        let rules = ::advise::tables().iter().flat_map(|table| &table.rules);
        let mut count = 0;
        for rule in rules {
            let ::advise::Change::Build { option, to } = &rule.change else { continue };
            let from = match to.as_str() {
                "n" => "y",
                "y" => "n",
                _ => "300",
            };
            let kernels =
                kernels("build:debian:6.12,lean", option, [Some(from), Some(to)]);
            for name in build_command(&kernels, Method::Noise).split(" --kernel ").skip(1)
            {
                assert!(kernels::check_name(name).is_ok(), "{name}");
            }
            count += 1;
        }
        assert!(count > 20);
    }

    /// Check the sources of kernels.
    #[test]
    fn sources() {
        let of = |kernel| lean(Some(kernel), Some((6, 18, 1))).ok();
        assert_eq!(of("debian:6.12-cloud").unwrap(), "build:debian:6.12,lean");
        assert_eq!(of("build:./linux,x.config").unwrap(), "build:./linux,x.config");
        assert_eq!(of("/boot/vmlinuz"), None);
        assert_eq!(lean(None, Some((6, 18, 1))).unwrap(), "build:debian:6.18,lean");
        assert!(lean(None, None).is_err());
    }

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
