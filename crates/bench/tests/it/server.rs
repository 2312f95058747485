//! `bench server`: the shape of its JSON, with few rows, one second each and no other server.

use atoll_testkit::{Need, skip};
use serde_json::Value;

use crate::support::{bench, bench_in};

#[test]
fn the_server_is_asked_by_pgbench_and_by_a_client_that_counts() {
    if std::process::Command::new("pgbench").arg("--version").output().is_err() {
        return skip(Need::Postgresql, "no pgbench");
    }
    let tiny = ["--scale", "1", "--seconds", "1", "--clients", "2", "--rows", "1000"];
    let once = ["--connections", "20", "--runs", "1", "--warmup", "0", "--rivals", "none"];
    let run = bench(&[&["server", "--json"][..], &tiny, &once].concat()).json();
    assert_eq!(run["benchmark"], "server");
    let cases = run["details"]["cases"].as_array().expect("cases");
    let of = |work: &str, unit: &str| {
        let found: Vec<&Value> =
            cases.iter().filter(|it| it["work"] == work && it["unit"] == unit).collect();
        let medians = found.iter().map(|it| it["subjects"][0]["spread"]["median"].as_f64());
        medians.map(|it| it.expect("a median")).collect::<Vec<f64>>()
    };
    // As text and prepared.
    let rates = of("pgbench -S", "transactions/s");
    assert!(rates.len() == 2 && rates.iter().all(|rate| *rate > 1.0), "{rates:?}");
    let (half, most) = (of("pgbench, TPC-B", "ms, p50"), of("pgbench, TPC-B", "ms, p99"));
    assert!(half.len() == 1 && half[0] > 0.0 && most[0] >= half[0], "{half:?} {most:?}");
    for (work, unit) in [
        ("pgbench -i", "s"),
        ("connect", "ms"),
        ("8 columns", "rows/s"),
        ("8 columns, Flight SQL", "rows/s"),
    ] {
        let measured = of(work, unit);
        assert!(measured.len() == 1 && measured[0] > 0.0, "{work}: {measured:?}");
    }
    assert_eq!(of("idle", "MB").len(), 1);
    // All of it for `bench compare`: init, 2 × 3, 3, connect, idle, 2 × 2.
    assert_eq!(run["measurements"].as_array().map(Vec::len), Some(16));
}

#[test]
fn samples_are_kept_and_only_what_is_missing_is_measured_again() {
    if std::process::Command::new("pgbench").arg("--version").output().is_err() {
        return skip(Need::Postgresql, "no pgbench");
    }
    let home = tempfile::tempdir().unwrap();
    let flags = [
        "server",
        "--json",
        "--work",
        "select",
        "--scale",
        "1",
        "--seconds",
        "1",
        "--clients",
        "2",
        "--runs",
        "1",
        "--warmup",
        "0",
        "--rivals",
        "none",
        "--results",
        "kept",
    ];
    let run = |more: &[&'static str]| bench_in(home.path(), &[&flags[..], more].concat());
    let samples = |report: Value| {
        let all = report["measurements"].as_array().cloned().expect("measurements");
        all.iter().map(|it| it["samples"].clone()).collect::<Vec<Value>>()
    };
    let first = samples(run(&[]).json());
    assert_eq!(first.len(), 6);
    let said = run(&[]).failed(125);
    assert!(said.contains("--resume goes on with it"), "{said}");
    let mut kept = std::fs::read_dir(home.path().join("kept")).unwrap().flatten();
    let prepared = kept.find(|it| it.file_name().to_string_lossy().contains("prepared"));
    let prepared = prepared.expect("a sample").path();
    std::fs::remove_file(&prepared).unwrap();
    let second = samples(run(&["--resume"]).json());
    assert!(prepared.exists());
    assert_eq!(second[..3], first[..3], "what was measured stays");
    assert_ne!(second[3..], first[3..], "what was missing is measured");
}
