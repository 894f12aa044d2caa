//! The report of `check`: the verdict, OS noise of each CPU, its sources, and what to do; with
//! `--full` also kernel settings, all sources, and findings with the next command to run.
//!
//! The default is one screen of 80 columns, if the CPUs are few.

pub(crate) mod actions;
pub(crate) mod findings;
pub(crate) mod loss;
pub(crate) mod machine;
pub(crate) mod measured;
pub(crate) mod sources;
pub(crate) mod verdict;

use advise::Finding;
use facts::Facts;
use recording::{CheckSeries, CheckSpec, Doubt, Recording};
use summary::CheckSummary;

use crate::document::list::{Item, List};
use crate::document::text::{Text, text};
use crate::document::{Content, Document};
use crate::doubt_line::doubt_line;
use crate::measurements::check::actions::{actions, advice, to_do};
use crate::measurements::check::findings::{FindingText, findings};
use crate::measurements::check::machine::machine;
use crate::measurements::check::measured::{measured, overview, title};
use crate::measurements::check::sources::{sources, top_sources};
use crate::measurements::check::verdict::{details, verdict};
use crate::measurements::noise::at_scale::at_scale;

/// The number of listed CPUs on one screen: all of them, or of more those that lost most.
const CPUS: usize = 8;
const WORST_CPUS: usize = 5;
/// The number of listed sources.
const SOURCES: usize = 6;
/// The numbers of sources and of actions on one screen, and whether it says what noise does to many ranks; the
/// first that have room are listed.
const ON_SCREEN: [(usize, usize, bool); 8] = [
    (6, 3, true),
    (5, 3, true),
    (4, 3, true),
    (3, 3, true),
    (3, 3, false),
    (3, 2, false),
    (3, 1, false),
    (2, 1, false),
];
/// A longer doubt is not quoted on one screen.
const DOUBT: usize = 130;
/// So many kinds of doubts are named.
const KINDS: usize = 4;
/// The last line of one screen, after the option.
const MORE: &str = " shows kernel settings, tick, all sources and findings";

/// The report of `check`.
pub(crate) fn check(
    recording: &Recording,
    spec: &CheckSpec,
    series: &CheckSeries,
    summary: &CheckSummary,
) -> Document {
    let (facts, is_measured) = (&recording.facts, summary.verdict.cpus > 0);
    let advice = advice(facts, summary);
    let found = advise::findings(facts, summary, &advice);
    let actions = actions(facts, summary, &advice);
    let split = summary.verdict.split.as_ref();
    let full = Document::from(verdict(&summary.verdict))
        .add_full(details(&summary.verdict))
        .add_full(at_scale(&summary.noise.at_scale))
        .add_full(title(spec, series, summary))
        .add(measured(spec, series, summary))
        .add((!is_measured).then_some("OS noise was not measured."))
        .add(split.map(|split| top_sources(&split.groups, SOURCES)))
        .add(is_measured.then(|| to_do(summary, &actions)))
        .add_full(machine(recording, summary))
        .add_full(sources(&summary.verdict, &summary.noise))
        .add_full(all_findings(facts, found));
    let screens = ON_SCREEN.map(|(sources, most, has_scale)| {
        let listed = &actions[..most.min(actions.len())];
        screen(recording, spec, series, summary, (sources, has_scale), listed)
    });
    Document::default().add_or(full, Content::Fitted(screens.into()))
}

/// One screen, with so many sources, the effect on many ranks or not, and these actions.
fn screen(
    recording: &Recording,
    spec: &CheckSpec,
    series: &CheckSeries,
    summary: &CheckSummary,
    (sources, has_scale): (usize, bool),
    actions: &[Item],
) -> Document {
    let more = Content::Footer(text!("{}{}", Text::command("--full"), MORE));
    let doubt = doubt(&recording.doubts);
    if summary.verdict.cpus == 0 {
        return Document::from(measured(spec, series, summary))
            .add("OS noise was not measured.")
            .lines(doubt)
            .add(more);
    }
    let split = summary.verdict.split.as_ref();
    let all = summary.noise.cpus.len();
    let ranks = has_scale.then(|| at_scale(&summary.noise.at_scale));
    Document::from(Text::join([verdict(&summary.verdict)].into_iter().chain(ranks), " "))
        .add(overview(summary, if all > CPUS { WORST_CPUS } else { all }))
        .add(split.map(|split| top_sources(&split.groups, sources)))
        .add(to_do(summary, actions))
        .lines(doubt)
        .add(more)
}

/// All doubts in one or two lines: the gravest in its words, or their kinds.
fn doubt(doubts: &[Doubt]) -> Option<Text> {
    let line = doubt_line(doubts)?;
    if line.chars().count() <= DOUBT {
        return Some(line.into());
    }
    let mut names: Vec<String> = doubts.iter().filter_map(kind_of_doubt).collect();
    names.dedup();
    let others = names.len().saturating_sub(KINDS);
    names.truncate(KINDS);
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    Some(text!("Doubts about these numbers: {}{}.", names.join(", "), others))
}

/// The kind of a doubt in words: `too short`.
fn kind_of_doubt(doubt: &Doubt) -> Option<String> {
    let code = serde_json::to_value(doubt.code).ok()?;
    Some(code.as_str()?.replace('_', " "))
}

