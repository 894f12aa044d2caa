//! Counters of what uses the CPUs of this machine, served to Prometheus over HTTP.
//!
//! ```text
//! address    where it listens, and nowhere else
//! server     connections: one thread that sleeps until there is something to do
//! request    HTTP/1.1 requests, parsed strictly
//! response   answers
//! collector  counters, read when they are asked for
//! ```
//!
//! Cannot do: TLS and passwords; a proxy can, and a local address or a Unix socket needs none.
#![forbid(unsafe_code)]

mod address;
mod collector;
mod error;
mod request;
mod response;
mod server;

pub use address::{Address, Listener};
pub use collector::Collector;
pub use error::{Error, Kind};
pub use server::serve;
