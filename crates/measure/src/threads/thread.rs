//! A thread of a measurement: named, so that it can be found in `ps -eL`, and always joined. A
//! pinned thread first takes its CPU, and then waits for the start.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::{Error, Kind};

/// Starts a thread of that name (truncated to 15 bytes).
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    life: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, life).map_err(|error| {
        Error::system(format!("failed to start a thread for {name}"), error)
    })
}

/// Blocks all signals for the calling thread and the threads that it starts.
pub(crate) fn block_signals() {
    let _ = block_all();
}

/// The same; returns the previous mask.
fn block_all() -> libc::sigset_t {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::zeroed());
    // SAFETY: `all` has space for a set, which the first call fills and the second reads; `before`
    // is a valid, empty set if that fails.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    }
}

/// Leaves signals to the other threads of this process until it is dropped. The kernel prefers the
/// main thread for them, even while that does not run.
pub(crate) struct SignalsElsewhere {
    before: libc::sigset_t,
    // Not `Send`: it restores the mask of the thread that it was made by.
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

/// The error for a thread that ended without a result.
pub(crate) fn died(name: &str) -> Error {
    Error::new(Kind::System, format!("the thread {name} died"))
}

/// A thread that is pinned to its CPU and waits for the start.
pub(crate) struct PinnedThread<'scope, Ready, Start, Output> {
    /// What it reported when it was pinned.
    pub(crate) ready: Ready,
    name: String,
    start: Sender<Start>,
    thread: ScopedJoinHandle<'scope, Option<Output>>,
}

/// The thread's side: reports that it is ready, and waits for the start.
pub(crate) struct StartGate<Ready, Start> {
    ready: Sender<Result<Ready, Error>>,
    start: Receiver<Start>,
}

impl<Ready, Start> StartGate<Ready, Start> {
    /// Reports whether the thread is ready, and waits for the start; `None` if it is not ready, or
    /// is never started.
    pub(crate) fn wait(self, ready: Result<Ready, Error>) -> Option<Start> {
        self.ready.send(ready).ok()?;
        self.start.recv().ok()
    }
}

impl<'scope, Ready, Start, Output> PinnedThread<'scope, Ready, Start, Output>
where
    Ready: Send + 'scope,
    Start: Send + 'scope,
    Output: Send + 'scope,
{
    /// Starts the thread, which runs `life`; a message is sent to `done` at its end.
    pub(crate) fn spawn(
        scope: &'scope Scope<'scope, '_>,
        name: String,
        done: Sender<()>,
        life: impl FnOnce(StartGate<Ready, Start>) -> Option<Output> + Send + 'scope,
    ) -> Result<Self, Error> {
        let (ready, is_ready) = channel();
        let (start, begin) = channel();
        let thread = self::start(scope, &name, move || {
            let output = life(StartGate { ready, start: begin });
            // The receiver may no longer wait, which is no error.
            let _ = done.send(());
            output
        })?;
        let ready = is_ready.recv().unwrap_or_else(|_| Err(died(&name)))?;
        Ok(Self { ready, name, start, thread })
    }

    /// Starts the measurement of the thread.
    pub(crate) fn start(&self, start: Start) {
        // A thread that has ended early is noticed when it is joined.
        let _ = self.start.send(start);
    }

    /// The thread's result.
    pub(crate) fn join(self) -> Result<Output, Error> {
        drop(self.start);
        self.thread.join().ok().flatten().ok_or_else(|| died(&self.name))
    }
}
