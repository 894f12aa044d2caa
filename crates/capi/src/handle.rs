//! Handles: numbers in the shape of pointers, which are looked up, never dereferenced, and never
//! used again.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Arc, Mutex};

use ffi::{Failure, lock, patient_lock};

/// The distance between two handles, and of the first from null.
const STEP: usize = 16;

/// The objects of one kind that C programs have handles of.
pub(crate) struct Handles<Handle, T> {
    table: Mutex<Table<T>>,
    handle: PhantomData<fn(Handle)>,
}

struct Table<T> {
    last: usize,
    objects: BTreeMap<usize, Arc<T>>,
}

impl<Handle, T> Handles<Handle, T> {
    pub(crate) const fn new() -> Self {
        let table = Table { last: 0, objects: BTreeMap::new() };
        Self { table: Mutex::new(table), handle: PhantomData }
    }

    /// Adds an object; returns its handle.
    pub(crate) fn put(&self, object: T) -> *mut Handle {
        let mut table = lock(&self.table);
        table.last += STEP;
        let number = table.last;
        table.objects.insert(number, Arc::new(object));
        ptr::without_provenance_mut(number)
    }

    /// The object of a handle.
    pub(crate) fn get(&self, handle: *const Handle) -> Result<Arc<T>, Failure> {
        let found = lock(&self.table).objects.get(&handle.addr()).cloned();
        found.ok_or_else(|| unknown(handle.is_null()))
    }

    /// Removes the object of a handle; the handle is invalid from then on.
    pub(crate) fn take(&self, handle: *mut Handle) -> Result<Arc<T>, Failure> {
        let found = lock(&self.table).objects.remove(&handle.addr());
        found.ok_or_else(|| unknown(handle.is_null()))
    }

    /// Removes all objects, at the end of the process; none where the lock is not released.
    pub(crate) fn take_all(&self) -> Vec<Arc<T>> {
        let all =
            patient_lock(&self.table).map(|mut table| std::mem::take(&mut table.objects));
        all.unwrap_or_default().into_values().collect()
    }
}

fn unknown(null: bool) -> Failure {
    let which = if null { "null" } else { "released, or none of this library's" };
    Failure::usage(format!("the handle is {which}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a handle leads to its object until that is removed, and to none after that.
    #[test]
    fn handles_end() {
        let handles: Handles<u8, &str> = Handles::new();
        let [one, two] = [handles.put("one"), handles.put("two")];
        assert_eq!(handles.get(one).as_deref(), Ok(&"one"));
        assert_eq!(handles.take(one).as_deref(), Ok(&"one"));
        assert!(handles.get(one).is_err() && handles.take(one).is_err());
        assert_ne!(handles.put("three"), one);
        assert!(handles.get(ptr::null()).unwrap_err().text.contains("null"));
        assert_eq!(handles.get(two).as_deref(), Ok(&"two"));
        assert_eq!(handles.take_all().len(), 2);
        assert!(handles.get(two).is_err());
    }
}
