//! Information that could not be read.

/// Information that could not be read, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Missing {
    /// The missing information.
    pub what: String,
    /// What is needed to read it.
    pub need: String,
}

impl Missing {
    /// Information that requires the right to trace the process.
    pub(super) fn rights(what: &str) -> Self {
        let need = "the right to trace the process: run as its user, as root, or with \
                    CAP_SYS_PTRACE (where a container or hidepid forbids it, outside)";
        Self { what: what.to_owned(), need: need.to_owned() }
    }
}
