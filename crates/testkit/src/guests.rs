//! Guests of the lab that stand still.

use std::io::Write;
use std::process::Output;

/// Code of `lab run` when time is over.
const TIMED_OUT: i32 = 124;
/// Boots of one guest.
const ATTEMPTS: usize = 3;

/// Runs a guest, and again when time was over: on a busy host an emulator of many cpus can come to a stop
/// on its own lock. What each cpu was doing then is in the error, which is shown.
pub fn boot(attempt: impl Fn() -> Output) -> Output {
    for _ in 1..ATTEMPTS {
        let output = attempt();
        if output.status.code() != Some(TIMED_OUT) {
            return output;
        }
        let error = String::from_utf8_lossy(&output.stderr);
        // Not `eprintln!`, which the harness keeps to itself.
        let _ = writeln!(std::io::stderr(), "a guest stood still and is booted again: {error}");
    }
    attempt()
}
