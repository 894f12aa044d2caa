//! What each step of a series changes, alone and together with the steps before it: one number of each
//! cell, compared with the base, and the size of the image.
//!
//! The numbers are metrics (`crate::metrics`), one for each kind of measurement; of system calls the
//! sum of the medians. A number of cells with variations has changed only if that is more than the
//! variations do.

mod number;

use recording::Cell;
use serde::Serialize;
use stats::{Better, Unit, none_above_ppm, relative};
use units::Ppm;

use crate::cell::trim::number::{Number, numbers};

/// The gain in throughput that a blog post of 2013 claims for a trimmed kernel, at most.
const OLD_CLAIM: Ppm = Ppm::new(200_000.0);

/// A base kernel, and steps that change options of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrimSeries {
    /// The name of the base.
    pub base: String,
    /// The steps in their order.
    pub steps: Vec<TrimStep>,
}

/// A step of a series, with its two kernels: their names, or what they have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrimStep<K = String> {
    /// Its name.
    pub name: String,
    /// The options that it sets: `AUDIT=n`.
    pub options: Vec<String>,
    /// What it costs in safety or function; may be empty.
    pub costs: String,
    /// The base with this step.
    pub alone: K,
    /// The base with this step and all before it.
    pub cumulated: K,
}

/// A step with its results.
pub type TrimResult = TrimStep<TrimKernel>;

impl TrimSeries {
    /// The names of its kernels, each once: the base, the single steps, the cumulated ones.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        let alone = self.steps.iter().map(|step| step.alone.as_str());
        let others = self.steps.iter().filter(|step| step.cumulated != step.alone);
        let cumulated = others.map(|step| step.cumulated.as_str());
        std::iter::once(self.base.as_str()).chain(alone).chain(cumulated)
    }
}

/// The results of a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trim {
    /// The base; its differences are 0.
    pub base: TrimKernel,
    /// The steps in their order.
    pub steps: Vec<TrimResult>,
    /// The gain in throughput that an old post claims, at most.
    pub old_claim_ppm: Ppm,
}

/// A kernel of a series, compared with the base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrimKernel {
    /// Its name.
    pub kernel: String,
    /// The size of its image in bytes; null if it is not known.
    pub image_bytes: Option<u64>,
    /// The difference to the base's; null if one is not known.
    pub image_difference_bytes: Option<i64>,
    /// The numbers of its cells, in the order of the base's; null for one that is lost or not run.
    pub values: Vec<Option<TrimValue>>,
}

/// The number of a cell, compared with that of the base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrimValue {
    /// The cell's name.
    pub cell: String,
    /// The metric; `calls_instructions` is the sum over all calls.
    pub metric: String,
    /// Its value.
    pub value: f64,
    /// The difference to the base.
    pub difference: f64,
    /// The same in parts of the base's value; null if that is 0.
    pub difference_ppm: Option<Ppm>,
    /// The largest difference that there may be, in parts of the base's value, if the cells have
    /// variations that show none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub none_above_ppm: Option<Ppm>,
    /// The difference of a program's throughput in parts of the base's; null if it has none.
    pub throughput_ppm: Option<Ppm>,
    /// The calls that the sum consists of; empty for other metrics.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<TrimCall>,
    /// The unit.
    #[serde(skip)]
    pub unit: Unit,
    /// Which values are better.
    #[serde(skip)]
    pub better: Better,
}

/// A call, compared with that of the base.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrimCall {
    /// Its name: `getpid`.
    pub name: String,
    /// Its median cost, in instructions.
    pub value: f64,
    /// The difference to the base.
    pub difference: f64,
}

impl TrimValue {
    /// By how much it is better than the base's, in parts of that; negative if it is worse; `None` if
    /// no value is better. Zero if the variations show no difference.
    pub fn gain_ppm(&self) -> Option<Ppm> {
        let difference = match self.none_above_ppm {
            Some(_) => 0.0,
            None => self.difference_ppm?.get(),
        };
        match self.better {
            Better::Less => Some(Ppm::new(-difference)),
            Better::More => Some(Ppm::new(difference)),
            Better::Neither => None,
        }
    }
}

impl TrimResult {
    /// The largest gain of the step alone, of which a loss is a negative one.
    pub fn best(&self) -> Option<&TrimValue> {
        self.gains().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, value)| value)
    }

    /// The smallest gain of the step alone, of which a loss is a negative one.
    pub fn worst(&self) -> Option<&TrimValue> {
        self.gains().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, value)| value)
    }

    fn gains(&self) -> impl Iterator<Item = (f64, &TrimValue)> {
        let values = self.alone.values.iter().flatten();
        values.filter_map(|value| Some((value.gain_ppm()?.get(), value)))
    }
}

impl Trim {
    /// The results of a series in these cells; `None` if no cell of the base has a number.
    pub fn of(series: &TrimSeries, cells: &[Cell]) -> Option<Self> {
        let base = numbers(cells, &series.base);
        if base.is_empty() {
            return None;
        }
        let compared = |kernel: &str| TrimKernel::of(kernel, cells, &series.base, &base);
        let steps = series.steps.iter().cloned().map(|step| TrimStep {
            name: step.name,
            options: step.options,
            costs: step.costs,
            alone: compared(&step.alone),
            cumulated: compared(&step.cumulated),
        });
        Some(Self {
            base: compared(&series.base),
            steps: steps.collect(),
            old_claim_ppm: OLD_CLAIM,
        })
    }
}

