//! How the process ends.

use std::fmt;
use std::process::ExitCode;

/// The exit codes, which `atoll --help` lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All was done.
    Done,
    /// A statement or command of a script failed, or a query of the demo.
    Statement,
    /// The command line is invalid.
    Usage,
    /// The kernel or a container refused a placement that had to be (`--strict`, the demo).
    Placement,
    /// This machine or this kernel lacks what was requested.
    NotHere,
    /// `bench compare` found something slower.
    Slower,
    /// The guest was stopped after its time (`--timeout`), as timeout(1) says it.
    TimedOut,
    /// Atoll itself could not do its part.
    Own,
    /// The command to run is there and cannot be run.
    CannotRun,
    /// The command to run is not found.
    NotFound,
    /// Ctrl-C.
    Interrupted,
    /// The code of the command that was run.
    Child(u8),
}

impl Exit {
    /// The code as a number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Statement => 1,
            Self::Usage => 2,
            Self::Placement => 3,
            Self::NotHere => 4,
            Self::Slower => 5,
            Self::TimedOut => 124,
            Self::Own => 125,
            Self::CannotRun => 126,
            Self::NotFound => 127,
            Self::Interrupted => 130,
            Self::Child(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// What `atoll --help` says of them. Flags that cannot be understood end in 2, which is clap's.
pub const HELP: &str = "\
Exit codes:
  0    done
  1    a statement or command failed (later ones did not run)
  2    the command line is invalid
  3    a placement was refused or could not be verified
  4    this machine or kernel lacks what was requested
  5    a comparison found something slower (`bench compare`)
  124  the guest was stopped after its time (`lab`)
  125  Atoll itself failed: machine not readable, no threads, a file not readable
  126  the program to run cannot be run
  127  the program to run is not found
  130  interrupted (Ctrl-C)
`run` and `lab run` end with the code of the program; 128 + the signal where one ended it.";

/// An error with the code that the process ends with.
#[derive(Debug)]
pub struct CommandError {
    /// The code.
    pub exit: Exit,
    /// The message; None if it was printed already or is not needed.
    pub message: Option<String>,
}

impl CommandError {
    /// Ends with a message.
    pub fn with(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: Some(message.to_string()) }
    }

    /// Ends without a word more.
    pub fn quietly(exit: Exit) -> Self {
        Self { exit, message: None }
    }
}

/// Unforeseen errors are our own, except that a reader that went away (`| head`) is not an error.
impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        let is_closed_pipe = error.chain().any(|cause| {
            let io = cause.downcast_ref::<std::io::Error>();
            io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
        });
        match is_closed_pipe {
            true => Self::quietly(Exit::Done),
            false => Self::with(Exit::Own, without_repeated_causes(&error)),
        }
    }
}

/// The error and its causes, without those that an error before them has in its own words already.
fn without_repeated_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(|cause| cause.to_string()) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_is_reported_once() {
        let full = || Error::other("the disk is full");
        let message = |error: anyhow::Error| CommandError::from(error).message.unwrap();
        let named = anyhow::Error::from(full()).context("x.svg");
        assert_eq!(message(named), "x.svg: the disk is full");
        let worded = anyhow::Error::from(full()).context("x.svg: the disk is full; free some");
        assert_eq!(message(worded), "x.svg: the disk is full; free some");
    }

    #[test]
    fn a_reader_that_went_away_is_not_a_failure() {
        let closed: Result<(), Error> = Err(ErrorKind::BrokenPipe.into());
        let ends = CommandError::from(closed.context("writing a result").unwrap_err());
        assert_eq!((ends.exit, ends.message), (Exit::Done, None));
        assert_eq!(CommandError::from(Error::from(ErrorKind::StorageFull)).exit, Exit::Own);
    }
}
