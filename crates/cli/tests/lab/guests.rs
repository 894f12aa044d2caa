//! `guests` beside real guests of a Debian kernel: one with a periodic tick, one whose idle CPUs do
//! not tick. What it reports is compared with the kernel's counters, read by the test itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::site::{OLD, Site, text};

/// The longest time for a boot on a busy host.
const LONG: Duration = Duration::from_secs(1_200);
/// The unit of CPU time in `/proc/PID/stat` (`USER_HZ` is 100).
const STEP_NS: u64 = 10_000_000;

/// A kernel that is used if the shared cache has it.
const FAST: &str = "build:debian:6.1,lean,HZ=1000";

/// The only program of the guests: it sleeps until it is ended.
const INIT: &str = "#include <unistd.h>\n\
    int main(void) { if (write(1, \"ready\\n\", 6) == 6) for (;;) pause(); }\n";

/// A QEMU; it ends with this value, or with the thread that made it.
struct Qemu {
    child: Child,
    console: PathBuf,
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The kernel and the first file system of guests, in a folder.
struct Boots {
    folder: tempfile::TempDir,
    kernel: PathBuf,
}

impl Boots {
    /// `None`, with the reason printed, if the program of the guests cannot be built.
    fn new(site: &Site) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (source, init) = (folder.path().join("init.c"), folder.path().join("init"));
        fs::write(&source, INIT).unwrap();
        let mut compiler = Command::new("cc");
        let output =
            compiler.args(["-static", "-O1", "-o"]).arg(&init).arg(&source).output();
        if !output.is_ok_and(|output| output.status.success()) {
            println!("skipped: no cc with a static C library");
            return None;
        }
        fs::write(folder.path().join("initrd"), archive(&fs::read(init).unwrap()))
            .unwrap();
        let kernels = site.cache().join("kernels");
        let hash = fs::read_to_string(kernels.join("specs").join(OLD)).unwrap();
        let kernel = kernels.join(hash.trim()).join("vmlinuz");
        Some(Self { folder, kernel })
    }

    /// The same with another kernel of the cache, found by what it was built from; `None`, with the
    /// reason printed, if it has not been built.
    fn with_built(self, site: &Site, name: &str) -> Option<Self> {
        let kernels = fs::read_dir(site.cache().join("kernels")).unwrap().flatten();
        let is_built = |folder: &PathBuf| {
            let about = fs::read_to_string(folder.join("about.json")).unwrap_or_default();
            let about: Value = serde_json::from_str(&about).unwrap_or_default();
            about["build"]["name"] == name
        };
        let Some(folder) = kernels.map(|entry| entry.path()).find(is_built) else {
            println!("skipped: {name} is not in the cache of these tests");
            return None;
        };
        Some(Self { kernel: folder.join("vmlinuz"), ..self })
    }

    /// Starts a guest with two vCPUs.
    fn start(&self, name: &str, params: &str) -> Qemu {
        // A comma in a path would end it.
        let file: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let console = self.folder.path().join(format!("console-{file}"));
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "max"]);
        command.args(["-smp", "2", "-m", "128", "-display", "none", "-nodefaults"]);
        command.args(["-no-user-config", "-no-reboot", "-name", name]);
        command.arg("-serial").arg(format!("file:{}", console.display()));
        command.arg("-kernel").arg(&self.kernel);
        command.arg("-initrd").arg(self.folder.path().join("initrd"));
        let own = format!("console=ttyS0 quiet panic=-1 no_timer_check {params}");
        command.args(["-append", &own]).stdin(Stdio::null()).stdout(Stdio::null());
        isolate::tether(&mut command, None);
        Qemu { child: command.spawn().unwrap(), console }
    }
}

