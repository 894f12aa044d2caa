//! The arguments of this process, and the default command.

use std::ffi::OsString;

use crate::command::Args;
use crate::help_groups::is_command;
use crate::usage::parse_arguments;

/// Parses the arguments of this process; on a usage error, prints it and exits.
pub(crate) fn parse() -> Args {
    parse_arguments(&with_command(std::env::args_os().collect()))
}

/// Inserts `check` if there is no command: `noisefloor --json` is `noisefloor check
/// --json`.
fn with_command(mut args: Vec<OsString>) -> Vec<OsString> {
    let names = |arg: &OsString| arg.to_str().is_some_and(is_command);
    let asks =
        |arg: &OsString| ["-h", "--help", "-V", "--version"].iter().any(|a| arg == a);
    let option = |arg: &OsString| arg.as_encoded_bytes().starts_with(b"-");
    let given = args.get(1..).unwrap_or_default();
    if given.first().is_none_or(option) && !given.iter().any(|a| names(a) || asks(a)) {
        args.insert(args.len().min(1), "check".into());
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which arguments get the default command `check`.
    #[test]
    fn check_is_the_default() {
        for (given, expected) in [
            ("noisefloor", "noisefloor check"),
            ("noisefloor --json", "noisefloor check --json"),
            ("noisefloor -c 1 -d 2", "noisefloor check -c 1 -d 2"),
            ("noisefloor --json ticks", "noisefloor --json ticks"),
            ("noisefloor --help", "noisefloor --help"),
            ("noisefloor tikcs", "noisefloor tikcs"),
        ] {
            let args = with_command(given.split(' ').map(OsString::from).collect());
            assert_eq!(args.join(" ".as_ref()), expected);
        }
    }
}
