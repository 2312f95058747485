//! Retries for lab guests that hang.

use std::io::Write;
use std::process::Output;

/// Exit code of `lab run` on a timeout.
const TIMED_OUT: i32 = 124;
/// Boots of one guest, at most.
const ATTEMPTS: usize = 3;

/// Runs a guest, and retries on a timeout: on a busy host, an emulator of many cpus can deadlock on its own lock. Its
/// error output, which shows the state of each cpu, is printed.
pub fn boot(attempt: impl Fn() -> Output) -> Output {
    for _ in 1..ATTEMPTS {
        let output = attempt();
        if output.status.code() != Some(TIMED_OUT) {
            return output;
        }
        let error = String::from_utf8_lossy(&output.stderr);
        // Not `eprintln!`, which the harness captures.
        let _ = writeln!(std::io::stderr(), "a guest stood still and is booted again: {error}");
    }
    attempt()
}
