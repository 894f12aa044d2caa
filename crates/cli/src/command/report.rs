//! `report`: the report of saved recordings, or of files of other tools.

use std::path::{Path, PathBuf};

use ::report::Document;

use crate::args::{FORMS, Output};
use crate::destination::{Destination, Form};
use crate::inputs::load;
use crate::measured::Measured;
use crate::measuring::show;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print_document, say};

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Recording saved with -o, at most 512 MiB, or a file of another tool: JSON of cyclictest and oslat,
    /// text of rtla and sysjitter, logs of jHiccup and HdrHistogram; `-`: standard input. Several are one
    /// report.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Write the report to FILE: a page (FILE.html), Markdown (FILE.md), or a picture (FILE.svg). Can be
    /// repeated.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    /// Picture to write to FILE.svg [default: the first]. An unknown name is an error that lists all.
    #[arg(long, value_name = "NAME", requires = "output")]
    pub(crate) picture: Option<String>,
}

pub(crate) fn run(args: &ReportArgs, output: Output) -> Result<Outcome, Failure> {
    let files: Vec<_> =
        args.output.iter().map(|file| Destination::new("-o", file)).collect();
    let forms: Vec<Form> = files.iter().map(|to| form(*to)).collect::<Result<_, _>>()?;
    if args.picture.is_some() && !forms.contains(&Form::Picture) {
        return Err(Failure::usage("--picture needs -o FILE.svg"));
    }
    let output = output.beside(files.clone())?;
    let write = |document: &Document| -> Result<(), Failure> {
        let mut each = files.iter().zip(&forms);
        let picture = args.picture.as_deref();
        each.try_for_each(|(to, form)| to.write_report(*form, document, picture))
    };
    if let [file] = &args.files[..] {
        let loaded = Measured::new(load(file)?);
        show(&loaded, output, || print_document(&loaded.screen(output), output.view()))?;
        return match files.is_empty() {
            true => Ok(Outcome::Done),
            false => write(&loaded.page()).map(|()| Outcome::Done),
        };
    }
    if output.json {
        return Err(Failure::usage("--json takes one recording"));
    }
    let (document, outcome) = together(&args.files)?;
    if output.has_report {
        print_document(&document, output.view())?;
    }
    write(&document)?;
    Ok(outcome)
}

fn form(to: Destination<'_>) -> Result<Form, Failure> {
    to.form().ok_or_else(|| to.refuse(FORMS))
}

/// The reports of several files, as one. Those that cannot be read are named, and left out.
fn together(files: &[PathBuf]) -> Result<(Document, Outcome), Failure> {
    let mut all = Document::default();
    let mut left_out = Vec::new();
    for file in files {
        match load(file) {
            Ok(recording) => {
                all.append_titled(&name(file), Measured::new(recording).page());
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
    all.left_out(left_out.iter().map(ToString::to_string));
    let outcome = if left_out.is_empty() { Outcome::Done } else { Outcome::Doubtful };
    Ok((all, outcome))
}

fn name(file: &Path) -> String {
    file.display().to_string()
}
