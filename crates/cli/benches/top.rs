//! The CPU time of `top` at its default rate, on a terminal, beside its limit of 1 % of one CPU: while the
//! machine does nothing else, and beside hackbench (rt-tests), with a thousand switches each millisecond:
//! `sudo cargo bench -p cli --bench top`.
//!
//! The CPU time is that of the process with its threads (`schedstat`); the programs in the kernel run in the
//! time of others, and their cost is the difference in hackbench's CPU time.

use std::error::Error;
use std::fs::File;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::load::{own_seconds, work};

mod load;

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
/// The largest share of one CPU.
const LIMIT: f64 = 0.01;
/// How long the programs need to start, and how long is measured then.
const START: Duration = Duration::from_secs(4);
const SPAN: Duration = Duration::from_secs(20);
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let shown = Shown::start()?;
    sleep(START);
    let idle = shown.share(|| {
        sleep(SPAN);
        Ok(())
    })?;
    report("idle machine", idle);
    if !load::is_installed() {
        println!("skipped: hackbench is not installed");
        return Ok(());
    }
    let begin = Instant::now();
    let busy = shown.share(|| {
        while begin.elapsed() < SPAN {
            work()?;
        }
        Ok(())
    })?;
    report("beside hackbench", busy);
    drop(shown);
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(work()?);
        let shown = Shown::start()?;
        sleep(START);
        beside.push(work()?);
        drop(shown);
    }
    let (alone, beside) = (median(alone), median(beside));
    println!(
        "hackbench: {alone:.2} s of CPU time alone, {beside:.2} s beside top ({:+.1} %)",
        (beside / alone - 1.0) * 100.0
    );
    Ok(())
}

fn report(what: &str, share: f64) {
    let percent = share * 100.0;
    println!("{what}: {percent:.3} % of one CPU ({:.2} of the limit)", share / LIMIT);
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// `top` on a terminal of 80 columns.
struct Shown {
    child: Child,
    _terminal: File,
}

impl Shown {
    fn start() -> Result<Self, Box<dyn Error>> {
        let (mut other, mut terminal) = (-1, -1);
        let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let null = std::ptr::null_mut();
        // SAFETY: the numbers are written to, and the size is read; there is no name and no setting.
        let done = unsafe {
            libc::openpty(
                &raw mut other,
                &raw mut terminal,
                null,
                null.cast(),
                &raw const size,
            )
        };
        if done != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        // SAFETY: they are open, and nothing else has them.
        let [other, end] =
            [other, terminal].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        let stdio = || end.as_fd().try_clone_to_owned().map(Stdio::from);
        let mut command = Command::new(TOOL);
        command.arg("top").env("TERM", "xterm").stdin(stdio()?).stdout(stdio()?);
        let child = command.stderr(Stdio::null()).spawn()?;
        let terminal = File::from(other);
        let mut printed = terminal.try_clone()?;
        std::thread::spawn(move || std::io::copy(&mut printed, &mut std::io::sink()));
        Ok(Self { child, _terminal: terminal })
    }

    /// The CPU time of the process during that, as a share of the time.
    fn share(
        &self,
        during: impl FnOnce() -> Result<(), Box<dyn Error>>,
    ) -> Result<f64, Box<dyn Error>> {
        let (begin, before) = (Instant::now(), own_seconds(self.child.id())?);
        during()?;
        Ok((own_seconds(self.child.id())? - before) / begin.elapsed().as_secs_f64())
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
