//! `bench server`: the shape of its JSON, with few rows, one second each and no other server.

use atoll_testkit::{Need, skip};
use serde_json::Value;

use crate::support::bench;

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
