//! Clocks: which the kernel reads, and what the CPU promises about its counter.
//!
//! Truth: `/sys/devices/system/clocksource` (since 2.6.18), the flags of `/proc/cpuinfo`
//! on x86, and what the kernel said at boot about the counter's frequency. Cannot see
//! how much it drifts, nor a frequency whose message was overwritten.

use units::TscHz;

use crate::fact::{Fact, Unknown, Why, group};
use crate::format::command_line;
use crate::format::cpuinfo::{self, CpuInfo};
use crate::format::kernel_log::{self, KernelLog};
use crate::sources::Sources;

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str =
    "/sys/devices/system/clocksource/clocksource0/available_clocksource";
/// What makes a time stamp counter a clock: steady, running in idle states, of known
/// frequency, vouched for by the hypervisor, able to raise the tick.
const FLAGS: [&str; 5] = [
    "constant_tsc",
    "nonstop_tsc",
    "tsc_known_freq",
    "tsc_reliable",
    "tsc_deadline_timer",
];
/// What stands before the counter's frequency, the better word first. The kernel names
/// the TSC's own frequency only where it differs from the processor's.
const FREQUENCIES: [(&str, &str); 4] = [
    ("Refined TSC clocksource calibration: ", "MHz"),
    ("Detected ", " MHz TSC"),
    ("Detected ", " MHz processor"),
    ("timer(s) running at ", "MHz"),
];

group! {
    /// Clocks.
    "clock" Clock {
        /// The clock source in use.
        source: String,
        /// The clock sources that could be used.
        available: Vec<String>,
        /// What the CPU promises about its time stamp counter (`constant_tsc`,
        /// `nonstop_tsc`, ...).
        tsc_flags: Vec<String>,
        /// What was asked of the counter at boot (`tsc=`); `None`: nothing.
        tsc_parameter: Option<String>,
        /// The counter's frequency as the kernel found it at boot; arm64's counter too.
        tsc_hz: TscHz,
    }
}

impl Clock {
    pub(crate) fn read(sources: &Sources) -> Self {
        let available = sources.word(AVAILABLE);
        let names = |line: &String| line.split_whitespace().map(str::to_owned).collect();
        let line = sources.command_line.as_ref();
        let parameter = line.map(|line| line.value("tsc").map(str::to_owned));
        let log = sources.log.as_ref();
        let hz = log.map_err(Clone::clone).and_then(frequency);
        Self {
            source: sources.word(CURRENT),
            available: Fact::of(
                available.value().map(names).map_err(Clone::clone),
                AVAILABLE,
            ),
            tsc_flags: Fact::of(flags(sources), cpuinfo::FILE),
            tsc_parameter: Fact::of(parameter.map_err(Clone::clone), command_line::FILE),
            tsc_hz: Fact::of(hz, kernel_log::FILE),
        }
    }
}

fn flags(sources: &Sources) -> Result<Vec<String>, Unknown> {
    let info = CpuInfo::read(sources.root)?;
    let Some(flags) = info.flags() else {
        let text = "this architecture has no time stamp counter with flags";
        return Err(Unknown::new(Why::NotApplicable, text));
    };
    Ok(flags.filter(|flag| FLAGS.contains(flag)).map(str::to_owned).collect())
}

fn frequency(log: &KernelLog) -> Result<TscHz, Unknown> {
    let found = FREQUENCIES.iter().find_map(|(before, after)| {
        // 'Detected ' begins many messages; what stands after the number does not.
        let message = log.find(if before.starts_with("Det") { after } else { before })?;
        let (_, rest) = message.split_once(before)?;
        megahertz(rest.split_once(after)?.0.trim())
    });
    found.ok_or_else(|| {
        let text = match log.from_boot() {
            true => "the kernel named no frequency at boot",
            false => "the message that names it was overwritten by newer ones",
        };
        Unknown::new(Why::Absent, text)
    })
}

