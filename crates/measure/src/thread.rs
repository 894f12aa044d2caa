//! A thread of a measurement: named, so that it can be found in `ps -eL`, and never left
//! behind. One that is seated takes its CPU, and then waits for the start.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::{Error, Kind};

/// Starts a thread of that name (15 bytes of it are kept).
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    life: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, life).map_err(|error| {
        Error::system(format!("failed to start a thread for {name}"), error)
    })
}

/// Lets no signal be handled by the calling thread, nor by those it starts.
pub(crate) fn block_signals() {
    let _ = block_all();
}

/// The same; the signals that were blocked before.
fn block_all() -> libc::sigset_t {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::zeroed());
    // SAFETY: `all` is room for a set, which the first call fills and the second reads; an empty
    // `before` is what it is where that fails.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

/// Leaves signals to the other threads of this process until it is dropped. The kernel would give
/// them to its first thread before all others, also while that does not get to run.
pub(crate) struct SignalsElsewhere {
    before: libc::sigset_t,
    // It is the thread's own mask that is given back.
    _own: PhantomData<*const ()>,
}

impl SignalsElsewhere {
    pub(crate) fn begin() -> Self {
        Self { before: block_all(), _own: PhantomData }
    }
}

impl Drop for SignalsElsewhere {
    fn drop(&mut self) {
        let (before, none) = (&raw const self.before, ptr::null_mut());
        // SAFETY: the set outlives the call, which only reads it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, none) };
    }
}

/// Why a thread did not tell what it was there to tell.
pub(crate) fn died(name: &str) -> Error {
    Error::new(Kind::System, format!("the thread {name} died"))
}

/// A thread that has what it needs and waits for the start.
pub(crate) struct Seated<'scope, Ready, Start, Seen> {
    /// What it found when it took its place.
    pub(crate) ready: Ready,
    name: String,
    start: Sender<Start>,
    thread: ScopedJoinHandle<'scope, Option<Seen>>,
}

/// The thread's side: where it tells that it is ready, and hears of the start.
pub(crate) struct Seat<Ready, Start> {
    ready: Sender<Result<Ready, Error>>,
    start: Receiver<Start>,
}

impl<Ready, Start> Seat<Ready, Start> {
    /// Tells whether the thread is ready, and waits for the start; `None` where it is not, or
    /// where nobody starts it.
    pub(crate) fn wait(self, ready: Result<Ready, Error>) -> Option<Start> {
        self.ready.send(ready).ok()?;
        self.start.recv().ok()
    }
}

impl<'scope, Ready, Start, Seen> Seated<'scope, Ready, Start, Seen>
where
    Ready: Send + 'scope,
    Start: Send + 'scope,
    Seen: Send + 'scope,
{
    /// Starts the thread, which lives its `life`; `done` is sent to when that is over.
    pub(crate) fn take(
        scope: &'scope Scope<'scope, '_>,
        name: String,
        done: Sender<()>,
        life: impl FnOnce(Seat<Ready, Start>) -> Option<Seen> + Send + 'scope,
    ) -> Result<Self, Error> {
        let (ready, is_ready) = channel();
        let (start, begin) = channel();
        let thread = self::start(scope, &name, move || {
            let seen = life(Seat { ready, start: begin });
            // Nobody may be waiting any more; that is their business.
            let _ = done.send(());
            seen
        })?;
        let ready = is_ready.recv().unwrap_or_else(|_| Err(died(&name)))?;
        Ok(Self { ready, name, start, thread })
    }

    /// Lets the thread begin.
    pub(crate) fn start(&self, start: Start) {
        // A thread that has died is noticed when it is joined.
        let _ = self.start.send(start);
    }

    /// What the thread saw.
    pub(crate) fn join(self) -> Result<Seen, Error> {
        drop(self.start);
        self.thread.join().ok().flatten().ok_or_else(|| died(&self.name))
    }
}
