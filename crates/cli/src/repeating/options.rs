//! The options of all commands that repeat a measurement.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use units::Nanos;

use crate::args::{Output, outputs, seconds, some_seconds};
use crate::destination::Destination;
use crate::file_pattern::file_name;
use crate::outcome::Failure;
use crate::repeating::folder::SetFolder;
use crate::repeating::measurement::Measurement;
use crate::repeating::{Plan, Rounds, Schedule, Variant};

/// The default number of runs, as that of hyperfine.
const RUNS: u32 = 10;
/// The default time that the runs of a program take together, as that of hyperfine.
const TIME: Nanos = Nanos::from_secs(3);
/// The default time between two runs of a measurement.
const PAUSE: Nanos = Nanos::from_secs(1);

/// How a measurement is repeated.
#[derive(Debug, clap::Args)]
pub(crate) struct RepeatOptions {
    /// Number of runs of each variant [default: 10; with `run` more, until they have taken 3
    /// seconds].
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "min_runs",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// Number of runs, or more with `run`, until they have taken 3 seconds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) min_runs: Option<u32>,
    /// Number of runs of each variant before the first that is recorded.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) warmup: u32,
    /// Command to run before each run, in /bin/sh.
    #[arg(long, value_name = "CMD")]
    pub(crate) prepare: Option<OsString>,
    /// Time between two runs, in seconds or with a unit (500ms) [default: 1; 0 with `run`].
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) pause: Option<Nanos>,
    /// Longest time of a run, in seconds or with a unit (500ms); a longer one is ended, and no
    /// further one is started [default: no limit].
    #[arg(long, value_name = "TIME", value_parser = some_seconds)]
    pub(crate) timeout: Option<Nanos>,
    /// Seed of the order of variants [default: random].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u32>,
    /// Save the recordings in DIR as 001.json, 002.json, ..., for `noisefloor compare`; with several
    /// variants, in one folder for each. Recordings that are there already stay. Or write the report:
    /// a page (FILE.html), Markdown (FILE.md), or its first picture (FILE.svg). Can be repeated.
    #[arg(short, long, value_name = "DIR|FILE", value_parser = file_name())]
    pub(crate) output: Vec<PathBuf>,
    /// Continue if the program of `run` fails.
    #[arg(short, long)]
    pub(crate) ignore_failure: bool,
    /// Show the output of the program of `run`, and the reports of other measurements, instead of
    /// discarding them.
    #[arg(long, conflicts_with = "json")]
    pub(crate) show_output: bool,
}

impl RepeatOptions {
    /// The plan for these variants.
    pub(crate) fn plan(
        &self,
        measurement: Measurement,
        variants: Vec<Variant>,
        output: Output,
    ) -> Plan {
        let schedule = self.schedule(measurement.is_run, output);
        Plan { measurement, variants, schedule }
    }

    /// The schedule of a measurement, or of programs.
    pub(crate) fn schedule(&self, is_run: bool, output: Output) -> Schedule {
        let time = if is_run && self.runs.is_none() { TIME } else { Nanos::ZERO };
        let pause = self.pause.unwrap_or(if is_run { Nanos::ZERO } else { PAUSE });
        Schedule {
            rounds: Rounds { min: self.runs.or(self.min_runs).unwrap_or(RUNS), time },
            warmup: self.warmup,
            prepare: self.prepare.clone(),
            pause: Duration::from_nanos(pause.get()),
            timeout: self.timeout.map(|time| Duration::from_nanos(time.get())),
            seed: self.seed.unwrap_or_else(random_seed),
            shows_output: self.show_output,
            ignores_failures: self.ignore_failure,
            quiet: output.quiet,
        }
    }

    /// The folders of the variants; none if the recordings are not saved.
    ///
    /// # Errors
    /// There are several, or it cannot be created or written.
    pub(crate) fn folders(&self, plan: &Plan) -> Result<Vec<SetFolder>, Failure> {
        self.folders_named(plan.variants.iter().map(Variant::name).collect())
    }

    /// The folders of sets with these names; none if the recordings are not saved.
    ///
    /// # Errors
    /// Those of [`Self::folders`].
    pub(crate) fn folders_named(
        &self,
        names: Vec<String>,
    ) -> Result<Vec<SetFolder>, Failure> {
        let folders = self.folder()?.map(|to| SetFolder::all(to.file(), names));
        Ok(folders.transpose()?.unwrap_or_default())
    }

    /// The folder of the recordings.
    ///
    /// # Errors
    /// There are several, or it is standard output.
    pub(crate) fn folder(&self) -> Result<Option<Destination<'_>>, Failure> {
        let mut folders =
            outputs(&self.output).into_iter().filter(|to| to.form().is_none());
        let (folder, other) = (folders.next(), folders.next());
        if let Some(other) = other {
            return Err(other.refuse("the recordings are saved in one folder"));
        }
        match folder.filter(|folder| folder.is_stdout()) {
            Some(stdout) => {
                Err(stdout.refuse("expected a folder, or FILE.html, FILE.md or FILE.svg"))
            }
            None => Ok(folder),
        }
    }

    /// The files that the report is written to.
    pub(crate) fn report_files(&self) -> Vec<Destination<'_>> {
        outputs(&self.output).into_iter().filter(|to| to.form().is_some()).collect()
    }
}

/// A seed from the clock.
pub(crate) fn random_seed() -> u32 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| since.subsec_nanos()) ^ std::process::id()
}