impl TrimKernel {
    fn of(kernel: &str, cells: &[Cell], base: &str, numbers_of_base: &[Number]) -> Self {
        let own = numbers(cells, kernel);
        let values = numbers_of_base.iter().map(|from| {
            let same =
                |one: &&Number| (&one.cell, &one.metric) == (&from.cell, &from.metric);
            own.iter().find(same).map(|own| TrimValue::of(own, from))
        });
        let image = |kernel: &str| {
            let cells = cells.iter().filter(|cell| cell.asked == kernel);
            cells.filter_map(|cell| cell.image_bytes).next()
        };
        let signed = |bytes: Option<u64>| i64::try_from(bytes?).ok();
        let difference = signed(image(kernel)).zip(signed(image(base)));
        Self {
            kernel: kernel.to_owned(),
            image_bytes: image(kernel),
            image_difference_bytes: difference.map(|(own, base)| own - base),
            values: values.collect(),
        }
    }
}

impl TrimValue {
    fn of(own: &Number, base: &Number) -> Self {
        let within = own.within.hypot(base.within);
        let varied = Some(within).filter(|within| *within > 0.0);
        Self {
            cell: own.cell.clone(),
            metric: own.metric.clone(),
            value: own.value,
            difference: own.value - base.value,
            difference_ppm: relative(own.value, base.value),
            none_above_ppm: varied
                .and_then(|within| none_above_ppm(base.value, own.value, within)),
            throughput_ppm: own
                .throughput
                .zip(base.throughput)
                .and_then(|(own, base)| relative(own, base)),
            calls: own.calls.iter().filter_map(|call| TrimCall::of(call, base)).collect(),
            unit: own.unit,
            better: own.better,
        }
    }
}

impl TrimCall {
    fn of((name, value): &(String, f64), base: &Number) -> Option<Self> {
        let (_, from) = base.calls.iter().find(|(other, _)| other == name)?;
        Some(Self { name: name.clone(), value: *value, difference: value - from })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(metric: &str, own: f64, base: f64, better: Better) -> TrimValue {
        varied(metric, own, base, better, 0.0)
    }

    fn varied(
        metric: &str,
        own: f64,
        base: f64,
        better: Better,
        within: f64,
    ) -> TrimValue {
        let of = |value, throughput| Number {
            cell: "web nginx-2k".to_owned(),
            metric: metric.to_owned(),
            value,
            within,
            throughput: Some(throughput),
            calls: vec![("getpid".to_owned(), value / 2.0), ("fork".to_owned(), 7.0)],
            unit: Unit::Instructions,
            better,
        };
        TrimValue::of(&of(own, 6000.0), &of(base, 5000.0))
    }

    fn result(values: Vec<TrimValue>) -> TrimResult {
        let kernel = TrimKernel {
            kernel: "build:x,lean,A=n".to_owned(),
            image_bytes: None,
            image_difference_bytes: None,
            values: values.into_iter().map(Some).chain([None]).collect(),
        };
        TrimResult {
            name: "a".to_owned(),
            options: Vec::new(),
            costs: String::new(),
            alone: kernel.clone(),
            cumulated: kernel,
        }
    }

    /// Check differences, shares of the base, throughput and single calls by hand, and that nothing
    /// is a share of 0.
    #[test]
    fn differences() {
        let one = value("unit_instructions", 900.0, 1000.0, Better::Less);
        assert_eq!((one.value, one.difference), (900.0, -100.0));
        assert_eq!(one.difference_ppm, Some(Ppm::new(-100_000.0)));
        assert_eq!(one.gain_ppm(), Some(Ppm::new(100_000.0)));
        assert_eq!(one.throughput_ppm, Some(Ppm::new(200_000.0)));
        let calls: Vec<f64> = one.calls.iter().map(|call| call.difference).collect();
        assert_eq!(calls, [-50.0, 0.0]);
        let zero = value("noise_ppm", 5.0, 0.0, Better::Less);
        assert_eq!((zero.difference_ppm, zero.gain_ppm()), (None, None));
    }

    /// Check that a difference is a gain only if it is more than both ± together, 7.07 here.
    #[test]
    fn within_variations() {
        let of = |own| varied("unit_instructions", own, 1000.0, Better::Less, 5.0);
        let [unclear, clear] = [993.0, 992.9].map(of);
        assert_eq!(
            (clear.none_above_ppm, unclear.gain_ppm()),
            (None, Some(Ppm::new(0.0)))
        );
        assert!(clear.gain_ppm() > Some(Ppm::new(7000.0)));
        let most = unclear.none_above_ppm.unwrap().get();
        assert!((most - 14_071.1).abs() < 0.1, "{most}");
    }

    /// Check which values are the best and the worst: those with a direction, by share of the base.
    #[test]
    fn gains_and_losses() {
        let step = result(vec![
            value("unit_instructions", 900.0, 1000.0, Better::Less),
            value("late_ns_p50", 5000.0, 100.0, Better::Less),
            value("units_hz", 130.0, 100.0, Better::More),
            value("slice_ns_mean", 900.0, 100.0, Better::Neither),
        ]);
        assert_eq!(step.best().map(|value| value.metric.as_str()), Some("units_hz"));
        assert_eq!(step.worst().map(|value| value.metric.as_str()), Some("late_ns_p50"));
        assert_eq!(result(Vec::new()).best(), None);
    }

    /// Check that the kernels of a series are listed once.
    #[test]
    fn kernels_of_a_series() {
        let step = |alone: &str, cumulated: &str| TrimStep {
            name: alone.to_owned(),
            options: Vec::new(),
            costs: String::new(),
            alone: alone.to_owned(),
            cumulated: cumulated.to_owned(),
        };
        let (base, steps) = ("base".to_owned(), vec![step("a", "a"), step("b", "a+b")]);
        let series = TrimSeries { base, steps };
        assert_eq!(series.kernels().collect::<Vec<_>>(), ["base", "a", "b", "a+b"]);
    }
}
