//! The shell scripts beside the files: they put the files in place, and take them away again.
//!
//! They need a POSIX shell and the usual small programs. With `ROOT=DIR` they change the tree below DIR instead
//! of the machine, and run no other program: so they can be tried. A value is set back only if nothing changed
//! it in the meantime; what is not known is set back by the next boot.

use crate::emit::text::shell;
use crate::emit::wanted::What;
use crate::emit::{EmittedFile, Line, text};
use crate::lasting::RunTime;

/// The value of a file; of `a [b] c` and `a (b) c` what is chosen.
pub(super) const CHOSEN: &str = r#"
chosen() {
    text=$(cat "$1" 2>/dev/null) || text=
    case $text in
    *\[*\]*) text=${text#*\[} text=${text%%\]*} ;;
    *\(*\)*) text=${text#*\(} text=${text%%\)*} ;;
    esac
    printf '%s' "$text"
}
"#;

/// back FILE VALUE BEFORE: sets a file back.
const BACK: &str = r#"
back() {
    [ -e "$root$1" ] || return 0
    if [ "$(chosen "$root$1")" != "$2" ]; then
        echo "$1 is not $2 any more: not changed" >&2
    elif ! (printf '%s\n' "$3" >"$root$1") 2>/dev/null; then
        echo "failed to write $3 to $1" >&2
    fi
}
"#;

const START: &str = "set -eu\nroot=${ROOT-}\n";

/// `install.sh`: copies files, and runs these commands, as lines of the script.
pub(super) fn install(about: &str, files: &[EmittedFile], after: &str) -> EmittedFile {
    let copies = files.iter().map(|file| {
        format!("copy {} {:o}\n", shell(&format!("/{}", file.path)), file.mode)
    });
    let text = format!(
        "#!/bin/sh\n{}{}{START}here=$(dirname \"$0\")\n\
         copy() {{\n    mkdir -p \"$root$(dirname \"$1\")\"\n    \
         cp \"$here$1\" \"$root$1\"\n    chmod \"$2\" \"$root$1\"\n}}\n{}{after}",
        text::comment(
            "Copies the files to their places, and puts them into force. With ROOT=DIR, below DIR only."
        ),
        text::comment(about),
        copies.collect::<String>(),
    );
    EmittedFile::executable("install.sh", text)
}

/// `uninstall.sh`: removes the files after the first commands, sets back what was known, and runs the last ones.
pub(super) fn uninstall(
    about: &str,
    files: &[EmittedFile],
    lines: &[Line<'_>],
    [first, last]: [&str; 2],
) -> EmittedFile {
    let removed = files
        .iter()
        .map(|file| format!("rm -f \"$root\"{}\n", shell(&format!("/{}", file.path))));
    let backs: String = lines.iter().filter_map(|line| back(line)).collect();
    let helpers = match backs.is_empty() {
        true => String::new(),
        false => format!("{CHOSEN}{BACK}\n"),
    };
    let text = format!(
        "#!/bin/sh\n{}{}{START}{first}{}{helpers}{backs}{last}",
        text::comment(
            "Removes what install.sh copied, and sets values back. With ROOT=DIR, below DIR only."
        ),
        text::comment(about),
        removed.collect::<String>(),
    );
    EmittedFile::executable("uninstall.sh", text)
}

/// Commands that need the machine itself.
pub(super) fn on_machine(commands: &str) -> String {
    format!("[ -z \"$root\" ] || exit 0\n{commands}")
}

/// The line that sets a setting back; `None` if its files need more than that, or its value is unknown.
fn back(line: &Line<'_>) -> Option<String> {
    let What::Set { files: RunTime::Files { path, value }, .. } = &line.wanted.what
    else {
        return None;
    };
    let before = line.wanted.before.as_deref()?;
    if path.contains('*') || path.ends_with("/features") || line.boot.is_some() {
        return None;
    }
    Some(format!("back {} {} {}\n", shell(path), shell(value), shell(before)))
}
