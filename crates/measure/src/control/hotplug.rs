//! CPUs that go offline during a measurement, when and for how long.
//!
//! The kernel sends a uevent to all listeners when a CPU has gone offline or online: `offline@` and
//! `online@/devices/system/cpu/cpuN`, on a netlink socket that any user may open
//! (`drivers/base/core.c`, since 2.6.25; without `CONFIG_NET`, or in the network namespace of another
//! user namespace, there are none). A thread sleeps until one arrives; nothing else wakes it up. The
//! CPU stops running tasks some milliseconds before its message (tens of them on a large machine).
//!
//! Without messages, only CPUs that are offline at the end are known.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::thread::{Builder, JoinHandle};

use facts::Root;
use isolate::Retain;
use recording::{Code, Doubt};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recvfrom, socket_with,
};
use units::{Cpu, CpuSet, Nanos};

use crate::time::counter;

/// The online CPUs.
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// The multicast group of the kernel's own messages; udev's have another one.
const KERNEL_GROUP: u32 = 1;
/// The directory of a CPU's device, up to its number.
const CPU_DEVICE: &str = "/devices/system/cpu/cpu";
/// The longest message (`UEVENT_BUFFER_SIZE` is 2048).
const MESSAGE_MAX: usize = 8_192;

/// A change that the kernel reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    /// `CLOCK_MONOTONIC_RAW`.
    at: Nanos,
    cpu: Cpu,
    is_online: bool,
}

/// Observes the states of all CPUs until it is ended.
#[derive(Debug)]
pub(crate) struct Hotplug {
    began: Nanos,
    thread: Option<JoinHandle<Vec<Change>>>,
    /// Closed when the measurement is over.
    over: Option<UnixStream>,
}

impl Hotplug {
    /// Starts to observe; without messages of the kernel, only the end is looked at.
    pub(crate) fn start() -> Self {
        let began = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        let (thread, over) = match listen() {
            Ok((thread, over)) => (Some(thread), Some(over)),
            Err(_) => (None, None),
        };
        Self { began, thread, over }
    }

    /// Ends it; returns the periods in which each of these CPUs was offline.
    pub(crate) fn end(mut self, cpus: &CpuSet) -> Vec<Offline> {
        let changes = self.join();
        let end = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        let online = online();
        let of = |cpu| offline(cpu, &changes, self.began, end, online.as_ref());
        cpus.iter().filter_map(of).collect()
    }

    fn join(&mut self) -> Vec<Change> {
        drop(self.over.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Hotplug {
    fn drop(&mut self) {
        self.join();
    }
}

fn online() -> Option<CpuSet> {
    Root::live().text(ONLINE).ok()?.parse().ok()
}

/// A CPU that was offline, with the periods since the start of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offline {
    cpu: Cpu,
    /// Beginning and end; no beginning: some time before, no end: still offline.
    periods: Vec<(Option<Nanos>, Option<Nanos>)>,
}

/// The periods in which a CPU was offline; `None` if it was not.
fn offline(
    cpu: Cpu,
    changes: &[Change],
    began: Nanos,
    end: Nanos,
    online: Option<&CpuSet>,
) -> Option<Offline> {
    let mut periods: Vec<(Option<Nanos>, Option<Nanos>)> = Vec::new();
    for change in changes.iter().filter(|change| change.cpu == cpu && change.at <= end) {
        let at = change.at.saturating_sub(began);
        match (periods.last_mut(), change.is_online) {
            (Some((_, until @ None)), true) => *until = Some(at),
            // A message was lost.
            (_, true) => periods.push((None, Some(at))),
            (Some((_, None)), false) => {}
            (_, false) => periods.push((Some(at), None)),
        }
    }
    let is_open = periods.last().is_some_and(|(_, until)| until.is_none());
    if !is_open && online.is_some_and(|online| !online.contains(cpu)) {
        periods.push((None, None));
    }
    (!periods.is_empty()).then_some(Offline { cpu, periods })
}

impl Offline {
    /// The CPU.
    pub(crate) fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// The doubt of a measurement.
    pub(crate) fn doubt(&self) -> Doubt {
        let periods: Vec<String> =
            self.periods.iter().map(|(from, until)| period(*from, *until)).collect();
        let text = format!(
            "CPU {}: it was offline {}: the kernel ran its threads on other CPUs then and, if they \
             were pinned, later, so that its numbers are incomplete or those of another CPU",
            self.cpu,
            periods.join(", and ")
        );
        Doubt::new(Code::Offline, text)
    }
}

fn period(from: Option<Nanos>, until: Option<Nanos>) -> String {
    let seconds = |at: Nanos| format!("{:.2} s", at.as_secs_f64());
    match (from, until) {
        (Some(from), Some(until)) => {
            let ms = until.saturating_sub(from).as_secs_f64() * 1e3;
            format!("for {ms:.0} ms, from {} to {}", seconds(from), seconds(until))
        }
        (Some(from), None) => format!("from {} to the end", seconds(from)),
        (None, Some(until)) => format!("until {}", seconds(until)),
        (None, None) => "at the end".to_owned(),
    }
}

/// Opens the socket, and starts the thread.
fn listen() -> io::Result<(JoinHandle<Vec<Change>>, UnixStream)> {
    let messages = uevents()?;
    let (over, is_over) = UnixStream::pair()?;
    let life = move || {
        let _ = isolate::drop_capabilities(Retain::Nothing);
        changes(&messages, &is_over)
    };
    let thread = Builder::new().name("hotplug".to_owned()).spawn(life)?;
    Ok((thread, over))
}

/// A socket that receives the kernel's messages about devices.
fn uevents() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let protocol = Some(netlink::KOBJECT_UEVENT);
    let socket = socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, protocol)?;
    bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
    Ok(socket)
}

