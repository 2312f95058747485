//! Rewrites common SQL that DataFusion or its parser does not support into forms that they do.
//!
//! ```text
//! tokens ─words─▶ parser ─▶ syntax tree ─steps─▶ what DataFusion plans ─relations─▶ plan
//! ```
//!
//! | file | SQL | rewritten as |
//! |---|---|---|
//! | `words` | `STRUCT(a INT)`, `a ASOF JOIN b`, `FROM (SUMMARIZE t)` | tokens that the parser reads |
//! | `asof` | `a ASOF JOIN b ON …` | a window over both sides, and two joins |
//! | `array_text` | `'{1,2}'::INT[]` | `ARRAY['1', '2']::INT[]` |
//! | `arrays` | `ARRAY[t.a, 2]` | `make_array(t.a, 2)` |
//! | `aliases` | `SELECT x: 1` | `SELECT 1 AS x` |
//! | `operators` | `7 // 2`, `a ^@ 'b'` | calls of functions |
//! | `by_name` | `a UNION BY NAME b` | a relation, whose columns are paired by `relations` |
//! | `catalog` | `'t'::regclass`, `ARRAY(SELECT a FROM t)` | calls of functions |
//! | `calls` | `struct_pack(a := 1)`, `if(a, b, c)`, `x::JSON` | calls of functions, CASE |
//! | `grouped_rows` | `SELECT a, unnest(l) FROM t GROUP BY a, l` | the same with a key that ends its uniqueness |
//! | `lambda` | `x -> x + 1` as an argument | a lambda |
//! | `names` | columns without names | names by their texts, before all other steps |
//! | `postgres_names` | the same, for PostgreSQL's clients | PostgreSQL's names, for `names` |
//! | `whole_numbers` | `SELECT 1`, `CASE WHEN a THEN 1 ELSE 0 END` | INTEGER where a statement returns it |
//! | `comprehension` | `[x + 1 FOR x IN l IF x > 0]` | `list_transform(list_filter(l, …), …)` |
//! | `json_marks` | `SELECT (SELECT json_object(…))` | `SELECT json_checked((SELECT …))` |
//! | `json_rows` | `FROM t, jsonb_each(t.j)` | subqueries of the lists that these functions give |
//! | `lateral` | `FROM t, unnest(t.l)`, `FROM lower(t.a)`, `FROM t, (SELECT t.a)`, WITH ORDINALITY | LATERAL subqueries |
//! | `list_rows` | `string_to_table(a, ',')`, `SELECT generate_series(1, 3)` | `unnest(string_to_array(a, ','))`, … |
//! | `like` | `a LIKE 'x/_%' ESCAPE '/'` | `a LIKE 'x\_%'` |
//! | `object_names` | `'{int}'::regtype[]`, `'x' || t::regclass` | calls of functions |
//! | `numerics` | `1.25::NUMERIC`, `n::NUMERIC` | casts to a DECIMAL of the value's digits |
//! | `outer_aggregates` | `… WHERE w < sum(t.v)` | a subquery, whose owner `rewrite` finds |
//! | `percent` | `LIMIT 40%` | a relation that counts its rows |
//! | `reused` | `SELECT a + 1 AS b, b * 2` | the expression in place of its alias; `needs` supplies the columns |
//! | `row_aliases` | `SELECT unnest(l), upper(a) AS a FROM t` | a query below, whose columns have other names |
//! | `sampled` | `FROM t USING SAMPLE 10%` | `FROM (FROM t) TABLESAMPLE (10 PERCENT)` |
//! | `ties` | `FETCH FIRST 3 ROWS WITH TIES` | `QUALIFY rank() OVER (…) <= 3` |
//! | `times` | `INTERVAL '1:30' HOUR TO MINUTE`, `t AT TIME ZONE z`, `(a, b) OVERLAPS (c, d)` | literals and calls that DataFusion supports |
//! | `tuples` | `(a, b) < (1, 2)`, `ROW(a, b) IN (…)` | comparisons of the fields |
//! | `positional` | `a POSITIONAL JOIN b` | a join on the numbers of the rows |
//! | `forms` | `PIVOT t ON a`, `SUMMARIZE t`, `DESCRIBE t` | queries of relations |
//! | `pivot`, `unpivot` | `PIVOT (…)`, `UNPIVOT (…)` | aggregates with filters; lists that are unnested |
//! | `precisions` | `x::TIMESTAMPTZ(2)`, `x::INTERVAL(3)` | a cast that is rounded |
//! | `quantified` | `x = ANY (list)` | an operator that `PlanCalls` plans |
//! | `refused` | `CALL …`, `CREATE TRIGGER …` | errors that name the alternative |
//! | `catalog_statements` | `SHOW TABLES`, `PRAGMA table_info('t')` | queries of the catalog, or errors that name the alternative |
//! | `summarize` | SUMMARIZE and DESCRIBE | aggregates of all columns; their names and types |
//! | `columns_call`, `stars` | `COLUMNS('^a') + 1`, `* RENAME (a AS b)` | an expression for each column; `needs` supplies the names |
//! | `using` | `SELECT * FROM a FULL JOIN b USING (k)` | `SELECT coalesce(a.k, b.k) AS k, …`; `needs` supplies the columns |
//! | `types` | `MAP(VARCHAR, INT)`, `TIMESTAMP_S`, `UNION(…)` | Arrow types, or an error that names one |
//!
//! The steps run in the pass over the tree that also looks for clauses without an effect (`parse::clauses`),
//! outermost first: what a step makes is visited as well. A step that needs to know columns leaves a table
//! function whose name begins with `$`, which no one can type: [`Relations`] plans it, where the names
//! around it are known.

