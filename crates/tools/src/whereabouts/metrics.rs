//! Looks for Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

use anyhow::Context;
use atoll_process::inspect::{MappingKind, Method, NodeBytes, Process, ProcessId, ProcessMemory};
use atoll_sys::process_cpu_time;
use atoll_topology::NodeId;

use super::session::WatchSession;
use super::{Look, WhereArgs, http};
use crate::exit::{CommandError, Exit};
use crate::terminal;

/// A scrape sooner than this after another gets the same answer.
const FRESH: Duration = Duration::from_secs(1);

/// Serves until a signal or the end of the last process.
pub(super) fn serve(args: &WhereArgs, port: u16) -> Result<(), CommandError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .with_context(|| format!("cannot listen on 127.0.0.1:{port}; choose another port"))?;
    let mut session = WatchSession::open(args, Some(FRESH))?;
    session.prime()?;
    let address = listener.local_addr()?;
    terminal::say(format_args!("metrics on http://{address}/metrics"));
    let mut page = Page { text: String::new(), made: None, moves: Moves::default() };
    for request in http::listen(listener) {
        let mut ends = None;
        request.answer(page.fresh(&mut session, args.over, &mut ends));
        if let Some(ends) = ends {
            return Err(ends);
        }
    }
    Ok(())
}

/// The last answer, and the counters.
struct Page {
    text: String,
    made: Option<Instant>,
    moves: Moves,
}

/// Moves of threads from cpu to cpu, for each process: those of threads that have ended stay counted.
#[derive(Default)]
struct Moves {
    processes: BTreeMap<ProcessId, ProcessMoves>,
}

#[derive(Default)]
struct ProcessMoves {
    total: u64,
    threads: BTreeMap<u32, u64>,
}

impl Moves {
    /// Counts moves since the last look; forgets processes that ended.
    fn count(&mut self, processes: &[Process]) {
        self.processes.retain(|id, _| processes.iter().any(|process| process.id == *id));
        for process in processes {
            let threads = process.threads.iter();
            let moved = threads.filter_map(|thread| Some((thread.tid, thread.migrations?)));
            self.processes.entry(process.id).or_default().count(moved.collect());
        }
    }

    /// Moves of a process; None if the kernel does not count them.
    fn get(&self, id: ProcessId) -> Option<u64> {
        self.processes.get(&id).filter(|moves| !moves.threads.is_empty()).map(|moves| moves.total)
    }
}

impl ProcessMoves {
    /// `now` are the threads alive and their moves since they started.
    fn count(&mut self, now: BTreeMap<u32, u64>) {
        for (tid, count) in &now {
            // Fewer than before: another thread has the number now.
            let before = self.threads.get(tid).filter(|before| *before <= count).unwrap_or(&0);
            self.total = self.total.saturating_add(count - before);
        }
        self.threads = now;
    }
}

impl Page {
    fn fresh(
        &mut self,
        session: &mut WatchSession,
        over: Duration,
        ends: &mut Option<CommandError>,
    ) -> String {
        if self.made.is_none_or(|made| made.elapsed() >= FRESH) {
            match session.look(over) {
                Ok(look) => {
                    if look.snapshot.processes.is_empty() && !session.may_go_on() {
                        let message = "every process that was watched has ended";
                        *ends = Some(CommandError::with(Exit::Statement, message));
                    }
                    self.moves.count(&look.snapshot.processes);
                    self.text = text(session, &look, &self.moves);
                    self.made = Some(Instant::now());
                }
                Err(error) => *ends = Some(error),
            }
        }
        self.text.clone()
    }
}

/// One metric: its name, its type, what it is, and its samples.
pub(crate) struct Metric {
    text: String,
    name: &'static str,
}

impl Metric {
    pub(crate) fn new(name: &'static str, kind: &str, help: &str) -> Self {
        Self { text: format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"), name }
    }

    pub(crate) fn sample(&mut self, labels: &str, value: f64) {
        let name = self.name;
        let _ = match labels.is_empty() {
            true => writeln!(self.text, "{name} {value}"),
            false => writeln!(self.text, "{name}{{{labels}}} {value}"),
        };
    }

    /// The metric with its samples.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// The metrics in Prometheus's text format.
fn text(session: &WatchSession, look: &Look, moves: &Moves) -> String {
    let mut together = Metric::new(
        "atoll_processes_memory_bytes",
        "gauge",
        "Resident memory of all these processes by node and kind; what they map as one counts once.",
    );
    memory_samples(&mut together, "", &look.snapshot.memory);
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
        "Moves of threads from cpu to cpu; those of threads that have ended stay counted.",
    );
    let mut proportional = Metric::new(
        "atoll_process_memory_proportional_bytes",
        "gauge",
        "PSS: each page divided by the number of processes that map it; where every page is counted.",
    );
    let mut age = Metric::new(
        "atoll_process_memory_age_seconds",
        "gauge",
        "How long before this scrape the memory was read; reading is paced by what it costs.",
    );
    for process in &look.snapshot.processes {
        let who = format!("pid=\"{}\",name=\"{}\"", process.id.pid, escaped(&process.name));
        if let Some(known) = &process.memory {
            memory_samples(&mut memory, &format!("{who},"), &known.by_kind);
            error.sample(&who, sample_error(known));
            age.sample(&who, process.memory_age.as_secs_f64());
            if let Some(bytes) = known.proportional {
                proportional.sample(&who, bytes as f64);
            }
        }
        for row in process.nodes(&session.nodes) {
            let labels = format!("{who},node=\"{}\"", node_label(row.node));
            threads.sample(&labels, row.threads as f64);
            cpu.sample(&labels, row.cpu_share);
        }
        if let Some(count) = moves.get(process.id) {
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
    let of_memory = [together, memory, proportional, age, error];
    let metrics = of_memory.into_iter().chain([threads, cpu, migrations, own, warnings]);
    metrics.map(Metric::into_text).collect()
}

/// A sample for each kind and node; `who` is the labels before these, each followed by a comma.
fn memory_samples(metric: &mut Metric, who: &str, by_kind: &BTreeMap<MappingKind, NodeBytes>) {
    for (kind, bytes) in by_kind {
        for (node, bytes) in bytes {
            let labels = format!("{who}node=\"{}\",kind=\"{}\"", node_label(*node), kind.key());
            metric.sample(&labels, *bytes as f64);
        }
    }
}

fn sample_error(memory: &ProcessMemory) -> f64 {
    match memory.method {
        Method::Sampled { error, .. } => error,
        _ => 0.0,
    }
}

fn node_label(node: Option<NodeId>) -> String {
    node.map_or_else(|| "unknown".to_owned(), |node| node.to_string())
}

/// A label's value: backslash, quote and line end are escaped.
pub(crate) fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_label() {
        assert_eq!(escaped("a\"} 1\n\\"), "a\\\"} 1\\n\\\\");
    }

    #[test]
    fn moves_never_fall_when_threads_end_or_their_numbers_are_used_again() {
        let counts = |threads: &[(u32, u64)]| threads.iter().copied().collect();
        let mut moves = ProcessMoves::default();
        let mut totals = Vec::new();
        for threads in [&[(1, 5), (2, 3)][..], &[(1, 6)], &[(1, 6), (2, 2)], &[(1, 1), (2, 4)], &[]]
        {
            moves.count(counts(threads));
            totals.push(moves.total);
        }
        assert_eq!(totals, [8, 9, 11, 14, 14]);
    }
}
