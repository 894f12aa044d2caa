//! `--chart`: a bar chart of one metric of an experiment's cells.

use experiments::check_metric;
use report::{Cells, chart_svg};
use summary::MetricChart;

use crate::destination::Destination;
use crate::lab;
use crate::lab::args::ChartArgs;
use crate::outcome::Failure;
use crate::printing::say;

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
        check_metric(metric, &lab::metric_keys())?;
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
                if keys.is_empty() {
                    say("there is no chart: no cell has a result");
                    return Ok(());
                }
                Ok(check_metric(self.metric, &keys)?)
            }
        }
    }
}
