//! The osnoise tracer, for the real duration of NMIs: the kernel reports their begin and end to it,
//! while `nmi:nmi_handler` only has the duration of a handler.
//!
//! Source: `kernel/trace/trace_osnoise.c`, tested on Linux 6.1.192 and 6.12. Selecting it starts a
//! busy thread on each CPU, unless `OSNOISE_WORKLOAD` (in `osnoise/options`, missing in older
//! kernels) is off. That option is global to the machine, and turning it on again starts the
//! threads for all users of the tracer: it cannot be changed temporarily, and so is never changed
//! here. The tracer is used if it has been turned off by the user. Cannot see NMIs of other
//! architectures than x86.

use std::fs;
use std::path::Path;

use units::CpuSet;

use crate::tracefs::instance::{Instance, read_whole};
use crate::tracefs::leftovers::is_ours;

const TRACER: &str = "osnoise";
/// The tracers that share the threads and their options.
const TRACERS: [&str; 2] = [TRACER, "timerlat"];
/// The entry of `osnoise/options` if no threads are started.
const NO_THREADS: &str = "NO_OSNOISE_WORKLOAD";

/// Selects the tracer, if that starts no threads and disturbs no other user; whether it is selected
/// now. The trace must not be read yet.
pub(crate) fn take(instance: &mut Instance, tracefs: &Path, cpus: &CpuSet) -> bool {
    let is_free = cfg!(target_arch = "x86_64")
        && has_word(&tracefs.join("available_tracers"), TRACER)
        && starts_nothing(tracefs)
        && covers(tracefs, cpus)
        && !is_in_use(tracefs);
    if !is_free || instance.select_tracer(TRACER).is_err() {
        return false;
    }
    // The option may just have been turned on.
    if !starts_nothing(tracefs) {
        instance.deselect_tracer();
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

/// Whether it covers all these CPUs: some may have been excluded from it.
fn covers(tracefs: &Path, cpus: &CpuSet) -> bool {
    let text = read_whole(&tracefs.join("osnoise/cpus")).unwrap_or_default();
    text.parse::<CpuSet>().is_ok_and(|seen| cpus.without(&seen).is_empty())
}

/// Whether a trace of another program uses it.
fn is_in_use(tracefs: &Path) -> bool {
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

    /// A folder with the files of a tracefs in which the tracer may be used.
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

    /// Check that the tracer counts as another program's if any trace but those of noisefloor uses
    /// it or the one that shares its threads.
    #[test]
    fn anothers() {
        for (file, tracer) in [
            ("current_tracer", "osnoise\n"),
            ("instances/other/current_tracer", "osnoise\n"),
            ("instances/noisefloor-x/current_tracer", "timerlat\n"),
        ] {
            let dir = like_tracefs();
            assert!(!is_in_use(dir.path()));
            write(dir.path(), file, tracer);
            assert!(is_in_use(dir.path()), "{file}");
        }
    }

    /// Check that all CPUs have to be covered by the tracer.
    #[test]
    fn cpus() {
        let dir = like_tracefs();
        let cpus = "0,3".parse().unwrap();
        assert!(covers(dir.path(), &cpus));
        write(dir.path(), "osnoise/cpus", "0-2\n");
        assert!(!covers(dir.path(), &cpus));
    }
}
