//! The summary of `scale`: how much slower a program of many ranks is because of noise, what it would gain
//! without each source, and analytic bounds.
//!
//! A slowdown is the additional run time as a share of that without noise: the mean over the seeds, with the
//! interval that contains the true mean in 95 % of all cases. It says how much the random numbers matter, not
//! how much another recording would differ. Gains are of the same seeds. The bounds are those of the computation
//! of a step after which all ranks wait for the slowest one, with independent noise: delays of messages add to
//! them, and programs in which ranks wait for fewer others have less.

use recording::{CulpritKind, ScaleCount, ScaleSeries, ScaleSpec};
use serde::Serialize;
use stats::{MeanInterval, StepDelays};
use units::{Nanos, Ppm};

/// Noise at scale.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScaleSummary {
    /// The CPU time in which the noise was recorded.
    pub recorded_ns: Nanos,
    /// The time that was lost in it, as a share; null without time.
    pub noise_ppm: Option<Ppm>,
    /// A step of more ranks needs more CPU time than that: it has rarer gaps than were seen.
    pub known_ranks: u64,
    /// The sources that were omitted, those with most time first.
    pub sources: Vec<ScaleSourceSummary>,
    /// The numbers of ranks, in rising order.
    pub counts: Vec<ScaleCountSummary>,
}

/// A source of noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScaleSourceSummary {
    /// The kind of event.
    pub kind: CulpritKind,
    /// The name of the program, the kernel thread or the event.
    pub name: String,
    /// Its time.
    pub noise_ns: Nanos,
    /// That as a share of the recorded time; null without time.
    pub noise_ppm: Option<Ppm>,
}

/// The results of one number of ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScaleCountSummary {
    /// The number of ranks.
    pub ranks: u64,
    /// The number of steps of a run.
    pub steps: u64,
    /// The number of simulated computations, sends, receives and messages of a run.
    pub events: u64,
    /// The run time without noise.
    pub base_ns: Nanos,
    /// The slowdown; null if no run ended.
    pub slowdown: Option<Slowdown>,
    /// The results without each of the sources, in their order; of those whose runs ended.
    pub without: Vec<WithoutSource>,
    /// What follows from the lengths of gaps alone.
    pub bounds: ScaleBounds,
}

/// A mean over seeds, and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Slowdown {
    /// The mean.
    pub ppm: Ppm,
    /// The lower end of the interval; null for one seed.
    pub low_ppm: Option<Ppm>,
    /// The upper end.
    pub high_ppm: Option<Ppm>,
}

/// The results without a source.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WithoutSource {
    /// The number of the source.
    pub source: usize,
    /// The remaining slowdown.
    pub slowdown: Slowdown,
    /// By how much it is less, of the same seeds.
    pub gain: Slowdown,
}

/// Analytic bounds of the computation of a step after which all ranks wait for the slowest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScaleBounds {
    /// The probability that noise delays at least one rank, 1-(1-p)^n; null without recorded time.
    pub hit_ppm: Option<Ppm>,
    /// The slowdown by the mean of the longest delay of all ranks.
    pub independent_ppm: Option<Ppm>,
    /// The same if delays were exponential with the same mean: the mean times a harmonic number.
    pub exponential_ppm: Option<Ppm>,
    /// The slowdown by the longest delay that was seen, which no computation exceeds.
    pub saturated_ppm: Option<Ppm>,
}

impl ScaleSummary {
    /// Summarizes a simulation.
    pub fn of(spec: &ScaleSpec, series: &ScaleSeries) -> Self {
        let recorded: Nanos = spec.inputs.iter().map(|input| input.window_ns).sum();
        let noise = spec.inputs.iter().map(|input| input.noise_ns).sum();
        let parts = series.delays.iter().map(|one| (one.delay_ns, one.starts_ns));
        let delays = StepDelays::from_parts(parts);
        let sources = series.sources.iter().map(|source| ScaleSourceSummary {
            kind: source.kind,
            name: source.name.clone(),
            noise_ns: source.noise_ns,
            noise_ppm: Ppm::of(source.noise_ns, recorded),
        });
        let counts = series.counts.iter();
        Self {
            recorded_ns: recorded,
            noise_ppm: Ppm::of(noise, recorded),
            known_ranks: recorded.get().checked_div(spec.compute_ns.get()).unwrap_or(0),
            sources: sources.collect(),
            counts: counts.map(|count| ScaleCountSummary::of(count, &delays)).collect(),
        }
    }
}

impl ScaleCountSummary {
    fn of(count: &ScaleCount, delays: &StepDelays) -> Self {
        let runs = |omitted| count.runs.iter().find(|runs| runs.omitted == omitted);
        let slowdowns = |omitted| -> Vec<f64> {
            let runs = runs(omitted).into_iter().flat_map(|runs| &runs.run_ns);
            runs.map(|run| slowdown(*run, count.base_ns)).collect()
        };
        let all = slowdowns(None);
        let without = |number| {
            let own = slowdowns(Some(number));
            let gains: Vec<f64> =
                all.iter().zip(&own).map(|(all, own)| all - own).collect();
            let (slowdown, gain) = (Slowdown::of(&own)?, Slowdown::of(&gains)?);
            Some(WithoutSource { source: number, slowdown, gain })
        };
        let omitted = count.runs.iter().filter_map(|runs| runs.omitted);
        Self {
            ranks: count.ranks,
            steps: count.steps,
            events: count.events,
            base_ns: count.base_ns,
            slowdown: Slowdown::of(&all),
            without: omitted.filter_map(without).collect(),
            bounds: ScaleBounds::of(count, delays),
        }
    }
}

