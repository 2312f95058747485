//! Unsupported statements of other engines, recognised by their first words, and EXCLUDE, with the alternative here.

use datafusion::common::{DataFusionError, Result};

use crate::syntax::Tokens;

const NO_EXTENSIONS: &str = "there are none to load: Parquet, CSV, JSON and Arrow files and the functions that \\df lists are built in";
const CURSORS: &str =
    "results are streamed row by row; clients of a server can declare cursors in a transaction";

/// The first words of a statement, and what to do instead. `TEMP`, `OR REPLACE` and `IF EXISTS` are passed
/// over.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["CREATE", "TRIGGER"],
        "DEFAULT, CHECK and generated columns fill and check rows on every write",
    ),
    (
        &["CREATE", "CONSTRAINT", "TRIGGER"],
        "DEFAULT, CHECK and generated columns fill and check rows on every write",
    ),
    (&["CREATE", "EVENT", "TRIGGER"], "the audit log of a server records statements"),
    (&["DROP", "TRIGGER"], "there are none"),
    (&["CREATE", "RULE"], "use views, and write to their tables"),
    (&["CREATE", "EXTENSION"], NO_EXTENSIONS),
    (&["DROP", "EXTENSION"], NO_EXTENSIONS),
    (&["CREATE", "AGGREGATE"], "CREATE MACRO f(x) AS … can combine the aggregates that \\df lists"),
    (&["CREATE", "OPERATOR"], "call a function, or a macro: CREATE MACRO f(a, b) AS …"),
    (&["CREATE", "CAST"], "call a function, or a macro: CREATE MACRO f(a) AS …"),
    (&["CREATE", "COLLATION"], "texts are ordered by their bytes; ORDER BY lower(x) ignores case"),
    (
        &["CREATE", "STATISTICS"],
        "blocks have minimum and maximum values, and the optimizer samples tables as needed",
    ),
    (
        &["CREATE", "FOREIGN"],
        "FROM 'file', read_csv, read_parquet and read_json read files where they are",
    ),
    (
        &["CREATE", "SERVER"],
        "FROM 'file', read_csv, read_parquet and read_json read files where they are",
    ),
    (&["CREATE", "TABLESPACE"], "all tables are in memory, and kept in the directory of --data"),
    (&["CREATE", "PUBLICATION"], "BACKUP DATABASE TO 'dir' copies a database"),
    (&["CREATE", "SUBSCRIPTION"], "BACKUP DATABASE TO 'dir' copies a database"),
    (&["CREATE", "POLICY"], "GRANT SELECT on a view restricts a role to some of the rows"),
    (&["CREATE", "SECRET"], "only files on this machine are read and written"),
    (
        &["CLUSTER"],
        "CREATE OR REPLACE TABLE t AS SELECT * FROM t ORDER BY … orders the rows of a table",
    ),
    (&["LOCK"], "SELECT … FOR UPDATE locks rows until the transaction ends"),
    (&["DECLARE"], CURSORS),
    (&["FETCH"], CURSORS),
    (&["MOVE"], CURSORS),
    (&["CLOSE"], CURSORS),
    (&["SECURITY", "LABEL"], "use GRANT and REVOKE"),
    (&["FLUSH"], "CHECKPOINT writes a database that has a directory"),
    (&["UNLOCK"], "COMMIT and ROLLBACK end the locks of a transaction"),
    (&["RENAME", "TABLE"], "write ALTER TABLE a RENAME TO b"),
    (&["HANDLER"], CURSORS),
];

/// Optional words between those that name the statement.
const PASSED: [&str; 4] = ["OR", "REPLACE", "TEMP", "TEMPORARY"];

/// Refuses a statement that begins with the words of one that is not supported.
pub(crate) fn refuse_statement(tokens: &Tokens) -> Result<()> {
    let (mut begun, mut at): (Vec<String>, usize) = (Vec::new(), 0);
    while begun.len() < 3
        && let Some(word) = tokens.word(at).filter(|word| word.quote_style.is_none())
    {
        let word = word.value.to_ascii_uppercase();
        if begun.is_empty() || !PASSED.contains(&word.as_str()) {
            begun.push(word);
        }
        at += 1;
    }
    let begins = |words: &[&str]| {
        begun.len() >= words.len() && words.iter().zip(&begun).all(|(word, begun)| word == begun)
    };
    let found = REFUSED.iter().find(|(words, _)| begins(words));
    if let Some((words, instead)) = found {
        return Err(refused(&words.join(" "), instead));
    }
    if (begins(&["CREATE"]) || begins(&["ALTER", "TABLE"])) && excludes(tokens) {
        return Err(refused(
            "EXCLUDE",
            "before INSERT look for rows in the way, in a transaction of ISOLATION LEVEL SERIALIZABLE",
        ));
    }
    Ok(())
}

/// Whether there is a constraint EXCLUDE, not a select list of other columns.
fn excludes(tokens: &Tokens) -> bool {
    (0..tokens.len()).any(|at| {
        let is_named = at > 1 && tokens.is(at - 2, "CONSTRAINT");
        tokens.is(at, "EXCLUDE") && (is_named || tokens.is(at + 1, "USING"))
    })
}

fn refused(statement: &str, instead: &str) -> DataFusionError {
    DataFusionError::NotImplemented(format!("{statement} is not supported; {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::sql::sqlparser::dialect::GenericDialect;

    fn told(sql: &str) -> Option<String> {
        let tokens = Tokens::of(sql, &GenericDialect {}).expect("valid tokens");
        let error = refuse_statement(&tokens).err()?;
        Some(error.strip_backtrace())
    }

    #[test]
    fn statements_are_recognised_by_their_first_words() {
        for sql in [
            "create or replace trigger x",
            "/* a */ CREATE AGGREGATE a(int) (sfunc = f)",
            "LOCK TABLE t",
            "CREATE TABLE t (r int4range, EXCLUDE USING gist (r WITH &&))",
            "ALTER TABLE t ADD CONSTRAINT one EXCLUDE (r WITH =)",
        ] {
            let told = told(sql).unwrap_or_default();
            assert!(told.contains(" is not supported; "), "{sql}: {told}");
        }
        for sql in [
            "SELECT 1",
            "",
            "CREATE FUNCTION f(a) AS a + 1",
            "\"DO\"",
            "CREATE TABLE language (returns INT)",
            "CREATE TABLE t AS SELECT * EXCLUDE (a) FROM u",
            "CREATE MACRO returns(language) AS language",
        ] {
            assert_eq!(told(sql), None, "{sql}");
        }
    }
}
