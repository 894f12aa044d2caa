//! The counters, read when they are asked for: from eBPF programs that add up in the kernel, or without these
//! from `/proc`.

use std::time::{Duration, Instant, SystemTime};

use blame::MachineWatch;
use facts::{Facts, Root};
use recording::{Doubt, TopSpec};
use report::{ExporterValues, OwnUsage, exporter_text};
use rustix::time::{ClockId, clock_gettime};
use summary::MachineTotals;
use units::{CpuSet, Nanos};

use crate::request::Request;
use crate::response::Response;
use crate::server::Service;

/// Readings are not closer together: more requests are answered with the last one.
const CLOSEST: Duration = Duration::from_millis(500);
/// They are not further apart, either: the table of threads in the kernel has a fixed size, and those that have
/// ended are removed from it by a reading.
const FURTHEST: Duration = Duration::from_secs(60);

/// CPUs that were isolated at boot, and those in isolated cpusets (since 6.8).
const ISOLATED: [&str; 2] =
    ["/sys/devices/system/cpu/isolated", "/sys/fs/cgroup/cpuset.cpus.isolated"];
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
const STATUS: &str = "/proc/self/status";

/// Reads the counters of this machine.
pub struct Collector {
    watch: MachineWatch,
    totals: MachineTotals,
    version: &'static str,
    started: Option<u64>,
    read_at: Instant,
    /// The metrics of the last reading, if they were asked for.
    text: Option<String>,
}

impl Collector {
    /// Starts to count. At most `sources` sources are listed at a time.
    ///
    /// # Errors
    /// Neither programs nor `/proc` can be read.
    pub fn start(version: &'static str, sources: usize) -> Result<Self, blame::Error> {
        let facts = Facts::read(&Root::live());
        let interval_ns = Nanos::from(FURTHEST);
        let spec = TopSpec { interval_ns, duration_ns: None };

        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Ok(Self {
            watch: MachineWatch::start(&spec, &facts)?,
            totals: MachineTotals::new(sources),
            version,
            started: now.ok().map(|now| now.as_secs()),
            read_at: Instant::now(),
            text: None,
        })
    }

    /// Reasons not to trust the numbers: above all, that nothing can be traced.
    pub fn doubts(&self) -> &[Doubt] {
        self.watch.doubts()
    }

    /// The metrics, of now or of half a second ago.
    fn metrics(&mut self) -> Result<&str, blame::Error> {
        let is_recent = self.read_at.elapsed() < CLOSEST;
        let text = match self.text.take().filter(|_| is_recent) {
            Some(text) => text,
            None => {
                self.read()?;
                self.rendered()
            }
        };
        Ok(self.text.insert(text))
    }

    fn read(&mut self) -> Result<(), blame::Error> {
        self.read_at = Instant::now();
        let interval = self.watch.interval()?;
        self.totals.add(&interval);
        Ok(())
    }

    fn rendered(&self) -> String {
        let root = Root::live();
        let [isolated, partitions] = ISOLATED.map(|file| cpus(&root, file));
        let isolated = isolated.map(|boot| match partitions {
            Some(partitions) => boot.iter().chain(partitions.iter()).collect(),
            None => boot,
        });
        let nohz_full = cpus(&root, NOHZ_FULL);
        let counts = self.watch.counts();
        exporter_text(&ExporterValues {
            version: self.version,
            totals: &self.totals,
            counts: counts.as_deref(),
            lost: self.watch.lost(),
            isolated: isolated.as_ref(),
            nohz_full: nohz_full.as_ref(),
            own: self.own(&root),
        })
    }

    fn own(&self, root: &Root) -> OwnUsage {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let parts = (u64::try_from(used.tv_sec), u64::try_from(used.tv_nsec));
        let cpu_ns = match parts {
            (Ok(whole), Ok(rest)) => Nanos::from_secs(whole) + Nanos::from_nanos(rest),
            _ => Nanos::ZERO,
        };
        let resident_bytes = root.text(STATUS).ok().and_then(|text| resident(&text));
        OwnUsage { cpu_ns, resident_bytes, started: self.started }
    }
}

impl Service for Collector {
    fn answer(&mut self, request: &Request) -> Response {
        match request.path.as_str() {
            "/metrics" => match self.metrics() {
                Ok(text) => Response::metrics(text.to_owned()),
                Err(why) => Response::failed(&units::chain(&why)),
            },
            "/" => Response::page(),
            "/healthz" => Response::healthy(),
            _ => Response::not_found(),
        }
    }

    fn wakes_at(&self) -> Instant {
        self.read_at + FURTHEST
    }

    fn wake(&mut self) {
        // A request reports why it fails.
        let _ = self.read();
        self.text = None;
    }

    fn rest(&mut self) {
        // Loading programs and reading counters needs several times as much as waiting does.
        isolate::release_memory();
    }
}

/// A list of CPUs; an empty file or `(null)` is an empty list.
fn cpus(root: &Root, file: &str) -> Option<CpuSet> {
    let text = root.text(file).ok()?;
    match text.trim() {
        "" | "(null)" => Some(CpuSet::default()),
        list => list.parse().ok(),
    }
}

/// The resident memory in `/proc/PID/status` (`proc_pid_status(5)`).
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
