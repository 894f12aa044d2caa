//! `exporter`: what uses the CPUs of this machine, for Prometheus.

use ::exporter::{Address, Collector, Listener, serve};

use crate::args::Output;
use crate::outcome::{Failure, Outcome};
use crate::printing::say;
use crate::terminal::Terminal;

#[derive(Debug, clap::Args)]
pub(crate) struct ExporterArgs {
    /// Address and port to listen on, as 127.0.0.1:9924 or 0.0.0.0:9924 (all addresses); or a Unix
    /// socket, unix:/PATH. It listens nowhere else.
    #[arg(long, value_name = "ADDRESS")]
    listen: Address,
    /// The most programs, kernel threads and interrupts with counters of their own; the others are added up.
    #[arg(long, value_name = "N", default_value = "32",
        value_parser = clap::value_parser!(u16).range(0..=1000))]
    sources: u16,
}

pub(crate) fn run(args: &ExporterArgs, output: Output) -> Result<Outcome, Failure> {
    let listener = Listener::bind(&args.listen)?;
    let mut terminal = Terminal::new(output.quiet, None)?;
    let stop = terminal.control().stop;
    let sources = usize::from(args.sources);
    let mut collector = Collector::start(env!("CARGO_PKG_VERSION"), sources)?;
    collector.doubts().iter().for_each(say);
    terminal.remark(&match listener.address() {
        Address::Tcp(address) => format!("listening on http://{address}/metrics"),
        unix @ Address::Unix(_) => format!("listening on {unix}"),
    });
    serve(&listener, stop.requested(), &mut collector)?;
    Ok(Outcome::Done)
}
