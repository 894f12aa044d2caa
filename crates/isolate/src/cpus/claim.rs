//! One spinner for each CPU: two would see nothing but each other. And guests of labs, which are
//! spread over the CPUs.
//!
//! A process that spins or runs a guest on a CPU listens at a socket of that name in the abstract
//! namespace, which is gone with the process, however that ends (`unix(7)`). Any user can bind any
//! name there: whose a socket is, the kernel tells (`SO_PEERCRED`). Only a process of root's or of
//! this user's keeps another one from a CPU; next to a name that a third user has, there are
//! others, and it is reported ([`Claim::strangers`]).
//!
//! Cannot see processes in another network namespace, as containers are.

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
use crate::task::described;

/// How many names a CPU has: so many other users can be passed over.
const NAMES: u32 = 8;
/// Claims with another value of this variable are others': tests measure beside a user who does.
const VARIABLE: &str = "NOISEFLOOR_CLAIMS";

/// CPUs that are this process's to spin on, for as long as it is kept.
#[derive(Debug, Default)]
pub struct Claim {
    held: Vec<UnixListener>,
    strangers: Vec<Stranger>,
}

impl Claim {
    /// The users, neither root nor this one, whose processes claim CPUs of these.
    pub fn strangers(&self) -> &[Stranger] {
        &self.strangers
    }
}

/// A process of another user that claims a CPU, and may or may not spin there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stranger {
    /// The CPU.
    pub cpu: Cpu,
    /// The user, and the process where it can be seen; `None` where it does not answer.
    pub owner: Option<Owner>,
}

/// Whose a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The user's number.
    pub user: u32,
    /// The process; `None` in another PID namespace.
    pub process: Option<u32>,
}

impl Owner {
    /// Whether this process has to respect it.
    fn is_trusted(self) -> bool {
        self.user == 0 || self.user == rustix::process::geteuid().as_raw()
    }
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, owner } = self;
        match owner {
            None => write!(f, "an unknown process claims CPU {cpu}, and does not answer"),
            Some(Owner { user, process: None }) => {
                write!(f, "user {user} claims CPU {cpu}")
            }
            Some(Owner { user, process: Some(process) }) => {
                write!(f, "{} of user {user} claims CPU {cpu}", described(*process))
            }
        }
    }
}

/// Claims CPUs to spin on.
///
/// # Errors
/// `Kind::Taken` where another process of root's or this user's spins on one of them, with its
/// number; `Kind::System` where the kernel has no such sockets.
pub fn claim(cpus: &CpuSet) -> Result<Claim, Error> {
    let mut claim = Claim::default();
    for cpu in cpus.iter() {
        claim.add(cpu)?;
    }
    Ok(claim)
}

impl Claim {
    /// Binds the first free name. Names before it are strangers'; one after it may be of a process
    /// that began while a stranger had this one.
    fn add(&mut self, cpu: Cpu) -> Result<(), Error> {
        let failed = |error: io::Error| {
            Error::new(Kind::System, format!("failed to claim CPU {cpu}"))
                .caused_by(error)
        };
        let mut is_bound = false;
        for number in 0..NAMES {
            let name = name_of(cpu, number);
            if !is_bound {
                match UnixListener::bind_addr(&address(&name).map_err(failed)?) {
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
                Ok(owner) => self.strangers.push(Stranger { cpu, owner }),
                // There is none, or none any more.
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
        .map_or_else(String::new, |number| format!(", {}", described(number)));
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

fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name)
}

/// Whose the socket of that name is; `None` where so many connections wait already that another
/// one would, too. Nothing is waited for.
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

/// The process at the other end, as it was when it began to listen.
fn listener(socket: &OwnedFd) -> Option<Owner> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of_val(&found)).ok()?;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let place = (&raw mut found).cast();
    // SAFETY: the kernel writes at most `length` bytes to `found`, and numbers only.
    let failed = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, place, &raw mut length)
    };
    let process = u32::try_from(found.pid).ok().filter(|pid| *pid > 0);
    (failed == 0).then_some(Owner { user: found.uid, process })
}

/// A guest's place on a CPU, which is free again when this is dropped.
#[derive(Debug)]
pub struct GuestCpu {
    /// The CPU.
    pub cpu: Cpu,
    _held: Option<UnixListener>,
}

/// So many guests are told apart on one CPU.
const GUESTS_PER_CPU: u32 = 1_024;

/// The one of these CPUs on which the fewest guests run, of all labs of this machine, the first
/// of several; where the kernel has no such sockets the first of all. `None` without a CPU.
pub fn claim_guest_cpu(cpus: &CpuSet) -> Option<GuestCpu> {
    let each = |number| cpus.iter().map(move |cpu| (cpu, number));
    for (cpu, number) in (0..GUESTS_PER_CPU).flat_map(each) {
        match UnixListener::bind_addr(
            &address(&format!("noisefloor/guest/{cpu}/{number}")).ok()?,
        ) {
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

    /// Check that guests are spread over the CPUs, whichever lab they are of, and that a CPU is
    /// free again when its guest has ended.
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

    /// Check that a CPU is claimed once, by a process whose number is told, and free again
    /// when it has ended; what is claimed only in part is not kept.
    #[test]
    fn once_at_a_time() {
        let first = claim(&[Cpu::new(4_001)].into_iter().collect()).unwrap();
        let refused = claim(&beyond(4_001)).unwrap_err();
        assert_eq!(refused.kind(), Kind::Taken);
        let own = format!("process {} (", std::process::id());
        assert!(refused.to_string().contains(&own), "{refused}");
        drop(first);
        claim(&beyond(4_001)).unwrap();
    }

    /// Check that a socket whose connections all wait is reported, without waiting for it, and
    /// that the CPU is claimed beside it.
    #[test]
    fn full_sockets_are_passed_over() {
        let cpu = Cpu::new(4_004);
        let name = SocketAddrUnix::new_abstract_name(name_of(cpu, 0).as_bytes()).unwrap();
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let full = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&full, &name).unwrap();
        rustix::net::listen(&full, 0).unwrap();
        let waiting = socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        connect(&waiting, &name).unwrap();
        let held = claim(&[cpu].into_iter().collect()).unwrap();
        assert_eq!(held.strangers(), [Stranger { cpu, owner: None }]);
        assert!(held.strangers()[0].to_string().contains("unknown process"));
        // The claim beside it counts.
        let refused = claim(&[cpu].into_iter().collect()).unwrap_err();
        assert_eq!(refused.kind(), Kind::Taken);
        // So it does for one that finds the first name free again.
        drop(full);
        let refused = claim(&[cpu].into_iter().collect()).unwrap_err();
        assert_eq!(refused.kind(), Kind::Taken);
    }
}
