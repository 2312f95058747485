//! Functions that give a row for each element of a list.
//!
//! ```text
//! SELECT string_to_table('a,b', ',')              SELECT unnest(string_to_array('a,b', ','))
//! FROM t, regexp_split_to_table(t.a, ' ') w       FROM t, LATERAL (SELECT unnest(regexp_split_to_array(t.a, ' '))) w(w)
//! ```

use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName};

use super::tree;

/// The functions, and those that give the list.
const FUNCTIONS: [(&str, &str); 2] =
    [("regexp_split_to_table", "regexp_split_to_array"), ("string_to_table", "string_to_array")];

/// The function that gives the list of which a function gives the rows.
pub(super) fn list_of(name: &ObjectName) -> Option<&'static str> {
    let name = name.to_string();
    let found = FUNCTIONS.iter().find(|(rows, _)| name.eq_ignore_ascii_case(rows));
    found.map(|(_, list)| *list)
}

/// Rewrites a call outside of FROM.
pub(super) fn rewrite(expr: &mut Expr) {
    let Expr::Function(function) = expr else { return };
    let Some(list) = list_of(&function.name) else { return };
    let mut call = function.clone();
    call.name = ObjectName::from(vec![Ident::new(list)]);
    *expr = tree::call("unnest", vec![Expr::Function(call)]);
}
