//! The scripts that the guest's first process runs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::{LabError, RunRequest};

/// The first process.
pub(super) const INIT: &str = include_str!("init.sh");
/// Variables that are there unless the request sets them.
const ENVIRONMENT: [(&str, &str); 6] = [
    (
        "PATH",
        "/atoll/programs:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/atoll/bin",
    ),
    ("HOME", "/root"),
    ("USER", "root"),
    ("LC_ALL", "C.UTF-8"),
    ("TERM", "dumb"),
    ("ATOLL_LAB", "1"),
];

/// Steps that must succeed before the program starts.
pub(super) fn prepare(request: &RunRequest) -> Vec<u8> {
    let mut text = "set -e\n".to_owned();
    if let Some(is_on) = request.balancing {
        text += &format!("echo {} >/proc/sys/kernel/numa_balancing\n", u8::from(is_on));
    }
    if request.counting.is_some() {
        text += "/atoll/agent lab guest calibrate\n";
    }
    text.into_bytes()
}

/// Starts the program in its directory with its environment.
pub(super) fn command(request: &RunRequest, words: &[&OsStr]) -> Result<Vec<u8>, LabError> {
    let mut text = b"ulimit -l unlimited\ncd ".to_vec();
    text.extend(quoted(request.directory.as_os_str())?);
    text.extend(b" || exit 125\nexec env -i");
    for (name, value) in ENVIRONMENT {
        text.extend(format!(" '{name}={value}'").as_bytes());
    }
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty()) {
        add_variable(OsStr::new("LD_LIBRARY_PATH"), &path, &mut text)?;
    }
    for (name, value) in &request.environment {
        add_variable(name, value, &mut text)?;
    }
    for word in words {
        text.push(b' ');
        text.extend(quoted(word)?);
    }
    text.push(b'\n');
    Ok(text)
}

/// A script that starts a program in its place.
pub(super) fn starts(program: &Path) -> Result<Vec<u8>, LabError> {
    let word = quoted(program.as_os_str())?;
    Ok([b"#!/atoll/bin/sh\nexec ".as_slice(), &word, b" \"$@\"\n"].concat())
}

fn add_variable(name: &OsStr, value: &OsStr, text: &mut Vec<u8>) -> Result<(), LabError> {
    let mut word = name.to_owned();
    word.push("=");
    word.push(value);
    text.push(b' ');
    text.extend(quoted(&word)?);
    Ok(())
}

/// A word that a shell takes as it is.
pub(super) fn quoted(word: &OsStr) -> Result<Vec<u8>, LabError> {
    if word.as_bytes().contains(&0) {
        return Err(LabError::Unusable {
            what: format!("the word '{}'", word.to_string_lossy()),
            reason: "has a NUL byte, which no program can be given".to_owned(),
        });
    }
    let mut text = vec![b'\''];
    for &byte in word.as_bytes() {
        match byte {
            b'\'' => text.extend(b"'\\''"),
            byte => text.push(byte),
        }
    }
    text.push(b'\'');
    Ok(text)
}
