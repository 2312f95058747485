//! The benchmarks at a tiny size, through the binary as people run it. No time is asserted.
//!
//! - `tpch`: engines agree, the report is complete, and its flags do what they say.
//! - `runtime` prints its rows.
//! - `refusals`: what cannot be measured is told, with the exit code for it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(cache: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-bench"));
    let run = command.args(arguments).env("XDG_CACHE_HOME", cache).output();
    run.expect("the program starts")
}

/// Runs TPC-H at scale factor 0.01 with plain DataFusion as the rival, and reads the JSON report.
fn tpch(cache: &Path, arguments: &[&str]) -> Value {
    let fixed = ["tpch", "--scale-factor", "0.01", "--threads", "2", "--rivals", "datafusion"];
    let output =
        bench(cache, &[&fixed[..], &["--timeout", "120", "--json", "-"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {said}", output.status);
    serde_json::from_slice(&output.stdout).expect("one JSON document on stdout, nothing else")
}

fn names(list: &Value, field: &str) -> Vec<String> {
    let items = list.as_array().expect("a list").iter();
    items.map(|item| item[field].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn both_engines_agree_on_all_queries_and_the_report_is_complete() {
    let cache = tempfile::tempdir().expect("a directory");
    let report = tpch(cache.path(), &["--runs", "2", "--warmup", "1"]);
    assert_eq!(report["problems"], serde_json::json!([]));
    let queries = report["queries"].as_array().expect("queries");
    assert_eq!(queries.len(), 22);
    for query in queries {
        assert_eq!(names(&query["times"], "engine"), ["atoll", "datafusion"], "{query}");
        for times in query["times"].as_array().expect("times") {
            assert_eq!(times["samples_ms"].as_array().map(Vec::len), Some(2), "{query}");
            assert!(times["ms"]["median"].as_f64() > Some(0.0), "{query}");
        }
    }
    assert_eq!(queries[0]["rows"], 4, "Q1 has four groups");
    for scan_bound in [0, 5] {
        assert!(queries[scan_bound]["scan"]["bytes"].as_u64() > Some(0), "{}", queries[scan_bound]);
    }
    assert_eq!(queries[1]["scan"], Value::Null);
    assert_eq!(report["totals_queries"], 22);
    assert_eq!(names(&report["totals"], "engine"), ["atoll", "datafusion"]);
    for engine in report["engines"].as_array().expect("engines") {
        let loaded = &engine["loaded"];
        assert!(loaded["load_ms"].as_f64() > Some(0.0), "{engine}");
        assert!(loaded["rss_bytes"].as_u64() > loaded["rss_before_load_bytes"].as_u64());
        assert!(engine["peak_rss_bytes"].as_u64() >= loaded["rss_bytes"].as_u64(), "{engine}");
    }
    assert_eq!(report["engines"][0]["loaded"]["placement"]["workers"], 2);
    assert!(report["bandwidth"]["bytes_per_second"].as_f64() > Some(0.0));
    assert!(report["generated"]["load_ms"].as_f64() > Some(0.0));
    assert!(report["manifest"]["kernel"].is_string());
}

#[test]
fn fresh_parameters_agree_too_and_data_is_kept_for_the_next_run() {
    let cache = tempfile::tempdir().expect("a directory");
    let data = cache.path().join("data");
    let place = data.to_str().expect("a path in UTF-8");
    let fresh = ["--data", place, "--fresh-parameters", "--runs", "2", "--warmup", "0"];
    let report = tpch(cache.path(), &[&fresh[..], &["--seed", "5"]].concat());
    assert_eq!(report["problems"], serde_json::json!([]));
    assert_eq!(report["settings"]["fresh_seed"], 5);
    assert_eq!(report["queries"][5]["scan"], Value::Null, "bytes of one round fit no median");
    let written = data.join("lineitem.parquet").metadata().and_then(|file| file.modified());
    let written = written.expect("the data is where it was asked for");

    let out = cache.path().join("report.md");
    let out_text = out.to_str().expect("a path in UTF-8");
    let again = ["--data", place, "--queries", "6,1", "--runs", "1", "--out", out_text];
    let report = tpch(cache.path(), &again);
    let numbers: Vec<_> = report["queries"].as_array().expect("queries").iter().collect();
    assert_eq!([&numbers[0]["query"], &numbers[1]["query"]], [6, 1]);
    let kept = data.join("lineitem.parquet").metadata().and_then(|file| file.modified());
    assert_eq!(kept.expect("it is still there"), written);
    let text = std::fs::read_to_string(&out).expect("the report as Markdown");
    assert!(text.contains("| Q6 ") && text.contains("atoll / datafusion"), "{text}");
}

#[test]
fn the_comparison_of_runtimes_prints_its_rows() {
    let cache = tempfile::tempdir().expect("a directory");
    let output = bench(cache.path(), &["runtime", "--pairs", "1", "--tasks", "9", "--scan", "4"]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("Atoll / tokio"), "{output:?}");
}

#[test]
fn what_cannot_be_measured_is_told_with_its_exit_code() {
    let cache = tempfile::tempdir().expect("a directory");
    std::fs::write(cache.path().join("a"), "b").expect("a file");
    let place = cache.path().to_str().expect("a path in UTF-8");
    for (arguments, code, said) in [
        (vec!["tpch", "--queries", "23"], 2, "23"),
        (vec!["tpch", "--seed", "1"], 2, "--fresh-parameters"),
        (vec!["tpch", "--runs", "0"], 125, "--runs"),
        (vec!["tpch", "--data", place], 125, "neither empty nor made by atoll-bench"),
        (vec!["worker", "--engine", "atoll", "--threads", "1", "--data", place], 125, "region"),
    ] {
        let output = bench(cache.path(), &arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(said), "{arguments:?}: {told}");
    }
}
