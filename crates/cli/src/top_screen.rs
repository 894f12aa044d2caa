//! The live view of `top` on a terminal: a thread reads keys, and the measuring thread brings intervals.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use measure::Stop;
use ratatui::Frame;
use ratatui::crossterm::event::{
    self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers,
};
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table, TableState};
use recording::TopSample;
use report::{LiveScreen, LiveTable, TopKey, TopView};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::live_terminal::{self, LiveTerminal};
use crate::outcome::Failure;
use crate::printing::for_terminal;

/// How often the end is noticed that is not a key.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
/// The widest column of names.
const NAME_MAX: usize = 30;

/// The view, and the thread that reads keys.
pub(crate) struct TopScreen {
    shown: Arc<Mutex<Shown>>,
    has_ended: Arc<AtomicBool>,
}

/// What both threads use.
struct Shown {
    terminal: LiveTerminal,
    view: TopView,
    states: States,
    failed: Option<io::Error>,
    stop: Stop,
}

/// The first row of each table that is visible.
#[derive(Debug, Default)]
struct States {
    cpus: usize,
    sources: usize,
}

impl TopScreen {
    /// Shows an empty view. A key that leaves it makes the request to stop.
    pub(crate) fn open(machine: &str, stop: Stop) -> Result<Self, Failure> {
        let terminal = live_terminal::enter().map_err(refused)?;
        let (view, states) = (TopView::new(machine), States::default());
        let mut shown = Shown { terminal, view, states, failed: None, stop };
        shown.draw();
        let shown = Arc::new(Mutex::new(shown));
        let has_ended = Arc::new(AtomicBool::new(false));
        let (of_keys, end) = (Arc::clone(&shown), Arc::clone(&has_ended));
        let thread = Builder::new().name("keys".to_owned());
        let keys = thread.spawn(move || read_keys(&of_keys, &end));
        keys.inspect_err(|_| live_terminal::leave()).map_err(Failure::refused)?;
        Ok(Self { shown, has_ended })
    }

    /// Shows an interval.
    pub(crate) fn update(&self, sample: &TopSample) {
        let mut shown = locked(&self.shown);
        shown.view.update(sample);
        shown.draw();
    }

    /// Leaves the view. The thread that reads keys ends later, or never if the terminal is gone in the
    /// moment in which it reads.
    ///
    /// # Errors
    /// The terminal could not be used.
    pub(crate) fn close(self) -> Result<(), Failure> {
        self.has_ended.store(true, Ordering::Relaxed);
        live_terminal::leave();
        match locked(&self.shown).failed.take() {
            Some(why) => Err(refused(why)),
            None => Ok(()),
        }
    }
}

impl Shown {
    /// Draws, unless the end was requested: the measurement takes a moment to end.
    fn draw(&mut self) {
        if self.stop.is_requested() {
            return live_terminal::leave();
        }
        let Self { terminal, view, states, .. } = self;
        let screen = view.screen();
        if let Err(why) = terminal.draw(|frame| draw(frame, &screen, states)) {
            self.fail(why);
        }
    }

    fn fail(&mut self, why: io::Error) {
        self.failed.get_or_insert(why);
        self.stop.request();
    }

    /// Applies an event of the terminal.
    fn apply(&mut self, event: &Event) {
        let key = match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => *key,
            Event::Resize(..) => return self.draw(),
            Event::Key(_)
            | Event::FocusGained
            | Event::FocusLost
            | Event::Mouse(_)
            | Event::Paste(_) => return,
        };
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let letter = match known(key) {
            Some(TopKey::Char(letter)) => Some(letter).filter(|_| is_control),
            _ => None,
        };
        match letter {
            Some('c') => self.stop.request(),
            Some('z') => match live_terminal::suspend() {
                Ok(terminal) => self.terminal = terminal,
                Err(why) => self.fail(why),
            },
            Some(_) => return,
            None => {
                if known(key).is_some_and(|key| self.view.press(key)) {
                    self.stop.request();
                }
            }
        }
        self.draw();
    }
}

fn refused(why: io::Error) -> Failure {
    Failure::refused(format!("terminal: {why}"))
}

