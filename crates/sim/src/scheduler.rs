//! The kernel's scheduler in virtual time.
