//! `bench scan`: the shape of its JSON, changes that are there, and a rival whose answers are wrong; with few
//! rows and clients.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{Ran, bench_in};

const TINY: [&str; 10] =
    ["--statements", "8", "--seconds", "0.02", "--warmup", "0", "--threads", "2", "--seed", "3"];

fn scan(arguments: &[&str]) -> Ran {
    let home = tempfile::tempdir().unwrap();
    bench_in(home.path(), &[&["scan", "--json"], &TINY[..], arguments].concat())
}

fn names<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    let items = list.as_array().expect("a list").iter();
    items.map(|item| item[field].as_str().expect("a name")).collect()
}

#[test]
fn all_kinds_of_work_are_measured_over_every_relation() {
    let works = "read,open,mix,changes,designs";
    let flags = ["--rivals", "none", "--runs", "2", "--clients", "1,3", "--changes", "0,0.5"];
    let flags = [&flags[..], &["--work", works]].concat();
    let run = scan(&[&flags[..], &["--load", "0.5", "--rows", "2000,3000"]].concat()).json();
    assert_eq!(run["benchmark"], "scan");
    let cases = run["details"]["cases"].as_array().expect("cases");
    let works = names(&run["details"]["cases"], "work");
    let one = ["read", "read", "open", "mix", "mix", "changes", "changes", "designs", "designs"];
    let mut wanted = [one, one].concat();
    let mut found = works.clone();
    wanted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, wanted, "{works:?}");
    for case in cases {
        for subject in case["subjects"].as_array().expect("subjects") {
            assert_eq!(subject["spread"]["runs"], 2, "{case}");
        }
        for latency in case["latencies"].as_array().expect("latencies") {
            assert!(latency["p50"].as_f64() <= latency["max"].as_f64(), "{case}");
        }
    }
    let read = cases.iter().find(|case| case["work"] == "read").expect("reading");
    assert_eq!(names(&read["subjects"], "name"), ["atoll", "atoll, as text"]);
    let designs = cases.iter().find(|case| case["work"] == "designs").expect("designs");
    let all = ["threads", "processes that share memory", "processes that send messages"];
    assert_eq!(names(&designs["subjects"], "name")[..3], all);
    let changed = cases.iter().find(|case| case["changes"] == 0.5).expect("changes");
    assert_eq!(names(&changed["latencies"], "of"), ["queries", "changes"]);
    for relation in run["details"]["relations"].as_array().expect("relations") {
        assert!(
            relation["raw_bytes"].as_u64() > Some(0) && relation["table_bytes"].as_u64() > Some(0)
        );
        assert!(relation["found"]["median"].as_u64() >= Some(1), "{relation}");
    }
}

#[test]
fn clients_alongside_reports_are_measured_with_and_without_a_pool() {
    let flags = ["--rivals", "none", "--runs", "1", "--clients", "3", "--work", "pools"];
    let run = scan(&[&flags[..], &["--rows", "2000"]].concat()).json();
    let cases = run["details"]["cases"].as_array().expect("cases");
    let machine = atoll_topology::Machine::discover().expect("this machine");
    if machine.cores.len() < 2 {
        return assert!(cases.is_empty(), "{cases:?}");
    }
    assert_eq!(cases.len(), 2, "{cases:?}");
    for case in cases {
        let names = names(&case["subjects"], "name");
        assert_eq!(names, ["atoll", "atoll, reports in a pool"], "{case}");
    }
    assert_eq!(cases[1]["of"], "reports");
}

#[test]
fn cycles_are_profiled_and_scaled_up() {
    let flags =
        ["--rivals", "none", "--runs", "1", "--clients", "16", "--work", "read", "--rows", "3000"];
    let more = ["--profile", "--scale-up", "1..8", "--simulate", "--machine", "nehalem-ex-4"];
    let run = scan(&[&flags[..], &more].concat()).json();
    let cycles = &run["details"]["cases"][0]["cycles"][0];
    assert!(cycles["profile"]["scanning"].as_f64() > Some(0.0), "{cycles}");
    let relation = &run["details"]["relations"][0];
    assert!(relation["counted"].is_object() || relation["no_counters"].is_string(), "{relation}");
    let points = relation["scale_up"]["points"].as_array().expect("points");
    let threads: Vec<_> = points.iter().map(|point| point["threads"].as_u64()).collect();
    assert_eq!(threads, [Some(1), Some(2), Some(4), Some(8)]);
    assert!(points[3]["aligned"]["rate"].as_f64() >= points[0]["aligned"]["rate"].as_f64());
    let message = scan(&[&flags[..], &["--scale-up", "1..8"]].concat()).failed(2);
    assert!(message.contains("--simulate") && message.contains("--machine"), "{message}");
}

#[test]
fn a_rival_with_other_answers_ends_the_benchmark() {
    let home = tempfile::tempdir().unwrap();
    let python = home.path().join("python");
    let run_with_rival = |answers: &str| {
        let ready = r#"echo '{"engine": "duckdb", "version": "2"}'; read load; echo '{"empty_query_us": 7}'"#;
        let script = format!("#!/bin/sh\n{ready}\nread work\necho '{answers}'\nread end\n");
        std::fs::write(&python, script).unwrap();
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o700)).unwrap();
        let flags = ["--rows", "3000", "--work", "read", "--clients", "1", "--runs", "1"];
        scan(&[&flags[..], &["--python", python.to_str().unwrap()]].concat()).failed(125)
    };
    let said = run_with_rival(r#"{"one": [], "joined": []}"#);
    assert!(said.contains("duckdb answers (0, 0) queries where it was asked 64"), "{said}");
    let none = vec!["[]"; 64].join(", ");
    let said = run_with_rival(&format!(r#"{{"one": [{none}], "joined": [{none}]}}"#));
    assert!(said.contains("Atoll and DuckDB, one by one, differ"), "{said}");
    assert!(run_with_rival(r#"{"error": "out of memory"}"#).contains("duckdb: out of memory"));
}
