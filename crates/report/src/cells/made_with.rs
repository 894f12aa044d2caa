//! The agent, the counter and the QEMU that cells were made with, in one line.
//!
//! Checksums are shortened to digits that are unique in practice; the JSON has all of them.

use recording::MadeWith;

use crate::document::text::{Text, text};

/// The number of digits of a checksum.
const CHECKSUM: usize = 12;

/// The checksums of agent and counter, and the version of QEMU; those of arm64 cells after them.
pub(crate) fn made_with(made_with: &MadeWith) -> Text {
    let MadeWith { agent_sha256, counter_sha256, qemu, arm64 } = made_with;
    let usual = text!(
        "Made with agent {}, counter {}, QEMU {}",
        short(agent_sha256),
        short(counter_sha256),
        Text::name(qemu)
    );
    let Some(arm64) = arm64 else { return usual };
    let (agent, qemu) = (short(&arm64.agent_sha256), Text::name(&arm64.qemu));
    text!("{}; arm64 with agent {}, QEMU {}", usual, agent, qemu)
}

fn short(sha256: &str) -> Text {
    Text::name(sha256.chars().take(CHECKSUM).collect::<String>())
}

#[cfg(test)]
mod tests {
    use recording::MadeWithArm64;

    use super::*;
    use crate::cells::cells_document;
    use crate::cells::labelled::Cells;
    use crate::example::cells::page;
    use crate::json::cells::cells_json;
    use crate::terminal::full_text;

    fn parts() -> MadeWith {
        MadeWith {
            agent_sha256: "68b8eb9030a3c138263cd48da818725d".to_owned(),
            counter_sha256: "8836c17ca52d198eb04210eba2b3310b".to_owned(),
            qemu: "10.0.2".to_owned(),
            arm64: None,
        }
    }

    /// Check the line, with short checksums.
    #[test]
    fn line() {
        let expected = "Made with agent 68b8eb9030a3, counter 8836c17ca52d, QEMU 10.0.2";
        assert_eq!(made_with(&parts()), expected);
        let agent_sha256 = "0cc175b9c0f1b6a831c399e269772661".to_owned();
        let arm64 = Some(MadeWithArm64 { agent_sha256, qemu: "11.0".to_owned() });
        let both = format!("{expected}; arm64 with agent 0cc175b9c0f1, QEMU 11.0");
        assert_eq!(made_with(&MadeWith { arm64, ..parts() }), both.as_str());
    }

    /// Check that text and JSON have it, the JSON with all digits of the checksums.
    #[test]
    fn reports() {
        let parts = parts();
        let cells = Cells { made_with: Some(&parts), ..page("mine", &[]) };
        assert!(
            full_text(&cells_document(&cells))
                .contains("Made with agent 68b8eb9030a3, counter ")
        );
        let object = cells_json(&cells, false).unwrap();
        let object: serde_json::Value = serde_json::from_str(&object).unwrap();
        assert_eq!(object["made_with"], serde_json::to_value(&parts).unwrap());
    }
}
