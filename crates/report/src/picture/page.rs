//! The HTML page of `slices`: the picture, its numbers as a table, and an explanation.
//!
//! The page is also well-formed XML, and loads nothing.

use facts::Facts;
use recording::{SlicesSeries, SlicesSpec};
use summary::SlicesPicture;

use crate::picture::slices::{machine, step_figures, svg, workload};
use crate::picture::xml::escape;

const STYLE: &str = include_str!("page.css");

/// The explanation of the picture.
const TRACED: &str = "A slice is the time that a spinner, a task that never sleeps, runs until \
    the scheduler preempts it. Each row is a CPU during the same short period, each shade a \
    spinner. A mark with a head is a task that woke up and preempted the running task: if there \
    are many of them close to each other, wake-ups determine how long spinners run, and not the \
    scheduler's time slice. In the histograms those slices have the colour of the marks. All \
    elements have tool-tips.";
/// The same if switches were not traced.
const UNTRACED: &str = "A slice is the time that a spinner, a task that never sleeps, runs until \
    the scheduler preempts it. The mean slice is the spinners' CPU time divided by the number of \
    their involuntary context switches, both as accounted by the kernel. Scheduler switches were \
    not traced, which needs root.";

/// The picture as a page.
pub fn slices_html(facts: &Facts, spec: &SlicesSpec, series: &SlicesSeries) -> String {
    let picture = SlicesPicture::of(spec, series);
    let how = if picture.lost.is_some() { TRACED } else { UNTRACED };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>Slices: {}, {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{}\
         {}<p>{how}</p>\n</main>\n</body>\n</html>\n",
        escape(&workload(spec)),
        escape(&machine(facts)),
        svg(facts, spec, &picture),
        table(&picture),
    )
}

fn table(picture: &SlicesPicture) -> String {
    let row = |cells: [&str; 6], tag: &str| {
        let cells = cells.map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)));
        format!("<tr>{}</tr>\n", cells.concat())
    };
    let steps = picture.steps.iter().map(|step| {
        let figures = step_figures(step);
        let [mean, p50, p99, rate, complete] =
            figures.each_ref().map(|(_, figure)| figure.as_str());
        row([&step.text, mean, p50, p99, rate, complete], "td")
    });
    let head = ["variant", "mean slice", "p50", "p99", "slices", "complete slices"];
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

    /// Check that a page is well-formed, loads nothing, and has the figures of each variant.
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

    /// Check that a page without traced switches has no figures of them.
    #[test]
    fn untraced() {
        let (spec, series) = slices_example::untraced();
        let page = page(&spec, &series);
        assert!(page.contains("<td>?</td><td>?</td>"));
        assert!(!page.contains("A mark with a head"));
    }
}
