//! `/api/explain`: a plan as a tree, parsed from the text of EXPLAIN, which is returned too.
//!
//! ```text
//! GroupExec: gby=[a], homes=[0,1], variant=local, metrics=[output_rows=7, elapsed_compute=1.2ms]
//! └ two spaces per level, then  NAME[: detail, key=value, …][, metrics=[name=value, …]]
//! ```

use std::sync::Arc;

use atoll_sql::begins_with;
use axum::extract::State;
use serde_json::{Map, Value, json};

use super::answer::{Answer, ApiError, Fields};
use super::login::Caller;
use super::run::{RequestSession, Results};
use crate::shared::Shared;

/// Keys of a node that are shown separately from its details.
const SHOWN_APART: [&str; 3] = ["homes", "variant", "reason"];

/// Plans a statement; with `analyze`, also runs it.
pub(super) async fn explain(
    State(server): State<Arc<Shared>>,
    caller: Caller,
    fields: Fields,
) -> Result<Answer, ApiError> {
    let sql = fields.text("sql")?;
    let before = match (begins_with(sql, &["explain"]), fields.flag("analyze")) {
        (true, _) => "",
        (false, true) => "EXPLAIN ANALYZE ",
        (false, false) => "EXPLAIN ",
    };
    let session = RequestSession::begin(&server, &caller, sql)?;
    if session.count(sql)? != 1 {
        return Err(ApiError::bad("expected one statement; select the one to explain"));
    }
    let mut results = Results::default();
    let ran = session.run(&format!("{before}{sql}"), &mut results).await;
    let took = ran.map_err(|mut error| {
        error.position = error.position.map(|at| at.saturating_sub(before.len()).max(1));
        error
    })?;
    let rows = results.all.first().map(|result| result["rows"].clone()).unwrap_or_default();
    let rows = rows.as_array().cloned().unwrap_or_default();
    let cell = |row: &Value, at: usize| row[at].as_str().unwrap_or_default().to_owned();
    let plan = rows.iter().find(|row| cell(row, 0).to_lowercase().contains("plan"));
    let text = plan.map(|row| cell(row, 1)).unwrap_or_default();
    let others = rows.iter().filter(|row| plan != Some(*row)).map(|row| json!([row[0], row[1]]));
    Ok(Answer(json!({
        "nodes": nodes(&text),
        "text": text,
        "notes": others.collect::<Vec<_>>(),
        "seconds": took.as_secs_f64(),
    })))
}

/// The nodes of a plan, each after its parent.
fn nodes(text: &str) -> Vec<Value> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let bare = line.trim_start_matches(' ');
        let depth = (line.len() - bare.len()) / 2;
        let deepest = lines.last().map_or(0, |(depth, _)| depth + 1);
        let name = bare.split([':', ',']).next().unwrap_or_default();
        let is_node = depth <= deepest && is_operator(name);
        match lines.last_mut() {
            // The rest of a text that contains line breaks.
            Some((_, last)) if !is_node => {
                last.push('\n');
                last.push_str(line);
            }
            _ => lines.push((depth, bare.to_owned())),
        }
    }
    lines.iter().map(|(depth, line)| node(*depth, line)).collect()
}

/// Whether this is the name of an operator: they share a suffix.
fn is_operator(name: &str) -> bool {
    name.ends_with("Exec")
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn node(depth: usize, line: &str) -> Value {
    let (line, metrics) = match line.rsplit_once("metrics=[") {
        Some((before, rest)) => (before.trim_end_matches([' ', ',']), rest.trim_end_matches(']')),
        None => (line, ""),
    };
    let end = line.find([':', ',']).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let mut node = Map::new();
    let mut details = Vec::new();
    for part in parts(rest.trim_start_matches([':', ',', ' '])) {
        match part.split_once('=').filter(|(key, _)| SHOWN_APART.contains(key)) {
            Some((key, value)) => drop(node.insert(key.to_owned(), value.into())),
            None => details.push(part),
        }
    }
    let metrics = parts(metrics).into_iter().filter_map(|metric| metric.split_once('='));
    node.insert("depth".to_owned(), depth.into());
    node.insert("name".to_owned(), name.into());
    node.insert("details".to_owned(), details.join(", ").into());
    let metrics = metrics.map(|(name, value)| (name.to_owned(), value.into()));
    node.insert("metrics".to_owned(), Value::Object(metrics.collect()));
    node.into()
}

/// Splits at commas outside of brackets and quotes.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut open, mut quote) = (0_usize, None);
    for (at, letter) in text.char_indices() {
        match (letter, quote) {
            (_, Some(mark)) => quote = quote.filter(|_| letter != mark),
            ('\'' | '"', None) => quote = Some(letter),
            ('(' | '[' | '{', None) => open += 1,
            (')' | ']' | '}', None) => open = open.saturating_sub(1),
            (',', None) if open == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_a_tree_of_operators() {
        let text = "\
GroupExec: gby=[a, b], aggr=[count(1)], homes=[0,1], variant=local, reason=7 groups of 20 rows expected
  CoalescePartitionsExec, metrics=[output_rows=31.65 K, elapsed_compute=1.2ms]
    FilterExec: x = 'a, [b
  Not: a node', metrics=[]
  ScanExec: table=t, homes=[0,1], metrics=[output_rows=7, bytes_local=1.34 M, bytes_remote=0]";
        let found = nodes(text);
        assert_eq!(found.len(), 4, "{found:?}");
        assert_eq!(found[0]["homes"], "[0,1]");
        assert_eq!(found[0]["variant"], "local");
        assert_eq!(found[0]["reason"], "7 groups of 20 rows expected");
        assert_eq!(found[0]["details"], "gby=[a, b], aggr=[count(1)]");
        assert_eq!(found[1]["name"], "CoalescePartitionsExec");
        assert_eq!(found[1]["metrics"]["output_rows"], "31.65 K");
        assert_eq!(found[2]["depth"], 2);
        assert_eq!(found[2]["details"], "x = 'a, [b\n  Not: a node'");
        assert_eq!(found[3]["metrics"]["bytes_remote"], "0");
    }

    #[test]
    fn any_text_is_parsed() {
        for text in
            ["", "\n\n", "  ", "metrics=[", "a: ]]]', metrics=[[", "X:", "ä\n  ä", "X, metrics=[=]"]
        {
            let _ = nodes(text);
        }
    }
}
