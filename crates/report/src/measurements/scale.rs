//! The report of `scale`: the slowdown of each number of ranks, what remains of it without each source of
//! noise, and analytic bounds.

use recording::{Algorithm, Coscheduled, Pattern, ScaleSource, ScaleSpec};
use summary::{ScaleCountSummary, ScaleSourceSummary, ScaleSummary, Slowdown};
use units::Ppm;

use crate::document::Document;
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::{kind_word, of_kind};
use crate::number;

/// The numbers of ranks, and the sources, that one screen lists.
const ROWS: usize = 6;
const SOURCES: usize = 2;
/// The width of a name.
const NAME: std::ops::RangeInclusive<usize> = 8..=32;
const LEGEND: &str = "\"slowdown\": additional run time because of noise; \"±\": 95 % interval of the \
    mean over seeds; \"without\": what remains without that source.";
const BOUNDS: &str = "\"hit\": probability that a step delays at least one rank; \"slowest\": mean of the \
    longest delay of independent ranks; \"exponential\": the same if delays were exponential; \"longest\": by \
    the longest delay that was seen. They are those of a computation after which all ranks wait for the \
    slowest one: delays of messages add to them.";
const GAINS: &str = "\"gain\": by how much the slowdown is less without that source, for the same random \
    numbers.";

pub(crate) fn scale(spec: &ScaleSpec, summary: &ScaleSummary) -> Document {
    let all: Vec<&ScaleCountSummary> = summary.counts.iter().collect();
    let sources = summary.sources.len();
    Document::from(title(spec, summary))
        .add_or(
            slowdowns(summary, &all, sources).legend(LEGEND),
            slowdowns(summary, &some(&all), sources.min(SOURCES)).legend(LEGEND),
        )
        .add_full(network(spec))
        .add_full(Document::section("What follows from lengths of gaps", bounds(&all)))
        .add_full(Document::section("Gain without each source", gains(summary)))
        .add_full(Document::section("Recordings", inputs(spec)))
}

fn title(spec: &ScaleSpec, summary: &ScaleSummary) -> Text {
    let cpus: u64 = spec.inputs.iter().map(|input| input.cpus).sum();
    text!(
        "Simulated ranks with the noise of {} ({} of CPU time, of which {} was lost): each computes for \
         {}, then {}{}.{}",
        number::counted(cpus, "CPU"),
        summary.recorded_ns,
        number::known(summary.noise_ppm),
        spec.compute_ns,
        pattern(spec),
        match spec.coscheduled {
            Coscheduled::All(true) => "; all nodes have their noise at the same time",
            Coscheduled::All(false) | Coscheduled::Sources(_) => "",
        },
        coscheduled(spec),
    )
}

/// The sources that are at the same time on all nodes, if not all noise is.
fn coscheduled(spec: &ScaleSpec) -> Text {
    match &spec.coscheduled {
        Coscheduled::Sources(sources) if !sources.is_empty() => {
            let name = |one: &ScaleSource| of_kind(one.kind, Text::name(&*one.name));
            let names = Text::join(sources.iter().map(name), ", ");
            text!(" The noise of {} happens at the same time on all nodes.", names)
        }
        Coscheduled::Sources(_) | Coscheduled::All(_) => Text::default(),
    }
}

/// What ranks do after each step.
fn pattern(spec: &ScaleSpec) -> Text {
    let algorithm = match spec.algorithm.unwrap_or(Algorithm::RecursiveDoubling) {
        Algorithm::Dissemination => "dissemination",
        Algorithm::RecursiveDoubling => "recursive doubling",
        Algorithm::Ring => "a ring",
        Algorithm::Tree => "a tree",
    };
    let size = number::bytes(spec.message_bytes);
    match spec.pattern {
        Pattern::Bsp => "waits in a barrier (dissemination)".into(),
        Pattern::Allreduce => {
            text!("takes part in an allreduce of {} by {}", size, algorithm)
        }
        Pattern::Halo2d => text!("exchanges {} with each of 4 neighbours", size),
        Pattern::Halo3d => text!("exchanges {} with each of 6 neighbours", size),
        Pattern::Pipeline => text!("sends {} to the next one, which waits for it", size),
    }
}

