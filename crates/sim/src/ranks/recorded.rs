//! The noise of recordings: gaps with the sources that they are attributed to.
//!
//! Recordings of `noise` and `check` have the moments of their gaps, and their causes if events were traced.
//! Files of other tools have only the lengths of gaps and the time in which they were counted: these gaps
//! begin at random moments. The time of the measuring process's own threads is left out: it is a cost of the
//! measurement. A recording is reduced to what is used here, so that several large ones fit into memory.

use std::collections::BTreeMap;

use facts::Facts;
use recording::{
    Bin, Body, Code, CpuNoise, Culprit, CulpritKind, Doubt, ImportedLengths, LengthKind,
    Recording, ScaleInput, ScaleSource, source_name,
};
use units::{Nanos, Span, printable};

use super::assigned::Machine;
use super::error::Error;
use super::random;
use super::trace::Trace;

/// The most gaps of all recordings: about 2 GB.
const GAPS_MAX: usize = 50_000_000;
/// The seed of the moments of gaps without one.
const MOMENTS: u64 = 0x6e6f_6973_6566;

/// The noise of several recordings.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The facts of the first one, and when it was taken.
    pub(super) first: Option<(Facts, String)>,
    pub(super) inputs: Vec<ScaleInput>,
    pub(super) doubts: Vec<Doubt>,
    machines: Vec<Vec<CpuGaps>>,
    sources: BTreeMap<(CulpritKind, String), usize>,
    noise: Vec<Nanos>,
    gaps: usize,
}

/// The gaps of one CPU.
#[derive(Debug, Default)]
struct CpuGaps {
    window: Nanos,
    gaps: Vec<Span>,
    /// The number of a gap, that of its source, and the source's part.
    shares: Vec<(u32, u32, Nanos)>,
}

impl Recorded {
    /// Adds the noise of a recording, which is called so.
    ///
    /// # Errors
    /// It has no gaps because of its kind, nothing was measured, all of its time was lost, or there are too
    /// many gaps.
    pub fn add(&mut self, name: &str, recording: &Recording) -> Result<(), Error> {
        let refuse = |why: String| Error::Input { name: name.to_owned(), why };
        let cpus = match (&recording.body, recording.body.noise()) {
            (_, Some(series)) => {
                series.cpus.iter().map(|cpu| self.measured(cpu)).collect()
            }
            (Body::Imported { series, .. }, None) => imported(&series.lengths),
            (other, None) => {
                let text = "is a recording of '{}', which has no gaps; needed are recordings of noise or check";
                return Err(refuse(text.replace("{}", other.kind())));
            }
        };
        let cpus: Vec<CpuGaps> =
            cpus.into_iter().filter(|cpu: &CpuGaps| !cpu.window.is_zero()).collect();
        if cpus.is_empty() {
            let text = match recording.body.noise() {
                Some(_) => "has no measured time",
                None => "has no gaps with the time in which they were counted",
            };
            return Err(refuse(text.to_owned()));
        }
        if cpus.iter().any(|cpu| cpu.without(&[]).is_none()) {
            return Err(refuse("has a CPU that lost all of its time".to_owned()));
        }
        self.gaps += cpus.iter().map(|cpu| cpu.gaps.len()).sum::<usize>();
        if self.gaps > GAPS_MAX {
            let text = format!("is one too many: more than {GAPS_MAX} gaps");
            return Err(refuse(text));
        }
        self.describe(name, recording, &cpus);
        self.machines.push(cpus);
        Ok(())
    }

