//! Statements as OTLP spans in JSON.

use std::time::{Duration, SystemTime};

use atoll_sql::activity::StatementInfo;
use atoll_sql::{OperatorSteps, StatementSteps};
use atoll_sys::SplitMix64;
use serde_json::{Value, json};

/// Span kinds: internal, and server (a request to the process).
const INTERNAL: u32 = 1;
const SERVER: u32 = 2;

/// The status code of a failed span.
const FAILED: u32 = 2;

/// Builds spans and generates their ids.
pub(super) struct Spans {
    random: SplitMix64,
}

/// A span's trace and parent.
#[derive(Clone, Copy)]
struct Place {
    trace: u128,
    parent: u64,
}

impl Spans {
    pub(super) fn new() -> Self {
        // Without random numbers from the kernel, the clock is the seed, which differs between processes too.
        let seed = getrandom::u64().unwrap_or_else(|_| nanoseconds(SystemTime::now()));
        Self { random: SplitMix64::new(seed) }
    }

    /// The request body for these statements.
    pub(super) fn request(&mut self, statements: &[(StatementInfo, StatementSteps)]) -> String {
        let mut spans = Vec::new();
        statements.iter().for_each(|(statement, steps)| self.add(statement, steps, &mut spans));
        let resource = [
            text("service.name", "atoll"),
            text("service.version", env!("CARGO_PKG_VERSION")),
            number("process.pid", u64::from(std::process::id())),
        ];
        let scope = json!({ "scope": { "name": "atoll" }, "spans": spans });
        let of = json!({ "resource": { "attributes": resource }, "scopeSpans": [scope] });
        json!({ "resourceSpans": [of] }).to_string()
    }

    fn add(&mut self, statement: &StatementInfo, steps: &StatementSteps, all: &mut Vec<Value>) {
        let root = self.random.next().max(1);
        let above = of_client(&statement.statement);
        let place = above.unwrap_or_else(|| Place {
            trace: u128::from(self.random.next()) << 64 | u128::from(self.random.next().max(1)),
            parent: 0,
        });
        let begun = statement.begun;
        let ended = begun + statement.took.unwrap_or_default();
        let figures = &statement.figures;
        let verb = verb(&statement.statement);
        let mut attributes = vec![
            text("db.system.name", "atoll"),
            text("db.operation.name", &verb),
            text("db.query.text", &statement.statement),
            text("atoll.user", &statement.user),
            number("atoll.session", u64::from(statement.session)),
            number("atoll.rows_read", figures.rows),
            number("atoll.bytes_local", figures.bytes_local),
            number("atoll.bytes_remote", figures.bytes_remote),
        ];
        let mut span = span(&verb, place, root, (begun, ended));
        span["kind"] = SERVER.into();
        if let Some(state) = statement.error {
            attributes.push(text("db.response.status_code", state));
            span["status"] = json!({ "code": FAILED, "message": state });
        }
        span["attributes"] = attributes.into();
        all.push(span);
        self.add_steps(Place { parent: root, ..place }, (begun, ended), steps, all);
    }

    fn add_steps(
        &mut self,
        below: Place,
        (begun, ended): (SystemTime, SystemTime),
        steps: &StatementSteps,
        all: &mut Vec<Value>,
    ) {
        let mut last = begun;
        for (name, end) in [("parse", steps.parsed), ("plan", steps.planned)] {
            if let Some(end) = end {
                all.push(span(name, below, self.random.next().max(1), (last, end)));
                last = end;
            }
        }
        let execute = self.random.next().max(1);
        all.push(span("execute", below, execute, (last, ended)));
        let mut numbers: Vec<u64> = Vec::with_capacity(steps.operators.len());
        for operator in &steps.operators {
            let number = self.random.next().max(1);
            let above = operator.parent.and_then(|parent| numbers.get(parent)).copied();
            numbers.push(number);
            let place = Place { parent: above.unwrap_or(execute), ..below };
            all.push(of_operator(operator, place, number, (last, ended)));
        }
    }
}

fn of_operator(
    operator: &OperatorSteps,
    place: Place,
    number_of: u64,
    within: (SystemTime, SystemTime),
) -> Value {
    // An operator without times takes those of its parent.
    let begun = operator.begun.unwrap_or(within.0);
    let ended = operator.ended.unwrap_or(within.1).max(begun);
    let mut span = span(&operator.name, place, number_of, (begun, ended));
    let busy = u64::try_from(operator.busy.as_nanos()).unwrap_or(u64::MAX);
    span["attributes"] =
        vec![number("atoll.rows", operator.rows), number("atoll.busy_ns", busy)].into();
    span
}

fn span(name: &str, place: Place, id: u64, (begun, ended): (SystemTime, SystemTime)) -> Value {
    let mut span = json!({
        "traceId": format!("{:032x}", place.trace),
        "spanId": format!("{id:016x}"),
        "name": name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanoseconds(begun).to_string(),
        "endTimeUnixNano": nanoseconds(ended).to_string(),
    });
    if place.parent != 0 {
        span["parentSpanId"] = format!("{:016x}", place.parent).into();
    }
    span
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The first word of a statement.
fn verb(statement: &str) -> String {
    let mut rest = statement.trim_start();
    while let Some(comment) = rest.strip_prefix("/*") {
        rest = comment.split_once("*/").map_or("", |(_, rest)| rest).trim_start();
    }
    let word: String = rest.chars().take_while(char::is_ascii_alphabetic).take(20).collect();
    if word.is_empty() { "STATEMENT".to_owned() } else { word.to_ascii_uppercase() }
}

/// The client's trace and span in a comment: `traceparent='00-trace-span-01'`.
fn of_client(statement: &str) -> Option<Place> {
    let (_, rest) = statement.split_once("traceparent='00-")?;
    let (trace, rest) = rest.split_once('-')?;
    let (parent, _) = rest.split_once('-')?;
    if (trace.len(), parent.len()) != (32, 16) {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
    let parent = u64::from_str_radix(parent, 16).ok().filter(|parent| *parent != 0)?;
    Some(Place { trace, parent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_and_traceparents_are_parsed() {
        assert_eq!(verb("  /* a */ select 1"), "SELECT");
        assert_eq!((verb("(SELECT 1)"), verb("/* a")), ("STATEMENT".into(), "STATEMENT".into()));
        let comment = "/*traceparent='00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'*/";
        let place = of_client(&format!("SELECT 1 {comment}")).expect("a place");
        assert_eq!(format!("{:032x}", place.trace), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(format!("{:016x}", place.parent), "b7ad6b7169203331");
        for wrong in ["", "traceparent='00-", "traceparent='00-a-b-01'", &comment.replace('7', "x")]
        {
            assert!(of_client(wrong).is_none(), "{wrong}");
        }
    }
}
