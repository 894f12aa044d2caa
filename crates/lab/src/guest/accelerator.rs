//! Whether KVM may run guests: only after a guest has booted with it.
//!
//! `/dev/kvm` may exist and yet hang every guest (with nested virtualisation). So it is tested
//! once per boot of the host and version of QEMU, with a deadline, and the outcome is cached.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cache::{Cache, machine_name};
use crate::error::{Error, failed};
use crate::guest::boot::Ended;
use crate::guest::command_line::Engine;
use crate::guest::qemu::Qemu;

/// The CPU time that a guest has to boot: with a working KVM, it takes a second or two.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
const DEVICE: &str = "/dev/kvm";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// The beginning of the names of the cached outcomes: machines that share a cache have one each.
const TRIAL: &str = "accelerator";

/// The outcome of a trial, and the conditions under which it is valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Trial {
    boot_id: String,
    qemu: String,
    engine: Engine,
}

/// The engine for real time: KVM if a guest booted with it, else emulation. `boots` boots a
/// guest with an engine.
pub(crate) fn prove(
    cache: &Cache,
    qemu: &Qemu,
    boots: impl FnOnce(Engine) -> Result<Ended, Error>,
) -> Result<Engine, Error> {
    if !Path::new(DEVICE).exists() {
        return Ok(Engine::Emulated);
    }
    let boot_id = fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned();
    let file = cache.folder.join(format!("{TRIAL}-{}.json", machine_name()));
    let cached = fs::read(&file).ok().and_then(|json| serde_json::from_slice(&json).ok());
    let holds = |trial: &Trial| trial.boot_id == boot_id && trial.qemu == qemu.version;
    if let Some(trial) = cached.filter(holds) {
        return Ok(trial.engine);
    }
    let engine = match boots(Engine::Kvm)? {
        Ended::Off(_) => Engine::Kvm,
        Ended::Lost(_) => Engine::Emulated,
        Ended::Stopped => return Err(Error::Interrupted),
    };
    let trial = Trial { boot_id, qemu: qemu.version.clone(), engine };
    let json = serde_json::to_vec(&trial).unwrap_or_default();
    fs::write(&file, json).map_err(failed(&file))?;
    Ok(engine)
}
