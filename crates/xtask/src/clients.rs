//! `clients`: projects of real clients against `atoll serve`.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, target_directory};

const HELP: &str = "\
cargo xtask clients [CLIENT …]

Runs the projects in crates/server/tests/clients (Django, Alembic, dbt, TypeORM, gorm and others, each unchanged from
its registry) against a server in memory: all of them, or those named. Their packages are installed into
target/clients, where the logs are too. A client that cannot be installed is skipped.";

/// What installs and runs them.
const RUNNER: &str = "crates/server/tests/clients/run.sh";

/// Builds the server, starts it on a free port and runs the projects.
///
/// # Errors
/// When the server cannot be built or started.
pub fn run(root: &Path, arguments: &[&str]) -> Result<ExitCode> {
    if arguments.iter().any(|argument| ["--help", "-h"].contains(argument)) {
        println!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(flag) = arguments.iter().find(|argument| argument.starts_with('-')) {
        bail!("clients: unexpected '{flag}'\n\n{HELP}");
    }
    let server = Server::start(root)?;
    let status = Command::new("sh")
        .arg(root.join(RUNNER))
        .arg(target_directory(root).join("clients"))
        .args(arguments)
        .env("PGHOST", "127.0.0.1")
        .env("PGPORT", &server.port)
        .env("PGUSER", "postgres")
        .env("PGPASSWORD", "any")
        .env("PGDATABASE", "atoll")
        .status()
        .with_context(|| format!("{RUNNER} cannot be started"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A server in memory, which ends with this.
struct Server {
    process: Child,
    port: String,
}

impl Server {
    fn start(root: &Path) -> Result<Self> {
        let status = cargo()
            .current_dir(root)
            .args(["build", "--locked", "--release", "--package", "atoll-db", "--bin", "atoll"])
            .status()
            .context("cargo did not start")?;
        ensure!(status.success(), "atoll cannot be built");
        let program = target_directory(root).join("release/atoll");
        let process = Command::new(&program)
            .args(["serve", "--listen", "127.0.0.1:0", "--insecure-no-password"])
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let mut server = Self { process, port: String::new() };
        let stderr = server.process.stderr.take().context("the server has no stderr")?;
        let (mut messages, mut line) = (BufReader::new(stderr), String::new());
        messages.read_line(&mut line).context("the server's first line")?;
        let port = port(&line);
        let port = port.with_context(|| format!("no port in the first line '{}'", line.trim()))?;
        port.clone_into(&mut server.port);
        // A full pipe would stop the server.
        thread::spawn(move || io::copy(&mut messages, &mut io::stderr()));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The port in `listening on 127.0.0.1:5432: …`.
fn port(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("listening on 127.0.0.1:")?;
    let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    (end > 0).then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_in_the_first_line() {
        assert_eq!(
            port("listening on 127.0.0.1:41795: psql -h 127.0.0.1 -p 41795 -d atoll\n"),
            Some("41795")
        );
        assert_eq!(port("listening on /tmp/.s.PGSQL.5432"), None);
    }
}
