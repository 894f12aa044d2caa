//! noisefloor measures OS noise and scheduling jitter on Linux, attributes it to its sources,
//! isolates CPUs reversibly, and compares kernels exactly.
//!
//! ```text
//! main ──▶ command/   one module per command: options ▶ session ▶ report ▶ exit code
//!      └──▶ lab/       the commands of the lab; args: options that several commands have
//!   jitter_watcher, supervisor  progress of `jitter`; the process that runs a user's library
//!   repeating      repeated runs of a measurement, with different settings in turn
//!   proving        changes that advice names, tried here and in guests
//!   forwarding     signals to a child process
//!   isolating      options of isolation
//!   claiming       the option that concerns CPUs on which another noisefloor measures
//!   measured       a recording and its summary
//!   measuring      shared by the measuring commands: a session, saving, printing
//!   saved          the history of this machine
//!   remarks        what a session reports, as messages
//!   inputs         the files that a command reads
//!   file_pattern   host names and times in the names of output files
//!   fleet_files    the files of many nodes
//!   destination    the files or standard output that -o names
//!   command_line   the default command; usage: usage errors
//!   printing       output to standard output and standard error
//!   terminal       progress, live ticks, Ctrl-C; progress_line
//!   top_screen     the live view of `top`; live_terminal: a terminal in raw mode, and its end
//!   forced_end     the end by repeated signals
//!   outcome        exit codes, and the exit code of each failure
//! ```
#![forbid(unsafe_code)]
// All output passes the filter in `printing`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod claiming;
mod command;
mod command_line;
mod destination;
mod file_pattern;
mod fleet_files;
mod forced_end;
mod forwarding;
mod help_groups;
mod host;
mod inputs;
mod isolating;
mod jitter_watcher;
mod lab;
mod live_terminal;
mod measured;
mod measuring;
mod on_stop;
mod outcome;
mod printing;
mod progress_line;
mod proving;
mod remarks;
mod repeating;
mod reporting;
mod saved;
mod supervisor;
mod terminal;
mod top_screen;
mod usage;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use crate::command::{Args, Command};
use crate::outcome::{Failure, Outcome};
use crate::printing::say;
use crate::remarks::Remarks;

fn main() -> ExitCode {
    // Started again through /proc/self/exe, it would be called `exe`.
    let _ = rustix::thread::set_name(c"noisefloor");
    let ended = catch_unwind(AssertUnwindSafe(|| run(command_line::parse())));
    match ended {
        Ok(Ok(outcome)) => outcome.into(),
        Ok(Err(failure)) => {
            say(&failure);
            failure.outcome().into()
        }
        Err(_) => {
            say("this is a bug in noisefloor: please report the above");
            Outcome::Bug.into()
        }
    }
}

fn run(args: Args) -> Result<Outcome, Failure> {
    terminal::report_waits(args.output.quiet);
    printing::fit_terminal(matches!(args.command, Command::Run(_)));
    if !matches!(args.command, Command::Restore | Command::Generate(_)) {
        session::restore_left_behind(&mut Remarks { quiet: args.output.quiet });
    }
    command::run(args.command, args.output)
}
