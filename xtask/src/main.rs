//! The developer's tasks of this workspace: `cargo xtask COMMAND`.
#![forbid(unsafe_code)]

#[cfg(test)]
mod additions;
mod architecture;
mod bytes;
mod ci;
mod circles;
mod command;
mod compiler;
mod fuzz;
mod guest;
mod header;
mod layers;
mod packages;
mod pictures;
mod priority;
mod program;
mod prose;
mod reasons;
mod reproducible;
mod rustc;
mod sources;
mod suite;
mod words;
mod workspace;

use std::process::ExitCode;

use crate::workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask COMMAND
  ci        run all checks, as `make test` does
  guest     build noisefloor-agent (static) and noisefloor-counter.so for the lab, into
            lab/ of the target directory
            --arch ARCH   build only the agent of guests of amd64 or arm64; another architecture
                          than this machine's needs Debian's cargo and rustc
            --tests       build the tests that also run in guests instead; can be followed by
                          --arch ARCH
  bytes     build the programs of guests in a second folder, and compare the files
  header    write the C headers of crates capi and tif
            --check       fail if they are out of date, and write nothing
  layers    check the dependencies between crates, source files, reasons for dependencies
  packages  build a .deb, a .rpm and an archive, with the C libraries in packages of their own,
            into packages/ of the target directory
            --arch ARCH   amd64 or arm64 (default: this machine's)
            --version V   version of the packages (default: that of Cargo.toml)
  pictures  draw the pictures of the README, from the recordings in docs/pictures/
  words     check that text has none of the words and phrases listed in xtask/words.txt
  fuzz      build the fuzz targets and run each briefly
            --runs N      number of inputs for each target (default 10000)
            --seconds N   time limit for each target, instead or as well
            --target NAME run only this target; can be repeated
            --seed N      seed of the inputs; 0: random (default 1)
            --keep        start from fuzz/corpus, and save new inputs there";

fn main() -> ExitCode {
    if rustc::is_asked_for() {
        return rustc::run();
    }
    if compiler::is_asked_for() {
        return compiler::run();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("xtask: {text}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<(), String> {
    match arguments {
        ["ci"] => ci::run(&Workspace::read()?),
        ["guest"] => guest::run(&Workspace::read()?).map(|built| println!("{built}")),
        ["guest", "--arch", name] => {
            let architecture = architecture::Architecture::named(name)?;
            let built = guest::agent_of(&Workspace::read()?, architecture)?;
            println!("{built}");
            Ok(())
        }
        ["guest", "--tests", "--arch", name] => {
            let architecture = architecture::Architecture::named(name)?;
            let built = guest::tests_of(&Workspace::read()?, architecture)?;
            println!("{built}");
            Ok(())
        }
        ["guest", "--tests"] => {
            guest::tests(&Workspace::read()?).map(|built| println!("{built}"))
        }
        ["bytes"] => {
            let workspace = Workspace::read()?;
            guest::run(&workspace)?;
            bytes::run(&workspace).map(|report| println!("{report}"))
        }
        ["header"] => header::run(&Workspace::read()?, &[]),
        ["header", "--check"] => header::run(&Workspace::read()?, &["--check"]),
        ["layers"] => {
            layers::run(&Workspace::read()?).map(|checked| println!("{checked}"))
        }
        ["packages", options @ ..] => {
            let workspace = Workspace::read()?;
            let plan = packages::Plan::parse(options, &workspace)?;
            packages::run(&workspace, &plan).map(|built| println!("{built}"))
        }
        ["pictures"] => pictures::run(&Workspace::read()?),
        ["words"] => words::run(&Workspace::read()?).map(|checked| println!("{checked}")),
        ["fuzz", options @ ..] => {
            let plan = fuzz::Plan::parse(options)?;
            fuzz::run(&Workspace::read()?, &plan).map(|_| ())
        }
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("unknown command '{}'\n{USAGE}", arguments.join(" "))),
    }
}
