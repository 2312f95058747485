//! All tests; those that failed run again alone.
//!
//! A test that passes the second time is flaky: a defect of its own, which the summary names, and no reason to
//! throw the run away.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo;

/// The arguments that build all tests, and run them.
pub(crate) const ARGUMENTS: [&str; 3] = ["test", "--release", "--workspace"];

/// Lines of output in the error of a run that failed: few enough to be read, and kept, where only the end of a
/// log is.
const LINES_MAX: usize = 30;

/// Runs all tests with a variable of the environment; the tests that failed at first and then passed.
///
/// # Errors
/// Tests that failed twice, with the end of their output; a build that failed.
pub(crate) fn run(root: &Path, variable: (&str, &Path)) -> Result<Vec<String>> {
    let command = |more: &[&str]| {
        let mut command = cargo();
        command.args(ARGUMENTS).args(more).env(variable.0, variable.1).current_dir(root);
        command
    };
    let (status, first) = Log::capture(&mut command(&["--no-fail-fast"]))?;
    if status.success() {
        return Ok(Vec::new());
    }
    let failed = first.failed();
    // Cargo runs no single example of the documentation.
    if failed.is_empty() || failed.iter().any(|name| name.contains(" (line ")) {
        bail!("cargo {}: {status}\n{}", ARGUMENTS.join(" "), first.ending(&failed));
    }
    println!("ci: {} tests failed; running them again: {}", failed.len(), failed.join(", "));
    let mut again = vec!["--lib", "--bins", "--tests", "--no-fail-fast", "--", "--exact"];
    again.extend(failed.iter().map(String::as_str));
    let (status, second) = Log::capture(&mut command(&again))?;
    if !status.success() {
        bail!("tests failed twice:\n{}", second.ending(&second.failed()));
    }
    Ok(failed)
}

/// The output of a test run, line by line.
struct Log(Vec<String>);

impl Log {
    /// Runs a command; shows and keeps its output.
    fn capture(command: &mut Command) -> Result<(ExitStatus, Self)> {
        let (reader, writer) = std::io::pipe().context("cannot make a pipe")?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn().context("cargo cannot be started")?;
        // Its ends of the pipe would keep the output from ending.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut lines = Vec::new();
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            std::io::stdout().lock().write_all(&line)?;
            lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
            line.clear();
        }
        Ok((child.wait()?, Self(lines)))
    }

    /// The tests that failed, as the test programs list them at their end.
    fn failed(&self) -> Vec<String> {
        let mut found = BTreeSet::new();
        let mut is_list = false;
        for line in &self.0 {
            match line.strip_prefix("    ") {
                Some(name) if is_list => {
                    found.insert(name.to_owned());
                }
                _ => is_list = line == "failures:",
            }
        }
        found.into_iter().collect()
    }

    /// The end of what tests printed, or of all where no test failed.
    fn ending(&self, failed: &[String]) -> String {
        if failed.is_empty() {
            return self.0[self.0.len().saturating_sub(LINES_MAX)..].join("\n");
        }
        let of_each = (LINES_MAX / failed.len()).max(2) - 1;
        let mut lines = Vec::new();
        for name in failed.iter().take(LINES_MAX / 2) {
            let printed = self.printed_by(name);
            lines.push(format!("---- {name}"));
            lines.extend_from_slice(&printed[printed.len().saturating_sub(of_each)..]);
        }
        if failed.len() > LINES_MAX / 2 {
            lines.push(format!("and {} more tests", failed.len() - LINES_MAX / 2));
        }
        lines.join("\n")
    }

    /// The output of a failed test, without its stack.
    fn printed_by(&self, name: &str) -> Vec<String> {
        let header = format!("---- {name} stdout ----");
        let from = self.0.iter().position(|line| *line == header).map_or(self.0.len(), |at| at + 1);
        let is_end = |line: &String| line.starts_with("---- ") || line == "failures:";
        let is_frame = |line: &str| {
            let line = line.trim_start();
            line.starts_with("at ")
                || line.split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok())
        };
        let printed = self.0[from..].iter().take_while(|line| !is_end(line));
        printed.filter(|line| !line.is_empty() && !is_frame(line)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
     Running tests/it/main.rs (target/release/deps/it-1)
test fair ... ok
test race::lost ... FAILED
test sum ... FAILED

failures:

---- race::lost stdout ----
thread 'race::lost' panicked at crates/a/src/race.rs:1:5:
no row
stack backtrace:
   0: __rustc::rust_begin_unwind
             at /rustc/std/src/panicking.rs:689:5

---- sum stdout ----
1 is not 2


failures:
    race::lost
    sum

test result: FAILED. 1 passed; 2 failed
error: 1 target failed:
    `-p a --test it`
";

    fn log(text: &str) -> Log {
        Log(text.lines().map(str::to_owned).collect())
    }

    #[test]
    fn failed_tests_are_those_that_the_programs_list() {
        assert_eq!(log(OUTPUT).failed(), ["race::lost", "sum"]);
        assert!(log("error: could not compile `a`\n").failed().is_empty());
    }

    #[test]
    fn an_error_ends_with_what_failed_tests_printed() {
        let log = log(OUTPUT);
        let ending = log.ending(&log.failed());
        assert_eq!(
            ending,
            "---- race::lost\nthread 'race::lost' panicked at crates/a/src/race.rs:1:5:\nno row\n\
             stack backtrace:\n---- sum\n1 is not 2"
        );
    }

    #[test]
    fn an_error_of_many_tests_is_short() {
        let names: Vec<String> = (0..100).map(|at| format!("test_{at}")).collect();
        let printed = names.iter().map(|name| format!("---- {name} stdout ----\none\ntwo\n"));
        let log = log(&printed.collect::<String>());
        assert!(log.ending(&names).lines().count() <= LINES_MAX + 1);
        assert!(log.ending(&[]).lines().count() <= LINES_MAX);
    }

    #[test]
    fn output_of_both_streams_is_kept() {
        let mut command = Command::new("sh");
        let (status, log) =
            Log::capture(command.args(["-c", "echo out; echo err >&2; exit 3"])).unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(log.0, ["out", "err"]);
    }
}
