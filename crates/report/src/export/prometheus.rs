//! Metrics in Prometheus' text format, for the textfile collector of node_exporter.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>; names and base units follow
//! <https://prometheus.io/docs/practices/naming/>: seconds and ratios, with the unit last.

use std::borrow::Cow;
use std::collections::BTreeMap;

use recording::Recording;
use stats::Unit;
use summary::{BenchmarkKey, Metric, NoiseSummary, Summary};
use units::Cpu;

use crate::export::exposition::{Family, MetricType, Value, labels, text};

/// The sources that are listed beside the hypervisor, unexplained time and noisefloor itself.
const SOURCES: usize = 16;
const PARTS: f64 = 1e6;

/// The metrics of a recording with this summary, and when it was taken.
pub fn prometheus_text(recording: &Recording, summary: &Summary) -> String {
    let taken = recording.taken_seconds().map(|taken| {
        let values = vec![Value::new(String::new(), taken as f64)];
        let help = "when the measurement was taken";
        gauge("noisefloor_taken_timestamp_seconds", help, values)
    });
    let noise = summary.noise();
    let families = metrics(summary)
        .into_iter()
        .chain(noise.map(sources))
        .chain(noise.into_iter().flat_map(steal))
        .chain(taken);
    text(families)
}

fn metrics(summary: &Summary) -> Vec<Family> {
    let metrics = summary::metrics(summary);
    let mut groups: BTreeMap<String, Vec<&Metric>> = BTreeMap::new();
    for metric in &metrics {
        groups.entry(name(metric)).or_default().push(metric);
    }
    let value = |metric: &&Metric| {
        let labels = BenchmarkKey::of(&metric.key).map(of_benchmark);
        let of_cpu = || metric.cpu.map_or_else(String::new, of_cpu);
        Value::new(labels.unwrap_or_else(of_cpu), value(metric))
    };
    let family = |(name, metrics): (String, Vec<&Metric>)| {
        let help = metrics.first().map_or("", |metric| metric.about.help);
        gauge(name, help, metrics.iter().map(value).collect())
    };
    groups.into_iter().map(family).collect()
}

/// The unit is in the name of times.
fn of_benchmark(key: BenchmarkKey<'_>) -> String {
    match key.is_time() {
        true => labels(&[("benchmark", key.name)]),
        false => labels(&[("benchmark", key.name), ("unit", key.unit)]),
    }
}

fn of_cpu(cpu: Cpu) -> String {
    labels(&[("cpu", &cpu.to_string())])
}

/// The time that was lost to each source, as shares of the time of all CPUs; nothing if events were
/// not traced.
fn sources(noise: &NoiseSummary) -> Family {
    let sources = noise.sources(SOURCES).unwrap_or_default();
    let values = sources.iter().filter_map(|source| {
        let labels = labels(&[("kind", source.kind), ("name", &source.name)]);
        Some(Value::new(labels, source.part.ppm?.get() / PARTS))
    });
    let help = "share of the time of all CPUs that a source took";
    gauge("noisefloor_noise_source_ratio", help, values.collect())
}

/// The bounds of the steal time of each CPU, as far as they are known.
fn steal(noise: &NoiseSummary) -> [Family; 2] {
    let names =
        [("max", 1, "steal time, upper bound"), ("min", 0, "steal time, lower bound")];
    names.map(|(end, bound, help)| {
        let known = noise.cpus.iter().filter_map(|cpu| {
            let ppm = cpu.stolen_ppm()?.get(bound).copied()?;
            Some(Value::new(of_cpu(cpu.cpu), ppm.get() / PARTS))
        });
        gauge(format!("noisefloor_steal_{end}_ratio"), help, known.collect())
    })
}

fn gauge(
    name: impl Into<Cow<'static, str>>,
    help: &'static str,
    values: Vec<Value>,
) -> Family {
    Family { name: name.into(), kind: MetricType::Gauge, help, values }
}

/// `gap_ns_max` becomes `noisefloor_gap_max_seconds`.
fn name(metric: &Metric) -> String {
    let (own, unit, _) = base_unit(metric.about.unit);
    if BenchmarkKey::of(&metric.key).is_some() {
        let end = if unit.is_empty() { "_value" } else { unit };
        return format!("noisefloor_benchmark{end}");
    }
    let words = metric.key.split('_').filter(|word| *word != own);
    format!("noisefloor_{}{unit}", words.collect::<Vec<_>>().join("_"))
}

