//! `bench placement`: small servers of the shell under every arm, an early clear verdict, what fails names itself,
//! a run that is stopped leaves nothing and goes on; and PostgreSQL under pgbench if it is installed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use atoll_sys::kill_process;
use atoll_testkit::{Need, lasting_address, skip};
use serde_json::Value;

use crate::support::{Ran, bench_in, bench_interrupted};

/// A server that is ready once `up` exists, and removes it when it stops.
const SERVER: &str =
    "trap 'rm -f up; exit 0' TERM; echo $$ > pid; touch up; while :; do sleep 0.02; done";

fn placement(home: &Path, flags: &[&str], server: &str) -> Ran {
    bench_in(home, &arguments(flags, server))
}

fn arguments<'a>(flags: &[&'a str], server: &'a str) -> Vec<&'a str> {
    let ready = ["placement", "--ready", "test -e up"];
    [&ready[..], flags, &["--", "sh", "-c", server]].concat()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

fn arms(report: &Value) -> Vec<&str> {
    let results = list(&report["details"], "results").iter();
    results.map(|it| it["case"]["arm"].as_str().expect("an arm")).collect()
}

#[test]
fn arms_take_turns_until_every_verdict_is_clear() {
    let home = tempfile::tempdir().unwrap();
    let flags = [
        "--load",
        "echo tps = 1; echo tps = 100",
        "--metric",
        r"tps = (\d+)",
        "--arms",
        "interleave,aligned",
        "--repetitions",
        "8",
        "--json",
    ];
    let run = placement(home.path(), &flags, SERVER).json();
    assert_eq!(run["benchmark"], "placement");
    let rounds = [["default", "interleave", "aligned"], ["aligned", "interleave", "default"]];
    assert_eq!(arms(&run)[..6], rounds.concat());
    assert_eq!(arms(&run).len(), 15, "five rounds of eight are enough for equal values");
    for (arm, verdict) in list(&run["details"], "arms").iter().zip(["reference", "same", "same"]) {
        assert_eq!(arm["verdict"], verdict, "{arm}");
        assert_eq!(list(arm, "values"), &vec![Value::from(100.0); 5]);
    }
    let answer = &run["details"]["results"][2]["answer"];
    let placement = &answer["placement"];
    assert!(placement["seen"]["asked"].as_str().unwrap().starts_with("threads on cpus"));
    assert!(placement["processes"].as_u64() >= Some(1), "{placement}");
    assert!(!placement["seen"]["cpus"].as_str().unwrap().is_empty(), "{placement}");
    assert_eq!(list(&run, "measurements").len(), 3);
    assert!(!home.path().join("up").exists(), "the server was stopped by its signal");
}

#[test]
fn tables_and_the_picture_stand_beside_both_papers() {
    let home = tempfile::tempdir().unwrap();
    let flags = [
        "--load",
        "true",
        "--arms",
        "aligned,spread,ahead(1)",
        "--repetitions",
        "1",
        "-o",
        "a.md",
        "-o",
        "a.svg",
    ];
    placement(home.path(), &flags, SERVER).done();
    let text = fs::read_to_string(home.path().join("a.md")).unwrap();
    for part in [
        "seconds of the load; less is better",
        "too few rounds",
        "1.75 at best |",
        "LMDB 0.94",
        "Kiefer 2013, figure 6",
        "## Placement achieved",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let has_one_node = !Path::new("/sys/devices/system/node/node1").exists();
    assert_eq!(text.contains("This machine has one node"), has_one_node, "{text}");
    let picture = fs::read_to_string(home.path().join("a.svg")).unwrap();
    assert!(picture.contains("ratio to default") && picture.contains("aligned"), "{picture}");
}

#[test]
fn what_fails_names_itself_and_the_other_arms_go_on() {
    let home = tempfile::tempdir().unwrap();
    let second = format!(
        "echo x >> starts; if [ $(wc -l < starts) = 2 ]; then echo the port is taken >&2; exit 3; fi; {SERVER}"
    );
    let flags = ["--arms", "local,aligned", "--repetitions", "2", "--json"];
    let with = |more: &[&'static str]| [&flags[..], more].concat();
    let ran = placement(home.path(), &with(&["--load", "true"]), &second);
    let report: Value = serde_json::from_str(&ran.out).expect("a report");
    assert_eq!(arms(&report), ["default", "local", "aligned", "aligned", "default"]);
    let said = ran.failed(1);
    assert!(said.contains("round 1, local: the server ended with exit status: 3"), "{said}");
    assert!(said.contains("the port is taken"), "{said}");
    for (more, server, message) in [
        (&["--load", "echo no such table >&2; exit 7"][..], SERVER, "no such table"),
        (&["--load", "true", "--metric", "tps = (.*)"][..], SERVER, "--metric matches nothing"),
        (&["--load", "sleep 600", "--timeout", "0.1"][..], SERVER, "more than 0.1 s (--timeout)"),
        (&["--load", "true", "--ready-timeout", "0.1"][..], "sleep 600", "not ready within 0.1 s"),
        (&["--load", "true"][..], "exit 0", "before it was ready"),
        (&["--load", "sleep 600"][..], "touch up; sleep 0.5", "under the load"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let said = placement(home.path(), &with(more), server).failed(1);
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn a_run_that_is_stopped_leaves_nothing_and_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path();
    fs::write(path.join("hang"), "").unwrap();
    let load = "echo x >> loads; if [ -e hang ] && [ $(wc -l < loads) -gt 2 ]; then sleep 600; fi";
    let flags = ["--load", load, "--arms", "aligned", "--repetitions", "2", "--results", "kept"];
    let stopped = bench_interrupted(path, &arguments(&flags, SERVER), "round 1, aligned:");
    assert!(stopped.out.contains("What placement is worth"), "the report comes: {stopped:?}");
    let said = stopped.failed(130);
    assert!(said.contains("--results kept --resume goes on"), "{said}");
    assert_eq!(fs::read_dir(path.join("tmp")).unwrap().count(), 0, "no temporary file stays");
    let pid = fs::read_to_string(path.join("pid")).unwrap().trim().parse::<i32>().unwrap();
    assert!(kill_process(pid, 0).is_err(), "no server stays");
    fs::remove_file(path.join("hang")).unwrap();
    let resumed = placement(path, &[&flags[..], &["--resume", "--json"]].concat(), SERVER);
    assert!(!resumed.err.contains("round 1, aligned:"), "{resumed:?}");
    assert_eq!(arms(&resumed.json()), ["default", "aligned", "aligned", "default"]);
    // More rounds may follow; another load is another run.
    let more = ["--load", load, "--arms", "aligned", "--repetitions", "3", "--results", "kept"];
    let run = placement(path, &[&more[..], &["--resume", "--json"]].concat(), SERVER).json();
    assert_eq!(arms(&run).len(), 6);
    let other = ["--load", "true", "--arms", "aligned", "--results", "kept", "--resume"];
    let said = placement(path, &other, SERVER).failed(125);
    assert!(said.contains("other load"), "{said}");
}

#[test]
fn flags_are_checked_before_anything_starts() {
    let home = tempfile::tempdir().unwrap();
    for (flags, message) in [
        (&["--load", "true", "--metric", "tps"][..], "0 groups"),
        (&["--load", "true", "--arms", "replicate"][..], "one copy of its data"),
        (&["--load", "true", "--arms", "nowhere"][..], "nowhere"),
        (&["--load", "true", "--resume"][..], "--results"),
        (&["--metric", "(a)"][..], "--load"),
    ] {
        let said = placement(home.path(), flags, "touch started").failed(2);
        assert!(said.contains(message), "{said}");
    }
    let said = bench_in(home.path(), &["placement", "--load", "true"]).failed(2);
    assert!(said.contains("CMD"), "{said}");
    assert!(!home.path().join("started").exists());
}

/// The newest PostgreSQL of Debian, and the words that start its programs, never as root.
fn postgresql() -> Option<(PathBuf, Vec<&'static str>)> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folder = versions.map(|it| it.path().join("bin")).find(|it| it.join("pgbench").exists())?;
    let is_root = fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
    let user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"];
    Some((folder, if is_root { user.to_vec() } else { Vec::new() }))
}

#[test]
fn postgresql_runs_under_arms_with_the_load_of_pgbench() {
    let Some((folder, user)) = postgresql() else {
        return skip(Need::Postgresql, "no PostgreSQL in /usr/lib/postgresql");
    };
    let home = tempfile::Builder::new().prefix("atoll").tempdir_in("/tmp").unwrap();
    let path = home.path();
    if !user.is_empty() {
        assert!(Command::new("chown").arg("postgres").arg(path).status().unwrap().success());
    }
    let program = |name: &str| folder.join(name).display().to_string();
    let data = path.join("data").display().to_string();
    let initdb = program("initdb");
    let words = [&user[..], &[&initdb, "-A", "trust", "-U", "postgres", "-D", &data]].concat();
    let made = Command::new(words[0]).args(&words[1..]).current_dir("/").output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let port = lasting_address().port();
    let client = format!("-h {} -p {port} -U postgres", path.display());
    let ready = format!("{} {client}", program("pg_isready"));
    let pgbench = program("pgbench");
    let load =
        format!("{pgbench} {client} -i -q postgres && {pgbench} {client} -S -t 20 -c 2 postgres");
    let (postgres, port) = (program("postgres"), port.to_string());
    let socket = path.display().to_string();
    let flags = [
        "placement",
        "--ready",
        &ready,
        "--load",
        &load,
        "--metric",
        "tps = ([0-9.]+)",
        "--arms",
        "aligned",
        "--repetitions",
        "1",
        "--json",
        "--",
    ];
    let server = [postgres.as_str(), "-D", &data, "-k", &socket, "-p", &port, "-h", ""];
    let words = [&flags[..], &user, &server].concat();
    let run = bench_in(path, &words).json();
    let arms = list(&run["details"], "arms");
    assert_eq!(arms.len(), 2);
    for arm in arms {
        assert!(arm["values"][0].as_f64() > Some(0.0), "{arm}");
    }
    let placement = &run["details"]["results"][0]["answer"]["placement"];
    assert!(placement["processes"].as_u64() > Some(3), "the children are seen: {placement}");
    assert!(!path.join("data/postmaster.pid").exists(), "the server was shut down");
}
