//! Facts and parameters that differ between sets.

use serde::{Serialize, Serializer};
use serde_json::Value;
use summary::{RunSet, Variants};

use crate::comparisons::letter;
use crate::document::Document;
use crate::document::table::{Column, Table, cells};
use crate::document::text::{Text, text};
use crate::kernel_facts::value;
use crate::number;

/// Of more keys that differ than this, one screen has the first ones only, without their values.
const KEYS: usize = 4;
/// The number of these.
const NAMED: usize = 6;

/// Keys that differ, each with the values of all sets.
pub(crate) struct Differing<'a> {
    keys: Vec<&'a str>,
    sets: Vec<&'a Variants>,
}

impl Serialize for Differing<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let values =
            |key| self.sets.iter().map(|set| set.of(key)).collect::<Vec<&[Value]>>();
        to.collect_map(self.keys.iter().map(|key| (key, values(key))))
    }
}

impl<'a> Differing<'a> {
    pub(crate) fn facts(sets: &'a [RunSet]) -> Self {
        let sets: Vec<&Variants> = sets.iter().map(|set| &set.facts).collect();
        Self { keys: Variants::differing_facts(&sets), sets }
    }

    pub(crate) fn parameters(sets: &'a [RunSet]) -> Self {
        let sets: Vec<&Variants> = sets.iter().map(|set| &set.parameters).collect();
        Self { keys: Variants::differing_parameters(&sets), sets }
    }

    /// The keys as a section, each with its value in every set; empty if none differs.
    fn section(&self, title: &str, what: &str) -> Document {
        let values = Document::section(title, self.table());
        match self.keys.len() <= KEYS {
            true => values,
            false => Document::default().add_screen(self.sentence(what)).add_full(values),
        }
    }

    fn table(&self) -> Table {
        let columns = [Column::name("", 12..=40), Column::words(""), Column::prose("")];
        let mut table = Table::new(columns);
        for key in &self.keys {
            for (at, set) in self.sets.iter().enumerate() {
                let label = if at == 0 { label(key) } else { Text::default() };
                table.row(cells![label, letter(at), values(key, set, &self.sets)]);
            }
        }
        table
    }

    fn sentence(&self, what: &str) -> Text {
        let labels = self.keys.iter().map(|key| label(key)).collect();
        let labels = Text::first(NAMED, labels, ", ");
        text!("{} {} differ: {}.", self.keys.len(), what, labels)
    }
}

/// The facts and the parameters that differ.
pub(crate) fn differing(sets: &[RunSet]) -> Document {
    let facts = Differing::facts(sets).section("Facts that differ", "facts");
    let facts = match facts.is_empty() {
        true => "No fact differs: the same kernel, machine and settings, as far as known"
            .into(),
        false => facts,
    };
    let (title, what) =
        ("Parameters of the measurement that differ", "parameters of the measurement");
    facts.add(Differing::parameters(sets).section(title, what))
}

/// A fact's group and name, or a parameter's name, in words.
pub(crate) fn label(key: &str) -> Text {
    if let Some(setting) = key.strip_prefix(Variants::SETTING) {
        return Text::name(setting);
    }
    match key.split_once('.') {
        Some((group, name)) if group == name => value::label(name).into(),
        Some((group, name)) => format!("{group} {}", value::label(name)).into(),
        None => value::label(key).into(),
    }
}

/// A value in words: a name, because any part of it may be one.
pub(crate) fn words(key: &str, value: &Value) -> Text {
    let one = |value: &Value| Text::name(value::words(key, value).to_string());
    match value.as_array() {
        Some(list) if key == "boot.inert" && !list.is_empty() => {
            let each = list.iter().map(|inert| one(&Value::Array(vec![inert.clone()])));
            Text::join(each, "; ")
        }
        _ => one(value),
    }
}

/// The values of a key in a set; of lists of words, only the words that not all sets have.
fn values(key: &str, set: &Variants, sets: &[&Variants]) -> Text {
    let lists: Option<Vec<_>> =
        sets.iter().map(|set| list_of_words(set.of(key))).collect();
    match (set.of(key), list_of_words(set.of(key)), lists) {
        ([], _, _) if key.starts_with(Variants::SETTING) => "not changed".into(),
        // A fact that is unknown has a dot in its key, a parameter that is not there has none.
        ([], _, _) if key.contains('.') => number::UNKNOWN.into(),
        ([], _, _) => words(key, &Value::Null),
        (_, Some(own), Some(all)) => {
            let is_everywhere = |word: &Value| all.iter().all(|list| list.contains(word));
            let rest: Vec<Value> =
                own.iter().filter(|word| !is_everywhere(word)).cloned().collect();
            if rest.is_empty() {
                number::NONE.into()
            } else {
                words(key, &Value::Array(rest))
            }
        }
        (own, _, _) => match ends(own) {
            Some(ends) => Text::join(ends.map(|value| words(key, value)), " to "),
            None => Text::join(own.iter().map(|value| words(key, value)), " or "),
        },
    }
}

/// The smallest and the largest of many numbers.
fn ends(values: &[Value]) -> Option<[&Value; 2]> {
    let numbers = values.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()?;
    let order = |a: &usize, b: &usize| numbers[*a].total_cmp(&numbers[*b]);
    let least = (0..numbers.len()).min_by(order)?;
    let most = (0..numbers.len()).max_by(order)?;
    (numbers.len() > 2).then(|| [&values[least], &values[most]])
}

/// The words of a key whose only value is a list of them.
fn list_of_words(values: &[Value]) -> Option<&Vec<Value>> {
    let [Value::Array(words)] = values else { return None };
    words.iter().all(Value::is_string).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a few values are listed, and that of many numbers the ends are.
    #[test]
    fn many_numbers() {
        for (own, expected) in [
            (&[3_000, 1_000][..], "3 µs or 1 µs"),
            (&[3_000, 1_000, 2_000], "1 µs to 3 µs"),
        ] {
            let own = own.iter().map(|value| Value::from(*value)).collect();
            let set = Variants { keys: vec![("interval_ns".to_owned(), own)] };
            assert_eq!(values("interval_ns", &set, &[&set]), expected);
        }
    }
}