/// The changes until the measurement is over.
fn changes(messages: &OwnedFd, is_over: &UnixStream) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut buffer = vec![0; MESSAGE_MAX];
    loop {
        let mut ends =
            [PollFd::new(messages, PollFlags::IN), PollFd::new(is_over, PollFlags::IN)];
        // A signal is as good as a wake-up.
        let _ = poll(&mut ends, None);
        let ended = !ends[1].revents().is_empty();
        let at = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        while let Some(message) = receive(messages, &mut buffer) {
            let change = change(message);
            changes.extend(change.map(|(cpu, is_online)| Change { at, cpu, is_online }));
        }
        if ended {
            return changes;
        }
    }
}

/// The next message of the kernel, if there is one now; those of processes are empty.
fn receive<'a>(messages: &OwnedFd, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let length = match recvfrom(messages, &mut *buffer, RecvFlags::empty()) {
        Ok((length, _, sender)) => {
            let sender = sender.and_then(|any| SocketAddrNetlink::try_from(any).ok());
            if sender.is_some_and(|sender| sender.pid() == 0) { length } else { 0 }
        }
        // Messages were lost; the state at the end is read.
        Err(Errno::NOBUFS | Errno::INTR) => 0,
        Err(_) => return None,
    };
    buffer.get(..length)
}

/// The CPU of a message, and whether it is online now; `None`: a message about something else.
fn change(message: &[u8]) -> Option<(Cpu, bool)> {
    let header = message.split(|&byte| byte == 0).next()?;
    let (action, device) = std::str::from_utf8(header).ok()?.split_once('@')?;
    let cpu = device.strip_prefix(CPU_DEVICE)?.parse().ok()?;
    match action {
        "online" => Some((cpu, true)),
        "offline" => Some((cpu, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64, cpu: u32, is_online: bool) -> Change {
        Change { at: Nanos::from_millis(ms), cpu: Cpu::new(cpu), is_online }
    }

    /// Check that only messages about the state of a CPU are understood.
    #[test]
    fn messages() {
        for (message, expected) in [
            (
                &b"offline@/devices/system/cpu/cpu1\0ACTION=offline\0"[..],
                Some((1, false)),
            ),
            (b"online@/devices/system/cpu/cpu15\0", Some((15, true))),
            (b"remove@/devices/virtual/cpuid/cpu1\0", None),
            (b"add@/devices/system/cpu/cpu1\0", None),
            (b"offline@/devices/system/memory/memory1\0", None),
            (b"offline@/devices/system/cpu/cpufreq\0", None),
            (b"libudev\0\xfe", None),
            (b"", None),
        ] {
            let expected = expected.map(|(cpu, is_online)| (Cpu::new(cpu), is_online));
            assert_eq!(change(message), expected, "{message:?}");
        }
    }

    /// Check the periods, with lost messages, and those that are still open at the end.
    #[test]
    fn periods_of_a_cpu() {
        let (began, end) = (Nanos::from_millis(1_000), Nanos::from_millis(9_000));
        let both: CpuSet = "0-1".parse().unwrap();
        let first: CpuSet = "0".parse().unwrap();
        let text = |changes: &[Change], online: &CpuSet| {
            let found = offline(Cpu::new(1), changes, began, end, Some(online))?;
            let each = found.periods.iter().map(|(from, until)| period(*from, *until));
            Some(each.collect::<Vec<_>>().join("; "))
        };
        let off = at(2_000, 1, false);
        let told = |text: &str| Some(text.to_owned());
        let on = at(3_039, 1, true);
        assert_eq!(text(&[], &both), None);
        assert_eq!(text(&[at(2_000, 0, false)], &both), None);
        assert_eq!(text(&[off, on], &both), told("for 1039 ms, from 1.00 s to 2.04 s"));
        assert_eq!(text(&[off], &first), told("from 1.00 s to the end"));
        assert_eq!(text(&[on], &both), told("until 2.04 s"));
        assert_eq!(text(&[], &first), told("at the end"));
        assert_eq!(
            text(&[off, on, at(4_000, 1, false)], &first),
            told("for 1039 ms, from 1.00 s to 2.04 s; from 3.00 s to the end")
        );
        // One that was taken offline after the end.
        assert_eq!(text(&[at(9_500, 1, false)], &both), None);
    }

    /// Check that it ends, and that an online CPU is not reported.
    #[test]
    fn nothing_happens() {
        let online = online().unwrap();
        let first: CpuSet = online.iter().take(1).collect();
        assert_eq!(Hotplug::start().end(&first), []);
    }
}
