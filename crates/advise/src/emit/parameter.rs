//! Boot parameters, as the boot loaders' formats have them.
//!
//! `Documentation/admin-guide/kernel-parameters.rst`: a value with spaces is in double quotes, and there is no
//! escape for a double quote in it.

use crate::emit::wanted::{Wanted, What};
use crate::lasting::{Lasting, lasting};

/// A change of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parameter {
    /// It replaces those with its name.
    Add(String),
    /// The name of one that is removed.
    Remove(String),
}

impl Parameter {
    /// The parameter of a change.
    ///
    /// # Errors
    /// Why it has none.
    pub(super) fn of(wanted: &Wanted) -> Result<Self, String> {
        let parameter = match &wanted.what {
            What::Boot(parameter) => Self::Add(parameter.clone()),
            What::Unboot(name) => Self::Remove(name.clone()),
            What::Set { name, to, .. } => {
                let mut ways = lasting(name, to).into_iter();
                let parameter = ways.find_map(|way| match way {
                    Lasting::KernelParameter(parameter) => Some(parameter),
                    Lasting::Sysctl(_) | Lasting::Tmpfile(_) | Lasting::TunedCpu(_) => {
                        None
                    }
                });
                Self::Add(parameter.ok_or_else(|| wanted.elsewhere())?)
            }
            What::Banned(_) | What::Kubelet(_) => return Err(wanted.elsewhere()),
        };
        let text = parameter.text();
        match text.is_empty() || text.contains(|c| "\"'\\".contains(c)) {
            true => Err(format!("boot loaders would change the quotes of {text}")),
            false => Ok(parameter),
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Add(text) | Self::Remove(text) => text,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.text().split('=').next().unwrap_or_default()
    }

    /// The parameter if it is added, as the manifest has it.
    pub(super) fn added(&self) -> Option<String> {
        match self {
            Self::Add(text) => Some(text.clone()),
            Self::Remove(_) => None,
        }
    }
}

/// The parameter in the kernel's own quotes.
pub(super) fn quoted(text: &str) -> String {
    match text.contains(' ') {
        true => format!("\"{text}\""),
        false => text.to_owned(),
    }
}

/// `words_without NAME MARKS`: the words of a command line without the parameters of that name. A value in quotes,
/// which are these marks, may have spaces.
pub(super) const WITHOUT: &str = r#"words_without() {
    awk -v name="$1" -v marks="$2" '{
        end = length($0) + 1
        quote = word = rest = ""
        for (at = 1; at <= end; at++) {
            char = at < end ? substr($0, at, 1) : " "
            if (quote == "" && index(marks, char)) quote = char
            else if (char == quote) quote = ""
            if (at < end && (quote != "" || char !~ /[ \t]/)) {
                word = word char
                continue
            }
            plain = word
            if (index(marks, substr(plain, 1, 1))) plain = substr(plain, 2)
            if (word != "" && plain != name && index(plain, name "=") != 1)
                rest = rest (rest == "" ? "" : " ") word
            word = ""
        }
        print rest
    }'
}
"#;
