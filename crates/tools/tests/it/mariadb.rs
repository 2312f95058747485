//! MariaDB under a client load, attached while it runs: it is followed from one core to two and back, its pool of
//! threads with it, and all is as it was in the end. Skipped if MariaDB is not installed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use atoll_sys::{kill_process, signal};
use atoll_testkit::{Need, skip};

/// How long a load may take to be followed: long, because other tests run at the same time.
const PATIENCE: Duration = Duration::from_secs(90);

/// A process that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server over a new directory, without passwords, with a pool of two threads.
fn server(directory: &Path) -> Option<Running> {
    let data = format!("--datadir={}", directory.join("data").display());
    let user = if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        vec!["--user=root"]
    } else {
        Vec::new()
    };
    let mut install = Command::new("mariadb-install-db");
    install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
    let made = install.arg(&data).args(&user).stdin(Stdio::null()).output().ok()?;
    if !made.status.success() {
        return None;
    }
    let program = ["mariadbd", "/usr/sbin/mariadbd"].into_iter().find(|program| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    })?;
    let mut command = Command::new(program);
    command.args(["--no-defaults", "--skip-networking", "--skip-grant-tables", &data]).args(user);
    command.args(["--thread-handling=pool-of-threads", "--thread-pool-size=2"]);
    command.arg(format!("--socket={}", socket(directory)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Running(command.spawn().ok()?);
    wait("the server answers", || threads(directory).is_some());
    Some(server)
}

fn socket(directory: &Path) -> String {
    directory.join("socket").display().to_string()
}

/// The size of its pool of threads; none while it does not answer.
fn threads(directory: &Path) -> Option<u32> {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--batch", "--skip-column-names"]);
    client.arg(format!("--socket={}", socket(directory)));
    let output = client.args(["-e", "SELECT @@GLOBAL.thread_pool_size"]).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

fn cpus_of(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the server runs");
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = line.expect("the kernel lists the cpus of a process");
    atoll_topology::CpuSet::parse(list.trim()).expect("a list of cpus").len()
}

#[track_caller]
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        // A busy wait would take the cpu that the server is to be given.
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// Clients that ask until they are ended.
fn load(directory: &Path) -> Running {
    let mut slap = Command::new("mariadb-slap");
    slap.args(["--no-defaults", "--auto-generate-sql", "--auto-generate-sql-load-type=read"]);
    slap.args(["--auto-generate-sql-write-number=1000", "--concurrency=8"]);
    slap.arg("--number-of-queries=1000000000").arg(format!("--socket={}", socket(directory)));
    slap.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Running(slap.spawn().expect("the load starts"))
}

#[test]
fn a_server_is_followed_to_two_cores_and_back_and_its_pool_of_threads_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let has_load = Command::new("mariadb-slap").arg("--version").output().is_ok();
    let Some(server) = Some(directory.path()).filter(|_| has_load).and_then(server) else {
        return skip(Need::Mariadb, "no mariadbd, mariadb-install-db or mariadb-slap");
    };
    let pid = server.0.id();
    let cpus = cpus_of(pid);
    if cpus < 2 {
        return skip(Need::Mariadb, "one cpu");
    }
    let journals = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll-tools"));
    command.args(["elastic", "attach", "--pid", &pid.to_string(), "--actuator", "affinity"]);
    command.args(["--cores-max", "2", "--for", "600", "--journal"]);
    command.arg(journals.path().join("journals"));
    command
        .arg("--dbms")
        .arg(format!("mariadb:--no-defaults --socket={}", socket(directory.path())));
    let mut run = Running(command.stdin(Stdio::null()).spawn().expect("the binary starts"));

    let has =
        |cores: usize| cpus_of(pid) == cores && threads(directory.path()) == Some(cores as u32);
    wait("an idle server has one core", || has(1));
    let clients = load(directory.path());
    wait("a loaded server has two cores", || has(2));
    drop(clients);
    wait("it is idle again", || has(1));

    kill_process(run.0.id() as i32, signal::TERM).expect("the run goes on until it is ended");
    assert!(run.0.wait().expect("it ends").success());
    assert_eq!((cpus_of(pid), threads(directory.path())), (cpus, Some(2)));
}
