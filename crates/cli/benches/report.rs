//! The cost of `report`: of a recording of seconds, relative to the start of processes, and of one of an
//! hour, relative to limits: `cargo bench -p cli --bench report`.

#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "the browser of the tests of pages, which do more with it"
)]
#[path = "../../report/src/html/tests/browser.rs"]
mod browser;
mod whole;

use std::error::Error;
use std::fs;

use crate::browser::Browser;
use crate::whole::{Gaps, MEMORY, PLACE, TOOL, line, median, middle, recording, run};

/// Runs of processes that take milliseconds, in turn.
const TURNS: usize = 100;
/// Runs of each report of an hour, and of the browser; the median is reported.
const RUNS: usize = 5;
/// Ten million gaps in an hour on two CPUs.
const HOUR: Gaps = Gaps { count: 5_000_000, pause: [5_000, 1_426_000], seed: 0 };
/// When a page is first painted, in milliseconds after its navigation.
const PAINTED: &str = "new Promise(found => new PerformanceObserver(list =>
    list.getEntriesByName('first-contentful-paint').forEach(one => found(one.startTime)))
    .observe({type: 'paint', buffered: true}))";

fn main() -> Result<(), Box<dyn Error>> {
    println!("reports, wall times; parts of the limit");
    short()?;
    hour()
}

/// A recording of 3 s, compared with a process that does nothing: the fastest of each, as other work only
/// slows them down. The report takes little longer than the start of the program.
fn short() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir_in(PLACE)?;
    let file = folder.path().join("short.json").display().to_string();
    run(TOOL, &["noise", "-d", "3", "-q", "--source", "proc", "-c", "0", "-o", &file])?;
    let report = ["report", file.as_str()];
    let commands = [("true", &[][..]), (TOOL, &["--version"]), (TOOL, &report)];
    let mut walls = [f64::INFINITY; 3];
    for _ in 0..TURNS {
        for (fastest, (program, args)) in walls.iter_mut().zip(commands) {
            *fastest = fastest.min(run(program, args)?.0);
        }
    }
    let [nothing, start, report] = walls;
    println!("  of 3 s: {:.2} ms; `true` takes {:.2} ms", report * 1e3, nothing * 1e3);
    // That of a program which is optimised as a whole, in a build of five minutes.
    line("start by `true`", start / nothing, 3.4);
    line("report by start", report / start, 1.5);
    Ok(())
}

/// An hour with ten million gaps: 3 s and 300 million bytes for the report and its page, which has less
/// than 2 million bytes and is painted within a second.
fn hour() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir_in(PLACE)?;
    let [file, page] = ["hour.json", "page.html"].map(|name| folder.path().join(name));
    recording(&file, &[1, 2].map(|seed| Gaps { seed, ..HOUR }))?;
    let file = file.display().to_string();
    let (wall, peak) = median(RUNS, &["report", &file])?;
    line("of an hour: wall, s", wall, 3.0);
    line("of an hour: peak, MB", peak, MEMORY);
    let to = page.display().to_string();
    let (wall, peak) = median(RUNS, &["report", &file, "-o", &to])?;
    line("its page: wall, s", wall, 3.0);
    line("its page: peak, MB", peak, MEMORY);
    let page = fs::read_to_string(page)?;
    line("its page: length, MB", page.len() as f64 / 1e6, 2.0);
    match Browser::start() {
        Some(mut browser) => {
            let painted = (0..RUNS).filter_map(|_| {
                browser.load(&page);
                browser.value(PAINTED).as_f64()
            });
            line("its page: painted, ms", middle(painted.collect()), 1_000.0);
        }
        None => println!("  skipped: its page: painted: no Chromium is installed"),
    }
    Ok(())
}