mod columns;
mod expressions;
mod relations;
mod statements;
pub mod tree;
mod words;

use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{Expr, Query, Select, Statement, TableFactor};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

pub use columns::names::{folded, name_columns, shown};
pub use columns::needs::{Answer, Expansion, Question};
pub(crate) use columns::order_by_all::order_by_all;
pub use expressions::calls::{as_texts, check_of_type, cut_to_length};
pub(crate) use expressions::numerics::settle_recursive;
pub(crate) use expressions::operators::{ADJACENT, infix};
pub(crate) use expressions::outer_aggregates::is_aggregate;
pub use expressions::quantified::is_quantified;
pub use expressions::types::SqlTypes;
pub use expressions::types::type_name as column_type;
pub use relations::percent::share;
pub use relations::planned::Relations;
pub(crate) use relations::ties::with_ties;
pub use statements::forms::described;
pub(crate) use statements::refused::refuse_statement;
pub use statements::summarize::ColumnNotes;
pub use tree::{call, query as query_of_body, query_of, quoted};
pub(crate) use words::read as read_words;

use columns::{aliases, table_stars};
use expressions::{
    array_text, arrays, bare_calls, calls, catalog, comprehension, json_marks, lambda, like,
    numerics, object_names, operators, outer_aggregates, precisions, quantified, times, tuples,
    types,
};
use relations::{
    by_name, grouped_rows, json_rows, lateral, list_rows, percent, positional, row_aliases,
    sampled, waiting_values,
};
use statements::{catalog_statements, forms};

/// The name that `words` gives the variables of a session.
pub const VARIABLE: &str = "$variable";

/// The name that `words` gives the columns of INSERT … BY NAME.
pub const BY_NAME: &str = "$by_name";

/// The name that `words` gives the placeholder for the columns of another table.
pub const LIKE: &str = "$like";

/// The name that `words` gives the partition of INSERT … OVERRIDING SYSTEM VALUE.
pub const OVERRIDING_SYSTEM: &str = "$overriding_system";
/// The column after which those of INCLUDE follow in the list of a PRIMARY KEY or UNIQUE constraint.
pub const INCLUDE: &str = "$include";

