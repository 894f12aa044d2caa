//! The C API of noisefloor: `libnoisefloor` and `noisefloor.h`.
//!
//! The comment of each function here is its documentation in the header (`cargo xtask header`).
//! There is no logic here: arguments are converted for the other crates, and results become numbers
//! and texts. A panic ends in `ffi::guard` and becomes `NF_BUG`.
//!
//! A handle is a number in the shape of a pointer. It is looked up and never dereferenced: one that
//! was released or is invalid is refused.

pub mod error;
pub mod gaps;
mod handle;
pub mod isolation;
mod layout;
pub mod version;
