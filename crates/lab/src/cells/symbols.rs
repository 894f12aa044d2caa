//! The names of a kernel's functions, to which the counter attributes instructions.
//!
//! They are read in a boot of their own, once per kernel, and stored for all its cells
//! (`symbols/SHA256` in the cache, compressed). A lock prevents two workers from reading the
//! symbols of one kernel at the same time.

use std::fs;
use std::path::Path;

use agent::{Answer, Symbols, Task};
use recording::Ending;

use crate::cells::cell::Ready;
use crate::cells::lab::Lab;
use crate::cells::run::{Notify, Run, Step};
use crate::error::{Error, failed};
use crate::guest::boot::Ended;
use crate::guest::command_line::{ANSWER, Engine};
use crate::guest::request::Request;

/// The names of a kernel's functions, or why there are none.
pub(crate) enum SymbolNames {
    Text(String),
    Lost(Ending),
    Stopped,
}

impl Lab {
    /// The names of a kernel's functions, if the cell is counted: from the cache, or read in a
    /// boot of the kernel.
    pub(crate) fn symbols(
        &self,
        cell: &Ready,
        run: &Run<'_>,
        notify: Notify<'_>,
    ) -> Result<SymbolNames, Error> {
        if !cell.counts {
            return Ok(SymbolNames::Text(String::new()));
        }
        let kernel = &cell.kernel;
        // If this waits, it is for a boot that has been reported.
        let Some(_lock) = self.cell_cache.lock(&kernel.sha256, run.stop, &|| {})? else {
            return Ok(SymbolNames::Stopped);
        };
        let file = self.cache.folder("symbols")?.join(&kernel.sha256);
        if let Ok(deflated) = fs::read(&file) {
            let text = Symbols::from_deflated(deflated).text();
            return Ok(SymbolNames::Text(text.map_err(failed(&file))?));
        }
        notify(Step::ReadsSymbols(kernel.release.clone()));
        self.read_symbols(cell, run, &file)
    }

    /// Boots a cell's kernel to read its symbols, and stores them in that file.
    fn read_symbols(
        &self,
        cell: &Ready,
        run: &Run<'_>,
        file: &Path,
    ) -> Result<SymbolNames, Error> {
        let kernel = &cell.kernel;
        let request = Request::new(Task::Symbols);
        let ready = Ready::new(request, None, kernel, Engine::Counted, self)?.uncounted();
        let place = self.cache.workplace()?;
        let lost = |why: String| {
            let why = format!("in the boot that reads the kernel's symbols: {why}");
            self.lost(&cell.key(), place.path(), why).map(SymbolNames::Lost)
        };
        match ready.boot(place.path(), "", self, run)? {
            Ended::Off(_) => {}
            Ended::Lost(why) => return lost(why),
            Ended::Stopped => return Ok(SymbolNames::Stopped),
        }
        let failed = failed(file);
        let bytes = fs::read(place.path().join(ANSWER)).map_err(failed)?;
        let Ok(Answer::Symbols(symbols)) = Answer::from_bytes(&bytes) else {
            return lost("it sent no symbols".to_owned());
        };
        let part = place.path().join("symbols.deflated");
        fs::write(&part, symbols.deflated())
            .and_then(|()| fs::rename(&part, file))
            .map_err(failed)?;
        Ok(SymbolNames::Text(symbols.text().map_err(failed)?))
    }
}
