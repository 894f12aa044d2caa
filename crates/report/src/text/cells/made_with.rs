//! The agent, the counter and the QEMU that cells were made with, in one line.
//!
//! Checksums are shortened to digits that are unique in practice; the JSON has all of them.

use recording::MadeWith;

use crate::text::layout::paragraph::paragraph;

/// The number of digits of a checksum.
const CHECKSUM: usize = 12;

/// The checksums of agent and counter, and the version of QEMU.
pub fn made_with_text(made_with: &MadeWith) -> String {
    let MadeWith { agent_sha256, counter_sha256, qemu } = made_with;
    let short = |sha256: &str| sha256.chars().take(CHECKSUM).collect::<String>();
    let (agent, counter) = (short(agent_sha256), short(counter_sha256));
    let words = format!("agent {agent}, counter {counter}, QEMU {qemu}");
    format!("\n{}", paragraph("Made with ", &words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Cells;
    use crate::json::cells::cells_json;
    use crate::text::cells::cells_text;

    fn parts() -> MadeWith {
        MadeWith {
            agent_sha256: "68b8eb9030a3c138263cd48da818725d".to_owned(),
            counter_sha256: "8836c17ca52d198eb04210eba2b3310b".to_owned(),
            qemu: "10.0.2".to_owned(),
        }
    }

    /// Check the line, with short checksums.
    #[test]
    fn line() {
        let expected =
            "\nMade with agent 68b8eb9030a3, counter 8836c17ca52d, QEMU 10.0.2\n";
        assert_eq!(made_with_text(&parts()), expected);
    }

    /// Check that text and JSON have it, the JSON with all digits of the checksums.
    #[test]
    fn reports() {
        let parts = parts();
        let (experiment, about, cells) = ("mine", "", [].as_slice());
        let made_with = Some(&parts);
        let cells = Cells {
            experiment,
            about,
            cells,
            planned: 0,
            made_with,
            violations: None,
            guests: 100,
            series: &[],
        };
        assert!(cells_text(&cells).contains("Made with agent 68b8eb9030a3, counter "));
        let object = cells_json(&cells, false).unwrap();
        let object: serde_json::Value = serde_json::from_str(&object).unwrap();
        assert_eq!(object["made_with"], serde_json::to_value(&parts).unwrap());
    }
}