impl Slowdown {
    fn of(values: &[f64]) -> Option<Self> {
        let MeanInterval { mean, interval } = MeanInterval::of(values)?;
        let [low, high] = [0, 1].map(|end| interval.map(|ends| Ppm::new(ends[end])));
        Some(Self { ppm: Ppm::new(mean), low_ppm: low, high_ppm: high })
    }
}

impl ScaleBounds {
    fn of(count: &ScaleCount, delays: &StepDelays) -> Self {
        let step = Nanos::from_nanos(count.base_ns.get() / count.steps.max(1));
        let share = |delay: Option<Nanos>| Ppm::of(delay?, step);
        Self {
            hit_ppm: delays.hit(count.ranks),
            independent_ppm: share(delays.mean_of_longest(count.ranks)),
            exponential_ppm: share(delays.exponential_longest(count.ranks)),
            saturated_ppm: share(delays.longest()),
        }
    }
}

/// The additional time, in parts per million of that without noise.
fn slowdown(run: Nanos, base: Nanos) -> f64 {
    Ppm::of(run.saturating_sub(base), base).map_or(0.0, Ppm::get)
}

#[cfg(test)]
mod tests {
    use recording::{
        Coscheduled, Network, Pattern, ScaleInput, ScaleRuns, ScaleSource, StepDelay,
    };

    use super::*;

    fn nanos(nanos: u64) -> Nanos {
        Nanos::from_nanos(nanos)
    }

    fn spec() -> ScaleSpec {
        ScaleSpec {
            ranks: vec![2],
            pattern: Pattern::Bsp,
            algorithm: None,
            compute_ns: nanos(100),
            steps: Some(10),
            message_bytes: 8,
            network: Network::default(),
            ranks_per_node: 1,
            coscheduled: Coscheduled::All(false),
            seed: 1,
            seeds: 2,
            sources: 1,
            inputs: vec![ScaleInput {
                name: "a.json".to_owned(),
                kind: "noise".to_owned(),
                release: None,
                taken: "2026-11-29T00:00:00Z".to_owned(),
                cpus: 1,
                window_ns: nanos(1_000),
                gaps: 1,
                noise_ns: nanos(10),
                longest_ns: Some(nanos(10)),
            }],
        }
    }

    fn series() -> ScaleSeries {
        let runs = |omitted, run_ns: [u64; 2]| ScaleRuns {
            omitted,
            run_ns: run_ns.map(nanos).to_vec(),
        };
        let delay = |delay, starts| StepDelay {
            delay_ns: nanos(delay),
            starts_ns: nanos(starts),
        };
        ScaleSeries {
            sources: vec![ScaleSource {
                kind: CulpritKind::Timer,
                name: "tick".to_owned(),
                noise_ns: nanos(10),
            }],
            delays: vec![delay(0, 900), delay(10, 100)],
            counts: vec![ScaleCount {
                ranks: 2,
                steps: 10,
                events: 60,
                base_ns: nanos(1_000),
                runs: vec![runs(None, [1_100, 1_300]), runs(Some(0), [1_000, 1_100])],
            }],
        }
    }

    /// Check slowdowns, gains of the same seeds, and bounds, by hand.
    #[test]
    fn by_hand() {
        let found = ScaleSummary::of(&spec(), &series());
        assert_eq!((found.known_ranks, found.recorded_ns), (10, nanos(1_000)));
        assert_eq!(found.sources[0].noise_ppm, Some(Ppm::new(10_000.0)));
        let count = &found.counts[0];
        let ppm = |slowdown: Slowdown| slowdown.ppm.get();
        assert_eq!(ppm(count.slowdown.unwrap()), 200_000.0);
        assert_eq!(ppm(count.without[0].slowdown), 50_000.0);
        // 100 and 200 of 1,000: 150 ± 12.7 * 50.
        let gain = count.without[0].gain;
        assert_eq!(ppm(gain), 150_000.0);
        assert!((gain.high_ppm.unwrap().get() - 785_310.0).abs() < 1.0, "{gain:?}");
        // 1 - 0.9^2 = 0.19; 10 of 100 with that probability.
        let near = |found: Option<Ppm>, expected: f64| {
            assert!(
                (found.unwrap().get() - expected).abs() < 1.0,
                "{found:?} {expected}"
            );
        };
        near(count.bounds.hit_ppm, 190_000.0);
        near(count.bounds.independent_ppm, 20_000.0);
        near(count.bounds.saturated_ppm, 100_000.0);
    }

    /// Check a simulation that was ended before its first run with noise, and one seed.
    #[test]
    fn incomplete() {
        let mut series = series();
        series.counts[0].runs[0].run_ns.truncate(1);
        let count =
            |series: &ScaleSeries| ScaleSummary::of(&spec(), series).counts.remove(0);
        let one = count(&series).slowdown.unwrap();
        assert_eq!(
            (one.ppm, one.low_ppm, one.high_ppm),
            (Ppm::new(100_000.0), None, None)
        );
        series.counts[0].runs.clear();
        let none = count(&series);
        assert_eq!((none.slowdown, none.without), (None, Vec::new()));
    }
}
