//! Running the binary.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use atoll_sys::{kill_process, signal};
pub(crate) use atoll_testkit::Ran;
use atoll_testkit::{program_in, run_with};

/// Its path.
pub(crate) const BENCH: &str = env!("CARGO_BIN_EXE_atoll-bench");

/// Runs it in a directory that vanishes.
pub(crate) fn bench(arguments: &[&str]) -> Ran {
    let home = tempfile::tempdir().unwrap();
    bench_in(home.path(), arguments)
}

/// Runs it in a directory, which is its home too.
pub(crate) fn bench_in(home: &Path, arguments: &[&str]) -> Ran {
    run_with(program_in(Path::new(BENCH), home).args(arguments), "")
}

/// Runs `atoll-tools`, which is built next to it.
pub(crate) fn tools_in(home: &Path, arguments: &[&str]) -> Ran {
    let tools = Path::new(BENCH).with_file_name("atoll-tools");
    run_with(program_in(&tools, home).args(arguments), "")
}

/// Runs it until a line on stderr has these words, sends SIGINT then, and waits for its end. Temporary files are
/// those of `tmp` in its home.
pub(crate) fn bench_interrupted(home: &Path, arguments: &[&str], words: &str) -> Ran {
    let temporary = home.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let mut command = program_in(Path::new(BENCH), home);
    command.args(arguments).env("TMPDIR", &temporary);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said: Vec<String> = Vec::new();
    while said.last().is_none_or(|line| !line.contains(words)) {
        said.push(lines.next().unwrap_or_else(|| panic!("no '{words}' in {said:?}")).unwrap());
    }
    kill_process(child.id().cast_signed(), signal::INT).unwrap();
    said.extend(lines.map(Result::unwrap));
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    Ran { out, err: said.join("\n"), code: child.wait().unwrap().code() }
}
