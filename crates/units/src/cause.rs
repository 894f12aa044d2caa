//! Errors and their causes, printed as `failed to open FILE: Permission denied; hint: run as root`.
//!
//! The text of an error never contains that of its `source()`; [`chain`] joins them.

use std::error::Error;
use std::iter::successors;

/// The cause of an error: any error type, or text.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Joins the texts of an error and of its causes with `: `.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A cause with a hint for the user.
#[derive(Debug, thiserror::Error)]
#[error("{}; {help}", chain(.cause.as_ref()))]
pub struct Helped {
    cause: Cause,
    help: String,
}

impl Helped {
    /// Appends a hint, such as `hint: run as root`, to a cause.
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

    /// Check that each cause is printed once, in order, and each hint after its cause.
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
