//! Each check on a small tree that breaks its rule, written to a temporary folder.
//!
//! - families `layers` to `crate_docs`: the check finds its faults, at the right place, and
//!   leaves alone what only looks like it
//! - `every_check_fires`: the trees together leave no check untested

use std::collections::BTreeSet;
use std::fs;

use super::plain_english::PERSONS;
use super::words::{FOLDERS, HOSTS, UNFINISHED};
use super::{SourceTree, checks, layers};

/// Findings of one check on a tree of these files, as `path:line what`.
fn findings(check: &str, files: &[(&str, &str)]) -> Vec<String> {
    let root = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let tree = SourceTree::read(root.path()).expect("a readable tree");
    let check = checks().into_iter().find(|c| c.name() == check).expect("a check of that name");
    let text = |line: Option<usize>| line.map_or(String::new(), |line| format!(":{line}"));
    check.run(&tree).iter().map(|f| format!("{}{} {}", f.path, text(f.line), f.what)).collect()
}

/// Asserts that exactly these findings come up, by the start of their text, in any order.
#[track_caller]
fn assert_found(check: &str, files: &[(&str, &str)], expected: &[&str]) {
    let found = findings(check, files);
    let matches = expected.iter().all(|start| found.iter().any(|f| f.starts_with(start)));
    assert!(matches && found.len() == expected.len(), "expected {expected:#?}, found {found:#?}");
}

fn architecture(rows: &str) -> String {
    format!(
        "{}\n\n| Layer | Crate | One line | May import |\n|---|---|---|---|\n{rows}",
        layers::MARKER
    )
}

const LOW: (&str, &str) = ("crates/low/Cargo.toml", "[package]\nname = \"atoll-low\"\n");

#[test]
fn layers_catch_upward_sideways_and_missing_imports() {
    let table = architecture(
        "| 0 | `low` | | nothing |\n| 1 | `mid` | | below |\n| 1 | `side` | | below |\n| 2 | `top` | | 0–1 |\n",
    );
    let mid = "[package]\nname = \"atoll-mid\"\n[dependencies]\natoll-low.workspace = true\n\
               atoll-side.workspace = true\natoll-top.workspace = true\n\
               [dev-dependencies]\natoll-top.workspace = true\natoll-gone.workspace = true\n";
    let top = "[package]\nname = \"atoll-top\"\n[dependencies]\natoll-mid.workspace = true\n";
    assert_found(
        "layers",
        &[
            ("ARCHITECTURE.md", &table),
            LOW,
            ("crates/mid/Cargo.toml", mid),
            ("crates/side/Cargo.toml", "[package]\nname = \"atoll-side\"\n"),
            ("crates/top/Cargo.toml", top),
        ],
        &[
            "crates/mid/Cargo.toml:5 mid (layer 1) imports side (layer 1)",
            "crates/mid/Cargo.toml:6 mid (layer 1) imports top (layer 2)",
            "crates/mid/Cargo.toml:9 imports 'atoll-gone'",
        ],
    );
}

#[test]
fn layers_keep_development_crates_out_of_the_product() {
    let table =
        architecture("| 1 | `low` | | below |\n| dev | `kit` | | 0 |\n| dev | `rig` | | any |\n");
    let low = "[package]\nname = \"atoll-low\"\n[dependencies]\natoll-kit.workspace = true\n";
    let kit = "[package]\nname = \"atoll-kit\"\n[dependencies]\natoll-low.workspace = true\n";
    let rig = "[package]\nname = \"atoll-rig\"\n[dependencies]\natoll-kit.workspace = true\n";
    assert_found(
        "layers",
        &[
            ("ARCHITECTURE.md", &table),
            ("crates/low/Cargo.toml", low),
            ("crates/kit/Cargo.toml", kit),
            ("crates/rig/Cargo.toml", rig),
        ],
        &[
            "crates/low/Cargo.toml:4 low (layer 1) imports kit (development)",
            "crates/kit/Cargo.toml:4 kit (development) imports low (layer 1)",
        ],
    );
}

#[test]
fn layers_want_a_table_of_exactly_the_crates_there_are() {
    assert_found(
        "layers",
        &[LOW],
        &["ARCHITECTURE.md has no table", "crates/low/Cargo.toml crate 'low' has no row"],
    );
    let table =
        architecture("| 0 | `low` | | nothing |\n| 1 | `gone` | | below |\n| 1 | `odd` | | up |\n");
    assert_found(
        "layers",
        &[("ARCHITECTURE.md", &table), LOW],
        &[
            "ARCHITECTURE.md:6 crate 'gone' does not exist",
            "ARCHITECTURE.md:7 invalid import rule \
           'up'",
        ],
    );
}

