//! Blocks of documents in HTML.

use crate::chart::{self, numbers::numbers};
use crate::document::Content;
use crate::document::chart::Chart;
use crate::document::list::{Item, Lead, List};
use crate::document::table::{Cell, Table};
use crate::document::text::Text;
use crate::html::inline::{inline, lines, plain, shown};
use crate::html::table;

/// The blocks of a page: what is numbered among them.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// The captions of its tables.
    captions: Vec<String>,
}

impl Blocks {
    /// The blocks of a section with this title, which is HTML.
    pub(crate) fn html(&mut self, title: &str, blocks: &[&Content]) -> String {
        blocks.iter().map(|block| self.block(title, block)).collect()
    }

    fn block(&mut self, title: &str, block: &Content) -> String {
        match block {
            // Sections have both.
            Content::Title(text) | Content::Heading(text) => paragraph(text),
            Content::Doubts(doubts) => doubts.iter().map(paragraph).collect(),
            Content::Paragraph(text) => paragraph(text),
            Content::List(list) => self::list(list),
            Content::Table(table) => self.table(title, table),
            Content::Chart(chart) => self.figure(chart),
            Content::Verbatim(lines) if lines.is_empty() => String::new(),
            Content::Verbatim(lines) => verbatim(lines),
            // A page has all of it elsewhere.
            Content::Fitted(_) | Content::Footer(_) => String::new(),
        }
    }

    /// A picture, whose numbers are also tables, in a fold.
    fn figure(&mut self, chart: &Chart) -> String {
        let svg = chart::embedded(chart);
        let numbers = numbers(chart);
        let numbers: Vec<&Content> =
            numbers.blocks.iter().map(|block| &block.content).collect();
        let table = self.html(&plain(&chart.title), &numbers);
        format!(
            "<figure>\n{svg}<details>\n<summary>Numbers of this picture</summary>\n{table}</details>\n\
             </figure>\n"
        )
    }

    fn table(&mut self, title: &str, table: &Table) -> String {
        let rows = match table.is_terms() {
            true => terms(table),
            false if table.columns.is_empty() => String::new(),
            false => {
                let before = self.captions.iter().filter(|one| *one == title).count();
                self.captions.push(title.to_owned());
                let caption = match before {
                    0 => title.to_owned(),
                    _ => format!("{title} ({})", before + 1),
                };
                table::scrolled(table, &format!("t{}", self.captions.len()), &caption)
            }
        };
        let note = |text: &Text| match text.is_empty() {
            true => String::new(),
            false => format!("<p class=\"note\">{}</p>\n", inline(text)),
        };
        rows + &note(&table.rest) + &note(&table.legend)
    }
}

fn paragraph(text: &Text) -> String {
    if text.is_empty() { String::new() } else { format!("<p>{}</p>\n", inline(text)) }
}

fn verbatim(text: &str) -> String {
    format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", lines(text))
}

fn list(list: &List) -> String {
    let tag = if list.lead == Lead::Number { "ol" } else { "ul" };
    let class = if list.lead == Lead::None { " class=\"lines\"" } else { "" };
    let items: String = list.items.iter().map(item).collect();
    if items.is_empty() { items } else { format!("<{tag}{class}>\n{items}</{tag}>\n") }
}

fn item(item: &Item) -> String {
    let code = |class: &str, line: &String| {
        format!("<pre class=\"{class}\"><code>{}</code></pre>\n", shown(line))
    };
    let command: String = item.commands.iter().map(|run| code("command", run)).collect();
    let verbatim: String = item.verbatim.iter().map(|line| code("line", line)).collect();
    match &item.paragraphs[..] {
        texts @ ([] | [_]) if command.is_empty() && verbatim.is_empty() => {
            format!("<li>{}</li>\n", texts.iter().map(inline).collect::<String>())
        }
        texts => {
            let texts: String = texts.iter().map(paragraph).collect();
            format!("<li>\n{texts}{command}{verbatim}</li>\n")
        }
    }
}

/// Terms and their descriptions.
fn terms(table: &Table) -> String {
    let empty = Cell::default();
    let row = |row: &Vec<Cell>| {
        let cell = |at: usize| table::content(row.get(at).unwrap_or(&empty));
        format!("<div><dt>{}</dt><dd>{}</dd></div>\n", cell(0), cell(1))
    };
    let rows: String = table.rows.iter().map(row).collect();
    if rows.is_empty() { rows } else { format!("<dl>\n{rows}</dl>\n") }
}
