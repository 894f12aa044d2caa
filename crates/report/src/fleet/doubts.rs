//! Doubts about a fleet, each with the number of files or nodes and the first of them.

use summary::{FleetDoubt, FleetDoubtCode};

use crate::document::text::{Text, text};

/// The most names of a doubt.
const NAMES: usize = 3;

/// One sentence for each doubt.
pub(crate) fn sentences(doubts: &[FleetDoubt]) -> Vec<Text> {
    doubts.iter().map(sentence).collect()
}

/// The same as plain text.
pub fn fleet_doubts(doubts: &[FleetDoubt]) -> Vec<String> {
    doubts.iter().map(|doubt| sentence(doubt).to_string()).collect()
}

fn sentence(doubt: &FleetDoubt) -> Text {
    let names = doubt.names.iter().take(NAMES).map(Text::name);
    let names = match doubt.count.saturating_sub(NAMES) {
        0 => Text::join(names, ", "),
        more => text!("{}, {} more", Text::join(names, ", "), more),
    };
    text!("{}: {}", what(doubt), names)
}

/// What is wrong with how many files or nodes.
fn what(doubt: &FleetDoubt) -> Text {
    use FleetDoubtCode::{
        Corrupt, Duplicate, Empty, Foreign, Newer, NoFile, NoMetric, NoSeries, OtherKind,
        SameName, Truncated, UnknownNode, Unreadable, Unreliable,
    };
    let (count, why) = (doubt.count as u64, Text::name(&doubt.text));
    let of = |one: &'static str, several: &'static str| {
        if count == 1 { text!("1 {}", one) } else { text!("{} {}", count, several) }
    };
    match doubt.code {
        Truncated => of("truncated file, left out", "truncated files, left out"),
        Foreign => of(
            "file that is no recording, left out",
            "files that are no recordings, left out",
        ),
        Newer => of(
            "file of a newer noisefloor, left out; hint: use that version",
            "files of a newer noisefloor, left out; hint: use that version",
        ),
        Corrupt => of("damaged file, left out", "damaged files, left out"),
        NoSeries => of(
            "file without its series, left out; hint: save it with -o FILE or --json --series",
            "files without their series, left out; hint: save them with -o FILE or --json --series",
        ),
        Unreadable => {
            text!("{} ({})", of("file cannot be read", "files cannot be read"), why)
        }
        NoFile => text!("{} {}", of("name is", "names are"), why),
        Empty => of("folder has no recording", "folders have no recording"),
        Duplicate => of(
            "recording is a copy of another one, and is left out",
            "recordings are copies of others, and are left out",
        ),
        SameName => of(
            "name stands for several machines, which are counted apart (NAME#2)",
            "names stand for several machines each, which are counted apart (NAME#2)",
        ),
        OtherKind => {
            text!("{} of {}, left out; hint: --kind", of("recording", "recordings"), why)
        }
        NoMetric => of(
            "recording does not have the metric, and is left out",
            "recordings do not have the metric, and are left out",
        ),
        Unreliable => text!(
            "{} {}",
            of("recording has the doubt", "recordings have the doubt"),
            why
        ),
        UnknownNode => of("label is of no node", "labels are of no node"),
    }
}
