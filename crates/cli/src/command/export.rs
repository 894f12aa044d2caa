//! `export`: recordings in the formats of other programs.

use std::path::{Path, PathBuf};

use recording::{FORMAT, Recording};
use report::{CSV_HEAD, benchmark_action_json, hdr_log, metrics_csv, prometheus_text};
use serde_json::json;
use summary::{LengthLog, NoLog, Summary};

use crate::args::Output;
use crate::destination::Destination;
use crate::file_pattern::file_name;
use crate::inputs::{files_in, load, load_set};
use crate::outcome::{Failure, Outcome};
use crate::printing::print_json;

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// Recording, file of another tool, or folder of them (*.json, *.hlog, *.txt); `-`: standard
    /// input.
    #[arg(value_name = "FILE|DIR")]
    pub(crate) from: PathBuf,
    /// Format [default: that of the ending of FILE: .csv, .hlog, .prom].
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Write to FILE; `-`: standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-", value_parser = file_name())]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Csv,
    Hlog,
    BenchmarkAction,
    Prometheus,
}

impl Format {
    /// The format of files with that ending.
    fn of(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "csv" => Some(Self::Csv),
            "hlog" => Some(Self::Hlog),
            "prom" => Some(Self::Prometheus),
            _ => None,
        }
    }
}

pub(crate) fn run(args: &ExportArgs, output: Output) -> Result<Outcome, Failure> {
    let to = Destination::new("-o", &args.output);
    let format = args.format.or_else(|| Format::of(&args.output)).ok_or_else(|| {
        to.refuse(
            "unknown format; hint: --format csv, hlog, benchmark-action or prometheus",
        )
    })?;
    output.beside([to])?;
    let files = match args.from.is_dir() {
        true => files_in(&args.from)?,
        false => vec![args.from.clone()],
    };
    to.write(&text(format, &files)?)?;
    if output.json {
        let (file, recordings) = (args.output.to_string_lossy(), files.len());
        let object = json!({
            "format": FORMAT, "kind": "export", "output": file, "recordings": recordings,
        });
        print_json(&object.to_string())?;
    }
    Ok(Outcome::Done)
}

fn text(format: Format, files: &[PathBuf]) -> Result<String, Failure> {
    match format {
        Format::Csv => {
            let mut text = CSV_HEAD.to_owned();
            for file in files {
                text.push_str(&metrics_csv(&file.to_string_lossy(), &load(file)?));
            }
            Ok(text)
        }
        Format::BenchmarkAction => {
            let set = load_set(files)?;
            Ok(benchmark_action_json(&set).map_err(Failure::bug)? + "\n")
        }
        Format::Prometheus => {
            let recording = load(only(files)?)?;
            Ok(prometheus_text(&recording, &Summary::of(&recording)))
        }
        Format::Hlog => {
            let recording = load(only(files)?)?;
            let log = LengthLog::of(&recording).map_err(|why| no_log(&recording, why))?;
            hdr_log(&recording, &log).map_err(Failure::bug)
        }
    }
}

fn no_log(recording: &Recording, why: NoLog) -> Failure {
    let kind = recording.body.kind();
    let why = match why {
        NoLog::OtherKind => "noise, check, latency and jitter have lengths for a log",
        NoLog::Incomplete => {
            "a part of the lengths is in no bin, and a log would lack it"
        }
        NoLog::TooManySamples => "too many samples for a log: more than 100 million",
    };
    Failure::usage(format!("a recording of kind '{kind}': {why}"))
}

/// The only file: these formats have one recording.
fn only(files: &[PathBuf]) -> Result<&Path, Failure> {
    match files {
        [file] => Ok(file),
        _ => Err(Failure::usage(
            "this format has one recording: name a file of the folder",
        )),
    }
}
