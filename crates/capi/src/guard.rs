//! The border: no panic crosses it, and each thread keeps the text of its last failure.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::code::{Failure, NF_BUG};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Why the last call of this thread that failed did so, and what would help; empty where none
/// has. The text is good until another call of this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn nf_last_error() -> *const c_char {
    // A thread that is ending has no text any more.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Does what a function of the ABI is to do; its code where it fails.
pub(crate) fn guard(work: impl FnOnce() -> Result<c_int, Failure>) -> c_int {
    caught(work).unwrap_or_else(|failure| {
        note(&failure.text);
        failure.code
    })
}

/// What the work comes to; a panic is a failure like others.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = words(panic.as_ref()).unwrap_or("it does not say why");
        let text = format!("a mistake in libnoisefloor, please report it: {why}");
        // Who panics with something that panics when dropped is not helped here.
        std::mem::forget(panic);
        Err(Failure::new(NF_BUG, text))
    })
}

/// Keeps a text for `nf_last_error`.
pub(crate) fn note(text: impl Display) {
    let text = text.to_string().replace('\0', " ");
    let text = CString::new(text).unwrap_or_default();
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

fn words(panic: &(dyn Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{NF_OK, NF_USAGE};
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: a text that ends, and that this thread does not change meanwhile.
        unsafe { CStr::from_ptr(nf_last_error()) }.to_str().unwrap().to_owned()
    }

    extern "C" fn panics() -> c_int {
        guard(|| panic_with("on purpose".to_owned()))
    }

    /// Panics, but writes nothing of it: a reader of the tests' output looks for that of failures.
    fn panic_with<T>(what: impl Any + Send) -> T {
        std::panic::resume_unwind(Box::new(what))
    }

    /// Check that a panic becomes a code, and its words the thread's last error.
    #[test]
    fn panics_do_not_cross() {
        let call: extern "C" fn() -> c_int = panics;
        assert_eq!(call(), NF_BUG);
        assert!(last().ends_with("on purpose"), "{}", last());
        assert_eq!(guard(|| panic_with(7)), NF_BUG);
        assert!(last().ends_with("does not say why"), "{}", last());
    }

    /// Check that a failure is kept until the next one, and by its own thread only.
    #[test]
    fn each_thread_has_its_own() {
        assert_eq!(guard(|| Err(Failure::usage("a\0b"))), NF_USAGE);
        assert_eq!(guard(|| Ok(NF_OK)), NF_OK);
        assert_eq!(last(), "a b");
        assert_eq!(std::thread::spawn(last).join().unwrap(), "");
    }
}
