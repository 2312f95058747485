//! The C header, with the C compiler of this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use atoll_marker::{LEN, Marker};
use atoll_testkit::{Need, skip};

const PROGRAM: &str = r#"
#include "atoll_marker.h"
static char memory[5 * 4096];
int main(void)
{
    ATOLL_OPEN(0);
    ATOLL_OPEN(63);
    ATOLL_TAG(15, memory + 1, 4 * 4096);
    ATOLL_TAG(0, memory, (size_t)0);
    ATOLL_CLOSE(63);
    ATOLL_CLOSE(0);
    return 0;
}
"#;

/// Compiles and links `program`; none where there is no C compiler.
fn compile(program: &str, name: &str) -> Option<(Output, PathBuf)> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (directory.join(format!("{name}.c")), directory.join(name));
    std::fs::write(&source, program).unwrap();
    let include = crate_folder().join("include");
    let flags = ["-O2", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"];
    let mut compiler = Command::new("cc");
    compiler.args(flags).arg("-I").arg(include).arg("-o").arg(&binary).arg(source);
    match compiler.output() {
        Ok(output) => Some((output, binary)),
        Err(error) => {
            skip(Need::Compiler, error);
            None
        }
    }
}

/// This crate's folder, from cargo at run time: checkouts may share a target directory.
fn crate_folder() -> PathBuf {
    std::env::var("CARGO_MANIFEST_DIR").expect("cargo runs the tests").into()
}

#[test]
fn a_c_program_compiles_without_warnings_and_has_the_markers_that_rust_decodes() {
    let Some((output, binary)) = compile(PROGRAM, "marked") else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(Command::new(&binary).status().unwrap().success());
    if cfg!(target_arch = "x86_64") {
        let program = std::fs::read(binary).unwrap();
        let mut found: Vec<Marker> = program.windows(LEN).filter_map(Marker::decode).collect();
        // The compiler may copy the body of the loop over the pages.
        found.dedup();
        let marks = [
            Marker::Open(0),
            Marker::Open(63),
            Marker::Tag(15),
            Marker::Close(63),
            Marker::Close(0),
        ];
        assert_eq!(found, marks, "an empty piece of memory is not read");
    }
}

#[test]
fn the_example_of_the_lab_compiles_without_warnings() {
    let example = crate_folder().join("../../examples/lab/locality.c");
    let program = std::fs::read_to_string(example).unwrap();
    let Some((output, _)) = compile(&program, "locality") else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn numbers_out_of_range_do_not_compile() {
    let out_of_range =
        ["ATOLL_OPEN(64);", "ATOLL_CLOSE(-1);", "char memory[1]; ATOLL_TAG(16, memory, 1);"];
    for (index, statement) in out_of_range.iter().enumerate() {
        let program =
            format!("#include \"atoll_marker.h\"\nint main(void) {{ {statement} return 0; }}");
        let Some((output, _)) = compile(&program, &format!("wrong{index}")) else { return };
        assert!(!output.status.success(), "{statement} compiles");
    }
}
