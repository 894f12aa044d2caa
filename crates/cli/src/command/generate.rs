//! `generate`: man pages and completions, generated from the command line's definition, so that
//! they always agree with it.

use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::command::Args;
use crate::outcome::{Failure, Outcome};

#[derive(Debug, clap::Args)]
pub(crate) struct GenerateArgs {
    /// What to generate.
    pub(crate) what: Generated,
    /// Output directory.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Generated {
    /// One man page per command.
    Man,
    /// Completions for bash, zsh and fish.
    Completions,
}

pub(crate) fn run(args: &GenerateArgs) -> Result<Outcome, Failure> {
    let failed = |error| Failure::usage(format!("{}: {error}", args.dir.display()));
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    match args.what {
        Generated::Man => man(&args.dir),
        Generated::Completions => completions(&args.dir),
    }
    .map_err(failed)?;
    Ok(Outcome::Done)
}

fn man(dir: &Path) -> std::io::Result<()> {
    clap_mangen::generate_to(Args::command(), dir)
}

fn completions(dir: &Path) -> std::io::Result<()> {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Args::command(), "noisefloor", dir)?;
    }
    Ok(())
}
