//! The state of the live view of `top`, and what keys change in it. It knows no terminal.

use recording::TopSample;
use summary::{TopCpuSummary, TopGrouping, TopSource, TopSummary};
use units::Cpu;

use crate::measurements::top::columns::{CpuColumn, SourceColumn};

/// The rows that a page key moves by.
const PAGE: usize = 10;
/// The longest filter.
const FILTER_MAX: usize = 40;
/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopKey {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// Tab.
    Tab,
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// The first row.
    Home,
    /// The last row.
    End,
}

/// A table of the view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Focus {
    #[default]
    Cpus,
    Sources,
}

/// The order and the choice of rows of a table.
#[derive(Debug, Clone)]
pub(crate) struct Shown<C> {
    /// `None`: the order of CPUs.
    pub(crate) sorted_by: Option<C>,
    pub(crate) is_reversed: bool,
    pub(crate) filter: String,
}

/// The live view.
#[derive(Debug)]
pub struct TopView {
    /// The machine, and the source of numbers.
    pub(crate) title: String,
    pub(crate) source: &'static str,
    pub(crate) sample: Option<TopSample>,
    /// What arrives while the view is paused.
    pub(crate) next: Option<TopSample>,
    pub(crate) is_paused: bool,
    pub(crate) has_help: bool,
    /// The filter that is being typed.
    pub(crate) typed: Option<String>,
    pub(crate) focus: Focus,
    pub(crate) cpus: Shown<CpuColumn>,
    pub(crate) sources: Shown<SourceColumn>,
    pub(crate) grouping: TopGrouping,
    /// The CPU of the selected row, and whether only its sources are shown.
    pub(crate) cpu: Option<Cpu>,
    pub(crate) is_of_cpu: bool,
    /// The selected source.
    pub(crate) selected: Option<(String, Option<u32>)>,
}

impl TopView {
    /// A view of a machine with that name, without an interval yet.
    pub fn new(machine: &str) -> Self {
        Self {
            title: machine.to_owned(),
            source: "",
            sample: None,
            next: None,
            is_paused: false,
            has_help: false,
            typed: None,
            focus: Focus::default(),
            cpus: Shown::new(None),
            sources: Shown::new(Some(SourceColumn::Share)),
            grouping: TopGrouping::Units,
            cpu: None,
            is_of_cpu: false,
            selected: None,
        }
    }

    /// Shows an interval, unless the view is paused.
    pub fn update(&mut self, sample: &TopSample) {
        let has_events = sample.cpus.iter().any(|cpu| cpu.interruption_ns_max.is_some());
        self.source = if has_events { "eBPF" } else { "/proc" };
        let place = if self.is_paused { &mut self.next } else { &mut self.sample };
        *place = Some(sample.clone());
    }

    /// Applies a key; whether the view is to be left.
    pub fn press(&mut self, key: TopKey) -> bool {
        if self.has_help {
            self.has_help = false;
            return false;
        }
        if self.typed.is_some() {
            self.type_filter(key);
            return false;
        }
        match key {
            TopKey::Char('q') => return true,
            TopKey::Char(' ') => self.pause(),
            TopKey::Char('h' | '?') => self.has_help = true,
            TopKey::Char('/') => self.typed = Some(String::new()),
            TopKey::Char('s') => self.sort_by_next(),
            TopKey::Char('r') => self.reverse(),
            TopKey::Char('t') => {
                self.grouping = match self.grouping {
                    TopGrouping::Units => TopGrouping::Threads,
                    TopGrouping::Threads => TopGrouping::Units,
                };
            }
            TopKey::Tab => {
                self.focus = match self.focus {
                    Focus::Cpus => Focus::Sources,
                    Focus::Sources => Focus::Cpus,
                };
            }
            TopKey::Enter => self.is_of_cpu = !self.is_of_cpu,
            TopKey::Escape => (self.is_of_cpu, self.is_paused) = (false, false),
            TopKey::Up
            | TopKey::Down
            | TopKey::PageUp
            | TopKey::PageDown
            | TopKey::Home
            | TopKey::End => self.select(key),
            TopKey::Char(_) | TopKey::Backspace => {}
        }
        false
    }