/// The value in the base unit.
fn value(metric: &Metric) -> f64 {
    let (_, _, parts) = base_unit(metric.about.unit);
    metric.value / parts
}

/// The unit in our keys, the base unit at the end of names, and how many of ours are one of it.
fn base_unit(unit: Unit) -> (&'static str, &'static str, f64) {
    match unit {
        Unit::Ns => ("ns", "_seconds", 1e9),
        Unit::Ppm => ("ppm", "_ratio", 1e6),
        Unit::Hz => ("hz", "_hertz", 1.0),
        Unit::Instructions | Unit::Count => ("", "", 1.0),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::example::{self, GUEST};

    /// A line of the text format: the name, labels by name, and the value.
    type Sample = (String, BTreeMap<String, String>, f64);

    /// Parses the text format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.
    /// Fails on anything that does not follow it.
    fn parsed(text: &str) -> Vec<Sample> {
        let mut types: Vec<&str> = Vec::new();
        let mut samples: Vec<Sample> = Vec::new();
        for line in text.lines() {
            if let Some(head) = line.strip_prefix("# TYPE ") {
                let (name, kind) = head.split_once(' ').unwrap();
                assert_eq!(kind, "gauge");
                assert!(!types.contains(&name), "{name} is not in one group");
                types.push(name);
            } else if !line.starts_with("# HELP ") {
                let sample = sample(line);
                assert_eq!(types.last(), Some(&sample.0.as_str()));
                let same =
                    |other: &Sample| (&other.0, &other.1) == (&sample.0, &sample.1);
                assert!(!samples.iter().any(same), "{line} is there twice");
                samples.push(sample);
            }
        }
        assert!(text.ends_with('\n'));
        samples
    }

    fn sample(line: &str) -> Sample {
        let end =
            line.find(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric());
        let (name, mut rest) = line.split_at(end.unwrap());
        let mut labels = BTreeMap::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            while let Some((label, after)) = rest.split_once("=\"") {
                let label = label.trim_start_matches(',').to_owned();
                let (value, after) = quoted(after);
                assert_eq!(labels.insert(label, value), None);
                rest = after;
            }
            rest = rest.strip_prefix('}').unwrap();
        }
        (name.to_owned(), labels, rest.strip_prefix(' ').unwrap().parse().unwrap())
    }

    /// The value up to the closing quote, and what follows.
    fn quoted(text: &str) -> (String, &str) {
        let mut value = String::new();
        let mut letters = text.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => return (value, &text[at + 1..]),
                '\\' => value.push(match letters.next().unwrap().1 {
                    'n' => '\n',
                    letter @ ('"' | '\\') => letter,
                    other => panic!("unknown escape {other}"),
                }),
                _ => value.push(letter),
            }
        }
        panic!("no closing quote: {text}")
    }

    /// Check that sources add up to the noise of all CPUs, that names with any characters can be
    /// parsed, that own threads differ from a program of that name, and that there are few.
    #[test]
    fn sources_and_steal() {
        let mut recording = example::blamed(example::noise(GUEST, 2));
        let noise = recording.body.noise_mut().unwrap();
        let hostile = "a\\b \"c\"\nd,kind=\"x\"} 1";
        for cpu in &mut noise.cpus {
            let blamed = cpu.blamed.as_mut().unwrap();
            blamed.culprits[1].name = hostile.to_owned();
            let thread = blamed.culprits[3].thread.as_mut().unwrap();
            thread.own = true;
            let mut stranger = blamed.culprits[3].clone();
            stranger.name = "noisefloor".to_owned();
            stranger.thread.as_mut().unwrap().own = false;
            // Each gap but the first also has a share of a source of its own.
            for (gap, at) in (1..40).zip(blamed.culprits.len()..) {
                let mut culprit = stranger.clone();
                culprit.name.push_str(&gap.to_string());
                culprit.thread.as_mut().unwrap().tid = gap;
                blamed.culprits.push(culprit);
                let mine = |share: &&mut recording::Share| {
                    share.culprit == 1 && share.gap == gap as usize
                };
                blamed
                    .shares
                    .iter_mut()
                    .filter(mine)
                    .for_each(|share| share.culprit = at);
            }
            blamed.culprits[2] = stranger;
            blamed.events.resize(blamed.culprits.len(), 0);
        }
        let samples = parsed(&prometheus_text(&recording, &Summary::of(&recording)));
        let of = |wanted: &str| {
            let wanted = samples.iter().filter(|(name, ..)| name == wanted);
            wanted.map(|(_, labels, value)| (labels.clone(), *value)).collect::<Vec<_>>()
        };
        let sources = of("noisefloor_noise_source_ratio");
        assert!(sources.len() <= SOURCES + 4, "{}", sources.len());
        let noise: f64 =
            of("noisefloor_noise_ratio").iter().map(|(_, value)| value).sum();
        let sum: f64 = sources.iter().map(|(_, value)| value).sum();
        assert!((noise / 2.0 - sum).abs() < 1e-9, "{noise} {sum}");
        let has = |kind: &str, name: &str| {
            let is_it = |labels: &BTreeMap<String, String>| {
                labels["kind"] == kind && labels["name"] == name
            };
            sources.iter().any(|(labels, value)| is_it(labels) && *value > 0.0)
        };
        for (kind, name) in [
            ("softirq", hostile),
            ("own", "noisefloor"),
            ("thread", "noisefloor"),
            ("other", "other"),
        ] {
            assert!(has(kind, name), "{kind} {name}: {sources:?}");
        }
        let [least, most] =
            ["min", "max"].map(|bound| of(&format!("noisefloor_steal_{bound}_ratio")));
        assert_eq!((least.len(), most.len()), (2, 2));
        assert!(least.iter().zip(&most).all(|(least, most)| least.1 <= most.1));
    }

    /// Check names, units, labels and values.
    #[test]
    fn noise() {
        let noise = example::noise(GUEST, 2);
        assert_snapshot!(prometheus_text(&noise, &Summary::of(&noise)), @r#"
        # HELP noisefloor_gap_max_seconds longest gap
        # TYPE noisefloor_gap_max_seconds gauge
        noisefloor_gap_max_seconds{cpu="0"} 0.0000058
        noisefloor_gap_max_seconds{cpu="1"} 0.001704567
        # HELP noisefloor_gap_p50_seconds median length of the gaps
        # TYPE noisefloor_gap_p50_seconds gauge
        noisefloor_gap_p50_seconds{cpu="0"} 0.00000445
        noisefloor_gap_p50_seconds{cpu="1"} 0.000004511
        # HELP noisefloor_gap_p99_seconds length that 99 % of the gaps do not exceed
        # TYPE noisefloor_gap_p99_seconds gauge
        noisefloor_gap_p99_seconds{cpu="0"} 0.0000058
        noisefloor_gap_p99_seconds{cpu="1"} 0.000005861
        # HELP noisefloor_gaps_hertz gaps per second
        # TYPE noisefloor_gaps_hertz gauge
        noisefloor_gaps_hertz{cpu="0"} 249.9
        noisefloor_gaps_hertz{cpu="1"} 250.5
        # HELP noisefloor_noise_ratio OS noise
        # TYPE noisefloor_noise_ratio gauge
        noisefloor_noise_ratio{cpu="0"} 0.001112055
        noisefloor_noise_ratio{cpu="1"} 0.0020000391
        # HELP noisefloor_steal_max_ratio steal time, upper bound
        # TYPE noisefloor_steal_max_ratio gauge
        noisefloor_steal_max_ratio{cpu="0"} 0.001
        noisefloor_steal_max_ratio{cpu="1"} 0.003
        # HELP noisefloor_steal_min_ratio steal time, lower bound
        # TYPE noisefloor_steal_min_ratio gauge
        noisefloor_steal_min_ratio{cpu="0"} 0
        noisefloor_steal_min_ratio{cpu="1"} 0.001
        # HELP noisefloor_taken_timestamp_seconds when the measurement was taken
        # TYPE noisefloor_taken_timestamp_seconds gauge
        noisefloor_taken_timestamp_seconds 1795156212
        "#);
    }
}
