//! The counts as text: JSON in the format of `recording`'s `Counts` and `Profile`, which the lab
//! reads.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::borders::Borders;
use crate::episode::{Level, What};
use crate::kinds::Kind;
use crate::phase::OnCpu;
use crate::symbols::{Function, Symbols, UNKNOWN};
use crate::watcher::Watcher;

/// All phases as one JSON object `{"counts": ..., "profile": ...}`.
pub(crate) fn json(
    watcher: &Watcher,
    counters: &[Function],
    symbols: &Symbols,
) -> String {
    let Watcher { phases, kinds, .. } = watcher;
    let mut names = Names::default();
    let counts = list(phases, |cpus| {
        let cpus = list(cpus.iter().enumerate(), |(cpu, on)| on_cpu(cpu, on, symbols));
        format!("{{\"cpus\":{cpus}}}")
    });
    let episodes = list(kinds.usual(), |kind| episode(kind, symbols, &mut names));
    let wholes = list(whole_phases(phases), |(phase, cpu, on)| {
        let calls = list(&on.whole, |called| {
            let caller =
                called.caller.map_or("null".to_owned(), |place| place.to_string());
            format!("[{},{caller},{}]", names.place(called.function), called.own)
        });
        format!("{{\"phase\":{phase},\"cpu\":{cpu},\"calls\":{calls}}}")
    });
    let at_borders = watcher.borders.as_ref().map(|it| borders(it, counters, &mut names));
    let at_borders = at_borders.unwrap_or_default();
    let names = list(&names.order, |&function| text(symbols.name(function)));
    format!(
        "{{\"counts\":{{\"phases\":{counts}}},\
         \"profile\":{{\"names\":{names},\"episodes\":{episodes},\
         \"phases\":{wholes}{at_borders}}}}}\n"
    )
}

/// The CPUs with a profile of the whole phase.
fn whole_phases(phases: &[Vec<OnCpu>]) -> impl Iterator<Item = (usize, usize, &OnCpu)> {
    let all = phases.iter().enumerate().flat_map(|(phase, cpus)| {
        cpus.iter().enumerate().map(move |(cpu, on)| (phase, cpu, on))
    });
    all.filter(|(_, _, on)| !on.whole.is_empty())
}

/// What was counted at borders: contexts and functions, by group; `counters` are the functions in the
/// order of their counters.
fn borders(borders: &Borders, counters: &[Function], names: &mut Names) -> String {
    let contexts = list(&borders.costs, |((group, path), cost)| {
        let path = list(path, |&function| names.place(function).to_string());
        format!("[{group},{path},{},{}]", cost.own, cost.times)
    });
    let functions = list(borders.functions.all(), |(group, counter, own)| {
        let function = counters.get(counter).copied().unwrap_or(UNKNOWN);
        format!("[{group},{},{own}]", names.place(function))
    });
    format!(",\"contexts\":{contexts},\"functions\":{functions}")
}

/// The functions named so far, in order.
#[derive(Default)]
struct Names {
    places: BTreeMap<Function, usize>,
    order: Vec<Function>,
}

impl Names {
    fn place(&mut self, function: Function) -> usize {
        let next = self.order.len();
        *self.places.entry(function).or_insert_with(|| {
            self.order.push(function);
            next
        })
    }
}

fn on_cpu(cpu: usize, on: &OnCpu, symbols: &Symbols) -> String {
    let steps = on.values.get(&What::Step).map_or("[]".to_owned(), values);
    let interruptions = on.values.iter().filter_map(|(what, costs)| {
        let What::Interruption(entry, from) = *what else { return None };
        Some((entry, from, costs))
    });
    let interruptions = list(interruptions, |(entry, from, costs)| {
        let way = way(entry, from, symbols);
        format!("{{{way},\"kernel\":{}}}", values(costs))
    });
    let groups =
        list(&on.groups, |(group, of)| format!("[{group},{},{}]", of.user, of.kernel));
    let groups = match on.groups.is_empty() {
        true => String::new(),
        false => format!(",\"groups\":{groups}"),
    };
    let idle = on.idle.as_ref().map(|idle| format!(",\"idle_ns\":{}", values(idle)));
    let idle = idle.unwrap_or_default();
    format!(
        "{{\"cpu\":{cpu},\"user\":{},\"kernel\":{},\"steps\":{steps},\
         \"interruptions\":{interruptions}{groups}{idle}}}",
        on.executed.user, on.executed.kernel
    )
}

