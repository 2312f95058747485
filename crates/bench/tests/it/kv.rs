//! `bench kv`: the procedure for all engines that are installed, equal contents, results that stay when a run is
//! stopped, and refusals; with few records.

use std::fs;
use std::path::Path;

use atoll_testkit::{Need, skip};
use serde_json::Value;

use crate::support::{Ran, bench_in, bench_interrupted};

const TINY: [&str; 9] =
    ["kv", "--records", "2000", "--seconds", "0.05", "--readers", "1,3", "--directory", "."];

fn kv(home: &Path, arguments: &[&str]) -> Ran {
    bench_in(home, &[&TINY[..], arguments].concat())
}

fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn every_engine_that_is_installed_runs_the_procedure_with_equal_contents() {
    let home = tempfile::tempdir().unwrap();
    let run = kv(home.path(), &["--arms", "default,spread", "--json"]).json();
    assert_eq!(run["benchmark"], "kv");
    let details = &run["details"];
    for (engine, why) in details["missing"].as_object().expect("engines") {
        skip(Need::KeyValueEngines, format_args!("{engine}: {why}"));
    }
    let results = list(details, "results");
    let has_own = results.iter().any(|result| result["case"]["engine"] == "atoll");
    assert!(
        has_own && results.len().is_multiple_of(8),
        "two loads and two numbers of readers under two arms"
    );
    let mut sums: Vec<&Value> = Vec::new();
    for result in results {
        let answer = &result["answer"];
        let usage = &answer["usage"];
        for figure in ["wall_s", "database_kb", "process_kb"] {
            assert!(usage[figure].as_f64() > Some(0.0), "{figure} of {result}");
        }
        assert!(answer["writes"]["per_s"].as_f64() > Some(0.0), "{result}");
        let reads = &answer["reads"];
        let is_load = result["case"]["work"] == "load";
        assert!(is_load == reads.is_null(), "{result}");
        if !is_load {
            assert!(
                reads["latency"]["p99"].as_f64() >= reads["latency"]["p50"].as_f64(),
                "{result}"
            );
            assert!(reads["corrected"]["count"].as_u64() >= reads["count"].as_u64(), "{result}");
        }
        assert!(answer["placement"]["asked"].is_string(), "{result}");
        if let Some(contents) = answer["contents"].as_object() {
            assert_eq!(contents["records"], 2000, "{result}");
            sums.push(&contents["sum"]);
        }
    }
    assert!(sums.len() >= 6 && sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    assert_eq!(list(&details["published"], "mixed").len(), 77);
    assert_eq!(list(details, "findings").len(), 9);
    assert!(list(&run, "measurements").len() >= results.len());
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "the results alone stay");
}

#[test]
fn tables_and_pictures_stand_beside_the_published_rows() {
    let home = tempfile::tempdir().unwrap();
    let arguments = [
        "--engines",
        "atoll",
        "--arms",
        "default",
        "--load",
        "sequential",
        "-o",
        "a.md",
        "-o",
        "a.svg",
    ];
    kv(home.path(), &arguments).done();
    let read = |name: &str| fs::read_to_string(home.path().join(name)).unwrap();
    let text = read("a.md");
    for part in [
        "(assumed: the report states neither",
        "| published, interleave |",
        "published TokuDB",
        "threads free, no memory policy",
        "it needs 65 cpus",
        "all records were read",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let picture = read("a.svg");
    for part in ["Load of 2000 records by rising key", "reads/s of atoll", "Cpu time of atoll"] {
        assert!(picture.contains(part), "{part}");
    }
}

#[test]
fn a_run_goes_on_with_what_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let arguments = ["--engines", "atoll", "--arms", "default", "--load", "sequential"];
    kv(home.path(), &arguments).done();
    let said = kv(home.path(), &arguments).failed(125);
    assert!(said.contains("--resume goes on with it"), "{said}");
    let kept = home.path().join("kv-results/atoll-default-0-readers-1.json");
    let lost = home.path().join("kv-results/atoll-default-0-readers-3.json");
    let before = fs::read_to_string(&kept).unwrap();
    fs::remove_file(&lost).unwrap();
    let resumed = kv(home.path(), &[&arguments[..], &["--resume"]].concat());
    assert!(resumed.err.contains("atoll, default, readers 3:"), "{resumed:?}");
    assert!(!resumed.err.contains("atoll, default, readers 1:"), "{resumed:?}");
    resumed.done();
    assert!(lost.exists() && fs::read_to_string(&kept).unwrap() == before);
    let said =
        kv(home.path(), &[&arguments[..], &["--resume", "--seed", "2"]].concat()).failed(125);
    assert!(said.contains("other records"), "{said}");
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_leaves_nothing_else() {
    let home = tempfile::tempdir().unwrap();
    let databases = home.path().join("databases");
    fs::create_dir(&databases).unwrap();
    let arguments = [
        "kv",
        "--engines",
        "atoll",
        "--arms",
        "default",
        "--load",
        "sequential",
        "--records",
        "100",
        "--seconds",
        "600",
        "--readers",
        "1",
        "--directory",
        "databases",
    ];
    let said = bench_interrupted(home.path(), &arguments, "load sequential").failed(130);
    assert!(said.contains("--resume goes on"), "{said}");
    assert!(home.path().join("kv-results/atoll-default-0-load-sequential.json").exists());
    assert_eq!(fs::read_dir(&databases).unwrap().count(), 0, "no database stays");
}

#[test]
fn what_cannot_be_had_names_itself_and_flags_are_checked() {
    let home = tempfile::tempdir().unwrap();
    let missing = kv(home.path(), &["--engines", "basho", "--arms", "default"]).failed(4);
    assert!(missing.contains("without basho") && missing.contains("kv setup"), "{missing}");
    assert!(missing.contains("no engine can be measured here"), "{missing}");
    for (flags, message) in [
        (["--arms", "replicate"], "one copy of its data"),
        (["--arms", "subset"], "its number is missing"),
        (["--engines", "tokudb"], "tokudb"),
        (["--value-bytes", "8"], "16"),
    ] {
        let said = kv(home.path(), &flags).failed(2);
        assert!(said.contains(message), "{said}");
    }
    let plan = bench_in(home.path(), &["kv", "setup", "--dry-run"]);
    assert!(plan.err.contains("leveldown-hyper@2.0.0"), "{plan:?}");
    plan.done();
}