/// The first, the last, and as many between them as one screen has room for.
fn some<'a>(all: &[&'a ScaleCountSummary]) -> Vec<&'a ScaleCountSummary> {
    if all.len() <= ROWS {
        return all.to_vec();
    }
    let at = |row: usize| all[row * (all.len() - 1) / (ROWS - 1)];
    (0..ROWS).map(at).collect()
}

fn slowdowns(
    summary: &ScaleSummary,
    counts: &[&ScaleCountSummary],
    sources: usize,
) -> Table {
    let mut table = Table::of(counts)
        .number("ranks", |count| number::count(count.ranks))
        .number("steps", |count| number::count(count.steps))
        .number("slowdown", |count| mean(count.slowdown))
        .number("±", |count| half(count.slowdown));
    for (number, source) in summary.sources.iter().enumerate().take(sources) {
        let column = Column::number(short_name(source)).above("without");
        table = table.column(column, |count| {
            let without = count.without.iter().find(|one| one.source == number);
            mean(without.map(|one| one.slowdown))
        });
    }
    let slowest = |count: &&ScaleCountSummary| {
        number::any(count.bounds.independent_ppm.map(number::ratio))
    };
    table.number("slowest", slowest).table
}

/// The name of a source, as a heading.
fn short_name(source: &ScaleSourceSummary) -> Text {
    const MOST: usize = 14;
    let name: String = match kind_word(source.kind) {
        "timer" => "timer".to_owned(),
        _ => source.name.clone(),
    };
    match name.chars().count() {
        ..=MOST => Text::name(name),
        _ => Text::name(name.chars().take(MOST - 1).chain(['…']).collect::<String>()),
    }
}

fn mean(of: Option<Slowdown>) -> Text {
    number::known(of.map(|slowdown| signed(slowdown.ppm)))
}

/// A share that noise can make negative: a gain.
fn signed(ppm: Ppm) -> Text {
    match ppm.get() < 0.0 {
        true => Text::number(format!("-{}", number::ratio(Ppm::new(-ppm.get())))),
        false => number::ratio(ppm),
    }
}

/// Half of the interval.
fn half(of: Option<Slowdown>) -> Text {
    let ends = of.and_then(|slowdown| slowdown.low_ppm.zip(slowdown.high_ppm));
    number::any(
        ends.map(|(low, high)| number::ratio(Ppm::new((high.get() - low.get()) / 2.0))),
    )
}

fn network(spec: &ScaleSpec) -> Text {
    let network = &spec.network;
    text!(
        "Network (LogGOPS): L {}, o {}, g {}, G {} and O {} per byte, S {}; messages of {}. {} on a node. \
         Seed {}, {}.",
        network.latency_ns,
        network.overhead_ns,
        network.gap_ns,
        network.byte_gap_ns,
        network.byte_overhead_ns,
        number::bytes(network.eager_bytes),
        number::bytes(spec.message_bytes),
        number::counted(spec.ranks_per_node, "rank"),
        spec.seed.to_string(),
        number::counted(spec.seeds.into(), "run"),
    )
}

fn bounds(counts: &[&ScaleCountSummary]) -> Table {
    let ratio = |ppm: Option<Ppm>| number::any(ppm.map(number::ratio));
    Table::of(counts)
        .number("ranks", |count| number::count(count.ranks))
        .number("simulated", |count| mean(count.slowdown))
        .number("hit", |count| number::known(count.bounds.hit_ppm))
        .numbers(["slowest", "exponential", "longest"], |count| {
            let of = count.bounds;
            [of.independent_ppm, of.exponential_ppm, of.saturated_ppm].map(ratio)
        })
        .table
        .legend(BOUNDS)
}

