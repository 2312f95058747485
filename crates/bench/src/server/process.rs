//! The servers that are measured, each a process on its own port.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use atoll_sys::{kill_process, signal};

use crate::programs::atoll_command;
use crate::trials::RunStop;

/// Where Debian keeps PostgreSQL's programs, by version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, stopped when dropped.
pub(super) struct DatabaseServer {
    child: Child,
    pub(super) name: &'static str,
    pub(super) user: &'static str,
    pub(super) database: &'static str,
    pub(super) address: SocketAddr,
    /// Address for clients of Arrow Flight SQL.
    pub(super) flight: Option<SocketAddr>,
    /// The signal that stops it.
    stop: i32,
    /// Its files.
    _directory: tempfile::TempDir,
}

impl DatabaseServer {
    /// `atoll serve` over a new directory.
    pub(super) fn atoll(
        directory: tempfile::TempDir,
        threads: usize,
        stop: &RunStop,
    ) -> Result<Self> {
        let mut command = atoll_command()?;
        command.args(["serve", "--insecure-no-password", "--listen", "127.0.0.1:0"]);
        command.args(["--flight", "127.0.0.1:0", "--threads"]).arg(threads.to_string());
        command.arg("--data").arg(directory.path().join("data"));
        let (child, said) = start(command, FLIGHT_AT, stop)?;
        let address = address_after(&said, "listening on ")?;
        let flight = Some(address_after(&said, FLIGHT_AT)?);
        let (name, user, database, stop) = ("atoll", "atoll", "atoll", signal::TERM);
        Ok(Self { child, name, user, database, address, flight, stop, _directory: directory })
    }

    /// PostgreSQL over a new cluster, as it is installed but for the size of its buffers; never as root.
    pub(super) fn postgresql(
        programs: &PostgresPrograms,
        directory: tempfile::TempDir,
        stop: &RunStop,
    ) -> Result<Self> {
        let place = directory.path();
        if programs.user.is_some() {
            let owned = Command::new("chown").arg("postgres").arg(place).status();
            ensure!(owned.is_ok_and(|it| it.success()), "chown of {} failed", place.display());
        }
        let data = place.join("data");
        let mut initdb = programs.command("initdb");
        initdb.args(["-A", "trust", "-U", "postgres", "-D"]).arg(&data).stdin(Stdio::null());
        let made = initdb.output().context("initdb does not start")?;
        ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr).trim());
        // Free at this moment; PostgreSQL cannot choose one itself.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = programs.command("postgres");
        command.arg("-D").arg(&data).arg("-k").arg(place);
        for setting in [
            "listen_addresses=127.0.0.1",
            &format!("port={}", address.port()),
            "max_connections=1200",
            "shared_buffers=1GB",
        ] {
            command.args(["-c", setting]);
        }
        let (child, _) = start(command, "ready to accept connections", stop)?;
        let (name, user, database, stop) = ("postgresql", "postgres", "postgres", signal::INT);
        let flight = None;
        Ok(Self { child, name, user, database, address, flight, stop, _directory: directory })
    }

    /// Bytes of memory that it and its children take, each page divided among the processes that map it.
    pub(super) fn memory(&self) -> Result<u64> {
        let own = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"))
            .context("the kernel does not list the children of a process")?;
        let children = children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok());
        let of = |pid: u32| {
            // A process that has ended has none.
            let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
            text.and_then(|text| crate::memory::of_status(&text, "Pss")).unwrap_or(0)
        };
        Ok(std::iter::once(own).chain(children).map(of).sum())
    }
}

impl Drop for DatabaseServer {
    fn drop(&mut self) {
        let _ = kill_process(self.child.id() as i32, self.stop);
        let _ = self.child.wait();
    }
}

/// What stands before the address for clients of Arrow Flight SQL.
const FLIGHT_AT: &str = "Arrow Flight SQL on grpc://";

/// The address after `words` in a server's output.
fn address_after(said: &str, words: &str) -> Result<SocketAddr> {
    let rest = said.split_once(words).map(|(_, rest)| rest);
    let address = rest.and_then(|rest| rest.split_whitespace().next());
    let address = address.and_then(|it| it.trim_end_matches(':').parse().ok());
    address.with_context(|| format!("no address after '{words}' in '{said}'"))
}

/// Starts a server, waits until it has written some words to stderr, and returns what it wrote.
fn start(mut command: Command, wanted: &str, stop: &RunStop) -> Result<(Child, String)> {
    let what = command.get_program().display().to_string();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Ctrl-C at a terminal is for the benchmark, which then stops its servers.
    command.process_group(0);
    stop.prepare(&mut command);
    let mut child = command.spawn().with_context(|| format!("{what} does not start"))?;
    let mut said = BufReader::new(child.stderr.take().context("stderr is piped")?);
    let (mut all, begun) = (String::new(), Instant::now());
    loop {
        let mut line = String::new();
        let is_over = said.read_line(&mut line)? == 0 || begun.elapsed() > PATIENCE;
        if is_over {
            let _ = child.kill();
            let _ = child.wait();
            anyhow::bail!("{what} is not ready: {}", all.trim());
        }
        all += &line;
        if line.contains(wanted) {
            // Later output is read, because a full pipe would block the server.
            std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
            return Ok((child, all));
        }
    }
}

/// PostgreSQL's programs, and the user they run as.
pub(super) struct PostgresPrograms {
    folder: PathBuf,
    user: Option<&'static str>,
}

impl PostgresPrograms {
    /// The newest version installed.
    pub(super) fn find() -> Result<Self> {
        let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten();
        let number = |folder: &PathBuf| folder.file_name()?.to_str()?.parse::<u32>().ok();
        let folders = versions.map(|version| version.path());
        let newest = folders.filter(|it| it.join("bin/postgres").exists()).max_by_key(number);
        let folder = newest.map(|it| it.join("bin")).with_context(|| {
            format!("PostgreSQL is not in {VERSIONS}; install it (Debian: postgresql), or give --rivals none")
        })?;
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
        Ok(Self { folder, user: is_root.then_some("postgres") })
    }

    /// `postgres --version`.
    pub(super) fn version(&self) -> String {
        let output = self.command("postgres").arg("--version").output();
        let text = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        let text = text.unwrap_or_default();
        text.trim().trim_start_matches("postgres (PostgreSQL) ").to_owned()
    }

    fn command(&self, program: &str) -> Command {
        let program = self.folder.join(program);
        let Some(user) = self.user else { return Command::new(program) };
        let mut command = Command::new("setpriv");
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]).arg(program);
        command
    }
}

/// pgbench: in PATH, or beside PostgreSQL's other programs.
pub(super) fn find_pgbench() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("pgbench"));
    let found = found.into_iter().find(|it| it.exists());
    let next_to = || PostgresPrograms::find().ok().map(|it| it.folder.join("pgbench"));
    let found = found.or_else(next_to).filter(|it: &PathBuf| Path::exists(it));
    found.context("pgbench is missing; install it (Debian: postgresql-contrib or postgresql)")
}
