//! The file of a cell: everything that its guest depends on, for a node that runs it.
//!
//! The node makes the cell ready again from these inputs and its own QEMU, agent and counter. If those
//! are others, so is the cell's identity, and the node refuses it: its result would be that of another
//! cell.

use std::fs;
use std::path::Path;

use kernels::{Kernel, checksum};
use recording::Mode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cells::cell::Ready;
use crate::cells::lab::Lab;
use crate::cells::run::Run;
use crate::error::{Error, failed};
use crate::guest::command_line::Engine;
use crate::guest::request::Request;
use crate::packing::Packed;
use crate::slurm::folder::ArrayFolder;

/// A cell for a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CellFile {
    /// Its name and its kernel's, for messages.
    pub(crate) name: String,
    identity: String,
    repeat: u32,
    /// The inputs that are hashed, as JSON.
    inputs: String,
    /// The engine with which the identity was computed; nodes find their own for real time.
    engine: Engine,
    request: Request,
    kernel: Kernel,
    /// The SHA-256 of the archive with the files of its program.
    archive_sha256: Option<String>,
}

impl CellFile {
    /// That of a cell. The archive of its program, and a kernel that is not in the cache, are copied
    /// to the array's folder.
    pub(crate) fn new(
        name: String,
        ready: &Ready,
        lab: &Lab,
        folder: &ArrayFolder,
    ) -> Result<Self, Error> {
        if let Some(packed) = &ready.packed {
            folder.add_archive(&packed.sha256, &packed.archive)?;
        }
        Ok(Self {
            name,
            identity: ready.identity.clone(),
            repeat: ready.repeat,
            inputs: ready.inputs.clone(),
            engine: ready.engine,
            request: ready.request.clone(),
            kernel: shared(&ready.kernel, lab, folder)?,
            archive_sha256: ready.packed.as_ref().map(|packed| packed.sha256.clone()),
        })
    }

    /// The cell on this machine.
    ///
    /// # Errors
    /// `Error::OtherNode` if this machine would run another cell.
    pub(crate) fn ready(
        &self,
        lab: &Lab,
        folder: &ArrayFolder,
        run: &Run<'_>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Ready, Error> {
        let Self { kernel, request, .. } = self;
        if request.mode == Mode::Exact {
            lab.try_counter(kernel.architecture, run)?;
        }
        let archive = self.archive_sha256.as_deref();
        let packed = archive.map(|sha256| folder.archive(sha256)).transpose()?;
        let packed = packed.map(Packed::of_archive);
        let ready = |engine| {
            let ready = Ready::new(request.clone(), packed.as_ref(), kernel, engine, lab);
            ready.map(|ready| ready.repeated(self.repeat))
        };
        let same = ready(self.engine)?;
        if same.identity != self.identity {
            let differing = differing(&self.inputs, &same.inputs);
            return Err(Error::OtherNode(differing.join(", ")));
        }
        match lab.engine(request.mode, kernel, run, say)? {
            engine if engine == self.engine => Ok(same),
            engine => ready(engine),
        }
    }
}

/// A kernel at a path that nodes have.
fn shared(kernel: &Kernel, lab: &Lab, folder: &ArrayFolder) -> Result<Kernel, Error> {
    if kernel.image.starts_with(&lab.cache.folder) {
        return Ok(kernel.clone());
    }
    let image = fs::read(&kernel.image).map_err(failed(&kernel.image))?;
    let sha256 = checksum(&image);
    if sha256 != kernel.sha256 {
        return Err(Error::ChangedKernel(kernel.image.clone()));
    }
    let copy = |path: &Path, name: &str| {
        let bytes = fs::read(path).map_err(failed(path))?;
        folder.add_kernel(name, &bytes)
    };
    let config = kernel.config.as_deref();
    let config =
        config.map(|path| copy(path, &format!("{sha256}.config"))).transpose()?;
    Ok(Kernel { image: folder.add_kernel(&sha256, &image)?, config, ..kernel.clone() })
}

/// The inputs in which two cells differ, with the values of those that are short.
fn differing(one: &str, other: &str) -> Vec<String> {
    let parse = |text: &str| match serde_json::from_str(text) {
        Ok(Value::Object(inputs)) => inputs,
        Ok(_) | Err(_) => serde_json::Map::new(),
    };
    let (one, other) = (parse(one), parse(other));
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    let differing = names.filter(|name| one.get(*name) != other.get(*name));
    let describe = |name: &String| match (one.get(name), other.get(name)) {
        (Some(Value::String(one)), Some(Value::String(other))) if name == "qemu" => {
            format!("{name} ({other} instead of {one})")
        }
        _ => name.clone(),
    };
    differing.map(describe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the inputs in which two machines differ are named, with both versions of QEMU.
    #[test]
    fn differing_inputs() {
        let one = r#"{"qemu": "7.2", "kernel": "6.1", "counter_sha256": "a"}"#;
        let other =
            r#"{"qemu": "10.0", "kernel": "6.1", "counter_sha256": "b", "races": true}"#;
        let expected = ["counter_sha256", "qemu (10.0 instead of 7.2)", "races"];
        assert_eq!(differing(one, other), expected);
        assert!(differing(one, one).is_empty());
    }
}
