//! The text that rtla prints (Linux 6.1 to 6.18).

pub(crate) mod histogram;
pub(crate) mod osnoise_top;

use std::str::FromStr;

use crate::import::{Failure, corrupt, truncated};

/// The number in a cell of a table; `None` of a cell without one.
fn number<T: FromStr>(cell: &str) -> Result<Option<T>, Failure> {
    if cell == "-" {
        return Ok(None);
    }
    cell.parse().map(Some).map_err(|_| corrupt(format!("'{cell}' is not a number")))
}

/// Refuses a text that ends in the middle of a line: a number may be cut off.
fn refuse_cut(text: &str) -> Result<(), Failure> {
    match text.ends_with('\n') {
        true => Ok(()),
        false => Err(truncated("ends in the middle of a line: truncated")),
    }
}
