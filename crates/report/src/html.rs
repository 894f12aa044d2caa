//! Documents as one page of HTML, which is also well-formed XML. The page has no script, loads
//! nothing, and forbids the browser to.
//!
//! First is what a report on one screen has: the first blocks, the steps to take, the doubts, the other
//! sections. The sections of a full report are folds below.

mod block;
mod inline;
mod table;

use crate::chart::{CHART_SCRIPT, CHART_STYLE, has_frames};
use crate::document::list::Lead;
use crate::document::text::Text;
use crate::document::{Block, Content, Document, Shown};
use crate::html::block::Blocks;
use crate::html::inline::{inline, plain};

const STYLE: &str = include_str!("html/page.css");

/// The document as a page with this title, at full size.
pub fn html_page(document: &Document) -> String {
    let title = match document.title.is_empty() {
        true => "noisefloor report".to_owned(),
        false => plain(&document.title),
    };
    let script = script(document);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:{}\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <link rel=\"icon\" href=\"data:,\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}{CHART_STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n{}</main>\n{script}</body>\n</html>\n",
        if script.is_empty() { "" } else { "; script-src 'unsafe-inline'" },
        chapters(&title, &document.blocks),
    )
}

/// All reports of a page; each after the first has a title of its own.
fn chapters(page: &str, blocks: &[Block]) -> String {
    let mut numbered = Blocks::default();
    let is_title = |block: &Block| matches!(block.content, Content::Title(_));
    let chapters = blocks.chunk_by(|_, next| !is_title(next));
    let chapter = |blocks: &[Block]| match blocks.first().map(|block| &block.content) {
        Some(Content::Title(title)) => format!(
            "<article>\n<h2 class=\"chapter\">{}</h2>\n{}</article>\n",
            inline(title),
            body(&mut numbered, &plain(title), &blocks[1..])
        ),
        _ => body(&mut numbered, page, blocks),
    };
    chapters.map(chapter).collect()
}

/// What zooms and searches the frames of a flame graph; empty if there is none.
fn script(document: &Document) -> String {
    let has_frames = document.blocks.iter().any(
        |block| matches!(&block.content, Content::Chart(chart) if has_frames(chart)),
    );
    match has_frames {
        true => format!("<script>//<![CDATA[\n{CHART_SCRIPT}//]]></script>\n"),
        false => String::new(),
    }
}

/// A part of a page: the blocks below a heading.
#[derive(Default)]
struct Section<'a> {
    title: Option<&'a Text>,
    blocks: Vec<&'a Content>,
    /// Blocks of a full report that have no heading of their own.
    more: Vec<&'a Content>,
    /// Whether a block was left out that is on the page already.
    is_cut: bool,
}

impl Section<'_> {
    /// Whether it says what to do next.
    fn has_steps(&self) -> bool {
        let is_steps = |block: &&Content| matches!(block, Content::List(list) if list.lead == Lead::Number);
        self.blocks.iter().any(is_steps)
    }
}

/// The parts of a page.
struct Parts<'a> {
    first: Section<'a>,
    sections: Vec<Section<'a>>,
    /// The sections of a full report.
    full: Vec<Section<'a>>,
    doubts: Vec<&'a Text>,
}

impl<'a> Parts<'a> {
    fn of(blocks: &'a [Block]) -> Self {
        let (sections, full, doubts) = (Vec::new(), Vec::new(), Vec::new());
        let mut parts = Self { first: Section::default(), sections, full, doubts };
        let mut is_below_full = false;
        for block in blocks.iter().filter(|block| block.shown != Shown::Short) {
            let is_full = block.shown == Shown::Full;
            is_below_full &= is_full;
            match &block.content {
                Content::Doubts(doubts) => parts.doubts.extend(doubts),
                Content::Heading(title) => {
                    let of = if is_full { &mut parts.full } else { &mut parts.sections };
                    of.push(Section { title: Some(title), ..Section::default() });
                    is_below_full = is_full;
                }
                content @ (Content::Title(_)
                | Content::Paragraph(_)
                | Content::List(_)
                | Content::Table(_)
                | Content::Chart(_)
                | Content::Verbatim(_)
                | Content::Fitted(_)
                | Content::Footer(_)) => {
                    let own = parts.sections.last_mut().unwrap_or(&mut parts.first);
                    match parts.full.last_mut() {
                        full if is_full && is_short_form(blocks, content) => {
                            full.into_iter().for_each(|full| full.is_cut = true);
                        }
                        Some(full) if is_below_full => full.blocks.push(content),
                        _ if is_full => own.more.push(content),
                        _ => own.blocks.push(content),
                    }
                }
            }
        }
        parts.full.retain(|full| !full.is_cut || !full.blocks.is_empty());
        parts
    }
}

/// Whether the short form of a report has this block in place of more.
fn is_short_form(blocks: &[Block], content: &Content) -> bool {
    let is_short = |block: &&Block| block.shown == Shown::Screen;
    blocks.iter().filter(is_short).any(|block| block.content == *content)
}

/// The blocks of a report; `numbered` counts what has a number on the page.
fn body(numbered: &mut Blocks, title: &str, blocks: &[Block]) -> String {
    let mut parts = Parts::of(blocks);
    let mut html = section(numbered, title, &parts.first);
    // A stable sort: steps are first.
    parts.sections.sort_by_key(|section| !section.has_steps());
    let steps = parts.sections.iter().filter(|section| section.has_steps()).count();
    let (steps, others) = parts.sections.split_at(steps);
    html.extend(steps.iter().map(|one| section(numbered, title, one)));
    html.push_str(&doubts(&parts.doubts));
    html.extend(others.iter().map(|one| section(numbered, title, one)));
    html.extend(parts.full.iter().map(|one| fold(numbered, one)));
    html
}

/// A section; without a heading, its tables have the title of the page.
fn section(blocks: &mut Blocks, page: &str, section: &Section<'_>) -> String {
    let heading = section.title.map(|title| format!("<h2>{}</h2>\n", inline(title)));
    let title = section.title.map_or_else(|| page.to_owned(), plain);
    let own = blocks.html(&title, &section.blocks);
    let more = match section.more.is_empty() {
        true => String::new(),
        false => format!(
            "<details>\n<summary>More</summary>\n{}</details>\n",
            blocks.html(&title, &section.more)
        ),
    };
    format!("<section>\n{}{own}{more}</section>\n", heading.unwrap_or_default())
}

/// A section of a full report, folded.
fn fold(blocks: &mut Blocks, section: &Section<'_>) -> String {
    let title = section.title.cloned().unwrap_or_default();
    format!(
        "<details class=\"section\">\n<summary><h2>{}</h2></summary>\n{}</details>\n",
        inline(&title),
        blocks.html(&plain(&title), &section.blocks)
    )
}

fn doubts(doubts: &[&Text]) -> String {
    if doubts.is_empty() {
        return String::new();
    }
    let items = doubts.iter().map(|doubt| format!("<li>{}</li>\n", inline(doubt)));
    format!(
        "<aside>\n<h2>Doubts <small>reasons not to trust a number</small></h2>\n<ul>\n{}</ul>\n\
         </aside>\n",
        items.collect::<String>()
    )
}

#[cfg(test)]
mod tests;
