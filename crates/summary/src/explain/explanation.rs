//! Instructions by function.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use units::{Instructions, Ppm};

use crate::explain::call_stack::{CallStack, share, total};

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

impl Explanation {
    /// Adds up stacks.
    pub fn of(stacks: &[CallStack<'_>]) -> Self {
        let mut costs: BTreeMap<&str, (Instructions, Instructions)> = BTreeMap::new();
        for stack in stacks {
            let innermost = stack.innermost();
            // A recursive function is on the stack several times, but its instructions count once.
            for name in stack.frames().iter().copied().collect::<BTreeSet<_>>() {
                let cost = costs.entry(name).or_default();
                cost.1 = cost.1 + stack.own();
                if name == innermost {
                    cost.0 = cost.0 + stack.own();
                }
            }
        }
        let costs =
            costs.into_iter().map(|(name, (own, total))| (name, own, Some(total)));
        Self::of_costs(total(stacks), costs)
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
        let all = costs.values().copied().sum();
        Self::of_costs(all, costs.into_iter().map(|(name, own)| (name, own, None)))
    }

    fn of_costs<'a>(
        all: Instructions,
        costs: impl Iterator<Item = (&'a str, Instructions, Option<Instructions>)>,
    ) -> Self {
        let cost = |(name, own_instructions, total_instructions): (&str, _, _)| {
            FunctionCost { name: name.to_owned(), own_instructions, total_instructions }
        };
        let mut functions: Vec<FunctionCost> = costs.map(cost).collect();
        let rank = |f: &FunctionCost| (f.own_instructions, f.total_instructions);
        functions.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.name.cmp(&b.name)));
        Self { total_instructions: all, functions }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::explain::example::{any_stacks, stacks};

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

    /// Check the keys: this is the JSON contract.
    #[test]
    fn contract() {
        let explanation = Explanation::of(&stacks(&["a 5"]));
        let expected = serde_json::json!({
            "total_instructions": 5,
            "functions": [{"name": "a", "own_instructions": 5, "total_instructions": 5}],
        });
        assert_eq!(serde_json::to_value(explanation).unwrap(), expected);
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
    }
}
