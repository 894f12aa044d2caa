//! `slices`: time slices of CPU-bound processes, and what ends them.

use std::ffi::OsStr;
use std::path::Path;

use ::facts::Facts;
use recording::Spec;
use recording::{Body, Recording, SlicesSeries, SlicesSpec};
use session::{Plan, Trace};

use crate::args::slices::SlicesArgs;
use crate::args::{Output, Where};
use crate::destination::Destination;
use crate::measuring;
use crate::outcome::{Failure, Outcome};

pub(crate) fn run(args: &SlicesArgs, output: Output) -> Result<Outcome, Failure> {
    let mut files = args.output.iter().map(|file| Destination::new("-o", file));
    let output = output.beside(files.clone())?;
    let asked = Where { cpus: args.cpus.clone(), output: None };
    let plan = Plan {
        access: args.claiming.access(),
        trace: if args.no_trace { Trace::NoSwitches } else { Trace::Switches },
        ..Plan::choose(args.cpus.as_ref(), |cpus, _| Spec::Slices(args.spec(&cpus)))?
    };
    let recording = measuring::measure(plan, output)?;
    let text = || match args.classic {
        true => ::report::slices_classic(&recording),
        false => ::report::text(&recording),
    };
    let outcome = measuring::finish(&recording, &asked, output, text);
    files.try_for_each(|file| write(&recording, file))?;
    outcome
}

/// Writes a picture or the recording, by the file's extension.
fn write(recording: &Recording, to: Destination) -> Result<(), Failure> {
    match picture_of(to.file()) {
        Some(_) => draw(recording, to),
        None => to.save(recording),
    }
}

type Picture = fn(&Facts, &SlicesSpec, &SlicesSeries) -> String;

/// The kind of picture, by the file's extension; `None`: not a picture.
fn picture_of(file: &Path) -> Option<Picture> {
    match file.extension().and_then(OsStr::to_str) {
        Some("svg") => Some(::report::slices_svg),
        Some("html") => Some(::report::slices_html),
        _ => None,
    }
}

/// Writes a picture of a recording of slices.
pub(crate) fn draw(recording: &Recording, to: Destination) -> Result<(), Failure> {
    let Some(picture) = picture_of(to.file()) else {
        return Err(to.refuse("expected FILE.svg or FILE.html"));
    };
    let Body::Slices { spec, series } = &recording.body else {
        let kind = recording.body.kind();
        return Err(Failure::usage(format!("-o: recordings of {kind} have no picture")));
    };
    to.write(&picture(&recording.facts, spec, series))
}
