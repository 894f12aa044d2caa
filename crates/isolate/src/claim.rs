//! One spinner for each CPU: two would see nothing but each other. And guests of labs, which are
//! spread over the CPUs.
//!
//! Who spins or runs a guest on a CPU listens at a socket of that name in the abstract
//! namespace, which is gone with the process, however that ends (`man 7 unix`). It cannot see
//! who does so in another network namespace, as containers are.

use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};

/// CPUs that are this process's to spin on, for as long as it is kept.
#[derive(Debug)]
pub struct Claim {
    _held: Vec<UnixListener>,
}

/// Claims CPUs to spin on.
///
/// # Errors
/// `Kind::Taken` where another process spins on one of them, with its number; `Kind::System`
/// where the kernel has no such sockets.
pub fn claim(cpus: &CpuSet) -> Result<Claim, Error> {
    let held = cpus.iter().map(claim_one).collect::<Result<_, _>>()?;
    Ok(Claim { _held: held })
}

/// A guest's CPU, for as long as it is kept.
#[derive(Debug)]
pub struct Berth {
    /// The CPU.
    pub cpu: Cpu,
    _held: Option<UnixListener>,
}

/// So many guests are told apart on one CPU.
const BERTHS: u32 = 1_024;

/// The one of these CPUs on which the fewest guests run, of all labs of this machine, the first
/// of several; where the kernel has no such sockets the first of all. `None` without a CPU.
pub fn berth(cpus: &CpuSet) -> Option<Berth> {
    let each = |number| cpus.iter().map(move |cpu| (cpu, number));
    for (cpu, number) in (0..BERTHS).flat_map(each) {
        match UnixListener::bind_addr(&name(&format!("guest/{cpu}/{number}")).ok()?) {
            Ok(held) => return Some(Berth { cpu, _held: Some(held) }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            Err(_) => break,
        }
    }
    cpus.iter().next().map(|cpu| Berth { cpu, _held: None })
}

fn claim_one(cpu: Cpu) -> Result<UnixListener, Error> {
    let failed = |error: std::io::Error| {
        Error::new(Kind::System, format!("claim CPU {cpu}: {error}"))
    };
    let address = name(&format!("cpu/{cpu}")).map_err(failed)?;
    match UnixListener::bind_addr(&address) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(taken(cpu, &address)),
        bound => bound.map_err(failed),
    }
}

fn name(what: &str) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("noisefloor/{what}"))
}

fn taken(cpu: Cpu, address: &SocketAddr) -> Error {
    let process =
        UnixStream::connect_addr(address).ok().and_then(|other| listener(&other));
    let who = process.map_or_else(String::new, |process| format!(" (process {process})"));
    let who = format!("another noisefloor{who}");
    let text = format!("{who} spins on CPU {cpu}: wait for it, or name another");
    Error::new(Kind::Taken, text)
}

/// The process at the other end; `None` where this one's namespace does not show it.
fn listener(socket: &UnixStream) -> Option<u32> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of_val(&found)).ok()?;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    let place = (&raw mut found).cast();
    // SAFETY: the kernel writes at most `length` bytes to `found`, and numbers only.
    let failed = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, place, &raw mut length)
    };
    u32::try_from(found.pid).ok().filter(|pid| failed == 0 && *pid > 0)
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
        let of = |berth: &Berth| berth.cpu.get();
        let [first, second, third] = [(); 3].map(|()| berth(&cpus).unwrap());
        assert_eq!([&first, &second, &third].map(of), [4_002, 4_003, 4_002]);
        drop(second);
        assert_eq!(of(&berth(&cpus).unwrap()), 4_003);
        assert!(berth(&CpuSet::default()).is_none());
    }

    /// Check that a CPU is claimed once, by a process whose number is told, and free again
    /// when it has ended; what is claimed only in part is not kept.
    #[test]
    fn once_at_a_time() {
        let first = claim(&[Cpu::new(4_001)].into_iter().collect()).unwrap();
        let refused = claim(&beyond(4_001)).unwrap_err();
        assert_eq!(refused.kind(), Kind::Taken);
        let own = format!("(process {})", std::process::id());
        assert!(refused.to_string().contains(&own), "{refused}");
        drop(first);
        claim(&beyond(4_001)).unwrap();
    }
}
