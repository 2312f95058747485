//! What a program did that a test ran.

use std::process::{Command, Output};

/// What a program did.
#[derive(Debug)]
pub struct Ran {
    /// Its stdout.
    pub out: String,
    /// Its stderr.
    pub err: String,
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
}

impl From<Output> for Ran {
    /// # Panics
    /// When it printed what is not text.
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
        Self { out: text(output.stdout), err: text(output.stderr), code: output.status.code() }
    }
}

impl Ran {
    /// Its stdout, after success.
    #[track_caller]
    pub fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// Its stdout as a JSON document, after success.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        serde_json::from_str(&self.done()).expect("one JSON document")
    }

    /// Its stderr, after the end with a code.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.err
    }
}

/// Keeps the user's settings (`ATOLL_…`) from a program.
pub fn without_settings(command: &mut Command) {
    let settings = std::env::vars_os().map(|(name, _)| name);
    for name in settings.filter(|name| name.to_string_lossy().starts_with("ATOLL_")) {
        command.env_remove(name);
    }
}
