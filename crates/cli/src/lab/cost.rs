//! `noisefloor lab cost`: a program on some kernels, without a file of an experiment.

use std::env;
use std::path::PathBuf;

use experiments::{Experiment, ProgramRequest};

use crate::args::Output;
use crate::lab::args::{CostArgs, GUESTS, How};
use crate::lab::{self, Shown};
use crate::outcome::{Failure, Outcome};
use crate::printing::say;

/// The kernels if none is named: those of the built-in experiments.
const KERNELS: [&str; 2] = ["debian:6.1-cloud", "debian:6.12-cloud"];

pub(crate) fn run(args: &CostArgs, output: Output) -> Result<Outcome, Failure> {
    lab::refuse_two_formats(args.markdown, output)?;
    lab::refuse_outputs(args.show_output, args.markdown, output)?;
    if args.tif && args.cpus.is_some_and(|cpus| cpus < 2) {
        return Err(Failure::usage("--tif needs two CPUs: CPU 0 is never isolated"));
    }
    let request = request(args);
    if let Some((folders, _)) = request.inherits_library_path().filter(|_| !output.quiet)
    {
        say(format!(
            "LD_LIBRARY_PATH of this environment is used in the guest, too: {folders}"
        ));
    }
    let experiment = Experiment::of_program(&request)?;
    let experiment = lab::with_changes(experiment, &how(args))?;
    let shown = Shown {
        markdown: args.markdown,
        files: args.written.files()?,
        chart: args.chart.chart()?,
        guests: GUESTS,
        beside: None,
        slurm: None,
    };
    let (cells, outcome) = lab::run_and_print(&experiment, &args.how, &shown, output)?;
    if args.show_output || args.tif && output.is_text() && !args.markdown {
        lab::print_outputs(&cells, output)?;
    }
    Ok(outcome)
}

fn request(args: &CostArgs) -> ProgramRequest {
    let kernels = match args.how.kernels.as_slice() {
        [] => KERNELS.map(str::to_owned).to_vec(),
        named => named.to_vec(),
    };
    let mut files = args.files.clone();
    files.extend(args.tif.then(tif_library).flatten());
    ProgramRequest {
        kernels,
        run: args.command.clone(),
        programs: args.programs.clone(),
        files,
        env: args.env.clone(),
        exit: args.exit.clone(),
        limit: args.limit.clone(),
        library_path: library_path(),
        is_observed: !args.no_observe && !args.tif,
        has_nohz_cpu: args.tif,
    }
}

/// The folders of libraries in this environment, and the current folder.
fn library_path() -> Option<(String, PathBuf)> {
    let folders =
        env::var("LD_LIBRARY_PATH").ok().filter(|folders| !folders.is_empty())?;
    Some((folders, env::current_dir().ok()?))
}

/// The file of libtif, and its path in the guest. A program that needs it, and cannot have it, is refused
/// when it is packed.
fn tif_library() -> Option<(String, Option<String>)> {
    let (file, path) = ::lab::tif_library()?;
    Some((file.to_str()?.to_owned(), Some(path)))
}

/// The machine's options are keys of an experiment.
fn how(args: &CostArgs) -> How {
    let cpus = args.cpus.map(|cpus| format!("cpus={cpus}"));
    let memory = args.memory.map(|mib| format!("memory_mib={mib}"));
    let mut how = args.how.clone();
    how.set.extend(cpus.into_iter().chain(memory));
    how
}
