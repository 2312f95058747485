//! `where`: where a process lives.
//!
//! | File | Does |
//! |---|---|
//! | `session` | the targets, found again as they come and go, and looks at them |
//! | `text`, `table` | a look for people |
//! | `json` | a look for programs, with documented keys |
//! | `watch` | looks again and again, on a terminal or into a stream |
//! | `metrics`, `http` | looks for Prometheus, on loopback |

pub(crate) mod http;
mod json;
pub(crate) mod metrics;
mod session;
mod table;
mod text;
mod watch;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use atoll_process::inspect::{Snapshot, Target, Warning};
use clap::builder::NonEmptyStringValueParser;

use crate::exit::{CommandError, Exit};
use crate::terminal;

use session::WatchSession;

/// What `--help` shows.
pub const EXAMPLES: &str = "\
Examples:
  atoll where 4711
  atoll where postgres                      every process of that name, shared memory counted once
  atoll where 4711 --children --threads
  atoll where --cgroup system.slice/mariadb.service --json | jq '.nodes[] | {node, memory_bytes}'
  atoll where postgres --watch 5
  atoll where postgres --watch --jsonl >> where.jsonl
  atoll where postgres --metrics 9465       curl http://127.0.0.1:9465/metrics

Memory is where pages are resident, which is not the same as who accesses them.
Shared mappings count once: every page that a living one has mapped. Private
pages that a fork left shared count in each process; PSS divides them among those that map them.
New processes of a name or control group, and children, are looked for every 10 seconds.
A process of another user requires the right to trace it (root or CAP_SYS_PTRACE); without it
the threads and the sums are shown.";

/// Longest interval: a day.
const SECONDS_MAX: f64 = 86_400.0;
/// Shortest interval between looks that are watched.
const WATCH_SECONDS_MIN: f64 = 0.1;

/// Arguments.
#[derive(clap::Args, Debug)]
pub struct WhereArgs {
    /// Ids or names of processes; a name is that of `ps -o comm` or the program's file name
    #[arg(value_name = "PID|NAME", required_unless_present = "cgroup")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    targets: Vec<String>,
    /// All processes of a control group and its descendants
    #[arg(long, value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    cgroup: Vec<String>,
    /// Also all processes that descend from these
    #[arg(long)]
    children: bool,
    /// List every thread and process, not only the busiest
    #[arg(long)]
    threads: bool,
    /// Count every page, however large the process (some 0.3 s for 64 GB)
    #[arg(long)]
    exact: bool,
    /// Sample this many pages, even if all could be counted [default: 16384 above 4 GiB]
    #[arg(long, value_name = "PAGES", conflicts_with = "exact",
          value_parser = clap::value_parser!(u64).range(256..=16_777_216))]
    sample: Option<u64>,
    /// Seconds over which cpu time is counted
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = seconds)]
    over: Duration,
    /// One JSON document
    #[arg(long, conflicts_with_all = ["jsonl", "watch", "metrics"])]
    json: bool,
    /// One JSON document per line and look
    #[arg(long, conflicts_with = "metrics")]
    jsonl: bool,
    /// Repeat at this interval in seconds [default: 2]; uses at most 1 % of a cpu after the first look
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2",
          value_parser = watch_seconds, conflicts_with = "metrics")]
    watch: Option<Duration>,
    /// Stop after this many looks
    #[arg(long, value_name = "LOOKS", requires = "watch",
          value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Serve Prometheus metrics on 127.0.0.1 at this port
    #[arg(long, value_name = "PORT")]
    metrics: Option<u16>,
    /// Read /proc and /sys below this directory: those of another container, or a copy
    #[arg(long, value_name = "DIRECTORY")]
    root: Option<PathBuf>,
}

impl WhereArgs {
    fn meant(&self) -> Vec<Target> {
        let named = self.targets.iter().map(|text| Target::parse(text));
        named.chain(self.cgroup.iter().cloned().map(Target::Cgroup)).collect()
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    seconds_from(text, 0.01)
}

fn watch_seconds(text: &str) -> Result<Duration, String> {
    seconds_from(text, WATCH_SECONDS_MIN)
}

fn seconds_from(text: &str, least: f64) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (least..=SECONDS_MAX).contains(&seconds) => {
            Ok(Duration::from_secs_f64(seconds))
        }
        _ => Err(format!("expected seconds from {least} to {SECONDS_MAX}")),
    }
}

/// One look with its remarks.
struct Look {
    snapshot: Snapshot,
    warnings: Vec<Warning>,
    /// Time over which the threads' use of cpus was counted.
    over: Duration,
    /// Share of one cpu that looking has cost since it began; None for a single look.
    cost: Option<f64>,
}

/// Shows where processes live.
pub(crate) fn run(args: &WhereArgs) -> Result<(), CommandError> {
    if let Some(port) = args.metrics {
        return metrics::serve(args, port);
    }
    match args.watch {
        Some(every) => watch::run(args, every),
        None => once(args),
    }
}

fn once(args: &WhereArgs) -> Result<(), CommandError> {
    let mut session = WatchSession::open(args, None)?;
    session.prime()?;
    std::thread::sleep(args.over);
    let look = session.look(args.over)?;
    session.tell_ended(&look);
    if look.snapshot.processes.is_empty() {
        return Err(CommandError::with(
            Exit::Statement,
            "every process ended during the inspection",
        ));
    }
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", json::document(&session, &look, true))?;
    } else if args.jsonl {
        writeln!(out, "{}", json::document(&session, &look, args.threads))?;
    } else {
        out.write_all(text::page(&session, &look, args.threads, terminal::width()).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}
