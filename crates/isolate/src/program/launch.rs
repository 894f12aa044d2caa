//! The start of a program: a process that shares the memory of the supervisor until it calls exec
//! (`clone(2)` with `CLONE_VM | CLONE_VFORK`, as `posix_spawn(3)` does).
//!
//! So it has no copy of the memory of noisefloor: making the copy and discarding it in exec would be
//! part of the program's time. Everything that allocates is prepared before the first fork
//! (`signal-safety(7)`). The process reads the clock as its last action before exec.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::mem::zeroed;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::Command;
use std::ptr;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use units::CpuSet;

use crate::program::gate::{self, Gate};
use crate::program::supervisor::{checked, end_with};
use crate::thread::{PreparedAffinity, set_inherited_fifo};

/// The stack of the process before exec: `execvpe(3)` puts a path of up to 4 KiB on it, and for a
/// script without an interpreter a copy of the pointers to the arguments.
const STACK: usize = 64 << 10;
/// A program without effects, which nearly every machine has (POSIX).
const WITHOUT_EFFECT: &str = "/bin/true";
/// The alignment of a stack.
const ALIGNMENT: usize = 16;

/// A program that is not started yet.
pub(crate) struct Launch {
    file: CString,
    arguments: Strings,
    environment: Strings,
    affinity: PreparedAffinity,
    fifo: Option<u8>,
    /// The descriptor of the gate before it, if it has one.
    gate: Option<libc::c_int>,
    stack: Vec<u8>,
}

/// A program that was started.
#[derive(Clone, Copy)]
pub(crate) struct Launched {
    pub(crate) pid: libc::pid_t,
    pub(crate) before: BeforeExec,
}

/// What the new process read just before exec.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct BeforeExec {
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub(crate) began: u64,
    /// Its resource usage so far, which is not the program's.
    pub(crate) usage: libc::rusage,
}

/// Strings, and the null-terminated array of pointers to them.
struct Strings {
    _strings: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

// SAFETY: the pointers refer to memory that this owns, and that nothing writes.
unsafe impl Send for Strings {}
// SAFETY: as above.
unsafe impl Sync for Strings {}

impl Strings {
    fn of(strings: impl IntoIterator<Item = OsString>) -> io::Result<Self> {
        let strings = strings.into_iter().map(|string| c_string(&string));
        let strings = strings.collect::<io::Result<Vec<_>>>()?;
        let pointers = strings.iter().map(|string| string.as_ptr());
        let pointers = pointers.chain([ptr::null()]).collect();
        Ok(Self { _strings: strings, pointers })
    }
}

fn c_string(string: &OsStr) -> io::Result<CString> {
    CString::new(string.as_bytes()).map_err(io::Error::from)
}

/// The memory that the new process and the supervisor have in common.
#[derive(Clone, Copy)]
struct Shared<'a> {
    launch: &'a Launch,
    supervisor: u32,
    signals: &'a libc::sigset_t,
    before: BeforeExec,
    /// What prevented exec.
    error: libc::c_int,
}

impl Launch {
    /// The program of a command, with its arguments and environment.
    ///
    /// # Errors
    /// One of them contains a zero byte.
    pub(crate) fn of(
        command: &Command,
        cpus: &CpuSet,
        fifo: Option<u8>,
    ) -> io::Result<Self> {
        let program = command.get_program();
        let arguments = [program].into_iter().chain(command.get_args());
        Ok(Self {
            file: c_string(&found(program))?,
            arguments: Strings::of(arguments.map(OsStr::to_owned))?,
            environment: Strings::of(environment(command))?,
            affinity: PreparedAffinity::of(cpus),
            fifo,
            gate: None,
            stack: vec![0; STACK],
        })
    }

    /// The same program behind a gate, which has to stay until it is started.
    pub(crate) fn behind(self, gate: Option<&Gate>) -> Self {
        Self { gate: gate.map(Gate::descriptor), ..self }
    }

    /// Moves the calling process to the CPUs of a program that has a gate, before its start: on the CPU of the other
    /// program, it would learn of the end of its own one only when that leaves the CPU. Async-signal-safe.
    ///
    /// # Errors
    /// Those of `sched_setaffinity(2)`.
    pub(crate) fn stay_near(&self) -> io::Result<()> {
        self.gate.map_or(Ok(()), |_| self.affinity.apply())
    }

    /// A program that is run before another one on the same CPUs, so that the time of that one does not
    /// depend on what this process did before: the longer ago a CPU has started a program, the longer the
    /// next one takes, by a fifth for one of 1 ms. Its environment is empty, so that it loads no other
    /// libraries.
    ///
    /// # Errors
    /// None that the other program would not have.
    pub(crate) fn before_another(cpus: &CpuSet, fifo: Option<u8>) -> io::Result<Self> {
        let launch = Self::of(&Command::new(WITHOUT_EFFECT), cpus, fifo)?;
        Ok(Self { environment: Strings::of([])?, ..launch })
    }

