//! `fleet`: which of many nodes are noisy, and why.

use std::path::PathBuf;

use report::{fleet_document, fleet_json, fleet_pictures};
use summary::{FleetDoubtCode, FleetLabels, FleetQuestion};

use crate::args::{Output, ReportFiles};
use crate::fleet_files::{self, FleetFiles};
use crate::outcome::{Failure, Outcome};
use crate::reporting::show;

/// The number of newest entries of each history that are read.
const NEWEST: u16 = 10;

#[derive(Debug, clap::Args)]
pub(crate) struct FleetArgs {
    /// Folder with a file for each node (NODE.json, NODE@ANYTHING.json, or a history NODE.db) or a folder for each
    /// node (NODE/*.json); or such files. Histories name their machines themselves.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) places: Vec<PathBuf>,
    /// Labels of nodes, such as racks and roles: lines of NODE,KEY=VALUE,... where NODE may end in `*`.
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
    /// Kind of measurement: check, noise, latency [default: that of most recordings].
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Metric by which nodes are compared [default: noise_ppm, or the main one of that kind].
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Option<String>,
    /// Number of newest entries of each history that are read.
    #[arg(long, value_name = "N", default_value_t = NEWEST,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) last: u16,
    #[command(flatten)]
    pub(crate) written: ReportFiles,
}

pub(crate) fn run(args: &FleetArgs, output: Output) -> Result<Outcome, Failure> {
    let files = args.written.files()?;
    let output = output.beside(files.clone())?;
    let labels = args.labels.as_deref().map(fleet_files::labels).transpose()?;
    let read = FleetFiles::find(&args.places).read(usize::from(args.last), output.quiet);
    if read.fleet.is_empty() {
        return Err(read.nothing());
    }
    let question = FleetQuestion {
        kind: args.kind.clone(),
        metric: args.metric.clone(),
        labels: labels.unwrap_or_else(FleetLabels::default),
    };
    let is_complete =
        !read.doubts.iter().any(|one| FleetDoubtCode::is_left_out(one.code));
    let fleet = read.fleet.summarize(&question, read.doubts).map_err(Failure::usage)?;
    show(
        output,
        &files,
        || fleet_json(&fleet),
        || fleet_document(&fleet),
        |medium| fleet_pictures(&fleet, medium),
    )?;
    Ok(if is_complete { Outcome::Done } else { Outcome::Doubtful })
}
