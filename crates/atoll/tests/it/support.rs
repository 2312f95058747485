//! Running the binary.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use atoll_testkit::without_settings;

pub(crate) use atoll_testkit::Ran;

/// The binary with an empty home and none of the user's settings.
pub(crate) fn command(home: &Path) -> Command {
    atoll_testkit::default_signals();
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    without_settings(&mut command);
    command.env_remove("XDG_CACHE_HOME").env_remove("XDG_DATA_HOME");
    command.env("HOME", home).env_remove("NO_COLOR").current_dir(home);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it with an empty stdin.
pub(crate) fn atoll(arguments: &[&str]) -> Ran {
    atoll_with(arguments, "")
}

/// Runs it with this on stdin.
pub(crate) fn atoll_with(arguments: &[&str], stdin: &str) -> Ran {
    let home = tempfile::tempdir().unwrap();
    atoll_in(home.path(), arguments, stdin)
}

/// Runs it in a directory, which is its home too.
pub(crate) fn atoll_in(home: &Path, arguments: &[&str], stdin: &str) -> Ran {
    let mut child = command(home).args(arguments).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let text = stdin.to_owned();
    let writer = std::thread::spawn(move || {
        // A binary that fails early leaves its stdin unread.
        let _ = input.write_all(text.as_bytes());
    });
    let ran = ended(child);
    writer.join().unwrap();
    ran
}

/// Waits for the end of a child.
pub(crate) fn ended(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

/// Reads a stream until a text has come; returns all that was read.
#[track_caller]
pub(crate) fn read_until(stream: &mut impl Read, text: &str) -> String {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&seen).ends_with(text) {
        let read = stream.read(&mut byte).unwrap_or(0);
        let so_far = String::from_utf8_lossy(&seen);
        assert_eq!(read, 1, "the stream ended before {text:?}: {so_far:?}");
        seen.push(byte[0]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

/// A query that no machine finishes, over TPC-H.
pub(crate) const ENDLESS: &str = "SELECT sum(a.l_orderkey % (b.l_partkey + c.l_suppkey)) FROM lineitem a, lineitem b, lineitem c;";
