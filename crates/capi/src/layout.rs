//! What is read from a C program's memory, and written to it.
//!
//! A struct begins with its size as the program was compiled with it: so it can grow. What a
//! program does not know is not written, and is zero where it is read; what this library does
//! not know must be zero.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::slice;

use ffi::Failure;

/// A struct that begins with its size.
///
/// # Safety
/// All of it is numbers: any bytes are one of them, and none of them is padding. The first
/// one is a `usize`.
pub(crate) unsafe trait Growing: Copy {}

/// Reads a struct; `None` where there is none.
///
/// # Safety
/// A struct that is there is as long as it says.
pub(crate) unsafe fn read<T: Growing>(from: *const T) -> Result<Option<T>, Failure> {
    if from.is_null() {
        return Ok(None);
    }
    let size = size_of::<T>();
    // SAFETY: each of them begins with its size, and is as long as that.
    let given = unsafe { from.cast::<usize>().read_unaligned() };
    check(given, size)?;
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice::from_raw_parts(from.cast::<u8>(), given) };
    if bytes.iter().skip(size).any(|&byte| byte != 0) {
        let text = "the options have some that this library does not know: it is older than \
                    the header";
        return Err(Failure::usage(text));
    }
    // SAFETY: at least `size` bytes are there, and any bytes are a `T`.
    Ok(Some(unsafe { from.read_unaligned() }))
}

/// Writes a struct, as much of it as the program knows.
///
/// # Safety
/// The place is as long as its first field says, and may be written.
pub(crate) unsafe fn write<T: Growing>(to: *mut T, value: &T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(null("the place for the answer"));
    }
    // SAFETY: the caller's promise.
    let given = unsafe { to.cast::<usize>().read_unaligned() };
    check(given, size_of::<T>())?;
    let (head, all) = (size_of::<usize>(), size_of::<T>());
    // SAFETY: both are at least as long as a `T`; the size stays as the program has set it.
    unsafe {
        let (from, to) = (ptr::from_ref(value).cast::<u8>(), to.cast::<u8>());
        ptr::copy_nonoverlapping(from.add(head), to.add(head), all - head);
        to.add(all).write_bytes(0, given - all);
    }
    Ok(())
}

/// A struct that is longer is of a later header; there is no earlier one yet.
fn check(given: usize, size: usize) -> Result<(), Failure> {
    let most = 4096;
    if (size..=most).contains(&given) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the field size is {given}, not sizeof the struct ({size})"
    )))
}

/// Writes one value; nothing where there is no place for it.
///
/// # Safety
/// A place that is there may be written.
pub(crate) unsafe fn put<T: Copy>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { to.write(value) };
    }
}

/// Writes as much of a text as there is room for, ended by a zero, and returns how long it is.
///
/// # Safety
/// A place that is there has room for `size` bytes.
pub(crate) unsafe fn text(
    text: &str,
    to: *mut c_char,
    size: usize,
) -> Result<c_int, Failure> {
    if !to.is_null() && size > 0 {
        let room = text.len().min(size - 1);
        let whole = (0..=room).rev().find(|&at| text.is_char_boundary(at));
        let length = whole.unwrap_or(0);
        // SAFETY: `length` is less than `size`, and no longer than the text.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr().cast(), to, length);
            to.add(length).write(0);
        }
    }
    c_int::try_from(text.len()).map_err(|_| Failure::usage("the text is too long"))
}

/// A pointer is null that must not be.
pub(crate) fn null(what: &str) -> Failure {
    Failure::usage(format!("{what} is a null pointer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    struct Old {
        size: usize,
        a: u64,
    }

    #[repr(C)]
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct New {
        old: Old,
        b: u64,
    }

    // SAFETY: both are numbers without padding, and begin with a usize.
    unsafe impl Growing for Old {}
    // SAFETY: as above.
    unsafe impl Growing for New {}

    const NEW: New = New { old: Old { size: size_of::<New>(), a: 5 }, b: 0 };

    /// Check that a longer struct is read as far as it is known, unless it asks for more.
    #[test]
    fn later_headers() {
        // SAFETY: each struct is as long as it says.
        let of = |new: &New| unsafe { read(ptr::from_ref(new).cast::<Old>()) };
        assert_eq!(of(&NEW), Ok(Some(NEW.old)));
        assert!(of(&New { b: 1, ..NEW }).unwrap_err().text.contains("older"));
        let mut place = New { b: 9, ..NEW };
        let told = Old { size: size_of::<Old>(), a: 7 };
        // SAFETY: the place is as long as it says.
        unsafe { write(ptr::from_mut(&mut place).cast::<Old>(), &told).unwrap() };
        assert_eq!(place, New { old: Old { size: size_of::<New>(), a: 7 }, b: 0 });
    }

    /// Check that a size that nobody has set is told, and that null is nothing.
    #[test]
    fn sizes_are_checked() {
        for size in [0, size_of::<Old>() - 1, 1 << 40] {
            // SAFETY: only the size is read where it is refused.
            let refused = unsafe { read(&Old { size, a: 0 }) }.unwrap_err();
            assert!(refused.text.contains("sizeof"), "{}", refused.text);
        }
        // SAFETY: nothing is there.
        assert_eq!(unsafe { read::<Old>(ptr::null()) }, Ok(None));
        // SAFETY: nothing is there.
        assert!(unsafe { write::<Old>(ptr::null_mut(), &NEW.old) }.is_err());
    }

    /// Check that a text is cut between letters, always ended, and its length told.
    #[test]
    fn texts_are_cut() {
        for (room, expected) in
            [(0, "zzzzz"), (1, ""), (3, "a"), (4, "a\u{b5}"), (9, "a\u{b5}b")]
        {
            let mut place = *b"zzzzz\0\0\0\0\0";
            // SAFETY: there is room for ten bytes.
            let length = unsafe { text("a\u{b5}b", place.as_mut_ptr().cast(), room) };
            assert_eq!(length, Ok(4));
            let end = place.iter().position(|&byte| byte == 0).unwrap();
            assert_eq!(std::str::from_utf8(&place[..end]), Ok(expected), "{room}");
        }
        // SAFETY: nothing is there.
        assert_eq!(unsafe { text("abc", ptr::null_mut(), 9) }, Ok(3));
    }
}
