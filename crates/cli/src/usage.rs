//! Arguments are parsed, and usage errors are printed.

use std::ffi::OsString;
use std::mem::ManuallyDrop;

use clap::Parser;
use units::printable;

use crate::help_groups::grouped;
use crate::printing::{print, say_lines};

/// Parses arguments, the program's name first; on a usage error, prints it and exits.
pub(crate) fn parse_arguments<T: Parser>(args: &[OsString]) -> T {
    // A message quotes the arguments, on one line.
    let quoted = || args.iter().map(|arg| printable(&arg.to_string_lossy()).into_owned());
    let refused = match parsed(args) {
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

/// As [`Parser::try_parse_from`], but the description of all commands is left to the end of the process:
/// it consists of thousands of parts.
fn parsed<T: Parser>(args: &[OsString]) -> Result<T, clap::Error> {
    let mut command = ManuallyDrop::new(T::command());
    let mut matches = command.try_get_matches_from_mut(args)?;
    T::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}
