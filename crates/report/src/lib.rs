//! Terminal and JSON.
