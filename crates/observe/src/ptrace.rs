//! ptrace(2) and waitpid(2), as far as the tracer needs them.

use std::ffi::{c_int, c_long, c_uint, c_void};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use libc::pid_t;

use crate::observation::Ended;

/// How often a report is looked for, if that has an end.
const LOOK: Duration = Duration::from_millis(1);

/// The general registers (`NT_PRSTATUS` of elf.h).
const NT_PRSTATUS: usize = 1;

const OPTIONS: c_int = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_EXITKILL;

/// What a thread reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// It has ended.
    Ended(Ended),
    /// It is about to make a system call with a path.
    Call,
    /// It has become another program; the thread that called execve(2) had that number.
    Executed(pid_t),
    /// It started the thread or the process with that number.
    Started(pid_t),
    /// It receives that signal.
    Signal(c_int),
    /// It is stopped until it receives `SIGCONT`.
    Stopped,
    /// Anything else.
    Other,
}

/// A system call: its number and its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) number: u64,
    pub(crate) arguments: [u64; 6],
}

/// Traces a process that runs, and all that it will start; they end with this thread.
pub(crate) fn seize(id: pid_t) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, id, 0, c_long::from(OPTIONS)).map(drop)
}

/// Lets a thread continue, with a signal if that is not 0. It may be gone.
pub(crate) fn resume(id: pid_t, signal: c_int) {
    let _ = request(libc::PTRACE_CONT, id, 0, c_long::from(signal));
}

/// Leaves a thread stopped, until it receives `SIGCONT`. It may be gone.
pub(crate) fn listen(id: pid_t) {
    let _ = request(libc::PTRACE_LISTEN, id, 0, 0);
}

/// The system call that a thread is about to make.
pub(crate) fn call(id: pid_t) -> io::Result<Call> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
    let mut filled = libc::iovec {
        iov_base: registers.as_mut_ptr().cast::<c_void>(),
        iov_len: size_of::<libc::user_regs_struct>(),
    };
    let kind = ptr::without_provenance_mut::<c_void>(NT_PRSTATUS);
    // SAFETY: the kernel fills the structure, if it reports success.
    let registers = unsafe {
        checked(libc::ptrace(libc::PTRACE_GETREGSET, id, kind, &raw mut filled))?;
        registers.assume_init()
    };
    Ok(of_registers(&registers))
}

/// The registers with the number and the arguments (syscall(2)).
#[cfg(target_arch = "x86_64")]
fn of_registers(registers: &libc::user_regs_struct) -> Call {
    let libc::user_regs_struct { rdi, rsi, rdx, r10, r8, r9, .. } = *registers;
    Call { number: registers.orig_rax, arguments: [rdi, rsi, rdx, r10, r8, r9] }
}

/// The registers with the number and the arguments (syscall(2)).
#[cfg(target_arch = "aarch64")]
fn of_registers(registers: &libc::user_regs_struct) -> Call {
    let [a, b, c, d, e, f, ..] = registers.regs;
    Call { number: registers.regs[8], arguments: [a, b, c, d, e, f] }
}

/// What was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The report of a thread.
    Report(pid_t, Report),
    /// There is no thread any more.
    NoThread,
    /// The time has passed.
    TimedOut,
}

/// The next report of a thread that this one traces, until a time, if one is given.
pub(crate) fn wait(until: Option<Instant>) -> io::Result<Waited> {
    // Without __WNOTHREAD, this would be the end of other children of this process.
    let flags = libc::__WALL | libc::__WNOTHREAD;
    let flags = if until.is_some() { flags | libc::WNOHANG } else { flags };
    let mut status = 0;
    loop {
        // SAFETY: the kernel writes to the integer.
        let id = unsafe { libc::waitpid(-1, &raw mut status, flags) };
        if id > 0 {
            return Ok(Waited::Report(id, report(id, status)));
        }
        if id == 0 {
            if until.is_some_and(|until| Instant::now() > until) {
                return Ok(Waited::TimedOut);
            }
            thread::sleep(LOOK);
            continue;
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ECHILD) => {
                return Ok(Waited::NoThread);
            }
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    }
}

fn report(id: pid_t, status: c_int) -> Report {
    const STOPS: [c_int; 4] =
        [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    if libc::WIFEXITED(status) {
        let code = u8::try_from(libc::WEXITSTATUS(status)).unwrap_or(u8::MAX);
        return Report::Ended(Ended::Exited(code));
    }
    if libc::WIFSIGNALED(status) {
        return Report::Ended(Ended::Killed(libc::WTERMSIG(status)));
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        0 => Report::Signal(signal),
        libc::PTRACE_EVENT_SECCOMP => Report::Call,
        libc::PTRACE_EVENT_EXEC => Report::Executed(message(id).unwrap_or(id)),
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            message(id).map_or(Report::Other, Report::Started)
        }
        libc::PTRACE_EVENT_STOP if STOPS.contains(&signal) => Report::Stopped,
        _ => Report::Other,
    }
}

/// The number that belongs to a report.
fn message(id: pid_t) -> Option<pid_t> {
    let mut number: libc::c_ulong = 0;
    // SAFETY: the kernel writes to the integer.
    let result = unsafe {
        let to = (&raw mut number).cast::<c_void>();
        libc::ptrace(libc::PTRACE_GETEVENTMSG, id, ptr::null_mut::<c_void>(), to)
    };
    checked(result).ok()?;
    pid_t::try_from(number).ok()
}

/// Kills a process. It may be gone.
pub(crate) fn kill(id: pid_t) {
    // SAFETY: a system call without memory.
    unsafe { libc::kill(id, libc::SIGKILL) };
}

fn request(kind: c_uint, id: pid_t, address: c_long, data: c_long) -> io::Result<c_long> {
    // SAFETY: these requests read and write no memory of this process.
    checked(unsafe { libc::ptrace(kind, id, address, data) })
}

fn checked(result: c_long) -> io::Result<c_long> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

/// Reads memory of a traced thread; the number of bytes, fewer if the next page is not there.
pub(crate) fn read(id: pid_t, address: u64, to: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = usize::try_from(address).unwrap_or(usize::MAX);
    let remote =
        libc::iovec { iov_base: ptr::without_provenance_mut(remote), iov_len: to.len() };
    // SAFETY: the kernel writes only to the slice, and checks the other address.
    let read = unsafe {
        libc::process_vm_readv(id, &raw const local, 1, &raw const remote, 1, 0)
    };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}
