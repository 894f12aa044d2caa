//! Claims of CPUs: only one busy loop runs on each CPU, since two would only measure each other;
//! guests of the lab are distributed over the CPUs.
//!
//! A process that measures on a CPU, or runs a guest there, listens on an abstract UNIX socket
//! named after the CPU; the socket disappears with the process (`unix(7)`). Any user can bind any
//! of these names; the kernel reports the socket's owner (`SO_PEERCRED`). Only processes of root
//! and of the same user exclude others from a CPU. If a third user has bound a name, the next name
//! is used, and the claim is reported ([`Claim::foreign`]).
//!
//! Processes in other network namespaces, such as containers, are not detected.

use std::fmt;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
};
use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::settings::state::is_privileged;
use crate::task::describe_process;

/// The number of names of a CPU, and so of foreign claims that can be skipped.
const NAMES: u32 = 8;
/// Processes with different values of this variable do not exclude each other: used in tests.
const VARIABLE: &str = "NOISEFLOOR_CLAIMS";

/// CPUs that are reserved for busy loops of this process until this is dropped.
#[derive(Debug, Default)]
pub struct Claim {
    held: Vec<UnixListener>,
    foreign: Vec<ForeignClaim>,
}

impl Claim {
    /// Claims of these CPUs by processes of other users, except root.
    pub fn foreign(&self) -> &[ForeignClaim] {
        &self.foreign
    }
}

/// A claim by a process of another user, which may or may not run a busy loop on the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignClaim {
    /// The CPU.
    pub cpu: Cpu,
    /// The owner; `None` if the process does not accept connections.
    pub owner: Option<Owner>,
}

/// The owner of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user ID.
    pub user: u32,
    /// The process ID; `None` if it is in another PID namespace.
    pub process: Option<u32>,
}

impl Owner {
    /// Whether this process respects claims of this owner.
    fn is_trusted(self) -> bool {
        self.user == 0 || self.user == rustix::process::geteuid().as_raw()
    }
}

impl fmt::Display for ForeignClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, owner } = self;
        match owner {
            None => write!(
                f,
                "an unknown process claims CPU {cpu} and accepts no connections"
            ),
            Some(Owner { user, process: None }) => {
                write!(f, "user {user} claims CPU {cpu}")
            }
            Some(Owner { user, process: Some(process) }) => {
                write!(
                    f,
                    "{} of user {user} claims CPU {cpu}",
                    describe_process(*process)
                )
            }
        }
    }
}

/// Claims CPUs for busy loops.
///
/// # Errors
/// `Kind::Taken` with the process ID if another process of root or this user has claimed one of
/// them; `Kind::System` if the kernel does not support such sockets.
pub fn claim(cpus: &CpuSet) -> Result<Claim, Error> {
    let mut claim = Claim::default();
    for cpu in cpus.iter() {
        claim.add(cpu)?;
    }
    Ok(claim)
}

impl Claim {
    /// Binds the first free name. Names before it are foreign claims. A name after it may belong to
    /// a process of this user that was started while the first name had a foreign claim.
    fn add(&mut self, cpu: Cpu) -> Result<(), Error> {
        let failed = |error: io::Error| {
            Error::new(Kind::System, format!("failed to claim CPU {cpu}"))
                .caused_by(error)
        };
        let mut is_bound = false;
        for number in 0..NAMES {
            let name = name_of(cpu, number);
            if !is_bound {
                match UnixListener::bind_addr(
                    &SocketAddr::from_abstract_name(&name).map_err(failed)?,
                ) {
                    Ok(held) => {
                        self.held.push(held);
                        is_bound = true;
                        continue;
                    }
                    Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                    Err(error) => return Err(failed(error)),
                }
            }
            match owner(&name) {
                Ok(Some(owner)) if owner.is_trusted() => return Err(taken(cpu, owner)),
                Ok(owner) => self.foreign.push(ForeignClaim { cpu, owner }),
                // The name is free, or its owner has ended.
                Err(Errno::CONNREFUSED) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
        }
        Ok(())
    }
}

fn taken(cpu: Cpu, owner: Owner) -> Error {
    let process = owner
        .process
        .map_or_else(String::new, |number| format!(", {}", describe_process(number)));
    let text = format!(
        "another noisefloor{process}, measures on CPU {cpu}; hint: use --wait, or -c with other CPUs"
    );
    Error::new(Kind::Taken, text)
}

fn name_of(cpu: Cpu, number: u32) -> String {
    let namespace = std::env::var(VARIABLE).ok().filter(|_| !is_privileged());
    let namespace = namespace.map_or_else(String::new, |name| format!("{name}/"));
    match number {
        0 => format!("noisefloor/{namespace}cpu/{cpu}"),
        _ => format!("noisefloor/{namespace}cpu/{cpu}/{number}"),
    }
}

/// The owner of a socket; `None` if its queue of connections is full. Does not block.
fn owner(name: &str) -> Result<Option<Owner>, Errno> {
    let (flags, kind) =
        (SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, SocketType::STREAM);
    let socket = socket_with(AddressFamily::UNIX, kind, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?) {
        Ok(()) => Ok(listener(&socket)),
        Err(Errno::AGAIN) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// The peer's credentials at the time of its listen(2).
fn listener(socket: &OwnedFd) -> Option<Owner> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of_val(&found)).ok()?;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let place = (&raw mut found).cast();
    // SAFETY: the kernel writes at most `length` bytes to `found`, which has numbers only.
    let failed = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, place, &raw mut length)
    };
    let process = u32::try_from(found.pid).ok().filter(|pid| *pid > 0);
    (failed == 0).then_some(Owner { user: found.uid, process })
}