impl Qemu {
    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program of the guest runs.
    fn wait(&mut self) {
        let deadline = Instant::now() + LONG;
        let said = || fs::read_to_string(&self.console).unwrap_or_default();
        while !said().contains("ready") {
            assert!(Instant::now() < deadline, "{}", said());
            assert_eq!(self.child.try_wait().unwrap(), None, "{}", said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Its CPU time, and the voluntary context switches of all its threads.
    fn counters(&self) -> (u64, u64) {
        let folder = PathBuf::from(format!("/proc/{}", self.pid()));
        let stat = fs::read_to_string(folder.join("stat")).unwrap();
        let fields: Vec<&str> =
            stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // utime and stime are the fields 14 and 15; the list begins with the third.
        let times = [fields[11], fields[12]].map(|time| time.parse::<u64>().unwrap());
        let switches = fs::read_dir(folder.join("task")).unwrap().flatten().map(|task| {
            let status =
                fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let mut lines = status.lines();
            let count =
                lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            count.map_or(0, |count| count.trim().parse().unwrap())
        });
        (times.iter().sum::<u64>() * STEP_NS, switches.sum())
    }
}

/// A cpio archive (`newc`) with the console and one program.
fn archive(init: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |name: &str, mode: u32, device: [u32; 2], data: &[u8]| {
        let (size, length) = (data.len(), name.len() + 1);
        let [major, minor] = device;
        let fields = [0, mode, 0, 0, 1, 0, size.try_into().unwrap(), 0, 0, major, minor];
        bytes.extend(b"070701");
        for field in fields.into_iter().chain([length.try_into().unwrap(), 0]) {
            bytes.extend(format!("{field:08X}").bytes());
        }
        bytes.extend(name.bytes().chain([0]));
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    };
    put("dev", 0o040_755, [0, 0], &[]);
    put("dev/console", 0o020_600, [5, 1], &[]);
    put("init", 0o100_755, [0, 0], init);
    put("TRAILER!!!", 0, [0, 0], &[]);
    bytes
}

/// The output of a measurement in which no guest is busy, however slow this host is.
fn measured(site: &Site, more: &[&str]) -> Output {
    let args = ["guests", "--json", "--series", "--busy-ppm", "1000000"];
    site.output(&[&args[..], more].concat())
}

fn object(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn of_pid(list: &Value, pid: u32) -> Value {
    list.as_array().unwrap().iter().find(|guest| guest["pid"] == pid).unwrap().clone()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// Waits until the guest has finished booting: its CPUs wake up rarely.
fn wait_until_quiet(site: &Site, guest: &Qemu) {
    let deadline = Instant::now() + LONG;
    loop {
        let found = object(&measured(site, &["-d", "2"]));
        let found = of_pid(&found["summary"]["guests"], guest.pid());
        if number(&found["vcpu_wakeups_hz"]) < 30.0 {
            return;
        }
        assert!(Instant::now() < deadline, "{found}");
    }
}

/// Check the guest's values against the differences of the test's own counters, which were read
/// before and after: counts are not larger, and not much smaller.
fn compare(guest: &Value, before: (u64, u64), after: (u64, u64), wall: Duration) {
    let sum = |key: &str| {
        let vcpus = guest["vcpu_threads"].as_array().unwrap().iter();
        let vcpus: u64 = vcpus.map(|thread| thread[key].as_u64().unwrap()).sum();
        vcpus + guest["others"][key].as_u64().unwrap()
    };
    // The part of the time that noisefloor observed.
    let share = number(&guest["elapsed_ns"]) / wall.as_secs_f64() / 1e9;
    let (cpu, woken) = (after.0 - before.0, after.1 - before.1);
    let (own_cpu, own_woken) = (sum("cpu_ns"), sum("voluntary"));
    assert!(own_woken <= woken, "{own_woken} {woken}");
    assert!(
        own_woken as f64 >= woken as f64 * share / 2.0,
        "{own_woken} {woken} {share}"
    );
    // The kernel accounts a running thread's time at its tick.
    let steps = 4 * STEP_NS;
    assert!(own_cpu <= cpu + steps, "{own_cpu} {cpu}");
    let least = cpu.saturating_sub(steps) as f64 * share / 2.0;
    assert!(own_cpu as f64 >= least, "{own_cpu} {cpu} {share}");
}

/// Check that the guest with a periodic tick wakes up far more often than the tickless one and uses
/// more CPU time, that both agree with the kernel's counters, and that the saving is as defined.
#[test]
fn ticking_beside_tickless() {
    let Some(site) = Site::new() else { return };
    let Some(boots) = Boots::new(&site) else { return };
    let mut ticking = boots.start("guest=ticking,debug-threads=on", "nohz=off");
    let mut tickless = boots.start("guest=tickless,debug-threads=on", "");
    let mut unnamed = boots.start("unnamed", "nohz=off");
    for guest in [&mut ticking, &mut tickless, &mut unnamed] {
        guest.wait();
    }
    wait_until_quiet(&site, &tickless);

    let guests = [&ticking, &tickless, &unnamed];
    let (began, before) = (Instant::now(), guests.map(Qemu::counters));
    let found = object(&measured(&site, &["-d", "5"]));
    let (after, wall) = (guests.map(Qemu::counters), began.elapsed());
    for (at, guest) in guests.iter().enumerate() {
        let series = of_pid(&found["series"]["guests"], guest.pid());
        compare(&series, before[at], after[at], wall);
    }

    let summary = &found["summary"];
    let [often, rarely, plain] =
        guests.map(|guest| of_pid(&summary["guests"], guest.pid()));
    assert_eq!(
        (&often["name"], &often["accelerator"]),
        (&"ticking".into(), &"TCG".into())
    );
    assert_eq!((&often["vcpus"], &plain["vcpus"]), (&2.into(), &2.into()));
    let rate = |guest: &Value| number(&guest["vcpu_wakeups_hz"]);
    assert!(rate(&often) > 3.0 * rate(&rarely), "{often} {rarely}");
    assert!(number(&often["cpu_ppm"]) > number(&rarely["cpu_ppm"]), "{often} {rarely}");
    // Without names of threads, the wake-ups of the whole process are known.
    assert_eq!(plain["vcpu_wakeups_hz"], Value::Null);
    let all = |guest: &Value| number(&guest["wakeups_per_vcpu_hz"]);
    assert!(all(&plain) > all(&rarely) && all(&often) > all(&rarely));
    // Another guest of this host may be the best one.
    let best = number(&summary["best"]["wakeups_per_vcpu_hz"]);
    assert!(best <= all(&rarely));
    let saving = number(&often["cpu_ppm"]) * (1.0 - best / all(&often));
    assert!((number(&often["saving_ppm"]) - saving).abs() < 1e-6, "{often} {best}");
    assert!(number(&summary["saving_ppm"]) >= saving);
    assert!(number(&summary["saving_ppm"]) <= number(&summary["cpu_ppm"]));

    check_limits(&site, Path::new("guests.json"));
    let Some(boots) = boots.with_built(&site, FAST) else { return };
    let mut fast = boots.start("guest=fast,debug-threads=on", "nohz=off");
    fast.wait();
    let found = object(&measured(&site, &["-d", "5"]));
    let [fast, rarely] =
        [&fast, &tickless].map(|guest| of_pid(&found["summary"]["guests"], guest.pid()));
    assert!(rate(&fast) > 3.0 * rate(&rarely), "{fast} {rarely}");
}

/// Check that a limit sets the exit code, and that the report of the saved recording is the same.
fn check_limits(site: &Site, file: &Path) {
    let file = site.file(file.to_str().unwrap(), "");
    let most = ["--max-wakeups", "1", "-d", "1"];
    let output = measured(site, &most);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("limit exceeded"), "{}", text(&output.stderr));
    let output = site.output(&["guests", "-d", "1", "--max-wakeups", "1e9", "-o", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&site.output(&["report", &file]).stdout), text(&output.stdout));
}
