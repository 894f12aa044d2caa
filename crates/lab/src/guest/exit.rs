//! The channel of a guest's answer. Of arm64 guests it is the second serial port. Of x86-64 guests it is I/O port 0xe9 (`isa-debugcon`), or, if its kernel denies
//! programs the use of I/O ports, through a second serial port.
//!
//! A kernel denies it that is locked down (`kernel_lockdown(7)`: `lockdown=`, a setting, or
//! `CONFIG_LOCK_DOWN_KERNEL_FORCE_*`), or was built with neither `CONFIG_X86_IOPL_IOPERM` (since
//! 5.5) nor `CONFIG_DEVPORT`. This has to be known before it boots: another device changes a
//! guest's counts, so that only such a kernel has it. Without a configuration only the requested
//! lockdown is known; the agent then reports why it cannot answer.

use facts::{CommandLine, Config};
use kernels::Architecture;

use crate::error::NoExit;
use crate::guest::request::Request;

/// The setting that enables lockdown.
const SETTING: &str = "/sys/kernel/security/lockdown";
/// The levels of lockdown; the kernel ignores anything else.
const LEVELS: [&str; 2] = ["integrity", "confidentiality"];
/// The options that lock every boot of a kernel down.
const FORCED: [&str; 2] =
    ["LOCK_DOWN_KERNEL_FORCE_INTEGRITY", "LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY"];
/// The two options that allow the use of the port, either of which is enough.
const TO_PORTS: [&str; 2] = ["X86_IOPL_IOPERM", "DEVPORT"];
/// How many serial ports the kernel looks for.
const SERIAL_PORTS: &str = "SERIAL_8250_RUNTIME_UARTS";

/// The channel of a guest's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The I/O port.
    Port,
    /// The I/O port, or the second serial port.
    Serial,
    /// The second serial port of arm64's board.
    SecondPl011,
}

/// The channel for that request and kernel configuration.
///
/// # Errors
/// Why there is none.
pub(crate) fn choose(
    architecture: Architecture,
    config: Option<&Config>,
    request: &Request,
) -> Result<Exit, NoExit> {
    if architecture == Architecture::Arm64 {
        return Ok(Exit::SecondPl011);
    }
    let Some(closed) = closed(config, request) else { return Ok(Exit::Port) };
    let ports = config.map(|config| config.value(SERIAL_PORTS).unwrap_or("0"));
    match ports.map(|ports| ports.parse::<u32>().unwrap_or(0)) {
        Some(ports @ (0 | 1)) => {
            Err(NoExit { closed, option: format!("CONFIG_{SERIAL_PORTS}"), ports })
        }
        _ => Ok(Exit::Serial),
    }
}

/// Why programs are denied I/O ports, if they are known to be.
fn closed(config: Option<&Config>, request: &Request) -> Option<String> {
    let has = |name: &str| config.is_some_and(|config| config.value(name) == Some("y"));
    if let Some(forced) = FORCED.into_iter().find(|name| has(name)) {
        return Some(format!("CONFIG_{forced} keeps programs from I/O ports"));
    }
    let can_lock = config.is_none() || has("SECURITY_LOCKDOWN_LSM");
    if let Some(asked) = lockdown_request(request).filter(|_| can_lock) {
        return Some(format!("{asked} keeps programs from I/O ports"));
    }
    let open = config.is_none() || TO_PORTS.into_iter().any(has);
    (!open).then(|| {
        let [one, other] = TO_PORTS;
        format!("it was built with neither CONFIG_{one} nor CONFIG_{other}")
    })
}

