//! Measurements on this machine: what each returns, and that no input makes it panic.
