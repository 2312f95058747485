//! A look for programs. Keys stay; new ones may come.
//!
//! Memory is what page tables hold. Shared memory that only processes touched which have ended is
//! still there, and counts nowhere until a living process touches it too.
//!
//! | Key | Holds |
//! |---|---|
//! | `at` | seconds since 1970 |
//! | `over_seconds` | the time over which cpu time was counted |
//! | `nodes[]` | `node` (null where not known), `cpus`, `threads`, `cpu_percent`, `memory_bytes`, `resident_share` |
//! | `memory[]` | `kind`, `bytes`, `by_node[]` of `node` and `bytes`; what several processes map as one counts once: every page that a living process has mapped |
//! | `union` | how that was counted: `method` (`none` where nothing is mapped by several; `exact`; `sampled` with `looked`, `resident`, `error_bytes`; `maximum` where pages may not be asked for: the most that one process has; `each` where a process may not be looked into: counted in each process) |
//! | `processes[]` | `pid`, `start_ticks`, `name`, `state`, `user`, `threads_total`, `nodes_allowed`, `cpu_percent`, `nodes[]`, `memory`, `threads[]` |
//! | `processes[].memory` | `method` (`exact`, `sampled`, `totals`) and for samples `looked`, `resident`, `error`; `kinds[]`, `policies[]`, `huge_transparent_bytes`, `swapped_bytes`, `proportional_bytes` (PSS, where every page was counted), `age_seconds` (how long before this look it was read); null if unknown |
//! | `processes[].threads[]` | `tid`, `name`, `state`, `cpu`, `node`, `cpus_allowed`, `policy`, `cpu_percent`, `migrations`, `switches_voluntary`, `switches_involuntary`, `pages_migrated`, `node_preferred`; left out of streams unless asked for |
//! | `balancing` | `mode` and the machine's counters |
//! | `warnings[]` | `rule`, `what`, `mend[]` |
//! | `missing[]` | `what`, `need` |
//! | `ended[]` | processes that ended since the look before |
//! | `threads_read`, `cost_percent` | threads read in this look; cost of watching in percent of one cpu |

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use atoll_process::inspect::{MappingKind, NodeBytes, NodeRow, Process, ProcessMemory, Thread};
use serde_json::{Value, json};

use super::Look;
use super::session::WatchSession;

/// The document.
pub(super) fn document(session: &WatchSession, look: &Look, has_threads: bool) -> Value {
    let snapshot = &look.snapshot;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let processes: Vec<Value> =
        snapshot.processes.iter().map(|it| process(session, it, has_threads)).collect();
    json!({
        "at": rounded(now.as_secs_f64()),
        "machine": session.machine.name,
        "over_seconds": rounded(look.over.as_secs_f64()),
        "nodes": snapshot.nodes.iter().map(node).collect::<Vec<_>>(),
        "memory": kinds(&snapshot.memory),
        "union": snapshot.union,
        "processes": processes,
        "balancing": snapshot.balancing,
        "warnings": look.warnings,
        "missing": snapshot.missing,
        "ended": snapshot.ended.iter().map(|id| id.pid).collect::<Vec<_>>(),
        "threads_read": snapshot.threads_read,
        "cost_percent": look.cost.map(percent),
    })
}

fn node(row: &NodeRow) -> Value {
    json!({
        "node": row.node,
        "cpus": row.cpus,
        "threads": row.threads,
        "cpu_percent": percent(row.cpu_share),
        "memory_bytes": row.bytes,
        "resident_share": rounded(row.share),
    })
}

fn kinds(memory: &BTreeMap<MappingKind, NodeBytes>) -> Vec<Value> {
    let kind = |(kind, bytes): (&MappingKind, &NodeBytes)| {
        let by_node: Vec<Value> =
            bytes.iter().map(|(node, bytes)| json!({ "node": node, "bytes": bytes })).collect();
        let sum: u64 = bytes.values().sum();
        json!({ "kind": kind.key(), "bytes": sum, "by_node": by_node })
    };
    memory.iter().map(kind).collect()
}

fn process(session: &WatchSession, process: &Process, has_threads: bool) -> Value {
    let mut value = json!({
        "pid": process.id.pid,
        "start_ticks": process.id.start,
        "name": process.name,
        "state": process.state,
        "user": process.user,
        "threads_total": process.threads_total,
        "nodes_allowed": process.nodes_allowed,
        "cpu_percent": percent(process.cpu_share()),
        "nodes": process.nodes(&session.nodes).iter().map(node).collect::<Vec<_>>(),
        "memory": process.memory.as_ref().map(|it| memory(it, process.memory_age)),
    });
    if has_threads {
        value["threads"] = process.threads.iter().map(thread).collect();
    }
    value
}

fn memory(memory: &ProcessMemory, age: Duration) -> Value {
    let mut value = json!(memory.method);
    value["resident_bytes"] = memory.resident().into();
    value["kinds"] = kinds(&memory.by_kind).into();
    value["policies"] = json!(memory.policies);
    value["huge_transparent_bytes"] = memory.huge_transparent.into();
    value["swapped_bytes"] = memory.swapped.into();
    value["proportional_bytes"] = memory.proportional.into();
    value["age_seconds"] = rounded(age.as_secs_f64()).into();
    value
}

fn thread(thread: &Thread) -> Value {
    json!({
        "tid": thread.tid,
        "name": &*thread.name,
        "state": thread.state,
        "cpu": thread.cpu,
        "node": thread.node,
        "cpus_allowed": &*thread.cpus_allowed,
        "policy": thread.policy.as_deref(),
        "cpu_percent": thread.cpu_share.map(percent),
        "migrations": thread.migrations,
        "switches_voluntary": thread.switches_voluntary,
        "switches_involuntary": thread.switches_involuntary,
        "pages_migrated": thread.pages_migrated,
        "node_preferred": thread.node_preferred,
    })
}

fn percent(share: f64) -> f64 {
    (share * 10_000.0).round() / 100.0
}

/// To the thousandth.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