/// The comment of a column whose UNIQUE is NULLS NOT DISTINCT.
pub const NULLS_NOT_DISTINCT: &str = "$nulls_not_distinct";
/// How the only column of an ON CONFLICT begins whose target is more than columns; the text of the target follows.
pub const CONFLICT_TARGET: &str = "$conflict_target";
/// Likewise of OVERRIDING USER VALUE.
pub const OVERRIDING_USER: &str = "$overriding_user";

/// The name that `words` gives the column which DO NOTHING of MERGE sets.
pub const DO_NOTHING: &str = "$do_nothing";

/// The name that `words` gives the column of DEFAULT VALUES of MERGE.
pub const DEFAULT_VALUES: &str = "$default_values";

/// The steps on a statement.
pub(crate) fn rewrite_statement(statement: &mut Statement, state: &SessionState) -> Result<()> {
    types::widen_columns(statement);
    catalog_statements::rewrite(statement, state)?;
    calls::rewrite_statement(statement);
    numerics::rewrite_statement(statement);
    Ok(())
}

/// The steps on a query: everything around and between its SELECTs.
pub(crate) fn rewrite_query(query: &mut Query) -> Result<()> {
    by_name::rewrite(query);
    calls::rewrite_values(query);
    waiting_values::rewrite(query);
    lateral::name_columns(query);
    row_aliases::rewrite(query);
    percent::rewrite(query)
}

/// The steps on one SELECT.
pub(crate) fn rewrite_select(select: &mut Select, state: &SessionState) -> Result<()> {
    aliases::rewrite(select);
    grouped_rows::rewrite(select);
    catalog::rewrite_select(select);
    json_marks::rewrite(select);
    json_rows::rewrite(select);
    lateral::rewrite(select, state);
    list_rows::rewrite_select(select);
    outer_aggregates::rewrite(select, state);
    sampled::rewrite(select);
    table_stars::rewrite(select);
    tuples::rewrite_select(select)?;
    select.from.iter_mut().try_for_each(positional::rewrite)
}

/// The steps on relations in FROM.
pub(crate) fn rewrite_table(factor: &mut TableFactor) -> Result<()> {
    forms::rewrite(factor);
    catalog::rewrite_table(factor);
    Ok(())
}

/// Parses Atoll's own forms at the beginning of an expression.
pub(crate) fn prefix(parser: &mut Parser) -> Option<std::result::Result<Expr, ParserError>> {
    lambda::parse(parser)
        .or_else(|| aliases::prefix(parser))
        .or_else(|| forms::prefix(parser))
        .or_else(|| comprehension::prefix(parser))
        .or_else(|| bare_calls::prefix(parser))
        .or_else(|| quantified::prefix(parser))
        .or_else(|| calls::prefix(parser))
}

/// Returns an expression after these steps, for those that are added to a statement that has taken them.
///
/// # Errors
/// As those of the statement.
pub fn rewritten(mut expr: Expr) -> Result<Expr> {
    rewrite_expr(&mut expr)?;
    Ok(expr)
}

/// The steps on an expression.
pub(crate) fn rewrite_expr(expr: &mut Expr) -> Result<()> {
    if let Expr::Cast { data_type, .. } = expr {
        types::widen(data_type);
    } else if let Expr::TypedString(typed) = expr {
        types::widen(&mut typed.data_type);
    }
    let length = calls::take_length(expr);
    let digits = precisions::take(expr);
    numerics::rewrite(expr);
    times::rewrite(expr)?;
    operators::rewrite(expr)?;
    tuples::rewrite(expr)?;
    array_text::rewrite(expr);
    quantified::rewrite(expr);
    like::rewrite(expr);
    lambda::rewrite(expr);
    object_names::rewrite(expr);
    catalog::rewrite(expr);
    list_rows::rewrite(expr);
    calls::rewrite(expr);
    arrays::rewrite(expr);
    if let Some(length) = length {
        calls::cut(expr, length);
    }
    if let Some(digits) = digits {
        precisions::round(expr, digits);
    }
    Ok(())
}
