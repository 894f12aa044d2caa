//! Any documents, with strings that try to become markup, for the tests of renderers.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::document::list::{Item, Lead, List};
use crate::document::table::{Cell, Column, Table};
use crate::document::text::Text;
use crate::document::{Content, Document, Importance};

/// What means something in Markdown, HTML or terminals, or is easily lost.
const MARKUP: [&str; 54] = [
    "\x1b[2J",
    "\n",
    "\r\n",
    "\t",
    "\0",
    "\u{202e}",
    "\u{fffd}",
    "\u{ffff}",
    "\u{a0}",
    "\u{3000}",
    "<b>",
    "</td>",
    "<script>",
    "<!--",
    "-->",
    "]]>",
    "<![CDATA[",
    "&amp;",
    "&#124;",
    "&",
    "\"",
    "'",
    "`",
    "``",
    "```",
    "~~~",
    "~",
    "|",
    "\\",
    "\\|",
    "\\`",
    "[x]",
    "](y)",
    "[^1]",
    "![",
    "*",
    "**",
    "_",
    "__",
    "#",
    "## ",
    "- ",
    "+ ",
    "> ",
    "1. ",
    "1) ",
    "===",
    "---",
    ":-:",
    "$x$",
    "@user",
    "http://a.b",
    "www.a.b",
    "é",
];

/// A string that is hostile, or long, or neither.
pub(crate) fn string() -> BoxedStrategy<String> {
    let piece = prop_oneof![
        4 => proptest::sample::select(&MARKUP[..]).prop_map(str::to_owned),
        2 => "[ a-z0-9_.:/-]{0,6}",
        1 => any::<char>().prop_map(String::from),
    ];
    let pieces = vec(piece, 0..7).prop_map(|pieces| pieces.concat());
    prop_oneof![
        20 => pieces.clone(),
        1 => (pieces, 1..200_usize).prop_map(|(text, times)| text.repeat(times)),
    ]
    .boxed()
}

pub(crate) fn text() -> BoxedStrategy<Text> {
    let part = (0..5, string()).prop_map(|(mark, text)| match mark {
        0 => Text::name(text),
        1 => Text::command(text),
        2 => Text::number(text),
        _ => Text::from(text),
    });
    vec(part, 0..4).prop_map(|parts| Text::join(parts, "")).boxed()
}

fn item() -> impl Strategy<Value = Item> {
    (vec(text(), 0..3), vec(string(), 0..3), option::of(string())).prop_map(
        |(paragraphs, commands, verbatim)| Item { paragraphs, commands, verbatim },
    )
}

fn list() -> impl Strategy<Value = List> {
    let lead = proptest::sample::select(&[Lead::None, Lead::Bullet, Lead::Number][..]);
    let lines =
        vec(text(), 0..4).prop_map(|texts| texts.into_iter().map(Item::from).collect());
    (lead, prop_oneof![vec(item(), 0..4), lines])
        .prop_map(|(lead, items)| List { lead, items })
}

fn column() -> impl Strategy<Value = Column> {
    (0..5, text(), string()).prop_map(|(kind, head, above)| match kind {
        0 => Column::words(head),
        1 => Column::name(head, 6..=23),
        2 => Column::number(head).above(above),
        3 => Column::prose(head),
        _ => Column::words(""),
    })
}

fn cell() -> impl Strategy<Value = Cell> {
    let bar = option::weighted(0.1, 0.0..=1.0);
    (text(), option::of(text()), string(), 0..3_usize, bar).prop_map(
        |(text, short, tail, depth, bar)| Cell { text, short, tail, depth, bar },
    )
}

fn table() -> impl Strategy<Value = Table> {
    let columns = prop_oneof![
        3 => (vec(column(), 0..4), option::of(text())).prop_map(|(mut columns, group)| {
            if let Some(head) = group {
                columns.insert(0, Column::group(head, 6..=36));
            }
            columns
        }),
        1 => Just(Table::terms::<Text>([]).columns),
    ];
    let rows = vec(vec(cell(), 0..4), 0..4);
    (columns, rows, text(), text()).prop_map(|(columns, mut rows, rest, legend)| {
        rows.iter_mut().for_each(|row| row.truncate(columns.len()));
        Table { columns, rows, rest, legend }
    })
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        text().prop_map(Content::Heading),
        text().prop_map(Content::Paragraph),
        list().prop_map(Content::List),
        table().prop_map(Content::Table),
        vec(text(), 0..3).prop_map(Content::Doubts),
        string().prop_map(Content::Verbatim),
    ]
}

/// Any document.
pub(crate) fn document() -> impl Strategy<Value = Document> {
    vec((any::<bool>(), content()), 0..6).prop_map(|blocks| {
        let add = |document: Document, (is_full, content): (bool, Content)| match is_full
        {
            true => document.add_full(content),
            false => document.add(content),
        };
        let document = blocks.into_iter().fold(Document::default(), add);
        debug_assert!(document.shown(Importance::Full).count() == document.blocks.len());
        document
    })
}