/// The gain of the largest number of ranks, by source.
fn gains(summary: &ScaleSummary) -> Option<Table> {
    let count = summary.counts.last()?;
    let mut table = Table::new([
        Column::name("source", NAME),
        Column::number("time"),
        Column::number("share"),
        Column::number("gain"),
        Column::number("±"),
        Column::number("remaining"),
    ]);
    for without in &count.without {
        let source = summary.sources.get(without.source)?;
        table.row(cells![
            Cell::from(of_kind(source.kind, Text::name(&*source.name))),
            source.noise_ns,
            number::known(source.noise_ppm),
            mean(Some(without.gain)),
            half(Some(without.gain)),
            mean(Some(without.slowdown)),
        ]);
    }
    let ranks = number::count(count.ranks);
    (!table.rows.is_empty()).then(|| table.legend(text!("Of {} ranks. {}", ranks, GAINS)))
}

fn inputs(spec: &ScaleSpec) -> Table {
    Table::of(&spec.inputs)
        .column(Column::name("file", NAME), |input| Text::name(&*input.name))
        .column(Column::words("kind"), |input| &*input.kind)
        .number("CPUs", |input| number::count(input.cpus))
        .number("CPU time", |input| input.window_ns)
        .number("noise", |input| number::known(Ppm::of(input.noise_ns, input.window_ns)))
        .number("gaps", |input| number::short_count(input.gaps))
        .number("longest", |input| number::any(input.longest_ns))
        .table
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Coscheduled, CulpritKind, ScaleSource};

    use crate::example::{self, GUEST};
    use crate::measurements::{recording_document, text_of};
    use crate::terminal::screen_text;

    /// Check the whole report, and that of one screen.
    #[test]
    fn scale_of_a_machine() {
        let recording = example::scale(GUEST);
        assert_snapshot!(text_of(&recording));
        let document = recording_document(&recording, &summary::Summary::of(&recording));
        let screen = screen_text(&document);
        assert_snapshot!(screen);
        assert!(screen.lines().count() <= 24, "{screen}");
    }

    /// Check what the report says of noise that all nodes have at the same time.
    #[test]
    fn at_the_same_time() {
        let mut recording = example::scale(GUEST);
        let mut title = |coscheduled| {
            let recording::Body::Scale { spec, .. } = &mut recording.body else {
                panic!()
            };
            spec.coscheduled = coscheduled;
            let document =
                recording_document(&recording, &summary::Summary::of(&recording));
            let screen = screen_text(&document);
            screen.split("\n\n").next().unwrap().replace('\n', " ")
        };
        let then = "each computes for 1 ms, then waits in a barrier (dissemination)";
        let all = title(Coscheduled::All(true));
        let text = format!("{then}; all nodes have their noise at the same time.");
        assert!(all.ends_with(&text), "{all}");
        let source = |kind, name: &str| ScaleSource {
            kind,
            name: name.to_owned(),
            noise_ns: units::Nanos::from_millis(5),
        };
        let two = vec![
            source(CulpritKind::Thread, "daemon"),
            source(CulpritKind::Unexplained, "unexplained"),
        ];
        let some = title(Coscheduled::Sources(two));
        let sentence = "The noise of thread daemon, unexplained happens at the same time on all nodes.";
        assert!(some.ends_with(&format!("{then}. {sentence}")), "{some}");
        let none = title(Coscheduled::Sources(Vec::new()));
        assert!(none.ends_with(&format!("{then}.")), "{none}");
    }

    /// Check a simulation without sources and with one seed, and one that was ended early.
    #[test]
    fn scale_of_little() {
        let mut recording = example::scale(GUEST);
        let recording::Body::Scale { series, .. } = &mut recording.body else { panic!() };
        series.sources.clear();
        for count in &mut series.counts {
            count.runs.truncate(1);
            count.runs[0].run_ns.truncate(1);
        }
        series.counts[2].runs.clear();
        let document = recording_document(&recording, &summary::Summary::of(&recording));
        assert_snapshot!(screen_text(&document));
    }
}
