//! Guests with a `nohz_full` CPU: its tick stops, the cause that prevents it is named, and
//! settings are restored after each of 60 runs that were killed, in all guests together; with
//! `NOISEFLOOR_TEST_ALL`, after each of 900 of `try`. Plain emulation, in real time.

use std::time::Duration;

use lab::Program;
use recording::Mode;

use crate::guest_program::GuestProgram;
use crate::site::{NEW, OLD, Site};
use crate::watched::kernels;

/// The longest time for a guest on a busy host.
const LONG: Duration = Duration::from_secs(3_600);

/// The tests of `tests/isolation`, and the program that they call.
fn built() -> Option<[GuestProgram; 2]> {
    let built = GuestProgram::find("isolation").zip(GuestProgram::find("tool"));
    if built.is_none() {
        println!("skipped: isolated: not built: cargo xtask guest --tests");
    }
    built.map(|(tests, tool)| [tests, tool])
}

/// A guest: its kernel, boot parameters, and the tests' filter.
type Guest<'a> = (&'a str, &'a str, &'a [&'a str]);

/// Runs these tests in a guest of that kernel, with these boot parameters.
fn run(
    site: &Site,
    (kernel, params, filter): Guest<'_>,
    [tests, tool]: [GuestProgram; 2],
) {
    let always = ["--test-threads=1", "--show-output", "--skip", "what_would_help"];
    // They take a shell, and minutes.
    let skipped = ["--skip", "trying::", "--skip", "proving::"];
    let arguments = [&always[..], &skipped, filter].concat();
    let program = Program {
        bytes: tests.program,
        // The libraries of the tests are among the program's.
        others: [tool.libraries, vec![("noisefloor".to_owned(), tool.program)]].concat(),
        arguments: &arguments,
        mode: Mode::Timed,
        cpus: 2,
        cpu: Some("max"),
        params,
    };
    let (code, said) = site.run_program(kernel, program, LONG);
    assert_eq!(code, Some(0), "{kernel}: {said}");
    let skipped = said.lines().find(|line| line.starts_with("skipped: "));
    assert_eq!(skipped, None, "{kernel}");
    let is_shown =
        |line: &&str| line.contains(" killed while ") || line.starts_with("not tried");
    for line in said.lines().filter(is_shown) {
        println!("{kernel}: {line}");
    }
}

/// Checks that the tests and the kernels are there, and runs the guests at once.
fn run_all(guests: &[Guest<'_>]) {
    let Some(site) = Site::new() else { return };
    let Some(built) = built() else { return };
    if !kernels(&site, &[OLD, NEW]) {
        return;
    }
    std::thread::scope(|scope| {
        for &guest in guests {
            let (site, built) = (&site, built.clone());
            scope.spawn(move || run(site, guest, built));
        }
    });
}

/// Check all of it, on 6.1, with RT throttling, and on 6.12, with a fair server, on which a CPU
/// of `isolcpus=` can neither be released nor be part of a partition; and on 6.1 without such a
/// CPU, where partitions are possible.
#[test]
fn isolated() {
    // How programs are made ordinary, and who may open the journal, does not depend on the
    // kernel; the cause that starts a tick again is tested on 6.12 by an exact guest
    // (`nohz::brought_back`). Signals reach a process in the same way everywhere: one guest tests
    // them, where settings of `nohz` change.
    let storms = ["storms::storms"];
    // Not every kernel shows which interrupts cannot be moved.
    let most = ["--skip", "storms::", "--skip", "required::interrupts"];
    // Partitions are possible in the guest without isolated CPUs.
    let possible = ["kills::", "required::partition", "required::measurements"];
    let once = [&most[..], &["--skip", "spinning::", "--skip", "state::"]].concat();
    let once =
        [&once[..], &["--skip", "what_brings_it_back", "--skip", "required::"]].concat();
    run_all(&[
        (OLD, "nohz_full=1 isolcpus=1 rcu_nocbs=1 NOISEFLOOR_TEST_KILLS=20", &most),
        (OLD, "nohz_full=1 NOISEFLOOR_TEST_STORMS=11", &storms),
        (OLD, "NOISEFLOOR_TEST_KILLS=20", &possible),
        (NEW, "nohz_full=1 rcu_nocbs=1 NOISEFLOOR_TEST_KILLS=20", &once),
    ]);
}

/// Check that `try` restores all settings after each of 300 runs that were killed, in each of the same
/// guests.
#[test]
fn tried_300_times() {
    if std::env::var_os("NOISEFLOOR_TEST_ALL").is_none() {
        println!("skipped: tried_300_times: 300 runs in guests; make test-all runs it");
        return;
    }
    let tried: &[&str] = &["kills::tried"];
    run_all(&[
        (OLD, "nohz_full=1 isolcpus=1 rcu_nocbs=1 NOISEFLOOR_TEST_KILLS=300", tried),
        (OLD, "NOISEFLOOR_TEST_KILLS=300", tried),
        (NEW, "nohz_full=1 rcu_nocbs=1 NOISEFLOOR_TEST_KILLS=300", tried),
    ]);
}
