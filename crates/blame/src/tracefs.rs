//! The tracefs source: the kernel's own trace events (since Linux 3.17, for the clock), in a
//! separate trace instance, read as the pages of its ring buffer.
//!
//! For machines without eBPF. Records what the BPF programs record, at a higher cost (`cargo bench
//! -p blame`). Cannot see the process of a thread that ends before it is looked up, nor the time of
//! NMIs outside of their handlers, unless the osnoise tracer can be used
//! ([`crate::tracefs::osnoise`]).

pub(crate) mod events;
pub(crate) mod format;
pub(crate) mod instance;
pub(crate) mod leftovers;
pub(crate) mod osnoise;
pub(crate) mod page;
pub(crate) mod pairs;
pub(crate) mod threads;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::records::Lane;
use crate::source::EventSource;
use crate::tracefs::events::{EVENTS, EventFormats, WHOLE_NMI};
use crate::tracefs::instance::{Instance, refused};
use crate::tracefs::page::{Layout, Page};
use crate::tracefs::pairs::{Pairs, forget_spinners};
use crate::tracefs::threads::Threads;

/// The buffer of a traced CPU in KiB: a switch takes 68 bytes, so it holds a second of 100,000 of
/// them, the longest time that real-time spinners keep the reader from its CPU.
const BUFFER_KB: usize = 8 << 10;
/// The buffers of all CPUs; with more than 32 each has less.
const BUFFERS_KB: usize = 256 << 10;
/// The buffers of CPUs that are not traced: a page or two.
const NO_BUFFER_KB: usize = 1;

/// The interval in which the buffers are read without an alarm.
const PERIOD: Duration = Duration::from_millis(50);
/// With one, the first interval in which spinners are looked for, and the longest: each is twice the
/// one before.
const FIRST_PERIOD: Duration = Duration::from_millis(250);
const LONGEST_PERIOD: Duration = Duration::from_secs(8);
/// The interval between slices after an alarm, and the pages of one: to read all at once would
/// interrupt the CPU of the reader for as long.
const PERIOD_OF_SLICES: Duration = Duration::from_millis(20);
const SLICE: usize = 4;
/// How full a buffer is at the alarm: its file is readable then, since Linux 6.1. Before, it was
/// readable with the first event.
const PERCENT: usize = 25;

/// The pages of one CPU, and its current state.
struct Pipe {
    pages: File,
    pairs: Pairs,
    /// The number of overwritten events according to its pages, which may be incomplete.
    missed: u64,
}

/// An active trace.
pub(crate) struct Trace {
    // Dropped before the instance, which cannot be removed while they are open.
    pipes: Vec<Pipe>,
    instance: Instance,
    layout: Layout,
    formats: EventFormats,
    threads: Threads,
    missing: Vec<&'static str>,
    /// The pages of a CPU's buffer.
    pages: usize,
    /// Whether files are readable at the alarm only, as far as is known.
    has_alarm: bool,
    /// Whether the buffers are being read slice by slice, after an alarm.
    is_draining: bool,
    period: Duration,
    has_stopped: bool,
}

impl EventSource for Trace {
    fn read(&mut self, lanes: &mut [Lane]) {
        self.threads.look();
        let is_alarm = self.has_alarm && !self.has_stopped && self.is_alarm();
        // If a slice did not end the alarm, more is written than slices hold.
        let is_whole =
            !self.has_alarm || self.has_stopped || self.is_draining && is_alarm;
        if !is_whole && !self.is_draining && !is_alarm {
            self.period = (self.period * 2).min(LONGEST_PERIOD);
            return;
        }
        // At most more pages than a buffer has.
        let pages = if is_whole { 2 * self.pages + 2 } else { SLICE };
        let mut page = vec![0; self.layout.page_bytes()];
        let mut most = 0;
        for (place, lane) in lanes.iter_mut().enumerate() {
            most = most.max(self.drain(place, lane, &mut page, pages));
            if self.has_stopped {
                self.end_nmi(place, lane);
                self.count_lost(place, lane);
                forget_spinners(lane, &self.threads);
            }
        }
        self.is_draining = most == pages;
        self.has_alarm &= !is_whole || most * 100 >= self.pages * PERCENT / 2;
    }

    fn alarms(&self) -> Vec<BorrowedFd<'_>> {
        let pipes = self.pipes.iter().filter(|_| self.has_alarm && !self.is_draining);
        pipes.map(|pipe| pipe.pages.as_fd()).collect()
    }

    fn period(&self) -> Duration {
        match (self.has_alarm, self.is_draining) {
            (false, _) => PERIOD,
            (true, true) => PERIOD_OF_SLICES,
            (true, false) => self.period,
        }
    }

    fn stop(&mut self) {
        // If the write fails, closing the instance ends the trace as well.
        let _ = self.instance.write("tracing_on", "0");
        self.has_stopped = true;
    }

    fn missing(&self) -> Vec<String> {
        self.missing.iter().map(|name| (*name).to_owned()).collect()
    }
}