/// Findings, each with the next command to run.
fn all_findings(facts: &Facts, found: Vec<Finding>) -> Document {
    let item = |finding: FindingText| {
        let action = finding.action.map(|action| action.text);
        Item::new(finding.text).and(action).command(finding.next)
    };
    let findings = findings(facts, found).into_iter().map(item);
    Document::section(
        "Findings, each with the next command to run",
        List::numbered(findings),
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Code, Culprit, CulpritKind, Thread, ThreadOwner};
    use summary::Summary;

    use super::*;
    use crate::example::{self, GUEST, METAL, MUTE};
    use crate::measurements::{recording_document, text_of};
    use crate::terminal::screen_text;

    /// Check `check` on a guest.
    #[test]
    fn check_on_a_guest() {
        assert_snapshot!(text_of(&example::check(GUEST, 2)));
    }

    /// Check `check` on a machine with isolated CPUs and unknown values.
    #[test]
    fn check_with_isolated_cpus() {
        assert_snapshot!(text_of(&example::quiet(example::check(METAL, 8))));
    }

    /// Check `check` if nothing is known.
    #[test]
    fn check_on_an_unknown_machine() {
        assert_snapshot!(text_of(&example::quiet(example::check(MUTE, 1))));
    }

    /// Check that `check` reports the main sources of noise.
    #[test]
    fn check_that_is_blamed() {
        assert_snapshot!(text_of(&example::blamed(example::check(GUEST, 2))));
    }

    fn screen(recording: &Recording) -> String {
        let document = recording_document(recording, &Summary::of(recording));
        screen_text(&document)
    }

    /// Check the report of one screen: traced and not, and on a quiet machine with many CPUs.
    #[test]
    fn one_screen() {
        assert_snapshot!(screen(&example::blamed(example::check(GUEST, 2))));
        assert_snapshot!(screen(&example::check(GUEST, 2)));
        assert_snapshot!(screen(&example::blamed(example::quiet(example::check(
            METAL, 8
        )))));
        assert_snapshot!(screen(&several(example::blamed(example::check(GUEST, 101)))));
    }

    /// Check that the full report has no block that others replace there.
    #[test]
    fn replaced() {
        let check = example::blamed(example::check(GUEST, 2));
        let replaced = ["--full shows", "idle ticks"];
        assert!(replaced.iter().all(|words| screen(&check).contains(words)));
        assert!(!replaced.iter().any(|words| text_of(&check).contains(words)));
    }

    /// The same recording, a part of which many programs and noisefloor itself have caused, and which
    /// has many doubts.
    fn several(mut recording: Recording) -> Recording {
        for cpu in &mut recording.body.noise_mut().unwrap().cpus {
            let Some(blamed) = &mut cpu.blamed else { continue };
            for (at, share) in blamed.shares.iter_mut().enumerate().skip(1) {
                if at % 3 == 0 {
                    share.culprit = 4 + at / 3 % 9;
                }
            }
            blamed.culprits.extend((0..9).map(|number| Culprit {
                kind: CulpritKind::Thread,
                name: format!("a-thread-of-program-{number}"),
                thread: Some(Thread {
                    unit: None,
                    tid: 4_194_000 + number,
                    pid: 4_194_000,
                    prio: 120,
                    owner: Some(ThreadOwner::Program(format!("chromium-brows{number}"))),
                    own: number == 0,
                }),
            }));
            blamed.events.resize(blamed.culprits.len(), 9);
        }
        let reason =
            "a reason that is as long as a reason can be, with a hint how to avoid it";
        let codes = [Code::TooShort, Code::CpusLeftOut, Code::Untraced, Code::GapsLost];
        let doubt = |code| Doubt::new(code, format!("{reason}; {reason}"));
        recording.doubts.extend(codes.map(doubt));
        recording
    }

    /// The first two seconds.
    fn of_few_gaps(mut recording: Recording) -> Recording {
        let noise = recording.body.noise_mut().unwrap();
        noise.cpus.iter_mut().for_each(|cpu| cpu.gaps.truncate(500));
        recording
    }

    /// Check that one screen has at most 24 lines of 80 columns, whatever was recorded.
    #[test]
    fn fits_one_screen() {
        use example::{blamed, quiet, wide};
        let changes: [fn(Recording) -> Recording; 8] = [
            |check| check,
            quiet,
            wide,
            |check| several(wide(quiet(check))),
            blamed,
            |check| blamed(quiet(check)),
            |check| several(blamed(wide(check))),
            |check| several(blamed(quiet(check))),
        ];
        let few = [GUEST, METAL, MUTE]
            .into_iter()
            .flat_map(|groups| [0, 1, 2, 5, 8].map(|count| (groups, count)));
        let few = few.flat_map(|check| changes.map(|change| (check, change)));
        let many = [((GUEST, 101), changes[0]), ((METAL, 101), changes[6])];
        for ((groups, count), change) in few.chain(many) {
            let text = screen(&change(of_few_gaps(example::check(groups, count))));
            assert!(text.lines().count() <= 24, "{count}: {text}");
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(80), "{text}");
        }
    }
}
