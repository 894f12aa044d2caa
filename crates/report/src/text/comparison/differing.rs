//! Facts and parameters that differ between sets.

use recording::printable;
use serde_json::Value;
use summary::{RunSet, Variants};

use crate::number;
use crate::text::comparison::letter;
use crate::text::facts::value;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, aligned, columns};

/// The column of values.
const INDENT: usize = 26;

/// The facts and the parameters that differ, each with its value in every set.
pub(crate) fn differing(sets: &[RunSet]) -> String {
    let facts: Vec<&Variants> = sets.iter().map(|set| &set.facts).collect();
    let parameters: Vec<&Variants> = sets.iter().map(|set| &set.parameters).collect();
    let facts = match list(Variants::differing_facts(&facts), &facts) {
        none if none.is_empty() => {
            "\nNo fact differs: the same kernel, machine and settings, as far as known\n"
                .to_owned()
        }
        list => format!("\nFacts that differ\n{list}"),
    };
    match list(Variants::differing_parameters(&parameters), &parameters) {
        none if none.is_empty() => facts,
        list => format!("{facts}\nParameters of the measurement that differ\n{list}"),
    }
}

fn list(keys: Vec<&str>, sets: &[&Variants]) -> String {
    keys.into_iter().map(|key| entry(key, sets)).collect()
}

/// The lines of a key: one for each set.
fn entry(key: &str, sets: &[&Variants]) -> String {
    let label = label(key);
    let (mut text, first) = match columns(&label) + 4 > INDENT {
        true => (format!("  {label}\n"), String::new()),
        false => (String::new(), label),
    };
    for (at, set) in sets.iter().enumerate() {
        let label = if at == 0 { first.as_str() } else { "" };
        let lead = aligned(&format!("  {label}"), INDENT, Side::Left);
        let words = values(key, set, sets);
        let lead = format!("{lead}{}  ", letter(at));
        text.push_str(&paragraph(&lead, &words));
    }
    text
}

/// A fact's group and name, or a parameter's name, in words.
pub(crate) fn label(key: &str) -> String {
    if let Some(setting) = key.strip_prefix(Variants::SETTING) {
        return printable(&setting.to_owned()).into_owned();
    }
    match key.split_once('.') {
        Some((group, name)) if group == name => value::label(name),
        Some((group, name)) => format!("{group} {}", value::label(name)),
        None => value::label(key),
    }
}

/// The values of a key in a set; of lists of words, only the words that not all sets have.
fn values(key: &str, set: &Variants, sets: &[&Variants]) -> String {
    let words = |value: &Value| value::words(key, &printable(value));
    let lists: Option<Vec<_>> =
        sets.iter().map(|set| list_of_words(set.of(key))).collect();
    match (set.of(key), list_of_words(set.of(key)), lists) {
        ([], _, _) if key.starts_with(Variants::SETTING) => "not changed".to_owned(),
        // A fact that is unknown has a dot in its key, a parameter that is not there has none.
        ([], _, _) if key.contains('.') => number::UNKNOWN.to_owned(),
        ([], _, _) => words(&Value::Null),
        (_, Some(own), Some(all)) => {
            let is_everywhere = |word: &Value| all.iter().all(|list| list.contains(word));
            let rest: Vec<Value> =
                own.iter().filter(|word| !is_everywhere(word)).cloned().collect();
            if rest.is_empty() {
                number::NONE.to_owned()
            } else {
                words(&Value::Array(rest))
            }
        }
        (own, _, _) => match ends(own) {
            Some(ends) => ends.map(words).join(" to "),
            None => own.iter().map(words).collect::<Vec<String>>().join(" or "),
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
