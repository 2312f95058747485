//! Running the binary with a store of its own and none of the user's settings.

use std::path::Path;
use std::process::{Command, Stdio};

/// What the binary did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

impl Ran {
    /// Its stdout, after success.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// Its stdout as a JSON document, after success.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.done()).expect("one JSON document")
    }

    /// Its stderr, after the end with a code.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.err
    }
}

/// Runs it in a directory, which is its home and keeps its figures.
pub(crate) fn tools_in(home: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-tools"));
    let settings = std::env::vars_os().map(|(name, _)| name);
    for name in settings.filter(|name| name.to_string_lossy().starts_with("ATOLL_")) {
        command.env_remove(name);
    }
    command.env_remove("HWLOC_XMLFILE").env_remove("XDG_DATA_HOME").env("HOME", home);
    command.current_dir(home).stdin(Stdio::null()).args(arguments);
    let output = command.output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran { out: text(output.stdout), err: text(output.stderr), code: output.status.code() }
}

/// Runs it in a directory that vanishes.
pub(crate) fn tools(arguments: &[&str]) -> Ran {
    let home = tempfile::tempdir().expect("a temporary directory");
    tools_in(home.path(), arguments)
}
