//! PostgreSQL under pgbench, started by `run`, looked at by `where`, and both held against what /proc
//! says, read here by other means. Skipped if PostgreSQL is not installed or may not
//! be started.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use atoll_sys::{kill_process, signal};
use atoll_testkit::{Need, skip};
use serde_json::Value;

use crate::support::tools;

/// PostgreSQL's programs, and the user they run as: never root.
struct Programs {
    folder: PathBuf,
    user: Option<&'static str>,
}

impl Programs {
    fn find() -> Option<Self> {
        let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
        let folders = versions.flatten().map(|version| version.path().join("bin"));
        let has_all = |folder: &PathBuf| {
            ["initdb", "postgres", "pgbench", "psql"]
                .iter()
                .all(|program| folder.join(program).exists())
        };
        let folder = folders.filter(has_all).max()?;
        let is_root = text(&Command::new("id").arg("-u").output().ok()?) == "0";
        let user = if is_root { Some("postgres") } else { None };
        Some(Self { folder, user })
    }

    /// A program with the words that make it run as the user.
    fn words(&self, program: &str) -> Vec<String> {
        let program = self.folder.join(program).display().to_string();
        let switch = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"];
        let switch = self.user.iter().flat_map(|_| switch.map(str::to_owned));
        switch.chain([program]).collect()
    }

