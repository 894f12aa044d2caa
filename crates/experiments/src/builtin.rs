//! The built-in experiments; `experiments/*.toml` in this crate's folder.

use crate::error::Error;

/// Names and texts.
pub(crate) const BUILTINS: [(&str, &str); 12] = [
    ("tick-cost", include_str!("../experiments/tick-cost.toml")),
    ("idle-cost", include_str!("../experiments/idle-cost.toml")),
    ("idle-hz", include_str!("../experiments/idle-hz.toml")),
    ("wake-delay", include_str!("../experiments/wake-delay.toml")),
    ("syscalls", include_str!("../experiments/syscalls.toml")),
    ("nohz-entry", include_str!("../experiments/nohz-entry.toml")),
    ("slices", include_str!("../experiments/slices.toml")),
    ("schedulers", include_str!("../experiments/schedulers.toml")),
    ("web", include_str!("../experiments/web.toml")),
    ("trim", include_str!("../experiments/trim.toml")),
    ("probe-cost", include_str!("../experiments/probe-cost.toml")),
    ("atlas", include_str!("../experiments/atlas.toml")),
];

/// The text of the built-in experiment of that name.
///
/// # Errors
/// There is none; the message names the existing ones.
pub(crate) fn text(name: &str) -> Result<&'static str, Error> {
    match BUILTINS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(text),
        None => {
            let [first @ .., last] = BUILTINS.map(|(name, _)| name);
            let builtins = format!("{} and {last}", first.join(", "));
            Err(Error::NoBuiltin(name.to_owned(), builtins))
        }
    }
}
