//! Locks that a panic elsewhere does not poison, and one that is not waited for without end.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::Duration;

/// How often [`patient_lock`] tries, once a millisecond.
const TRIES: u32 = 1_000;

/// The lock, even if a thread panicked while it held it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock for code that may run in a signal handler, which may have interrupted the very
/// thread that holds it: `None` after a second.
pub fn patient_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..TRIES {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => sleep(Duration::from_millis(1)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a lock that is never released does not keep a process from ending.
    #[test]
    fn waits_are_bounded() {
        let mutex = Mutex::new(7);
        let held = mutex.lock().unwrap();
        assert!(patient_lock(&mutex).is_none());
        drop(held);
        assert_eq!(*patient_lock(&mutex).unwrap(), 7);
    }
}
