//! `bench sql` at a tiny size: every query runs, the report is complete, and names are checked. No time is asserted.

use serde_json::json;

use crate::support::bench;

const TINY: [&str; 9] =
    ["sql", "--rows", "2000", "--threads", "2", "--rivals", "none", "--runs", "1"];

#[test]
fn every_query_runs_and_the_report_is_complete() {
    let names = bench(&["sql", "--work", "order", "--list"]).done();
    let names: Vec<&str> = names.lines().collect();
    assert!(names.len() > 40 && names.contains(&"rollup"), "{names:?}");
    let document = bench(&[&TINY[..], &["--warmup", "0", "--json"]].concat()).json();
    let report = &document["details"];
    assert_eq!(report["problems"], json!([]));
    let queries = report["queries"].as_array().expect("queries");
    let found: Vec<_> = queries.iter().map(|query| query["query"].as_str().unwrap()).collect();
    assert_eq!(found, names);
    for query in queries {
        assert!(query["rows"].as_u64() > Some(0), "{query}");
        assert!(query["times"][0]["ms"]["median"].as_f64() > Some(0.0), "{query}");
    }
    let measured = document["measurements"].as_array().expect("measurements");
    assert_eq!(measured.len(), names.len());
    assert_eq!(measured[0]["case"]["rows"], 2000);
}

#[test]
fn queries_are_chosen_by_name() {
    let chosen = ["--queries", "rollup;sort by time", "--warmup", "0"];
    let text = bench(&[&TINY[..], &chosen].concat()).done();
    assert!(text.contains("| rollup") && text.contains("| sort by time"), "{text}");
    assert!(!text.contains("| cube"), "{text}");
    let failed = bench(&["sql", "--queries", "nonsense"]).failed(2);
    assert!(failed.contains("no query is named 'nonsense'; --list prints the names"), "{failed}");
}
