//! The report of `try`: the comparison, which settings are better, and what makes them last.

use advise::Lasting;
use stats::BetterSet;
use units::printable;

use crate::text::comparison::sets::doubts;
use crate::text::comparison::without_doubts;
use crate::text::layout::doubts::section;
use crate::text::layout::paragraph::paragraph;
use crate::tried::{TriedSettings, lasting};

/// Tried settings for the terminal.
pub fn tried_text(tried: &TriedSettings<'_>) -> String {
    let mut text = without_doubts(&tried.compared);
    let order = format!(
        "The runs took turns in balanced random order (--seed {}); the settings were restored after \
         each.",
        tried.seed
    );
    text.push_str(&paragraph("", &order));
    text.push('\n');
    text.push_str(&paragraph("", &printable(&verdict(tried))));
    let ways: Vec<Lasting> = lasting(tried.better_settings).collect();
    if !ways.is_empty() {
        text.push_str("\nTo make it last\n");
        let lines = ways.iter().map(|way| paragraph("  ", &printable(&line(way))));
        text.extend(lines);
    }
    let own = tried.doubts.iter().map(|doubt| printable(&doubt.text).into_owned());
    text + &section(own.chain(doubts(tried.compared.sets)))
}

/// Which settings are better, and what was done with them.
fn verdict(tried: &TriedSettings<'_>) -> String {
    let [base, other] = [0, 1].map(|set| tried.compared.names[set].as_str());
    let better = match tried.better {
        BetterSet::Unknown => {
            return "Neither is better, as far as known: no metric differs.".to_owned();
        }
        BetterSet::Mixed => {
            return "Neither is better: some metrics are better, others are worse."
                .to_owned();
        }
        BetterSet::Base => format!("A ({base}) is better"),
        BetterSet::Other => format!("B ({other}) is better"),
    };
    match tried.is_in_place {
        true => format!("{better}. It stays in place until the next boot."),
        false => format!("{better}: each metric that differs is."),
    }
}

fn line(way: &Lasting) -> String {
    match way {
        Lasting::Sysctl(line) => format!("/etc/sysctl.d/90-noisefloor.conf: {line}"),
        Lasting::Tmpfile(line) => format!("/etc/tmpfiles.d/noisefloor.conf: {line}"),
        Lasting::KernelParameter(parameter) => {
            format!("kernel command line: {parameter}")
        }
        Lasting::TunedCpu(line) => format!("tuned profile, section [cpu]: {line}"),
    }
}