/// Reads megahertz with decimals: `2596.122`.
fn megahertz(text: &str) -> Option<TscHz> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    if decimals.is_empty() || decimals.len() > 6 {
        return None;
    }
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) {
        return None;
    }
    let hz: u64 = format!("{decimals:0<6}").parse().ok()?;
    TscHz::new(whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(hz)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;
    use proptest::prelude::*;

    fn hz(messages: &str) -> Result<u64, Unknown> {
        frequency(&KernelLog::parse(messages).unwrap()).map(TscHz::get)
    }

    /// Check this machine's clock sources, flags and command line.
    #[test]
    fn reads_this_machine() {
        let clock = Clock::read(
            &tree(&[
                (CURRENT, "tsc\n"),
                (AVAILABLE, "tsc kvm-clock \n"),
                (cpuinfo::FILE, "processor\t: 0\nflags\t\t: tsc constant_tsc rep_good nonstop_tsc tsc_known_freq tsc_deadline_timer hypervisor\n\n"),
                (command_line::FILE, "tsc=reliable quiet"),
            ])
            .sources(),
        );
        assert_eq!(clock.source.get().unwrap(), "tsc");
        assert_eq!(clock.available.get().unwrap(), &["tsc", "kvm-clock"]);
        let flags =
            ["constant_tsc", "nonstop_tsc", "tsc_known_freq", "tsc_deadline_timer"];
        assert_eq!(clock.tsc_flags.get().unwrap(), &flags);
        assert_eq!(clock.tsc_parameter.get(), Some(&Some("reliable".to_owned())));
    }

    /// Check that flags have no meaning where the architecture has none.
    #[test]
    fn other_architectures() {
        let arm = tree(&[(cpuinfo::FILE, "processor\t: 0\nFeatures\t: fp\n\n")]);
        let flags = Clock::read(&arm.sources()).tsc_flags;
        assert_eq!(flags.value().unwrap_err().code, Why::NotApplicable);
    }

    /// Check the messages of kernels old and new, x86 and arm64, and which one wins.
    #[test]
    fn frequencies() {
        let detected = "6,1,0,-;tsc: Detected 2596.122 MHz processor\n";
        let refined = "6,9,0,-;tsc: Refined TSC clocksource calibration: 2595.124 MHz\n";
        let tsc = "6,2,0,-;tsc: Detected 2600.000 MHz TSC\n";
        let noise = "6,0,0,-;Detected VIPT I-cache on CPU0\n";
        let arm = "6,1,0,-;arch_timer: cp15 timer(s) running at 25.00MHz (phys).\n";
        let old = "6,1,0,-;time.c: Detected 2400.085 MHz processor.\n";
        assert_eq!(hz(&format!("{noise}{detected}")), Ok(2_596_122_000));
        assert_eq!(hz(&format!("{detected}{refined}")), Ok(2_595_124_000));
        assert_eq!(hz(&format!("{detected}{tsc}")), Ok(2_600_000_000));
        assert_eq!(hz(arm), Ok(25_000_000));
        assert_eq!(hz(old), Ok(2_400_085_000));
    }

    /// Check that a message that is gone is told from one that never came.
    #[test]
    fn no_frequency() {
        let text = |messages| hz(messages).unwrap_err().text;
        assert!(text("6,0,0,-;Linux version 6.1\n").contains("named no frequency"));
        assert!(text("6,70,0,-;eth0: link up\n").contains("overwritten"));
        assert!(hz("6,0,0,-;tsc: Detected x MHz processor\n").is_err());
        assert!(hz("6,0,0,-;tsc: Detected 0.000 MHz processor\n").is_err());
    }

    proptest! {
        /// Check that every frequency the kernel can print is read as it was.
        #[test]
        fn megahertz_as_printed(khz in 1u64..100_000_000) {
            let text = format!("{}.{:03}", khz / 1000, khz % 1000);
            prop_assert_eq!(megahertz(&text).map(TscHz::get), Some(khz * 1000));
        }

        /// Check that no text makes the reader panic.
        #[test]
        fn never_panics(text in "[0-9.+é-]{0,30}") {
            let _ = megahertz(&text);
        }
    }
}
