//! `elastic` on programs that these tests start: a load followed from one core to two and back, and
//! everything given back however a run ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::PoisonError;

use atoll_sys::{kill_process, sched_getaffinity, signal};
use atoll_testkit::{Need, skip};
use atoll_topology::Machine;
use serde_json::Value;

use crate::lab::TURN;
use crate::support::{tools, tools_in};

/// Busy loops of the load: many, so that they fill a cpu also alongside other programs.
const LOOPS: &str = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16";

/// A program that is idle, then busy, then idle again, on request.
struct Load {
    shell: Child,
    orders: ChildStdin,
}

impl Load {
    fn start() -> Self {
        let script = format!(
            "read line; for i in {LOOPS}; do while :; do :; done & pids=\"$pids $!\"; done\n\
             read line; kill $pids; read line"
        );
        let mut shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let orders = shell.stdin.take().expect("stdin is piped");
        Self { shell, orders }
    }

    fn pid(&self) -> u32 {
        self.shell.id()
    }

    fn next(&mut self) {
        self.orders.write_all(b"\n").expect("the load reads its orders");
    }

    fn cpus(&self) -> Vec<u32> {
        sched_getaffinity(self.pid() as i32).expect("it runs")
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // Its loops end with the orders that are left.
        let _ = self.orders.write_all(b"\n\n\n");
        let _ = self.shell.wait();
    }
}

/// A run that is attached to a program.
struct Attached {
    run: Child,
    lines: BufReader<ChildStderr>,
}

impl Attached {
    fn to(pid: u32, journal: &Path, flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-tools"));
        command.args(["elastic", "attach", "--verbose", "--interval", "50", "--dwell-down", "4"]);
        // It ends on its own if it fails.
        command.args(["--for", "120", "--pid", &pid.to_string()]);
        command.arg("--journal").arg(journal).args(flags);
        let mut run =
            command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let lines = BufReader::new(run.stderr.take().expect("stderr is piped"));
        Self { run, lines }
    }

    /// Waits until it says something; the whole line.
    #[track_caller]
    fn says(&mut self, words: &str) -> String {
        let mut said = String::new();
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).expect("its stderr");
            assert!(read > 0, "'{words}' is not in:\n{said}");
            if line.contains(words) {
                return line;
            }
            said.push_str(&line);
        }
    }

    fn send(&self, number: i32) {
        kill_process(self.run.id() as i32, number).expect("it runs");
    }

    fn code(mut self) -> Option<i32> {
        let status = self.run.wait().expect("it ends");
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).expect("its stderr");
        assert!(!rest.contains("warning"), "{rest}");
        status.code()
    }
}

/// Whether this machine has two cores to give; reports a skip otherwise.
fn has_two_cores() -> bool {
    let cores = Machine::discover().expect("this machine").cores.len();
    if cores < 2 {
        skip(Need::Permission, "two cores that may be used");
    }
    cores >= 2
}

/// Whether a cpuset may be created for a process here; reports a skip otherwise.
fn has_cpusets(home: &Path) -> bool {
    let load = Load::start();
    let pid = load.pid().to_string();
    let journal = home.join("probe").display().to_string();
    let flags = ["--actuator", "cpuset", "--for", "1", "--journal", &journal];
    let ran = tools(&[&["elastic", "attach", "--pid", &pid][..], &flags[..]].concat());
    if ran.code != Some(0) {
        skip(Need::Permission, ran.err);
        return false;
    }
    true
}

fn follow(actuator: &str) {
    // Loads and guests keep all cpus busy: a load is visible only if it is alone.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut load = Load::start();
    let before = load.cpus();
    let flags = ["--actuator", actuator, "--cores-max", "2", "--metrics", "0", "--thmax", "30"];
    let mut run = Attached::to(load.pid(), &home.path().join("journals"), &flags);
    let address = run.says("metrics on http://");
    let first = run.says("1 core on cpu");
    assert_eq!(load.cpus().len(), 1, "{first}");
    load.next();
    let more = run.says("2 cores on cpus");
    assert!(more.contains("overloaded for dwell_up observations"), "{more}");
    let page = metrics(&address);
    assert!(page.contains("atoll_elastic_cores{target=\"process"), "{page}");
    load.next();
    run.says("1 core on cpu");
    run.send(signal::TERM);
    assert_eq!(run.code(), Some(0));
    assert_eq!(load.cpus(), before);
}

fn metrics(line: &str) -> String {
    let address = line.trim().split("http://").nth(1).expect("an address");
    let address = address.trim_end_matches("/metrics");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("a request");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("an answer");
    page
}

