//! A process that waits for its tracer, then has the filter, and becomes the program.

use std::ffi::{CString, c_char, c_int, c_ulong};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use libc::{pid_t, sock_filter, sock_fprog};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::{Error, Request, filter};

/// A process that waits.
pub(crate) struct Waiting {
    pub(crate) id: pid_t,
    /// It continues when a byte is written here.
    go: OwnedFd,
    /// The number of the error if it could not become the program, negative if that of the filter.
    failure: File,
}

/// Everything that the process needs after `fork(2)`, when it cannot allocate.
struct Prepared {
    program: CString,
    folder: CString,
    null: OwnedFd,
    output: OwnedFd,
    wait: OwnedFd,
    go: OwnedFd,
    failed: OwnedFd,
    filter: Vec<sock_filter>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Waiting {
    /// Starts one, with its output into `output`.
    pub(crate) fn start(request: &Request<'_>, output: OwnedFd) -> Result<Self, Error> {
        let prepared = prepare(request, output).map_err(Error::Start)?;
        let (failure, prepared) = prepared;
        let arguments = pointers(&prepared.arguments);
        let environment = pointers(&prepared.environment);
        // SAFETY: the new process calls only functions that are safe between fork and execve
        // (signal-safety(7)), on memory that was prepared before.
        match unsafe { libc::fork() } {
            -1 => Err(Error::Start(io::Error::last_os_error())),
            // SAFETY: both lists end with a null pointer, and their strings live until the end.
            0 => unsafe { become_program(&prepared, &arguments, &environment) },
            id => Ok(Self { id, go: prepared.go, failure }),
        }
    }

    /// Lets it continue.
    pub(crate) fn go(&self) -> io::Result<()> {
        rustix::io::write(&self.go, b"g")?;
        Ok(())
    }

    /// Why it did not become the program, after its end.
    pub(crate) fn failure(&mut self, program: &Path) -> Option<Error> {
        let mut number = [0; 4];
        self.failure.read_exact(&mut number).ok()?;
        let number = c_int::from_ne_bytes(number);
        let why = io::Error::from_raw_os_error(number.abs());
        Some(match number < 0 {
            true => Error::NotPermitted(why),
            false => Error::Execute(program.to_owned(), why),
        })
    }
}

fn prepare(request: &Request<'_>, output: OwnedFd) -> io::Result<(File, Prepared)> {
    let (wait, go) = pipe_with(PipeFlags::CLOEXEC)?;
    let (failure, failed) = pipe_with(PipeFlags::CLOEXEC)?;
    let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
    let arguments = request.arguments.iter().map(|word| text(word.as_bytes()));
    let variables = request.environment.iter();
    let variables =
        variables.map(|(name, value)| text(format!("{name}={value}").as_bytes()));
    let prepared = Prepared {
        program: text(request.program.as_os_str().as_bytes())?,
        folder: text(request.folder.as_os_str().as_bytes())?,
        null: File::open("/dev/null")?.into(),
        output,
        wait,
        go,
        failed,
        filter: filter::program(),
        arguments: arguments.collect::<io::Result<_>>()?,
        environment: variables.collect::<io::Result<_>>()?,
    };
    Ok((File::from(failure), prepared))
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// Waits, and becomes the program.
///
/// # Safety
/// Only for the new process after `fork(2)`; both lists end with a null pointer.
unsafe fn become_program(
    prepared: &Prepared,
    arguments: &[*const c_char],
    environment: &[*const c_char],
) -> ! {
    // SAFETY: system calls only, on memory and descriptors that exist.
    unsafe {
        libc::close(prepared.go.as_raw_fd()); // so that the end of the tracer ends the wait
        libc::setsid();
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        let mut byte = [0_u8; 1];
        if libc::read(prepared.wait.as_raw_fd(), byte.as_mut_ptr().cast(), 1) != 1 {
            libc::_exit(1);
        }
        let mut is_ready = libc::chdir(prepared.folder.as_ptr()) == 0;
        for (own, standard) in
            [(&prepared.null, 0), (&prepared.output, 1), (&prepared.output, 2)]
        {
            is_ready = is_ready && libc::dup2(own.as_raw_fd(), standard) == standard;
        }
        let is_filtered = is_ready && filtered(&prepared.filter);
        if is_filtered {
            libc::execve(
                prepared.program.as_ptr(),
                arguments.as_ptr(),
                environment.as_ptr(),
            );
        }
        let number = *libc::__errno_location();
        let is_of_filter = is_ready && !is_filtered;
        let number = if is_of_filter { -number } else { number }.to_ne_bytes();
        libc::write(prepared.failed.as_raw_fd(), number.as_ptr().cast(), number.len());
        libc::_exit(1);
    }
}

/// Adds the filter to this process; true if it has it.
///
/// # Safety
/// Only for a process that becomes another program.
unsafe fn filtered(filter: &[sock_filter]) -> bool {
    const ON: c_ulong = 1;
    const NONE: c_ulong = 0;
    let Ok(len) = u16::try_from(filter.len()) else { return false };
    let program = sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    let mode = c_ulong::from(libc::SECCOMP_MODE_FILTER);
    // SAFETY: the kernel copies the filter, which it does not change.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, ON, NONE, NONE, NONE) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) == 0
    }
}