    /// The number of CPUs of the recording that has fewest.
    pub fn cpus(&self) -> usize {
        self.machines.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// The sources that took most time, without unknown ones of which nothing is said.
    pub(super) fn sources(&self, most: usize) -> Vec<ScaleSource> {
        let all = self.sources.iter().map(|((kind, name), number)| ScaleSource {
            kind: *kind,
            name: name.clone(),
            noise_ns: self.noise.get(*number).copied().unwrap_or_default(),
        });
        let mut all: Vec<ScaleSource> =
            all.filter(|one| !one.noise_ns.is_zero()).collect();
        all.sort_by_key(|source| std::cmp::Reverse(source.noise_ns));
        all.truncate(most);
        all
    }

    /// The sources with these names, those with most time first: `daemon` or, as in reports, `thread daemon`.
    ///
    /// # Errors
    /// The recordings have no source with one of the names.
    pub fn named(&self, names: &[String]) -> Result<Vec<ScaleSource>, Error> {
        let mut all = self.sources(usize::MAX);
        let is = |source: &ScaleSource, name: &String| {
            *name == source.name || *name == full_name(source)
        };
        let is_unknown = |name: &&String| !all.iter().any(|source| is(source, name));
        if let Some(unknown) = names.iter().find(is_unknown) {
            let known: Vec<String> = all.iter().map(full_name).collect();
            let known = match known.is_empty() {
                true => "the recordings have none".to_owned(),
                false => format!("expected one of: {}", known.join(", ")),
            };
            let text = format!("unknown source of noise '{unknown}': {known}");
            return Err(Error::Spec(printable(&text).into_owned()));
        }
        all.retain(|source| names.iter().any(|name| is(source, name)));
        Ok(all)
    }

    /// The traces of all CPUs, without these sources.
    pub(super) fn without(&self, sources: &[ScaleSource]) -> Vec<Machine> {
        let numbers = self.numbers(sources);
        self.traces(|cpu| cpu.without(&numbers))
    }

    /// The traces of all CPUs, with nothing but these sources.
    pub(super) fn only(&self, sources: &[ScaleSource]) -> Vec<Machine> {
        let numbers = self.numbers(sources);
        self.traces(|cpu| cpu.only(&numbers))
    }

    fn traces(&self, of: impl Fn(&CpuGaps) -> Option<Trace>) -> Vec<Machine> {
        self.machines.iter().map(|cpus| cpus.iter().filter_map(&of).collect()).collect()
    }

    fn numbers(&self, sources: &[ScaleSource]) -> Vec<u32> {
        let number = |one: &ScaleSource| {
            let number = self.sources.get(&(one.kind, one.name.clone()))?;
            u32::try_from(*number).ok()
        };
        sources.iter().filter_map(number).collect()
    }

    /// The shortest window of a recording.
    pub(super) fn shortest(&self) -> Nanos {
        let windows = self.machines.iter().flatten().map(|cpu| cpu.window);
        windows.min().unwrap_or_default()
    }

    /// The time of all CPUs.
    pub(super) fn time(&self) -> Nanos {
        self.machines.iter().flatten().map(|cpu| cpu.window).sum()
    }

    /// The window and the gaps of each CPU.
    pub(super) fn windows(&self) -> impl Iterator<Item = (Nanos, &[Span])> {
        self.machines.iter().flatten().map(|cpu| (cpu.window, cpu.gaps.as_slice()))
    }

    /// The gaps of a CPU, each with the parts of its sources.
    fn measured(&mut self, cpu: &CpuNoise) -> CpuGaps {
        let window = cpu.window();
        let (mut gaps, kept) = in_phases(cpu, window);
        let Some(blamed) = &cpu.blamed else {
            return CpuGaps { window, gaps, shares: Vec::new() };
        };
        let sources: Vec<u32> =
            blamed.culprits.iter().map(|culprit| self.source(culprit)).collect();
        let mut shares = Vec::new();
        for share in &blamed.shares {
            let place = kept.get(share.gap).copied().flatten();
            let (Some(place), Some(source)) = (place, sources.get(share.culprit)) else {
                continue;
            };
            let Some(gap) = gaps.get_mut(place as usize) else { continue };
            if blamed.culprits[share.culprit].is_own() {
                gap.length = gap.length.saturating_sub(share.ns);
                continue;
            }
            if let Some(noise) = self.noise.get_mut(*source as usize) {
                *noise = *noise + share.ns;
            }
            shares.push((place, *source, share.ns));
        }
        CpuGaps { window, gaps, shares }
    }

    /// The number of a culprit's source.
    fn source(&mut self, culprit: &Culprit) -> u32 {
        let name = source_name(&culprit.name, culprit.thread.as_ref());
        let next = self.noise.len();
        let number = *self.sources.entry((culprit.kind, name.to_owned())).or_insert(next);
        if number == next {
            self.noise.push(Nanos::ZERO);
        }
        // There are fewer names than that.
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn describe(&mut self, name: &str, recording: &Recording, cpus: &[CpuGaps]) {
        let facts = &recording.facts;
        if self.first.is_none() {
            self.first = Some((facts.clone(), recording.taken.clone()));
        }
        let gaps = || cpus.iter().flat_map(|cpu| &cpu.gaps).map(|gap| gap.length);
        let gaps = || gaps().filter(|length| !length.is_zero());
        self.inputs.push(ScaleInput {
            name: name.to_owned(),
            kind: recording.body.kind().to_owned(),
            release: facts.kernel.release.get().cloned(),
            taken: recording.taken.clone(),
            cpus: cpus.len() as u64,
            window_ns: cpus.iter().map(|cpu| cpu.window).sum(),
            gaps: gaps().count() as u64,
            noise_ns: gaps().sum(),
            longest_ns: gaps().max(),
        });
        let grave = recording.doubts.iter().filter(|doubt| doubt.is_grave());
        let grave = grave.map(|doubt| Doubt::new(doubt.code, format!("{name}: {doubt}")));
        self.doubts.extend(grave);
        let is_random = recording.body.noise().is_none();
        if is_random {
            let text = format!(
                "{name}: the moments of gaps are not known, and were drawn at random"
            );
            self.doubts.push(Doubt::new(Code::Imprecise, text));
        } else if cpus.iter().all(|cpu| cpu.shares.is_empty() && !cpu.gaps.is_empty()) {
            let text =
                format!("{name}: events were not traced, so that gaps have no sources");
            self.doubts.push(Doubt::new(Code::Untraced, text));
        }
    }
}

impl CpuGaps {
    /// The trace without these sources; `None` if no time is left.
    fn without(&self, sources: &[u32]) -> Option<Trace> {
        let gaps = self.gaps.iter().zip(self.of(sources));
        let rest = |(gap, of): (&Span, Nanos)| Span {
            length: gap.length.saturating_sub(of),
            ..*gap
        };
        Trace::new(self.window, gaps.map(rest))
    }

    /// The trace with nothing but these sources; `None` if no time is left.
    fn only(&self, sources: &[u32]) -> Option<Trace> {
        let gaps = self.gaps.iter().zip(self.of(sources));
        let part =
            |(gap, of): (&Span, Nanos)| Span { length: of.min(gap.length), ..*gap };
        Trace::new(self.window, gaps.map(part))
    }

    /// The time of these sources in each gap.
    fn of(&self, sources: &[u32]) -> Vec<Nanos> {
        let mut all = vec![Nanos::ZERO; self.gaps.len()];
        for (gap, _, ns) in self.shares.iter().filter(|share| sources.contains(&share.1))
        {
            if let Some(of) = all.get_mut(*gap as usize) {
                *of = of.saturating_add(*ns);
            }
        }
        all
    }
}

/// A source's name after the word for its kind.
fn full_name(source: &ScaleSource) -> String {
    match source.kind.word() {
        "" => source.name.clone(),
        word => format!("{word} {}", source.name),
    }
}

/// The gaps of a window, and the place of each recorded gap among them. The pauses between phases are left
/// out.
fn in_phases(cpu: &CpuNoise, window: Nanos) -> (Vec<Span>, Vec<Option<u32>>) {
    let (mut gaps, mut places) = (Vec::new(), Vec::with_capacity(cpu.gaps.len()));
    let ran = cpu.ran();
    let (mut phases, mut before) = (ran.iter().peekable(), Nanos::ZERO);
    for gap in &cpu.gaps {
        while let Some(phase) = phases.next_if(|phase| phase.end() <= gap.start) {
            before = before + phase.length;
        }
        let phase = phases.peek().filter(|phase| phase.start <= gap.start);
        let start = phase.map(|phase| before + gap.start.saturating_sub(phase.start));
        let start = start.filter(|start| *start < window);
        places.push(start.and_then(|_| u32::try_from(gaps.len()).ok()));
        gaps.extend(start.map(|start| Span { start, ..*gap }));
    }
    (gaps, places)
}

/// Gaps of other tools.
fn imported(lengths: &[ImportedLengths]) -> Vec<CpuGaps> {
    let gaps = lengths.iter().filter(|lengths| lengths.kind == LengthKind::Gap);
    gaps.zip(0..).filter_map(|(lengths, number)| drawn(lengths, number)).collect()
}

/// Gaps of these lengths at random moments that are not in another gap; `None` if their time is not known, or
/// if there are too many.
fn drawn(lengths: &ImportedLengths, number: u64) -> Option<CpuGaps> {
    let bins =
        lengths.bins.iter().chain(lengths.intervals.iter().flat_map(|one| &one.bins));
    let bins: Vec<Bin> = bins.copied().collect();
    let window = lengths.elapsed_ns?;
    let count =
        usize::try_from(Bin::total(&bins)).ok().filter(|count| *count <= GAPS_MAX)?;
    let middle = |bin: &Bin| {
        let half = bin.until_ns.saturating_sub(bin.from_ns).get() / 2;
        bin.from_ns + Nanos::from_nanos(half)
    };
    let each = bins.iter().flat_map(|bin| (0..bin.count).map(|_| middle(bin)));
    // The longest one is known better than by its bin.
    let mut each: Vec<Nanos> = each.collect();
    if let (Some(last), Some(max)) = (each.last_mut(), lengths.max_ns) {
        *last = max;
    }
    let free = window.saturating_sub(each.iter().copied().sum());
    let mut moments: Vec<(u64, Nanos)> = Vec::with_capacity(count);
    for (length, place) in each.into_iter().zip(0..) {
        let random = random::at(MOMENTS.wrapping_add(number), place);
        moments.push((random::below(random, free.get()), length));
    }
    moments.sort_unstable();
    let mut before = Nanos::ZERO;
    let span = |(moment, length): (u64, Nanos)| {
        let start = Nanos::from_nanos(moment) + before;
        before = before + length;
        Span { start, length }
    };
    Some(CpuGaps {
        window,
        gaps: moments.into_iter().map(span).collect(),
        shares: Vec::new(),
    })
}
