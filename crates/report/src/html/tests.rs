mod browser;
mod read;

use proptest::prelude::*;

use crate::chart::svg::checked::check_xml;
use crate::document::list::{Item, List};
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::{Text, text};
use crate::document::{Content, Document, arbitrary};
use crate::html::html_page;
use crate::html::inline::{inline, lines, shown};
use crate::number;

/// A report with each kind of block, and hostile names.
pub(crate) fn report() -> Document {
    let hostile = Text::name("<b>\"&\x1b[2J]]>");
    let step =
        Item::new(text!("The tick stops on idle CPUs ({}).", Text::command("nohz=on")));
    let step =
        step.and("It is not needed there.").command("sudo noisefloor check -c '0 1'");
    let full = Document::from(text!(
        "Set {} before.",
        Text::command("kernel.sched_rt_runtime_us=-1")
    ))
    .add(Document::section("Time by length", bars()))
    .add(Document::section("Machine", machine(hostile.clone())))
    .add(Content::Verbatim("/proc/interrupts\n\tLOC: <1>\n".to_owned()));
    Document::from(text!(
        "CPU 1 lost {} of its time to {}.",
        units::Ppm::new(2_000.0),
        hostile.clone()
    ))
    .lines(["One line.", "Another line."].map(Text::from))
    .add(Document::section("Sources of noise", sources(hostile.clone())))
    .reasons(["10 s are short".into(), text!("{} began late", hostile)])
    .add_full(full)
    .heading("Findings, each with the next command to run")
    .add(List::numbered([step, Item::new("Run it for longer.")]))
    .add(List::bullets([Item::new("A log:").verbatim("/var/log/<x>.json")]))
}

fn sources(hostile: Text) -> Table {
    let mut table = Table::new([
        Column::group("kernel", 6..=36),
        Column::name("source", 6..=23),
        Column::number("gaps").above("idle"),
        Column::prose("about"),
    ]);
    let kernel = || Text::name("6.12.48+deb13");
    table.row(cells![
        kernel(),
        Text::name("tick_nohz_handler"),
        number::count(12_345),
        "the tick"
    ]);
    table.row(cells![
        kernel(),
        Cell::from(hostile).tail(" (123)").deep(1),
        Cell::from("7").tail("*"),
        "a thread that runs once in a while, and does nothing of use to other tasks"
    ]);
    table.row(cells![Text::name("6.1"), Text::name("x".repeat(10_000)), "?"]);
    table.rest("9 more.").legend("\"gaps\": times that the loop was interrupted.")
}

fn bars() -> Table {
    let mut table = Table::new([Column::words("length"), Column::words("")]);
    table.row(cells!["1 µs", Cell::bar(1.0)]);
    table.row(cells!["10 µs", Cell::bar(0.25)]);
    table
}

fn machine(hostile: Text) -> Table {
    Table::terms([cells!["kernel", hostile], cells!["clock", "tsc, which is constant"]])
}

/// The page, which is checked to be well-formed.
fn page(title: &str, document: &Document) -> String {
    let page = html_page(&document.clone().titled(title));
    let root = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    check_xml(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{root}"));
    page
}

/// The positions of these strings, which are there.
fn positions<const N: usize>(page: &str, strings: [&str; N]) -> [usize; N] {
    strings.map(|string| page.find(string).unwrap_or_else(|| panic!("{string}: {page}")))
}

/// Check that a page has all blocks, with steps and doubts before other sections, and folds after them.
#[test]
fn of_all_blocks() {
    let page = page("Noise of <pc>", &report());
    let order = positions(
        &page,
        [
            "<h1>Noise of &lt;pc&gt;</h1>",
            "<li>Another line.</li>",
            "<h2>Findings",
            "<pre class=\"command\"><code>sudo noisefloor check -c '0 1'</code></pre>",
            "<aside>",
            "<h2>Sources",
            "<summary>More</summary>",
            "<summary><h2>Time by length</h2></summary>",
            "<i style=\"width:25.0%\">",
            "<dt>kernel</dt><dd><code>&lt;b&gt;&quot;&amp;\\x1b[2J]]&gt;</code></dd>",
            "<pre tabindex=\"0\"><code>/proc/interrupts\n\tLOC: &lt;1&gt;\n</code></pre>",
        ],
    );
    assert!(order.is_sorted(), "{order:?}");
    positions(
        &page,
        [
            "<th scope=\"col\">kernel, source</th><th scope=\"col\" class=\"n\">idle<br/>gaps</th>",
            "<th scope=\"rowgroup\" colspan=\"3\"><code>6.12.48+deb13</code></th>",
            "<td class=\"n\">7<span class=\"mark\">*</span></td>",
            "lost <span class=\"n\">0.2 %</span> of",
            "<caption id=\"t1\">Sources of noise</caption>",
        ],
    );
    assert!(
        !page.contains("<script") && !page.contains("http:") && !page.contains("https:")
    );
}

/// Check that what a short report shows in place of more is not repeated.
#[test]
fn of_a_short_form() {
    let part = |sentences: &[&str]| {
        Document::default().heading("What to do").add_all(sentences.iter().copied())
    };
    let of = |short: &[&str], full: &[&str]| {
        page("Check", &Document::default().add_screen(part(short)).add_full(part(full)))
    };
    let same = of(&["One.", "Two."], &["One.", "Two."]);
    assert_eq!((same.matches("<p>").count(), same.matches("What to do").count()), (2, 1));
    let more = of(&["One."], &["One.", "Two."]);
    assert_eq!((more.matches("<p>").count(), more.matches("What to do").count()), (2, 2));
}

/// The number of tables of a document that are tables on its page, and of their rows.
fn tables(document: &Document) -> (usize, usize) {
    let tables = document.blocks.iter().filter_map(|block| {
        let Content::Table(table) = &block.content else { return None };
        (!table.is_terms() && !table.columns.is_empty()).then_some(table)
    });
    tables.fold((0, 0), |(tables, rows), table| (tables + 1, rows + table.rows.len()))
}

fn paragraphs(document: &Document) -> Vec<String> {
    let texts = document.blocks.iter().flat_map(|block| match &block.content {
        Content::Title(text) | Content::Paragraph(text) | Content::Heading(text) => {
            vec![inline(text)]
        }
        Content::Chart(_) | Content::Fitted(_) | Content::Footer(_) => Vec::new(),
        Content::Doubts(doubts) => doubts.iter().map(inline).collect(),
        Content::List(list) => list
            .items
            .iter()
            .flat_map(|item| item.commands.iter().map(String::as_str))
            .map(shown)
            .collect(),
        Content::Table(table) => vec![inline(&table.legend)],
        Content::Verbatim(text) => vec![lines(text)],
    });
    texts.collect()
}

proptest! {
    /// Check that the page of any document is well-formed, and has all of its tables and texts.
    #[test]
    fn any_document(title in arbitrary::string(), document in arbitrary::document()) {
        let page = page(&title, &document);
        let rows = page.matches("<tr>").count() - page.matches("<thead>").count();
        prop_assert_eq!((page.matches("</table>").count(), rows), tables(&document));
        for text in paragraphs(&document) {
            prop_assert!(page.contains(&text), "{} in {}", text, page);
        }
        let tags = ["<script", "<b>", "<img", "<!--", "<![CDATA["];
        prop_assert!(!tags.iter().any(|tag| page.contains(tag)), "{}", page);
    }
}
