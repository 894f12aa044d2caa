//! Metrics for Prometheus, checked by its own tool.

use std::fs;
use std::process::{Command, Stdio};

use crate::tool::{run, text, turn};

/// Check that the metrics of `check` are what promtool accepts, without a complaint, and that they replace the
/// file.
#[test]
fn metrics_are_valid() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("noisefloor.prom");
    fs::write(&file, "before").unwrap();
    let name = file.to_str().unwrap();
    let check = ["check", "-q", "--rest", "100ms", "-d", "100ms", "--prometheus", name];
    let output = run(&check);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", text(&output.stderr));
    let metrics = fs::read_to_string(&file).unwrap();
    for name in ["noisefloor_noise_ratio{cpu=\"", "noisefloor_timer_hertz{cpu=\""] {
        assert!(metrics.contains(name), "{metrics}");
    }
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(fs::File::open(&file).unwrap());
    match promtool.stdout(Stdio::piped()).stderr(Stdio::piped()).output() {
        Ok(checked) => {
            let said = text(&checked.stderr) + &text(&checked.stdout);
            assert!(checked.status.success() && said.is_empty(), "{said}");
        }
        Err(error) => println!("skipped: metrics_are_valid: promtool: {error}"),
    }
}
