//! `generate`: man pages and completions, generated from the command line's definition, and the reference of
//! the rules of advice, from their tables, so that they always agree with them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_complete::Shell;

use crate::command::Args;
use crate::destination::create_folder;
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
    /// The reference of the rules of advice: advice.md.
    Advice,
}

pub(crate) fn run(args: &GenerateArgs) -> Result<Outcome, Failure> {
    create_folder(&args.dir)?;
    let made = tempfile::tempdir().map_err(Failure::refused)?;
    match args.what {
        Generated::Man => man(made.path()),
        Generated::Completions => completions(made.path()),
        Generated::Advice => {
            fs::write(made.path().join("advice.md"), ::report::rules_reference())
        }
    }
    .map_err(Failure::refused)?;
    for entry in fs::read_dir(made.path()).map_err(Failure::refused)? {
        let entry = entry.map_err(Failure::refused)?;
        let text = fs::read(entry.path()).map_err(Failure::refused)?;
        recording::write_file(&args.dir.join(entry.file_name()), text)?;
    }
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
