//! The help of the benchmarks, through `atoll bench` too.

use std::path::Path;

use atoll_testkit::{program_in, run_with};

use crate::support::{BENCH, bench};

#[test]
fn all_benchmarks_are_listed_and_every_one_shows_examples() {
    let text = bench(&["--help"]).done();
    assert!(text.contains("Usage: atoll bench <COMMAND>") && text.contains("Examples:"), "{text}");
    for name in [
        "tpch",
        "aggregate",
        "join",
        "sort",
        "store",
        "scan",
        "server",
        "kv",
        "placement",
        "memory",
        "compare",
    ] {
        assert!(text.contains(&format!("\n  {name} ")), "{name} is missing in {text}");
        let text = bench(&[name, "--help"]).done();
        assert!(text.contains(&format!("atoll bench {name}")), "{text}");
    }
}

#[test]
fn atoll_bench_is_this_program() {
    let home = tempfile::tempdir().unwrap();
    let atoll = Path::new(BENCH).with_file_name("atoll");
    let run = |arguments: &[&str]| run_with(program_in(&atoll, home.path()).args(arguments), "");
    assert_eq!(run(&["bench", "--help"]).done(), bench(&["--help"]).done());
    let error = run(&["bench", "tpch", "--querys", "1"]).failed(2);
    assert!(error.contains("--queries"), "{error}");
}

#[test]
fn man_pages_are_written() {
    let home = tempfile::tempdir().unwrap();
    let pages = home.path().join("man1");
    bench(&["man", pages.to_str().unwrap()]).done();
    for page in ["atoll-bench.1", "atoll-bench-tpch.1"] {
        assert!(std::fs::read_to_string(pages.join(page)).unwrap().contains("bench"), "{page}");
    }
}
