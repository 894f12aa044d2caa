//! Instructions by function, and the difference of two numbers of instructions by function.
//!
//! The input is stacks: the instructions executed in one function, with its callers. A function's own
//! instructions are those without the functions it called. They add up to the total, and the
//! differences of two sides to the difference of their totals, exactly.
//!
//! Cannot see functions that the compiler inlined: they are part of their callers.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use units::{Instructions, Ppm};

use crate::explain::renames::Renames;

pub(crate) mod flame;
pub(crate) mod phase;
pub(crate) mod renames;
pub(crate) mod tick_kinds;
pub(crate) mod typical;
pub(crate) mod whole_phase;

/// The name of instructions in no known function.
const UNKNOWN: &str = "[unknown]";

/// The instructions executed in one function, with its callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStack<'a> {
    frames: Vec<&'a str>,
    own: Instructions,
}

impl<'a> CallStack<'a> {
    /// `frames` are the functions from the outermost to the innermost. Without any they become
    /// `[unknown]`, so that no instruction is dropped.
    pub fn new(frames: Vec<&'a str>, own: Instructions) -> Self {
        let frames = if frames.is_empty() { vec![UNKNOWN] } else { frames };
        Self { frames, own }
    }

    /// From the outermost function to the innermost; never empty.
    pub fn frames(&self) -> &[&'a str] {
        &self.frames
    }

    /// Instructions of the innermost function itself.
    pub fn own(&self) -> Instructions {
        self.own
    }

    /// The stack with the names of functions in the source.
    fn based(&self) -> Self {
        let frames = self.frames.iter().map(|name| base_name(name)).collect();
        Self { frames, own: self.own }
    }
}

/// The cost of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionCost {
    /// The function.
    pub name: String,
    /// Its own instructions.
    pub own_instructions: Instructions,
    /// Those, and the instructions of all functions that it called; null if the callers of functions
    /// were not recorded.
    pub total_instructions: Option<Instructions>,
}

/// Instructions by function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// All of them.
    pub total_instructions: Instructions,
    /// Each function, in descending order of own instructions.
    pub functions: Vec<FunctionCost>,
}

fn sorted(mut functions: Vec<FunctionCost>) -> Vec<FunctionCost> {
    let rank = |f: &FunctionCost| (f.own_instructions, f.total_instructions);
    functions.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.name.cmp(&b.name)));
    functions
}

impl Explanation {
    /// Adds up stacks.
    pub fn of(stacks: &[CallStack<'_>]) -> Self {
        let mut costs: BTreeMap<&str, (Instructions, Instructions)> = BTreeMap::new();
        for stack in stacks {
            let innermost = innermost(stack);
            // A recursive function is on the stack several times, but its instructions count once.
            for name in stack.frames.iter().copied().collect::<BTreeSet<_>>() {
                let cost = costs.entry(name).or_default();
                cost.1 = cost.1 + stack.own;
                if name == innermost {
                    cost.0 = cost.0 + stack.own;
                }
            }
        }
        let cost = |(name, (own, total)): (&str, _)| FunctionCost {
            name: name.to_owned(),
            own_instructions: own,
            total_instructions: Some(total),
        };
        let functions = costs.into_iter().map(cost).collect();
        Self { total_instructions: total(stacks), functions: sorted(functions) }
    }

    /// Adds up instructions of functions whose callers are not known.
    pub(crate) fn without_callers<'a>(
        own: impl IntoIterator<Item = (&'a str, Instructions)>,
    ) -> Self {
        let mut costs: BTreeMap<&str, Instructions> = BTreeMap::new();
        for (name, own) in own {
            let cost = costs.entry(name).or_default();
            *cost = *cost + own;
        }
        let cost = |(name, own): (&str, _)| FunctionCost {
            name: name.to_owned(),
            own_instructions: own,
            total_instructions: None,
        };
        let total_instructions = costs.values().copied().sum();
        let functions = costs.into_iter().map(cost).collect();
        Self { total_instructions, functions: sorted(functions) }
    }

    /// The costs by name.
    pub(crate) fn costs(&self) -> BTreeMap<&str, &FunctionCost> {
        self.functions.iter().map(|cost| (cost.name.as_str(), cost)).collect()
    }

    /// A part of the total.
    pub fn share(&self, part: Instructions) -> Option<Ppm> {
        share(part, self.total_instructions)
    }

    /// The own instructions of the functions after the first `shown`.
    pub fn rest(&self, shown: usize) -> Instructions {
        self.functions.iter().skip(shown).map(|cost| cost.own_instructions).sum()
    }
}

/// The cost of one function on both sides, by its name in the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionDifference {
    /// The function; if it was renamed, its name on the second side.
    pub name: String,
    /// Its name on the first side, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// Its own instructions on the first side; zero if it did not run.
    pub own_instructions_a: Instructions,
    /// Those on the second side.
    pub own_instructions_b: Instructions,
    /// How many more on the second side; negative if fewer.
    pub difference: i128,
}

