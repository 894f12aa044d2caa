//! The C ABI: `noisefloor.h`, and `tif_helper.h` for programs written for Intel's TIF.
//!
//! What C programs read about a function is its comment here: the headers are made of it
//! (`cargo xtask header`). Here is no logic: numbers and pointers become what the rooms know,
//! and back. A panic ends at the border and is [`code::NF_BUG`] there.
//!
//! A handle is a number that looks like a pointer and is looked up, never followed: one that
//! was released, or never was, is refused.

mod at_exit;
pub mod code;
pub mod gaps;
pub mod guard;
mod handle;
pub mod isolation;
mod layout;
pub mod tif;
pub mod version;
