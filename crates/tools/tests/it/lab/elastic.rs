//! Elastic cores on the machine of the paper (four nodes of four cores) under a real kernel: a scan ends on
//! the node of its data, its remote accesses fall, and what was given is given back.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::PoisonError;

use atoll_testkit::{Need, guests, skip};
use atoll_topology::CpuSet;
use serde_json::Value;

use super::guest::{Printed, TURN, lab, obstacle, scripts};

/// The scan, compiled here; reports a skip and returns None without a compiler.
fn compiled(directory: &std::path::Path) -> Option<PathBuf> {
    let program = directory.join("scan");
    let include = scripts().join("../../../marker/include");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-I"]).arg(include).arg("-o").arg(&program);
    match compiler.arg(scripts().join("scan.c")).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(program)
        }
        Err(error) => {
            skip(Need::Compiler, error);
            None
        }
    }
}

/// Output of the script, and the counts.
fn counted() -> Option<(Printed, Value)> {
    let agent = env!("CARGO_BIN_EXE_atoll-tools");
    let plugin = std::path::Path::new(agent).with_file_name("libatoll_plugin.so");
    let missing = (!plugin.is_file()).then(|| format!("{} is not there", plugin.display()));
    if let Some(obstacle) = obstacle().or(missing) {
        skip(Need::Lab, obstacle);
        return None;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let scan = compiled(home.path())?.display().to_string();
    let record = home.path().join("record.json").display().to_string();
    let scripts = scripts().display().to_string();
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = guests::boot(|| {
        lab(&["run", "--machine", "opteron-8387-4", "--count", "region", "--timeout", "500s"])
            .args(["--balancing", "off", "--report", &record])
            .args(["--with", &scripts, "--with", agent, "--with", &scan])
            .args(["--env", &format!("LAB={scripts}"), "--env", &format!("AGENT={agent}")])
            .args(["--env", &format!("SCAN={scan}")])
            .args(["--", "sh", &format!("{scripts}/elastic.sh")])
            .output()
            .expect("the binary starts")
    });
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
    let record = std::fs::read_to_string(&record).expect("a record");
    Some((Printed::new(out.into_owned()), serde_json::from_str(&record).expect("a JSON document")))
}

/// Lines of the buffer that cpus of other nodes loaded, and all of them.
fn remote(record: &Value, region: u64) -> (u64, u64) {
    let regions = record["report"]["regions"].as_array().expect("regions");
    let region = regions.iter().find(|it| it["number"] == region).expect("the region was counted");
    let tags = region["traffic"]["tags"].as_array().expect("tags");
    let buffer = tags.iter().find(|tag| tag["tag"] == 1).expect("the buffer is tagged");
    let lines: Vec<Vec<u64>> = serde_json::from_value(buffer["lines"].clone()).expect("a matrix");
    let all = lines.iter().flatten().sum();
    let near: u64 = lines.iter().enumerate().map(|(node, row)| row[node]).sum();
    (all - near, all)
}

#[test]
fn a_scan_ends_on_the_node_of_its_data_and_its_remote_accesses_and_migrations_fall() {
    let Some((printed, record)) = counted() else { return };
    let one = |word: &str| {
        let lines = printed.lines(word, 3);
        assert_eq!(lines.len(), 1, "{word}: {lines:?}");
        lines[0].iter().map(|field| (*field).to_owned()).collect::<Vec<_>>()
    };
    let set = |cpus: &str| CpuSet::parse(cpus).expect("a list of cpus");

    // Without and with automatic balancing.
    for (at, balancing) in ["off", "on"].into_iter().enumerate() {
        let of = |word| printed.lines(word, 3).into_iter().nth(at).expect("a line for each");
        let (cpus, moves) = (of("cpus"), of("moves"));
        assert_eq!((cpus[0], moves[0]), (balancing, balancing));
        let cpus = set(cpus[1]);
        assert!(!cpus.is_empty() && cpus.is_subset(&set("8-11")), "it ends on cpus {cpus}");
        let region = 2 * at as u64;
        let (system, elastic) = (remote(&record, region), remote(&record, region + 1));
        assert!(system.1 > 0 && elastic.1 > 0, "{system:?} {elastic:?}");
        assert!(system.0 >= 5 * elastic.0.max(1), "remote accesses {system:?}, then {elastic:?}");
        let [system, elastic] = [1, 2].map(|i: usize| moves[i].parse::<u64>().expect("a count"));
        assert!(system >= 10 * elastic.max(1), "migrations {system}, then {elastic}");
    }

    let followed = one("followed");
    let followed: Vec<u32> = followed.iter().map(|cores| cores.parse().unwrap()).collect();
    assert!(followed[0] >= 3 && followed[1] == 1 && followed[2] >= 3, "{followed:?}");
    assert_eq!(one("dense")[0], "0-2");
    assert_eq!(one("sparse")[0], "0,4,8");
    let undone = one("undone");
    assert_eq!(undone[1], "0-15", "{undone:?}");
    assert_ne!(undone[0], "0-15");
    assert_eq!(one("moved"), ["N2", "N0"]);

    let nodes = |cpus: &CpuSet| cpus.iter().map(|cpu| cpu.0 / 4).collect::<BTreeSet<u32>>();
    let shared: Vec<_> = one("shared").iter().map(|cpus| set(cpus)).collect();
    assert!(nodes(&shared[0]).is_disjoint(&nodes(&shared[1])), "two targets: {shared:?}");
    let alone = set(&one("alone")[0]);
    // Which cores it keeps is up to the mode: it gives one back if others serve better.
    let reached = !nodes(&alone).is_disjoint(&nodes(&shared[0]));
    assert!(alone.len() > shared[1].len() && reached, "{shared:?}, {alone}");
    assert_eq!(one("returned")[0], "0-15");
    assert_eq!(one("groups")[0], "0");
}
