//! `bench elastic`: the shape of its JSON, the published figures next to ours, and refusals; with few rows.

use serde_json::Value;

use crate::support::{Ran, bench_in, bench_interrupted};

fn elastic(arguments: &[&str]) -> Ran {
    let home = tempfile::tempdir().unwrap();
    let tiny = ["elastic", "--scale-factor", "0.001", "--runs", "1", "--clients", "1,2"];
    bench_in(home.path(), &[&tiny[..], arguments].concat())
}

fn names(list: &Value, field: &str) -> Vec<String> {
    let items = list.as_array().expect("a list").iter();
    items.map(|item| item[field].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn modes_take_turns_and_are_compared_with_published_figures() {
    let flags =
        ["--json", "--queries", "6,1", "--work", "random,mixed", "--modes", "dense,adaptive"];
    let run = elastic(&flags).json();
    assert_eq!(run["benchmark"], "elastic");
    let details = &run["details"];
    let works: Vec<&Value> = details["cases"]
        .as_array()
        .expect("cases")
        .iter()
        .map(|case| &case["settings"]["work"])
        .collect();
    assert_eq!(works, ["random", "random", "mixed"]);
    for case in details["cases"].as_array().expect("cases") {
        assert_eq!(names(&case["modes"], "mode"), ["os", "dense", "adaptive"]);
        for runs in case["modes"].as_array().expect("modes") {
            assert!(runs["rates"][0].as_f64() > Some(0.0), "{runs}");
            assert!(runs["followed"][0]["cores_mean"].as_f64() >= Some(1.0), "{runs}");
        }
    }
    let speedups = details["speedups"].as_array().expect("speed-ups");
    assert_eq!(speedups.len(), 2);
    assert_eq!(
        (&speedups[1]["query"], &speedups[1]["published_adaptive"]),
        (&6.into(), &1.4.into())
    );
    assert!(run["measurements"].as_array().expect("measurements").len() >= 9);
}

#[test]
fn atoll_gives_itself_cores_and_the_contradiction_is_printed() {
    let run = elastic(&["--engine", "atoll", "--queries", "6", "--work", "single"]);
    let text = run.done();
    assert!(text.contains("single, 1 clients"), "{text}");
    assert!(!text.contains("dense |"), "Atoll has no such mode: {text}");
    assert!(text.contains("abstract says up to 27 %, section 4.1 says 41 %"), "{text}");
}

#[test]
fn a_run_that_is_stopped_reports_what_it_has_and_goes_on_with_the_rest() {
    let home = tempfile::tempdir().unwrap();
    let flags = [
        "elastic",
        "--scale-factor",
        "0.001",
        "--runs",
        "30",
        "--clients",
        "1",
        "--queries",
        "6",
        "--work",
        "random",
        "--modes",
        "dense",
        "--results",
        "kept",
        "--json",
    ];
    let stopped = bench_interrupted(home.path(), &flags, "random, 1 clients, os:");
    let report: Value = serde_json::from_str(&stopped.out).expect("a report");
    let runs = |report: &Value| {
        let modes = report["details"]["cases"][0]["modes"].as_array().cloned();
        let rates = |mode: &Value| mode["rates"].as_array().map_or(0, Vec::len);
        modes.iter().flatten().map(rates).sum::<usize>()
    };
    let measured = runs(&report);
    assert!((1..60).contains(&measured), "{measured} of 60");
    let said = stopped.failed(130);
    assert!(said.contains("--results kept --resume goes on"), "{said}");
    let temporary = std::fs::read_dir(home.path().join("tmp")).unwrap();
    assert_eq!(temporary.count(), 0, "no temporary file stays");
    // And the plan.
    assert_eq!(std::fs::read_dir(home.path().join("kept")).unwrap().count(), measured + 1);
    let first = home.path().join("kept/random--1-clients--os-1.json");
    let before = std::fs::read_to_string(&first).unwrap();
    let said = bench_in(home.path(), &flags).failed(125);
    assert!(said.contains("--resume goes on with it"), "{said}");
    let resumed = bench_in(home.path(), &[&flags[..], &["--resume"]].concat()).json();
    assert_eq!(runs(&resumed), 60);
    assert_eq!(std::fs::read_to_string(&first).unwrap(), before);
    let other = [&flags[..], &["--resume", "--seed", "2"]].concat();
    let said = bench_in(home.path(), &other).failed(125);
    assert!(said.contains("other seed"), "{said}");
}

#[test]
fn thresholds_and_modes_are_checked() {
    for (flags, message) in [
        (["--thresholds", "70:10"], "the lower one first"),
        (["--modes", "close"], "expected dense, sparse or adaptive"),
        (["--queries", "23"], "23"),
    ] {
        let said = elastic(&flags).failed(2);
        assert!(said.contains(message), "{said}");
    }
}
