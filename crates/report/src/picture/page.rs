//! The picture of `slices` as a page: self-contained HTML with the picture, its numbers as a
//! table, and how to read it.
//!
//! Written so that it is XML too, and loads nothing. Where somebody saw nothing the table says
//! so, as all tables do.

use facts::Facts;
use recording::{SlicesSeries, SlicesSpec};
use stats::SlicesPicture;

use crate::picture::slices::{asked, machine, step_figures, svg};
use crate::picture::xml::escaped;

const STYLE: &str = include_str!("page.css");

/// What a reader who has never seen the picture needs.
const WATCHED: &str = "A slice is how long a spinner, a task that uses all the CPU time it gets, \
    runs until the scheduler takes the CPU away. Each row is a CPU for the same short time, each \
    shade a spinner. A mark with a head is a task that woke up and preempted the one that ran: \
    where many of them stand close to each other, wake-ups and not the scheduler's own slices \
    decide how long spinners run. In the histograms those slices have the marks' colour. Point \
    at anything to see what it is.";
const UNWATCHED: &str = "A slice is how long a spinner, a task that uses all the CPU time it \
    gets, runs until the scheduler takes the CPU away. Here a slice's mean length is the \
    spinners' CPU time by how often they had to leave a CPU, as the kernel accounts for both. \
    Which task ran when takes root to watch.";

/// The picture as a page.
pub fn slices_html(facts: &Facts, spec: &SlicesSpec, series: &SlicesSeries) -> String {
    let picture = SlicesPicture::of(spec, series);
    let how = if picture.lost.is_some() { WATCHED } else { UNWATCHED };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>Slices: {}, {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{}\
         {}<p>{how}</p>\n</main>\n</body>\n</html>\n",
        escaped(&asked(spec)),
        escaped(&machine(facts)),
        svg(facts, spec, &picture),
        table(&picture),
    )
}

fn table(picture: &SlicesPicture) -> String {
    let row = |cells: [&str; 6], tag: &str| {
        let cells = cells.map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell)));
        format!("<tr>{}</tr>\n", cells.concat())
    };
    let steps = picture.steps.iter().map(|step| {
        let figures = step_figures(step);
        let [mean, p50, p99, rate, seen] =
            figures.each_ref().map(|(_, figure)| figure.as_str());
        row([&step.text, mean, p50, p99, rate, seen], "td")
    });
    let head = ["step", "mean slice", "p50", "p99", "slices", "seen whole"];
    format!(
        "<div class=\"figures\"><table>\n{}{}</table></div>\n",
        row(head, "th"),
        steps.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::slices as slices_example;
    use crate::example::{GUEST, facts};
    use crate::picture::xml::checked::check_xml;

    fn page(spec: &SlicesSpec, series: &SlicesSeries) -> String {
        let page = slices_html(&facts(GUEST), spec, series);
        let root = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
        check_xml(&format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{root}"));
        page
    }

    /// Check that a page is well-formed, loads nothing, and has every step's figures.
    #[test]
    fn of_two_steps() {
        let (spec, series) = slices_example::woken();
        let page = page(&spec, &series);
        let links = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(
            !links.contains("http") && !links.contains("href") && !links.contains("src=")
        );
        assert_eq!(page.matches("<tr>").count(), 3);
        assert!(page.contains("<td>WAKEUP_PREEMPTION=off</td><td>"));
        assert!(page.contains("A mark with a head"));
    }

    /// Check that a page of which nobody watched the switches does not make any up.
    #[test]
    fn unwatched() {
        let (spec, series) = slices_example::unwatched();
        let page = page(&spec, &series);
        assert!(page.contains("<td>?</td><td>?</td>"));
        assert!(!page.contains("A mark with a head"));
    }
}
