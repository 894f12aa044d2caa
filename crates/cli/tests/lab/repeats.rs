//! The same result to the last byte, independent of the host's load.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::site::{Site, named};

/// The experiment of these tests, with its rows in one order or the other.
const HEAD: &str =
    "name = \"mixed\"\nkernels = [\"debian:6.1-cloud\"]\nphases = 3\nvariations = 1\n";
/// The resulting number of phases.
pub(crate) const PHASES: usize = 3;
const BOOTS: [&str; 2] = [
    "[[boot]]\n",
    "[[boot]]\nname = \"two\"\ncpus = 2\ncpu = \"max\"\nappend = \"nohz_full=1\"\n",
];
const WORKLOADS: [&str; 5] = [
    "[[workload]]\nname = \"other\"\nboots = [\"\"]\n\
     noise = { cpu = 0, duration = \"150ms\" }\n",
    "[[workload]]\nname = \"calls\"\nboots = [\"\"]\n\
     calls = { cpu = 0, calls = [\"getpid\", \"pipe\"], repeats = 20 }\n",
    "[[workload]]\nname = \"noise\"\nboots = [\"two\"]\n\
     noise = { cpu = \"last\", duration = \"150ms\" }\n",
    "[[workload]]\nname = \"company\"\nboots = [\"two\"]\n\
     calls = { cpu = 1, calls = [\"futex\", \"fork\"], repeats = 20 }\n\
     background = [{ cpu = 0, spinners = 1 }]\n",
    "[[workload]]\nname = \"idle\"\nboots = [\"\"]\n\
     ticks = { cpu = 0, duration = \"150ms\" }\n",
];

/// A run of that experiment on a host with as little load as possible, shared by several tests.
pub(crate) struct Mixed {
    pub(crate) site: Site,
    pub(crate) file: String,
    /// The two shortest of its cells.
    pub(crate) brief: String,
    pub(crate) cells: Vec<Value>,
}

impl Mixed {
    pub(crate) fn get() -> Option<&'static Self> {
        static MIXED: OnceLock<Option<Mixed>> = OnceLock::new();
        let mixed = MIXED.get_or_init(|| {
            let site = Site::new()?;
            let file = site.file("mixed.toml", &forwards());
            let cells = site.cells(&[&file, "-j", "2"], 0);
            let brief = HEAD.to_owned() + BOOTS[0] + WORKLOADS[1] + WORKLOADS[4];
            let brief = site.file("brief.toml", &brief);
            Some(Self { site, file, brief, cells })
        });
        if mixed.is_none() {
            println!("skipped: no guests, as another test says");
        }
        mixed.as_ref()
    }

    /// A lab that has its results already.
    pub(crate) fn copied(&self) -> Site {
        let site = Site::new().unwrap();
        let cells = [self.site.cache().join("cells"), site.cache()];
        assert!(Command::new("cp").arg("-r").args(cells).status().unwrap().success());
        site
    }

    /// The answer of a cell's guest.
    pub(crate) fn answer(&self, name: &str) -> Vec<u8> {
        fs::read(self.site.kept(named(&self.cells, name)).join("answer")).unwrap()
    }
}

pub(crate) fn forwards() -> String {
    let rows = BOOTS.into_iter().chain(WORKLOADS);
    HEAD.to_owned() + &rows.collect::<String>()
}

fn backwards() -> String {
    let rows = BOOTS.into_iter().chain(WORKLOADS).rev();
    HEAD.to_owned() + &rows.collect::<String>()
}

/// Threads that repeatedly take the host's CPUs until they are dropped.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn new(threads: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |number| {
            let stop = stop.clone();
            // All periods differ: guests lose their CPU at every point.
            let pause = Duration::from_millis(7 + 6 * u64::from(number));
            spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    sleep(pause);
                    let began = Instant::now();
                    while began.elapsed() < Duration::from_millis(5) {}
                }
            })
        };
        Self { threads: (0..threads).map(start).collect(), stop }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

/// A cell's name, and the files of its result.
type Kept = (String, [Vec<u8>; 4]);

/// The stored files of each cell, in order.
fn results(site: &Site, cells: &[Value]) -> Vec<Kept> {
    let files = ["answer", "counts.json", "console", "inputs.json"];
    let read = |cell: &Value, file: &str| fs::read(site.kept(cell).join(file)).unwrap();
    let kept =
        |cell: &Value| (cell["name"].to_string(), files.map(|file| read(cell, file)));
    cells.iter().map(kept).collect()
}

/// Check that a loaded host, more cells in parallel, and their order change no byte of any
/// recording nor of any count, on one CPU and on two.
#[test]
fn to_the_last_byte() {
    let Some(mixed) = Mixed::get() else { return };
    let site = Site::new().unwrap();
    let file = site.file("mixed.toml", &backwards());
    let load = Load::new(3);
    let cells = site.cells(&[&file, "-j", "3"], 0);
    drop(load);
    let (first, mut second) =
        (results(&mixed.site, &mixed.cells), results(&site, &cells));
    let names = |results: &[Kept]| -> Vec<String> {
        results.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_ne!(names(&first), names(&second), "the order is another");
    second.reverse();
    assert_eq!(names(&first), names(&second));
    assert!(first == second, "the bytes are the same");
}

/// Check that repeats of a cell are run separately, and agree.
#[test]
fn repeats_agree() {
    let Some(mixed) = Mixed::get() else { return };
    let site = Site::new().unwrap();
    let args = [mixed.file.as_str(), "-s", "workload=calls", "-s", "repeats=2"];
    let cells = site.cells(&args, 0);
    let numbers: Vec<u64> = cells.iter().map(|c| c["repeat"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2]);
    for cell in &cells {
        assert_eq!(cell["cached"], false);
        assert_eq!(cell["counts"], named(&mixed.cells, "calls")["counts"]);
        assert_eq!(cell["series"], named(&mixed.cells, "calls")["series"]);
    }
}

/// Check that a cell of real time is measured, too, and is marked as unreliable if the
/// processor was emulated.
#[test]
fn timed() {
    let Some(mixed) = Mixed::get() else { return };
    let site = Site::new().unwrap();
    let args = ["lab", "run", "--json", &mixed.file, "--mode", "timed", "-s"];
    let output = site.tool(&args).arg("workload=calls").output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = told["cells"].as_array().unwrap();
    assert_eq!(cells[0]["mode"], "timed");
    assert_eq!(cells[0]["summary"]["calls"][0]["repeats"], 20);
    let doubts = cells[0]["doubts"].as_array().unwrap();
    let emulated = doubts.iter().any(|doubt| doubt["code"] == "emulated");
    let mut files = fs::read_dir(site.cache()).unwrap().flatten();
    let is_trial = |name: &str| name.starts_with("accelerator-");
    let trial = files.find(|file| file.file_name().to_str().is_some_and(is_trial));
    let trial = trial.and_then(|file| fs::read_to_string(file.path()).ok());
    let proved = trial.is_some_and(|trial| trial.contains("\"kvm\""));
    assert_eq!(emulated, !proved, "{doubts:?}");
    assert_eq!(output.status.code(), Some(if emulated { 4 } else { 0 }));
}
