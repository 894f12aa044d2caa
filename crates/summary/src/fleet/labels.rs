//! Labels of nodes: from a file, and from names that count.
//!
//! A line of the file is `NODE,KEY=VALUE,...`; empty lines, and those that begin with `#`, have none. `NODE` may end
//! in `*`: the labels of all nodes that begin so. A name such as `r12n03` has the label `name`: what is before its
//! last number, `r12n`, if that divides the fleet into groups.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::doubts::{FleetDoubt, FleetDoubtCode};

/// The key of the label that comes from names.
const NAME: &str = "name";

/// Labels, in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetLabels {
    rows: Vec<Row>,
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    node: String,
    is_begin: bool,
    labels: Vec<(String, String)>,
}

/// A line that has no labels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: '{text}' is not of the form NODE,KEY=VALUE,...")]
pub struct LabelsError {
    line: usize,
    text: String,
}

impl FleetLabels {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// A line is of another form.
    pub fn parse(text: &str) -> Result<Self, LabelsError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut rows = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong =
                || LabelsError { line: at + 1, text: line.chars().take(60).collect() };
            let mut parts = line.split(',').map(str::trim);
            let node = parts.next().filter(|node| !node.is_empty()).ok_or_else(wrong)?;
            let label = |part: &str| {
                let (key, value) = part.split_once('=')?;
                let pair = (key.trim().to_owned(), value.trim().to_owned());
                (!pair.0.is_empty()).then_some(pair)
            };
            let labels: Option<Vec<_>> = parts.map(label).collect();
            let labels = labels.filter(|labels| !labels.is_empty()).ok_or_else(wrong)?;
            let begin = node.strip_suffix('*');
            let (node, is_begin) = (begin.unwrap_or(node).to_owned(), begin.is_some());
            rows.push(Row { node, is_begin, labels });
        }
        Ok(Self { rows })
    }

    /// The labels of each node, later ones in place of earlier ones.
    pub(crate) fn of_nodes(
        &self,
        names: &[&str],
        doubts: &mut Vec<FleetDoubt>,
    ) -> Vec<Vec<(String, String)>> {
        let mut all: Vec<BTreeMap<String, String>> = vec![BTreeMap::new(); names.len()];
        let places: BTreeMap<&str, usize> =
            names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
        for Row { node, is_begin, labels } in &self.rows {
            let found: Vec<usize> = match is_begin {
                true => {
                    (0..names.len()).filter(|at| names[*at].starts_with(node)).collect()
                }
                false => places.get(node.as_str()).copied().into_iter().collect(),
            };
            if found.is_empty() {
                FleetDoubt::add(doubts, FleetDoubtCode::UnknownNode, "", node);
            }
            for at in found {
                all[at].extend(labels.iter().cloned());
            }
        }
        for (labels, begin) in all.iter_mut().zip(begins(names)) {
            if let Some(begin) = begin.filter(|_| !labels.contains_key(NAME)) {
                labels.insert(NAME.to_owned(), begin);
            }
        }
        all.into_iter().map(|labels| labels.into_iter().collect()).collect()
    }
}

/// What is before the last number of each name, if that divides the nodes into several groups of several.
fn begins(names: &[&str]) -> Vec<Option<String>> {
    let all: Vec<Option<&str>> = names.iter().map(|name| before_number(name)).collect();
    let distinct: BTreeSet<&str> = all.iter().flatten().copied().collect();
    let is_useful = distinct.len() > 1 && 2 * distinct.len() <= names.len();
    all.into_iter().map(|begin| begin.filter(|_| is_useful).map(str::to_owned)).collect()
}

/// What is before the last number of the first part of a name.
fn before_number(name: &str) -> Option<&str> {
    let host = name.split('.').next()?;
    let end = host.rfind(|c: char| c.is_ascii_digit())? + 1;
    let begin = host[..end].trim_end_matches(|c: char| c.is_ascii_digit());
    Some(begin.trim_end_matches(['-', '_'])).filter(|begin| !begin.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, names: &[&str]) -> Vec<String> {
        let labels = FleetLabels::parse(text).unwrap().of_nodes(names, &mut Vec::new());
        let pair = |(key, value): (String, String)| format!("{key}={value}");
        labels
            .into_iter()
            .map(|own| own.into_iter().map(pair).collect::<Vec<_>>().join(" "))
            .collect()
    }

    /// Check labels of single nodes and of beginnings, comments, and that a later line has precedence.
    #[test]
    fn files() {
        let text = "\u{feff}# racks\nn*, rack = r1\n\nn2,rack=r2,role=io\r\n";
        assert_eq!(of(text, &["n1", "n2", "m"]), ["rack=r1", "rack=r2 role=io", ""]);
        let mut doubts = Vec::new();
        FleetLabels::parse("x,a=b").unwrap().of_nodes(&["n1"], &mut doubts);
        assert_eq!(doubts[0].code, FleetDoubtCode::UnknownNode);
        for wrong in ["n1", "n1,rack", ",a=b", "n1,=b", "n1,"] {
            let error = FleetLabels::parse(&format!("a,b=c\n{wrong}")).unwrap_err();
            assert!(error.to_string().contains("line 2"), "{wrong}");
        }
    }

    /// Check that names with numbers of racks and nodes are divided by rack, and others are not divided.
    #[test]
    fn names() {
        let names = ["r1n01", "r1n02", "r2n01.site", "r2n02.site"];
        assert_eq!(of("", &names), ["name=r1n", "name=r1n", "name=r2n", "name=r2n"]);
        assert_eq!(of("", &["node-01", "node-02", "node-03"]), ["", "", ""]);
        assert_eq!(of("", &["a1", "b1", "c1"]), ["", "", ""]);
        assert_eq!(of("", &["a-1", "a-2", "b-1", "b-2", "17"])[3..], ["name=b", ""]);
        assert_eq!(of("", &["é1", "é2", "ü1", "ü2"])[0], "name=é");
    }
}
