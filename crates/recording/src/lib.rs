//! One measurement: facts, parameters (spec), measured values (series), doubts.
//!
//! Every measurement ends in a [`Recording`], and every report starts from one. It can be
//! understood alone, on another machine, years later; `docs/format.md` describes its file.
//! Nothing here computes statistics.
#![forbid(unsafe_code)]

mod blame;
mod cell;
mod counts;
mod doubt;
mod error;
mod file;
mod hardware;
mod has_values;
mod input;
mod kinds;
mod moment;
mod moments_found;
mod output;
mod phases;
mod profile;
mod repeat;
mod tuple;
mod waiting;
mod words;

pub use blame::{
    Blamed, Culprit, CulpritKind, Event, Firmware, Share, Source, Steal, StealClock,
    Thread, ThreadOwner, source_name,
};
pub use cell::{
    Answer, BackgroundLoad, Cell, Ending, GuestSetting, HostUse, MadeWith, MadeWithArm64,
    Mode, Variation,
};
pub use counts::{
    Counts, CpuCounts, GroupCounts, Interruption, Level, PhaseCounts, Values,
};
pub use doubt::{Code, Doubt};
pub use error::{Error, Kind};
pub use file::FORMAT;
pub use hardware::{CpuHardware, Frequency, HardwareCounts, Throttled};
pub use input::{Input, SIZE_MAX, read_text};
pub use kinds::*;
pub use moment::{
    CpuTrace, Moment, MomentCause, MomentEvent, MomentKind, Moments, Trigger,
};
pub use moments_found::FoundMoment;
pub use output::{Folder, check_writable, database_path, write_file, write_new_file};
pub use phases::Phases;
pub use profile::{
    Called, Context, Episode, FunctionOwn, PhaseCalls, Profile, Stack, What,
};
pub use repeat::{Duet, DuetProgram, Repeat};
pub use waiting::{FileWait, on_file_wait};
pub use words::Words;

use facts::Facts;

/// A measurement with everything that is needed to understand it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// When it was taken: RFC 3339, UTC.
    pub taken: String,
    /// The name and version of the recording program: `noisefloor 0.1.0`.
    pub tool: String,
    /// The facts about the kernel and the machine.
    pub facts: Facts,
    /// Parameters and measured values.
    pub body: Body,
    /// Reasons not to trust a number.
    pub doubts: Vec<Doubt>,
    /// Values above the limit of its parameters, with what happened then.
    pub moments: Moments,
    /// What the processor and its firmware counted; `None` if that was not read.
    pub hardware: Option<HardwareCounts>,
    /// Its place in a set of repeated runs; `None`: a single run.
    pub repeat: Option<Repeat>,
}

impl Recording {
    /// The name and version of this program in recordings.
    pub const TOOL: &'static str = concat!("noisefloor ", env!("CARGO_PKG_VERSION"));

    /// A recording that is taken now, by this version. One without a measured value has a doubt.
    pub fn now(facts: Facts, body: Body, mut doubts: Vec<Doubt>) -> Self {
        let (taken, tool) = (Self::moment(), Self::TOOL.to_owned());
        doubts.extend(body.nothing_measured(&doubts));
        let moments = Moments::default();
        let hardware = None;
        Self { taken, tool, facts, body, doubts, moments, hardware, repeat: None }
    }

    /// When it was taken, in seconds since 1970; `None` if that is not RFC 3339.
    pub fn taken_seconds(&self) -> Option<i64> {
        self.taken.parse().ok().map(jiff::Timestamp::as_second)
    }

    /// The current time as in recordings: RFC 3339, UTC, whole seconds.
    pub fn moment() -> String {
        jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}
