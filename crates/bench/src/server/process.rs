//! The servers that are measured, each a process on its own port.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use atoll_sys::{SignalMask, kill_process, signal, tie_to_parent};

use crate::programs::atoll_command;

/// Where Debian keeps PostgreSQL's programs, by version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// How long a server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, stopped when dropped.
pub(crate) struct DatabaseServer {
    child: Child,
    pub(crate) name: &'static str,
    pub(crate) user: &'static str,
    pub(crate) database: &'static str,
    pub(crate) address: SocketAddr,
    /// Address for clients of Arrow Flight SQL.
    pub(crate) flight: Option<SocketAddr>,
    /// The signal that stops it.
    stop: i32,
    /// Its files.
    _directory: tempfile::TempDir,
}

impl DatabaseServer {
    /// `atoll serve` over a new directory, or with all data in memory alone.
    pub(crate) fn atoll(
        directory: tempfile::TempDir,
        threads: usize,
        is_persistent: bool,
        mask: SignalMask,
    ) -> Result<Self> {
        let mut command = atoll_command()?;
        command.args(["serve", "--insecure-no-password", "--listen", "127.0.0.1:0"]);
        command.args(["--flight", "127.0.0.1:0", "--threads"]).arg(threads.to_string());
        if is_persistent {
            command.arg("--data").arg(directory.path().join("data"));
        }
        tie_to_parent(&mut command, signal::TERM, mask);
        let (child, said) = start(command, FLIGHT_AT)?;
        let address = address_after(&said, "listening on ")?;
        let flight = Some(address_after(&said, FLIGHT_AT)?);
        let (name, user, database, stop) = ("atoll", "atoll", "atoll", signal::TERM);
        Ok(Self { child, name, user, database, address, flight, stop, _directory: directory })
    }

    /// PostgreSQL over a new cluster, as it is installed but for some settings; never as root.
    pub(crate) fn postgresql(
        programs: &PostgresPrograms,
        directory: tempfile::TempDir,
        settings: &[String],
        mask: SignalMask,
    ) -> Result<Self> {
        let place = directory.path();
        if let Some(user) = programs.user {
            let owned = Command::new("chown").arg(user).arg(place).status();
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
        let own = ["listen_addresses=127.0.0.1".to_owned(), format!("port={}", address.port())];
        for setting in own.iter().chain(settings) {
            command.args(["-c", setting]);
        }
        tie_to_parent(&mut command, signal::INT, mask);
        let (child, _) = start(command, "ready to accept connections")?;
        let (name, user, database, stop) = ("postgresql", "postgres", "postgres", signal::INT);
        let flight = None;
        Ok(Self { child, name, user, database, address, flight, stop, _directory: directory })
    }

    /// The number of its process, and the signal that stops it.
    pub(crate) fn process(&self) -> (u32, i32) {
        (self.child.id(), self.stop)
    }

    /// Bytes of memory that it and its children take, each page divided among the processes that map it.
    pub(crate) fn memory(&self) -> Result<u64> {
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
pub(crate) fn start(mut command: Command, wanted: &str) -> Result<(Child, String)> {
    let what = command.get_program().display().to_string();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Ctrl-C at a terminal is for the benchmark, which then stops its servers.
    command.process_group(0);
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
pub(crate) struct PostgresPrograms {
    folder: PathBuf,
    user: Option<&'static str>,
}

impl PostgresPrograms {
    /// The newest version installed.
    pub(crate) fn find() -> Result<Self> {
        let versions = std::fs::read_dir(VERSIONS).into_iter().flatten().flatten();
        let number = |folder: &PathBuf| folder.file_name()?.to_str()?.parse::<u32>().ok();
        let folders = versions.map(|version| version.path());
        let newest = folders.filter(|it| it.join("bin/postgres").exists()).max_by_key(number);
        let folder = newest.map(|it| it.join("bin")).with_context(|| {
            format!(
                "PostgreSQL is not in {VERSIONS}; install it (Debian: postgresql), or leave it out"
            )
        })?;
        Ok(Self::in_folder(folder, "postgres"))
    }

    /// Those in a folder, which run as `user` where this program runs as root.
    pub(crate) fn in_folder(folder: PathBuf, user: &'static str) -> Self {
        Self { folder, user: is_root().then_some(user) }
    }

    /// `postgres --version`.
    pub(crate) fn version(&self) -> String {
        let output = self.command("postgres").arg("--version").output();
        let text = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        let text = text.unwrap_or_default();
        text.trim().trim_start_matches("postgres (PostgreSQL) ").to_owned()
    }

    fn command(&self, program: &str) -> Command {
        let program = self.folder.join(program);
        let Some(user) = self.user else { return Command::new(program) };
        let mut command = Command::new("setpriv");
        // The kernel forgets with which process a program ends when its user changes.
        command.args(["--reuid", user, "--regid", user, "--clear-groups", "--pdeathsig", "INT"]);
        command.arg(program);
        command
    }
}

/// Whether this program runs as root.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}

/// pgbench: in PATH, or beside PostgreSQL's other programs.
pub(crate) fn find_pgbench() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("pgbench"));
    let found = found.into_iter().find(|it| it.exists());
    let next_to = || PostgresPrograms::find().ok().map(|it| it.folder.join("pgbench"));
    let found = found.or_else(next_to).filter(|it: &PathBuf| Path::exists(it));
    found.context("pgbench is missing; install it (Debian: postgresql-contrib or postgresql)")
}
