//! The cargo that runs us, for the chores that call it.

use std::process::Command;

/// That cargo, without the variables it set for this crate: some build scripts ask to be
/// run again whenever `CARGO_PKG_*` or `CARGO_MANIFEST_*` differ, so a build from here and one from
/// the command line would undo each other.
pub(crate) fn cargo() -> Command {
    without_own_variables(Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())))
}

/// The same for a command that runs cargo itself.
pub(crate) fn without_own_variables(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}
