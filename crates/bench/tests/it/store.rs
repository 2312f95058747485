//! `bench store`: the shape of its JSON, acknowledged changes that are there, and rivals that do not behave;
//! with few rows.

use std::os::unix::fs::PermissionsExt;

use atoll_testkit::{Need, skip};
use serde_json::Value;

use crate::support::bench;

const TINY: [&str; 8] =
    ["--rows", "100", "--bulk-rows", "2000", "--seconds", "0.02", "--warmup", "0"];

fn subjects(case: &Value) -> Vec<&str> {
    let subjects = case["subjects"].as_array().expect("subjects").iter();
    subjects.map(|subject| subject["name"].as_str().expect("a name")).collect()
}

#[test]
fn all_kinds_of_work_are_measured() {
    let run = bench(
        &[&["store", "--rivals", "none", "--runs", "2", "--sessions", "1,3", "--json"], &TINY[..]]
            .concat(),
    )
    .json();
    assert_eq!(run["benchmark"], "store");
    let cases = run["details"]["cases"].as_array().expect("cases");
    // Two kinds of writes of two numbers of sessions with two durabilities, with no, one and two indexes; reads by the key and by an
    // index; bulk, an index, checkpoints, recovery without a key and with one.
    assert_eq!(cases.len(), 2 * 2 * 2 * 3 + 2 * 2 + 4 + 4 + 2);
    assert_eq!(subjects(&cases[0]), ["atoll", "fdatasync"]);
    assert_eq!(cases[0]["work"], "insert");
    for case in cases {
        for subject in case["subjects"].as_array().expect("subjects") {
            let runs = if case["unit"] == "bytes/row" { 1 } else { 2 };
            assert_eq!(subject["spread"]["runs"], runs, "{case}");
        }
    }
    let samples: usize = cases.iter().map(|case| subjects(case).len()).sum();
    assert_eq!(run["measurements"].as_array().map(Vec::len), Some(samples));
}

#[test]
fn a_rival_is_measured_too_and_its_message_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let python = home.path().join("python");
    let ready = r#"echo '{"engine": "sqlite", "version": "3"}'; read open; echo '{"made": true}'"#;
    let run_with_rival = |work: &str| {
        std::fs::write(
            &python,
            format!("#!/bin/sh\n{ready}\nread work; echo '{work}'\nread end\n"),
        )
        .unwrap();
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o700)).unwrap();
        let flags = ["--rivals", "sqlite", "--work", "insert", "--sessions", "1", "--runs", "1"];
        let python = [
            "--durability",
            "off",
            "--indexes",
            "1",
            "--python",
            python.to_str().unwrap(),
            "--json",
        ];
        bench(&[&["store"], &flags[..], &python, &TINY].concat())
    };
    let run = run_with_rival(r#"{"count": 10, "seconds": 0.5}"#).json();
    let case = &run["details"]["cases"][0];
    assert_eq!(subjects(case), ["atoll", "sqlite"]);
    assert_eq!(case["subjects"][1]["spread"]["median"], 20.0);
    assert!(
        run_with_rival(r#"{"error": "database is locked"}"#)
            .failed(125)
            .contains("database is locked")
    );
    assert!(
        run_with_rival(r#"{"count": 1, "seconds": 0}"#)
            .failed(125)
            .contains("reported 0 s for a run")
    );
}

#[test]
fn postgresql_is_a_rival_with_indexes_and_both_durabilities() {
    let flags = ["store", "--rivals", "postgresql", "--python", "python3", "--runs", "1", "--json"];
    let work = ["--work", "insert,lookup,bulk", "--indexes", "2", "--sessions", "2"];
    let run = bench(&[&flags[..], &work, &TINY].concat());
    if std::fs::exists("/usr/lib/postgresql").is_ok_and(|is_there| !is_there) {
        assert!(run.failed(125).contains("PostgreSQL is not installed"));
        return skip(Need::Postgresql, "no server");
    }
    let run = run.json();
    let cases = run["details"]["cases"].as_array().expect("cases");
    // Inserts with two durabilities, lookups, three statements over whole tables, the size of an index.
    assert_eq!(cases.len(), 2 + 1 + 3 + 1);
    for case in cases {
        let of = |subject: &&Value| subject["name"] == "postgresql";
        let theirs = case["subjects"].as_array().and_then(|all| all.iter().find(of));
        let median = theirs.and_then(|it| it["spread"]["median"].as_f64());
        assert!(median.is_some_and(|median| median > 0.0), "{case}");
    }
}
