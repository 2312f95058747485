//! The header and the library agree.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::mem::{offset_of, size_of};

use atoll::{Aggregation, Code, Column, Function, RowsPart, Side};

use crate::compiler::{compile_text, crate_folder, printed, run};

const HEADER: &str = include_str!("../../include/atoll.h");

/// The header without its comments.
fn code() -> String {
    let mut pieces = HEADER.split("/*");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |code, piece| code + piece.split_once("*/").map_or("", |(_, rest)| rest))
}

/// Names before an opening bracket.
fn declared() -> BTreeSet<String> {
    let code = code();
    let called = code.split('(').map(|before| before.trim_end());
    let name = |before: &str| {
        let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        before[start..].to_owned()
    };
    called.map(name).filter(|name| name.starts_with("atoll_")).collect()
}

/// Functions that the sources export.
fn exported() -> BTreeSet<String> {
    let sources = crate_folder().join("src");
    let mut found = BTreeSet::new();
    for file in std::fs::read_dir(sources).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for function in text.split("#[unsafe(no_mangle)]").skip(1) {
            let name = function.split_once("extern \"C\" fn ").unwrap().1;
            found.insert(name.split('(').next().unwrap().to_owned());
        }
    }
    found
}

#[test]
fn every_function_of_the_header_is_exported_and_no_other() {
    let declared = declared();
    assert!(declared.len() > 15, "{declared:?}");
    assert_eq!(declared, exported());
}

#[test]
fn a_program_links_with_every_function_of_the_header() {
    let mut program = String::from("#include \"atoll.h\"\n#include <stdio.h>\nint main(void) {\n");
    for name in declared() {
        writeln!(program, "if (!(void (*)(void)){name}) return 1;").unwrap();
    }
    program += "return 0; }\n";
    // The address of a function is never null, which is what compilers warn of.
    let program = format!("#pragma GCC diagnostic ignored \"-Waddress\"\n{program}");
    let Some((output, binary)) = compile_text(&program, "links") else { return };
    assert!(output.status.success(), "{}", printed(&output));
    assert!(run(&binary).status.success());
}

#[test]
fn structs_and_codes_are_those_of_the_header() {
    let mut program = String::from("#include \"atoll.h\"\n");
    let mut is = |c: &str, rust: usize| {
        writeln!(program, "_Static_assert(({c}) == {rust}, \"{c}\");").unwrap();
    };
    macro_rules! same {
        ($c:literal, $rust:ty, $($c_field:literal $rust_field:ident),+) => {
            is(concat!("sizeof(", $c, ")"), size_of::<$rust>());
            $(is(
                concat!("offsetof(", $c, ", ", $c_field, ")"),
                offset_of!($rust, $rust_field),
            );)+
        };
    }
    same!(
        "atoll_column", Column, "type" data_type, "precision" precision, "scale" scale,
        "length" length, "values" values, "validity" validity, "offsets" offsets, "bytes" bytes
    );
    same!("atoll_part", RowsPart, "home" home, "column_count" column_count, "columns" columns);
    same!("atoll_function", Function, "function" function, "column" column);
    same!(
        "atoll_aggregation", Aggregation, "parts" parts, "part_count" part_count, "keys" keys,
        "key_count" key_count, "functions" functions, "function_count" function_count,
        "variant" variant
    );
    same!(
        "atoll_side", Side, "parts" parts, "part_count" part_count, "keys" keys,
        "key_count" key_count, "payload" payload
    );
    let codes = [
        ("OK", Code::Ok),
        ("INVALID", Code::Invalid),
        ("TYPE", Code::Type),
        ("OVERFLOW", Code::Overflow),
        ("MEMORY", Code::Memory),
        ("CANCELLED", Code::Cancelled),
        ("STOPPED", Code::Stopped),
        ("SYSTEM", Code::System),
        ("DEFECT", Code::Defect),
    ];
    for (name, code) in codes {
        is(&format!("ATOLL_{name}"), code as usize);
    }
    program += "int main(void) { return 0; }\n";
    let Some((output, _)) = compile_text(&program, "layout") else { return };
    assert!(output.status.success(), "{}", printed(&output));
}

#[test]
fn the_header_is_one_of_cpp_as_well() {
    let text = code();
    assert!(text.contains("extern \"C\" {"));
    for word in ["class", "new", "template", "this", "private"] {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        assert!(words.into_iter().all(|found| found != word), "{word}");
    }
}

/// Every block of C on the page stands in the example, which is compiled and run.
#[test]
fn the_page_shows_what_the_example_does() {
    let manifest = crate_folder();
    let page = std::fs::read_to_string(manifest.join("../../docs/primitives.md")).unwrap();
    let example = std::fs::read_to_string(manifest.join("examples/group.c")).unwrap();
    let lines: BTreeSet<&str> = example.lines().map(str::trim).collect();
    let blocks: Vec<&str> = page.split("```c\n").skip(1).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        for line in block.split("```").next().unwrap().lines().map(str::trim) {
            assert!(lines.contains(line), "{line:?} of the page is not in the example");
        }
    }
}
