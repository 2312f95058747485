//! `bench aggregate|join|partition|sort`: flags, the shape of the JSON, results checked against the
//! data, and rivals that do not behave; with few rows.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Ran, bench, bench_in, tools_in};

/// A run without rivals, of few rows.
fn alone(benchmark: &str, arguments: &[&str]) -> Ran {
    let shared = ["--runs", "2", "--rivals", "none", "--json"];
    bench(&[&[benchmark], arguments, &shared[..]].concat())
}

fn cases(run: &Value) -> &Vec<Value> {
    run["details"]["cases"].as_array().expect("cases")
}

#[test]
fn an_aggregation_reports_conditions_limits_and_every_variant() {
    let flags =
        ["--rows", "1,2^12", "--groups", "1,300", "--variant", "auto,local", "--threads", "1,3"];
    let run = alone("aggregate", &flags).json();
    assert_eq!(run["benchmark"], "aggregate");
    for key in ["date", "machine", "cpu_models", "cpus", "memory_bytes", "seed", "runs", "command"]
    {
        assert!(!run["manifest"][key].is_null(), "{key}");
    }
    assert!(run["details"]["tuning"].as_str().unwrap().contains("block_rows"));
    let measured = run["measurements"].as_array().unwrap();
    assert_eq!((measured.len(), &measured[1]["subject"]), (16, &"atoll local".into()));
    assert_eq!(measured[0]["samples"].as_array().map(Vec::len), Some(2));
    assert_eq!(measured[0]["case"]["groups"], 1);
    assert_eq!(cases(&run).len(), 8);
    let case = &cases(&run)[0];
    assert_eq!(
        (&case["rows"], &case["groups"], &case["threads"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert!(case["bandwidth"]["read"].as_f64().unwrap() > 0.0);
    assert_eq!(case["limit"]["by"], "read");
    for ours in cases(&run).iter().flat_map(|case| case["ours"].as_array().unwrap()) {
        assert!(ours["seconds"]["median"].as_f64().unwrap() > 0.0);
        assert_eq!(ours["seconds"]["runs"], 2);
        assert!(ours["ratio"].is_null());
    }
    assert_eq!(case["ours"][1]["variant"], "local");
}

#[test]
fn keys_of_every_spread_are_aggregated_right() {
    let spreads = ["--keys", "dense,sparse,zipf,hot,sorted,reversed"];
    let sizes = ["--rows", "5000", "--groups", "700", "--sql"];
    let run = alone("aggregate", &[&spreads[..], &sizes].concat()).json();
    assert_eq!(cases(&run).len(), 6);
    assert_eq!(cases(&run)[0]["ours"][1]["variant"], "sql");
}

#[test]
fn keys_of_every_spread_are_joined_right() {
    let spreads = ["--keys", "dense,sparse,zipf,hot,sorted,reversed"];
    let sizes =
        ["--build", "1,300", "--probe", "4000", "--duplicates", "1,4", "--matches", "10%,1"];
    let run = alone("join", &[&spreads[..], &sizes].concat()).json();
    assert_eq!(cases(&run).len(), 48);
    assert_eq!(cases(&run)[0]["matches"], 0.1);
}

#[test]
fn rows_are_partitioned_to_every_fan_out_right() {
    let run = alone("partition", &["--rows", "1,5000", "--fan-out", "1,16,1024"]).json();
    assert_eq!(cases(&run).len(), 6);
    assert_eq!(
        (&cases(&run)[5]["fan_out"], &cases(&run)[5]["limit"]["by"]),
        (&1024.into(), &"copy".into())
    );
}

#[test]
fn text_is_a_table_with_the_conditions_above_it() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("run.txt");
    let flags = ["--rows", "2^11", "--rivals", "none", "--runs", "1", "-o"];
    let done = bench(&[&["partition"], &flags[..], &[file.to_str().unwrap()]].concat());
    assert_eq!(done.done(), "");
    let text = std::fs::read_to_string(file).unwrap();
    for part in ["bench partition", "seed 1", "fan_out", "2^11", "of limit", "GB/s"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn meaningless_flags_are_rejected() {
    for (flags, words) in [
        (&["aggregate", "--rows", "0"][..], "1 to 2^32"),
        (&["aggregate", "--rows", "2^40"], "1 to 2^32"),
        (&["aggregate", "--keys", "odd"], "dense, sparse, zipf, hot"),
        (&["aggregate", "--variant", "best"], "auto, local, naive, ring"),
        (&["aggregate", "--rivals", "none,duckdb"], "not both"),
        (&["aggregate", "--rivals", "oracle"], "duckdb, polars, datafusion, none"),
        (&["aggregate", "--threads", "0"], "1..=8192"),
        (&["aggregate", "--runs", "0"], "1..=1000"),
        (&["aggregate", "--timeout=-1"], "0.001 to 1000000"),
        (&["aggregate", "-o", "run.svg"], "no picture"),
        (&["aggregate", "-o", "run.pdf"], "run.pdf"),
        (&["join", "--matches", "0"], "0.1% to 100%"),
        (&["join", "--matches", "110%"], "0.1% to 100%"),
        (&["join", "--build", "2^31", "--matches", "10%"], "21474836480"),
        (&["partition", "--fan-out", "1000"], "power of two up to 16384"),
        (&["partition", "--fan-out", "2^20"], "power of two up to 16384"),
        (&["partition", "--rivals", "duckdb"], "is one of none"),
        (&["tpch", "--rivals", "polars"], "duckdb, datafusion, none"),
    ] {
        let message = bench(&[flags].concat()).failed(2);
        assert!(message.contains(words), "{flags:?}: {message}");
    }
}

/// A program that is called as Python is, and does this.
fn fake(directory: &Path, script: &str) -> PathBuf {
    let file = directory.join("python");
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
    file
}

/// A run against DuckDB by this Python, which should fail.
fn run_with_python(script: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let python = fake(home.path(), script);
    let flags = ["--rows", "1000", "--groups", "10", "--runs", "1", "--rivals", "duckdb"];
    let python = ["--timeout", "2", "--python", python.to_str().unwrap()];
    bench(&[&["aggregate"], &flags[..], &python].concat()).failed(125)
}

/// Says what an engine says that starts, loads and warms up.
const READY: &str = r#"
echo '{"engine": "duckdb", "version": "1"}'
read load; echo '{"loaded": true}'
read warm; echo '{"way": ""}'
read run;"#;

#[test]
fn a_rival_that_talks_nonsense_hangs_or_ends_is_an_error() {
    for (script, expected) in [
        ("echo hello", "duckdb replied hello"),
        ("read never", "duckdb did not reply within 2 s"),
        ("exit 3", "duckdb ended without a reply"),
        (r#"echo '{"engine": "sqlite", "version": "1"}'"#, "sqlite was started"),
        (r#"echo '{"error": "no module named duckdb"}'"#, "no module named duckdb"),
        ("exec tr '\\0' x < /dev/zero", "64 MiB"),
    ] {
        let message = run_with_python(script);
        assert!(message.contains(expected), "{script}: {message}");
    }
    let message = run_with_python(&format!(
        "{READY} echo '{{\"seconds\": -1, \"rows\": 1, \"checksum\": 1}}'"
    ));
    assert!(message.contains("-1 s"), "{message}");
}

#[test]
fn a_rival_with_another_result_is_an_error_that_names_it() {
    let message = run_with_python(&format!(
        "{READY} echo '{{\"seconds\": 1, \"rows\": 9, \"checksum\": 1}}'"
    ));
    assert!(message.contains("duckdb is wrong") && message.contains("9 rows"), "{message}");
}

#[test]
fn a_rival_that_refuses_is_reported_and_the_others_go_on() {
    let home = tempfile::tempdir().unwrap();
    let python = fake(home.path(), &format!("{READY} echo '{{\"error\": \"out of memory\"}}'"));
    let flags = ["--rows", "1000", "--groups", "10", "--runs", "2", "--rivals", "duckdb", "--json"];
    let python = ["--python", python.to_str().unwrap()];
    let run = bench(&[&["aggregate"], &flags[..], &python].concat()).json();
    assert_eq!(cases(&run)[0]["rivals"][0]["failure"], "out of memory");
    assert!(cases(&run)[0]["ours"][0]["seconds"]["median"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_missing_python_is_reported() {
    let flags = ["--rows", "10", "--groups", "1", "--runs", "1", "--python", "/nowhere/python"];
    let message = bench(&[&["aggregate"], &flags[..]].concat()).failed(125);
    assert!(message.contains("/nowhere/python"), "{message}");
}

#[test]
fn keys_of_every_spread_are_sorted_like_the_standard_library() {
    let spreads = ["--keys", "dense,sparse,zipf,hot,sorted,reversed", "--rows", "1,3000"];
    let run = alone("sort", &spreads).json();
    assert_eq!(cases(&run).len(), 12);
    assert_eq!(cases(&run)[0]["rivals"][0]["name"], "std");
    assert_eq!(cases(&run)[0]["ours"][0]["ratio"]["to"], "std");
}

#[test]
fn the_sort_merge_join_reports_its_four_phases_and_its_speed_up() {
    let flags =
        ["--algorithm", "radix,mpsm", "--build", "500", "--probe", "9000", "--threads", "1,2"];
    let run = alone("join", &[&flags[..], &["--matches", "50%"]].concat()).json();
    let ours = &cases(&run)[1]["ours"][1];
    assert_eq!(ours["variant"], "mpsm");
    assert_eq!(ours["phases"].as_array().unwrap().len(), 4);
    assert!(ours["speed_up"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_tuning_is_kept_with_the_machines_facts_and_used_by_later_commands() {
    let home = tempfile::tempdir().unwrap();
    let tune = ["tune", "--rows", "2000", "--runs", "1", "--threads", "2"];
    let ran = tools_in(home.path(), &tune);
    assert!(ran.err.contains("2000 rows are few"), "{}", ran.err);
    let text = ran.done();
    assert!(text.contains("Kept in") && text.contains("buffer_rows"), "{text}");
    let facts = tools_in(home.path(), &["topo", "facts", "--json"]).done();
    assert!(facts.contains("\"prefetch_rows\"") && facts.contains("atoll tune"), "{facts}");
    // Another value in the place of what was found.
    let machines = home.path().join(".local/share/atoll/machines");
    let mut files = std::fs::read_dir(machines).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|it| it == "toml")).unwrap();
    let kept = std::fs::read_to_string(&file).unwrap();
    let (before, fact) = kept.split_once("\"prefetch_rows\"").unwrap();
    let (middle, value) = fact.split_once("value = ").unwrap();
    let (_, after) = value.split_once(' ').unwrap();
    let other = format!("{before}\"prefetch_rows\"{middle}value = 48 {after}");
    std::fs::write(&file, other).unwrap();
    let flags = ["--rows", "100", "--runs", "1", "--rivals", "none", "--json"];
    let run = bench_in(home.path(), &[&["partition"], &flags[..]].concat()).json();
    let tuning = run["details"]["tuning"].as_str().unwrap();
    assert!(tuning.contains("prefetch_rows: 48"), "{tuning}");
}
