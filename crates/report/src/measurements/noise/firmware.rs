//! The firmware's time in gaps, as sentences.

use summary::{FirmwareSummary, NoiseSummary};

use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::CPUS;
use crate::number;

/// What the count of SMIs says about each CPU, or about all if they are many or had none. Empty if SMIs
/// were not counted.
pub(crate) fn firmware(summary: &NoiseSummary) -> Vec<Text> {
    match summary.firmware {
        Some(all) if all.smis == 0 => {
            let text = "No CPU had a system management interrupt (SMI): no gap was the firmware's.";
            vec![text.into()]
        }
        Some(all) if summary.cpus.len() > CPUS => {
            vec![sentence("All CPUs: at most".into(), all)]
        }
        Some(_) | None => {
            let cpus = summary.cpus.iter();
            let each = cpus.filter_map(|cpu| Some((cpu.cpu, cpu.firmware?)));
            let each = each.filter(|(_, firmware)| firmware.smis > 0);
            each.map(|(cpu, firmware)| sentence(text!("CPU {}:", cpu), firmware))
                .collect()
        }
    }
}

fn sentence(cpus: Text, firmware: FirmwareSummary) -> Text {
    let FirmwareSummary { smis, proven_ns, unexplained_max_ns } = firmware;
    text!(
        "{} {} (firmware). {} of gaps is proven to be theirs (\"SMI\" above), up to {} more may be in \
         unexplained gaps.",
        cpus,
        number::counted(smis, "system management interrupt"),
        proven_ns,
        unexplained_max_ns,
    )
}

#[cfg(test)]
mod tests {
    use recording::Firmware;
    use units::Nanos;

    use super::*;
    use crate::example::{self, GUEST};

    /// Check the sentences of two CPUs, without an SMI, and without a count.
    #[test]
    fn sentences() {
        let of = |smis: [Option<u64>; 2]| {
            let mut recording = example::blamed(example::noise(GUEST, 2));
            let series = recording.body.noise_mut().unwrap();
            for (cpu, smis) in series.cpus.iter_mut().zip(smis) {
                let unexplained_max_ns = Nanos::from_micros(70);
                let firmware = smis.map(|smis| Firmware { smis, unexplained_max_ns });
                cpu.blamed.as_mut().unwrap().firmware = firmware;
            }
            let lines = firmware(&NoiseSummary::of(series));
            lines.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let sentence = "CPU 1: 3 system management interrupts (firmware). 0 ns of gaps is proven to be \
                        theirs (\"SMI\" above), up to 70 µs more may be in unexplained gaps.";
        assert_eq!(of([Some(0), Some(3)]), [sentence]);
        assert_eq!(of([None, Some(3)]), [sentence]);
        let none =
            "No CPU had a system management interrupt (SMI): no gap was the firmware's.";
        assert_eq!(of([Some(0), Some(0)]), [none]);
        assert!(of([None, None]).is_empty());
    }
}
