//! A sandbox that refuses the calls for placement: `topo check` names them, `topo measure` does not end as
//! if all was well.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use atoll_testkit::{Need, skip};
use serde_json::Value;
use tempfile::TempDir;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
/// Numbers of calls on x86-64.
const MBIND: u32 = 237;
const SET_MEMPOLICY: u32 = 238;
const MOVE_PAGES: u32 = 279;
const SCHED_SETAFFINITY: u32 = 203;

/// Runs the binary under a filter that a small C program installs.
struct Sandbox {
    directory: TempDir,
}

impl Sandbox {
    /// Reports a skip and returns None if it cannot be compiled or the kernel has no filters.
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let source = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets the directory");
        let source = Path::new(&source).join("tests/seccomp/refuse.c");
        let sandbox = Self { directory };
        let mut compiler = Command::new("cc");
        compiler.arg(source).arg("-o").arg(sandbox.program());
        match compiler.output() {
            Ok(output) => assert!(output.status.success(), "{}", text(&output.stderr)),
            Err(error) => {
                skip(Need::Compiler, error);
                return None;
            }
        }
        let tried = sandbox.command(EPERM, &[MBIND], Path::new("/bin/true")).output();
        if tried.expect("it was compiled").status.success() {
            return Some(sandbox);
        }
        skip(Need::Permission, "no seccomp filter can be installed");
        None
    }

    fn program(&self) -> PathBuf {
        self.directory.path().join("refuse")
    }

    fn command(&self, errno: u32, calls: &[u32], program: &Path) -> Command {
        let calls: Vec<String> = calls.iter().map(u32::to_string).collect();
        let mut command = Command::new(self.program());
        command.arg(errno.to_string()).arg(calls.join(",")).arg(program);
        command.env("HOME", self.directory.path()).env_remove("XDG_DATA_HOME");
        command.env_remove("ATOLL_DATA").env_remove("HWLOC_XMLFILE").stdin(Stdio::null());
        command
    }

    fn topo(&self, errno: u32, calls: &[u32], arguments: &[&str]) -> Output {
        let mut command = self.command(errno, calls, Path::new(env!("CARGO_BIN_EXE_atoll-tools")));
        command.arg("topo").args(arguments).output().expect("the binary starts")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The finding about refused calls.
fn found(output: &Output) -> Option<Value> {
    let findings: Value = serde_json::from_slice(&output.stdout).expect("a JSON document");
    let mut findings = findings.as_array().expect("a list").iter();
    findings.find(|finding| finding["name"] == "calls_refused").cloned()
}

#[test]
fn check_names_the_calls_that_a_filter_refuses_and_their_errors() {
    let Some(sandbox) = Sandbox::new() else { return };
    let calls = [MBIND, SET_MEMPOLICY, MOVE_PAGES];
    for (errno, name, advice) in [(EPERM, "EPERM", "SYS_NICE"), (ENOSYS, "ENOSYS", "CONFIG_NUMA")] {
        let output = sandbox.topo(errno, &calls, &["check", "--json"]);
        let finding = found(&output).expect("a finding");
        assert_eq!(finding["what"], "This process is refused mbind, set_mempolicy, move_pages");
        let mut read = finding["read"].as_array().expect("a list").clone();
        let filter = read.pop().expect("the status of the process");
        assert_eq!(filter["value"], "Seccomp: 2");
        assert!(read.iter().all(|read| read["value"] == name), "{read:?}");
        assert!(finding["advice"].as_str().expect("a text").contains(advice), "{finding}");
    }
    let output = sandbox.topo(EPERM, &[SCHED_SETAFFINITY], &["check", "--json"]);
    assert_eq!(
        found(&output).expect("a finding")["what"],
        "This process is refused sched_setaffinity"
    );
    // A number that no call has.
    let output = sandbox.topo(EPERM, &[9999], &["check", "--json"]);
    assert_eq!(found(&output), None);
}

#[test]
fn measuring_nothing_is_not_success_and_says_why() {
    let Some(sandbox) = Sandbox::new() else { return };
    let measure = ["measure", "--quick", "--no-save", "--parts", "latency", "--buffer", "1M"];
    let output = sandbox.topo(EPERM, &[SCHED_SETAFFINITY], &measure);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(4), "{out}{err}");
    assert!(out.starts_with("Notes\n") && out.contains("sched_setaffinity was refused"), "{out}");
    assert!(err.contains("nothing was measured") && err.contains("topo check"), "{err}");
    let output = sandbox.topo(EPERM, &[SCHED_SETAFFINITY], &[&measure[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(4));
    let document: Value = serde_json::from_slice(&output.stdout).expect("a JSON document");
    assert_eq!(document["facts"], serde_json::json!([]));
}

#[test]
fn threads_that_may_not_be_bound_end_an_elastic_run_with_what_to_do_and_nothing_is_left() {
    let cores = atoll_topology::Machine::discover().expect("this machine").cores.len();
    if cores < 2 {
        return skip(Need::Permission, "two cores that may be used");
    }
    let Some(sandbox) = Sandbox::new() else { return };
    let mut idle = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat");
    let journals = sandbox.directory.path().join("journals");
    let tools = Path::new(env!("CARGO_BIN_EXE_atoll-tools"));
    let mut command = sandbox.command(EPERM, &[SCHED_SETAFFINITY], tools);
    command.args(["elastic", "attach", "--actuator", "affinity", "--pid", &idle.id().to_string()]);
    let output = command.arg("--journal").arg(&journals).output().expect("the binary starts");
    drop(idle.stdin.take());
    idle.wait().expect("it ends with its input");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("may not be bound") && said.contains("CAP_SYS_NICE"), "{said}");
    assert_eq!(std::fs::read_dir(&journals).expect("the journals").count(), 0);
}
