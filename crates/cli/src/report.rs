//! `report`: a saved recording, told again.

use recording::Recording;

use crate::args::{Output, ReportArgs};
use crate::measuring::{refuse_unwritable, show};
use crate::outcome::{Failure, Outcome};
use crate::slices::draw;

pub(crate) fn run(args: &ReportArgs, output: Output) -> Result<Outcome, Failure> {
    for file in &args.output {
        refuse_unwritable("-o", file)?;
    }
    let recording = Recording::load(&args.file)?;
    args.output.iter().try_for_each(|file| draw(&recording, file))?;
    show(&recording, output, || ::report::text(&recording))?;
    Ok(Outcome::Done)
}
