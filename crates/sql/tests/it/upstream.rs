//! Defects of plain DataFusion that files of Atoll work around: each still exists.
//!
//! A probe that fails indicates that an upstream version is correct: the file that it names, or the part of it about
//! this defect, can go. `docs/upstream.md` lists all workarounds.

use atoll_sql::arrow::array::RecordBatch;
use atoll_sql::datafusion::error::Result;
use atoll_sql::datafusion::prelude::SessionContext;

use crate::common::texts;

/// The current answer of DataFusion to the last statement of a probe.
#[derive(Debug)]
enum Today {
    /// These rows, whose values are joined by spaces.
    Rows(&'static [&'static str]),
    /// An error whose text has this part.
    Error(&'static str),
}

use Today::{Error, Rows};

/// The defect, the file below `crates/` that works around it and its thread, if any; the statements; and the current
/// answer of DataFusion.
type Probe = (&'static str, &'static str, &'static [&'static str], Today);

const PROBES: [Probe; 33] = [
    (
        "the min of nothing but infinities is the largest finite float where there are groups",
        "functions/src/extremes/ordered.rs, https://github.com/apache/datafusion/issues/24432",
        &["SELECT min(x) < CAST('inf' AS DOUBLE) FROM (VALUES (1, CAST('inf' AS DOUBLE)), \
           (1, CAST('inf' AS DOUBLE))) AS t(k, x) GROUP BY k"],
        Rows(&["true"]),
    ),
    (
        "lists of lists have no min",
        "functions/src/extremes/nested.rs, https://github.com/apache/datafusion/issues/24937",
        &["SELECT min(x) FROM (VALUES ([[1, 2]]), ([[1, 3]])) AS t(x)"],
        Error("Uncomparable values"),
    ),
    (
        "any_value passes over its ORDER BY",
        "functions/src/ordered/any_value.rs, https://github.com/apache/datafusion/issues/9924",
        &["SELECT any_value(x ORDER BY x DESC) FROM (VALUES (1), (2)) AS t(x)"],
        Rows(&["1"]),
    ),
    (
        "an element that is NULL is not equal, rather than unknown",
        "functions/src/comparison/quantified.rs, https://github.com/apache/datafusion/issues/19288",
        &["SELECT 2 = ANY(l) FROM (VALUES ([1, NULL])) AS t(l)"],
        Rows(&["false"]),
    ),
    (
        "a sum over a moving frame forgets 1 beside 1e308",
        "functions/src/framed/mod.rs",
        &["SELECT s FROM (SELECT i, \
           sum(x) OVER (ORDER BY i ROWS BETWEEN CURRENT ROW AND CURRENT ROW) AS s \
           FROM (VALUES (1, 1e308), (2, 1.0)) AS t(i, x)) AS q WHERE i = 2"],
        Rows(&["0.0"]),
    ),
    (
        "a filter stays what it was when a projection moves below a sort-merge join",
        "sql-exec/src/join/merge.rs, https://github.com/apache/datafusion/issues/24414",
        &[
            "SET datafusion.optimizer.prefer_hash_join = false",
            "SET datafusion.optimizer.repartition_joins = true",
            "SET datafusion.execution.target_partitions = 2",
            "SELECT t1.column2 AS a, t2.column2 AS b FROM (VALUES (100, 1, 0)) t1 \
             JOIN (VALUES (10, 1)) t2 ON t1.column2 = t2.column2 AND t1.column1 > t2.column1",
        ],
        Rows(&[]),
    ),
    (
        "TABLESAMPLE is read and forgotten",
        "sql-exec/src/sample/mod.rs, https://github.com/apache/datafusion/issues/24754",
        &[
            "CREATE TABLE t (a INT) AS VALUES (1), (2), (3)",
            "SELECT count(*) FROM t TABLESAMPLE SYSTEM (0 PERCENT)",
        ],
        Rows(&["3"]),
    ),
    (
        "IS DISTINCT FROM takes AND for a part of its right side",
        "sql-parse/src/parse/dialect.rs, https://github.com/apache/datafusion-sqlparser-rs/pull/2436",
        &["SELECT true IS DISTINCT FROM false AND false"],
        Rows(&["true"]),
    ),
    (
        "ORDER BY ALL is forgotten after anything but a SELECT",
        "sql-parse/src/dialect/columns/order_by_all.rs",
        &["SET datafusion.sql_parser.dialect = 'DuckDB'", "VALUES (2), (1) ORDER BY ALL"],
        Rows(&["2", "1"]),
    ),
    (
        "t.* of a table that is named with its schema is not found",
        "sql-parse/src/dialect/columns/table_stars.rs",
        &["CREATE TABLE t (a INT) AS VALUES (1)", "SELECT t.* FROM public.t"],
        Error("Invalid qualifier t"),
    ),
    (
        "the column of USING is the left one, also where that is padded",
        "sql-parse/src/dialect/relations/using.rs, https://github.com/apache/datafusion/issues/22881",
        &[
            "CREATE TABLE a (k INT, x INT) AS VALUES (1, 10)",
            "CREATE TABLE b (k INT, y INT) AS VALUES (4, 400)",
            "SELECT k FROM a FULL JOIN b USING (k) ORDER BY k NULLS LAST",
        ],
        Rows(&["1", "NULL"]),
    ),
    (
        "DISTINCT is forgotten by covar_samp",
        "sql-parse/src/parse/clauses/function.rs, https://github.com/apache/datafusion/issues/2406",
        &["SELECT covar_samp(DISTINCT x, y) < 0.9 FROM (VALUES (1, 1), (1, 1), (2, 3)) AS t(x, y)"],
        Rows(&["true"]),
    ),
    (
        "ORDER BY knows no named window",
        "sql-parse/src/parse/clauses/windows.rs",
        &["SELECT a FROM (VALUES (1), (2)) AS t(a) WINDOW w AS (ORDER BY a DESC) \
           ORDER BY row_number() OVER w"],
        Error("Invalid function 'row_number'"),
    ),
    (
        "both sides of AND are computed for all rows",
        "sql-semantics/src/arithmetic/guard.rs, https://github.com/apache/datafusion/issues/8927",
        &["SELECT v > 0 AND 1 / v < 1 FROM (VALUES (1), (2), (3), (0), (0)) AS t(v)"],
        Error("Divide by zero"),
    ),
    (
        "integers wrap around",
        "sql-semantics/src/arithmetic/mod.rs, https://github.com/apache/datafusion/issues/3520",
        &["SELECT 9223372036854775807 + 1"],
        Rows(&["-9223372036854775808"]),
    ),
    (
        "EXCEPT ALL counts no copies",
        "sql-semantics/src/rewrite/copies.rs, https://github.com/apache/datafusion/issues/12956",
        &["SELECT a FROM (VALUES (1), (1)) AS t(a) EXCEPT ALL SELECT a FROM (VALUES (1)) AS u(a)"],
        Rows(&[]),
    ),
    (
        "a filter without columns sinks below an aggregate without keys",
        "sql-semantics/src/rewrite/contradictions.rs",
        &["SELECT count(*) FROM (VALUES (1)) AS t(a) \
           HAVING (SELECT max(b) FROM (VALUES (2)) AS u(b)) > 100"],
        Rows(&["0"]),
    ),
    (
        "a volatile filter sinks below an aggregate without keys",
        "sql-semantics/src/volatile/mod.rs, https://github.com/apache/datafusion/issues/7876",
        &["SELECT count(*) FROM (VALUES (1)) AS t(a) HAVING uuid() = ''"],
        Rows(&["0"]),
    ),
    (
        "a correlated subquery without an aggregate is refused",
        "sql-semantics/src/rewrite/dependent/mod.rs, https://github.com/apache/datafusion/issues/16137",
        &["SELECT (SELECT u.b FROM (VALUES (1, 2), (3, 4)) AS u(a, b) WHERE u.a = t.a) \
           FROM (VALUES (1)) AS t(a)"],
        Error("Correlated scalar subquery must be aggregated"),
    ),
    (
        "a subquery without rows is not NULL where its column never is",
        "sql-semantics/src/rewrite/empty_subqueries.rs, https://github.com/apache/datafusion/issues/24513",
        &["SELECT (SELECT 1 WHERE false) IS NULL"],
        Rows(&["false"]),
    ),
    (
        "IN over two lists is false where NULL is looked for",
        "sql-semantics/src/rewrite/in_lists.rs, https://github.com/apache/datafusion/issues/24246",
        &["SELECT x IN (1, 2) AND x IN (3, 4) FROM (VALUES (CAST(NULL AS BIGINT))) AS t(x)"],
        Rows(&["false"]),
    ),
    (
        "NOT IN beside OR takes NULL for false",
        "sql-semantics/src/rewrite/membership.rs, https://github.com/apache/datafusion/issues/21309",
        &[
            "CREATE TABLE t1 (id INT) AS VALUES (1), (2)",
            "CREATE TABLE t2 (id INT) AS VALUES (1), (NULL)",
            "SELECT id FROM t1 WHERE id NOT IN (SELECT id FROM t2) OR id < 0 ORDER BY id",
        ],
        Rows(&["2"]),
    ),
    (
        "a constant is not in a subquery that has a NULL",
        "sql-semantics/src/rewrite/subqueries.rs, https://github.com/apache/datafusion/issues/25340",
        &[
            "CREATE TABLE t1 (id INT) AS VALUES (1), (2)",
            "CREATE TABLE t2 (id INT) AS VALUES (1), (NULL)",
            "SELECT id FROM t1 WHERE 3 NOT IN (SELECT id FROM t2) ORDER BY id",
        ],
        Rows(&["1", "2"]),
    ),
    (
        "NULL in a list is smaller than any element",
        "sql-semantics/src/rewrite/nested_order.rs, https://github.com/apache/datafusion/pull/21226",
        &["SELECT l < [1] FROM (VALUES ([CAST(NULL AS BIGINT)])) AS t(l)"],
        Rows(&["true"]),
    ),
    (
        "NULLS LAST puts NULL in a list last too",
        "sql-semantics/src/rewrite/keys.rs",
        &[
            "SELECT id FROM (VALUES (1, [CAST(NULL AS BIGINT)]), (2, [3])) AS t(id, l) ORDER BY l DESC NULLS LAST",
        ],
        Rows(&["2", "1"]),
    ),
    (
        "NULL does not match any text, rather than being unknown",
        "sql-semantics/src/rewrite/any_text.rs, https://github.com/apache/datafusion/issues/24379",
        &["SELECT s ~ '.*' FROM (VALUES (CAST(NULL AS VARCHAR))) AS t(s)"],
        Rows(&["false"]),
    ),
    (
        "ANY over the table around compares a column with itself",
        "sql-semantics/src/rewrite/quantified.rs, https://github.com/apache/datafusion/issues/25258",
        &[
            "CREATE TABLE emp (id INT, salary INT) AS VALUES (1, 5000), (2, 6000), (3, 7000)",
            "SELECT id FROM emp WHERE salary > ANY (SELECT salary FROM emp WHERE id <= 2)",
        ],
        Rows(&[]),
    ),
    (
        "rows of VALUES are computed before their subqueries",
        "sql-semantics/src/rewrite/values.rs",
        &["SELECT a FROM (VALUES (1), ((SELECT 2))) AS t(a)"],
        Error("before the subquery was executed"),
    ),
    (
        "the key of a grouping is unique though unnest multiplies its rows",
        "sql-semantics/src/rewrite/unnested_keys.rs, sql-parse/src/dialect/relations/grouped_rows.rs",
        &["SELECT k.a, count(*) FROM (VALUES (1)) AS k(a) JOIN (SELECT t.a, unnest([1, 2]) AS b \
           FROM (VALUES (1)) AS t(a) GROUP BY t.a) AS q ON k.a = q.a GROUP BY k.a"],
        Rows(&["1 1"]),
    ),
    (
        "a union is sorted by fewer keys than its merge requires",
        "sql-exec/src/rules/sorted_unions.rs",
        &[
            "CREATE TABLE t (a INT) AS VALUES (1), (2)",
            "CREATE TABLE u (c INT) AS VALUES (1), (2)",
            "SELECT a, a AS b FROM t UNION ALL SELECT c, c AS d FROM u ORDER BY 1, 2",
        ],
        Error("does not satisfy order requirements"),
    ),
    (
        "a DELETE by a subquery deletes all rows",
        "sql/src/session/dml/change.rs, https://github.com/apache/datafusion/issues/24654",
        &[
            "CREATE TABLE t (a INT) AS VALUES (1), (2)",
            "CREATE TABLE u (b INT) AS VALUES (1)",
            "DELETE FROM t WHERE a IN (SELECT b FROM u)",
            "SELECT count(*) FROM t",
        ],
        Rows(&["0"]),
    ),
    (
        "VALUES in the query of an INSERT have the types of its table",
        "sql/src/session/dml/insert_values.rs, https://github.com/apache/datafusion/pull/12864",
        &["CREATE TABLE t (a INT)", "INSERT INTO t SELECT 1 FROM (VALUES ('abcd')) AS v(x)"],
        Error("abcd"),
    ),
    (
        "s1.tbl is taken for tbl",
        "sql/src/session/plan/same_names.rs, https://github.com/apache/datafusion/issues/6012",
        &[
            "CREATE SCHEMA s1",
            "CREATE TABLE tbl (x INT) AS VALUES (1)",
            "CREATE TABLE s1.tbl (x INT) AS VALUES (2)",
            "SELECT s1.tbl.x FROM tbl, s1.tbl",
        ],
        Rows(&["1"]),
    ),
];

async fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

/// The rows of plain DataFusion for the last statement, or the text of its error; those before it succeed.
async fn answer(statements: &[&str]) -> std::result::Result<Vec<String>, String> {
    let context = SessionContext::new();
    let (last, before) = statements.split_last().expect("a probe has a statement");
    for sql in before {
        run(&context, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    }
    let batches = run(&context, last).await.map_err(|error| error.to_string())?;
    Ok(batches.iter().flat_map(texts).map(|row| row.join(" ")).collect())
}

#[test]
fn datafusion_still_answers_wrongly_where_it_is_worked_around() {
    let runtime = tokio::runtime::Runtime::new().expect("the runtime starts");
    let mut mended = Vec::new();
    for (name, workaround, statements, today) in PROBES {
        let answer = runtime.block_on(answer(statements));
        let same = match (&today, &answer) {
            (Rows(rows), Ok(answer)) => answer == rows,
            (Error(part), Err(error)) => error.contains(*part),
            _ => false,
        };
        if !same {
            mended.push(format!(
                "{name}: not so any more, this may go: {workaround}\n  was {today:?}\n  is {answer:?}"
            ));
        }
    }
    assert!(mended.is_empty(), "{}", mended.join("\n"));
}
