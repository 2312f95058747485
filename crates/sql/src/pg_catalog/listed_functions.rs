//! The callable functions, from their own documentation.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::catalog::Session as SessionTrait;
use datafusion::logical_expr::Documentation;

use super::is_catalog_function;
use crate::session_functions::{
    is_lock_function, is_notification_function, is_setting_function, is_transaction_function,
};
use atoll_sql_common::functions::Functions;

/// A function, as it is documented.
pub(crate) struct FunctionRow {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) arguments: String,
    pub(crate) description: String,
    pub(crate) example: Option<String>,
    pub(crate) aliases: String,
}

/// All functions but those of PostgreSQL's catalog.
pub(crate) fn listed_functions(session: &dyn SessionTrait) -> Vec<FunctionRow> {
    let mut rows = BTreeMap::new();
    let functions = Functions::for_session(session);
    let scalars = functions.all_scalar();
    add(&mut rows, "scalar", &scalars, |function| (function.name(), function.documentation()));
    let lambdas = functions.all_higher_order();
    add(&mut rows, "scalar", &lambdas, |function| (function.name(), function.documentation()));
    let aggregates = functions.all_aggregate();
    add(&mut rows, "aggregate", &aggregates, |function| {
        (function.name(), function.documentation())
    });
    let windows = functions.all_window();
    add(&mut rows, "window", &windows, |function| (function.name(), function.documentation()));
    for row in super::rewritten_functions::rows() {
        rows.entry((row.name.clone(), row.kind)).or_insert(row);
    }
    let is_listed = |name: &str| {
        !is_catalog_function(name)
            && !is_lock_function(name)
            && !is_setting_function(name)
            && !is_notification_function(name)
            && !is_transaction_function(name)
    };
    rows.into_values().filter(|row| is_listed(&row.name)).collect()
}

/// The functions of a kind; one with several names is one row.
fn add<F>(
    rows: &mut BTreeMap<(String, &'static str), FunctionRow>,
    kind: &'static str,
    functions: &HashMap<String, Arc<F>>,
    of: impl Fn(&F) -> (&str, Option<&Documentation>),
) {
    let mut names: Vec<&String> = functions.keys().collect();
    names.sort();
    for name in names {
        let (own, documentation) = of(&functions[name]);
        let row = rows.entry((own.to_owned(), kind)).or_insert_with(|| FunctionRow {
            name: own.to_owned(),
            kind,
            arguments: arguments(documentation),
            description: description(documentation),
            example: documentation.and_then(example),
            aliases: String::new(),
        });
        if name != own {
            let between = if row.aliases.is_empty() { "" } else { ", " };
            row.aliases = format!("{}{between}{name}", row.aliases);
        }
    }
}

/// The text between the parentheses.
fn arguments(documentation: Option<&Documentation>) -> String {
    let syntax = documentation.map_or("", |documentation| documentation.syntax_example.as_str());
    let inside = syntax.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')'));
    inside.map_or(String::new(), |(inside, _)| {
        inside.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

/// The first paragraph, in one line.
fn description(documentation: Option<&Documentation>) -> String {
    let text = documentation.map_or("", |documentation| documentation.description.as_str());
    let first = text.trim().split("\n\n").next().unwrap_or_default();
    without_links(&first.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// `[words](address)` as the words.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((_, behind)) = after.split_once(')') else { break };
        let (start, words) = before.rsplit_once('[').unwrap_or(("", before));
        out.push_str(start);
        out.push_str(words);
        rest = behind;
    }
    out + rest
}

/// The call of an example: all of it, or what DataFusion's examples select first.
fn example(documentation: &Documentation) -> Option<String> {
    let text = documentation.sql_example.as_deref()?;
    if !text.contains("```") {
        return Some(text.to_owned());
    }
    let line = text.lines().find_map(|line| line.trim().strip_prefix("> "))?;
    let line = line.trim_end_matches(';');
    let call = line.get(..7).filter(|start| start.eq_ignore_ascii_case("select "));
    Some(call.map_or(line, |_| &line[7..]).trim().to_owned())
}