impl Trace {
    /// Starts a trace of these CPUs.
    ///
    /// # Errors
    /// Without tracefs, or the privilege to use it; the trace is removed.
    pub(crate) fn begin(cpus: &CpuSet) -> Result<Self, Error> {
        let tracefs = instance::tracefs()?;
        let mut instance = Instance::make(&tracefs)?;
        let each = (BUFFERS_KB / cpus.len().max(1)).clamp(64, BUFFER_KB);
        instance.write("tracing_on", "0")?;
        instance.write("buffer_size_kb", &NO_BUFFER_KB.to_string())?;
        for cpu in cpus.iter() {
            let file = format!("per_cpu/cpu{cpu}/buffer_size_kb");
            instance.write(&file, &each.to_string())?;
        }
        instance.write("trace_clock", "mono")?;
        instance.write("tracing_cpumask", &mask(cpus))?;
        // The oldest events are then lost, which pages report.
        instance.write("options/overwrite", "1")?;
        // Since Linux 5.0.
        let has_alarm = instance.write("buffer_percent", &PERCENT.to_string()).is_ok();
        let has_osnoise = osnoise::take(&mut instance, &tracefs, cpus);
        let layout = instance.read("events/header_page")?;
        let layout = Layout::parse(&layout).filter(|layout| layout.page_bytes() > 0);
        let layout = layout.ok_or_else(|| strange("events/header_page"))?;
        let pipes: Result<_, _> = cpus.iter().map(|cpu| pipe(&instance, cpu)).collect();
        let mut trace = Self {
            pipes: pipes?,
            instance,
            layout,
            formats: EventFormats::default(),
            threads: Threads::live(),
            missing: Vec::new(),
            pages: (each << 10) / layout.page_bytes(),
            has_alarm,
            is_draining: false,
            period: FIRST_PERIOD / 2,
            has_stopped: false,
        };
        trace.enable(has_osnoise)?;
        trace.instance.write("tracing_on", "1")?;
        Ok(trace)
    }

    /// Enables all events that this kernel has.
    fn enable(&mut self, has_osnoise: bool) -> Result<(), Error> {
        let foreign = if cfg!(target_arch = "x86_64") { "ipi" } else { "irq_vectors" };
        let whole = has_osnoise.then_some(&WHOLE_NMI);
        for (system, name, sort, fields) in EVENTS.iter().chain(whole) {
            if *system == foreign {
                continue;
            }
            if !self.instance.enable(system, name)? {
                self.missing.push(name);
                continue;
            }
            let file = format!("events/{system}/{name}/format");
            if !self.formats.add(*sort, fields, &self.instance.read(&file)?) {
                return Err(strange(&file));
            }
        }
        Ok(())
    }

    /// Whether a buffer is so full.
    fn is_alarm(&self) -> bool {
        let fds = self.pipes.iter().map(|pipe| PollFd::new(&pipe.pages, PollFlags::IN));
        let mut fds: Vec<PollFd<'_>> = fds.collect();
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))
            .is_ok_and(|ready| ready > 0)
    }

    /// Reads up to that many pages of events that one CPU wrote since the last time; returns how
    /// many there were.
    fn drain(
        &mut self,
        place: usize,
        lane: &mut Lane,
        page: &mut [u8],
        most: usize,
    ) -> usize {
        let Some(Pipe { pages, pairs, missed }) = self.pipes.get_mut(place) else {
            return 0;
        };
        for count in 0..most {
            // No more data (`WouldBlock`), or an error that lasts.
            let Ok(1..) = pages.read(page) else { return count };
            let Some(events) = Page::parse(self.layout, page) else { return count };
            if let Some(events_before) = events.missed {
                *missed = missed.saturating_add(events_before);
                pairs.add_loss(events_before, events.begin(), lane);
            }
            for event in events {
                if let Some(decoded) = self.formats.decode(event.bytes) {
                    pairs.take(event.time, decoded, lane, &mut self.threads);
                }
            }
        }
        most
    }

    /// Stores an NMI that was the last event.
    fn end_nmi(&mut self, place: usize, lane: &mut Lane) {
        if let Some(pipe) = self.pipes.get_mut(place) {
            pipe.pairs.end_nmi(lane);
        }
    }

    /// Counts losses that no page reported: full pages have no space for the number of missing
    /// events, and events that were dropped entirely have no time.
    fn count_lost(&self, place: usize, lane: &mut Lane) {
        let stats = format!("per_cpu/cpu{}/stats", lane.cpu);
        let stats = self.instance.read(&stats).unwrap_or_default();
        let count = |wanted: &str| {
            let mut lines = stats.lines().filter_map(|line| line.split_once(": "));
            let found = lines.find(|(name, _)| *name == wanted);
            found.and_then(|(_, count)| count.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let reported = self.pipes.get(place).map_or(0, |pipe| pipe.missed);
        lane.add_lost_events(count("overrun").saturating_sub(reported));
        let anywhere = count("commit overrun").saturating_add(count("dropped events"));
        if anywhere > 0 {
            lane.add_loss(anywhere, 0, u64::MAX);
        }
    }
}

fn pipe(instance: &Instance, cpu: Cpu) -> Result<Pipe, Error> {
    let file = instance.folder().join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let pages = open(&file, flags, Mode::empty());
    let pages = pages.map_err(|error| refused(&file, error.into()))?;
    Ok(Pipe { pages: pages.into(), pairs: Pairs::default(), missed: 0 })
}

/// The CPUs in the kernel's format: words of 32, the highest first.
fn mask(cpus: &CpuSet) -> String {
    let highest = cpus.iter().last().map_or(0, Cpu::index);
    let mut words = vec![0_u32; highest / 32 + 1];
    for cpu in cpus.iter() {
        words[cpu.index() / 32] |= 1 << (cpu.index() % 32);
    }
    let words: Vec<String> =
        words.iter().rev().map(|word| format!("{word:08x}")).collect();
    words.join(",")
}

fn strange(file: &str) -> Error {
    let text = format!("{file} in tracefs has an unknown format");
    Error::new(Kind::Missing, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check masks of more than one word.
    #[test]
    fn masks() {
        let mask_of = |list: &str| mask(&list.parse().unwrap());
        assert_eq!(mask_of("0-1"), "00000003");
        assert_eq!(mask_of("31,32,65"), "00000002,00000001,80000000");
    }
}
