//! The report of `repeat`: the spread of each metric in each set of runs.

use stats::{RunSet, RunSpread};
use units::printable;

use crate::number;
use crate::repeated::RepeatedRuns;
use crate::text::comparison::sets::{doubts, taken};
use crate::text::comparison::{letter, runs};
use crate::text::layout::doubts::section;
use crate::text::layout::fit::fits;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};

/// The number of listed metrics of a set.
const METRICS: usize = 24;

/// The sets for the terminal.
pub fn repeated_text(repeated: &RepeatedRuns<'_>) -> String {
    let sets = repeated.sets.iter().enumerate();
    let mut text: Vec<String> =
        sets.map(|(at, set)| set_text(repeated, at, set)).collect();
    text.push(legend(repeated));
    let own = repeated.doubts.iter().map(|doubt| printable(&doubt.text).into_owned());
    text.join("\n") + &section(own.chain(doubts(repeated.sets)))
}

fn set_text(repeated: &RepeatedRuns<'_>, at: usize, set: &RunSet) -> String {
    let variant = match repeated.variants {
        [_] => String::new(),
        variants => format!("{}  {}: ", letter(at), variants[at]),
    };
    let title =
        format!("{variant}{} of {}{}", runs(set), repeated.measurement, taken(set));
    let mut text = paragraph("", &printable(&title));
    if let (Some(folder), Some(known)) =
        (repeated.folders.get(at), repeated.known.get(at))
    {
        let more = match known {
            0 => String::new(),
            known => format!(" beside {} from before", number::count((*known).into())),
        };
        text.push_str(&paragraph("", &printable(&format!("Saved in {folder}{more}"))));
    }
    text.push('\n');
    let spreads = set.spreads();
    let listed = &spreads[..spreads.len().min(METRICS)];
    let [wide, narrow] = [2, 1].map(|space| table(listed, space));
    text.push_str(if fits(&wide) { &wide } else { &narrow });
    if listed.len() < spreads.len() {
        let more = spreads.len() - listed.len();
        text.push_str(&paragraph("", &format!("{more} more metrics: see --json")));
    }
    text
}

fn table(spreads: &[RunSpread], space: usize) -> String {
    let has_cpus = spreads.iter().any(|one| one.cpu.is_some());
    let mut heads = vec![("metric", Side::Left)];
    heads.extend(has_cpus.then_some(("CPU", Side::Right)));
    let numbers = ["median", "from", "to", "min", "max", "spread"];
    heads.extend(numbers.map(|head| (head, Side::Right)));
    let mut table = Table::new(1, &heads).spaced(space);
    for one in spreads {
        let value = |value: f64| number::in_unit(value, one.unit);
        let bounds = [0, 1].map(|bound| {
            number::any(one.median_interval, |interval| value(interval[bound]))
        });
        let mut row = vec![printable(&one.metric).into_owned()];
        row.extend(has_cpus.then(|| number::any(one.cpu, |cpu| cpu.to_string())));
        row.push(value(one.median));
        row.extend(bounds);
        row.extend([one.min, one.max].map(value));
        row.push(number::any(one.spread_ppm, |part| format!("±{}", number::ratio(part))));
        table.row(row);
    }
    table.text()
}

fn legend(repeated: &RepeatedRuns<'_>) -> String {
    let mut text = paragraph(
        "",
        "The true median is between from and to with a probability of at least 95 % (order \
         statistics, from 6 runs on). The spread is half of the difference of the quartiles, in \
         percent of the median.",
    );
    if repeated.sets.len() > 1 {
        let order = format!(
            "The variants took turns in balanced random order (--seed {}).",
            repeated.seed
        );
        text.push_str(&paragraph("", &order));
    }
    let folders: Vec<String> =
        repeated.folders.iter().map(|folder| printable(folder).into_owned()).collect();
    match folders.as_slice() {
        [] => {}
        [one] => text.push_str(&paragraph(
            "",
            &format!("To compare with another set: noisefloor compare {one} DIR"),
        )),
        several => {
            let command = format!("To compare: noisefloor compare {}", several.join(" "));
            text.push_str(&paragraph("", &command));
        }
    }
    text
}