    /// Starts it as a child of the calling process, with these blocked signals, and returns after its
    /// exec. Async-signal-safe.
    ///
    /// # Errors
    /// Those of `clone(2)`, `sched_setaffinity(2)`, `sched_setscheduler(2)` and `execve(2)`; `ECANCELED` if
    /// its gate was not opened.
    pub(crate) fn start(&self, signals: &libc::sigset_t) -> io::Result<Launched> {
        let supervisor = std::process::id();
        // SAFETY: all fields are numbers.
        let before: BeforeExec = unsafe { zeroed() };
        let mut shared = Shared { launch: self, supervisor, signals, before, error: 0 };
        let end = self.stack.as_ptr_range().end.cast_mut();
        // Stacks grow downwards.
        let top = end.wrapping_sub(end.addr() % ALIGNMENT).cast();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: this process waits until the child has called exec or ended, so both do not use
        // memory at the same time, and `shared` outlives the child's use of it. Nothing else uses the
        // stack.
        let pid = checked(unsafe {
            libc::clone(execute, top, flags, (&raw mut shared).cast())
        })?;
        // SAFETY: the child has written them through a pointer that the compiler does not follow.
        let (error, before) = unsafe {
            let (error, before) = (&raw const shared.error, &raw const shared.before);
            (error.read_volatile(), before.read_volatile())
        };
        match error {
            0 => Ok(Launched { pid, before }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// The file of a program without a folder, if `PATH` has one: its run time does not include the search.
fn found(program: &OsStr) -> OsString {
    let folders = match program.as_bytes().contains(&b'/') {
        true => OsString::new(),
        false => std::env::var_os("PATH").unwrap_or_default(),
    };
    let is_program = |file: &PathBuf| {
        let is_executable =
            accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS).is_ok();
        is_executable && file.is_file()
    };
    let mut files = std::env::split_paths(&folders).map(|folder| folder.join(program));
    files.find(is_program).map_or_else(|| program.to_owned(), OsString::from)
}

/// The environment of a command: that of this process, with its changes. `Command::env_clear` cannot be
/// seen.
fn environment(command: &Command) -> Vec<OsString> {
    let changes: Vec<_> = command.get_envs().collect();
    let is_kept = |name: &OsStr| changes.iter().all(|(changed, _)| *changed != name);
    let kept = std::env::vars_os().filter(|(name, _)| is_kept(name));
    let set = changes
        .iter()
        .filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?.to_owned())));
    let line = |(name, value): (OsString, OsString)| {
        let parts = [name.into_vec(), value.into_vec()];
        OsString::from_vec(parts.join(&b'='))
    };
    kept.chain(set).map(line).collect()
}

/// The new process until its exec.
extern "C" fn execute(shared: *mut libc::c_void) -> libc::c_int {
    let shared = shared.cast::<Shared<'_>>();
    // SAFETY: `start` passes a valid pointer, and waits meanwhile.
    let copy = unsafe { *shared };
    let error = prepare(&copy).err().unwrap_or_else(|| {
        let Launch { file, arguments, environment, .. } = copy.launch;
        let (arguments, environment) =
            (arguments.pointers.as_ptr(), environment.pointers.as_ptr());
        let mut before = copy.before;
        // SAFETY: the usage outlives the call, which writes it.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut before.usage) };
        before.began = monotonic();
        // Volatile: exec is no reason for the compiler to write before.
        // SAFETY: the memory, the strings and the null-terminated arrays are valid.
        unsafe {
            (&raw mut (*shared).before).write_volatile(before);
            libc::execvpe(file.as_ptr(), arguments, environment);
        }
        io::Error::last_os_error()
    });
    let error = error.raw_os_error().unwrap_or(libc::EINVAL);
    // SAFETY: the memory is valid; the call takes a number only, and does not return.
    unsafe {
        (&raw mut (*shared).error).write_volatile(error);
        libc::_exit(1)
    }
}

fn prepare(shared: &Shared<'_>) -> io::Result<()> {
    end_with(shared.supervisor, libc::SIGKILL)?;
    shared.launch.affinity.apply()?;
    shared.launch.fifo.map_or(Ok(()), set_inherited_fifo)?;
    if let Some(gate) = shared.launch.gate {
        may_execute(&shared.launch.file)?;
        gate::pass(gate)?;
    }
    let signals = ptr::from_ref(shared.signals);
    // SAFETY: the set is valid, and outlives the call.
    checked(unsafe { libc::sigprocmask(libc::SIG_SETMASK, signals, ptr::null_mut()) })
        .map(drop)
}

/// Refuses a program that is not there, or is not executable: another one that would begin at the same moment
/// is not started then.
fn may_execute(file: &CStr) -> io::Result<()> {
    // SAFETY: the name is valid, and outlives the call.
    checked(unsafe { libc::access(file.as_ptr(), libc::X_OK) }).map(drop)
}

/// `CLOCK_MONOTONIC`, in nanoseconds. Async-signal-safe.
pub(crate) fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time outlives the call. It cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a program is found where a shell finds it, and that other names stay as they are.
    #[test]
    fn files() {
        let shell = found(OsStr::new("sh"));
        let expected = Command::new("sh").args(["-c", "command -v sh"]).output().unwrap();
        assert_eq!(format!("{}\n", shell.display()).as_bytes(), expected.stdout);
        for name in ["./sh", "/", "", "noisefloor/", "no-such-program"] {
            assert_eq!(found(OsStr::new(name)), name);
        }
    }

    /// Check that variables of a command are added, replaced and removed.
    #[test]
    fn environments() {
        let mut command = Command::new("true");
        command.env("NOISEFLOOR_LAUNCHED", "a=b").env("PATH", "/x").env_remove("HOME");
        let found = environment(&command);
        let of = |name: &str| -> Vec<String> {
            let lines = found.iter().map(|line| line.to_string_lossy().into_owned());
            lines.filter(|line| line.starts_with(&format!("{name}="))).collect()
        };
        assert_eq!(of("NOISEFLOOR_LAUNCHED"), ["NOISEFLOOR_LAUNCHED=a=b"]);
        assert_eq!(of("PATH"), ["PATH=/x"]);
        assert_eq!(of("HOME"), [""; 0]);
    }
}
