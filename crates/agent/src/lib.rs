//! The only process of a guest: takes an [`Order`], measures with the code of the host,
//! sends an [`Answer`] over a channel that kernel messages cannot corrupt, powers off.
//!
//! This library is the language that the lab and the agent share; the agent itself is
//! the binary.
#![forbid(unsafe_code)]

mod answer;
mod broken;
pub mod order;
mod symbols;

pub use answer::{Answer, Output};
pub use broken::Broken;
pub use order::{Order, OrderError, Task};
pub use symbols::Symbols;
