//! The C compiler of this machine, and the library that was built for this test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use atoll_testkit::{Need, skip};

/// This crate's folder, from cargo at run time: checkouts may share a target directory.
pub(crate) fn crate_folder() -> PathBuf {
    std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests").into()
}

/// Compiles and links `source` against the library. Returns None, with a message, without a C compiler.
pub(crate) fn compile(source: &Path, name: &str, flags: &[&str]) -> Option<(Output, PathBuf)> {
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let include = crate_folder().join("include");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    compiler.args(flags).arg("-I").arg(include).arg("-o").arg(&binary).arg(source);
    compiler.arg(library().join("libatoll.so"));
    match compiler.output() {
        Ok(output) => Some((output, binary)),
        Err(error) => {
            skip(Need::Compiler, error);
            None
        }
    }
}

/// The same for a program as text.
pub(crate) fn compile_text(program: &str, name: &str) -> Option<(Output, PathBuf)> {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.c"));
    std::fs::write(&source, program).unwrap();
    compile(&source, name, &[])
}

/// Runs a program with the library.
pub(crate) fn run(binary: &Path) -> Output {
    Command::new(binary).env("LD_LIBRARY_PATH", library()).output().unwrap()
}

/// What a program has printed.
pub(crate) fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// The directory of the library: next to this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let directory = test.parent().unwrap().to_owned();
    let found = directory.join("libatoll.so").is_file();
    assert!(found, "no libatoll.so in {}: build the package atoll-capi", directory.display());
    directory
}
