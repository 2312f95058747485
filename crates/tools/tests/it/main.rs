//! The commands as a user runs them, through the `atoll-tools` binary.
