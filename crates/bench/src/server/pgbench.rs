//! pgbench, which comes with PostgreSQL, unchanged.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::process::DatabaseServer;
use super::work::QueryProtocol;

/// Results of a pgbench run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PgbenchRun {
    /// Transactions a second, without the time of connecting, or with it if each has its own connection.
    pub(super) rate: f64,
    /// Milliseconds to connect, if each transaction has its own connection.
    pub(super) connecting_ms: Option<f64>,
    /// Milliseconds that half and all but one in a hundred of the transactions took at most.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// What pgbench is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct PgbenchPlan<'a> {
    pub(super) script: &'a [&'a str],
    pub(super) clients: u16,
    /// Threads of pgbench at most.
    pub(super) threads: usize,
    pub(super) protocol: QueryProtocol,
    pub(super) time: Duration,
    pub(super) seed: u64,
}

/// Makes pgbench's tables.
pub(super) fn init(program: &Path, server: &DatabaseServer, scale: u32) -> Result<()> {
    let mut command = command(program, server);
    command.args(["-i", "-q", "-s", &scale.to_string(), server.database]);
    output(command).map(|_| ())
}

/// Runs a script for some time.
pub(super) fn run(
    program: &Path,
    server: &DatabaseServer,
    plan: &PgbenchPlan<'_>,
) -> Result<PgbenchRun> {
    let logs = tempfile::tempdir().context("cannot create a directory for pgbench's logs")?;
    let threads = plan.threads.min(usize::from(plan.clients)).to_string();
    let seconds = plan.time.as_secs_f64().ceil().max(1.0);
    let mut command = command(program, server);
    command.args(plan.script).args(["-M", plan.protocol.name(), "-j", &threads]);
    command.args(["-c", &plan.clients.to_string(), "-T", &seconds.to_string()]);
    command.arg(format!("--random-seed={}", plan.seed));
    command.arg("-l").arg(format!("--log-prefix={}", logs.path().join("log").display()));
    command.arg(server.database);
    let mut run = parse(&output(command)?)?;
    (run.p50_ms, run.p99_ms) = percentiles(logs.path())?;
    Ok(run)
}

fn command(program: &Path, server: &DatabaseServer) -> Command {
    let mut command = Command::new(program);
    let port = server.address.port().to_string();
    command.args(["-h", "127.0.0.1", "-p", &port, "-U", server.user]);
    command.stdin(std::process::Stdio::null());
    command
}

fn output(mut command: Command) -> Result<String> {
    let output = command.output().context("pgbench does not start")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "pgbench failed: {}", errors.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads what pgbench prints in the end.
fn parse(text: &str) -> Result<PgbenchRun> {
    let number = |start: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(start))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let failed = number("number of failed transactions: ").unwrap_or(0.0);
    ensure!(failed == 0.0, "{failed} transactions failed");
    let rate = number("tps = ")
        .with_context(|| format!("pgbench did not print a rate ('tps = '):\n{text}"))?;
    let connecting_ms = number("average connection time = ");
    Ok(PgbenchRun { rate, connecting_ms, ..PgbenchRun::default() })
}

/// Milliseconds that half, and 99 %, of the transactions in the logs took at most.
fn percentiles(logs: &Path) -> Result<(f64, f64)> {
    let mut micros: Vec<u32> = Vec::new();
    for log in std::fs::read_dir(logs).context("pgbench's logs")? {
        let text = std::fs::read_to_string(log?.path())?;
        let times = text.lines().map(|line| line.split(' ').nth(2)?.parse().ok());
        micros.extend(times.collect::<Option<Vec<u32>>>().context("pgbench's log has no times")?);
    }
    micros.sort_unstable();
    let last = micros.len().checked_sub(1).context("no transaction was completed")?;
    let at = |share: f64| f64::from(micros[(last as f64 * share).round() as usize]) / 1e3;
    Ok((at(0.5), at(0.99)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_pgbench_is_read() {
        let text = "pgbench (15.14)\ntransaction type: <builtin: select only>\n\
            number of failed transactions: 0 (0.000%)\nlatency average = 2.391 ms\n\
            average connection time = 1.893 ms\ntps = 418.2 (including reconnection times)\n";
        let run = parse(text).unwrap();
        assert_eq!((run.rate, run.connecting_ms), (418.2, Some(1.893)));
        assert!(parse("tps").is_err());
        let failed = text.replace("failed transactions: 0", "failed transactions: 3");
        assert!(parse(&failed).unwrap_err().to_string().contains("3 transactions"));
    }

    #[test]
    fn percentiles_are_of_all_logs() {
        let logs = tempfile::tempdir().unwrap();
        assert!(percentiles(logs.path()).is_err());
        for (file, times) in [("log.1", 1..=60), ("log.1.1", 61..=101)] {
            let lines: String = times.map(|it| format!("0 1 {} 0 5 6\n", it * 1000)).collect();
            std::fs::write(logs.path().join(file), lines).unwrap();
        }
        assert_eq!(percentiles(logs.path()).unwrap(), (51.0, 100.0));
    }
}
