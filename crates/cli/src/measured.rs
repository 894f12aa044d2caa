//! A recording with its summary, which everything that is done with it shares.

use std::cell::OnceCell;

use recording::{Doubt, Recording};
use summary::Summary;

use crate::outcome::Failure;

/// A recording and its summary. The summary is computed once, when it is first needed: that takes
/// as long as all that is then done with it.
pub(crate) struct Measured {
    recording: Recording,
    summary: OnceCell<Summary>,
}

impl Measured {
    /// A recording whose summary has not been needed so far.
    pub(crate) fn new(recording: Recording) -> Self {
        Self { recording, summary: OnceCell::new() }
    }

    /// The recording.
    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Its doubts, on which no summary depends.
    pub(crate) fn doubts_mut(&mut self) -> &mut [Doubt] {
        &mut self.recording.doubts
    }

    /// Its summary.
    pub(crate) fn summary(&self) -> &Summary {
        self.summary.get_or_init(|| Summary::of(&self.recording))
    }

    /// Its report.
    pub(crate) fn text(&self) -> String {
        ::report::text(&self.recording, self.summary())
    }

    /// The same as JSON, with the raw series if requested.
    pub(crate) fn json(&self, with_series: bool) -> Result<String, Failure> {
        let json = ::report::json(&self.recording, self.summary(), with_series);
        json.map_err(Failure::bug)
    }
}
