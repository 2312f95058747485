//! Facts as JSON.

use std::borrow::Borrow;
use std::time::SystemTime;

use serde_json::{Value, json};

use atoll_topology::{Age, Fact, Subject, rfc3339};

/// Facts as an array of objects, in order. The keys are stable: keys may be added, but never change their meaning.
/// Every object has all keys.
///
/// | Key | Value |
/// |---|---|
/// | `subject` | `machine`, `package`, `node`, `domain`, `link`, `path` or `cpus` |
/// | `id` | of the package, node, domain or link; null for the others |
/// | `from`, `to` | of a path the nodes of the cpus and of the memory, of cpus the two; null for the others |
/// | `quantity`, `value`, `unit` | the figure, as named by [`Quantity`](atoll_topology::Quantity) |
/// | `threads`, `load` | the conditions: threads, GB/s of concurrent load (or null) |
/// | `min`, `max`, `runs` | the spread of repetitions (or null) |
/// | `source` | `measured`, `observed`, `discovered`, `declared`, `synthetic` or `assumed` |
/// | `origin` | the file, program or paper that states it |
/// | `at` | when it was measured or read, RFC 3339 in UTC (or null) |
/// | `age_seconds` | whole seconds from `at` to `now` (or null) |
pub fn facts_json<F: Borrow<Fact>>(facts: impl IntoIterator<Item = F>, now: SystemTime) -> Value {
    facts.into_iter().map(|fact| fact_json(fact.borrow(), now)).collect()
}

fn fact_json(fact: &Fact, now: SystemTime) -> Value {
    let (subject, id, from, to) = subject(fact.subject);
    json!({
        "subject": subject,
        "id": id,
        "from": from,
        "to": to,
        "quantity": fact.quantity.name(),
        "value": number(fact.value),
        "unit": fact.quantity.unit(),
        "threads": fact.conditions.threads,
        "load": fact.conditions.load.map(number),
        "min": fact.spread.map(|spread| number(spread.min)),
        "max": fact.spread.map(|spread| number(spread.max)),
        "runs": fact.spread.map(|spread| spread.runs),
        "source": fact.source,
        "origin": fact.origin,
        "at": fact.at.map(rfc3339),
        "age_seconds": fact.at.map(|at| Age::since(at, now).0.as_secs()),
    })
}

/// Kind, id, and the two ids of a pair.
fn subject(subject: Subject) -> (&'static str, Option<u32>, Option<u32>, Option<u32>) {
    match subject {
        Subject::Machine => ("machine", None, None, None),
        Subject::Package(id) => ("package", Some(id.0), None, None),
        Subject::Node(id) => ("node", Some(id.0), None, None),
        Subject::Domain(id) => ("domain", Some(id.0), None, None),
        Subject::Link(id) => ("link", Some(id.0), None, None),
        Subject::Path { from, to } => ("path", None, Some(from.0), Some(to.0)),
        Subject::CpuPair { from, to } => ("cpus", None, Some(from.0), Some(to.0)),
    }
}

/// Whole numbers without a fraction, so that bytes look like bytes.
fn number(value: f64) -> Value {
    const EXACT: f64 = (1u64 << 53) as f64;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return json!(value as i64);
    }
    json!(value)
}
