//! The tracefs source: the kernel's own trace events (since Linux 3.17, for the clock), in a
//! trace of our own, read as the pages of its ring buffer.
//!
//! For machines where BPF is locked out. Sees what the BPF programs see, and costs somewhat
//! more (`cargo bench -p blame`). Cannot see whose process a thread is if it is gone by the time it
//! is looked for, nor what NMIs take beside their handlers, unless the osnoise tracer
//! may be used ([`crate::tracefs::osnoise`]).

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

use rustix::fs::{Mode, OFlags, open};
use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::seen::Lane;
use crate::source::EventSource;
use crate::tracefs::events::{EVENTS, Vocabulary, WHOLE_NMI};
use crate::tracefs::instance::{Instance, refused};
use crate::tracefs::page::{Layout, Page};
use crate::tracefs::pairs::{Pairs, forget_spinners};
use crate::tracefs::threads::Threads;

/// The buffer of a watched CPU in KiB: a switch takes 68 bytes, so a second of 100,000 of
/// them fits, which is as long as real-time spinners may keep the reader from its CPU.
const BUFFER_KB: usize = 8 << 10;
/// All of them together; CPUs beyond 32 have less each.
const BUFFERS_KB: usize = 256 << 10;
/// Those of other CPUs, which are not watched, have a page or two.
const NO_BUFFER_KB: usize = 1;

/// One CPU's pages, and what goes on there.
struct Pipe {
    pages: File,
    pairs: Pairs,
    /// How many events its pages say were overwritten: not always all of them.
    missed: u64,
}

/// A trace that goes on.
pub(crate) struct Trace {
    // Before the instance, which cannot be removed while they are open.
    pipes: Vec<Pipe>,
    instance: Instance,
    layout: Layout,
    vocabulary: Vocabulary,
    threads: Threads,
    missing: Vec<&'static str>,
    /// So many pages are read of a CPU at a time: more than there are.
    most: usize,
    has_stopped: bool,
}

impl EventSource for Trace {
    fn read(&mut self, lanes: &mut [Lane]) {
        self.threads.look();
        let mut page = vec![0; self.layout.page_bytes()];
        for (place, lane) in lanes.iter_mut().enumerate() {
            self.drain(place, lane, &mut page);
            if self.has_stopped {
                self.end_nmi(place, lane);
                self.count_lost(place, lane);
                forget_spinners(lane, &self.threads);
            }
        }
    }

    fn stop(&mut self) -> Vec<String> {
        // What it would be refused for ends the trace as well.
        let _ = self.instance.write("tracing_on", "0");
        self.has_stopped = true;
        self.missing.iter().map(|name| (*name).to_owned()).collect()
    }
}

impl Trace {
    /// Begins a trace of these CPUs.
    ///
    /// # Errors
    /// There is no tracefs, or it may not be used; nothing is left of the trace.
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
        // What is lost is then the oldest, and pages say so.
        instance.write("options/overwrite", "1")?;
        let has_osnoise = osnoise::take(&mut instance, &tracefs, cpus);
        let layout = instance.read("events/header_page")?;
        let layout = Layout::parse(&layout).filter(|layout| layout.page_bytes() > 0);
        let layout = layout.ok_or_else(|| strange("events/header_page"))?;
        let pipes: Result<_, _> = cpus.iter().map(|cpu| pipe(&instance, cpu)).collect();
        let mut trace = Self {
            pipes: pipes?,
            instance,
            layout,
            vocabulary: Vocabulary::default(),
            threads: Threads::live(),
            missing: Vec::new(),
            most: 2 * (each << 10) / layout.page_bytes() + 2,
            has_stopped: false,
        };
        trace.enable(has_osnoise)?;
        trace.instance.write("tracing_on", "1")?;
        Ok(trace)
    }

    /// Has all events written that this kernel has.
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
            if !self.vocabulary.learn(*sort, fields, &self.instance.read(&file)?) {
                return Err(strange(&file));
            }
        }
        Ok(())
    }

    /// Reads what one CPU wrote since the last time.
    fn drain(&mut self, place: usize, lane: &mut Lane, page: &mut [u8]) {
        let Some(Pipe { pages, pairs, missed }) = self.pipes.get_mut(place) else {
            return;
        };
        for _ in 0..self.most {
            // Nothing more is there (`WouldBlock`), or will ever be.
            let Ok(1..) = pages.read(page) else { return };
            let Some(events) = Page::parse(self.layout, page) else { return };
            if let Some(events_before) = events.missed {
                *missed = missed.saturating_add(events_before);
                pairs.lose(events_before, events.begin(), lane);
            }
            for event in events {
                if let Some(told) = self.vocabulary.tell(event.bytes) {
                    pairs.take(event.time, told, lane, &mut self.threads);
                }
            }
        }
    }

    /// Hands on an NMI that was the last that was told.
    fn end_nmi(&mut self, place: usize, lane: &mut Lane) {
        if let Some(pipe) = self.pipes.get_mut(place) {
            pipe.pairs.end_nmi(lane);
        }
    }

    /// What the kernel counted and no page told: full pages have no room to say how many
    /// events are missing, and of those that found no room at all nobody knows when.
    fn count_lost(&self, place: usize, lane: &mut Lane) {
        let stats = format!("per_cpu/cpu{}/stats", lane.cpu);
        let stats = self.instance.read(&stats).unwrap_or_default();
        let count = |wanted: &str| {
            let mut lines = stats.lines().filter_map(|line| line.split_once(": "));
            let found = lines.find(|(name, _)| *name == wanted);
            found.and_then(|(_, count)| count.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        let told = self.pipes.get(place).map_or(0, |pipe| pipe.missed);
        lane.lose_more(count("overrun").saturating_sub(told));
        let anywhere = count("commit overrun").saturating_add(count("dropped events"));
        if anywhere > 0 {
            lane.lose(anywhere, 0, u64::MAX);
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

/// The CPUs as the kernel reads them: words of 32, the highest first.
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
    let text = format!("{file} in tracefs is not as it is in any known kernel");
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
