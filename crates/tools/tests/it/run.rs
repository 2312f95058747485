//! `run` on this machine: the kernel's view of started programs, and how they end.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};

use atoll_sys::{kill_process, signal};
use atoll_testkit::{Need, default_signals, skip};
use serde_json::Value;

/// Prints the kernel's settings of the program: affinity, nodes allowed, policy of its first mapping.
const SHOW: &str =
    "grep _allowed_list /proc/self/status; head -1 /proc/self/numa_maps | cut -d' ' -f2";

fn atoll(arguments: &[&str]) -> Command {
    default_signals();
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-tools"));
    command.arg("run").args(arguments).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> Output {
    atoll(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn code(arguments: &[&str]) -> Option<i32> {
    output(arguments).status.code()
}

/// Starts it and waits for its first line of output.
fn started(arguments: &[&str]) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut child = atoll(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    (child, out, line.trim().to_owned())
}

fn is_running(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

#[test]
fn the_programs_exit_code_is_passed_on() {
    assert_eq!(code(&["true"]), Some(0));
    for watched in [&["--"][..], &["--report", "--"], &["--instances", "1", "--"]] {
        let with = |script| code(&[watched, &["sh", "-c", script]].concat());
        assert_eq!(with("exit 7"), Some(7), "{watched:?}");
        assert_eq!(with("exit 255"), Some(255), "{watched:?}");
    }
    assert_eq!(code(&["--report", "sh", "-c", "kill -9 $$"]), Some(128 + 9));
    assert_eq!(output(&["sh", "-c", "kill -9 $$"]).status.signal(), Some(9));
}

#[test]
fn a_program_that_is_not_found_or_cannot_be_run_has_its_own_code() {
    for watched in [&["--"][..], &["--report", "--"], &["--instances", "2", "--"]] {
        let with = |program| code(&[watched, &[program]].concat());
        assert_eq!(with("no-such-program-anywhere"), Some(127), "{watched:?}");
        assert_eq!(with("/proc/self/status"), Some(126), "{watched:?}");
    }
}

#[test]
fn a_dry_run_misses_a_program_that_is_not_there() {
    assert_eq!(code(&["--dry-run", "no-such-program-anywhere"]), Some(127));
    assert_eq!(code(&["--dry-run", "/no/such/program"]), Some(127));
    assert_eq!(code(&["--dry-run", "/bin/sh"]), Some(0));
}

#[test]
fn a_mistyped_flag_is_named_and_a_program_may_begin_with_a_hyphen() {
    for (flags, named) in [(&["--membnd", "0", "true"][..], "--membnd"), (&["--show"], "--show")] {
        let ran = output(flags);
        assert_eq!(ran.status.code(), Some(2), "{flags:?}");
        let said = text(&ran.stderr);
        assert!(said.contains(&format!("unexpected argument '{named}'")), "{flags:?}: {said}");
    }
    let ran = output(&["--", "-foo"]);
    assert_eq!(ran.status.code(), Some(127));
    assert!(text(&ran.stderr).contains("-foo: no such program"), "{}", text(&ran.stderr));
}

#[test]
fn flags_of_the_program_are_its_own() {
    assert_eq!(text(&output(&["-C", "0", "echo", "-N", "0", "--", "-x"]).stdout), "-N 0 -- -x\n");
    assert_eq!(text(&output(&["--", "echo", "-n", "-N0"]).stdout), "-N0");
}

#[test]
fn the_program_has_the_same_affinity_and_policy_as_under_numactl() {
    let flags: &[&[&str]] = &[
        &[],
        &["-N", "0"],
        &["-N0"],
        &["-N0", "-m0"],
        &["-lN0"],
        &["-i0", "-C0"],
        &["-c0"],
        &["--cpubind=0", "--interleave=all"],
        &["-N", "0", "-N", "all"],
        &["-C", "0"],
        &["-C", "+0"],
        &["--physcpubind=all"],
        &["-m", "0"],
        &["--membind=all"],
        &["-i", "0"],
        &["-p", "0"],
        &["-l"],
        &["-N", "0", "-m", "same"],
        &["-C", "!0", "-i", "all"],
    ];
    let rival = "numactl";
    if let Err(error) = Command::new(rival).arg("--show").output() {
        return skip(Need::Numactl, error);
    }
    let one_cpu = atoll_topology::Machine::discover().unwrap().cpus.len() == 1;
    for flags in flags.iter().filter(|flags| !(one_cpu && flags.contains(&"!0"))) {
        let command = ["--", "sh", "-c", SHOW];
        let theirs = Command::new(rival).args(*flags).args(command).output().unwrap();
        let ours = output(&[*flags, &command].concat());
        assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{flags:?} {}", text(&ours.stderr));
    }
}

#[test]
fn an_instance_gets_its_plan() {
    let machine = atoll_topology::Machine::discover().unwrap();
    let node = machine.nodes_with_cpus().next().unwrap();
    let found = output(&["--instances", "nodes", "--", "sh", "-c", SHOW]);
    let out = text(&found.stdout);
    assert!(out.contains(&format!("[0] Cpus_allowed_list:\t{}\n", node.cpus)), "{out}");
    if found.stderr.is_empty() && machine.nodes.len() == 1 {
        assert!(out.contains(&format!("[0] prefer:{}\n", node.id)), "{out}");
    }
}

#[test]
fn without_anything_to_watch_atoll_becomes_the_program() {
    let child = atoll(&["-C", "+0", "--env", "A=b", "sh", "-c", "echo $$ $A"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id();
    let found = child.wait_with_output().unwrap();
    assert_eq!(text(&found.stdout), format!("{pid} b\n"));
}

#[test]
fn all_asks_for_cpus_outside_of_the_affinity_mask_by_node_too() {
    let machine = atoll_topology::Machine::discover().unwrap();
    let node = machine.nodes_with_cpus().next().unwrap();
    let (first, id) = (node.cpus.iter().next().unwrap().to_string(), node.id.to_string());
    let within = |flags: &[&str]| {
        let inner = [&[env!("CARGO_BIN_EXE_atoll-tools"), "run"], flags, &["sh", "-c", SHOW]];
        let found = output(&[&["-C", first.as_str()][..], &inner.concat()].concat());
        text(&found.stdout).lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(within(&["-N", &id]), format!("Cpus_allowed_list:\t{first}"));
    assert_eq!(within(&["-a", "-N", &id]), format!("Cpus_allowed_list:\t{}", node.cpus));
}

#[test]
fn refusals_are_reported_and_left_out_or_prevent_the_start() {
    let within = |flags: &[&str]| {
        let inner = [&[env!("CARGO_BIN_EXE_atoll-tools"), "run"], flags, &["echo", "ran"]];
        output(&[&["-C", "0"][..], &inner.concat()].concat())
    };
    if atoll_topology::Machine::discover().is_ok_and(|machine| machine.cpus.len() > 1) {
        let soft = within(&["-C", "1"]);
        assert_eq!((soft.status.code(), text(&soft.stdout).as_str()), (Some(0), "ran\n"));
        assert!(text(&soft.stderr).contains("cpu 1 is outside the"), "{}", text(&soft.stderr));
        let strict = within(&["--strict", "-C", "1"]);
        assert_eq!((strict.status.code(), strict.stdout.len()), (Some(3), 0));
    }
}

#[test]
fn nodes_and_cpus_that_do_not_exist_start_nothing() {
    for flags in [&["-N1000"][..], &["-m1000"], &["-C", "0,5000"], &["--instances", "2", "-m1000"]]
    {
        let ran = output(&[flags, &["echo", "ran"]].concat());
        assert_eq!((ran.status.code(), ran.stdout.len()), (Some(4), 0), "{flags:?}");
        assert!(text(&ran.stderr).contains("exist"), "{}", text(&ran.stderr));
    }
}

#[test]
fn flags_that_contradict_each_other_or_mean_nothing_are_usage_errors() {
    for (flags, words) in [
        (&["-m", "0", "-i", "0"][..], "'--membind <NODES>' cannot be used with '--interleave"),
        (&["-m", "0", "--placement", "spread"], "cannot be used with '--placement"),
        (&["-m", "same"], "'same'"),
        (&["-m", "netdev:eth0"], "/sys/class/net/DEVICE/device/numa_node"),
        (&["-m", "08"], "leading zero"),
        (&["-p", "0-1"], "--preferred-many"),
        (&["--instances", "0"], "1 to 1024, nodes or domains"),
        (&["--instances", "1000000000"], "1 to 1024, nodes or domains"),
        (&["--grace", "x"], "500ms"),
        (&["--env", "x"], "NAME=VALUE"),
        (&["--placement", "replicate"], "replicate"),
        (&["--placement", "alined"], "did you mean 'aligned'?"),
        (&["--instances", "1", "--env", "A={domain}"], "--instances domains"),
    ] {
        let ran = output(&[flags, &["true"]].concat());
        assert_eq!(ran.status.code(), Some(2), "{flags:?}");
        assert!(text(&ran.stderr).contains(words), "{flags:?}: {}", text(&ran.stderr));
    }
    let ran = output(&["-N", "0"]);
    assert_eq!(ran.status.code(), Some(2), "no program");
    assert!(text(&ran.stderr).contains("<CMD>"), "{}", text(&ran.stderr));
}

#[test]
fn a_dry_run_starts_nothing_and_prints_the_calls() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("touched");
    let file = file.to_str().unwrap();
    let dry = output(&["--dry-run", "-C", "+0", "-l", "--", "touch", file]);
    let out = text(&dry.stdout);
    assert!(out.contains("sched_setaffinity  cpus") && out.contains("local"), "{out}");
    let json = output(&["--dry-run", "--json", "--instances", "3", "-l", "touch", file, "{i}"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["instances"][2]["command"][2], "2");
    assert_eq!(json["instances"][2]["memory"]["mode"], "local");
    assert_eq!(code(&["--dry-run", "--strict", "-m", "1000", "touch", file]), Some(4));
    assert!(!fs::exists(file).unwrap());
}

#[test]
fn each_instance_writes_its_own_log_and_has_its_own_values() {
    let directory = tempfile::tempdir().unwrap();
    let logs = directory.path().join("logs");
    let script = "echo {i}:{node}:$A; echo e{i} >&2";
    let arguments = ["--instances", "3", "--env", "A=x{i}", "--logs", logs.to_str().unwrap()];
    let found = output(&[&arguments[..], &["--", "sh", "-c", script]].concat());
    assert_eq!((found.status.code(), found.stdout.len()), (Some(0), 0));
    let node = atoll_topology::Machine::discover().unwrap().nodes_with_cpus().next().unwrap().id;
    let log = |i: u32| fs::read_to_string(logs.join(format!("{i}.log"))).unwrap();
    assert_eq!(log(0), format!("0:{node}:x0\ne0\n"));
    assert!(log(2).starts_with("2:") && log(2).ends_with(":x2\ne2\n"), "{}", log(2));
    assert_eq!(code(&["--logs", "/proc/self/status/x", "true"]), Some(125));
}

#[test]
fn output_without_logs_passes_through_marked_by_instance() {
    let found = output(&["--instances", "2", "sh", "-c", "echo out; printf err >&2"]);
    let mut lines: Vec<String> = text(&found.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["[0] out", "[1] out"]);
    assert!(text(&found.stderr).contains("[1] err\n"), "{}", text(&found.stderr));
}

#[test]
fn the_failure_of_one_instance_stops_all_and_is_the_exit_code() {
    let script = "[ {i} = 1 ] && exit 5; echo $$; exec sleep 1000";
    let found = output(&["--instances", "3", "--", "sh", "-c", script]);
    assert_eq!(found.status.code(), Some(5));
    assert!(text(&found.stderr).contains("instance 1 failed (code 5)"));
    for line in text(&found.stdout).lines() {
        let pid = line.split(' ').next_back().unwrap().parse().unwrap();
        assert!(!is_running(pid), "{line}");
    }
}

#[test]
fn a_signal_stops_all_instances_and_kills_those_that_do_not_end() {
    let script = "trap '' TERM; echo $$; while :; do sleep 1000; done";
    for (number, expected) in [(signal::TERM, 143), (signal::INT, 130)] {
        let arguments = ["--instances", "2", "--grace", "100ms", "--", "sh", "-c", script];
        let (mut child, mut out, first) = started(&arguments);
        let mut second = String::new();
        out.read_line(&mut second).unwrap();
        kill_process(child.id() as i32, number).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(expected));
        for line in [first.as_str(), second.trim()] {
            let pid = line.split(' ').next_back().unwrap().parse().unwrap();
            assert!(!is_running(pid), "{line}");
        }
    }
}

#[test]
fn a_signal_that_the_parent_ignored_stays_ignored() {
    let run = [env!("CARGO_BIN_EXE_atoll-tools"), "run", "--instances", "1", "--grace", "100ms"];
    let script = format!("trap '' INT; exec {} sh -c 'echo ready; exec sleep 1000'", run.join(" "));
    let mut shell = Command::new("sh");
    let mut child = shell.args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "[0] ready\n");
    kill_process(child.id() as i32, signal::INT).unwrap();
    kill_process(child.id() as i32, signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143), "the second signal ended it");
}

#[test]
fn signals_reach_a_watched_program_which_decides_how_it_ends() {
    for (number, name) in [(signal::TERM, "TERM"), (signal::USR1, "USR1"), (signal::HUP, "HUP")] {
        let script = format!("trap 'exit 3' {name}; echo ready; while :; do sleep 0.02; done");
        let (mut child, _out, line) = started(&["--report", "--", "sh", "-c", &script]);
        assert_eq!(line, "ready");
        kill_process(child.id() as i32, number).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3), "{name}");
    }
}

#[test]
fn a_program_does_not_outlive_a_killed_atoll() {
    for flags in [&["--report"][..], &["--instances", "2", "--logs"]] {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        let fifo = fifo.to_str().unwrap();
        assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
        let logs = directory.path().to_str().unwrap();
        let logs = if flags.contains(&"--logs") { vec![logs] } else { Vec::new() };
        let script = "exec >\"$0\"; echo ready; exec sleep 1000";
        let mut child =
            atoll(&[flags, &logs, &["--", "sh", "-c", script, fifo]].concat()).spawn().unwrap();
        let mut out = BufReader::new(fs::File::open(fifo).unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        kill_process(child.id() as i32, signal::KILL).unwrap();
        child.wait().unwrap();
        // Ends when the last program that has the pipe open has ended.
        out.read_to_end(&mut Vec::new()).unwrap();
    }
}

#[test]
fn a_report_shows_the_placement_achieved() {
    let script = "x=$(head -c 8000000 /dev/zero | tr '\\0' a); sleep 0.7; exit 4";
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let to = format!("--report={}", file.display());
    let found = output(&["--json", &to, "-C", "+0", "-m", "all", "--", "sh", "-c", script]);
    assert_eq!(found.status.code(), Some(4), "{}", text(&found.stderr));
    let report: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let instance = &report["instances"][0];
    assert_eq!(instance["exit_code"], 4);
    assert!(instance["faults_minor"].as_u64().unwrap() > 1000, "{report:#}");
    if instance["samples"].as_u64().unwrap() == 0 || !found.stderr.is_empty() {
        return skip(Need::Permission, "no numa_maps, or the policy was refused");
    }
    let bytes: u64 = instance["pages_peak"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["bytes"].as_u64().unwrap())
        .sum();
    assert!((8_000_000..200_000_000).contains(&bytes), "{report:#}");
    assert_eq!(instance["share_on_asked_nodes"], 1.0);
    let asked = instance["asked"]["memory"]["nodes"].as_str().unwrap();
    assert!(instance["policies_last"].get(format!("bind:{asked}")).is_some(), "{report:#}");
    assert_eq!(instance["cpus_last"], instance["asked"]["cpus"]);
}
