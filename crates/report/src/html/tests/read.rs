//! What a browser, and a checker of accessibility, find on pages.

use std::path::PathBuf;

use itertools::Itertools;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use summary::{MetricChart, Summary};
use units::{printable, printable_lines};

use super::browser::Browser;
use super::{report, tables};
use crate::charts::cells::chart;
use crate::document::table::{Cell, Fit, Table};
use crate::document::text::Text;
use crate::document::{Content, Document, arbitrary};
use crate::example::cells::{page, tick_cells};
use crate::example::{self, GUEST, METAL, latency};
use crate::html::html_page;
use crate::measurements::recording_document;

/// The part of a page that does not scroll must not be wider than this.
const NARROW: u32 = 400;
const WIDE: u32 = 1600;
/// What axe finds, with the elements and the reasons.
const AXE: &str =
    "axe.run().then(found => found.violations.map(rule => [rule.id, rule.nodes.map(
    node => node.html.slice(0, 200) + ' ' + node.failureSummary)]))";
const UNFOLD: &str =
    "document.querySelectorAll('details').forEach(fold => fold.open = true)";
/// The texts of a page, as far as they are not empty: of elements that contain no others of these.
const TEXTS: &str = "[...page.querySelectorAll('h2, p, li, pre, th, td, dt, dd')]
    .filter(one => !one.querySelector('p, pre')).map(one => one.textContent).filter(text => text)";
/// The numbers of tables and of their rows, without headings and names of groups.
const ROWS: &str = "[page.querySelectorAll('table').length,
    page.querySelectorAll('tbody tr:not(.group)').length]";

/// The browser; `None` if this machine has none, which is printed.
fn browser(test: &str) -> Option<Browser> {
    let browser = Browser::start();
    if browser.is_none() {
        println!("skipped: {test}: no Chromium is installed");
    }
    browser
}

/// axe-core, where `scripts/setup test` puts it.
fn axe() -> Option<String> {
    let program = std::env::current_exe().unwrap();
    let target: Option<PathBuf> = program.ancestors().nth(3).map(Into::into);
    std::fs::read_to_string(target?.join("tmp/axe-core/axe.min.js")).ok()
}

/// Reports: with all kinds of blocks, of this machine, and of several files with wide numbers and a chart.
fn reports() -> [Document; 3] {
    let of = |recording: &recording::Recording| {
        recording_document(recording, &Summary::of(recording))
    };
    let cells = tick_cells();
    let metric = MetricChart::of(&cells, "tick_instructions").unwrap();
    let several = Document::default()
        .add_titled("a.json", of(&example::wide(latency::latency(METAL, 30))))
        .add_titled("b.json", of(&example::blamed(example::noise(GUEST, 2))))
        .add(chart(&page("atlas", &cells), &metric));
    [report(), of(&example::blamed(example::check(GUEST, 2))), several]
}

/// Check that a browser finds no mistake on a page, and loads nothing else.
#[test]
fn loads_nothing() {
    let Some(mut browser) = browser("loads_nothing") else { return };
    for document in reports() {
        let page = html_page(&document.clone().titled("Report"));
        browser.load(&page);
        let parse = format!(
            "new DOMParser().parseFromString({}, 'application/xhtml+xml')
                .querySelector('parsererror')?.textContent",
            json!(page)
        );
        // With this answer, all events of the page are there.
        assert_eq!(browser.value(&parse), Value::Null);
        let names: Vec<&str> =
            browser.events.iter().map(|(name, _)| name.as_str()).collect();
        let count = |name: &str| names.iter().filter(|one| **one == name).count();
        assert_eq!(count("Network.requestWillBeSent"), 1, "{:?}", browser.events);
        let mistakes =
            ["Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"];
        assert_eq!(mistakes.map(count), [0; 3], "{:?}", browser.events);
    }
}

/// Check that pages have no problems of accessibility, among them little contrast.
#[test]
fn accessible() {
    let Some(axe) = axe() else {
        println!("skipped: accessible: axe-core is not installed (scripts/setup test)");
        return;
    };
    let Some(mut browser) = browser("accessible") else { return };
    for document in reports() {
        browser.load(&html_page(&document.clone().titled("Report")));
        browser.value(&format!("{axe}; {UNFOLD}"));
        for (width, scheme) in [(NARROW, "light"), (WIDE, "dark"), (WIDE, "light")] {
            browser.look(width, scheme);
            assert_eq!(browser.value(AXE), json!([]), "{width} {scheme}");
        }
    }
}

/// Check that a browser reads exactly the printable form of each text of any document, and all rows.
#[test]
fn texts() {
    let Some(mut browser) = browser("texts") else { return };
    let mut runner = TestRunner::deterministic();
    for _ in 0..100 {
        let document = arbitrary::document().new_tree(&mut runner).unwrap().current();
        let html = html_page(&document.clone().titled(""));
        let page = format!(
            "page = new DOMParser().parseFromString({}, 'text/html')",
            json!(html)
        );
        let read = browser.value(&format!("{page}; {TEXTS}"));
        let mut read: Vec<String> = serde_json::from_value(read).unwrap();
        read.sort();
        let mut expected = expected(&document);
        expected.sort();
        assert_eq!(read, expected, "{html}");
        let (tables, rows) = tables(&document);
        assert_eq!(browser.value(ROWS), json!([tables, rows]), "{html}");
    }
}

