//! Tables and workers on an emulated machine with a real kernel: pages on their home nodes, workers on theirs, and the
//! local share of misses in the tables' own pages, according to the lab's counter. Skipped with a message if no guest
//! can boot.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use atoll_testkit::{Need, guests, skip};
use serde_json::Value;

/// Scans of `scans.sh`, in its order: the number of each is its region and its tag.
const PLACEMENTS: [&str; 3] = ["aligned", "default", "spread"];

fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.arg("lab").args(arguments).stdin(Stdio::null());
    command
}

/// Runs a script in a guest of four nodes; its output.
fn run(script: &str, more: &[&str]) -> Option<Output> {
    let ready = lab(&["setup", "--dry-run"]).output().expect("the binary starts");
    if !ready.status.success() {
        skip(Need::Lab, String::from_utf8_lossy(&ready.stderr));
        return None;
    }
    let crate_root =
        std::env::var("CARGO_MANIFEST_DIR").expect("cargo tells the crate's directory");
    let script = PathBuf::from(crate_root).join("tests/lab").join(script).display().to_string();
    let atoll = env!("CARGO_BIN_EXE_atoll");
    let attempt = || {
        lab(&["run", "--machine", "westmere-ex-4", "--cpus", "2", "--memory", "1GiB"])
            .args(["--balancing", "off", "--with", atoll])
            .args(more)
            .args(["--env", &format!("ATOLL={atoll}"), "--", "sh", &script])
            .output()
            .expect("the binary starts")
    };
    Some(guests::boot(attempt))
}

#[test]
fn scans_of_placed_tables_are_local_in_a_real_kernel_and_others_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("record.json");
    let report = file.display().to_string();
    let counted = ["--timeout", "300s", "--cache-divisor", "16", "--count", "region", "--report"];
    let counted = [&counted[..], &[&report]].concat();
    let Some(output) = run("scans.sh", &counted) else { return };
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    let record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();

    results_are_those_of_one_node(&out);
    workers_are_bound_to_their_nodes(&out);
    let homes = rows(&out, "aligned", "home");
    assert_eq!(homes.len(), 4, "a part of the table on each node: {homes:?}");

    // The table has 131,072 lines.
    let local: BTreeMap<&str, f64> = PLACEMENTS
        .into_iter()
        .zip(1..)
        .map(|(placement, number)| (placement, local_share(&record, number, 60_000)))
        .collect();
    assert!(local["aligned"] >= 0.95, "{local:?}");
    // A quarter of the pages is local to each of four nodes. `default` may be as local as `aligned`:
    // the first touch is by the worker that scans the chunk later.
    assert!(local["spread"] <= 0.4, "{local:?}");
}

#[test]
fn shared_scans_of_aligned_tables_are_local_and_load_all_controllers_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("record.json");
    let report = file.display().to_string();
    // A node's part of the column, 1 MiB, is more than its last-level cache of 480 KiB: no cycle finds
    // what the one before, or the worker that wrote it, left there.
    let counted = ["--timeout", "300s", "--cache-divisor", "64", "--count", "region", "--report"];
    let Some(output) = run("shared.sh", &[&counted[..], &[&report]].concat()) else { return };
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    let record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let between = |low: i64, high: i64| {
        let passes = |a: &i64| (low..=high).contains(&(a * 7_368_787 % 999_999_937));
        let found: Vec<i64> = (1..=1_048_576).filter(passes).collect();
        [found.len().to_string(), found.iter().sum::<i64>().to_string()]
    };
    let wanted = [
        between(1_000_000, 1_900_000),
        between(7_368_787, 7_368_787),
        between(2_000_000, 2_900_000),
    ];
    for placement in ["aligned", "preferred(0)"] {
        assert_eq!(rows(&out, placement, "found"), wanted, "{placement}");
        assert_eq!(
            rows(&out, placement, "scans"),
            [["3"]],
            "{placement}: they did not share scans"
        );
    }
    // The column that is scanned has 65,536 lines, and there are three cycles.
    assert!(local_share(&record, 1, 190_000) >= 0.95, "{:?}", lines(&record, 1));
    let aligned = controllers(&record, 1);
    let mean = aligned.iter().sum::<u64>() / 4;
    assert!(aligned.iter().all(|lines| lines.abs_diff(mean) * 100 <= mean), "{aligned:?}");
    let unaware = controllers(&record, 2);
    assert_eq!(unaware[1..], [0, 0, 0], "{unaware:?}");
    assert!(unaware[0] >= 190_000, "{unaware:?}");
}

