//! A recording with its summary, which everything that is done with it shares.

use std::cell::OnceCell;

use recording::{Doubt, Recording};
use report::Document;
use summary::Summary;

use crate::args::Output;
use crate::outcome::Failure;

/// A recording and its summary. The summary is computed once, when it is first needed: that takes
/// as long as all that is then done with it.
pub(crate) struct Measured {
    recording: Recording,
    summary: OnceCell<Summary>,
    page: OnceCell<Document>,
}

impl Measured {
    /// A recording whose summary has not been needed so far.
    pub(crate) fn new(recording: Recording) -> Self {
        Self { recording, summary: OnceCell::new(), page: OnceCell::new() }
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
    pub(crate) fn document(&self) -> Document {
        ::report::recording_document(&self.recording, self.summary())
    }

    /// Its report with all pictures, which several files can have.
    pub(crate) fn page(&self) -> &Document {
        self.page.get_or_init(|| {
            let (recording, summary) = (&self.recording, self.summary());
            self.document().add(::report::recording_pictures(recording, summary))
        })
    }

    /// Its report for standard output: with one picture if that is a terminal.
    pub(crate) fn screen(&self, output: Output) -> Document {
        let has_picture = output.view().has_pictures;
        let picture = || ::report::terminal_picture(&self.recording);
        self.document().add(has_picture.then(picture))
    }

    /// The same as JSON, with the raw series if requested.
    pub(crate) fn json(&self, with_series: bool) -> Result<String, Failure> {
        let json = ::report::json(&self.recording, self.summary(), with_series);
        json.map_err(Failure::bug)
    }
}