/// A guest's reserved slot on a CPU; released when this is dropped.
#[derive(Debug)]
pub struct GuestCpu {
    /// The CPU.
    pub cpu: Cpu,
    _held: Option<UnixListener>,
}

/// The maximum number of guests that are counted per CPU.
const GUESTS_PER_CPU: u32 = 1_024;

/// Reserves a slot on the CPU with the fewest guests of all labs on this machine; the first of
/// several, or the first CPU if the kernel does not support such sockets. `None` if `cpus` is
/// empty.
pub fn claim_guest_cpu(cpus: &CpuSet) -> Option<GuestCpu> {
    let each = |number| cpus.iter().map(move |cpu| (cpu, number));
    for (cpu, number) in (0..GUESTS_PER_CPU).flat_map(each) {
        let name = format!("noisefloor/guest/{cpu}/{number}");
        match UnixListener::bind_addr(&SocketAddr::from_abstract_name(name).ok()?) {
            Ok(held) => return Some(GuestCpu { cpu, _held: Some(held) }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(_) => break,
        }
    }
    cpus.iter().next().map(|cpu| GuestCpu { cpu, _held: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beyond(last: u32) -> CpuSet {
        [Cpu::new(4_000), Cpu::new(last)].into_iter().collect()
    }

    /// Check that guests are distributed over the CPUs, across labs, and that slots are released.
    #[test]
    fn guests_are_spread() {
        let cpus = [Cpu::new(4_002), Cpu::new(4_003)].into_iter().collect();
        let of = |guest: &GuestCpu| guest.cpu.get();
        let [first, second, third] = [(); 3].map(|()| claim_guest_cpu(&cpus).unwrap());
        assert_eq!([&first, &second, &third].map(of), [4_002, 4_003, 4_002]);
        drop(second);
        assert_eq!(of(&claim_guest_cpu(&cpus).unwrap()), 4_003);
        assert!(claim_guest_cpu(&CpuSet::default()).is_none());
    }

    /// Check that a CPU is claimed only once, that the error has the process ID, that the claim
    /// ends when it is dropped, and that a partial claim is released.
    #[test]
    fn once_at_a_time() {
        let first = claim(&Cpu::new(4_001).into()).unwrap();
        let refused = claim(&beyond(4_001)).unwrap_err();
        assert_eq!(refused.kind(), Kind::Taken);
        let own = format!("process {} (", std::process::id());
        assert!(refused.to_string().contains(&own), "{refused}");
        drop(first);
        claim(&beyond(4_001)).unwrap();
    }

    /// Check that a socket with a full queue is reported without blocking, and the next name is
    /// used.
    #[test]
    fn full_sockets_are_skipped() {
        let cpu = Cpu::new(4_004);
        let name = SocketAddrUnix::new_abstract_name(name_of(cpu, 0).as_bytes()).unwrap();
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let full = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&full, &name).unwrap();
        rustix::net::listen(&full, 0).unwrap();
        let waiting = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        connect(&waiting, &name).unwrap();
        let held = claim(&cpu.into()).unwrap();
        assert_eq!(held.foreign(), [ForeignClaim { cpu, owner: None }]);
        assert!(held.foreign()[0].to_string().contains("unknown process"));
        // The claim with the next name is respected,
        let refused = claim(&cpu.into()).unwrap_err();
        assert_eq!(refused.kind(), Kind::Taken);
        // also by a process that finds the first name free again.
        drop(full);
        let refused = claim(&cpu.into()).unwrap_err();
        assert_eq!(refused.kind(), Kind::Taken);
    }
}
