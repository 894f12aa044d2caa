use insta::assert_snapshot;
use recording::Body;

use crate::example::top::sample;
use crate::example::{GUEST, top};
use crate::measurements::text_of;
use crate::measurements::top::columns::CpuColumn;
use crate::measurements::top::live::{TopKey, TopView};
use crate::measurements::top::screen::{LiveScreen, LiveTable};

/// Check `top` of a guest, with counters only, and without an interval.
#[test]
fn top_of_two_cpus() {
    assert_snapshot!(text_of(&top::top(GUEST)));
    assert_snapshot!(text_of(&top::counted(GUEST)));
    let mut none = top::top(GUEST);
    if let Body::Top { series, .. } = &mut none.body {
        series.samples.clear();
    }
    assert_snapshot!(text_of(&none), @"No CPU was watched.");
}

fn view(cpus: u32) -> TopView {
    let mut view = TopView::new("Linux 6.12");
    view.update(&sample(cpus));
    view
}

fn press(view: &mut TopView, keys: &str) {
    for key in keys.chars() {
        let key = match key {
            '\n' => TopKey::Enter,
            '\t' => TopKey::Tab,
            key => TopKey::Char(key),
        };
        assert!(!view.press(key));
    }
}

fn column(table: &LiveTable, head: &str) -> Vec<String> {
    let at = table.heads.iter().position(|(own, _)| own == head).unwrap();
    table.rows.iter().map(|row| row[at].clone()).collect()
}

/// Check the tables at the beginning: all CPUs in their order, sources by time, the first row selected.
#[test]
fn first_interval() {
    let LiveScreen { title, cpus, sources, help, .. } = view(2).screen();
    assert_eq!(title, "noisefloor top: Linux 6.12, 2 s, eBPF; itself 0.16 % of one CPU");
    assert_eq!(column(&cpus, "CPU"), ["0", "1"]);
    assert_eq!(column(&cpus, "tick/s"), ["250", "15.5"]);
    assert_eq!(column(&cpus, "irq%"), ["0.04", "0.04"]);
    assert_eq!(column(&cpus, "wait%"), ["155", "155"]);
    assert_eq!(column(&cpus, "most"), ["nginx.service"; 2]);
    assert_eq!(
        (cpus.selected, cpus.has_focus, sources.has_focus),
        (Some(0), true, false)
    );
    let names =
        ["nginx.service", "redis-server", "kworker/1:1-events", "local timer", "NET_RX"];
    assert_eq!(column(&sources, "source"), names);
    assert_eq!(column(&sources, "time%"), ["170", "1.20", "0.40", "0.07", "0.01"]);
    assert!(help.is_none());
}

/// Check that a number that no CPU has has no column, and that no interval is no table.
#[test]
fn unknown_numbers() {
    let mut without = sample(2);
    without.cpus.iter_mut().for_each(|cpu| cpu.steal_ns = None);
    let mut view = view(2);
    view.update(&without);
    let cpus = view.screen().cpus;
    assert!(cpus.heads.iter().all(|(head, _)| head != "steal%"));
    assert!(cpus.rows.iter().all(|row| row.len() == cpus.heads.len()));
    let none = TopView::new("Linux").screen();
    assert!(none.title.contains("measuring") && none.cpus.rows.is_empty());
}

/// Check each sort key, in both orders, and that the selection stays with its CPU.
#[test]
fn sorting() {
    let mut view = view(3);
    view.press(TopKey::End);
    assert_eq!(view.screen().cpus.selected, Some(2));
    press(&mut view, "s");
    assert_eq!(column(&view.screen().cpus, "CPU"), ["0", "2", "1"]);
    assert_eq!(
        (view.screen().cpus.sorted_by, view.screen().cpus.selected),
        (Some(1), Some(1))
    );
    press(&mut view, "r");
    assert_eq!(column(&view.screen().cpus, "CPU"), ["1", "2", "0"]);
    press(&mut view, "r\tss");
    assert_eq!(column(&view.screen().sources, "source")[0], "nginx.service");
    press(&mut view, "s");
    assert_eq!(column(&view.screen().sources, "source")[0], "NET_RX");
    for _ in 0..CpuColumn::ALL.len() {
        press(&mut view, "\ts\t");
        view.screen();
    }
}

/// Check that a filter chooses rows of the table that has the focus, and that keys are text while it is
/// typed.
#[test]
fn filters() {
    let mut view = view(3);
    press(&mut view, "/1q");
    assert!(view.screen().keys.starts_with("filter: 1q_"));
    view.press(TopKey::Backspace);
    press(&mut view, "\n");
    assert_eq!(column(&view.screen().cpus, "CPU"), ["1"]);
    press(&mut view, "\t/LOG\n");
    let sources = view.screen().sources;
    assert_eq!(column(&sources, "source"), ["nginx.service"]);
    assert_eq!(sources.title, "Sources with \"LOG\"");
    press(&mut view, "/nothing\n");
    let sources = view.screen().sources;
    assert_eq!((sources.rows.len(), sources.selected), (0, None));
    press(&mut view, "/\n");
    assert_eq!(view.screen().sources.rows.len(), 5);
    press(&mut view, "/x");
    assert!(!view.press(TopKey::Escape));
    assert_eq!(view.screen().sources.rows.len(), 5);
    assert!(view.press(TopKey::Char('q')));
}

/// Check that a paused view does not change, and shows the last interval afterwards.
#[test]
fn pause() {
    let mut view = view(2);
    press(&mut view, " ");
    view.update(&sample(1));
    assert_eq!(view.screen().cpus.rows.len(), 2);
    assert!(view.screen().title.contains("PAUSED"));
    press(&mut view, " ");
    assert_eq!(view.screen().cpus.rows.len(), 1);
}

/// Check sources by thread, and those of the selected CPU.
#[test]
fn threads_and_one_cpu() {
    let mut view = view(2);
    press(&mut view, "t");
    let names = column(&view.screen().sources, "source");
    assert_eq!(names[..2], ["nginx 417", "log\u{1b}[2J 498"]);
    view.press(TopKey::Down);
    press(&mut view, "\n");
    let sources = view.screen().sources;
    assert_eq!(sources.title, "Sources on CPU 1");
    assert_eq!(column(&sources, "time%")[0], "70.0");
    assert!(column(&sources, "CPU").iter().all(|cpu| cpu == "1"));
}

/// Check that the help is left with any key, and that nothing else happens then.
#[test]
fn help() {
    let mut view = view(2);
    press(&mut view, "?");
    let help = view.screen().help.unwrap();
    assert!(help.iter().all(|line| line.chars().count() <= 80));
    assert!(help.len() + 4 <= 24, "{}", help.len());
    assert!(!view.press(TopKey::Char('q')));
    assert!(view.screen().help.is_none());
}

/// Check that the selection moves within the rows, by one, by a page and to the ends.
#[test]
fn selection() {
    let mut view = view(256);
    let mut after = |key| {
        view.press(key);
        view.screen().cpus.selected
    };
    assert_eq!(after(TopKey::Up), Some(0));
    assert_eq!(after(TopKey::PageDown), Some(10));
    assert_eq!(after(TopKey::Down), Some(11));
    assert_eq!(after(TopKey::End), Some(255));
    assert_eq!(after(TopKey::Down), Some(255));
    assert_eq!(after(TopKey::PageUp), Some(245));
    assert_eq!(after(TopKey::Home), Some(0));
}
