//! A terminal in raw mode on its alternate screen, which is restored after any end of the process but
//! SIGKILL: signals end the measurement, and a panic or a forced end restores it first.

use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::raise;

/// Whether the terminal is in raw mode.
static IS_ENTERED: AtomicBool = AtomicBool::new(false);

/// The terminal. Its own end is not used: it panics if the terminal is gone.
pub(crate) type LiveTerminal = ManuallyDrop<DefaultTerminal>;

/// Enters raw mode and the alternate screen. A panic leaves them from now on.
pub(crate) fn enter() -> io::Result<LiveTerminal> {
    IS_ENTERED.store(true, Ordering::SeqCst);
    let begun = ratatui::try_init().map(ManuallyDrop::new).and_then(|mut terminal| {
        terminal.clear()?;
        Ok(terminal)
    });
    begun.inspect_err(|_| leave())
}

/// Restores the terminal, if it is in raw mode.
pub(crate) fn leave() {
    if IS_ENTERED.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs nothing.
        let _ = ratatui::try_restore();
        let _ = execute!(io::stdout(), Show);
    }
}

/// Stops this process as Ctrl-Z does, with the terminal restored, until it is continued.
pub(crate) fn suspend() -> io::Result<LiveTerminal> {
    leave();
    // To this thread: another one would receive the process's signal after this one has continued.
    raise(SIGTSTP)?;
    enter()
}
