//! The result of a program that a test ran.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::default_signals;

/// The result of a program.
#[derive(Debug)]
pub struct Ran {
    /// Its stdout.
    pub out: String,
    /// Its stderr.
    pub err: String,
    /// Its exit code; None if a signal ended it.
    pub code: Option<i32>,
}

impl From<Output> for Ran {
    /// # Panics
    /// If its output is not UTF-8.
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

    /// Its stderr, after it exited with this code.
    #[track_caller]
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.err
    }
}

/// Hides the user's settings (`ATOLL_…`) from a program.
pub fn without_settings(command: &mut Command) {
    let settings = std::env::vars_os().map(|(name, _)| name);
    for name in settings.filter(|name| name.to_string_lossy().starts_with("ATOLL_")) {
        command.env_remove(name);
    }
}

/// A program in a directory, which is its home too, with none of the user's settings.
pub fn program_in(program: &Path, home: &Path) -> Command {
    default_signals();
    let mut command = Command::new(program);
    without_settings(&mut command);
    command.env_remove("XDG_CACHE_HOME").env_remove("XDG_DATA_HOME");
    command.env("HOME", home).env_remove("NO_COLOR").current_dir(home);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a program with this text on its stdin.
///
/// # Panics
/// When it does not start.
pub fn run_with(command: &mut Command, stdin: &str) -> Ran {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("its stdin");
    let text = stdin.to_owned();
    let writer = thread::spawn(move || {
        // A program that fails early leaves its stdin unread.
        let _ = input.write_all(text.as_bytes());
    });
    let output = child.wait_with_output().expect("the program ends");
    writer.join().expect("its stdin was written");
    output.into()
}
