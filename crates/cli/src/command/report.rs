//! `report`: the report of saved recordings, or of files of other tools.

use std::path::{Path, PathBuf};

use ::report::Document;

use crate::args::{Output, report_outputs};
use crate::destination::{Destination, Form};
use crate::file_pattern::file_name;
use crate::inputs::load;
use crate::measured::Measured;
use crate::measuring::show;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print_document, say};
use crate::reporting::write;

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Recording saved with -o, at most 512 MiB, or a file of another tool: JSON of cyclictest, oslat and
    /// jitterdebugger, text of rtla and sysjitter, logs of jHiccup and HdrHistogram; results of
    /// benchmarks: hyperfine, Google Benchmark, Criterion (its folder), divan, JMH, Go,
    /// pytest-benchmark, perf stat, CSV, plain numbers; `-`: standard input. Several are one report.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Write the report to FILE: a page (FILE.html), Markdown (FILE.md), or a picture (FILE.svg). Can be
    /// repeated.
    #[arg(short, long, value_name = "FILE", value_parser = file_name())]
    pub(crate) output: Vec<PathBuf>,
    /// Picture to write to FILE.svg [default: the first]. An unknown name is an error that lists all.
    #[arg(long, value_name = "NAME", requires = "output")]
    pub(crate) picture: Option<String>,
}

pub(crate) fn run(args: &ReportArgs, output: Output) -> Result<Outcome, Failure> {
    let files = report_outputs(&args.output)?;
    let is_picture = |to: &Destination<'_>| to.form() == Some(Form::Picture);
    if args.picture.is_some() && !files.iter().any(is_picture) {
        return Err(Failure::usage("--picture needs -o FILE.svg"));
    }
    let output = output.beside(files.clone())?;
    let picture = args.picture.as_deref();
    if let [file] = &args.files[..] {
        let loaded = Measured::new(load(file)?);
        show(&loaded, output, || print_document(&loaded.screen(output), output.view()))?;
        return match files.is_empty() {
            true => Ok(Outcome::Done),
            false => write(&files, loaded.page(), picture).map(|()| Outcome::Done),
        };
    }
    if output.json {
        return Err(Failure::usage("--json takes one recording"));
    }
    let with_pictures = !files.is_empty() || output.view().has_pictures;
    let (document, outcome) = together(&args.files, with_pictures)?;
    if output.has_report {
        print_document(&document, output.view())?;
    }
    write(&files, &document, picture)?;
    Ok(outcome)
}

/// The reports of several files, as one. Those that cannot be read are named, and left out.
fn together(
    files: &[PathBuf],
    with_pictures: bool,
) -> Result<(Document, Outcome), Failure> {
    let mut all = Document::default();
    let mut left_out = Vec::new();
    for file in files {
        match load(file) {
            Ok(recording) => {
                let loaded = Measured::new(recording);
                let document = match with_pictures {
                    true => loaded.page().clone(),
                    false => loaded.document(),
                };
                all = all.add_titled(&name(file), document);
            }
            Err(why) => left_out.push(why),
        }
    }
    if left_out.len() == files.len() {
        return Err(left_out.swap_remove(0));
    }
    for why in &left_out {
        say(format_args!("left out: {why}"));
    }
    let all = all.left_out(left_out.iter().map(ToString::to_string));
    let outcome = if left_out.is_empty() { Outcome::Done } else { Outcome::Doubtful };
    Ok((all, outcome))
}

fn name(file: &Path) -> String {
    file.display().to_string()
}
