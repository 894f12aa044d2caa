//! Output on a terminal: hostile names of real threads, of files and in errors; other locales;
//! a terminal without escape sequences.

use std::ffi::CString;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::environment::with_own_claims;
use crate::tool::{TOOL, first_cpu, is_root, run, text, tool, turn};

/// A name of the maximum length: clears the screen and begins a line.
const NAME: &str = "\x1b[2J\nFORGED\x07";
const SHOWN: &str = "\\x1b[2J\\x0aFORGED\\x07";
const GOLDEN: &str = "../recording/tests/golden/check-1.json";

fn check_lines(printed: &[u8]) {
    let printed = text(printed);
    let control = printed.chars().find(|&c| c.is_control() && c != '\n');
    assert_eq!(control, None, "{printed}");
    assert!(!printed.lines().any(|line| line.starts_with("FORGED")), "{printed}");
}

/// A thread with that name, which runs half of the time on one CPU.
struct Hostile {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    fn on(cpu: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let name = CString::new(NAME).unwrap();
        let thread = thread::spawn(move || {
            // SAFETY: the string outlives the call; it names this thread.
            unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
            // SAFETY: all zeros is an empty set.
            let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
            // SAFETY: the set is this thread's own, and as long as it says.
            unsafe {
                libc::CPU_SET(cpu, &mut set);
                libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
            }
            while !is_over.load(Ordering::Relaxed) {
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(2) {}
                thread::sleep(Duration::from_millis(2));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Check that a thread with a name that controls terminals is printed with escapes among the
/// wake-ups and among the culprits, and that JSON has its name unchanged.
#[test]
fn names_of_threads() {
    let _turn = turn();
    let cpu = first_cpu();
    let _hostile = Hostile::on(cpu.parse().unwrap());
    for args in [
        &["wakers", "-d", "500ms", "-n", "1000", "-c", &cpu][..],
        &["noise", "-q", "--source", "bpf", "-d", "1", "-c", &cpu],
    ] {
        let output = run(args);
        if !is_root() || output.status.code() == Some(3) {
            println!("skipped: names_of_threads: {}", text(&output.stderr));
            return;
        }
        check_lines(&output.stdout);
        check_lines(&output.stderr);
        // Tables cut names that are long.
        assert!(text(&output.stdout).contains(&SHOWN[..8]), "{}", text(&output.stdout));
        let json = tool(args).arg("--json").output().unwrap();
        check_lines(&json.stdout);
        let json: Value = serde_json::from_slice(&json.stdout).unwrap();
        let mut names = Vec::new();
        strings(&json["summary"], &mut names);
        assert!(names.iter().any(|name| name.contains(NAME)), "{names:?}");
    }
}

fn strings<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        Value::Object(values) => values.values().for_each(|value| strings(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Check that errors print names of files, content and arguments with escapes, in one message.
#[test]
fn errors() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(NAME);
    let kind = serde_json::json!({"format": 1, "kind": NAME, "series": {}});
    fs::write(&file, kind.to_string()).unwrap();
    let file = file.to_str().unwrap();
    for args in [
        &["report", file][..],
        &["report", NAME],
        &["facts", "--root", file],
        &["ticks", "-o", &format!("{file}/x")],
        &["lab", "run", file],
        &[NAME],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        check_lines(&output.stderr);
        assert!(text(&output.stderr).contains("\\x1b[2J"), "{args:?}");
    }
}

/// Check that text is ASCII in a locale without UTF-8, and that JSON does not change.
#[test]
fn locales() {
    let run = |locale: &[(&str, &str)], json: bool| {
        let mut command = tool(&["report", GOLDEN]);
        command.env_remove("LC_ALL").env_remove("LC_CTYPE").env_remove("LANG");
        command.envs(locale.iter().copied()).args(json.then_some("--json"));
        command.output().unwrap().stdout
    };
    let utf8 = text(&run(&[("LANG", "C.UTF-8")], false));
    assert!(utf8.contains("µs"), "{utf8}");
    let width =
        |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
    for locale in
        [&[][..], &[("LC_ALL", "C"), ("LANG", "C.UTF-8")], &[("LC_CTYPE", "POSIX")]]
    {
        let ascii = run(locale, false);
        assert!(ascii.is_ascii() && text(&ascii).contains("us"), "{locale:?}");
        assert_eq!(width(&text(&ascii)), width(&utf8), "{locale:?}");
        let json = run(locale, true);
        assert!(json.is_ascii(), "{locale:?}");
        let same: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(
            same,
            serde_json::from_slice::<Value>(&run(&[("LANG", "C.UTF-8")], true)).unwrap()
        );
    }
}

/// Check that progress is drawn on a terminal, and not on one without escape sequences.
#[test]
fn dumb_terminals() {
    let _turn = turn();
    let cpu = first_cpu();
    let printed = |term: &str| {
        let line =
            format!("TERM={term} exec {TOOL} noise --source proc -d 2500ms -c {cpu}");
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
        with_own_claims(&mut script);
        Some(text(&script.output().ok()?.stdout))
    };
    let (Some(dumb), Some(xterm)) = (printed("dumb"), printed("xterm")) else {
        println!("skipped: dumb_terminals: there is no script(1)");
        return;
    };
    assert!(xterm.contains("\x1b[K"), "{xterm}");
    assert!(!dumb.contains('\x1b') && dumb.contains("gap"), "{dumb}");
}
