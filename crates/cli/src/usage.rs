//! Arguments are parsed, and usage errors are printed.

use std::ffi::OsString;

use clap::Parser;
use units::printable;

use crate::help_groups::grouped;
use crate::printing::{print, say_lines};

/// Parses arguments, the program's name first; on a usage error, prints it and exits.
pub(crate) fn parse_arguments<T: Parser>(args: &[OsString]) -> T {
    // A message quotes the arguments, on one line.
    let quoted = || args.iter().map(|arg| printable(&arg.to_string_lossy()).into_owned());
    let refused = match T::try_parse_from(args) {
        Ok(parsed) => return parsed,
        Err(refused) => T::try_parse_from(quoted()).err().unwrap_or(refused),
    };
    let text = grouped(&refused.render().to_string());
    match refused.use_stderr() {
        true => say_lines(&text),
        // If the reader has closed the pipe, there is nothing to report.
        false => drop(print(&text)),
    }
    std::process::exit(refused.exit_code())
}