fn locked(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_keys(shown: &Mutex<Shown>, has_ended: &AtomicBool) {
    while !has_ended.load(Ordering::Relaxed) {
        // One read of the terminal can be several keys.
        let read = wait_for_key().and_then(|()| {
            while event::poll(Duration::ZERO)? && !has_ended.load(Ordering::Relaxed) {
                let event = event::read()?;
                locked(shown).apply(&event);
            }
            Ok(())
        });
        if let Err(why) = read {
            return locked(shown).fail(why);
        }
    }
}

/// Waits for a key, for a while. A terminal that is gone is an error; the library would wait for it in a
/// loop.
fn wait_for_key() -> io::Result<()> {
    let input = io::stdin();
    let mut ends = [PollFd::new(&input, PollFlags::IN)];
    match poll(&mut ends, Some(&WAIT)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(why) => return Err(why.into()),
    }
    if ends[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it was closed"));
    }
    Ok(())
}

/// The key, if it can have a meaning.
fn known(key: KeyEvent) -> Option<TopKey> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "an enum of crossterm")]
    Some(match key.code {
        KeyCode::Char(letter) => TopKey::Char(letter),
        KeyCode::Enter => TopKey::Enter,
        KeyCode::Esc => TopKey::Escape,
        KeyCode::Backspace => TopKey::Backspace,
        KeyCode::Tab | KeyCode::BackTab => TopKey::Tab,
        KeyCode::Up => TopKey::Up,
        KeyCode::Down => TopKey::Down,
        KeyCode::PageUp => TopKey::PageUp,
        KeyCode::PageDown => TopKey::PageDown,
        KeyCode::Home => TopKey::Home,
        KeyCode::End => TopKey::End,
        _ => return None,
    })
}

fn draw(frame: &mut Frame<'_>, screen: &LiveScreen, states: &mut States) {
    let parts = [Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)];
    let [title, middle, keys] = Layout::vertical(parts).areas(frame.area());
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Line::from(for_terminal(&screen.title)).style(bold), title);
    frame.render_widget(Line::from(for_terminal(&screen.keys)), keys);
    if let Some(help) = screen.help {
        let lines: Vec<Line<'_>> = help.iter().copied().map(Line::from).collect();
        return frame.render_widget(Paragraph::new(Text::from(lines)), middle);
    }
    // The rows, a title and the headings; at most half of the room.
    let rows = u16::try_from(screen.cpus.rows.len()).unwrap_or(u16::MAX);
    let height = rows.saturating_add(2).min(middle.height / 2);
    let parts = [Constraint::Length(height), Constraint::Min(0)];
    let [cpus, sources] = Layout::vertical(parts).areas(middle);
    draw_table(frame, cpus, &screen.cpus, &mut states.cpus);
    draw_table(frame, sources, &screen.sources, &mut states.sources);
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, table: &LiveTable, first: &mut usize) {
    // Of many rows, only those are made that are visible: below the title and the headings.
    let room = usize::from(area.height.saturating_sub(2));
    *first = first_row(*first, table, room);
    let visible = table.rows.iter().skip(*first).take(room);
    let rows: Vec<Vec<String>> =
        visible.map(|row| row.iter().map(|cell| for_terminal(cell)).collect()).collect();
    let alignment = |at: usize| match table.heads.get(at) {
        Some((_, true)) => Alignment::Right,
        Some((_, false)) | None => Alignment::Left,
    };
    let cell = |(at, text): (usize, &String)| {
        Cell::from(Line::from(text.clone()).alignment(alignment(at)))
    };
    let heads = table.heads.iter().enumerate().map(|(at, (head, _))| {
        let is_sorted = table.sorted_by == Some(at);
        let style = Style::new().add_modifier(Modifier::BOLD);
        let style =
            if is_sorted { style.add_modifier(Modifier::UNDERLINED) } else { style };
        Cell::from(Line::from(head.as_str()).alignment(alignment(at))).style(style)
    });
    let selected = match table.has_focus {
        true => Style::new().add_modifier(Modifier::REVERSED),
        false => Style::new().add_modifier(Modifier::UNDERLINED),
    };
    let widget = Table::new(
        rows.iter().map(|row| Row::new(row.iter().enumerate().map(cell))),
        widths(table, &rows),
    )
    .header(Row::new(heads))
    .row_highlight_style(selected)
    .block(Block::new().borders(Borders::TOP).title(for_terminal(&table.title)));
    let mut shown = TableState::new()
        .with_selected(table.selected.and_then(|row| row.checked_sub(*first)));
    frame.render_stateful_widget(widget, area, &mut shown);
}

/// The first visible row: that of before, unless the selected one would not be visible.
fn first_row(before: usize, table: &LiveTable, room: usize) -> usize {
    let last = table.rows.len().saturating_sub(room);
    let selected = table.selected.unwrap_or(0);
    let least = (selected + 1).saturating_sub(room);
    before.clamp(least, selected.max(least)).min(last.max(least))
}

/// The widths of the columns: those of their texts, and the rest for the last one.
fn widths(table: &LiveTable, rows: &[Vec<String>]) -> Vec<Constraint> {
    let width = |at: usize| {
        let texts = rows.iter().filter_map(|row| row.get(at));
        let head = table.heads.get(at).map_or(0, |(head, _)| head.chars().count());
        let widest = texts.map(|text| text.chars().count()).max().unwrap_or(0);
        u16::try_from(widest.max(head).min(NAME_MAX)).unwrap_or(0)
    };
    let last = table.heads.len().saturating_sub(1);
    (0..table.heads.len())
        .map(
            |at| {
                if at == last {
                    Constraint::Fill(1)
                } else {
                    Constraint::Length(width(at))
                }
            },
        )
        .collect()
}

#[cfg(test)]
mod tests;