#[test]
fn a_load_is_followed_from_one_core_to_two_and_back_by_affinity() {
    if has_two_cores() {
        follow("affinity");
    }
}

#[test]
fn a_load_is_followed_from_one_core_to_two_and_back_by_a_cpuset() {
    let home = tempfile::tempdir().expect("a temporary directory");
    if has_two_cores() && has_cpusets(home.path()) {
        follow("cpuset");
    }
}

/// Kills a run, and undoes it.
fn killed(actuator: &str) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let journals = home.path().join("journals");
    let load = Load::start();
    let before = load.cpus();
    let mut run = Attached::to(load.pid(), &journals, &["--actuator", actuator]);
    run.says("1 core on cpu");
    run.send(signal::KILL);
    assert_eq!(run.code(), None);
    assert_eq!(load.cpus().len(), 1, "nothing was given back");
    let journal = journals.display().to_string();
    let status = tools(&["elastic", "status", "--json", "--journal", &journal]).json();
    assert_eq!(status["runs"][0]["state"], "killed", "{status}");
    let dry = tools(&["elastic", "undo", "--dry-run", "--journal", &journal]).done();
    assert!(dry.contains("records would be undone"), "{dry}");
    assert_eq!(load.cpus().len(), 1, "a dry run changes nothing");
    tools(&["elastic", "undo", "--journal", &journal]).done();
    assert_eq!(load.cpus(), before);
    let again = tools(&["elastic", "undo", "--journal", &journal]).done();
    assert_eq!(again, "nothing to undo\n");
}

#[test]
fn undo_gives_back_the_cores_of_a_killed_run() {
    if !has_two_cores() {
        return;
    }
    killed("affinity");
    let home = tempfile::tempdir().expect("a temporary directory");
    if has_cpusets(home.path()) {
        killed("cpuset");
    }
}

#[test]
fn the_next_run_undoes_one_that_was_killed() {
    if !has_two_cores() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let journals = home.path().join("journals");
    let load = Load::start();
    let before = load.cpus();
    let mut run = Attached::to(load.pid(), &journals, &["--actuator", "affinity"]);
    run.says("1 core on cpu");
    run.send(signal::KILL);
    run.code();
    let mut run = Attached::to(load.pid(), &journals, &["--actuator", "affinity"]);
    run.says("was killed; it was undone first");
    run.says("1 core on cpu");
    run.send(signal::TERM);
    run.code();
    assert_eq!(load.cpus(), before);
}

#[test]
fn a_run_ends_with_its_target() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let load = Load::start();
    let mut run = Attached::to(load.pid(), &home.path().join("journals"), &[]);
    run.says("1 core");
    drop(load);
    run.says("the target has ended");
    assert_eq!(run.code(), Some(0));
}

#[test]
fn a_program_is_run_with_its_output_its_code_and_its_trace() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let run = |command: &[&str]| {
        let flags = ["elastic", "run", "--journal", "journals", "--trace", "trace.csv", "--"];
        tools_in(home.path(), &[&flags[..], command].concat())
    };
    let ran =
        run(&["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo out; exit 7"]);
    assert_eq!((ran.out.as_str(), ran.code), ("out\n", Some(7)), "{}", ran.err);
    let trace = std::fs::read_to_string(home.path().join("trace.csv")).expect("a trace");
    assert!(trace.starts_with("at_seconds,target,load_percent,"), "{trace}");
    tools_in(home.path(), &["elastic", "picture", "trace.csv", "-o", "trace.svg"]).done();
    assert!(home.path().join("trace.svg").is_file());
    assert_eq!(run(&["sh", "-c", "kill -KILL $$"]).code, Some(137));
    assert_eq!(run(&["no such program"]).code, Some(127));
    assert_eq!(run(&["/"]).code, Some(126));
}

#[test]
fn a_dry_run_decides_and_changes_nothing() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let load = Load::start();
    let before = load.cpus();
    let mut run = Attached::to(load.pid(), &home.path().join("journals"), &["--dry-run"]);
    run.says("nothing is changed");
    run.says("1 core on cpu");
    assert_eq!(load.cpus(), before);
    run.send(signal::TERM);
    run.code();
    assert!(!home.path().join("journals").exists());
}

#[test]
fn recommendations_have_reasons() {
    let load = Load::start();
    let pid = load.pid().to_string();
    let recommend = ["elastic", "recommend", "--pid", &pid, "--over", "1"];
    let document = tools(&[&recommend[..], &["--json"]].concat()).json();
    assert_eq!(document["cores"], 1, "{document}");
    let monitors = document["monitors"].as_array().expect("monitors");
    let source = |name: &str| {
        let found = monitors.iter().find(|it| it["monitor"] == name).expect("the monitor");
        found["source"].as_str().expect("a source").to_owned()
    };
    assert_eq!((source("cpu load"), source("performance")), ("real".into(), "fallback".into()));
    let text = tools(&recommend).done();
    assert!(text.contains("1 of") && text.contains("below 70 %"), "{text}");
}

