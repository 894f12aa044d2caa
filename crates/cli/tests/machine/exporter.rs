//! The exporter, as Prometheus and its users meet it: values, mistakes, signals, other measurements. The values
//! are compared with the kernel's own counters, read just before and just after.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::counters::schedstat;
use crate::culprits::can_watch;
use crate::environment::end_with_test;
use crate::tool::{
    first_cpu, json, on, public_tool, run, signal, text, tool, turn, unprivileged,
};

/// A running exporter.
pub(crate) struct Exporter {
    child: Child,
    pub(crate) address: String,
    messages: BufReader<std::process::ChildStderr>,
}

/// Values by name and labels.
type Metrics = BTreeMap<String, f64>;

impl Exporter {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::of(tool(&[&["exporter", "--listen", "127.0.0.1:0"], args].concat()))
    }

    fn of(mut command: Command) -> Self {
        end_with_test(&mut command, libc::SIGKILL);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let before = said.len();
            assert!(messages.read_line(&mut said).unwrap() > 0, "{said}");
            if let Some((_, rest)) = said[before..].split_once("listening on ") {
                let address = rest.trim().trim_start_matches("http://");
                break address.trim_end_matches("/metrics").to_owned();
            }
        };
        Self { child, address, messages }
    }

    fn get(&self, path: &str) -> String {
        get(&self.address, path)
    }

    fn metrics(&self) -> Metrics {
        // Closer requests have the same answer.
        std::thread::sleep(Duration::from_millis(600));
        parsed(&self.get("/metrics"))
    }

    /// Ends it by a signal; its exit code, and what it said after it began to listen.
    fn end(mut self, number: libc::c_int) -> (Option<i32>, String) {
        signal(&self.child, number);
        let mut said = String::new();
        self.messages.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

/// An answer, by HTTP/1.0.
pub(crate) fn answer(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The body of an answer.
pub(crate) fn get(address: &str, path: &str) -> String {
    let answer = answer(address, path).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 OK"), "{path}: {answer}");
    body.to_owned()
}

fn parsed(text: &str) -> Metrics {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines.map(value).collect()
}

/// The sum of the values whose names begin and whose labels contain that.
fn sum(metrics: &Metrics, name: &str, label: &str) -> f64 {
    let is_it = |key: &str| {
        key.strip_prefix(name)
            .is_some_and(|labels| labels.is_empty() || labels.starts_with('{'))
            && key.contains(label)
    };
    metrics.iter().filter(|(key, _)| is_it(key)).map(|(_, value)| value).sum()
}

/// The number of context switches since boot, and that of timer interrupts.
fn counted_by_the_kernel() -> [f64; 2] {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let switches = stat.lines().find_map(|line| line.strip_prefix("ctxt ")).unwrap();
    let text = fs::read_to_string(facts::Interrupts::FILE).unwrap();
    let interrupts = facts::Interrupts::parse(&text, facts::Interrupts::FILE).unwrap();
    let timers =
        interrupts.cpus().iter().filter_map(|cpu| interrupts.timer(cpu)).sum::<u64>();
    [switches.parse().unwrap(), timers as f64]
}

/// A program of its own name that uses a CPU.
struct Named(Child);

impl Named {
    fn start(folder: &Path, name: &str) -> Self {
        let copy = folder.join(name);
        fs::copy("/bin/sh", &copy).unwrap();
        let mut command = on(&first_cpu(), copy);
        end_with_test(&mut command, libc::SIGKILL);
        Self(command.args(["-c", "while :; do :; done"]).spawn().unwrap())
    }

    fn ran(&self) -> f64 {
        schedstat(self.0.id())[0] as f64 / 1e9
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks that a number has grown by as much as the kernel's, which was read before and after both readings.
fn check_growth(what: &str, grown: f64, kernel: [f64; 4], slack: [f64; 2]) {
    let [outer, inner] = [kernel[3] - kernel[0], kernel[2] - kernel[1]];
    let [less, more] = slack;
    assert!(
        inner - less <= grown && grown <= outer + more,
        "{what}: {grown}, not {inner} to {outer}"
    );
}

/// Check that context switches, timer interrupts and the CPU time of a load are those that the kernel counts, that
/// no counter shrinks, and that promtool accepts all of it.
#[test]
fn the_kernel_counts_the_same() {
    let _turn = turn();
    if !can_watch("the_kernel_counts_the_same") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let load = Named::start(folder.path(), "nf-load");
    let exporter = Exporter::start(&["--sources", "1000"]);
    let read = || (counted_by_the_kernel(), load.ran());
    exporter.metrics();
    let before = read();
    let first = exporter.metrics();
    let begin = read();
    std::thread::sleep(Duration::from_secs(2));
    let end = read();
    let second = exporter.metrics();
    let after = read();
    let grown = |name, label| sum(&second, name, label) - sum(&first, name, label);
    let all = [before, begin, end, after];
    let [switches, timers] = [0, 1].map(|at| all.map(|(counts, _)| counts[at]));
    let slack = [20.0, 20.0];
    check_growth(
        "switches",
        grown("noisefloor_context_switches_total", ""),
        switches,
        slack,
    );
    check_growth("timers", grown("noisefloor_timer_interrupts_total", ""), timers, slack);
    // The kernel's time has interrupts in it.
    let interrupts = grown("noisefloor_cpu_seconds_total", "class=\"interrupt\"");
    let used = grown("noisefloor_source_seconds_total", "name=\"nf-load\"");
    let slack = [interrupts + 0.02, 0.02];
    check_growth("the load", used, all.map(|(_, ran)| ran), slack);
    for (name, value) in &first {
        let is_counter =
            ["_total", "_bucket", "_count"].iter().any(|end| name.contains(end));
        assert!(!is_counter || second[name] >= *value, "{name}");
    }
    for name in ["interruption", "run_queue_wait"] {
        let count = second[&format!("noisefloor_{name}_duration_seconds_count")];
        let buckets = format!("noisefloor_{name}_duration_seconds_bucket{{le=\"");
        assert!(count > 0.0);
        assert_eq!(second[&format!("{buckets}+Inf\"}}")], count);
        let below = sum(
            &second,
            &format!("noisefloor_{name}_duration_seconds_bucket"),
            "le=\"0.1\"",
        );
        assert!(below <= count && below > 0.0, "{below} of {count}");
    }
    check_with_promtool(&exporter.get("/metrics"));
    assert_eq!(exporter.end(libc::SIGTERM), (Some(0), String::new()));
}

fn check_with_promtool(metrics: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    let child = promtool.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return println!("skipped: check_with_promtool: promtool: {error}"),
    };
    child.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let checked = child.wait_with_output().unwrap();
    let said = text(&checked.stderr) + &text(&checked.stdout);
    assert!(checked.status.success() && said.is_empty(), "{said}");
}

/// Check that every user can serve the counters of `/proc`, with a warning that says why, and a metric that says
/// so.
#[test]
fn without_privileges() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let tool = public_tool(folder.path());
    let mut command = unprivileged(&tool);
    let output = command.args(["exporter", "--listen", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let mut command = unprivileged(&tool);
    command.args(["exporter", "--listen", "127.0.0.1:0"]);
    let exporter = Exporter::of(command);
    let load = Named::start(folder.path(), "nf-load");
    let before = counted_by_the_kernel()[1];
    let first = exporter.metrics();
    let begin = counted_by_the_kernel()[1];
    std::thread::sleep(Duration::from_secs(1));
    let end = counted_by_the_kernel()[1];
    let second = exporter.metrics();
    let after = counted_by_the_kernel()[1];
    drop(load);
    assert_eq!(second["noisefloor_tracing"], 0.0);
    let grown = |name, label| sum(&second, name, label) - sum(&first, name, label);
    let timers = grown("noisefloor_timer_interrupts_total", "");
    check_growth("timers", timers, [before, begin, end, after], [0.0, 0.0]);
    assert!(grown("noisefloor_cpu_seconds_total", "class=\"program\"") > 0.0);
    assert!(sum(&second, "noisefloor_source_seconds_total", "name=\"nf-load\"") > 0.0);
    assert_eq!(sum(&second, "noisefloor_context_switches_total", ""), 0.0);
    check_with_promtool(&exporter.get("/metrics"));
    assert_eq!(exporter.end(libc::SIGINT).0, Some(0));
}

/// Check that nothing is listened on without an address, that a port in use is a message with the remedy, and
/// that the other one goes on.
#[test]
fn addresses() {
    let exporter = Exporter::start(&[]);
    let refused = |address: &str| {
        let output = run(&["exporter", "--listen", address]);
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = refused(&exporter.address);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("in use") && said.contains("choose another port"), "{said}");
    for address in ["localhost:9924", "9924", "unix:socket", "256.0.0.1:80"] {
        assert_eq!(refused(address).0, Some(2), "{address}");
    }
    assert_eq!(run(&["exporter"]).status.code(), Some(2));
    assert_eq!(exporter.get("/healthz"), "ok\n");
    assert!(exporter.get("/").contains("<a href=\"/metrics\">"));
    assert_eq!(exporter.end(libc::SIGINT).0, Some(0));
}

/// Check a Unix socket, which is removed at the end, and replaced after a killed exporter.
#[test]
fn unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let address = format!("unix:{}", path.display());
    for number in [libc::SIGKILL, libc::SIGTERM] {
        let exporter = Exporter::of(tool(&["exporter", "--listen", &address]));
        assert_eq!(exporter.address, address);
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
        let (code, _) = exporter.end(number);
        assert_eq!(code, (number == libc::SIGTERM).then_some(0));
        assert_eq!(path.exists(), number == libc::SIGKILL);
    }
}

/// Check that counters are served while another noisefloor measures on the same CPU, which is not disturbed by
/// claims, and that its time is in them.
#[test]
fn beside_a_measurement() {
    let _turn = turn();
    if !can_watch("beside_a_measurement") {
        return;
    }
    let exporter = Exporter::start(&["--sources", "1000"]);
    let address = exporter.address.clone();
    let first = exporter.metrics();
    let scraping = std::thread::spawn(move || {
        for _ in 0..20 {
            get(&address, "/metrics");
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let object = json(&["noise", "-d", "2", "-c", &first_cpu(), "--json"]);
    scraping.join().unwrap();
    let second = exporter.metrics();
    let noise = &object["summary"]["cpus"][0];
    assert!(noise["noise_ns"].as_u64().unwrap() < noise["elapsed_ns"].as_u64().unwrap());
    let cpu = format!("cpu=\"{}\",class=\"program\"", first_cpu());
    let grown = |name, label: &str| sum(&second, name, label) - sum(&first, name, label);
    let measured = (noise["elapsed_ns"].as_u64().unwrap()
        - noise["noise_ns"].as_u64().unwrap()) as f64
        / 1e9;
    assert!(grown("noisefloor_cpu_seconds_total", &cpu) >= measured - 0.02);
    assert!(
        grown("noisefloor_source_seconds_total", "name=\"noisefloor\"")
            >= measured - 0.02
    );
    assert_eq!(exporter.end(libc::SIGTERM).0, Some(0));
}
