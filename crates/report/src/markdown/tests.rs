use insta::assert_snapshot;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use units::{printable, printable_lines};

use crate::document::arbitrary;
use crate::document::list::{Item, Lead, List};
use crate::document::table::{Cell, Column, Side, Table, cells};
use crate::document::text::{Text, text};
use crate::document::{Content, Document};
use crate::markdown::markdown_text;
use crate::terminal::table::bar;

/// What GitHub adds to CommonMark, and the parser knows.
const GITHUB: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_MATH)
    .union(Options::ENABLE_GFM);

/// What a reader finds, in order.
#[derive(Debug, PartialEq)]
enum Found {
    Heading(String),
    /// A paragraph, also of an item.
    Text(String),
    Code(String),
    /// An item: its number in a list with numbers.
    Item(Option<u64>),
    /// A table, with the columns that are aligned right.
    Table(Vec<bool>),
    Row(Vec<String>),
}

/// What a parser of CommonMark with GitHub's extensions finds.
#[expect(clippy::wildcard_enum_match_arm, reason = "all other markup is an error")]
fn read(markdown: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut text: Option<String> = None;
    let (mut cells, mut numbers) = (Vec::new(), Vec::new());
    let flush = |text: &mut Option<String>, found: &mut Vec<Found>| {
        found.extend(text.take().map(Found::Text));
    };
    for event in Parser::new_ext(markdown, GITHUB) {
        match event {
            Event::Text(more) | Event::Code(more) => {
                text.get_or_insert_default().push_str(&more);
            }
            Event::HardBreak => text.get_or_insert_default().push('\n'),
            Event::Start(Tag::Strong) | Event::End(TagEnd::Strong) => {}
            Event::Start(Tag::Paragraph | Tag::Heading { .. }) => {
                text = Some(String::new())
            }
            Event::End(TagEnd::Paragraph | TagEnd::Item) => flush(&mut text, &mut found),
            Event::End(TagEnd::Heading(_)) => {
                found.push(Found::Heading(text.take().unwrap_or_default()));
            }
            Event::Start(Tag::CodeBlock(_)) => {
                flush(&mut text, &mut found);
                text = Some(String::new());
            }
            Event::End(TagEnd::CodeBlock) => {
                found.push(Found::Code(text.take().unwrap_or_default()));
            }
            Event::Start(Tag::List(first)) => numbers.push(first),
            Event::End(TagEnd::List(_)) => drop(numbers.pop()),
            Event::Start(Tag::Item) => {
                let number = numbers.last_mut().unwrap();
                found.push(Found::Item(*number));
                *number = number.map(|number| number + 1);
            }
            Event::Start(Tag::Table(sides)) => {
                let right = |side| side == pulldown_cmark::Alignment::Right;
                found.push(Found::Table(sides.into_iter().map(right).collect()));
            }
            Event::Start(Tag::TableHead | Tag::TableRow) => cells.clear(),
            Event::End(TagEnd::TableHead | TagEnd::TableRow) => {
                found.push(Found::Row(std::mem::take(&mut cells)));
            }
            Event::Start(Tag::TableCell) => text = Some(String::new()),
            Event::End(TagEnd::TableCell) => cells.push(text.take().unwrap_or_default()),
            Event::End(TagEnd::Table) => {}
            other => panic!("{other:?} in {markdown}"),
        }
    }
    found
}

fn plain(text: &Text) -> String {
    printable(&text.to_string()).into_owned()
}

fn fence(lines: &str) -> Found {
    let lines = printable_lines(lines).into_owned();
    Found::Code(if lines.ends_with('\n') { lines } else { lines + "\n" })
}

fn paragraph(text: &Text) -> Option<Found> {
    (!text.is_empty()).then(|| Found::Text(plain(text)))
}

fn item(item: &Item) -> Vec<Found> {
    let code = item.commands.iter().chain(&item.verbatim);
    let texts = item.paragraphs.iter().filter_map(paragraph);
    texts.chain(code.map(|line| fence(&printable(line)))).collect()
}

/// What a reader is to find in a list.
fn list(list: &List) -> Vec<Found> {
    let is_line = |item: &Item| {
        item.paragraphs.len() == 1 && item.commands.is_empty() && item.verbatim.is_none()
    };
    if list.lead == Lead::None && list.items.iter().all(is_line) {
        let lines = list.items.iter().map(|item| plain(&item.paragraphs[0]));
        let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
        return (!lines.is_empty())
            .then(|| Found::Text(lines.join("\n")))
            .into_iter()
            .collect();
    }
    let items = list.items.iter().zip(1..).flat_map(|(one, number)| {
        let lead = match list.lead {
            Lead::None => None,
            Lead::Bullet => Some(Found::Item(None)),
            Lead::Number => Some(Found::Item(Some(number))),
        };
        lead.into_iter().chain(item(one))
    });
    items.collect()
}

