use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;

fn table(rows: usize, selected: Option<usize>) -> LiveTable {
    let heads = ["CPU", "tick/s", "irq max", "most"];
    let row = |at: usize| {
        [
            at.to_string(),
            "250".to_owned(),
            "83 µs".to_owned(),
            format!("unit{at}\u{1b}[2J"),
        ]
        .into()
    };
    LiveTable {
        title: "CPUs".to_owned(),
        heads: heads.map(|head| (head.to_owned(), head != "most")).into(),
        sorted_by: Some(0),
        rows: (0..rows).map(row).collect(),
        selected,
        has_focus: true,
    }
}

fn drawn(width: u16, height: u16, cpus: LiveTable) -> Vec<String> {
    let screen = LiveScreen {
        title: "noisefloor top".to_owned(),
        sources: LiveTable { title: "Sources".to_owned(), ..table(40, None) },
        cpus,
        keys: "q quit".to_owned(),
        help: None,
    };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, &screen, &mut States::default())).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

/// Check the screen of two CPUs with 80 columns and 24 lines, and that names cannot control the terminal.
#[test]
fn two_cpus() {
    let lines = drawn(80, 24, table(2, Some(1)));
    assert_eq!(lines[0], "noisefloor top");
    assert!(lines[1].starts_with("CPUs"), "{lines:#?}");
    assert_eq!(lines[2], "CPU tick/s irq max most");
    assert_eq!(lines[3], "  0    250   83 µs unit0\\x1b[2J");
    assert!(lines[5].starts_with("Sources"), "{lines:#?}");
    assert_eq!((&*lines[7], &*lines[23]), ("  0    250   83 µs unit0\\x1b[2J", "q quit"));
}

/// Check that of 256 CPUs the selected one is visible, and that sources have half of the room.
#[test]
fn many_cpus() {
    let lines = drawn(80, 24, table(256, Some(200)));
    let is_selected = |line: &String| line.trim_start().starts_with("200 ");
    assert!(lines[3..12].iter().any(is_selected), "{lines:#?}");
    assert!(lines[12].starts_with("Sources"), "{lines:#?}");
}

/// Check that any size of a terminal can be drawn to.
#[test]
fn sizes() {
    for (width, height) in [(1, 1), (5, 3), (20, 5), (40, 10), (500, 200)] {
        drawn(width, height, table(256, Some(255)));
        drawn(width, height, table(0, None));
    }
}

/// Check that keys with and without a meaning are known.
#[test]
fn keys() {
    let key = |code| known(KeyEvent::new(code, KeyModifiers::NONE));
    assert_eq!(key(KeyCode::Char('q')), Some(TopKey::Char('q')));
    assert_eq!((key(KeyCode::BackTab), key(KeyCode::F(1))), (Some(TopKey::Tab), None));
}