#[test]
fn engine_fence_lets_sql_in_and_others_not() {
    let uses = "[dependencies]\ndatafusion.workspace = true\narrow-array.workspace = true\ntpchgen-arrow.workspace = true\n";
    assert_found(
        "engine_fence",
        &[
            ("crates/sql/Cargo.toml", uses),
            ("crates/store/Cargo.toml", uses),
            ("crates/runtime/Cargo.toml", uses),
        ],
        &[
            "crates/runtime/Cargo.toml:2 runtime depends on datafusion",
            "crates/runtime/Cargo.toml:3 runtime depends on arrow-array",
            "crates/store/Cargo.toml:2 store depends on datafusion",
        ],
    );
}

#[test]
fn dependencies_have_a_reason_and_stand_in_the_root() {
    let root = "[workspace.dependencies]\n# --- group\na = \"1\"\nb = \"1\" # why\nc = \"*\" # why\n\
                d = { git = \"https://example.org\" } # why\natoll-x = { path = \"crates/x\" }\n";
    let low = "[dependencies]\na.workspace = true\nb = \"1\"\nc = { workspace = true, features = [\"x\"] }\n\
               [dev-dependencies]\nd = { workspace = true }\n[dependencies.e]\nworkspace = true\n";
    assert_found(
        "dependencies",
        &[
            ("Cargo.toml", root),
            ("crates/low/Cargo.toml", low),
            ("Cargo.lock", "source = \"git+https://example.org/x\"\n"),
        ],
        &[
            "Cargo.toml:3 'a' has no reason",
            "Cargo.toml:5 'c' takes any version",
            "Cargo.toml:6 'd' comes from a git repository",
            "crates/low/Cargo.toml:3 'b' does not inherit",
            "crates/low/Cargo.toml:4 'c' does not inherit",
            "crates/low/Cargo.toml:7 a section of its own: [dependencies.e]",
            "Cargo.lock:1 a package comes from git+https://example.org/x",
        ],
    );
}

#[test]
fn unused_dependencies_are_those_that_no_code_names() {
    let root = "[workspace.dependencies]\na-b = \"1\"\nc = \"1\"\nd = \"1\"\ne = \"1\"\n";
    let low =
        "[dependencies]\na-b.workspace = true\nc.workspace = true\ne.workspace = true # features\n";
    assert_found(
        "unused_dependencies",
        &[
            ("Cargo.toml", root),
            ("crates/low/Cargo.toml", low),
            ("crates/low/src/lib.rs", "// c::d is only spoken of\nuse a_b::x;\n"),
        ],
        &["crates/low/Cargo.toml:3 no source of 'low' names 'c'", "Cargo.toml:4 no crate uses 'd'"],
    );
}

#[test]
fn banned_calls_are_found_in_code_and_not_in_sentences() {
    let lib = "// println!(1)\nfn a() { println!(\"eprintln!()\"); std::process::exit(1) }\n\
               #[cfg(test)]\nmod tests { fn b() { println!(); std::thread::sleep(x); } }\n\
               fn c() { Command::new(\"numactl\"); libc::getpid(); std::thread::sleep(x); }\n";
    assert_found(
        "banned_calls",
        &[
            LOW,
            ("crates/low/src/lib.rs", lib),
            ("crates/low/build.rs", "fn main() { println!(\"cargo::rerun-if-changed=a\"); }\n"),
            (
                "crates/low/tests/it/main.rs",
                "fn a() { println!(); thread::sleep(x); }\nfn b() { eprintln!(\"skipped: c\"); }\n",
            ),
            ("crates/sys/src/lib.rs", "fn a() { libc::getpid(); available_parallelism(); }\n"),
            ("crates/tool/src/main.rs", "fn main() { println!(); std::process::exit(1) }\n"),
            ("crates/tool/src/part.rs", "fn a() { println!(); available_parallelism(); }\n"),
        ],
        &[
            "crates/low/src/lib.rs:2 `println!`",
            "crates/low/src/lib.rs:2 `process::exit`",
            "crates/low/src/lib.rs:4 `thread::sleep`",
            "crates/low/src/lib.rs:5 `Command::new(\"numactl\"`",
            "crates/low/src/lib.rs:5 `libc::`",
            "crates/low/tests/it/main.rs:1 `thread::sleep`",
            "crates/low/tests/it/main.rs:2 `eprintln!(\"skipped`",
            "crates/tool/src/part.rs:1 `available_parallelism`",
        ],
    );
}