    fn command(&self, program: &str) -> Command {
        let words = self.words(program);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A cluster in its own directory, on a Unix socket there.
fn cluster(programs: &Programs) -> Option<tempfile::TempDir> {
    let directory = tempfile::tempdir().ok()?;
    if let Some(user) = programs.user {
        let owned = Command::new("chown").arg(user).arg(directory.path()).status().ok()?;
        if !owned.success() {
            return None;
        }
    }
    let data = directory.path().join("data");
    let mut initdb = programs.command("initdb");
    let made = initdb.args(["-A", "trust", "-U", "atoll", "-N", "-D"]).arg(data).output().ok()?;
    made.status.success().then_some(directory)
}

/// The server under `atoll run`; killed when dropped.
struct Server {
    run: Child,
    pid: i32,
}

impl Server {
    fn start(programs: &Programs, directory: &Path, report: &Path) -> Self {
        let place = directory.display().to_string();
        let data = directory.join("data").display().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-tools"));
        command.args(["run", "-N", "0", "-m", "0", "--json"]);
        command.arg(format!("--report={}", report.display())).arg("--");
        command.args(programs.words("postgres"));
        command.args(["-D", &data, "-k", &place, "-c", "listen_addresses=", "-c", "fsync=off"]);
        command.args(["-c", "shared_buffers=64MB", "-c", "huge_pages=off", "-c", "autovacuum=off"]);
        // Workers would read for the sessions, and end.
        command.args(["-c", "max_parallel_workers_per_gather=0"]);
        let mut run =
            command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("atoll run starts");
        let mut log = BufReader::new(run.stderr.take().expect("stderr is piped"));
        let mut line = String::new();
        while !line.contains("ready to accept connections") {
            line.clear();
            let read = log.read_line(&mut line).expect("the server's log");
            assert!(read > 0, "the server ended before it was ready");
        }
        // Its log is drained, because a full pipe would stop it.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let pid = fs::read_to_string(directory.join("data/postmaster.pid")).expect("a pid file");
        let pid = pid.lines().next().and_then(|pid| pid.parse().ok()).expect("a pid");
        Self { run, pid }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process(self.pid, signal::QUIT);
        let _ = self.run.wait();
    }
}

fn pgbench(programs: &Programs, directory: &Path, flags: &[&str]) {
    let mut command = programs.command("pgbench");
    command.arg("-h").arg(directory).args(["-U", "atoll"]).args(flags).arg("postgres");
    let output = command.output().expect("pgbench starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A session that has read a table and stays, idle, until it is dropped.
struct Session(Child);

impl Session {
    fn that_read(programs: &Programs, directory: &Path, query: &str) -> Self {
        let mut command = programs.command("psql");
        command.arg("-h").arg(directory).args(["-U", "atoll", "-XqAt", "-d", "postgres"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut session = command.spawn().expect("psql starts");
        let mut input = session.stdin.as_ref().expect("stdin is piped");
        writeln!(input, "{query};").expect("psql reads");
        let mut answer = String::new();
        let output = session.stdout.take().expect("stdout is piped");
        BufReader::new(output).read_line(&mut answer).expect("psql answers");
        assert!(!answer.trim().is_empty(), "{query}");
        Self(session)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn whereabouts(pid: i32, flags: &[&str]) -> Value {
    tools(&[&["where", &pid.to_string(), "--json", "--over", "0.1"], flags].concat()).json()
}

/// Bytes of a process on each node by `numa_maps`, summed without any of Atoll's code.
fn resident(pid: i32) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{pid}/numa_maps")).expect("numa_maps");
    maps.lines().map(mapping_bytes).sum()
}

fn mapping_bytes(line: &str) -> u64 {
    let number = |word: &str| word.split_once('=').and_then(|(_, n)| n.parse::<u64>().ok());
    let words = || line.split_whitespace();
    let page = words().find(|word| word.starts_with("kernelpagesize_kB=")).and_then(number);
    let on_node =
        |word: &&str| word.starts_with('N') && word[1..].starts_with(|c: char| c.is_ascii_digit());
    let pages: u64 = words().filter(on_node).filter_map(number).sum();
    pages * page.unwrap_or(0) * 1024
}

fn children(pid: i32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("the kernel lists children");
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Bytes of the shared buffers that these processes have mapped: the kernel divides each page by its
/// users (`Pss`), so the sum counts it once.
fn shared(pids: &[i32]) -> u64 {
    let of = |pid: &i32| {
        let smaps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
        let (mut is_shared, mut kib) = (false, 0);
        for line in smaps.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[0] {
                "Pss:" if is_shared => kib += words[1].parse::<u64>().unwrap_or(0),
                word if !word.ends_with(':') => is_shared = words.contains(&"/dev/zero"),
                _ => {}
            }
        }
        kib << 10
    };
    pids.iter().map(of).sum()
}

#[test]
fn a_database_lives_where_run_put_it_and_where_agrees_with_the_kernel() {
    let Some(programs) = Programs::find() else {
        return skip(Need::Postgresql, "/usr/lib/postgresql/*/bin has no pgbench");
    };
    let Some(directory) = cluster(&programs) else {
        return skip(Need::Postgresql, "initdb cannot make a cluster");
    };
    let reports = tempfile::tempdir().unwrap();
    let report = reports.path().join("report.json");
    let mut server = Server::start(&programs, directory.path(), &report);
    pgbench(&programs, directory.path(), &["-i", "-q", "-s", "2"]);
    pgbench(&programs, directory.path(), &["-c", "2", "-T", "2"]);
    agrees_with_the_kernel(server.pid);

    the_family_agrees_with_the_kernel(&programs, directory.path(), server.pid);

    kill_process(server.pid, signal::INT).unwrap();
    assert_eq!(server.run.wait().unwrap().code(), Some(0));
    let report: Value = serde_json::from_str(&fs::read_to_string(&report).unwrap()).unwrap();
    let instance = &report["instances"][0];
    assert_eq!(instance["share_on_asked_nodes"], 1.0, "{instance:#}");
    assert_eq!(instance["exit_code"], 0);
}

/// The idle postmaster: nothing moves, so the figures are exactly equal.
fn agrees_with_the_kernel(pid: i32) {
    let (mut before, mut seen) = (resident(pid), whereabouts(pid, &["--exact"]));
    while before != resident(pid) {
        (before, seen) = (resident(pid), whereabouts(pid, &["--exact"]));
    }
    let process = &seen["processes"][0];
    assert_eq!(process["memory"]["resident_bytes"], before, "{process:#}");
    assert_eq!(process["threads_total"], 1);
    assert_eq!(process["threads"][0]["cpus_allowed"], allowed(pid), "{process:#}");
    let policies = process["memory"]["policies"].as_array().unwrap();
    let maps = fs::read_to_string(format!("/proc/{pid}/numa_maps")).unwrap();
    let bound = maps.lines().filter(|line| line.split(' ').nth(1) == Some("bind:0")).count();
    assert!(bound > 0 && bound == maps.lines().count(), "{maps}");
    assert!(policies.iter().all(|policy| policy["policy"] == "bind:0"), "{policies:#?}");
}

fn allowed(pid: i32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap().trim().to_owned()
}

/// All processes of the server together, two of which have read a table each: shared memory counts
/// once, every page that any of them has touched.
fn the_family_agrees_with_the_kernel(programs: &Programs, directory: &Path, postmaster: i32) {
    // A scan of more than a quarter of the buffers would reuse a few of them.
    pgbench(programs, directory, &["-i", "-q", "-s", "1"]);
    let fill = "CREATE TABLE other AS SELECT * FROM pgbench_accounts; SELECT count(*) FROM other";
    drop(Session::that_read(programs, directory, fill));
    let tables = ["pgbench_accounts", "other"];
    let _sessions = tables.map(|table| {
        let query = format!("SELECT sum(abalance), count(filler) FROM {table}");
        Session::that_read(programs, directory, &query)
    });
    let family = || [vec![postmaster], children(postmaster)].concat();
    let look = || (shared(&family()), whereabouts(postmaster, &["--children", "--exact"]));
    let (mut mapped, mut seen) = look();
    while mapped != shared(&family()) {
        (mapped, seen) = look();
    }
    assert_eq!(seen["processes"].as_array().unwrap().len(), family().len(), "{seen:#}");
    let is_shared = |kind: &&Value| kind["kind"] == "shared_anonymous";
    let kind = seen["memory"].as_array().unwrap().iter().find(is_shared).unwrap();
    let bytes = kind["bytes"].as_u64().unwrap();
    // The kernel rounds each process's share down to whole KiB.
    let slack = (family().len() as u64) << 12;
    assert!(bytes.abs_diff(mapped) <= slack && bytes > 1 << 20, "{bytes} and {mapped}: {seen:#}");
    assert_eq!(seen["union"]["method"], "exact", "{seen:#}");
    let parts = seen["processes"].as_array().unwrap().iter().map(part);
    let largest = parts.max().unwrap();
    assert!(bytes > largest + largest / 2, "{bytes} together, {largest} of one: {seen:#}");
    assert_eq!(kind["by_node"].as_array().unwrap().len(), 1, "{kind:#}");
    assert_eq!(kind["by_node"][0]["node"], 0, "{kind:#}");
}

/// Bytes that one process has of anonymous shared memory.
fn part(process: &Value) -> u64 {
    let kinds = process["memory"]["kinds"].as_array().unwrap().iter();
    let shared = kinds.filter(|kind| kind["kind"] == "shared_anonymous");
    shared.map(|kind| kind["bytes"].as_u64().unwrap()).sum()
}

/// `atoll elastic attach` to the server, with its threads.
fn attach(server: &Server, directory: &Path, journals: &Path) -> Child {
    let dbms = format!("postgres:host={} user=atoll dbname=postgres", directory.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-tools"));
    command.args(["elastic", "attach", "--pid", &server.pid.to_string(), "--dbms", &dbms]);
    command.args(["--cores-max", "1", "--actuator", "affinity", "--for", "120", "--journal"]);
    command.arg(journals).stdin(Stdio::null()).spawn().expect("the binary starts")
}

#[test]
fn parallel_workers_follow_the_cores_and_are_what_they_were_however_a_run_ends() {
    let Some(programs) = Programs::find() else {
        return skip(Need::Postgresql, "/usr/lib/postgresql/*/bin has no pgbench");
    };
    let Some(directory) = cluster(&programs) else {
        return skip(Need::Postgresql, "initdb cannot make a cluster");
    };
    if Command::new("psql").arg("--version").output().is_err() {
        return skip(Need::Postgresql, "no psql in PATH");
    }
    let home = tempfile::tempdir().unwrap();
    let (report, journals) = (home.path().join("report.json"), home.path().join("journals"));
    let server = Server::start(&programs, directory.path(), &report);
    let set = "ALTER SYSTEM SET max_parallel_workers = 5;\nSELECT 1";
    drop(Session::that_read(&programs, directory.path(), set));
    let settings = || {
        let file = directory.path().join("data/postgresql.auto.conf");
        let text = fs::read_to_string(file).expect("the settings of ALTER SYSTEM");
        let lines = text.lines().filter(|line| line.starts_with("max_parallel_workers"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let before = settings();
    assert_eq!(before, ["max_parallel_workers = '5'"]);
    for ending in [signal::TERM, signal::KILL] {
        let mut run = attach(&server, directory.path(), &journals);
        while settings().len() != 2 {
            assert!(run.try_wait().unwrap().is_none(), "the run goes on");
            std::thread::yield_now();
        }
        assert!(!settings().contains(&before[0]), "{:?}", settings());
        kill_process(run.id() as i32, ending).unwrap();
        run.wait().unwrap();
        if ending == signal::KILL {
            assert_eq!(settings().len(), 2, "nothing was given back");
            let journal = journals.display().to_string();
            let undone = tools(&["elastic", "undo", "--journal", &journal]).done();
            assert!(undone.contains("knobs: 1"), "{undone}");
        }
        assert_eq!(settings(), before);
    }
}