    /// The CPUs that are shown, in their order.
    pub(crate) fn cpus_in_order<'a>(
        &self,
        summary: &'a TopSummary,
    ) -> Vec<&'a TopCpuSummary> {
        let Shown { sorted_by, is_reversed, filter } = &self.cpus;
        let has = |one: &&TopCpuSummary| {
            filter.is_empty()
                || one.cpu.to_string() == *filter
                || contains(one.most.as_deref().unwrap_or(""), filter)
        };
        let mut cpus: Vec<&TopCpuSummary> = summary.cpus.iter().filter(has).collect();
        if let Some(by) = sorted_by {
            cpus.sort_by(|one, other| by.value(other).total_cmp(&by.value(one)));
        }
        if *is_reversed {
            cpus.reverse();
        }
        cpus
    }

    /// The sources that are shown, in their order.
    pub(crate) fn sources_in_order(
        &self,
        summary: &TopSummary,
        sample: &TopSample,
    ) -> Vec<TopSource> {
        let Shown { sorted_by, is_reversed, filter } = &self.sources;
        let mut sources = match self.chosen_cpu(summary) {
            Some(cpu) => TopSummary::sources_of(sample, self.grouping, cpu),
            None => summary.sources.clone(),
        };
        sources.retain(|one| {
            filter.is_empty()
                || contains(&one.name, filter)
                || one.threads.iter().any(|thread| contains(thread, filter))
        });
        if let Some(by) = sorted_by {
            sources.sort_by(|one, other| by.compare(one, other));
        }
        if *is_reversed {
            sources.reverse();
        }
        sources
    }

    /// The CPU whose sources are shown; `None`: those of all.
    pub(crate) fn chosen_cpu(&self, summary: &TopSummary) -> Option<Cpu> {
        let cpus = self.cpus_in_order(summary);
        let selected = place(&cpus, |one| Some(one.cpu) == self.cpu);
        let cpu = cpus.get(selected.filter(|_| self.is_of_cpu)?)?.cpu;
        Some(cpu)
    }

    fn pause(&mut self) {
        self.is_paused = !self.is_paused;
        if let Some(next) = self.next.take() {
            self.sample = Some(next);
        }
    }

    fn sort_by_next(&mut self) {
        match self.focus {
            Focus::Cpus => {
                let all = CpuColumn::ALL;
                let at = self.cpus.sorted_by.map(|by| {
                    all.iter().position(|column| *column == by).unwrap_or(all.len())
                });
                self.cpus.sorted_by = all.get(at.map_or(0, |at| at + 1)).copied();
            }
            Focus::Sources => {
                let all = SourceColumn::SORTABLE;
                let at =
                    all.iter().position(|column| Some(*column) == self.sources.sorted_by);
                let next = at.map_or(0, |at| (at + 1) % all.len());
                self.sources.sorted_by = Some(all[next]);
            }
        }
    }

    fn reverse(&mut self) {
        let is_reversed = match self.focus {
            Focus::Cpus => &mut self.cpus.is_reversed,
            Focus::Sources => &mut self.sources.is_reversed,
        };
        *is_reversed = !*is_reversed;
    }

    fn type_filter(&mut self, key: TopKey) {
        let Some(typed) = &mut self.typed else { return };
        match key {
            TopKey::Char(letter) if typed.chars().count() < FILTER_MAX => {
                typed.push(letter)
            }
            TopKey::Backspace => drop(typed.pop()),
            TopKey::Escape => self.typed = None,
            TopKey::Enter => {
                let filter = match self.focus {
                    Focus::Cpus => &mut self.cpus.filter,
                    Focus::Sources => &mut self.sources.filter,
                };
                *filter = std::mem::take(typed);
                self.typed = None;
            }
            TopKey::Char(_)
            | TopKey::Tab
            | TopKey::Up
            | TopKey::Down
            | TopKey::PageUp
            | TopKey::PageDown
            | TopKey::Home
            | TopKey::End => {}
        }
    }

    /// Moves the selection of the current table.
    fn select(&mut self, key: TopKey) {
        let Some(sample) = &self.sample else { return };
        let summary = TopSummary::of_interval(self.source, sample, self.grouping);
        match self.focus {
            Focus::Cpus => {
                let cpus = self.cpus_in_order(&summary);
                let at = place(&cpus, |one| Some(one.cpu) == self.cpu);
                self.cpu = cpus.get(moved(at, key, cpus.len())).map(|one| one.cpu);
            }
            Focus::Sources => {
                let sources = self.sources_in_order(&summary, sample);
                let at = place(&sources, |one| Some(source_key(one)) == self.selected);
                self.selected =
                    sources.get(moved(at, key, sources.len())).map(source_key);
            }
        }
    }
}

impl<C> Shown<C> {
    fn new(sorted_by: Option<C>) -> Self {
        Self { sorted_by, is_reversed: false, filter: String::new() }
    }
}

/// What identifies a source from one interval to the next.
pub(crate) fn source_key(source: &TopSource) -> (String, Option<u32>) {
    (source.name.clone(), source.tid)
}

/// The selected row; the first one if the selected one is not there.
pub(crate) fn place<T>(rows: &[T], is_selected: impl Fn(&T) -> bool) -> Option<usize> {
    rows.iter().position(is_selected).or_else(|| (!rows.is_empty()).then_some(0))
}

/// The row after a key.
fn moved(from: Option<usize>, key: TopKey, rows: usize) -> usize {
    let (from, last) = (from.unwrap_or(0), rows.saturating_sub(1));
    match key {
        TopKey::Up => from.saturating_sub(1),
        TopKey::Down => (from + 1).min(last),
        TopKey::PageUp => from.saturating_sub(PAGE),
        TopKey::PageDown => (from + PAGE).min(last),
        TopKey::Home => 0,
        TopKey::End => last,
        TopKey::Char(_)
        | TopKey::Enter
        | TopKey::Escape
        | TopKey::Backspace
        | TopKey::Tab => from,
    }
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}