fn cell(cell: &Cell) -> String {
    let text = cell.bar.map_or_else(|| plain(&cell.text), bar);
    format!("{}{text}{}", "\u{2003}".repeat(cell.depth), printable(&cell.tail))
}

fn table(table: &Table) -> Vec<Found> {
    let mut found = Vec::new();
    let row = |row: &Vec<Cell>| -> Vec<String> {
        let cells = row.iter().map(cell).chain(std::iter::repeat(String::new()));
        cells.take(table.columns.len()).collect()
    };
    if table.is_terms() {
        for row in table.rows.iter().map(row) {
            let between = if row.iter().any(String::is_empty) { "" } else { ": " };
            found.push(Found::Item(None));
            found.extend(
                Some(row.join(between)).filter(|text| !text.is_empty()).map(Found::Text),
            );
        }
    } else if !table.columns.is_empty() {
        let right = |column: &Column| column.side == Side::Right;
        found.push(Found::Table(table.columns.iter().map(right).collect()));
        let head = |column: &Column| plain(&column.heading());
        found.push(Found::Row(table.columns.iter().map(head).collect()));
        found.extend(table.rows.iter().map(|cells| Found::Row(row(cells))));
    }
    found.extend([&table.rest, &table.legend].into_iter().filter_map(paragraph));
    found
}

/// What a reader is to find.
fn expected(document: &Document) -> Vec<Found> {
    let found = document.blocks.iter().flat_map(|block| match &block.content {
        Content::Title(text) => vec![Found::Heading(plain(text))],
        Content::Heading(text) if text.is_empty() => Vec::new(),
        Content::Heading(text) => vec![Found::Heading(plain(text))],
        Content::Paragraph(text) => paragraph(text).into_iter().collect(),
        Content::List(one) => list(one),
        Content::Table(one) => table(one),
        Content::Chart(_) | Content::Fitted(_) | Content::Footer(_) => Vec::new(),
        Content::Doubts(doubts) => {
            let items = doubts.iter().flat_map(|doubt| {
                std::iter::once(Found::Item(None)).chain(paragraph(doubt))
            });
            let title = "Doubts (reasons not to trust a number)".to_owned();
            std::iter::once(Found::Heading(title)).chain(items).collect()
        }
        Content::Verbatim(lines) if lines.is_empty() => Vec::new(),
        Content::Verbatim(lines) => vec![fence(lines)],
    });
    found.collect()
}

proptest! {
    /// Check that a parser finds the blocks, cells and texts of any document, and no other markup.
    #[test]
    fn any_document(document in arbitrary::document()) {
        let markdown = markdown_text(&document);
        prop_assert_eq!(read(&markdown), expected(&document), "{}", markdown);
    }

    /// Check that a parser finds exactly the printable form of any text, wherever it is.
    #[test]
    fn any_text(text in arbitrary::text()) {
        let mut table = Table::new(["a"].map(Column::number));
        table.row([text.clone()]);
        let document = Document::from(text.clone())
            .lines([text.clone(), text.clone()])
            .add(table.legend(text));
        let markdown = markdown_text(&document);
        prop_assert_eq!(read(&markdown), expected(&document), "{}", markdown);
    }
}

/// A report with each kind of block.
fn report() -> Document {
    let step = Item::new(text!("Restart {} as root.", Text::command("noisefloor check")));
    let step = step.command("sudo noisefloor check | less");
    let mut table = Table::new([
        Column::group("kernel", 6..=36),
        Column::name("source", 6..=23),
        Column::number("gaps").above("idle"),
    ]);
    table.row(cells![Text::name("6.12"), Text::name("tick_nohz_handler"), "-1.5 %"]);
    table.row(cells![
        "6.12 #1",
        Cell::from(Text::name("kworker")).tail(" (12)").deep(1),
        "-"
    ]);
    let table = table.rest("1 more.").legend("\"gaps\": <b>not</b> tick_nohz @all");
    Document::from(text!("Noise of {} on CPU 1.", Text::name("a|b`c")))
        .add(Document::section("Findings", List::numbered([step])))
        .add(Document::section("Sources of noise", table))
        .add(Table::terms([["kernel", "1. *unknown*"]]))
        .lines(["- one", "= two"].map(Text::from))
        .reasons(["10 s are short".into()])
        .add(Content::Verbatim("/path/``` of\n\tall\n".to_owned()))
}

/// Check what a report looks like.
#[test]
fn of_all_blocks() {
    assert_snapshot!(markdown_text(&report()));
}

/// Check that words that GitHub replaces by links or formulas are code.
#[test]
fn of_links() {
    let document =
        Document::from("#1 SMP, see @user or a#b, $x$ and WWW.a.b: http://a.b");
    let markdown = "`#1` SMP, see `@user` or a\\#b, `$x$` and `WWW.a.b:` `http://a.b`\n";
    assert_eq!(markdown_text(&document), markdown);
}
