//! The comparison of two recordings with five million gaps each: `cargo bench -p cli --bench compare`.
//! The time in which the same JSON is only parsed, and the size of the gaps in memory, are beside it.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;
use serde_json::Value;

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
const PLACE: &str = env!("CARGO_TARGET_TMPDIR");
/// The gaps of each recording.
const GAPS: u64 = 5_000_000;
/// The size of a gap in memory: its start and its length.
const GAP_BYTES: u64 = 16;
/// The limits of a comparison of both.
const LIMIT_S: f64 = 3.0;
const LIMIT_MB: f64 = 300.0;
/// Runs; the median is reported.
const RUNS: usize = 5;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let folder = Path::new(PLACE).join("compare");
    fs::create_dir_all(&folder)?;
    let files = [1, 2].map(|seed| recording(&folder, seed));
    let [a, b] = files;
    let (a, b) = (a?, b?);
    let parsing = median(|| parse(&a).and_then(|one| Ok(one + parse(&b)?)))?;
    let mut most_kib = 0;
    let comparing = median(|| {
        let (seconds, kib) = compare(&a, &b)?;
        most_kib = most_kib.max(kib);
        Ok(seconds)
    })?;
    println!(
        "two recordings of {GAPS} gaps each, median of {RUNS} runs; parts of the limit"
    );
    line("s", comparing, LIMIT_S);
    line("MB", most_kib as f64 * 1024.0 / 1e6, LIMIT_MB);
    let least_mb = (2 * GAPS * GAP_BYTES) as f64 / 1e6;
    println!(
        "the same JSON is only parsed in {parsing:.2} s; the gaps are {least_mb:.0} MB"
    );
    fs::remove_dir_all(&folder)?;
    Ok(())
}

fn line(unit: &str, value: f64, limit: f64) {
    println!("  {unit:<4} {value:>8.2} of {limit:>6.2}   {:.2}", value / limit);
}

/// Makes a recording of one CPU with that many gaps of pseudo-random lengths and pauses.
fn recording(folder: &Path, seed: u64) -> Result<PathBuf> {
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
    Ok(file)
}

/// The gaps as JSON, and the end of the last one.
fn gaps(mut state: u64) -> Result<(String, u64)> {
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

/// The seconds in which a file is parsed.
fn parse(file: &Path) -> Result<f64> {
    let text = fs::read(file)?;
    let began = Instant::now();
    serde_json::from_slice::<IgnoredAny>(&text)?;
    Ok(began.elapsed().as_secs_f64())
}

/// The seconds that a comparison takes, and the most memory that it used, in KiB.
fn compare(a: &Path, b: &Path) -> Result<(f64, u64)> {
    let began = Instant::now();
    let mut compare = Command::new(TOOL);
    let mut running =
        compare.arg("compare").args([a, b]).stdout(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", running.id());
    let mut kib = 0;
    loop {
        kib = kib.max(peak(&status).unwrap_or(0));
        if let Some(ended) = running.try_wait()? {
            let seconds = began.elapsed().as_secs_f64();
            return if ended.success() {
                Ok((seconds, kib))
            } else {
                Err("it failed".into())
            };
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn peak(status: &str) -> Option<u64> {
    let text = fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn median(mut run: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut all = (0..RUNS).map(|_| run()).collect::<Result<Vec<f64>>>()?;
    all.sort_by(f64::total_cmp);
    Ok(all[RUNS / 2])
}
