//! A run of the lab that is killed, without a chance to clean up.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::sync::PoisonError;

use atoll_testkit::{Need, guests, skip};

use super::guest::{TURN, obstacle};

#[test]
fn a_run_that_is_killed_leaves_no_file_and_no_emulator() {
    if let Some(obstacle) = obstacle() {
        return skip(Need::Lab, obstacle);
    }
    let files = tempfile::tempdir().expect("a temporary directory");
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = guests::boot(|| {
        // The emulator inherits descriptor 9: reading ends when the last of both processes has.
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$@\" 9>&1", "sh", env!("CARGO_BIN_EXE_atoll-tools")]);
        command.args(["lab", "run", "--machine", "intel-2", "--cpus", "1", "--count", "off"]);
        command.args(["--timeout", "150s", "--", "sh", "-c", "echo started; exec sleep 1000"]);
        command.env("TMPDIR", files.path()).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (mut rest, mut line) = (Vec::new(), String::new());
        out.read_line(&mut line).expect("text");
        let left = std::fs::read_dir(files.path()).expect("a directory").count();
        assert_eq!(left, 0, "files with names while the guest runs");
        if line == "started\n" {
            child.kill().expect("it runs");
        }
        let status = child.wait().expect("it ends");
        out.read_to_end(&mut rest).expect("the emulator ends too");
        Output { status, stdout: line.into_bytes(), stderr: Vec::new() }
    });
    assert_eq!(String::from_utf8_lossy(&output.stdout), "started\n", "{}", output.status);
}
