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
    options: Options,
    #[serde(default)]
    fragments: Vec<String>,
    name: Option<String>,
}

/// Options of a kernel, sorted by their names.
#[derive(Debug, Clone, Default, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Options(BTreeMap<String, Value>);

/// The value of an option.
#[derive(Debug, Clone, serde::Deserialize)]
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

fn wrong(error: BuildNameError) -> EntryError {
    EntryError::KernelName(error.into())
}

impl Options {
    /// The options and their values, for a kernel from that source.
    ///
    /// # Errors
    /// One has no possible name, or a value that it cannot have.
    pub(crate) fn values(&self, source: &str) -> Result<Vec<OptionValue>, EntryError> {
        let option = |(name, value): (&String, &Value)| {
            let value = value.text();
            let option =
                OptionValue::parse(name, &value).map_err(|error| wrong(error.into()))?;
            let text = format!("{name}={value}");
            option.ok_or_else(|| wrong(BuildNameError::Option(source.to_owned(), text)))
        };
        self.0.iter().map(option).collect()
    }
}

/// The name of a kernel to build.
///
/// # Errors
/// A part of it has a comma, which would be read as the end of that part.
pub(crate) fn name_of(spec: &BuildSpec) -> Result<String, EntryError> {
    let name = spec.to_string();
    match BuildSpec::parse(&name).map_err(wrong)? == *spec {
        true => Ok(name),
        false => Err(EntryError::KernelPart),
    }
}

impl KernelBuild {
    /// The kernel's name.
    ///
    /// # Errors
    /// A part is wrong, or cannot be part of a name.
    pub(crate) fn name(&self) -> Result<String, EntryError> {
        let base = self.base.as_deref().unwrap_or("lean");
        let spec = BuildSpec {
            base: Base::parse(base),
            fragments: self.fragments.iter().map(PathBuf::from).collect(),
            options: self.options.values(&self.source)?,
            label: self.name.clone(),
            ..BuildSpec::new(self.source.parse().map_err(wrong)?)
        };
        name_of(&spec)
    }
}
