//! Running the binary.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command};

pub(crate) use atoll_testkit::Ran;
use atoll_testkit::{program_in, run_with};

/// The binary with an empty home and none of the user's settings.
pub(crate) fn command(home: &Path) -> Command {
    program_in(Path::new(env!("CARGO_BIN_EXE_atoll")), home)
}

/// Runs it with an empty stdin.
pub(crate) fn atoll(arguments: &[&str]) -> Ran {
    atoll_with(arguments, "")
}

/// Runs it with this text on stdin.
pub(crate) fn atoll_with(arguments: &[&str], stdin: &str) -> Ran {
    let home = tempfile::tempdir().unwrap();
    atoll_in(home.path(), arguments, stdin)
}

/// Runs it in a directory, which is also its home.
pub(crate) fn atoll_in(home: &Path, arguments: &[&str], stdin: &str) -> Ran {
    run_with(command(home).args(arguments), stdin)
}

/// Waits for the end of a child.
pub(crate) fn ended(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

/// Reads a stream until a text appears; returns all that was read.
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
