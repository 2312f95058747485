//! `bench compare`: its exit codes, its forms, and results that cannot be compared.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Ran, bench_in};

const PARTITION: [&str; 5] = ["partition", "--rows", "3000", "--runs", "6"];

/// A result of `bench partition` in a file, its times multiplied.
fn result(home: &Path, name: &str, factor: f64) {
    let run = bench_in(home, &[&PARTITION[..], &["--json"]].concat());
    let mut document: Value = run.json();
    let times = [1.0, 1.01, 0.99, 1.02, 0.98, 1.03].map(|time| time * factor);
    document["measurements"][0]["samples"] = json!(times);
    std::fs::write(home.join(name), document.to_string()).unwrap();
}

fn compare(home: &Path, arguments: &[&str]) -> Ran {
    bench_in(home, &[&["compare"], arguments].concat())
}

#[test]
fn slower_cases_are_marked_and_have_their_own_exit_code() {
    let home = tempfile::tempdir().unwrap();
    result(home.path(), "a.json", 1.0);
    result(home.path(), "b.json", 1.3);
    let ran = compare(home.path(), &["a.json", "b.json"]);
    assert!(ran.out.contains("SLOWER") && ran.out.contains("1.3"), "{}", ran.out);
    assert!(ran.failed(5).contains("1 of Atoll's measurements became slower"));
    let faster = compare(home.path(), &["b.json", "a.json"]).done();
    assert!(faster.contains("faster"), "{faster}");
    let same = compare(home.path(), &["a.json", "b.json", "--threshold", "50%", "--json"]).json();
    assert_eq!(same["rows"][0]["verdict"], "same");
    let case = same["rows"][0]["case"].as_str().unwrap();
    assert!(case.starts_with("rows 3000, fan_out 1024, threads "), "{case}");
}

#[test]
fn incomparable_results_are_rejected() {
    let home = tempfile::tempdir().unwrap();
    result(home.path(), "a.json", 1.0);
    std::fs::write(home.path().join("none.json"), "{}").unwrap();
    let text = std::fs::read_to_string(home.path().join("a.json")).unwrap();
    let other = text.replacen("\"partition\"", "\"sort\"", 1);
    std::fs::write(home.path().join("sort.json"), other).unwrap();
    for (files, code, expected) in [
        (["a.json", "none.json"], 125, "none.json is not a result of atoll bench"),
        (["missing.json", "a.json"], 125, "missing.json"),
        (["a.json", "sort.json"], 2, "different benchmarks"),
    ] {
        let message = compare(home.path(), &files).failed(code);
        assert!(message.contains(expected), "{message}");
    }
    assert!(
        compare(home.path(), &["a.json", "a.json", "--confidence", "100%"])
            .failed(2)
            .contains("99.99%")
    );
}
