//! Reading from a C program's memory, and writing to it.
//!
//! A struct begins with the size that it had when the program was compiled, so that it can grow.
//! Fields beyond that size are not written, and are zero when read; fields that this library does
//! not know must be zero.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::slice;

use ffi::Failure;

/// A struct that begins with its size.
///
/// # Safety
/// All fields are integers, without padding, so that any bytes are valid. The first field is a
/// `usize`.
pub(crate) unsafe trait Growing: Copy {}

/// Reads a struct; `None` for null.
///
/// # Safety
/// The pointer is null, or the struct has the size that it states.
pub(crate) unsafe fn read<T: Growing>(from: *const T) -> Result<Option<T>, Failure> {
    if from.is_null() {
        return Ok(None);
    }
    let size = size_of::<T>();
    // SAFETY: the struct begins with its size.
    let given = unsafe { from.cast::<usize>().read_unaligned() };
    check(given, size)?;
    // SAFETY: the caller guarantees it.
    let bytes = unsafe { slice::from_raw_parts(from.cast::<u8>(), given) };
    if bytes.iter().skip(size).any(|&byte| byte != 0) {
        let text = "the options have fields that this library does not know; hint: it is \
                    older than the header";
        return Err(Failure::usage(text));
    }
    // SAFETY: there are at least `size` bytes, and any bytes are a valid `T`.
    Ok(Some(unsafe { from.read_unaligned() }))
}

/// Writes a struct; bytes of the program's struct beyond it become zero.
///
/// # Safety
/// The pointer is null, or the struct has the size that it states and can be written.
pub(crate) unsafe fn write<T: Growing>(to: *mut T, value: &T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(null("the struct to write to"));
    }
    // SAFETY: the caller guarantees it.
    let given = unsafe { to.cast::<usize>().read_unaligned() };
    check(given, size_of::<T>())?;
    let (head, all) = (size_of::<usize>(), size_of::<T>());
    // SAFETY: both are at least as long as a `T`; the first field keeps the program's size.
    unsafe {
        let (from, to) = (ptr::from_ref(value).cast::<u8>(), to.cast::<u8>());
        ptr::copy_nonoverlapping(from.add(head), to.add(head), all - head);
        to.add(all).write_bytes(0, given - all);
    }
    Ok(())
}

/// A longer struct comes from a later header; there is no earlier header yet.
fn check(given: usize, size: usize) -> Result<(), Failure> {
    let most = 4096;
    if (size..=most).contains(&given) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "the field size is {given}; expected sizeof the struct ({size})"
    )))
}

/// Writes one value, unless the pointer is null.
///
/// # Safety
/// The pointer is null or can be written.
pub(crate) unsafe fn put<T: Copy>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller guarantees it.
        unsafe { to.write(value) };
    }
}

/// Writes a text, cut to `size` bytes with the terminating null byte, and returns its length
/// before the cut.
///
/// # Safety
/// The pointer is null, or `size` bytes can be written.
pub(crate) unsafe fn text(
    text: &str,
    to: *mut c_char,
    size: usize,
) -> Result<c_int, Failure> {
    if !to.is_null() && size > 0 {
        let capacity = text.len().min(size - 1);
        let whole = (0..=capacity).rev().find(|&at| text.is_char_boundary(at));
        let length = whole.unwrap_or(0);
        // SAFETY: `length` is less than `size`, and no longer than the text.
        unsafe {
            ptr::copy_nonoverlapping(text.as_ptr().cast(), to, length);
            to.add(length).write(0);
        }
    }
    c_int::try_from(text.len()).map_err(|_| Failure::usage("the text is too long"))
}

/// The failure for a pointer that must not be null.
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

    // SAFETY: both are integers without padding, and begin with a usize.
    unsafe impl Growing for Old {}
    // SAFETY: as above.
    unsafe impl Growing for New {}

    const NEW: New = New { old: Old { size: size_of::<New>(), a: 5 }, b: 0 };

    /// Check that a longer struct is read if its unknown fields are zero, and refused otherwise.
    #[test]
    fn later_headers() {
        // SAFETY: each struct has the size that it states.
        let of = |new: &New| unsafe { read(ptr::from_ref(new).cast::<Old>()) };
        assert_eq!(of(&NEW), Ok(Some(NEW.old)));
        assert!(of(&New { b: 1, ..NEW }).unwrap_err().text.contains("older"));
        let mut place = New { b: 9, ..NEW };
        let short = Old { size: size_of::<Old>(), a: 7 };
        // SAFETY: the place has the size that it states.
        unsafe { write(ptr::from_mut(&mut place).cast::<Old>(), &short).unwrap() };
        assert_eq!(place, New { old: Old { size: size_of::<New>(), a: 7 }, b: 0 });
    }

    /// Check that a size that was not set is an error, and that null is read as no struct.
    #[test]
    fn sizes_are_checked() {
        for size in [0, size_of::<Old>() - 1, 1 << 40] {
            // SAFETY: only the size is read if it is refused.
            let refused = unsafe { read(&Old { size, a: 0 }) }.unwrap_err();
            assert!(refused.text.contains("sizeof"), "{}", refused.text);
        }
        // SAFETY: the pointer is null.
        assert_eq!(unsafe { read::<Old>(ptr::null()) }, Ok(None));
        // SAFETY: the pointer is null.
        assert!(unsafe { write::<Old>(ptr::null_mut(), &NEW.old) }.is_err());
    }

    /// Check that a text is cut between characters and terminated, and its whole length returned.
    #[test]
    fn texts_are_cut() {
        for (size, expected) in
            [(0, "zzzzz"), (1, ""), (3, "a"), (4, "a\u{b5}"), (9, "a\u{b5}b")]
        {
            let mut place = *b"zzzzz\0\0\0\0\0";
            // SAFETY: the place has ten bytes.
            let length = unsafe { text("a\u{b5}b", place.as_mut_ptr().cast(), size) };
            assert_eq!(length, Ok(4));
            let end = place.iter().position(|&byte| byte == 0).unwrap();
            assert_eq!(std::str::from_utf8(&place[..end]), Ok(expected), "{size}");
        }
        // SAFETY: the pointer is null.
        assert_eq!(unsafe { text("abc", ptr::null_mut(), 9) }, Ok(3));
    }
}
