//! Clocks: the kernel's clock source, and properties of the CPU's time stamp counter.
//!
//! From `/sys/devices/system/clocksource` (since 2.6.18), the flags of `/proc/cpuinfo` on x86, and
//! the kernel's boot messages about the counter's frequency. Its drift is unknown, as is a
//! frequency if the message was overwritten.

use units::TscHz;

use crate::fact::{Fact, Unknown, Why, group};
use crate::format::command_line;
use crate::format::cpuinfo::{self, CpuInfo};
use crate::format::kernel_log::{self, KernelLog};
use crate::sources::Sources;

const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str =
    "/sys/devices/system/clocksource/clocksource0/available_clocksource";
/// Properties of a time stamp counter that is usable as a clock: constant rate, running in idle
/// states, known frequency, declared reliable by the hypervisor, able to trigger the tick.
const FLAGS: [&str; 5] = [
    "constant_tsc",
    "nonstop_tsc",
    "tsc_known_freq",
    "tsc_reliable",
    "tsc_deadline_timer",
];
/// The texts before and after the counter's frequency in messages, the most accurate one first. The
/// kernel logs the frequency of the TSC only if it differs from that of the processor.
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
        /// The available clock sources.
        available: Vec<String>,
        /// Properties of the time stamp counter (`constant_tsc`, `nonstop_tsc`, ...).
        tsc_flags: Vec<String>,
        /// The value of the boot parameter `tsc=`, if any.
        tsc_parameter: Option<String>,
        /// The counter's frequency as determined by the kernel at boot; also on arm64.
        tsc_hz: TscHz,
    }
}

impl Clock {
    pub(crate) fn read(sources: &Sources) -> Self {
        let names = |line: String| line.split_whitespace().map(str::to_owned).collect();
        let line = sources.command_line.as_ref();
        let parameter = line.map(|line| line.value("tsc").map(str::to_owned));
        let log = sources.log.as_ref();
        let hz = log.map_err(Clone::clone).and_then(frequency);
        Self {
            source: sources.word(CURRENT),
            available: sources.word(AVAILABLE).map(names),
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
        // Many messages contain 'Detected '; the text after the number is unique.
        let message = log.find(if before.starts_with("Det") { after } else { before })?;
        let (_, rest) = message.split_once(before)?;
        megahertz(rest.split_once(after)?.0.trim())
    });
    found.ok_or_else(|| {
        let text = match log.from_boot() {
            true => "the kernel logged no frequency at boot",
            false => "the message with the frequency was overwritten by newer ones",
        };
        Unknown::new(Why::Absent, text)
    })
}

/// Parses megahertz with decimals: `2596.122`.
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

    /// Check clock sources, flags and command line.
    #[test]
    fn reads_clocks() {
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

    /// Check that flags do not apply to an architecture without them.
    #[test]
    fn other_architectures() {
        let arm = tree(&[(cpuinfo::FILE, "processor\t: 0\nFeatures\t: fp\n\n")]);
        let flags = Clock::read(&arm.sources()).tsc_flags;
        assert_eq!(flags.value().unwrap_err().code, Why::NotApplicable);
    }

    /// Check the messages of old and new kernels on x86 and arm64, and their precedence.
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

    /// Check that an overwritten message and a missing one are distinguished.
    #[test]
    fn no_frequency() {
        let text = |messages| hz(messages).unwrap_err().text;
        assert!(text("6,0,0,-;Linux version 6.1\n").contains("logged no frequency"));
        assert!(text("6,70,0,-;eth0: link up\n").contains("overwritten"));
        assert!(hz("6,0,0,-;tsc: Detected x MHz processor\n").is_err());
        assert!(hz("6,0,0,-;tsc: Detected 0.000 MHz processor\n").is_err());
    }

    proptest! {
        /// Check that every frequency in the kernel's format is parsed.
        #[test]
        fn megahertz_as_printed(khz in 1u64..100_000_000) {
            let text = format!("{}.{:03}", khz / 1000, khz % 1000);
            prop_assert_eq!(megahertz(&text).map(TscHz::get), Some(khz * 1000));
        }

        /// Check that parsing never panics.
        #[test]
        fn never_panics(text in "[0-9.+é-]{0,30}") {
            let _ = megahertz(&text);
        }
    }
}
