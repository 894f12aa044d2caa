//! What the live view of `top` shows: tables as text, of any width.

use recording::TopSample;
use summary::{TopCpuSummary, TopSource, TopSummary};

use crate::measurements::top::columns::{self, SourceColumn};
use crate::measurements::top::live::{Focus, TopView, place, source_key};
use crate::number;

const KEYS: &str =
    "q quit  space pause  tab table  s sort  r reverse  / filter  t threads  h help";
const HELP: [&str; 19] = [
    "CPUs (prog to quota and wait in percent of the time; -: not known)",
    "  tick/s   timer interrupts per second    prog  programs, kthr  kernel threads",
    "  irq      interrupts and softirqs; irq max: the longest, with no thread between",
    "  steal    the part of these times that the hypervisor took",
    "  quota    a cgroup's CPU quota was used up, whatever had the CPU",
    "  wait     threads waited in the run queue (100: one on average), the longest",
    "Sources: threads by unit, container or program, and interrupts, by their time",
    "",
    "Keys",
    "  q, Ctrl-C  quit                         space   pause: measuring goes on",
    "  tab        go to the other table        arrows  select a row",
    "  enter      sources of this CPU, or of all CPUs",
    "  s          sort by the next column      r       reverse the order",
    "  /          show rows with a text        t       sources by thread or by unit",
    "  Ctrl-Z     suspend                      h, ?    this help; any key leaves it",
    "",
    "Without eBPF, times are counted in whole ticks, and neither single runs nor",
    "waits are known.",
    "",
];

/// A table as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveTable {
    /// What it shows.
    pub title: String,
    /// The headings, and whether cells are aligned to the right.
    pub heads: Vec<(String, bool)>,
    /// The column by which it is sorted.
    pub sorted_by: Option<usize>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// The selected row.
    pub selected: Option<usize>,
    /// Whether keys apply to it.
    pub has_focus: bool,
}

/// What a terminal shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveScreen {
    /// The first line.
    pub title: String,
    /// The CPUs.
    pub cpus: LiveTable,
    /// What used them.
    pub sources: LiveTable,
    /// The last line.
    pub keys: String,
    /// Shown instead of the tables.
    pub help: Option<&'static [&'static str]>,
}

impl TopView {
    /// What is shown now.
    pub fn screen(&self) -> LiveScreen {
        let keys = match &self.typed {
            Some(typed) => format!("filter: {typed}_  (enter: apply, escape: leave)"),
            None => KEYS.to_owned(),
        };
        let Some(sample) = &self.sample else {
            return LiveScreen {
                title: format!("noisefloor top: {}, measuring", self.title),
                cpus: LiveTable::default(),
                sources: LiveTable::default(),
                keys,
                help: self.has_help.then_some(&HELP[..]),
            };
        };
        let summary = TopSummary::of_interval(self.source, sample, self.grouping);
        LiveScreen {
            title: self.title_of(&summary),
            cpus: self.cpu_table(&summary),
            sources: self.source_table(&summary, sample),
            keys,
            help: self.has_help.then_some(&HELP[..]),
        }
    }

    fn title_of(&self, summary: &TopSummary) -> String {
        let paused = if self.is_paused { "PAUSED; " } else { "" };
        format!(
            "noisefloor top: {paused}{}, {}, {}; itself {} of one CPU",
            self.title,
            number::duration(summary.elapsed_ns),
            self.source,
            number::known(summary.own_ppm.map(number::ratio)),
        )
    }

    fn cpu_table(&self, summary: &TopSummary) -> LiveTable {
        let columns = columns::known(summary.cpus.iter());
        let mut heads = vec![("CPU".to_owned(), true)];
        heads.extend(columns.iter().map(|column| (column.head().to_owned(), true)));
        heads.push(("most".to_owned(), false));
        let sorted_by = match self.cpus.sorted_by {
            None => Some(0),
            Some(by) => columns.iter().position(|column| *column == by).map(|at| at + 1),
        };
        let cpus = self.cpus_in_order(summary);
        let row = |cpu: &&TopCpuSummary| {
            let mut row = vec![cpu.cpu.to_string()];
            row.extend(columns.iter().map(|column| column.text(cpu)));
            row.push(cpu.most.clone().unwrap_or_else(|| number::NONE.to_owned()));
            row
        };
        LiveTable {
            title: titled("CPUs", &self.cpus.filter),
            heads,
            sorted_by,
            selected: place(&cpus, |one| Some(one.cpu) == self.cpu),
            rows: cpus.iter().map(row).collect(),
            has_focus: self.focus == Focus::Cpus,
        }
    }

    fn source_table(&self, summary: &TopSummary, sample: &TopSample) -> LiveTable {
        let of_cpu = self.chosen_cpu(summary);
        let sources = self.sources_in_order(summary, sample);
        let heads = SourceColumn::ALL.map(SourceColumn::head);
        let row =
            |one: &TopSource| SourceColumn::ALL.map(|column| column.text(one)).into();
        let title = match of_cpu {
            Some(cpu) => format!("Sources on CPU {cpu}"),
            None => "Sources".to_owned(),
        };
        LiveTable {
            title: titled(&title, &self.sources.filter),
            heads: heads.map(|(head, is_right)| (head.to_owned(), is_right)).into(),
            sorted_by: self
                .sources
                .sorted_by
                .and_then(|by| SourceColumn::ALL.iter().position(|column| *column == by)),
            selected: place(&sources, |one| Some(source_key(one)) == self.selected),
            rows: sources.iter().map(row).collect(),
            has_focus: self.focus == Focus::Sources,
        }
    }
}

/// A title with the filter of the table.
fn titled(title: &str, filter: &str) -> String {
    match filter {
        "" => title.to_owned(),
        filter => format!("{title} with \"{filter}\""),
    }
}
