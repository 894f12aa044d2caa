//! The manifest of emitted files: what was chosen, for `advise --verify`.

use serde::{Deserialize, Serialize};

use crate::advice::goals::Goals;
use crate::emit::wanted::{Wanted, What};
use crate::emit::{Format, LeftOut, Origin};

/// The version of the manifest's format.
const VERSION: u32 = 1;
/// What it is.
const KIND: &str = "advice_files";

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    kind: String,
    /// The program and its version.
    pub tool: String,
    /// When the files were made.
    pub taken: String,
    /// The same in seconds since 1970.
    pub taken_s: u64,
    /// The format of the files.
    pub emitted: String,
    /// The goals, as on the command line.
    pub goal: String,
    /// The settings in the files.
    pub settings: Vec<Entry>,
    /// What was chosen, but is not in them.
    pub left_out: Vec<Missing>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The rule.
    pub rule: String,
    /// The name of a setting at run time.
    pub name: Option<String>,
    /// Its value.
    pub value: Option<String>,
    /// The boot parameter by which it is set.
    pub boot: Option<String>,
    /// The name of a boot parameter that is removed.
    pub unboot: Option<String>,
    /// Its value when the files were made; null if it had none, or if that was unknown.
    pub before: Option<String>,
}

/// A rule that the files do not apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The rule.
    pub rule: String,
    /// Why.
    pub why: String,
}

/// The name of the CPUs that irqbalance uses for no interrupt, in manifests.
pub(crate) const BANNED: &str = "irqbalance";
/// The same of the housekeeping CPUs of a kubelet.
pub(crate) const KUBELET: &str = "kubelet";

impl Entry {
    pub(super) fn new(wanted: &Wanted, boot: Option<String>) -> Self {
        let (mut name, mut value, mut unboot, mut at_boot) = (None, None, None, boot);
        match &wanted.what {
            What::Set { name: of, to, .. } => {
                (name, value) = (Some(of.clone()), Some(to.clone()));
            }
            What::Boot(parameter) => at_boot = Some(parameter.clone()),
            What::Unboot(parameter) => unboot = Some(parameter.clone()),
            What::Banned(cpus) => {
                (name, value) = (Some(BANNED.into()), Some(cpus.to_string()));
            }
            What::Kubelet(cpus) => {
                (name, value) = (Some(KUBELET.into()), Some(cpus.to_string()));
            }
        }
        let (rule, before) = (wanted.rule.clone(), wanted.before.clone());
        Self { rule, name, value, boot: at_boot, unboot, before }
    }
}

impl Manifest {
    pub(super) fn new(
        format: Format,
        goals: &Goals,
        origin: Origin<'_>,
        settings: Vec<Entry>,
        left: &[LeftOut],
    ) -> Self {
        let left_out = left
            .iter()
            .map(|one| Missing { rule: one.rule.clone(), why: one.why.clone() });
        Self {
            format: VERSION,
            kind: KIND.to_owned(),
            tool: origin.tool.to_owned(),
            taken: origin.taken.to_owned(),
            taken_s: origin.taken_s,
            emitted: format.name().to_owned(),
            goal: goals.to_string(),
            settings,
            left_out: left_out.collect(),
        }
    }

    pub(super) fn to_json(&self) -> String {
        // A struct of strings and numbers can always be serialized.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// The text is none, or of a newer version.
    pub fn parse(text: &str) -> Result<Self, String> {
        let manifest: Self = serde_json::from_str(text).map_err(|why| why.to_string())?;
        match (manifest.kind == KIND, manifest.format) {
            (false, _) => Err(format!("its kind is '{}', not {KIND}", manifest.kind)),
            (true, VERSION) => Ok(manifest),
            (true, other) => Err(format!("its format is {other}, not {VERSION}")),
        }
    }
}
