//! The server's metrics for Prometheus.

use std::sync::atomic::Ordering;
use std::time::Duration;

use atoll_sql::{Database, DatabaseUsage};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The histogram's first bound, and the number of bounds, each four times the one before.
const SECONDS_MIN: f64 = 0.000_1;
const BUCKETS: u16 = 12;

/// The outcome label of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    /// `done`, or the first two characters of the error's SQLSTATE.
    outcome: String,
}

/// The conflict label of a statement that failed because of another transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Conflict {
    kind: &'static str,
}

/// Conflicts by SQLSTATE.
const CONFLICTS: [(&str, &str); 3] =
    [("40001", "serialization"), ("40P01", "deadlock"), ("55P03", "lock")];

/// The state label of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SessionState {
    state: &'static str,
}

/// The metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    connections: Counter,
    logins_failed: Counter,
    statements: Family<Outcome, Counter>,
    seconds: Histogram,
    sessions: Family<SessionState, Gauge>,
    conflicts: Family<Conflict, Counter>,
    usage: UsageGauges,
}

/// The database's use of resources when last read.
#[derive(Debug, Default)]
struct UsageGauges {
    memory: Gauge,
    memory_limit: Gauge,
    locks: Gauge,
    commits: Counter,
    log_bytes: Counter,
    log_syncs: Counter,
    scan_cycles: Counter,
    scan_queries: Counter,
    bytes_local: Counter,
    bytes_remote: Counter,
}

impl UsageGauges {
    fn register(&self, registry: &mut Registry) {
        let gauges = [
            ("memory_bytes", "Memory that tables and queries have reserved", &self.memory),
            ("memory_limit_bytes", "Memory limit of tables and queries", &self.memory_limit),
            ("locks", "Locks of open transactions", &self.locks),
        ];
        for (name, about, gauge) in gauges {
            registry.register(name, about, gauge.clone());
        }
        let counters = [
            ("commits", "Commits that changed something", &self.commits),
            ("log_bytes", "Bytes of records written to the log", &self.log_bytes),
            ("log_syncs", "Syncs of the log", &self.log_syncs),
            ("shared_scan_cycles", "Passes of shared scans over their tables", &self.scan_cycles),
            ("shared_scan_queries", "Queries that shared scans answered", &self.scan_queries),
            ("read_local_bytes", "Bytes read from memory of the reader's node", &self.bytes_local),
            ("read_remote_bytes", "Bytes read from memory of other nodes", &self.bytes_remote),
        ];
        for (name, about, counter) in counters {
            registry.register(name, about, counter.clone());
        }
    }

    fn set(&self, usage: &DatabaseUsage) {
        let gauges = [
            (&self.memory, usage.memory),
            (&self.memory_limit, usage.memory_limit),
            (&self.locks, usage.locks),
        ];
        for (gauge, value) in gauges {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        let counters = [
            (&self.commits, usage.commits),
            (&self.log_bytes, usage.log_bytes),
            (&self.log_syncs, usage.log_syncs),
            (&self.scan_cycles, usage.scan_cycles),
            (&self.scan_queries, usage.scan_queries),
            (&self.bytes_local, usage.bytes_local),
            (&self.bytes_remote, usage.bytes_remote),
        ];
        for (counter, value) in counters {
            // A counter kept elsewhere: it drops when a pool or table is dropped, which counts as a restart.
            counter.inner().store(value, Ordering::Relaxed);
        }
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("atoll");
        let (connections, logins_failed) = (Counter::default(), Counter::default());
        let (statements, sessions, conflicts) = Default::default();
        let usage = UsageGauges::default();
        let seconds = Histogram::new(exponential_buckets(SECONDS_MIN, 4.0, BUCKETS));
        registry.register("connections", "Connections accepted", connections.clone());
        registry.register("logins_failed", "Log-ins that failed", logins_failed.clone());
        let about = "Statements that ended, by outcome: done, or the class of their SQLSTATE";
        let statements: Family<Outcome, Counter> = statements;
        registry.register("statements", about, statements.clone());
        let about = "Duration of statements, including sending rows to clients";
        registry.register("statement_duration_seconds", about, seconds.clone());
        let sessions: Family<SessionState, Gauge> = sessions;
        registry.register("sessions", "Sessions of clients, by state", sessions.clone());
        let about = "Statements that failed because of other transactions, by kind of conflict";
        let conflicts: Family<Conflict, Counter> = conflicts;
        registry.register("conflicts", about, conflicts.clone());
        usage.register(&mut registry);
        Self {
            registry,
            connections,
            logins_failed,
            statements,
            seconds,
            sessions,
            conflicts,
            usage,
        }
    }

    pub(crate) fn connected(&self) {
        self.connections.inc();
    }

    pub(crate) fn login_failed(&self) {
        self.logins_failed.inc();
    }

    /// Counts a statement that has ended, with its SQLSTATE if it failed.
    pub(crate) fn ended(&self, took: Duration, error: Option<&str>) {
        let outcome = error.and_then(|state| state.get(..2)).unwrap_or("done").to_owned();
        self.statements.get_or_create(&Outcome { outcome }).inc();
        self.seconds.observe(took.as_secs_f64());
        let conflict = CONFLICTS.iter().find(|(state, _)| error == Some(*state));
        if let Some((_, kind)) = conflict {
            self.conflicts.get_or_create(&Conflict { kind }).inc();
        }
    }

    /// All metrics as text, with the database's current values.
    pub(crate) fn text(&self, database: &Database) -> String {
        let sessions = database.activity().sessions();
        let running = sessions.iter().filter(|session| session.is_running).count();
        for (state, count) in [("running", running), ("waiting", sessions.len() - running)] {
            self.sessions.get_or_create(&SessionState { state }).set(count as i64);
        }
        self.usage.set(&database.usage());
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