#[test]
fn unsafe_fence_knows_the_keyword_from_names_and_words() {
    let text = "#![deny(unsafe_op_in_unsafe_fn)]\n// unsafe\nfn a() { unsafe { b(\"unsafe\") } }\n\
                unsafe fn c() {}\nunsafe impl Send for D {}\n";
    assert_found(
        "unsafe_fence",
        &[("crates/sys/src/lib.rs", text), ("crates/low/src/lib.rs", text)],
        &["crates/low/src/lib.rs:3 `unsafe` outside", "crates/low/src/lib.rs:5 `unsafe` outside"],
    );
}

#[test]
fn lint_reasons_are_asked_of_allow_and_expect() {
    let text = "#![allow(dead_code)]\n#[allow(x, reason = \"y\")]\n#[expect(x)]\n\
                #[expect(\n    x,\n    reason = \"y\"\n)]\nfn a() { b.expect(\"c\") }\n";
    assert_found(
        "lint_reasons",
        &[("crates/low/src/lib.rs", text)],
        &[
            "crates/low/src/lib.rs:1 a lint is allowed",
            "crates/low/src/lib.rs:2 a lint is allowed",
            "crates/low/src/lib.rs:3 a lint is expected without",
        ],
    );
}

#[test]
fn circles_are_found_through_other_modules_and_not_in_tests() {
    assert_found(
        "circles",
        &[
            LOW,
            ("crates/low/src/lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\nuse crate::a::A;\n"),
            ("crates/low/src/a/mod.rs", "use crate::b::B;\n"),
            ("crates/low/src/b.rs", "// crate::a\nuse crate::c::{C, D};\nuse crate::b::Own;\n"),
            ("crates/low/src/c.rs", "use crate::{x::{D, d}, a};\nfn c() { crate::a::A::new() }\n"),
            ("crates/low/src/d.rs", "use crate::a::A;\n"),
            ("crates/low/src/a/e.rs", "#[cfg(test)]\nmod tests { use crate::d::D; }\n"),
            ("crates/low/src/a/f_tests.rs", "use crate::d::D;\n"),
        ],
        &[
            "crates/low/src/a/mod.rs:1 'a' imports 'b'",
            "crates/low/src/b.rs:2 'b' imports 'c'",
            "crates/low/src/c.rs:1 'c' imports 'a'",
        ],
    );
}

#[test]
fn dead_files_are_those_that_no_mod_reaches() {
    assert_found(
        "dead_files",
        &[
            LOW,
            ("crates/low/src/lib.rs", "pub mod a;\n// mod c;\n#[path = \"odd/name.rs\"]\nmod d;\n"),
            ("crates/low/src/a.rs", "mod b;\n"),
            ("crates/low/src/a/b.rs", ""),
            ("crates/low/src/b.rs", ""),
            ("crates/low/src/c.rs", ""),
            ("crates/low/src/odd/name.rs", ""),
            ("crates/low/tests/it/main.rs", "mod e;\n"),
            ("crates/low/tests/it/e.rs", ""),
            ("crates/low/tests/it/f.rs", ""),
            ("crates/low/tests/other.rs", ""),
        ],
        &[
            "crates/low/src/b.rs no `mod` reaches",
            "crates/low/src/c.rs no `mod` reaches",
            "crates/low/tests/it/f.rs no `mod` reaches",
            "crates/low/tests/other.rs a test binary of its own",
        ],
    );
}

#[test]
fn file_size_counts_lines_of_sources_and_bytes_of_all() {
    let (long, fits) = ("//\n".repeat(601), "//\n".repeat(600));
    let (large, small) = ("x".repeat((1 << 20) + 1), "x".repeat(1 << 20));
    assert_found(
        "file_size",
        &[("long.rs", &long), ("fits.rs", &fits), ("large.csv", &large), ("small.csv", &small)],
        &["long.rs 601 lines", "large.csv 1024 KiB"],
    );
}

