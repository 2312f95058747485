//! The papers' machines in the lab, at a small size: where pages are, and what is counted. `cargo xtask deep lab` runs
//! these.

use std::path::{Path, PathBuf};
use std::process::Command;

use atoll_testkit::{Need, program_in, run_with, skip};
use serde_json::Value;

use crate::support::BENCH;

/// A program of ours, which finds the kernel that `atoll lab setup` fetched.
fn program(name: &str, home: &Path) -> Command {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".local/share")));
    let mut command = program_in(&Path::new(BENCH).with_file_name(name), home);
    command.envs(data.map(|it| ("XDG_DATA_HOME", it)));
    command
}

fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
#[ignore = "boots two machines, some minutes"]
fn database_systems_miss_where_their_placement_lets_them() {
    let home = tempfile::tempdir().unwrap();
    let mut command = program("atoll-bench", home.path());
    command.args(["dbms", "--reproduce", "kiefer", "--json"]);
    let run = run_with(&mut command, "").json();
    let machines = list(&run, "details");
    assert_eq!(machines.iter().map(|it| &it["nodes"]).collect::<Vec<_>>(), [2, 4]);
    for machine in machines {
        for system in list(machine, "systems") {
            let placed = list(system, "findings").iter().take(3);
            assert_eq!(placed.len(), 3, "{machine}");
            assert!(placed.clone().all(|it| it["verdict"] == "confirms"), "{machine}");
        }
        assert!(machine["texts"].as_u64() > Some(0), "{machine}");
    }
}

#[test]
#[ignore = "boots a machine, a minute"]
fn a_key_value_engine_is_spread_over_eight_nodes() {
    let library = Path::new("/usr/lib/x86_64-linux-gnu/liblmdb.so.0");
    if !library.is_file() {
        return skip(Need::KeyValueEngines, format_args!("{} (liblmdb0)", library.display()));
    }
    let home = tempfile::tempdir().unwrap();
    let mut command = program("atoll-tools", home.path());
    command.args(["lab", "run", "--machine", "symas-8", "--cpus", "1", "--memory", "512MiB"]);
    // A few megabytes are a handful of huge pages, which nothing spreads evenly.
    command.args([
        "--append",
        "transparent_hugepage=never",
        "--count",
        "off",
        "--balancing",
        "off",
    ]);
    command.arg("--with").arg(library).args(["--", BENCH, "kv", "--json", "--engines", "lmdb"]);
    command.args(["--arms", "spread", "--readers", "2", "--records", "100000"]);
    command.args(["--seconds", "0.2", "--load", "sequential"]);
    let run = run_with(&mut command, "").json();
    let results = list(&run["details"], "results");
    assert_eq!(results.len(), 2, "{run}");
    for result in results {
        let nodes = result["answer"]["placement"]["nodes"].as_object();
        let nodes = nodes.unwrap_or_else(|| panic!("nodes in {result}"));
        let bytes: Vec<f64> = nodes.values().filter_map(Value::as_f64).collect();
        let all: f64 = bytes.iter().sum();
        assert_eq!(bytes.len(), 8, "{result}");
        for bytes in bytes {
            assert!((bytes / all - 0.125).abs() <= 0.02, "{result}");
        }
    }
}
