//! The border between C and Rust: no panic crosses it, and each thread stores the text of its
//! last failure.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::code::{Failure, NF_BUG};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The text of the last failure of this thread; empty if there was none. It is valid until the
/// next one.
pub fn last_error() -> *const c_char {
    // A thread that is ending no longer has its text.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Runs the body of a C function; returns its code, or that of its failure, whose text it stores
/// for [`last_error`].
pub fn guard(work: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    caught(work).unwrap_or_else(|failure| {
        note(&failure.text);
        failure.code
    })
}

/// The result of the work; a panic becomes a failure.
///
/// # Errors
/// Those of the work; `NF_BUG` if it panics.
pub fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = message(panic.as_ref()).unwrap_or("it has no message");
        let text = format!("a bug in noisefloor, please report it: {why}");
        // Dropping the payload of a panic may panic again.
        std::mem::forget(panic);
        Err(Failure::new(NF_BUG, text))
    })
}

/// Stores a text for [`last_error`].
pub fn note(text: impl Display) {
    let text = text.to_string().replace('\0', " ");
    let text = CString::new(text).unwrap_or_default();
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

fn message(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{NF_OK, NF_USAGE};
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: a terminated string, which this thread does not change meanwhile.
        unsafe { CStr::from_ptr(last_error()) }.to_str().unwrap().to_owned()
    }

    extern "C" fn panics() -> c_int {
        guard(|| panic_with("on purpose".to_owned()))
    }

    /// Panics without a message on standard error, which would look like a failed test.
    fn panic_with<T>(what: impl Any + Send) -> T {
        std::panic::resume_unwind(Box::new(what))
    }

    /// Check that a panic becomes a code, and its message the thread's last error.
    #[test]
    fn panics_do_not_cross() {
        let call: extern "C" fn() -> c_int = panics;
        assert_eq!(call(), NF_BUG);
        assert!(last().ends_with("on purpose"), "{}", last());
        assert_eq!(guard(|| panic_with(7)), NF_BUG);
        assert!(last().ends_with("has no message"), "{}", last());
    }

    /// Check that a failure is stored until the next one, and by its own thread only.
    #[test]
    fn each_thread_has_its_own() {
        assert_eq!(guard(|| Err(Failure::usage("a\0b"))), NF_USAGE);
        assert_eq!(guard(|| Ok(NF_OK)), NF_OK);
        assert_eq!(last(), "a b");
        assert_eq!(std::thread::spawn(last).join().unwrap(), "");
    }
}
