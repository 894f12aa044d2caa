//! A program that the lab put beside the agent: runs it, and returns its output.
//!
//! Only the lab's tests use one. It has a loopback network, unlike measurements.

use std::process::{Command, Stdio};

use agent::{Output, order};

use crate::error::Error;
use crate::guest::environment::loopback;
use crate::guest::quiescence;

/// Runs it in a quiescent guest.
///
/// # Errors
/// Why it could not be run.
pub(crate) fn run(arguments: &[String]) -> Result<Output, Error> {
    loopback().map_err(|why| Error::new("failed to start the loopback network", why))?;
    quiescence::wait();
    let mut command = Command::new(order::PROGRAM);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let failed = |why| Error::new(format!("failed to run {}", order::PROGRAM), why);
    let output = output.map_err(failed)?;
    let [text, errors] = [output.stdout, output.stderr];
    let text = String::from_utf8_lossy(&text) + String::from_utf8_lossy(&errors);
    Ok(Output { code: output.status.code(), text: text.into_owned() })
}