/// The cost of several functions on both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DifferencePart {
    /// The number of functions.
    pub functions: u64,
    /// Their own instructions on the first side.
    pub own_instructions_a: Instructions,
    /// Those on the second side.
    pub own_instructions_b: Instructions,
    /// How many more on the second side; negative if fewer.
    pub difference: i128,
}

impl DifferencePart {
    fn of<'a>(functions: impl Iterator<Item = &'a FunctionDifference>) -> Self {
        functions.fold(Self::default(), |sum, function| Self {
            functions: sum.functions + 1,
            own_instructions_a: sum.own_instructions_a + function.own_instructions_a,
            own_instructions_b: sum.own_instructions_b + function.own_instructions_b,
            difference: sum.difference + function.difference,
        })
    }
}

/// The difference of two numbers of instructions, by function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// All instructions of the first side.
    pub total_instructions_a: Instructions,
    /// All instructions of the second side.
    pub total_instructions_b: Instructions,
    /// How many more on the second side: the sum of the functions' differences.
    pub difference: i128,
    /// Functions that ran on the first side only.
    pub only_a: DifferencePart,
    /// Functions that ran on the second side only.
    pub only_b: DifferencePart,
    /// All others. The three parts add up to the total.
    pub both: DifferencePart,
    /// Each function, in descending order of the size of its difference.
    pub functions: Vec<FunctionDifference>,
}

impl Difference {
    /// Compares stacks of two kernels. Parts and specialized copies of a function that the compiler
    /// made (`foo.isra.0`, `foo.cold`) count as the function. A renamed function is one function.
    pub fn of(a: &[CallStack<'_>], b: &[CallStack<'_>]) -> Self {
        let [a, b] = [a, b].map(based);
        let renames = Renames::of(&a, &b);
        Self::with(&renames, &a, &b)
    }

    /// The same for stacks of one kernel, in which two names are two functions.
    pub(crate) fn in_one_kernel(a: &[CallStack<'_>], b: &[CallStack<'_>]) -> Self {
        let [a, b] = [a, b].map(based);
        Self::with(&Renames::default(), &a, &b)
    }

    fn with<'a>(renames: &Renames<'a>, a: &[CallStack<'a>], b: &[CallStack<'a>]) -> Self {
        let (a, old_names) = (renames.rename(a), renames.old_names());
        let mut functions: Vec<FunctionDifference> = owns([&a, b])
            .into_iter()
            .map(|(name, [a, b])| FunctionDifference {
                name: name.to_owned(),
                renamed_from: old_names.get(name).map(|&old| old.to_owned()),
                own_instructions_a: a,
                own_instructions_b: b,
                difference: b.more_than(a),
            })
            .collect();
        let size = |f: &FunctionDifference| f.difference.unsigned_abs();
        functions.sort_by(|a, b| size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name)));
        let (a, b) = (total(&a), total(b));
        let part = |side: Side| {
            DifferencePart::of(functions.iter().filter(|f| Side::of(f) == side))
        };
        let (only_a, only_b, both) = (part(Side::A), part(Side::B), part(Side::Both));
        Self {
            total_instructions_a: a,
            total_instructions_b: b,
            difference: b.more_than(a),
            only_a,
            only_b,
            both,
            functions,
        }
    }

    /// The size of the difference, as a share of the first side.
    pub fn share(&self) -> Option<Ppm> {
        let size = u64::try_from(self.difference.unsigned_abs()).unwrap_or(u64::MAX);
        share(Instructions::new(size), self.total_instructions_a)
    }

    /// The sum of the functions after the first `shown`.
    pub fn rest(&self, shown: usize) -> DifferencePart {
        DifferencePart::of(self.functions.iter().skip(shown))
    }
}

