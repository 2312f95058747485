//! Looks for Prometheus.

use std::fmt::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use anyhow::Context;
use atoll_process::inspect::{Memory, Method, Process};
use atoll_sys::process_cpu_time;
use atoll_topology::NodeId;

use super::session::Session;
use super::{Args, Look, http};
use crate::exit::{Ends, Exit};
use crate::terminal;

/// A scrape that comes sooner than this after another gets the same answer.
const FRESH: Duration = Duration::from_secs(1);

/// Serves until a signal or the end of the last process.
pub(super) fn serve(args: &Args, port: u16) -> Result<(), Ends> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("127.0.0.1:{port} cannot be listened on; choose another port"))?;
    let mut session = Session::open(args, Some(FRESH))?;
    session.prime()?;
    let address = listener.local_addr()?;
    terminal::say(format_args!("metrics on http://{address}/metrics"));
    let mut page = Page { text: String::new(), made: None };
    loop {
        let (stream, _) = listener.accept()?;
        let mut ends = None;
        http::answer(&stream, || page.fresh(&mut session, args.over, &mut ends));
        if let Some(ends) = ends {
            return Err(ends);
        }
    }
}

/// The last answer.
struct Page {
    text: String,
    made: Option<Instant>,
}

impl Page {
    fn fresh(&mut self, session: &mut Session, over: Duration, ends: &mut Option<Ends>) -> String {
        if self.made.is_none_or(|made| made.elapsed() >= FRESH) {
            match session.look(over) {
                Ok(look) => {
                    if look.snapshot.processes.is_empty() {
                        let message = "every process that was watched has ended";
                        *ends = Some(Ends::with(Exit::Statement, message));
                    }
                    self.text = text(session, &look);
                    self.made = Some(Instant::now());
                }
                Err(error) => *ends = Some(error),
            }
        }
        self.text.clone()
    }
}

/// One metric: its name, its type, what it is, and its samples.
struct Metric {
    text: String,
    name: &'static str,
}

impl Metric {
    fn new(name: &'static str, kind: &str, help: &str) -> Self {
        Self { text: format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"), name }
    }

    fn sample(&mut self, labels: &str, value: f64) {
        let name = self.name;
        let _ = match labels.is_empty() {
            true => writeln!(self.text, "{name} {value}"),
            false => writeln!(self.text, "{name}{{{labels}}} {value}"),
        };
    }
}

/// The metrics in Prometheus's text format.
fn text(session: &Session, look: &Look) -> String {
    let mut memory = Metric::new(
        "atoll_process_memory_bytes",
        "gauge",
        "Resident memory by node and kind; what processes share counts in each of them.",
    );
    let mut error = Metric::new(
        "atoll_process_memory_sample_error_ratio",
        "gauge",
        "Half width of the 95 % interval of a node's share of memory; 0 where every page is counted.",
    );
    let mut threads = Metric::new(
        "atoll_process_threads",
        "gauge",
        "Threads by the node on which they last ran.",
    );
    let mut cpu = Metric::new(
        "atoll_process_cpu_ratio",
        "gauge",
        "Cpus' worth of time used by the threads of a node, between the last two readings.",
    );
    let mut migrations = Metric::new(
        "atoll_process_thread_migrations_total",
        "counter",
        "Moves from cpu to cpu of the threads alive; falls when a thread ends.",
    );
    for process in &look.snapshot.processes {
        let who = format!("pid=\"{}\",name=\"{}\"", process.id.pid, escaped(&process.name));
        if let Some(known) = &process.memory {
            memory_samples(&mut memory, &who, known);
            error.sample(&who, sample_error(known));
        }
        for row in process.nodes(&session.nodes) {
            let labels = format!("{who},node=\"{}\"", node_label(row.node));
            threads.sample(&labels, row.threads as f64);
            cpu.sample(&labels, row.cpu_share);
        }
        if let Some(count) = moves(process) {
            migrations.sample(&who, count as f64);
        }
    }
    let mut own = Metric::new(
        "atoll_where_cpu_seconds_total",
        "counter",
        "Time that this exporter has spent on cpus.",
    );
    own.sample("", process_cpu_time().as_secs_f64());
    let mut warnings =
        Metric::new("atoll_where_warning", "gauge", "1 while the rule of that name warns.");
    for warning in &look.warnings {
        warnings.sample(&format!("rule=\"{}\"", warning.rule), 1.0);
    }
    [memory, error, threads, cpu, migrations, own, warnings].map(|metric| metric.text).concat()
}

fn memory_samples(metric: &mut Metric, who: &str, memory: &Memory) {
    for (kind, bytes) in &memory.by_kind {
        for (node, bytes) in bytes {
            let labels = format!("{who},node=\"{}\",kind=\"{}\"", node_label(*node), kind.key());
            metric.sample(&labels, *bytes as f64);
        }
    }
}

fn sample_error(memory: &Memory) -> f64 {
    match memory.method {
        Method::Sampled { error, .. } => error,
        _ => 0.0,
    }
}

/// Moves of all threads; nothing where the kernel does not count them.
fn moves(process: &Process) -> Option<u64> {
    process.threads.iter().map(|thread| thread.migrations).sum()
}

fn node_label(node: Option<NodeId>) -> String {
    node.map_or_else(|| "unknown".to_owned(), |node| node.to_string())
}

/// A label's value: backslash, quote and line end are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_label() {
        assert_eq!(escaped("a\"} 1\n\\"), "a\\\"} 1\\n\\\\");
    }
}