/// The texts of a page, in any order.
fn expected(document: &Document) -> Vec<String> {
    let mut texts = Vec::new();
    let mut has_doubts = false;
    for block in &document.blocks {
        match &block.content {
            Content::Title(text) | Content::Heading(text) | Content::Paragraph(text) => {
                texts.push(plain(text))
            }
            Content::Chart(_) | Content::Fitted(_) | Content::Footer(_) => {}
            Content::List(list) => {
                for item in &list.items {
                    texts.extend(item.paragraphs.iter().map(plain));
                    let code = item.commands.iter().chain(&item.verbatim);
                    texts.extend(code.map(|line| printable(line).into_owned()));
                }
            }
            Content::Table(table) => texts.extend(table_texts(table)),
            Content::Doubts(doubts) => {
                has_doubts |= !doubts.is_empty();
                texts.extend(doubts.iter().map(plain));
            }
            Content::Verbatim(lines) => texts.push(printable_lines(lines).into_owned()),
        }
    }
    texts.extend(has_doubts.then(|| "Doubts reasons not to trust a number".to_owned()));
    texts.retain(|text| !text.is_empty());
    // XML has no such characters.
    let replaced = |text: &String| text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}");
    texts.iter().map(replaced).collect()
}

fn plain(text: &Text) -> String {
    printable(&text.to_string()).into_owned()
}

/// The texts of a table; what rows have in common is there once.
fn table_texts(table: &Table) -> Vec<String> {
    let cell = |cell: &Cell| match cell.bar {
        Some(_) => printable(&cell.tail).into_owned(),
        None => plain(&cell.text) + &printable(&cell.tail),
    };
    let mut heads: Vec<String> = Vec::new();
    for column in &table.columns {
        heads.push(column.heads().map(|head| plain(&head)).collect());
    }
    let is_group =
        matches!(table.columns.first().map(|one| &one.fit), Some(Fit::Group(_)));
    let mut texts = vec![plain(&table.rest), plain(&table.legend)];
    let mut rows = table.rows.clone();
    if is_group && heads.len() > 1 {
        let both = heads.drain(..2).filter(|head| !head.is_empty()).collect::<Vec<_>>();
        heads.insert(0, both.join(", "));
        let empty = || vec![Cell::default()];
        rows.iter_mut().filter(|row| row.is_empty()).for_each(|row| *row = empty());
        let groups: Vec<Cell> = rows.iter_mut().map(|row| row.remove(0)).collect();
        texts.extend(groups.iter().dedup().map(cell));
    }
    texts.extend(heads);
    texts.extend(rows.iter().flatten().map(cell));
    texts
}

/// Check that no page is wider than a narrow window, and that lines of text in a wide one are not long.
#[test]
fn fits() {
    let Some(mut browser) = browser("fits") else { return };
    for document in reports() {
        browser.load(&html_page(&document.clone().titled("Report")));
        browser.value(UNFOLD);
        for width in [NARROW, WIDE] {
            browser.look(width, "light");
            let hidden = "document.documentElement.scrollWidth - innerWidth";
            assert!(browser.value(hidden).as_i64().unwrap() <= 0, "{width}");
        }
        let longest = "Math.max(...[...document.querySelectorAll('p, li')].map(
            text => text.getBoundingClientRect().width))";
        assert!(browser.value(longest).as_f64().unwrap() <= 720.0);
    }
}

/// Check that a printed page has what is folded, and all of wide tables, in dark text on white.
#[test]
fn prints() {
    let Some(mut browser) = browser("prints") else { return };
    for document in reports() {
        browser.load(&html_page(&document.clone().titled("Report")));
        let pdf = browser.ask("Page.printToPDF", json!({}));
        assert!(pdf["data"].as_str().unwrap().starts_with("JVBERi0"), "no %PDF-");
        let dark = json!([{"name": "prefers-color-scheme", "value": "dark"}]);
        browser.ask(
            "Emulation.setEmulatedMedia",
            json!({"media": "print", "features": dark}),
        );
        let hidden =
            "[...document.querySelectorAll('p, td, th, dt, dd, li, pre')].filter(
            one => !one.checkVisibility()).map(one => one.outerHTML)";
        assert_eq!(browser.value(hidden), json!([]));
        let clipped = "[...document.querySelectorAll('.scroll, pre')].map(
            one => getComputedStyle(one).overflowX).filter(overflow => overflow != 'visible')";
        assert_eq!(browser.value(clipped), json!([]));
        let colours = "getComputedStyle(document.body).backgroundColor";
        assert_eq!(browser.value(colours), "rgb(255, 255, 255)");
    }
}
