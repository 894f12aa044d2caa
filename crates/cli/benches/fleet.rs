//! The cost of `fleet`: of 10,000 nodes with a recording of a second on two CPUs each, relative to limits:
//! `cargo bench -p cli --bench fleet`. The files need 400 MB in cargo's folder for tests.

#[expect(clippy::unwrap_used, reason = "the nodes of the tests")]
#[path = "../tests/fleet/nodes.rs"]
mod nodes;
#[expect(dead_code, reason = "shared by several benchmarks")]
mod whole;

use std::error::Error;
use std::fs;

use crate::nodes::{Change, Nodes};
use crate::whole::{PLACE, line, median};

/// The number of nodes, of which one of so many has a noisy program.
const NODES: u64 = 10_000;
const NOISY: u64 = 700;
/// Runs of each report; the median is reported.
const RUNS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir_in(PLACE)?;
    let files = folder.path().join("nodes");
    fs::create_dir(&files)?;
    let program = |at: u64| (at % NOISY == 0).then_some("backup");
    Nodes::new().write(&files, NODES, |at| Change { program: program(at), kernel: None });
    let size: u64 = fs::read_dir(&files)?
        .map(|file| Ok(file?.metadata()?.len()))
        .sum::<Result<u64, std::io::Error>>()?;
    println!("fleet of {NODES} nodes, {:.0} MB; parts of the limit", size as f64 / 1e6);
    let (files, page) = (files.display().to_string(), folder.path().join("fleet.html"));
    let (wall, peak) = median(RUNS, &["fleet", &files])?;
    line("report: wall, s", wall, 10.0);
    line("report: peak, MB", peak, 1e9 / f64::from(1 << 20));
    let to = page.display().to_string();
    let (wall, _) = median(RUNS, &["fleet", &files, "-o", &to])?;
    line("its page: wall, s", wall, 10.0);
    line("its page: length, MB", fs::metadata(page)?.len() as f64 / 1e6, 0.6);
    Ok(())
}