/// The sides on which a function ran.
#[derive(PartialEq)]
enum Side {
    A,
    B,
    Both,
}

impl Side {
    fn of(function: &FunctionDifference) -> Self {
        let [a, b] = [function.own_instructions_a, function.own_instructions_b]
            .map(|own| own != Instructions::ZERO);
        match (a, b) {
            (true, false) => Self::A,
            (false, true) => Self::B,
            _ => Self::Both,
        }
    }
}

/// A part of the whole; `None` if the whole is zero.
pub(crate) fn share(part: Instructions, whole: Instructions) -> Option<Ppm> {
    (whole != Instructions::ZERO)
        .then(|| Ppm::new(part.get() as f64 / whole.get() as f64 * 1e6))
}

fn total(stacks: &[CallStack<'_>]) -> Instructions {
    stacks.iter().map(|stack| stack.own).sum()
}

/// The own instructions of each function on two sides.
fn owns<'a>(sides: [&[CallStack<'a>]; 2]) -> BTreeMap<&'a str, [Instructions; 2]> {
    let mut owns: BTreeMap<&str, [Instructions; 2]> = BTreeMap::new();
    for (side, stacks) in sides.into_iter().enumerate() {
        for stack in stacks {
            let own = &mut owns.entry(innermost(stack)).or_default()[side];
            *own = *own + stack.own;
        }
    }
    owns
}

fn innermost<'a>(stack: &CallStack<'a>) -> &'a str {
    stack.frames.last().copied().unwrap_or(UNKNOWN)
}

/// Stacks with the names of functions in the source.
pub(crate) fn based<'a>(stacks: &[CallStack<'a>]) -> Vec<CallStack<'a>> {
    stacks.iter().map(CallStack::based).collect()
}

/// Suffixes that compilers and linkers append to the name of a part or a copy of a function.
const SUFFIXES: [&str; 6] = ["isra", "constprop", "part", "cold", "lto_priv", "llvm"];

