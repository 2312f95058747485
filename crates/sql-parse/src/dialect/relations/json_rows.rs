//! Functions in FROM that return a row with several columns for each value in a JSON text.
//!
//! ```text
//! FROM t, json_each(t.j) e      FROM t, LATERAL (SELECT unnest(json_each(t.j))['key'] AS key, …) e
//! FROM t, jsonb_each(t.j) e     FROM t, LATERAL (SELECT unnest(json_members(jsonb_checked(t.j)))['key'] AS key, …) e
//! ```
//!
//! `json_each` is DuckDB's, whose first columns are those of PostgreSQL's function.

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, ObjectName, Select, SetExpr, Subscript, TableAlias, TableFactor,
};

use crate::dialect::relations::{lateral, list_rows};
use crate::dialect::tree;

/// A function in FROM.
struct JsonRows {
    name: &'static str,
    /// The function that returns the list of its rows.
    list: &'static str,
    columns: &'static [&'static str],
    /// The function that marks the column `value` as JSON.
    mark: Option<&'static str>,
}

const ALL: &[&str] = &["key", "value", "type", "atom", "id", "parent", "fullkey", "path"];
const PAIR: &[&str] = &["key", "value"];

const FUNCTIONS: [JsonRows; 5] = [
    JsonRows { name: "json_each", list: "json_each", columns: ALL, mark: None },
    JsonRows { name: "json_tree", list: "json_tree", columns: ALL, mark: None },
    JsonRows { name: "json_each_text", list: "json_member_texts", columns: PAIR, mark: None },
    JsonRows {
        name: "jsonb_each",
        list: "json_members",
        columns: PAIR,
        mark: Some("jsonb_checked"),
    },
    JsonRows { name: "jsonb_each_text", list: "json_member_texts", columns: PAIR, mark: None },
];

/// Replaces such calls by subqueries.
pub(in crate::dialect) fn rewrite(select: &mut Select) {
    for table in &mut select.from {
        let joined = table.joins.iter_mut().map(|join| &mut join.relation);
        std::iter::once(&mut table.relation).chain(joined).for_each(rewrite_factor);
    }
}

fn rewrite_factor(factor: &mut TableFactor) {
    let (name, args, with_ordinality, alias) = match factor {
        TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. } => {
            (name, &args.args, *with_ordinality, alias)
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            (name, &*args, *with_ordinality, alias)
        }
        _ => return,
    };
    let Some(known) = named(name) else { return };
    let list = list_rows::list_of(known.name, known.list, args);
    let alias = alias.take().unwrap_or_else(|| tree::alias(known.name, &[]));
    *factor = known.rows(list, alias, with_ordinality);
}

fn named(name: &ObjectName) -> Option<&'static JsonRows> {
    let name = name.to_string();
    FUNCTIONS.iter().find(|known| name.eq_ignore_ascii_case(known.name))
}

impl JsonRows {
    fn rows(&self, list: Expr, mut alias: TableAlias, with_ordinality: bool) -> TableFactor {
        if !alias.columns.is_empty() {
            // The others keep their names.
            let ordinality: &[&str] = if with_ordinality { &["ordinality"] } else { &[] };
            let all: Vec<&str> = self.columns.iter().chain(ordinality).copied().collect();
            let named = alias.columns.len().min(all.len());
            alias.columns.extend(tree::alias("", &all[named..]).columns);
        }
        let column = |column: &&str| tree::item(self.column(&list, column), column);
        let mut items: Vec<_> = self.columns.iter().map(column).collect();
        if with_ordinality {
            items.push(lateral::numbers_of(vec![list.clone()]));
        }
        let select = tree::select(items, vec![]);
        tree::derived(tree::query(SetExpr::Select(Box::new(select))), Some(alias))
    }

    fn column(&self, list: &Expr, column: &str) -> Expr {
        let index = tree::text(column.to_owned());
        let field = Expr::CompoundFieldAccess {
            root: Box::new(tree::call("unnest", vec![list.clone()])),
            access_chain: vec![AccessExpr::Subscript(Subscript::Index { index })],
        };
        match self.mark.filter(|_| column == "value") {
            Some(mark) => tree::call(mark, vec![field]),
            None => field,
        }
    }
}
