//! `watch`: what takes time from a program that runs already.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;

use ::facts::{Facts, Root};
use recording::{Spec, WatchSpec, WatchTarget, WatchedDelay};
use session::{Event, Observer, Plan};
use units::{Nanos, chain};

use crate::args::{Output, SaveOptions, some_seconds, span};
use crate::destination::Destination;
use crate::measured::Measured;
use crate::measuring::{finish, judge};
use crate::outcome::{Failure, Outcome};
use crate::printing::say;
use crate::remarks::Remarks;
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Duration, in seconds or with a unit (1h); Ctrl-C ends it earlier.
    #[arg(short, long, value_name = "TIME", default_value = "10", value_parser = some_seconds)]
    pub(crate) duration: Nanos,
    /// Number of the longest delays to keep, each with what had the CPU meanwhile: 1 to 64.
    #[arg(long, value_name = "N", default_value = "10",
        value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) keep: u32,
    /// Append each of them to FILE when it happens, as one line of JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Append only delays longer than TIME, with a unit (1ms).
    #[arg(long, value_name = "TIME", value_parser = span, requires = "log")]
    pub(crate) log_above: Option<Nanos>,
    /// Longest wait for a CPU, with a unit (5ms); exit code 1 if exceeded.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) max_wait: Option<Nanos>,
    #[command(flatten)]
    pub(crate) saved: SaveOptions,
}

/// What is watched.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct TargetArgs {
    /// The threads of these processes: PIDs, separated by commas; at most 8.
    #[arg(short, long, value_name = "PID", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..))]
    pid: Vec<u32>,
    /// The threads of a systemd unit (nginx, nginx.service), or of a container, by 12 or more digits of
    /// its ID.
    #[arg(short, long, value_name = "UNIT")]
    unit: Option<String>,
    /// The threads of a cgroup and of those below it: its directory, or its path in the hierarchy.
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,
}

impl TargetArgs {
    fn target(&self) -> WatchTarget {
        match (&self.unit, &self.cgroup) {
            (Some(unit), _) => WatchTarget::Unit(unit.clone()),
            (None, Some(path)) => WatchTarget::Cgroup(path.clone()),
            (None, None) => WatchTarget::Processes(self.pid.clone()),
        }
    }
}

pub(crate) fn run(args: &WatchArgs, output: Output) -> Result<Outcome, Failure> {
    let files = args.saved.files();
    let output = output.beside(files.clone())?;
    let log = args.log.as_ref().map(|path| Log::open(path)).transpose()?;
    let above = args.log.as_ref().map(|_| args.log_above.unwrap_or(Nanos::ZERO));
    let spec = Spec::Watch(WatchSpec {
        target: args.target.target(),
        duration_ns: args.duration,
        keep: args.keep,
        log_above_ns: above,
    });
    let plan = Plan::new(spec, Facts::read(&Root::live()));
    let claimed = plan.claim(&mut Remarks { quiet: output.quiet })?;
    let mut observer = Logging { terminal: Terminal::new(output.quiet, None)?, log };
    let control = observer.terminal.control();
    let measured = Measured::new(claimed.run(&control, &mut observer)?);
    let outcome = finish(&measured, &files, output)?;
    let limits = args.max_wait.map(summary::Limit::wait);
    Ok(judge(outcome, &measured, &limits.into_iter().collect::<Vec<_>>()))
}

/// The file to which delays are appended as they happen.
struct Log {
    path: PathBuf,
    file: File,
    has_failed: bool,
}

impl Log {
    fn open(path: &std::path::Path) -> Result<Self, Failure> {
        let opened = OpenOptions::new().append(true).create(true).open(path);
        let file = opened.map_err(|why| Destination::new("--log", path).refuse(why))?;
        Ok(Self { path: path.to_owned(), file, has_failed: false })
    }

    /// Appends a delay; the first failure is reported, and the measurement continues.
    fn append(&mut self, delay: &WatchedDelay) {
        let line = delay.to_line().map_err(std::io::Error::other);
        let written = line.and_then(|line| self.file.write_all(line.as_bytes()));
        if let Err(why) = written
            && !std::mem::replace(&mut self.has_failed, true)
        {
            let path = self.path.display();
            say(format_args!("failed to write to {path}: {}", chain(&why)));
        }
    }
}

/// Writes delays to the log, and shows the rest.
struct Logging {
    terminal: Terminal,
    log: Option<Log>,
}

impl Observer for Logging {
    fn event(&mut self, event: Event<'_>) {
        match (event, &mut self.log) {
            (Event::Delay(delay), Some(log)) => log.append(delay),
            (event, _) => self.terminal.event(event),
        }
    }
}