#[test]
fn file_size_counts_the_sources_of_a_folder() {
    let of = |folder: &str, count: usize| -> Vec<String> {
        (0..count).map(|number| format!("crates/low/{folder}/f{number}.rs")).collect()
    };
    let paths = [of("src/many", 21), of("src/few", 20), of("tests/it", 30)].concat();
    let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
    assert_found("file_size", &files, &["crates/low/src/many 21 sources"]);
}

#[test]
fn words_of_unfinished_work_are_found_in_code_and_documents() {
    for word in UNFINISHED {
        let text = format!("fine\n// {word} later\n");
        let longer = format!("// a{word}s\n");
        assert_found(
            "words",
            &[("a.rs", &text), ("b.md", &text), ("c.csv", &text), ("d.rs", &longer)],
            &["a.rs:2 '", "b.md:2 '"],
        );
    }
}

#[test]
fn words_of_one_machine_are_found_in_any_text() {
    for folder in FOLDERS {
        let text = format!("see {folder}me/x\n");
        let inside = format!("sys{folder}x and https://example.org{folder}x\n");
        assert_found("words", &[("a.json", &text), ("b.md", &inside)], &["a.json:1 '"]);
    }
    for host in HOSTS {
        let text = format!("https://{host}/x\n");
        assert_found("words", &[("a.sh", &text), ("Cargo.lock", &text)], &["a.sh:1 '"]);
    }
}

#[test]
fn plain_english_finds_phrases_across_lines_and_leaves_good_ones() {
    for person in PERSONS {
        let text = format!("fine\n/// The home, which {person} knows.\n");
        assert_found(
            "plain_english",
            &[("a.rs", &text), ("b.slt", &text)],
            &[&format!("a.rs:2 '{person}'")],
        );
        let name = format!("fn a_name_that_{person}_knows() {{}}\n");
        assert_found("plain_english", &[("a.rs", &name)], &[&format!("a.rs:1 '{person}'")]);
    }
    let no = "no";
    let denied =
        format!("bail!(\"'{{name}}' is {no} type\");\n// where a row is\n// {no} number\n");
    let lacks = format!("nodes that the set-up has {}, and others\n", "not");
    let good = "there is no room; it is no longer here; has not ended; it is. No row follows\n";
    assert_found(
        "plain_english",
        &[("a.rs", &denied), ("b.md", &lacks), ("c.md", good)],
        &[
            &format!("a.rs:1 'is {no} type'"),
            &format!("a.rs:2 'is {no} number'"),
            "b.md:1 'has not' at the end",
        ],
    );
}

#[test]
fn links_lead_to_files_and_folders_of_the_repository() {
    let text = "[a](../README.md#top) [b](img/) [c](gone.md) [d](../../out.md) [e](https://example.org) [f](#g)\n";
    assert_found(
        "links",
        &[("README.md", ""), ("docs/a.md", text), ("docs/img/x.svg", "")],
        &["docs/a.md:1 the link to 'gone.md'", "docs/a.md:1 the link to '../../out.md'"],
    );
}

#[test]
fn a_module_with_files_of_its_own_is_a_folder() {
    assert_found(
        "module_layout",
        &[
            ("crates/low/src/lib.rs", "mod a;\nmod b;\n"),
            ("crates/low/src/a.rs", "mod inner;\n"),
            ("crates/low/src/a/inner.rs", ""),
            ("crates/low/src/b/mod.rs", "mod inner;\n"),
            ("crates/low/src/b/inner.rs", ""),
        ],
        &["crates/low/src/a.rs a module next to"],
    );
}

#[test]
fn crate_docs_want_a_doc_and_a_description() {
    let good =
        "[package]\nname = \"atoll-top\"\ndescription = \"what the crate is for, in one line\"\n";
    assert_found(
        "crate_docs",
        &[
            LOW,
            ("crates/low/src/lib.rs", "mod a;\n"),
            ("crates/top/Cargo.toml", good),
            ("crates/top/src/main.rs", "//! The top.\n"),
        ],
        &["crates/low/src/lib.rs:1 the crate has no", "crates/low/Cargo.toml the description ''"],
    );
}

#[test]
fn every_check_is_tested_here() {
    let source = include_str!("tests.rs");
    let untested: Vec<&str> = checks()
        .iter()
        .map(|check| check.name())
        .filter(|name| !source.contains(&format!("\"{name}\",")))
        .collect();
    assert_eq!(untested, Vec::<&str>::new());
}

#[test]
fn names_of_checks_are_distinct() {
    let names: Vec<&str> = checks().iter().map(|check| check.name()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}
