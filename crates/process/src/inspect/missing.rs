//! What a look could not read.

/// Something that could not be read, and what it takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Missing {
    /// What is missing.
    pub what: String,
    /// What it takes to have it.
    pub need: String,
}

impl Missing {
    /// What takes the right to trace the process.
    pub(super) fn rights(what: &str) -> Self {
        let need = "the right to trace the process: run as its user, as root, or with \
                    CAP_SYS_PTRACE (where a container or hidepid forbids it, outside)";
        Self { what: what.to_owned(), need: need.to_owned() }
    }
}
