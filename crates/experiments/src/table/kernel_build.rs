//! A kernel to build, as a table: `{ source = "debian:6.1", base = "lean", options = { HZ = 40 } }`.
//!
//! It becomes the kernel's name (`build:debian:6.1,lean,HZ=40`), which plans and reports have.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kernels::{Base, BuildNameError, BuildSpec, OptionValue};

use crate::error::EntryError;

/// The table.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KernelBuild {
    source: String,
    base: Option<String>,
    #[serde(default)]
    options: BTreeMap<String, Value>,
    #[serde(default)]
    fragments: Vec<String>,
    name: Option<String>,
}

/// The value of an option.
#[derive(Debug, serde::Deserialize)]
#[serde(untagged, expecting = "expected a string, a number, true or false")]
enum Value {
    Switch(bool),
    Number(i64),
    Text(String),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Self::Switch(is_on) => if *is_on { "y" } else { "n" }.to_owned(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

impl KernelBuild {
    /// The kernel's name.
    ///
    /// # Errors
    /// A part is wrong, or cannot be part of a name.
    pub(crate) fn name(&self) -> Result<String, EntryError> {
        let wrong = |error: BuildNameError| EntryError::KernelName(error.into());
        let option = |(name, value): (&String, &Value)| {
            let value = value.text();
            let option =
                OptionValue::parse(name, &value).map_err(|error| wrong(error.into()))?;
            option.ok_or_else(|| {
                wrong(BuildNameError::Option(
                    self.source.clone(),
                    format!("{name}={value}"),
                ))
            })
        };
        let base = self.base.as_deref().unwrap_or("lean");
        let spec = BuildSpec {
            base: Base::parse(base),
            fragments: self.fragments.iter().map(PathBuf::from).collect(),
            options: self.options.iter().map(option).collect::<Result<_, _>>()?,
            label: self.name.clone(),
            ..BuildSpec::new(self.source.parse().map_err(wrong)?)
        };
        let name = spec.to_string();
        // A comma in a path or a value would be read as the end of that part.
        match BuildSpec::parse(&name).map_err(wrong)? == spec {
            true => Ok(name),
            false => Err(EntryError::KernelPart),
        }
    }
}
