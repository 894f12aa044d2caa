//! Handles: numbers that look like pointers, are never followed, and never used again. What
//! one is of is found by it until it is taken away.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::Duration;

use crate::code::Failure;

/// How far handles are apart, and the first is from null: nothing else is there.
const STEP: usize = 16;
/// How often somebody who must not wait for ever looks whether a lock is free.
const LOOKS: u32 = 1_000;

/// Everything of one kind that C programs have handles of.
pub(crate) struct Shelf<Handle, T> {
    kept: Mutex<Kept<T>>,
    handle: PhantomData<fn(Handle)>,
}

struct Kept<T> {
    last: usize,
    all: BTreeMap<usize, Arc<T>>,
}

impl<Handle, T> Shelf<Handle, T> {
    pub(crate) const fn new() -> Self {
        let kept = Kept { last: 0, all: BTreeMap::new() };
        Self { kept: Mutex::new(kept), handle: PhantomData }
    }

    /// Keeps something, and gives the handle to it.
    pub(crate) fn put(&self, thing: T) -> *mut Handle {
        let mut kept = lock(&self.kept);
        kept.last += STEP;
        let number = kept.last;
        kept.all.insert(number, Arc::new(thing));
        ptr::without_provenance_mut(number)
    }

    /// What that handle is of.
    pub(crate) fn get(&self, handle: *const Handle) -> Result<Arc<T>, Failure> {
        let found = lock(&self.kept).all.get(&handle.addr()).cloned();
        found.ok_or_else(|| unknown(handle.is_null()))
    }

    /// The same, and nobody finds it any more.
    pub(crate) fn take(&self, handle: *mut Handle) -> Result<Arc<T>, Failure> {
        let found = lock(&self.kept).all.remove(&handle.addr());
        found.ok_or_else(|| unknown(handle.is_null()))
    }

    /// Everything that is left, for a process that ends; nothing where somebody does not give
    /// the lock away.
    pub(crate) fn take_all(&self) -> Vec<Arc<T>> {
        let all = patient_lock(&self.kept).map(|mut kept| std::mem::take(&mut kept.all));
        all.unwrap_or_default().into_values().collect()
    }
}

fn unknown(null: bool) -> Failure {
    let which = if null { "null" } else { "released, or none of this library's" };
    Failure::usage(format!("the handle is {which}"))
}

/// The lock, whatever became of those who had it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock for those who may have come in between their own thread that has it, as a signal
/// handler does: after a second without it they go on.
pub(crate) fn patient_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..LOOKS {
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

    /// Check that a handle leads to its own until it is taken away, and nowhere after that.
    #[test]
    fn handles_end() {
        let shelf: Shelf<u8, &str> = Shelf::new();
        let [one, two] = [shelf.put("one"), shelf.put("two")];
        assert_eq!(shelf.get(one).as_deref(), Ok(&"one"));
        assert_eq!(shelf.take(one).as_deref(), Ok(&"one"));
        assert!(shelf.get(one).is_err() && shelf.take(one).is_err());
        assert_ne!(shelf.put("three"), one);
        assert!(shelf.get(ptr::null()).unwrap_err().text.contains("null"));
        assert_eq!(shelf.get(two).as_deref(), Ok(&"two"));
        assert_eq!(shelf.take_all().len(), 2);
        assert!(shelf.get(two).is_err());
    }

    /// Check that a lock that is never given away does not stop a process from ending.
    #[test]
    fn waits_are_bounded() {
        let mutex = Mutex::new(7);
        let held = mutex.lock().unwrap();
        assert!(patient_lock(&mutex).is_none());
        drop(held);
        assert_eq!(*patient_lock(&mutex).unwrap(), 7);
    }
}
