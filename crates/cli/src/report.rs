//! `report`: a saved recording, told again.

use recording::Recording;

use crate::args::{Output, ReportArgs};
use crate::measuring::show;
use crate::outcome::{Failure, Outcome};

pub(crate) fn run(args: &ReportArgs, output: Output) -> Result<Outcome, Failure> {
    let recording = Recording::load(&args.file)?;
    show(&recording, output, || ::report::text(&recording))?;
    Ok(Outcome::Done)
}
