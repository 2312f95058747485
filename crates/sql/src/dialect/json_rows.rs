//! `json_each` and `json_tree` in FROM: a row for each value in a text.
//!
//! ```text
//! FROM t, json_each(t.j) e      FROM t, LATERAL (SELECT unnest(json_each(t.j))['key'] AS key, …) e
//! ```

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, FunctionArg, FunctionArguments, ObjectName, Select, SetExpr, Subscript,
    TableAlias, TableFactor,
};

use super::tree;

/// The functions, and the columns that they have in FROM.
const FUNCTIONS: [&str; 2] = ["json_each", "json_tree"];
const COLUMNS: [&str; 8] = ["key", "value", "type", "atom", "id", "parent", "fullkey", "path"];

/// Puts subqueries in the place of such calls.
pub(super) fn rewrite(select: &mut Select) {
    for table in &mut select.from {
        let joined = table.joins.iter_mut().map(|join| &mut join.relation);
        std::iter::once(&mut table.relation).chain(joined).for_each(rewrite_factor);
    }
}

fn rewrite_factor(factor: &mut TableFactor) {
    let (name, args, alias) = match factor {
        TableFactor::Table { name, args: Some(args), alias, .. } => (name, &args.args, alias),
        TableFactor::Function { name, args, alias, .. } => (name, &*args, alias),
        _ => return,
    };
    let Some(name) = known(name) else { return };
    let call = call(name, args);
    let alias = alias.take().unwrap_or_else(|| tree::alias(name, &[]));
    *factor = rows(call, alias);
}

fn known(name: &ObjectName) -> Option<&'static str> {
    let name = name.to_string();
    FUNCTIONS.into_iter().find(|known| name.eq_ignore_ascii_case(known))
}

fn call(name: &str, args: &[FunctionArg]) -> Expr {
    let mut call = tree::call(name, vec![]);
    if let Expr::Function(function) = &mut call
        && let FunctionArguments::List(list) = &mut function.args
    {
        list.args = args.to_vec();
    }
    call
}

fn rows(call: Expr, mut alias: TableAlias) -> TableFactor {
    if !alias.columns.is_empty() {
        // The others keep their names.
        let named = alias.columns.len().min(COLUMNS.len());
        alias.columns.extend(tree::alias("", &COLUMNS[named..]).columns);
    }
    let items = COLUMNS.map(|column| {
        let index = tree::text(column.to_owned());
        let field = Expr::CompoundFieldAccess {
            root: Box::new(tree::call("unnest", vec![call.clone()])),
            access_chain: vec![AccessExpr::Subscript(Subscript::Index { index })],
        };
        tree::item(field, column)
    });
    let select = tree::select(items.to_vec(), vec![]);
    tree::derived(tree::query(SetExpr::Select(Box::new(select))), Some(alias))
}
