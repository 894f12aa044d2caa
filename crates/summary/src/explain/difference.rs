//! The difference of two numbers of instructions, by function.

use std::collections::BTreeMap;

use serde::Serialize;
use units::{Instructions, Ppm};

use crate::explain::call_stack::{CallStack, based, share, total};
use crate::explain::renames::Renames;

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

impl FunctionDifference {
    /// Whether it ran on each side. One without any instruction is a function of both.
    fn sides(&self) -> [bool; 2] {
        let [a, b] = [self.own_instructions_a, self.own_instructions_b]
            .map(|own| own != Instructions::ZERO);
        if a || b { [a, b] } else { [true; 2] }
    }
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
        let part = |sides: [bool; 2]| {
            DifferencePart::of(functions.iter().filter(|f| f.sides() == sides))
        };
        Self {
            total_instructions_a: a,
            total_instructions_b: b,
            difference: b.more_than(a),
            only_a: part([true, false]),
            only_b: part([false, true]),
            both: part([true, true]),
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

/// The own instructions of each function on two sides.
fn owns<'a>(sides: [&[CallStack<'a>]; 2]) -> BTreeMap<&'a str, [Instructions; 2]> {
    let mut owns: BTreeMap<&str, [Instructions; 2]> = BTreeMap::new();
    for (side, stacks) in sides.into_iter().enumerate() {
        for stack in stacks {
            let own = &mut owns.entry(stack.innermost()).or_default()[side];
            *own = *own + stack.own();
        }
    }
    owns
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::explain::example::{any_stacks, stacks};

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

    /// Check the keys: this is the JSON contract.
    #[test]
    fn contract() {
        let difference = Difference::of(&stacks(&["a 5"]), &stacks(&["a 3"]));
        let expected = r#"{"total_instructions_a":5,"total_instructions_b":3,"difference":-2,"only_a":{"functions":0,"own_instructions_a":0,"own_instructions_b":0,"difference":0},"only_b":{"functions":0,"own_instructions_a":0,"own_instructions_b":0,"difference":0},"both":{"functions":1,"own_instructions_a":5,"own_instructions_b":3,"difference":-2},"functions":[{"name":"a","own_instructions_a":5,"own_instructions_b":3,"difference":-2}]}"#;
        assert_eq!(serde_json::to_string(&difference).unwrap(), expected);
    }

    proptest! {
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
