//! The CPU time and the memory of `exporter`, scraped every 15 seconds, beside their limits: 0.2 % of one CPU, and
//! 5 MB between two requests: `sudo cargo bench -p cli --bench exporter`.
//!
//! The programs in the kernel run in the time of others (see the benchmark `top`).

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
const INTERVAL: Duration = Duration::from_secs(15);
const SCRAPES: u32 = 5;
/// The largest share of one CPU, and the most memory in kB.
const SHARE_MAX: f64 = 0.002;
const RESIDENT_MAX: f64 = 5e6 / 1024.0;

fn main() -> Result<(), Box<dyn Error>> {
    let mut child = Running(
        Command::new(TOOL)
            .args(["exporter", "--listen", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()?,
    );
    let messages = child.0.stderr.take().ok_or("no messages")?;
    let mut address = None;
    for line in BufReader::new(messages).lines() {
        let line = line?;
        println!("{line}");
        if let Some((_, rest)) = line.split_once("http://") {
            address = Some(rest.trim_end_matches("/metrics").to_owned());
            break;
        }
    }
    let address = address.ok_or("it does not listen")?;
    let id = child.0.id();
    scrape(&address)?;
    let (begin, before) = (Instant::now(), ran(id)?);
    let (mut largest, mut while_read) = (0.0_f64, 0.0_f64);
    for _ in 0..SCRAPES {
        sleep(INTERVAL);
        largest = largest.max(resident(id)?);
        while_read = while_read.max(scrape(&address)?);
    }
    sleep(INTERVAL);
    largest = largest.max(resident(id)?);
    let share = (ran(id)? - before) / begin.elapsed().as_secs_f64();
    println!(
        "CPU time: {:.4} % of one CPU ({:.2} of the limit)",
        share * 100.0,
        share / SHARE_MAX
    );
    println!(
        "resident between requests: {largest:.0} kB ({:.2} of the limit); during one: {:.0} kB",
        largest / RESIDENT_MAX,
        while_read / 1024.0
    );
    Ok(())
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads the metrics; the exporter's memory at that moment, in bytes.
fn scrape(address: &str) -> Result<f64, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let name = "process_resident_memory_bytes ";
    let found = text.lines().find_map(|line| line.strip_prefix(name));
    Ok(found.ok_or("no metrics")?.parse()?)
}

/// The CPU time of all threads in seconds.
fn ran(id: u32) -> Result<f64, Box<dyn Error>> {
    let mut sum = 0.0;
    for task in std::fs::read_dir(format!("/proc/{id}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text.split(' ').next().unwrap_or_default().parse::<f64>()? / 1e9;
    }
    Ok(sum)
}

fn resident(id: u32) -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    Ok(line.ok_or("no VmRSS")?.trim().trim_end_matches(" kB").parse()?)
}