/// A function's name in the source: `foo` for `foo.isra.0.cold`.
fn base_name(name: &str) -> &str {
    let mut parts = name.split('.');
    let base = parts.next().unwrap_or(name);
    let is_suffixed = parts.next().is_some_and(|suffix| SUFFIXES.contains(&suffix));
    if is_suffixed && !base.is_empty() { base } else { name }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Stacks from lines: `a;b 12`.
    pub(crate) fn stacks<'a>(lines: &[&'a str]) -> Vec<CallStack<'a>> {
        let stack = |line: &&'a str| {
            let (frames, own) = line.rsplit_once(' ').unwrap();
            let own = Instructions::new(own.parse().unwrap());
            CallStack::new(
                frames.split(';').filter(|name| !name.is_empty()).collect(),
                own,
            )
        };
        lines.iter().map(stack).collect()
    }

    /// Random stacks of few names, so that functions recur and call themselves.
    pub(crate) fn any_stacks() -> impl Strategy<Value = Vec<CallStack<'static>>> {
        const NAMES: [&str; 8] = [
            "tick",
            "update",
            "update.isra.0",
            "update.part.0.cold",
            "timer",
            "__timer",
            "rcu",
            "update_rcu",
        ];
        let frames = prop::collection::vec(prop::sample::select(&NAMES[..]), 0..6);
        let stack = (frames, 0u64..5_000)
            .prop_map(|(frames, own)| CallStack::new(frames, Instructions::new(own)));
        prop::collection::vec(stack, 0..30)
    }

    fn rows(explanation: &Explanation) -> Vec<(&str, u64, u64)> {
        let row = |f: &'_ FunctionCost| {
            (f.own_instructions.get(), f.total_instructions.unwrap().get())
        };
        explanation
            .functions
            .iter()
            .map(|f| (f.name.as_str(), row(f).0, row(f).1))
            .collect()
    }

    /// Check own and total instructions by hand, also of a recursive function.
    #[test]
    fn by_hand() {
        let stacks = stacks(&["a 5", "a;b 3", "a;b;c 10", "a;b;c;b 7", " 2"]);
        let found = Explanation::of(&stacks);
        let expected = [("b", 10, 20), ("c", 10, 17), ("a", 5, 25), ("[unknown]", 2, 2)];
        assert_eq!(rows(&found), expected);
        assert_eq!(found.total_instructions, Instructions::new(27));
        assert_eq!(found.rest(2), Instructions::new(7));
        assert_eq!(found.share(Instructions::new(27)), Some(Ppm::new(1e6)));
        assert_eq!(Explanation::of(&[]).share(Instructions::ZERO), None);
    }

    /// Check that functions without callers are added up, and have no total.
    #[test]
    fn without_callers() {
        let own = [("a", 3), ("b", 9), ("a", 4)]
            .map(|(name, own)| (name, Instructions::new(own)));
        let found = Explanation::without_callers(own);
        let rows =
            found.functions.iter().map(|f| (f.name.as_str(), f.own_instructions.get()));
        assert_eq!(rows.collect::<Vec<_>>(), [("b", 9), ("a", 7)]);
        assert_eq!(found.total_instructions, Instructions::new(16));
        assert!(found.functions.iter().all(|f| f.total_instructions.is_none()));
    }

    /// Check that a part of a function counts as the function, that a function of one side only is
    /// zero on the other, and that the largest difference is first.
    #[test]
    fn difference_by_hand() {
        let before = stacks(&["a 5", "a;b.isra.0 30", "a;gone 4"]);
        let after = stacks(&["a 5", "a;b 20", "a;b.cold 5", "a;new.constprop.0 9"]);
        let found = Difference::of(&before, &after);
        let row = |f: &FunctionDifference| {
            let (a, b) = (f.own_instructions_a.get(), f.own_instructions_b.get());
            (f.name.clone(), a, b, f.difference)
        };
        let rows: Vec<_> = found.functions.iter().map(row).collect();
        let expected =
            [("new", 0, 9, 9), ("b", 30, 25, -5), ("gone", 4, 0, -4), ("a", 5, 5, 0)];
        let expected = expected.map(|(name, a, b, more)| (name.to_owned(), a, b, more));
        assert_eq!(rows, expected);
        assert_eq!(found.difference, 0);
        assert_eq!(found.rest(1).difference, -9);
        let parts = [found.only_a, found.only_b, found.both];
        let sums = parts.map(|part| (part.functions, part.difference));
        assert_eq!(sums, [(1, -4), (1, 9), (2, -5)]);
        assert_eq!(found.share(), Some(Ppm::new(0.0)));
    }

    /// Check that a renamed function is one function, with both names.
    #[test]
    fn renamed() {
        let before = stacks(&["run;old_timer.isra.0 5", "run;old_timer;get 3"]);
        let after = stacks(&["run;timer_new.cold 9", "run;timer_new;get 3"]);
        let both = [
            [before, stacks(&["run;old_timer;jiffies 2", "run;gone 1"])].concat(),
            [after, stacks(&["run;timer_new;jiffies 2"])].concat(),
        ];
        let found = Difference::of(&both[0], &both[1]);
        let pair = &found.functions[0];
        assert_eq!(pair.renamed_from.as_deref(), Some("old_timer"));
        assert_eq!((pair.name.as_str(), pair.difference), ("timer_new", 4));
        let parts = [found.only_a, found.only_b, found.both].map(|part| part.functions);
        assert_eq!(parts, [1, 0, 3]);
    }

    /// Check which suffixes are removed from names.
    #[test]
    fn base_names() {
        for (name, base) in [
            ("update_load_avg.isra.0", "update_load_avg"),
            ("foo.constprop.0.isra.1", "foo"),
            ("foo.llvm.123456", "foo"),
            ("foo.cold", "foo"),
            ("foo", "foo"),
            ("init.text", "init.text"),
            (".cold", ".cold"),
            ("__part", "__part"),
        ] {
            assert_eq!(base_name(name), base);
        }
    }

    /// Check the keys: this is the JSON contract.
    #[test]
    fn contract() {
        let explanation = Explanation::of(&stacks(&["a 5"]));
        let expected = serde_json::json!({
            "total_instructions": 5,
            "functions": [{"name": "a", "own_instructions": 5, "total_instructions": 5}],
        });
        assert_eq!(serde_json::to_value(explanation).unwrap(), expected);
        let difference = Difference::of(&stacks(&["a 5"]), &stacks(&["a 3"]));
        let expected = r#"{"total_instructions_a":5,"total_instructions_b":3,"difference":-2,"only_a":{"functions":0,"own_instructions_a":0,"own_instructions_b":0,"difference":0},"only_b":{"functions":0,"own_instructions_a":0,"own_instructions_b":0,"difference":0},"both":{"functions":1,"own_instructions_a":5,"own_instructions_b":3,"difference":-2},"functions":[{"name":"a","own_instructions_a":5,"own_instructions_b":3,"difference":-2}]}"#;
        assert_eq!(serde_json::to_string(&difference).unwrap(), expected);
    }

    proptest! {
        /// Check that own instructions add up to the total, wherever a table is cut, and that the
        /// total of a function is between its own instructions and those of all.
        #[test]
        fn owns_add_up(stacks in any_stacks(), shown in 0usize..8) {
            let found = Explanation::of(&stacks);
            let whole: u64 = stacks.iter().map(|stack| stack.own().get()).sum();
            prop_assert_eq!(found.total_instructions.get(), whole);
            let first: u64 =
                found.functions.iter().take(shown).map(|f| f.own_instructions.get()).sum();
            prop_assert_eq!(first + found.rest(shown).get(), whole);
            for function in &found.functions {
                let total = function.total_instructions.unwrap();
                prop_assert!(function.own_instructions <= total);
                prop_assert!(total <= found.total_instructions);
            }
        }

        /// Check that the differences, and both sides, add up to those of the totals, wherever a
        /// table is cut.
        #[test]
        fn differences_add_up(a in any_stacks(), b in any_stacks(), shown in 0usize..8) {
            let found = Difference::of(&a, &b);
            let rest = found.rest(shown);
            let first = || found.functions.iter().take(shown);
            let whole = |stacks: &[CallStack<'_>]| {
                stacks.iter().map(|stack| i128::from(stack.own().get())).sum::<i128>()
            };
            let sum: i128 = first().map(|f| f.difference).sum();
            prop_assert_eq!(sum + rest.difference, whole(&b) - whole(&a));
            prop_assert_eq!(found.difference, whole(&b) - whole(&a));
            let a: Instructions = first().map(|f| f.own_instructions_a).sum();
            prop_assert_eq!(a + rest.own_instructions_a, found.total_instructions_a);
            let b: Instructions = first().map(|f| f.own_instructions_b).sum();
            prop_assert_eq!(b + rest.own_instructions_b, found.total_instructions_b);
            let parts = [found.only_a, found.only_b, found.both];
            let sum: i128 = parts.iter().map(|part| part.difference).sum();
            prop_assert_eq!(sum, found.difference);
            let a: Instructions = parts.iter().map(|part| part.own_instructions_a).sum();
            prop_assert_eq!(a, found.total_instructions_a);
        }

        /// Check that a side does not differ from itself.
        #[test]
        fn same_is_no_difference(stacks in any_stacks()) {
            let found = Difference::of(&stacks, &stacks);
            prop_assert!(found.functions.iter().all(|f| f.difference == 0));
        }
    }
}
