//! A terminal for a program under test: a pseudo-terminal, whose other end the test reads and types at.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a test waits for a program on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal with a program.
pub(crate) struct OnTerminal {
    child: Child,
    other: Option<File>,
    terminal: Option<File>,
    reader: Option<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
    before: Vec<u8>,
    printed: Arc<Mutex<Vec<u8>>>,
}

impl OnTerminal {
    /// Starts a program on a new terminal of that size, which is its controlling terminal.
    pub(crate) fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let (other, terminal) = open(columns, rows);
        let before = settings(&terminal);
        let end = || Stdio::from(terminal.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm");
        let become_leader = || {
            // SAFETY: both are system calls without memory.
            let done =
                unsafe { libc::setsid() >= 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) == 0 };
            if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        };
        // SAFETY: the closure makes system calls only.
        unsafe { command.pre_exec(become_leader) };
        let child = command.spawn().unwrap();
        let printed = Arc::<Mutex<Vec<u8>>>::default();
        let is_over = Arc::<AtomicBool>::default();
        let (to, over) = (Arc::clone(&printed), Arc::clone(&is_over));
        let from = other.try_clone().unwrap();
        let reader = Some(std::thread::spawn(move || read(from, &to, &over)));
        let (other, terminal) = (Some(other), Some(terminal));
        Self { child, other, terminal, reader, is_over, before, printed }
    }

    /// Closes the terminal.
    pub(crate) fn hang_up(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        (self.other, self.terminal) = (None, None);
    }

    pub(crate) fn child(&self) -> &Child {
        &self.child
    }

    /// Waits until the program has printed this since the last `forget`: control sequences, or lines that are
    /// not drawn in parts.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, || self.printed().contains(text));
    }

    /// Waits until a line of the screen has this text. Only changed characters are drawn.
    pub(crate) fn wait_for_screen(&self, text: &str) {
        let has_it = || screen(&self.printed()).iter().any(|line| line.contains(text));
        self.wait_until(text, has_it);
    }

    fn wait_until(&self, text: &str, is_there: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_there() {
            assert!(begin.elapsed() < PATIENCE, "no {text:?} in {:?}", self.end());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What it has printed.
    pub(crate) fn printed(&self) -> String {
        String::from_utf8_lossy(&self.printed.lock().unwrap()).into_owned()
    }

    /// The end of that.
    pub(crate) fn end(&self) -> String {
        let printed = self.printed();
        let letters = printed.chars().count();
        printed.chars().skip(letters.saturating_sub(300)).collect()
    }

    pub(crate) fn forget(&self) {
        self.printed.lock().unwrap().clear();
    }

    /// Types at the terminal.
    pub(crate) fn press(&self, keys: &str) {
        let mut other = self.other.as_ref().unwrap();
        other.write_all(keys.as_bytes()).unwrap();
    }

    /// Whether the terminal has its settings from before the program.
    pub(crate) fn is_restored(&self) -> bool {
        settings(self.terminal.as_ref().unwrap()) == self.before
    }

    /// Waits for the program's end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < PATIENCE, "it does not end: {:?}", self.end());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of a screen to which this was printed, at places named by `ESC [ row ; column H`.
fn screen(printed: &str) -> Vec<String> {
    let mut lines: Vec<Vec<char>> = Vec::new();
    let (mut row, mut column) = (0, 0);
    let mut letters = printed.chars();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            let line = row + 1;
            lines.resize(lines.len().max(line), Vec::new());
            let length = lines[row].len().max(column + 1);
            lines[row].resize(length, ' ');
            lines[row][column] = letter;
            column += 1;
            continue;
        }
        letters.next();
        let mut sequence = String::new();
        while !sequence.ends_with(|letter: char| letter.is_ascii_alphabetic()) {
            let Some(letter) = letters.next() else { break };
            sequence.push(letter);
        }
        if let Some(place) = sequence.strip_suffix('H') {
            let mut numbers = place.split(';').map(|number| number.parse().unwrap_or(1));
            let mut next = || numbers.next().map_or(0, |number: usize| number - 1);
            (row, column) = (next(), next());
        }
    }
    lines.into_iter().map(String::from_iter).collect()
}

/// Stores what a terminal prints, until it is over.
fn read(mut from: File, to: &Mutex<Vec<u8>>, is_over: &AtomicBool) {
    let mut bytes = [0; 4096];
    while !is_over.load(Ordering::Relaxed) {
        let (fd, events, revents) = (from.as_raw_fd(), libc::POLLIN, 0);
        let mut ends = [libc::pollfd { fd, events, revents }];
        // SAFETY: it is one valid entry for the kernel to write.
        if unsafe { libc::poll(ends.as_mut_ptr(), 1, 20) } > 0 {
            let Ok(read @ 1..) = from.read(&mut bytes) else { return };
            to.lock().unwrap().extend(&bytes[..read]);
        }
    }
}

/// The two ends of a new pseudo-terminal.
fn open(columns: u16, rows: u16) -> (File, File) {
    let (mut other, mut terminal) = (-1, -1);
    let size =
        libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
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
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    let own = |fd| {
        // SAFETY: it is open, and nothing else has it.
        let own = unsafe { OwnedFd::from_raw_fd(fd) };
        // Programs would keep the terminal open.
        rustix::io::fcntl_setfd(&own, rustix::io::FdFlags::CLOEXEC).unwrap();
        File::from(own)
    };
    (own(other), own(terminal))
}

/// The settings of a terminal, to compare.
fn settings(terminal: &File) -> Vec<u8> {
    // SAFETY: an all-zero termios is valid, and the kernel fills it.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: it is a valid termios for the kernel to write.
    let done = unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut settings) };
    assert_eq!(done, 0);
    let flags = [settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag];
    flags.into_iter().flat_map(u32::to_ne_bytes).chain(settings.c_cc).collect()
}
