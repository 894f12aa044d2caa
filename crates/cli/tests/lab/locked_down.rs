//! Kernels that deny programs access to I/O ports, so that their answers take another way.

use std::fs;

use crate::repeats::Mixed;
use crate::site::{Site, named};

const LOCKED: &str = "name = \"locked\"\nkernels = [\"debian:6.1-cloud\"]\n\
     [[boot]]\nname = \"integrity\"\nappend = \"lockdown=integrity\"\n\
     [[boot]]\nname = \"confidentiality\"\nappend = \"lockdown=confidentiality\"\n\
     [[workload]]\nname = \"calls\"\n\
     calls = { cpu = 0, calls = [\"getpid\"], repeats = 5 }\n";

/// Check that a kernel that is locked down sends an answer, the same each time, that it
/// reported the lockdown, and that only such a guest has a second serial port.
#[test]
fn answers() {
    let Some(site) = Site::new() else { return };
    let file = site.file("locked.toml", LOCKED);
    let cells = site.cells(&[&file, "-s", "repeats=2"], 0);
    assert_eq!(cells.len(), 4);
    for name in ["integrity calls", "confidentiality calls"] {
        let same: Vec<_> = cells.iter().filter(|cell| cell["name"] == name).collect();
        assert_eq!(same.len(), 2);
        assert_eq!(same[0]["series"], same[1]["series"]);
        assert_eq!(same[0]["counts"], same[1]["counts"]);
        let kept = site.kept(same[0]);
        let answer = fs::read(kept.join("answer")).unwrap();
        let level = name.split(' ').next().unwrap();
        let known = format!("\"lockdown\":\"{level}\"");
        let text = String::from_utf8_lossy(&answer);
        assert!(text.contains(&known), "{text}");
        let inputs = fs::read_to_string(kept.join("inputs.json")).unwrap();
        assert!(inputs.contains("isa-serial"), "{inputs}");
    }
    let Some(mixed) = Mixed::get() else { return };
    let usual = mixed.site.kept(named(&mixed.cells, "calls")).join("inputs.json");
    assert!(!fs::read_to_string(usual).unwrap().contains("isa-serial"));
}