/// Lines of the table's own pages that the memory of each node served while its queries ran.
fn controllers(record: &Value, number: u64) -> Vec<u64> {
    let lines = lines(record, number);
    (0..lines.len()).map(|home| lines.iter().map(|from| from[home]).sum()).collect()
}

#[test]
fn rows_are_at_their_homes_in_a_real_kernel_after_a_thousand_updates() {
    let Some(output) = run("updates.sh", &["--timeout", "300s", "--count", "off"]) else { return };
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(rows(&out, "aligned", "sum"), [["1048000", "1048000"]], "{out}");
    let homes = rows(&out, "aligned", "home");
    assert_eq!(homes.len(), 4, "a part of the table on each node: {homes:?}");
    let [pages] = &rows(&out, "aligned", "pages")[..] else { panic!("{out}") };
    let [at_home, all] = pages[..] else { panic!("{out}") };
    let [at_home, all] = [at_home, all].map(|pages| pages.parse::<f64>().unwrap());
    // Two columns of 1,048,000 rows in four bytes each are 2,047 pages.
    assert!(all >= 2000.0 && at_home >= 0.95 * all, "{at_home} of {all} pages are at home");
}

/// Rows of a placement that begin with a word, the rest as cells.
fn rows<'a>(out: &'a str, placement: &str, word: &str) -> Vec<Vec<&'a str>> {
    let prefix = format!("{placement},{word},");
    out.lines()
        .filter_map(|line| line.strip_prefix(&prefix))
        .map(|l| l.split(',').collect())
        .collect()
}

fn results_are_those_of_one_node(out: &str) {
    for placement in PLACEMENTS {
        // sum(a), sum(b) and count(*), as a plain loop has them.
        let kept = (1..=1_048_576_i64)
            .map(|a| (a, a * 7_368_787 % 999_999_937))
            .filter(|(_, b)| b % 7 != 3);
        let (a, b, rows_kept) = kept.fold((0, 0, 0), |(x, y, n), (a, b)| (x + a, y + b, n + 1));
        let expected = [a.to_string(), b.to_string(), rows_kept.to_string()];
        assert_eq!(rows(out, placement, "sum"), [expected], "{placement}");
    }
}

/// Every worker of `aligned` runs on the cpus of its node: 2n and 2n + 1.
fn workers_are_bound_to_their_nodes(out: &str) {
    let workers = rows(out, "aligned", "worker");
    assert_eq!(workers.len(), 8, "{out}");
    for worker in workers {
        let node: u32 = worker[1].parse().unwrap();
        assert_eq!(worker[2], "true", "{worker:?}");
        let cpus = worker[3..].join(",").replace('"', "");
        let own = [2 * node, 2 * node + 1];
        let one = |cpu: u32| cpus == cpu.to_string();
        assert!(cpus == format!("{}-{}", own[0], own[1]) || own.into_iter().any(one), "{worker:?}");
    }
}

/// Lines missed in the table's own pages while its queries ran, by node of the reader and of the memory.
fn lines(record: &Value, number: u64) -> Vec<Vec<u64>> {
    let regions = record["report"]["regions"].as_array().expect("regions");
    let region = regions.iter().find(|region| region["number"] == number).expect("the region");
    let tags = region["traffic"]["tags"].as_array().expect("tags");
    let tag = tags.iter().find(|tag| tag["tag"] == number).expect("the table's tag");
    serde_json::from_value(tag["lines"].clone()).expect("a matrix")
}

/// Of the lines missed in the table's own pages while its queries ran, the share that was local.
fn local_share(record: &Value, number: u64, lines_min: u64) -> f64 {
    let lines = lines(record, number);
    let local: u64 = (0..lines.len()).map(|node| lines[node][node]).sum();
    let total: u64 = lines.iter().flatten().sum();
    assert!(total > lines_min, "the caches were not left: {lines:?}");
    local as f64 / total as f64
}
