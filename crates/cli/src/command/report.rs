//! `report`: the report of a saved recording, or of a file of another tool.

use std::path::PathBuf;

use crate::args::Output;
use crate::command::slices::draw;
use crate::destination::Destination;
use crate::inputs::load;
use crate::measured::Measured;
use crate::measuring::show;
use crate::outcome::{Failure, Outcome};

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Recording saved with -o, at most 512 MiB, or a file of another tool: JSON of cyclictest and oslat,
    /// text of rtla and sysjitter, logs of jHiccup and HdrHistogram; `-`: standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write a picture (FILE.svg, FILE.html) of a recording of slices. Can be repeated.
    #[arg(short, long, value_name = "PICTURE")]
    pub(crate) output: Vec<PathBuf>,
}

pub(crate) fn run(args: &ReportArgs, output: Output) -> Result<Outcome, Failure> {
    let mut pictures = args.output.iter().map(|file| Destination::new("-o", file));
    let output = output.beside(pictures.clone())?;
    let loaded = Measured::new(load(&args.file)?);
    pictures.try_for_each(|picture| draw(loaded.recording(), picture))?;
    show(&loaded, output, || loaded.text())?;
    Ok(Outcome::Done)
}