/// The part of the request that enables lockdown.
fn lockdown_request(request: &Request) -> Option<String> {
    let parameters = CommandLine::parse(&request.params);
    let level = parameters.value("lockdown").filter(|level| LEVELS.contains(level));
    let setting = request.settings.iter().find(|setting| setting.path == SETTING);
    let parameter = level.map(|level| format!("lockdown={level}"));
    parameter.or_else(|| setting.map(|setting| format!("{SETTING}={}", setting.value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::Task;
    use recording::GuestSetting;

    fn config(text: &str) -> Config {
        Config::parse(text.as_bytes(), "the config").unwrap()
    }

    fn request(params: &str) -> Request {
        Request { params: params.to_owned(), ..Request::new(Task::Symbols) }
    }

    fn choose(config: Option<&Config>, request: &Request) -> Result<Exit, NoExit> {
        super::choose(Architecture::X86_64, config, request)
    }

    /// Check that arm64 guests have the same channel, whatever their kernel.
    #[test]
    fn arm64() {
        let locked = request("lockdown=integrity");
        let config = config("CONFIG_SECURITY_LOCKDOWN_LSM=y\n");
        for config in [None, Some(&config)] {
            let exit = super::choose(Architecture::Arm64, config, &locked);
            assert_eq!(exit, Ok(Exit::SecondPl011));
        }
    }

    const USUAL: &str = "CONFIG_X86_IOPL_IOPERM=y\nCONFIG_SECURITY_LOCKDOWN_LSM=y\n\
                         CONFIG_SERIAL_8250_RUNTIME_UARTS=4\n";

    /// Check that a kernel that lets programs have the port has no other channel, and neither has
    /// one without a configuration.
    #[test]
    fn usual_kernels() {
        for params in ["", "quiet", "lockdown=none", "lockdown"] {
            assert_eq!(choose(Some(&config(USUAL)), &request(params)), Ok(Exit::Port));
            assert_eq!(choose(None, &request(params)), Ok(Exit::Port));
        }
        let devport = "CONFIG_DEVPORT=y\n";
        assert_eq!(choose(Some(&config(devport)), &request("")), Ok(Exit::Port));
    }

    /// Check that a kernel that is locked down answers over the serial port, however lockdown is
    /// enabled, and one without lockdown does not.
    #[test]
    fn locked_down() {
        for level in LEVELS {
            let request = request(&format!("lockdown={level}"));
            assert_eq!(choose(Some(&config(USUAL)), &request), Ok(Exit::Serial));
            assert_eq!(choose(None, &request), Ok(Exit::Serial));
            let without = config("CONFIG_X86_IOPL_IOPERM=y\n");
            assert_eq!(choose(Some(&without), &request), Ok(Exit::Port));
        }
        for forced in FORCED {
            let config = config(&format!("{USUAL}CONFIG_{forced}=y\n"));
            assert_eq!(choose(Some(&config), &request("")), Ok(Exit::Serial));
        }
        let setting =
            GuestSetting { path: SETTING.to_owned(), value: "integrity".to_owned() };
        let request = Request { settings: vec![setting], ..request("") };
        assert_eq!(choose(Some(&config(USUAL)), &request), Ok(Exit::Serial));
    }

    /// Check that a kernel without any channel is refused with the options that it lacks.
    #[test]
    fn no_channel() {
        let lean = |ports: &str| config(&format!("CONFIG_64BIT=y\n{ports}"));
        let four = "CONFIG_SERIAL_8250_RUNTIME_UARTS=4\n";
        assert_eq!(choose(Some(&lean(four)), &request("")), Ok(Exit::Serial));
        for (ports, number) in [("", 0), ("CONFIG_SERIAL_8250_RUNTIME_UARTS=1\n", 1)] {
            let why = choose(Some(&lean(ports)), &request("")).unwrap_err().to_string();
            assert!(why.contains("neither CONFIG_X86_IOPL_IOPERM nor"), "{why}");
            let option = format!("CONFIG_SERIAL_8250_RUNTIME_UARTS={number}");
            assert!(why.contains(&option), "{why}");
        }
        let single = config(&USUAL.replace("UARTS=4", "UARTS=1"));
        let why = choose(Some(&single), &request("lockdown=integrity"));
        let why = why.unwrap_err().to_string();
        assert!(why.contains("lockdown=integrity keeps programs from"), "{why}");
    }
}
