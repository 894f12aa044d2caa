//! Cells of a built-in experiment in another one, as they are written.

use toml::Spanned;

use crate::table::entry::Name;
use crate::table::sequence::List;

/// Cells of a built-in experiment.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct IncludeRow {
    pub(crate) experiment: Spanned<Name>,
    pub(crate) cells: Option<List<String>>,
}
