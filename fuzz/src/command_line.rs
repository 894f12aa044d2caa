//! `/proc/cmdline`: any text is valid.
//!
//! Names and values are parts of the text, in order. Every listed parameter can be looked up by
//! name, with dashes or underscores.
#![no_main]

use facts::CommandLine;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let line = CommandLine::parse(text);
    let mut rest = text;
    for parameter in line.parameters() {
        rest = after(rest, &parameter.name);
        rest = after(rest, parameter.value.as_deref().unwrap_or(""));
        for name in [parameter.name.replace('-', "_"), parameter.name.replace('_', "-")] {
            assert!(parameter.is(&name) && line.has(&name));
            let last = line.all(&name).last();
            let value = last.and_then(|parameter| parameter.value.as_deref());
            assert_eq!(line.value(&name), value, "the last one counts");
        }
    }
});

/// The text after a piece of it.
fn after<'a>(text: &'a str, piece: &str) -> &'a str {
    let at = text.find(piece).expect("a piece of the text, in its order");
    &text[at + piece.len()..]
}
