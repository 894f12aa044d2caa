//! Reports of made-up fleets.

use insta::assert_snapshot;
use recording::CulpritKind;
use serde_json::{Value, json};
use summary::{
    CulpritNumber, Fleet, FleetDoubt, FleetDoubtCode, FleetQuestion, FleetRun,
    FleetSummary, MetricNumber, RunNumbers,
};
use units::Ppm;

use super::*;
use crate::html::html_page;
use crate::pictures::{Medium, fleet_pictures};
use crate::terminal::{full_text, screen_text};

/// A node with this noise, of which a source takes a part, and its kernel.
fn run(noise: u32, source: Option<(&str, u32)>, kernel: &str) -> FleetRun {
    let more = source.map_or(0, |(_, ppm)| ppm);
    let value = f64::from(noise + more);
    let culprit = |kind, name: &str, ppm: u32| CulpritNumber {
        kind,
        name: name.to_owned(),
        ppm: Ppm::new(f64::from(ppm)),
    };
    let mut culprits = vec![culprit(CulpritKind::Timer, "tick_nohz_handler", noise)];
    culprits.extend(source.map(|(name, ppm)| culprit(CulpritKind::Thread, name, ppm)));
    let facts: [(&str, Value); 2] =
        [("kernel.release", json!(kernel)), ("boot.parameters", json!(["quiet"]))];
    let numbers = RunNumbers {
        taken: "2026-11-30T06:00:00Z".to_owned(),
        metrics: vec![MetricNumber {
            metric: "noise_ppm".to_owned(),
            cpu: None,
            value,
            better: None,
        }],
        culprits: Some(culprits),
        facts: facts.map(|(key, value)| (key.to_owned(), value)).into(),
        parameters: Vec::new(),
        doubts: Vec::new(),
    };
    FleetRun::of("check", &numbers)
}

/// Forty nodes, of which three have an older kernel, and two of these a backup.
fn example(evil: &str) -> FleetSummary {
    let mut fleet = Fleet::default();
    for at in 0..40_u32 {
        let (source, kernel) = match at {
            17 | 18 => (Some((evil, 9000 + at)), "6.1.0-28-amd64"),
            19 => (None, "6.1.0-28-amd64"),
            _ => (None, "6.12.48-amd64"),
        };
        let noise = 1000 + 17 * (at * 7 % 40);
        fleet.add(
            &format!("r{}n{:02}", at / 10, at % 10),
            "file",
            run(noise, source, kernel),
        );
    }
    let mut doubts = Vec::new();
    for name in ["out/a.json", "out/b.json", "out/c.json", "out/d.json"] {
        FleetDoubt::add(&mut doubts, FleetDoubtCode::Truncated, "", name);
    }
    FleetDoubt::add(
        &mut doubts,
        FleetDoubtCode::Unreadable,
        "permission denied",
        "out/e.json",
    );
    fleet.summarize(&FleetQuestion::default(), doubts).unwrap()
}

/// Check the report of a fleet, on one screen and in full.
#[test]
fn forty_nodes() {
    let document = fleet_document(&example("backup"));
    let (screen, full) = (screen_text(&document), full_text(&document));
    for text in [&screen, &full] {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    assert!(screen.lines().count() <= 24, "{screen}");
    assert_snapshot!("screen", screen);
    assert_snapshot!("full", full);
}

/// Check that heat maps are on a page, with names that are escaped, and that the picture has a limited size however
/// many nodes there are.
#[test]
fn heat_maps() {
    let page = |of: &FleetSummary| {
        html_page(&fleet_document(of).add(fleet_pictures(of, Medium::Page)))
    };
    let small = page(&example("<script>alert(1)</script>"));
    assert!(
        small.contains("Sources of noise by node") && small.contains("Nodes: OS noise")
    );
    assert!(!small.contains("<script>alert"), "a name is not escaped");
    let mut fleet = Fleet::default();
    for at in 0..10_000_u32 {
        let source = (at % 1000 == 3).then_some(("backup", 90_000));
        let run = run(1000 + at % 977, source, "6.12");
        fleet.add(&format!("r{}n{:02}", at / 10, at % 10), &at.to_string(), run);
    }
    let large = page(&fleet.summarize(&FleetQuestion::default(), Vec::new()).unwrap());
    assert!(large.len() < 600_000, "{}", large.len());
    assert!(large.contains("rows with a lower median are not drawn"));
}
