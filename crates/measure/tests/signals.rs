//! Signals that request a measurement to stop.

use std::time::Duration;

use measure::{Relay, Stop};

/// The signals whose default action is to end the process (`signal(7)`), except those that cannot be
/// handled, or are raised by errors of the process, and SIGPIPE, which Rust ignores.
const ENDING: [libc::c_int; 15] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGABRT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGSTKFLT,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
];

/// The wait status of a forked process that calls this.
fn status_of(what: impl FnOnce()) -> libc::c_int {
    // SAFETY: the child makes async-signal-safe calls only; `status` outlives the wait.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            what();
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    }
}

fn raise(signal: libc::c_int) {
    // SAFETY: takes a number only.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

fn set(signal: libc::c_int, to: libc::sighandler_t) {
    // SAFETY: no handler is given.
    assert_ne!(unsafe { libc::signal(signal, to) }, libc::SIG_ERR);
}

/// Check that each signal that would end a process requests it to stop instead, is counted and read,
/// and has its default action again after the relay; that SIGTERM does so though it was ignored, and
/// SIGHUP does not (`nohup`); and that `abort(3)` and errors still end a process.
#[test]
fn signals_stop() {
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    for signal in ENDING.into_iter().chain(real_time) {
        let (is_term, is_hup) = (signal == libc::SIGTERM, signal == libc::SIGHUP);
        set(signal, if is_term || is_hup { libc::SIG_IGN } else { libc::SIG_DFL });
        let stop = Stop::new().unwrap();
        let relay = Relay::of_own_work(Some(&stop)).unwrap();
        let before = Relay::count();
        raise(signal);
        raise(signal);
        assert_eq!(stop.is_requested(), !is_hup, "{signal}");
        assert_eq!(Relay::count() - before, if is_hup { 0 } else { 2 }, "{signal}");
        let next = || relay.next(Some(Duration::ZERO)).unwrap();
        for _ in 0..if is_hup { 0 } else { 2 } {
            let received = next().unwrap();
            assert_eq!((received.signal, received.was_sent), (signal, true));
        }
        assert_eq!(next(), None);
        let aborted = status_of(|| std::process::abort());
        assert_eq!(libc::WTERMSIG(aborted), libc::SIGABRT);
        // Rust's own handler returns once, for the error to be raised again.
        let failed = status_of(|| [libc::SIGSEGV; 2].into_iter().for_each(raise));
        assert_eq!(libc::WTERMSIG(failed), libc::SIGSEGV);
        drop(relay);
        let ended = libc::WTERMSIG(status_of(|| raise(signal)));
        assert_eq!(ended, if is_term || is_hup { 0 } else { signal });
        set(signal, libc::SIG_DFL);
    }
}
