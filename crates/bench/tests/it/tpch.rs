//! `bench tpch` and `runtime` at a tiny size: engines agree, reports are complete, flags do what they
//! say, and what cannot be measured ends with its exit code. No time is asserted.

use std::path::Path;

use serde_json::Value;

use crate::support::{Ran, bench_in, bench_interrupted};

fn bench(home: &Path, arguments: &[&str]) -> Ran {
    bench_in(home, &[arguments].concat())
}

/// Runs TPC-H at scale factor 0.01 with plain DataFusion as the rival, and reads the JSON report.
fn tpch(cache: &Path, arguments: &[&str]) -> Value {
    let fixed = ["tpch", "--scale-factor", "0.01", "--threads", "2", "--rivals", "datafusion"];
    bench(cache, &[&fixed[..], &["--timeout", "120", "--json"], arguments].concat()).json()
}

fn names(list: &Value, field: &str) -> Vec<String> {
    let items = list.as_array().expect("a list").iter();
    items.map(|item| item[field].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_run_that_is_stopped_reports_what_it_has_and_goes_on_with_the_rest() {
    let home = tempfile::tempdir().expect("a directory");
    let flags = [
        "tpch",
        "--scale-factor",
        "0.01",
        "--threads",
        "2",
        "--rivals",
        "none",
        "--queries",
        "6,1",
        "--runs",
        "500",
        "--warmup",
        "0",
        "--results",
        "kept",
        "--json",
    ];
    let stopped = bench_interrupted(home.path(), &flags, "Q6:");
    let report: Value = serde_json::from_str(&stopped.out).expect("a report");
    let queries = |report: &Value| {
        let queries = report["details"]["queries"].as_array().cloned().expect("queries");
        queries.iter().map(|it| it["query"].as_u64()).collect::<Vec<_>>()
    };
    assert_eq!(queries(&report), [Some(6)]);
    let said = stopped.failed(130);
    assert!(said.contains("--results kept --resume goes on"), "{said}");
    let kept = home.path().join("kept/Q6.json");
    let before = std::fs::read_to_string(&kept).expect("a result");
    let resumed = bench(home.path(), &[&flags[..], &["--resume"]].concat()).json();
    assert_eq!(queries(&resumed), [Some(6), Some(1)]);
    assert_eq!(std::fs::read_to_string(&kept).expect("a result"), before);
}

#[test]
fn both_engines_agree_on_all_queries_and_the_report_is_complete() {
    let cache = tempfile::tempdir().expect("a directory");
    let document = tpch(cache.path(), &["--runs", "2", "--warmup", "1"]);
    let report = &document["details"];
    assert_eq!(report["problems"], serde_json::json!([]));
    let queries = report["queries"].as_array().expect("queries");
    assert_eq!(queries.len(), 22);
    for query in queries {
        assert_eq!(names(&query["times"], "engine"), ["atoll", "datafusion"], "{query}");
        for times in query["times"].as_array().expect("times") {
            assert_eq!(times["ms"]["runs"], 2, "{query}");
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
    assert!(document["manifest"]["kernel"].is_string());
    assert_eq!(document["manifest"]["engines"].as_array().map(Vec::len), Some(2));
    let measured = document["measurements"].as_array().expect("measurements");
    assert_eq!(measured.len(), 44);
    assert!(measured.iter().all(|it| it["samples"].as_array().map(Vec::len) == Some(2)));
}

#[test]
fn fresh_parameters_agree_too_and_data_is_kept_for_the_next_run() {
    let cache = tempfile::tempdir().expect("a directory");
    let data = cache.path().join("data");
    let place = data.to_str().expect("a path in UTF-8");
    let fresh = ["--data", place, "--fresh-parameters", "--runs", "2", "--warmup", "0"];
    let document = tpch(cache.path(), &[&fresh[..], &["--seed", "5"]].concat());
    let report = &document["details"];
    assert_eq!(report["problems"], serde_json::json!([]));
    assert_eq!(report["settings"]["fresh_parameters"], true);
    assert_eq!(document["manifest"]["seed"], 5);
    assert_eq!(report["queries"][5]["scan"], Value::Null, "bytes of one round fit no median");
    let written = data.join("lineitem.parquet").metadata().and_then(|file| file.modified());
    let written = written.expect("the data is where it was asked for");

    let (markdown, json) = (cache.path().join("report.md"), cache.path().join("report.json"));
    let again = ["tpch", "--data", place, "--queries", "6,1", "--runs", "1", "--threads", "2"];
    let rest = ["--scale-factor", "0.01", "--rivals", "datafusion", "-o", "report.md"];
    let done = bench(cache.path(), &[&again[..], &rest, &["-o", "report.json"]].concat()).done();
    assert_eq!(done, "");
    let text = std::fs::read_to_string(json).expect("the report as JSON");
    let report: Value = serde_json::from_str(&text).expect("a JSON document");
    let report = &report["details"];
    let numbers: Vec<_> = report["queries"].as_array().expect("queries").iter().collect();
    assert_eq!([&numbers[0]["query"], &numbers[1]["query"]], [6, 1]);
    let kept = data.join("lineitem.parquet").metadata().and_then(|file| file.modified());
    assert_eq!(kept.expect("it is still there"), written);
    let text = std::fs::read_to_string(markdown).expect("the report as Markdown");
    assert!(text.contains("| Q6 ") && text.contains("atoll / datafusion"), "{text}");
}

#[test]
fn the_comparison_of_runtimes_prints_its_rows() {
    let cache = tempfile::tempdir().expect("a directory");
    let flags = ["--runs", "1", "--tasks", "9", "--scan", "4MiB"];
    let text = bench(cache.path(), &[&["runtime"], &flags[..]].concat()).done();
    assert!(text.contains("atoll / tokio") && text.contains("| scan "), "{text}");
    let json = bench(cache.path(), &[&["runtime"], &flags[..], &["--json"]].concat()).json();
    assert_eq!(json["measurements"].as_array().map(Vec::len), Some(6));
}

#[test]
fn failed_measurements_have_their_exit_code() {
    let cache = tempfile::tempdir().expect("a directory");
    std::fs::write(cache.path().join("a"), "b").expect("a file");
    let place = cache.path().to_str().expect("a path in UTF-8");
    for (arguments, code, said) in [
        (vec!["tpch", "--queries", "23"], 2, "23"),
        (vec!["tpch", "--seed", "1"], 2, "--fresh-parameters"),
        (vec!["tpch", "--runs", "0"], 2, "--runs"),
        (vec!["tpch", "--data", place], 125, "neither empty nor made by atoll bench tpch"),
        (vec!["worker", "--engine", "atoll", "--threads", "1", "--data", place], 125, "region"),
    ] {
        let error = bench(cache.path(), &arguments).failed(code);
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}
