//! `wakers`: the threads that wake up most often, for how long they run, and which threads they
//! preempt.

use ::facts::{Facts, Root};
use recording::{Spec, WakersSpec};
use session::Plan;
use units::{CpuSet, Nanos};

use crate::args::{Output, SaveOptions, cpu_list, seconds};
use crate::measuring::{finish, measure};
use crate::outcome::{Failure, Outcome};

#[derive(Debug, clap::Args)]
pub(crate) struct WakersArgs {
    /// Count only threads woken on these CPUs, as 0-3,8.
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<CpuSet>,
    #[command(flatten)]
    pub(crate) saved: SaveOptions,
    /// Duration, in seconds or with a unit (500ms).
    #[arg(short, long, value_name = "TIME", default_value = "5", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// Number of threads to list, the most frequent first.
    #[arg(short = 'n', long, value_name = "N", default_value = "20",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) top: u32,
    /// Count only wake-ups of or by the threads of this process.
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
}

pub(crate) fn run(args: &WakersArgs, output: Output) -> Result<Outcome, Failure> {
    let files = args.saved.files();
    let output = output.beside(files.clone())?;
    let facts = Facts::read(&Root::live());
    let cpus = isolate::choose_online(args.cpus.as_ref(), &facts)?;
    let spec = Spec::Wakers(WakersSpec {
        cpus: args.cpus.as_ref().map(|_| cpus),
        duration_ns: args.duration,
        top: args.top,
        process: args.pid,
    });
    let measured = measure(Plan::new(spec, facts), output)?;
    finish(&measured, &files, output)
}
