//! Errors and their causes, in the order in which they are printed:
//! `failed to open FILE: Permission denied; hint: run as root`.
//!
//! An error's own text never contains that of its `source()`; [`chain`] joins them.

use std::error::Error;
use std::iter::successors;

/// What caused an error, of any type; made from text, too.
pub type Cause = Box<dyn Error + Send + Sync>;

/// The text of an error and of each of its causes, joined by `: `.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A cause together with what would help.
#[derive(Debug, thiserror::Error)]
#[error("{}; {help}", chain(.cause.as_ref()))]
pub struct Helped {
    cause: Cause,
    help: String,
}

impl Helped {
    /// The cause, followed by this help, such as `hint: run as root`.
    pub fn new(cause: impl Into<Cause>, help: impl Into<String>) -> Self {
        Self { cause: cause.into(), help: help.into() }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed to open the journal")]
    struct Failed(#[source] Cause);

    /// Check that every cause is printed once, in order, and help after the cause it is for.
    #[test]
    fn joined() {
        let cause = || io::Error::other(Failed("disk full".into()));
        assert_eq!(chain(&cause()), "failed to open the journal: disk full");
        let helped = Failed(Helped::new(cause(), "hint: delete something").into());
        let text = "failed to open the journal: failed to open the journal: disk full; \
                    hint: delete something";
        assert_eq!(chain(&helped), text);
    }
}
