//! The only process of a guest: takes an [`Order`], measures with the code of the host, sends an
//! [`Answer`] over a channel that kernel messages cannot corrupt, powers off.
//!
//! This library is the protocol of the lab and the agent; the agent itself is the binary.
#![forbid(unsafe_code)]

mod answer;
mod decode_error;
pub mod order;
mod symbols;

pub use answer::{Answer, Output};
pub use decode_error::DecodeError;
pub use order::{Order, OrderError, Task};
pub use symbols::Symbols;
