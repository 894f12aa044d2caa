//! The cost of whole commands, measured from outside, relative to limits: `cargo bench -p cli`.

mod whole;

use std::error::Error;
use std::fs;
use std::path::Path;

use crate::whole::{Gaps, MEMORY, PLACE, TOOL, line, median, recording, run};

/// Runs of each command; the median is reported.
const RUNS: usize = 5;
/// The entries of the history.
const ENTRIES: u32 = 100_000;
/// The gaps of each of two recordings.
const GAPS: Gaps = Gaps { count: 5_000_000, pause: [5_000, 55_000], seed: 0 };

fn main() -> Result<(), Box<dyn Error>> {
    println!("whole processes, median of {RUNS} runs; parts of the limit");
    let (wall, _) = median(RUNS, &["facts"])?;
    line("facts: wall, ms", wall * 1e3, 50.0);
    let (wall, peak) = median(RUNS, &["noise", "-d", "3"])?;
    line("noise -d 3: wall, s", wall, 3.3);
    line("noise -d 3: peak, MB", peak, 12.0);
    compare()?;
    history()
}

/// The history of 100,000 entries: 200 ms.
fn history() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(PLACE).join("history");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let file = folder.join("history.db");
    // SAFETY: this process has one thread.
    unsafe { std::env::set_var("NOISEFLOOR_HISTORY", &file) };
    run(TOOL, &["check", "--save", "-q", "--rest", "10ms", "-d", "10ms"])?;
    let fill = format!(
        "WITH RECURSIVE number(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM number \
             WHERE n < {ENTRIES}) \
         INSERT INTO entry (id, taken, machine, kind, facts, run) \
             SELECT n, strftime('%Y-%m-%dT%H:%M:%SZ', 1700000000 + 900 * n, 'unixepoch'), \
             machine, kind, facts, run FROM number, entry WHERE entry.id = 1; \
         INSERT INTO worst (series, taken, entry, facts, value) \
             SELECT series, e.taken, e.id, e.facts, abs(random() % 1000) + e.id / 60000 * 300 \
             FROM entry e, worst w WHERE w.entry = 1 AND e.id > 1;"
    );
    rusqlite::Connection::open(&file)?.execute_batch(&fill)?;
    let (wall, _) = median(RUNS, &["history"])?;
    line("history: wall, ms", wall * 1e3, 200.0);
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// The comparison of ten million gaps: 3 s and 300 million bytes.
fn compare() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir_in(PLACE)?;
    let [a, b] = [1, 2].map(|seed| Gaps { seed, ..GAPS }).map(
        |gaps| -> Result<_, Box<dyn Error>> {
            let file = folder.path().join(format!("{}.json", gaps.seed));
            recording(&file, &[gaps])?;
            Ok(file.display().to_string())
        },
    );
    let (wall, peak) = median(RUNS, &["compare", &a?, &b?])?;
    line("compare: wall, s", wall, 3.0);
    line("compare: peak, MB", peak, MEMORY);
    Ok(())
}