#[test]
fn the_net_is_shown_as_text_and_as_a_picture() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let text = tools(&["elastic", "show-net"]).done();
    assert!(text.starts_with("Places\n") && text.contains("thmin < u and u < thmax"), "{text}");
    tools_in(home.path(), &["elastic", "show-net", "-o", "net.svg"]).done();
    assert!(std::fs::read_to_string(home.path().join("net.svg")).unwrap().contains("<svg"));
    let wrong = tools_in(home.path(), &["elastic", "show-net", "-o", "net.gif"]).failed(2);
    assert!(wrong.contains("ends in .svg or .txt"), "{wrong}");
}

#[test]
fn wrong_use_is_refused_with_advice() {
    let home = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(home.path().join("empty.toml"), "target = []").unwrap();
    std::fs::create_dir(home.path().join("open")).unwrap();
    let load = Load::start();
    let pid = load.pid().to_string();
    let attach = |flags: &[&'static str]| [&["elastic", "attach", "--pid", &pid], flags].concat();
    for (arguments, code, words) in [
        (vec!["elastic", "attach", "--pid", "4194999"], 1, "process 4194999 does not exist"),
        (vec!["elastic", "attach"], 2, "--pid"),
        (vec!["elastic", "attach", "--cgroup", "/no/such/group"], 1, "no cgroup.procs in"),
        (attach(&["--thmin", "80", "--dry-run"]), 2, "expected 0 <= thmin < thmax <= 100"),
        (attach(&["--mode", "wide"]), 2, "expected dense, sparse or adaptive"),
        (attach(&["--work", "joy"]), 2, "expected cpu, calls, or command:"),
        (attach(&["--load", "memory", "--dry-run"]), 2, "expected cpu, interconnect, or memory:"),
        (attach(&["--cores-min", "100000", "--dry-run"]), 2, "the cores that may be given"),
        (attach(&["--cpus", "60000", "--dry-run"]), 4, "may run on none of cpus"),
        (attach(&["--journal", "open"]), 125, "others may use it"),
        (attach(&["--journal", "no/such/directory"]), 125, "name a directory"),
        (attach(&["--trace", "trace.gif", "--dry-run"]), 2, "ends in .csv, .jsonl or .svg"),
        (vec!["elastic", "manage", "empty.toml"], 2, "expected at least one [[target]]"),
        (vec!["elastic", "manage", "none.toml"], 125, "none.toml"),
        (vec!["elastic", "picture", "empty.toml", "-o", "x.svg"], 2, "not the header of a trace"),
        (vec!["elastic", "top", "--pid", &pid], 2, "stdout is not a terminal"),
    ] {
        let said = tools_in(home.path(), &arguments).failed(code);
        assert!(said.contains(words), "{arguments:?}\n{said}");
    }
    let shell =
        format!("exec {} elastic attach --pid $$ --dry-run", env!("CARGO_BIN_EXE_atoll-tools"));
    let output = Command::new("sh").args(["-c", &shell]).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("holds this process itself"), "{said}");
}

#[test]
fn two_targets_share_the_machine() {
    if !has_two_cores() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary directory");
    let (a, b) = (Load::start(), Load::start());
    let target = |name, load: &Load| {
        format!("[[target]]\nname = '{name}'\npid = {}\npolicy = {{ cores_max = 1 }}\n", load.pid())
    };
    let file = home.path().join("two.toml");
    std::fs::write(&file, format!("interval_ms = 50\n{}{}", target("a", &a), target("b", &b)))
        .unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_atoll-tools"))
        .args(["elastic", "manage", "--verbose", "--for", "120", "--actuator", "affinity"])
        .arg("--journal")
        .arg(home.path().join("journals"))
        .arg(&file)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let lines = BufReader::new(run.stderr.take().expect("stderr is piped"));
    let mut attached = Attached { run, lines };
    attached.says("a: 1 core on cpu");
    attached.says("b: 1 core on cpu");
    let (on_a, on_b) = (a.cpus(), b.cpus());
    assert!(on_a.iter().all(|cpu| !on_b.contains(cpu)), "{on_a:?} {on_b:?}");
    let journal = home.path().join("journals").display().to_string();
    let status = tools(&["elastic", "status", "--json", "--journal", &journal]).json();
    let states: Vec<&Value> =
        status["runs"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["running", "running"], "{status}");
    attached.send(signal::TERM);
    attached.code();
}
