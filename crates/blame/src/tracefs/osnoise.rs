//! The osnoise tracer, for what NMIs really take: the kernel tells it when they begin and end,
//! where `nmi:nmi_handler` only has how long a handler took.
//!
//! Truth: `kernel/trace/trace_osnoise.c`, tried on Linux 6.1.192 and 6.12. Having it starts a
//! thread that spins on each CPU, unless `OSNOISE_WORKLOAD` (in `osnoise/options`, which older
//! kernels have not) is off.
//! That is one switch for the whole machine, and turning it on again starts the threads of all
//! who have the tracer: it cannot be turned for a moment only, and so is never turned here. The
//! tracer is used where somebody has turned it off. Cannot see NMIs but x86's.

use std::fs;
use std::path::Path;

use units::CpuSet;

use crate::tracefs::instance::{Instance, read_whole};
use crate::tracefs::leftovers::is_ours;

const TRACER: &str = "osnoise";
/// Who has one of them has what both share: the threads, and what they are told.
const TRACERS: [&str; 2] = [TRACER, "timerlat"];
/// As `osnoise/options` says that no threads are started.
const NO_THREADS: &str = "NO_OSNOISE_WORKLOAD";

/// Has the trace use the tracer, where that starts nothing and disturbs nobody; whether it
/// does now. Nobody may be reading the trace yet.
pub(crate) fn take(instance: &mut Instance, tracefs: &Path, cpus: &CpuSet) -> bool {
    let is_free = cfg!(target_arch = "x86_64")
        && has_word(&tracefs.join("available_tracers"), TRACER)
        && starts_nothing(tracefs)
        && sees(tracefs, cpus)
        && !is_anothers(tracefs);
    if !is_free || instance.take_tracer(TRACER).is_err() {
        return false;
    }
    // Somebody may just have turned it on.
    if !starts_nothing(tracefs) {
        instance.leave_tracer();
        return false;
    }
    true
}

fn starts_nothing(tracefs: &Path) -> bool {
    has_word(&tracefs.join("osnoise/options"), NO_THREADS)
}

fn has_word(file: &Path, word: &str) -> bool {
    let text = read_whole(file).unwrap_or_default();
    text.split_ascii_whitespace().any(|found| found == word)
}

/// Whether it watches all these CPUs: somebody may have taken some from it.
fn sees(tracefs: &Path, cpus: &CpuSet) -> bool {
    let text = read_whole(&tracefs.join("osnoise/cpus")).unwrap_or_default();
    text.parse::<CpuSet>().is_ok_and(|seen| cpus.without(&seen).is_empty())
}

/// Whether a trace that is not this tool's uses it.
fn is_anothers(tracefs: &Path) -> bool {
    let is_used = |folder: &Path| {
        TRACERS.iter().any(|tracer| has_word(&folder.join("current_tracer"), tracer))
    };
    let Ok(instances) = fs::read_dir(tracefs.join("instances")) else { return true };
    let others = instances
        .flatten()
        .filter(|entry| !entry.file_name().to_str().is_some_and(is_ours));
    is_used(tracefs) || others.map(|entry| entry.path()).any(|folder| is_used(&folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with files as tracefs has them where the tracer may be used.
    fn like_tracefs() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("available_tracers", "timerlat osnoise blk function nop\n"),
            ("osnoise/options", "NO_DEFAULTS NO_OSNOISE_WORKLOAD NO_PANIC_ON_STOP \n"),
            ("osnoise/cpus", "0-8191\n"),
            ("current_tracer", "nop\n"),
            ("instances/noisefloor-7/current_tracer", "osnoise\n"),
            ("instances/other/current_tracer", "function\n"),
        ] {
            write(dir.path(), file, text);
        }
        dir
    }

    fn write(folder: &Path, file: &str, text: &str) {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// Check when threads would be started.
    #[test]
    fn starts_threads() {
        let dir = like_tracefs();
        assert!(starts_nothing(dir.path()));
        write(dir.path(), "osnoise/options", "DEFAULTS OSNOISE_WORKLOAD \n");
        assert!(!starts_nothing(dir.path()));
        // As on kernels that always start them.
        fs::remove_file(dir.path().join("osnoise/options")).unwrap();
        assert!(!starts_nothing(dir.path()));
    }

    /// Check that the tracer is another's where any but our own traces have it or the one
    /// that shares its threads.
    #[test]
    fn anothers() {
        for (file, tracer) in [
            ("current_tracer", "osnoise\n"),
            ("instances/other/current_tracer", "osnoise\n"),
            ("instances/noisefloor-x/current_tracer", "timerlat\n"),
        ] {
            let dir = like_tracefs();
            assert!(!is_anothers(dir.path()));
            write(dir.path(), file, tracer);
            assert!(is_anothers(dir.path()), "{file}");
        }
    }

    /// Check that all CPUs have to be the tracer's.
    #[test]
    fn cpus() {
        let dir = like_tracefs();
        let cpus = "0,3".parse().unwrap();
        assert!(sees(dir.path(), &cpus));
        write(dir.path(), "osnoise/cpus", "0-2\n");
        assert!(!sees(dir.path(), &cpus));
    }
}
