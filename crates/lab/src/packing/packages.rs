//! The Debian package that has a missing program or library.

/// A hint for a program that is not in `PATH`.
pub(super) fn of_program(name: &str) -> String {
    format!("install it, or write its path, as ./{name}")
}

/// A hint for a library.
pub(super) fn of_library(name: &str) -> String {
    format!("install the package that has {name}")
}

/// A hint for a file.
pub(super) fn of_path(path: &str) -> String {
    format!("install the package that has {path}")
}
