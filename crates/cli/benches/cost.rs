//! The cost of whole commands, measured from outside, relative to limits: `cargo bench -p cli`.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
/// The folder of recordings that are compared.
const PLACE: &str = env!("CARGO_TARGET_TMPDIR");
/// Runs of each command; the median is reported.
const RUNS: usize = 5;
/// The entries of the history.
const ENTRIES: u32 = 100_000;
/// The gaps of each of two recordings.
const GAPS: u64 = 5_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    println!("whole processes, median of {RUNS} runs; parts of the limit");
    let (wall, _) = median(&["facts"])?;
    line("facts: wall, ms", wall * 1e3, 50.0);
    let (wall, peak) = median(&["noise", "-d", "3"])?;
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
    run(&["check", "--save", "-q", "--rest", "10ms", "-d", "10ms"])?;
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
    let (wall, _) = median(&["history"])?;
    line("history: wall, ms", wall * 1e3, 200.0);
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// The comparison of ten million gaps: 3 s and 300 million bytes.
fn compare() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(PLACE).join("compare");
    fs::create_dir_all(&folder)?;
    let (a, b) = (recording(&folder, 1)?, recording(&folder, 2)?);
    let (wall, peak) = median(&["compare", &a, &b])?;
    line("compare: wall, s", wall, 3.0);
    line("compare: peak, MB", peak, 300e6 / f64::from(1 << 20));
    fs::remove_dir_all(&folder)?;
    Ok(())
}

fn line(name: &str, value: f64, limit: f64) {
    println!("  {name:<22} {value:>8.2} of {limit:>6.2}   {:.2}", value / limit);
}

/// The median wall time in seconds, and the largest peak memory in MB.
fn median(args: &[&str]) -> Result<(f64, f64), Box<dyn Error>> {
    let mut walls = Vec::new();
    let mut most: f64 = 0.0;
    for _ in 0..RUNS {
        let (wall, peak) = run(args)?;
        walls.push(wall);
        most = most.max(peak);
    }
    walls.sort_by(f64::total_cmp);
    Ok((walls[RUNS / 2], most))
}

fn run(args: &[&str]) -> Result<(f64, f64), Box<dyn Error>> {
    let start = Instant::now();
    let child = Command::new(TOOL).args(args).stdout(Stdio::null()).spawn()?;
    let process = libc::pid_t::try_from(child.id())?;
    let mut status = 0;
    // SAFETY: all-zero is a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is ours and waited for only here; both pointers outlive the call.
    unsafe { libc::wait4(process, &raw mut status, 0, &raw mut usage) };
    let wall = start.elapsed().as_secs_f64();
    if !std::process::ExitStatus::from_raw(status).success() {
        return Err(format!("{args:?} failed").into());
    }
    #[expect(clippy::cast_precision_loss, reason = "kilobytes of one process")]
    let peak = usage.ru_maxrss as f64 / 1024.0;
    Ok((wall, peak))
}

/// Makes a recording of one CPU with that many gaps of pseudo-random lengths and pauses.
fn recording(folder: &Path, seed: u64) -> Result<String, Box<dyn Error>> {
    let file = folder.join(format!("{seed}.json"));
    let mut noise = Command::new(TOOL);
    noise.args(["noise", "-d", "10ms", "-q", "--source", "proc", "-c", "0", "-o"]);
    if !noise.arg(&file).stdout(Stdio::null()).status()?.success() {
        return Err("a recording of 10 ms failed".into());
    }
    let mut value: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    let (gaps, end) = gaps(seed)?;
    let cpu = &mut value["series"]["cpus"][0];
    cpu["gaps"] = "GAPS".into();
    cpu["elapsed_ns"] = end.into();
    fs::write(&file, value.to_string().replace("\"GAPS\"", &gaps))?;
    Ok(file.display().to_string())
}

/// The gaps as JSON, and the end of the last one.
fn gaps(mut state: u64) -> Result<(String, u64), Box<dyn Error>> {
    let mut next = |limit: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let (mut text, mut now) = ("[".to_owned(), 0);
    for gap in 0..GAPS {
        let (start, length) = (now + 5_000 + next(50_000), 200 + next(9_000));
        let comma = if gap > 0 { "," } else { "" };
        write!(text, "{comma}[{start},{length}]")?;
        now = start + length;
    }
    Ok((text + "]", now))
}