fn episode(kind: &Kind, symbols: &Symbols, names: &mut Names) -> String {
    let what = match kind.what {
        What::Step => "\"step\"".to_owned(),
        What::Interruption(entry, from) => {
            format!("{{\"interruption\":{{{}}}}}", way(entry, from, symbols))
        }
    };
    let stacks = list(kind.tree.stacks(), |(path, own)| {
        let frames = list(path, |function| names.place(function).to_string());
        format!("{{\"frames\":{frames},\"own\":{own}}}")
    });
    let times = list(&kind.times, |(phase, times)| format!("[{phase},{times}]"));
    let Kind { cpu, total, .. } = kind;
    format!(
        "{{\"cpu\":{cpu},\"what\":{what},\"total\":{total},\"times\":{times},\
         \"stacks\":{stacks}}}"
    )
}

fn way(entry: Function, from: Level, symbols: &Symbols) -> String {
    let from = match from {
        Level::User => "user",
        Level::Kernel => "kernel",
    };
    format!("\"entry\":{},\"from\":\"{from}\"", text(symbols.name(entry)))
}

fn values(costs: &BTreeMap<u64, u64>) -> String {
    list(costs, |(cost, times)| format!("[{cost},{times}]"))
}

fn list<T>(items: impl IntoIterator<Item = T>, write: impl FnMut(T) -> String) -> String {
    let items: Vec<String> = items.into_iter().map(write).collect();
    format!("[{}]", items.join(","))
}

/// A string of JSON; symbols are usually plain, but the guest's data is not trusted.
fn text(plain: &str) -> String {
    let mut text = String::from("\"");
    for letter in plain.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            letter if letter.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            letter => text.push(letter),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::Count;
    use crate::kinds::Kinds;
    use crate::phase::Phase;
    use crate::tree::Tree;
    use crate::watcher::Detail;
    use crate::whole::Called;

    /// Check the format of the text.
    #[test]
    fn shape() {
        let symbols =
            Symbols::parse("ffffffff81000000 T enter\nffffffff81000100 t \"odd\\");
        let mut phase = Phase::begin(0, &[Count::default()], Kinds::default());
        let mut tree = Tree::new();
        let outer = tree.child(Tree::ROOT, Function(2));
        let inner = tree.child(outer, Function(3));
        tree.add(inner, 7);
        phase.add(0, What::Interruption(Function(2), Level::User), 7, tree);
        let mut tree = Tree::new();
        tree.add(Tree::ROOT, 9);
        phase.add(0, What::Step, 9, tree);
        let (mut cpus, kinds) = phase.end(&[Count { user: 100, kernel: 7 }]);
        let called =
            |function, caller, own| Called { function: Function(function), caller, own };
        cpus[0].idle = Some(BTreeMap::from([(90, 2)]));
        cpus[0].whole = vec![called(2, None, 2), called(3, Some(0), 5)];
        let expected = concat!(
            r#"{"counts":{"phases":[{"cpus":[{"cpu":0,"user":100,"kernel":7,"#,
            r#""steps":[[9,1]],"interruptions":[{"entry":"enter","from":"user","#,
            r#""kernel":[[7,1]]}],"idle_ns":[[90,2]]}]}]},"profile":{"names":["enter","\"odd\\"],"#,
            r#""episodes":[{"cpu":0,"what":{"interruption":{"entry":"enter","#,
            r#""from":"user"}},"total":7,"times":[[0,1]],"#,
            r#""stacks":[{"frames":[0,1],"own":7}]},"#,
            r#"{"cpu":0,"what":"step","total":9,"times":[[0,1]],"#,
            r#""stacks":[{"frames":[],"own":9}]}],"phases":["#,
            r#"{"phase":0,"cpu":0,"calls":[[0,null,2],[1,0,5]]}]}}"#,
            "\n"
        );
        let mut watcher = Watcher::new(1, &symbols, Detail::Calls);
        (watcher.phases, watcher.kinds) = (vec![cpus], kinds);
        assert_eq!(json(&watcher, &[], &symbols), expected);
    }
}
