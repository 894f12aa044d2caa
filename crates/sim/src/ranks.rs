//! Programs of many ranks that wait for each other, in virtual time.
