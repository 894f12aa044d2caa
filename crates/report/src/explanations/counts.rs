//! Numbers of instructions, and their differences.

use units::Instructions;

use crate::document::text::Figure;
use crate::number;

pub(crate) fn count(instructions: Instructions) -> Figure {
    number::count(instructions.get())
}

/// A difference: `+228`, `-5`, `0`.
pub(crate) fn format_signed(difference: i128) -> Figure {
    let sign = match difference.signum() {
        1 => "+",
        -1 => "-",
        _ => "",
    };
    format!("{sign}{}", size_of(difference)).into()
}

/// The size of a difference.
pub(crate) fn size_of(difference: i128) -> Figure {
    number::count(u64::try_from(difference.unsigned_abs()).unwrap_or(u64::MAX))
}
