//! `--chart`: a bar chart of one metric of an experiment's cells.

use experiments::suggest;
use report::{Cells, chart_svg};
use stats::MetricChart;

use crate::destination::Destination;
use crate::lab;
use crate::lab::args::ChartArgs;
use crate::outcome::Failure;

/// A chart to draw.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chart<'a> {
    /// Its file.
    pub(crate) to: Destination<'a>,
    metric: &'a str,
}

impl ChartArgs {
    /// The requested chart, if any; its metric exists, and its file is an SVG.
    pub(crate) fn chart(&self) -> Result<Option<Chart<'_>>, Failure> {
        let (Some(file), Some(metric)) = (&self.chart, &self.metric) else {
            return Ok(None);
        };
        let to = Destination::new("--chart", file);
        if !to.is_stdout() && file.extension().is_none_or(|ending| ending != "svg") {
            return Err(to.refuse("expected FILE.svg"));
        }
        let known = lab::metric_keys();
        if !known.contains(metric) {
            return Err(unknown(metric, &known, "no cell has this metric"));
        }
        Ok(Some(Chart { to, metric }))
    }
}

impl Chart<'_> {
    /// Draws the cells.
    pub(crate) fn draw(self, cells: &Cells<'_>) -> Result<(), Failure> {
        match MetricChart::of(cells.cells, self.metric) {
            Some(chart) => self.to.write(&chart_svg(cells, &chart)),
            None => {
                let keys = MetricChart::keys(cells.cells);
                let why = format!("no cell of {} has this metric", cells.experiment);
                Err(unknown(self.metric, &keys, &why))
            }
        }
    }
}

/// The error for a metric that is not among these.
fn unknown(metric: &str, known: &[String], why: &str) -> Failure {
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let hint = match names.is_empty() {
        true => String::new(),
        false => format!("; hint: {}", suggest(metric, &names)),
    };
    Failure::usage(format!("--metric {metric}: {why}{hint}"))
}
