//! The osnoise tracer, on kernels that have it (Debian's for real time): used if that starts no
//! thread and disturbs no other user, without a change of the global option.
//!
//! The tests change that option and restore it; noisefloor itself never does.

use std::fs;
use std::path::{Path, PathBuf};

use blame::Watcher;
use facts::{Facts, Root};
use recording::{CulpritKind, Source};

use crate::CPU;
use crate::injector::nmis;
use crate::noise::explained;
use crate::noise_run::seen_beside;
use crate::own_mounts::with_tracefs;

const TRACEFS: &str = "/sys/kernel/tracing";
const OPTIONS: &str = "osnoise/options";
const ON: &str = "OSNOISE_WORKLOAD";
const OFF: &str = "NO_OSNOISE_WORKLOAD";
/// A trace of this PID has no process: it is above the kernel's maximum.
const LEFT: &str = "noisefloor-4194305";

fn read(file: impl AsRef<Path>) -> String {
    fs::read_to_string(Path::new(TRACEFS).join(file)).unwrap_or_default()
}

fn has(file: impl AsRef<Path>, word: &str) -> bool {
    read(file).split_ascii_whitespace().any(|found| found == word)
}

/// Sets the option; restores it when dropped.
struct Switch(&'static str);

impl Switch {
    fn turn(to: &str) -> Result<Self, String> {
        if !has("available_tracers", "osnoise") {
            return Err("this kernel has no osnoise tracer".to_owned());
        }
        let was = [ON, OFF].into_iter().find(|word| has(OPTIONS, word));
        let was = was.ok_or("this kernel's osnoise tracer always starts threads")?;
        if !threads().is_empty() || !is_free() {
            return Err("the osnoise tracer is in use".to_owned());
        }
        write(OPTIONS, to);
        Ok(Self(was))
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        write(OPTIONS, self.0);
    }
}

fn write(file: impl AsRef<Path>, text: &str) {
    fs::write(Path::new(TRACEFS).join(file), text).unwrap();
}

/// A trace of another program.
struct Other(PathBuf);

impl Other {
    fn with(name: &str, tracer: &str) -> Self {
        let folder = Path::new(TRACEFS).join("instances").join(name);
        fs::create_dir(&folder).unwrap();
        let other = Self(folder);
        write(other.tracer(), tracer);
        other
    }

    fn tracer(&self) -> PathBuf {
        self.0.join("current_tracer")
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The tracer's threads.
fn threads() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let names = processes
        .filter_map(|process| fs::read_to_string(process.path().join("comm")).ok());
    let theirs = ["osnoise/", "timerlat/"];
    names.filter(|name| theirs.iter().any(|of| name.starts_with(of))).collect()
}

/// Whether the option also applies to timerlat, if that exists: it then has files for threads of
/// user space.
fn has_quiet_timerlat() -> bool {
    has(OPTIONS, OFF) && Path::new(TRACEFS).join("osnoise/per_cpu").exists()
}

/// Whether the tracer is unused, as far as that can be determined without starting threads: if it
/// is in use, the kernel refuses the other one.
fn is_free() -> bool {
    if !has_quiet_timerlat() {
        return true;
    }
    let folder = Path::new(TRACEFS).join("instances/nf-truth-free");
    fs::create_dir(&folder).unwrap();
    let is_free = fs::write(folder.join("current_tracer"), "timerlat").is_ok();
    fs::remove_dir(&folder).unwrap();
    is_free
}

/// The tracer of a noisefloor trace while that is active.
fn watched() -> Result<String, String> {
    let facts = Facts::read(&Root::live());
    let cpu = facts.cpus.allowed.get().unwrap().iter().last().unwrap();
    let cpus = [cpu].into_iter().collect();
    let watcher = Watcher::open(&cpus, Some(Source::Tracefs), &facts);
    let folder =
        Path::new("instances").join(format!("noisefloor-{}", std::process::id()));
    let watching = watcher.map_err(|error| units::chain(&error))?.begin();
    assert_eq!(threads(), [""; 0], "during the trace");
    let is_told = has(folder.join("events/osnoise/nmi_noise/enable"), "1");
    let tracer = read(folder.join("current_tracer"));
    assert_eq!(tracer.trim() == "osnoise", is_told, "{tracer}");
    watching.end();
    assert!(!Path::new(TRACEFS).join(folder).exists());
    assert_eq!(threads(), [""; 0], "after that");
    Ok(tracer.trim().to_owned())
}

/// Runs a test with the option set, or reports why it cannot.
fn switched(name: &str, to: &str, test: impl FnOnce() -> Result<(), String> + Send) {
    let _turn = CPU.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let ended = with_tracefs(|| {
        let _switch = Switch::turn(to)?;
        test()?;
        assert!(has(OPTIONS, to), "the option is restored");
        assert!(is_free(), "the tracer is not in use");
        Ok(())
    });
    if let Err(why) = ended {
        println!("skipped: {name}: {why}");
    }
}

/// Check that the tracer is not used if that would start threads, as it would with the default
/// option.
#[test]
fn osnoise_starts_nothing() {
    switched("osnoise_starts_nothing", ON, || {
        assert_eq!(watched()?, "nop");
        Ok(())
    });
}

/// Check that it is used if it starts no thread, and deselected at the end.
#[test]
fn osnoise_without_threads() {
    switched("osnoise_without_threads", OFF, || {
        assert_eq!(watched()?, "osnoise");
        Ok(())
    });
}

/// Check that another program's use of it, or of the one that shares its threads, continues, and
/// that noisefloor then does without it.
#[test]
fn osnoise_of_another() {
    switched("osnoise_of_another", OFF, || {
        let tracers = ["osnoise", "timerlat"];
        for tracer in &tracers[..1 + usize::from(has_quiet_timerlat())] {
            let other = Other::with("nf-truth-other", tracer);
            assert_eq!(watched()?, "nop", "beside {tracer}");
            assert!(has(other.tracer(), tracer), "{tracer}");
        }
        Ok(())
    });
}

/// Check that the trace of a killed run does not prevent its use, and is removed.
#[test]
fn osnoise_of_the_killed() {
    switched("osnoise_of_the_killed", OFF, || {
        let left = Other::with(LEFT, "osnoise");
        assert_eq!(watched()?, "osnoise");
        assert!(!left.0.exists());
        Ok(())
    });
}

/// Check that the number of NMIs is that of the kernel, with the tracer and without, and that they
/// explain their gaps completely.
#[test]
fn osnoise_sees_nmis() {
    for to in [ON, OFF] {
        switched("osnoise_sees_nmis", to, || {
            let seen = seen_beside(Source::Tracefs, nmis)?;
            let events = seen.events(CulpritKind::Nmi, "NMI");
            let proc = seen.interrupts("NMI");
            assert!(events > 5, "{to}: {events}: {:?}", seen.told());
            // `/proc` was read a little earlier and a little later.
            assert!((events..=events + 2).contains(&proc), "{to}: {events} of {proc}");
            explained(&seen, CulpritKind::Nmi, "NMI");
            Ok(())
        });
    }
}
