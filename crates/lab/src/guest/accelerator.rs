//! Whether the host's processor may run guests: only where it has proved itself.
//!
//! `/dev/kvm` may be there and yet hang every guest (nested virtualisation does that). So
//! it is tried once a boot of the host and version of QEMU, under a deadline, and what
//! came of it is kept.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::error::{Error, failed};
use crate::guest::boot::Ended;
use crate::guest::command_line::Engine;
use crate::guest::qemu::Qemu;

/// How much CPU time a guest has to boot: on a processor that runs it, it takes a second or two.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
const DEVICE: &str = "/dev/kvm";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const KEPT: &str = "accelerator.json";

/// What came of a trial, and for what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Trial {
    boot_id: String,
    qemu: String,
    engine: Engine,
}

/// The engine for real time: KVM where it proved itself, else emulation. `boots` tries a
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
    let file = cache.folder.join(KEPT);
    let kept = fs::read(&file).ok().and_then(|json| serde_json::from_slice(&json).ok());
    let holds = |trial: &Trial| trial.boot_id == boot_id && trial.qemu == qemu.version;
    if let Some(trial) = kept.filter(holds) {
        return Ok(trial.engine);
    }
    let engine = match boots(Engine::Kvm)? {
        Ended::Off => Engine::Kvm,
        Ended::Lost(_) => Engine::Emulated,
        Ended::Stopped => return Err(Error::Interrupted),
    };
    let trial = Trial { boot_id, qemu: qemu.version.clone(), engine };
    let json = serde_json::to_vec(&trial).unwrap_or_default();
    fs::write(&file, json).map_err(failed(&file))?;
    Ok(engine)
}
